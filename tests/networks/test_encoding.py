"""Inputs that say where features lie among those of the training."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="networks need torch: pip install 'unbag[torch]'")

from unbag.torch.encoding import N_PIECES, piecewise_linear, quantile_edges


def test_values_far_above_a_piece_without_width_are_at_its_end():
    """Of a feature that mostly has one value, most quantiles are that value."""
    X = np.array([[0.0]] * 50 + [[1e9]])
    encoded = piecewise_linear(np.array([[-1.0], [0.0], [1e9]]), quantile_edges(X))
    assert encoded.shape == (3, N_PIECES)
    assert encoded[0].tolist() == [-1.0] * N_PIECES
    assert encoded[1].tolist() == [-1.0] * N_PIECES
    assert encoded[2].tolist() == [1.0] * N_PIECES
