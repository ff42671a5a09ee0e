"""Fits that run on another device than the CPU.

The code is in `unbag.torch.parts`. It is imported only when it is needed, so that other fits do not
need torch.
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from unbag._extras import MissingExtraError

from .objective import Training

#: The only values that a fit on a device supports, for each parameter.
SUPPORTED: dict[str, Any] = {"solver": "lbfgs", "inference": "auto", "missed": 0.0, "false": 0.0}


def check_device_fit(model: Any) -> None:
    """Raise an error if a model has a setting that only fits on the CPU support."""
    device = model.device
    kind, _, number = device.partition(":") if isinstance(device, str) else ("", "", "")
    if kind != "cuda" or (number and not number.isdecimal()) or device == "cuda:":
        raise ValueError(
            f'device must be "cpu", "cuda", or a device such as "cuda:1"; got {device!r}.'
        )
    for name, value in SUPPORTED.items():
        wanted = getattr(model, name)
        if not np.array_equal(wanted, value):
            raise ValueError(
                f"device={device!r} supports only {name}={value!r}; got {wanted!r}. Use "
                f'device="cpu", or leave out {name}.'
            )


def training_on(device: str, make: Any = Training) -> Callable[..., Training]:
    """Return the factory of the `Training` of a fit on a device, such as "cuda" or "cuda:1".

    `make` is the factory for the CPU. If it is not `Training`, the features are not in memory,
    which is an error.
    """
    if make is not Training:
        raise ValueError(
            f"device={device!r} needs all features at once, but this fit reads them block by "
            'block: use device="cpu", or fit in memory.'
        )
    try:
        parts = import_module("unbag.torch.parts")
    except MissingExtraError as error:
        raise MissingExtraError(
            f"device={device!r} needs PyTorch for CUDA: pip install 'unbag[torch]', or use "
            'device="cpu".',
            name=error.name,
        ) from error
    return partial(parts.DeviceTraining, device=device)
