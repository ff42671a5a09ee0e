"""Parameters of networks, checked."""

from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import nn

from unbag.fitting import SCALINGS
from unbag.validation import check_choices, check_numbers, check_positive_integers


def check_parameters(model: Any) -> None:
    """Raise an error that names the first parameter of an `ORNetwork` that makes no sense."""
    check_numbers(
        model, dropout=(0, 0.99), noise=(0, np.inf), weight_decay=(0, np.inf),
        learning_rate=(0, np.inf),
    )  # fmt: skip
    check_positive_integers(model, "n_members", "max_iter")
    for name in ("context_units", "distill"):
        if not is_count(getattr(model, name)):
            raise ValueError(f"{name} must be 0 or more; got {getattr(model, name)!r}.")
    if model.batch_size is not None:
        check_positive_integers(model, "batch_size")
    layers = model.hidden if isinstance(model.hidden, tuple | list) else ()
    if not layers or not all(is_count(units) and units for units in layers):
        raise ValueError(
            f"hidden must be a tuple of units, one number for each layer; got {model.hidden!r}."
        )
    check_choices(
        model,
        encoding=(None, "quantile"),
        on_impossible=("relax", "drop", "raise"),
        on_intractable=("relax", "raise"),
        scaling=SCALINGS,
        background=(False, True, "auto"),
    )
    if model.encoder is not None and not isinstance(model.encoder, nn.Module):
        raise ValueError(f"encoder must be a torch.nn.Module; got {model.encoder!r}.")
    check_device(model.device)
    model._check_threshold()


def is_count(value: Any) -> bool:
    """Return whether a value is a whole number, not below zero."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 0


def check_device(name: Any) -> None:
    """Raise an error unless a fit can run on a device."""
    try:
        device = None if name == "auto" else torch.device(name)
    except (RuntimeError, TypeError):
        raise ValueError(
            f'device must be "auto", or a device of torch\'s, such as "cpu"; got {name!r}.'
        ) from None
    if device is None or device.type == "cpu":
        return
    if device.type != "cuda":
        raise ValueError(f"device must be a CPU or a CUDA device; got {name!r}.")
    if not torch.cuda.is_available():
        raise ValueError(f"device must be one that is there: torch finds no CUDA; got {name!r}.")
