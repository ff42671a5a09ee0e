"""Fits whose products and inference run on another device than the processor.

What runs there lies in `unbag.torch.parts`, and is looked up by name when it is asked for, so that
nobody else needs torch.
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from unbag._extras import MissingExtraError

from .objective import Training

#: What a fit on a device can do, of the parameters that say what a fit does.
SUPPORTED: dict[str, Any] = {"solver": "lbfgs", "inference": "auto", "missed": 0.0, "false": 0.0}


def check_device_fit(model: Any) -> None:
    """Raise an error that names what a model asks for and no device but the processor does."""
    device = model.device
    kind, _, number = device.partition(":") if isinstance(device, str) else ("", "", "")
    if kind != "cuda" or (number and not number.isdecimal()) or device == "cuda:":
        raise ValueError(f'device must be "cpu", "cuda" or such as "cuda:1"; got {device!r}.')
    for name, value in SUPPORTED.items():
        wanted = getattr(model, name)
        if not np.array_equal(wanted, value):
            raise ValueError(
                f"device={device!r} fits with {name}={value!r} only; got {wanted!r}. Fit by "
                f'device="cpu", or leave out {name}.'
            )


def training_on(device: str, make: Any = Training) -> Callable[..., Training]:
    """Return what makes the `Training` of a fit on a device, such as "cuda" or "cuda:1".

    `make` would do so on the processor. If that is not `Training`, the features are not in memory,
    which is an error.
    """
    if make is not Training:
        raise ValueError(
            f"device={device!r} needs all features at once, and this fit reads them block by "
            'block: fit by device="cpu", or to bags in memory.'
        )
    try:
        parts = import_module("unbag.torch.parts")
    except MissingExtraError as error:
        raise MissingExtraError(
            f"device={device!r} needs PyTorch for CUDA: pip install 'unbag[torch]', or fit by "
            'device="cpu".',
            name=error.name,
        ) from error
    return partial(parts.DeviceTraining, device=device)
