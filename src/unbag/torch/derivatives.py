"""Gradients that must not be differentiated again: an error, where autograd would say zero."""

from typing import Any, NoReturn

import torch


def differentiable_once(gradient: torch.Tensor, *of: torch.Tensor | None) -> torch.Tensor:
    """Return a gradient, as backward computes it, of which derivatives are refused.

    Parameters
    ----------
    gradient : Tensor
    *of : Tensors
        What it depends on.
    """
    if not torch.is_grad_enabled():
        return gradient
    return RefuseSecondDerivatives.apply(gradient, *of)  # pyright: ignore[reportReturnType]


def refuse_second_derivatives(ctx: Any, *_: Any) -> NoReturn:
    """Raise an error; backward of gradients."""
    raise NotImplementedError(
        "second derivatives of union losses are not implemented; differentiate once."
    )


class RefuseSecondDerivatives(torch.autograd.Function):
    """What is given, which must not be differentiated."""

    @staticmethod
    def forward(ctx: Any, gradient, *of):
        """Return a gradient as that of tensors."""
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, *_):
        """Raise an error."""
        refuse_second_derivatives(ctx)
