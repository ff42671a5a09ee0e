import numpy as np

from unbag.torch.encoding import N_PIECES, piecewise_linear, quantile_edges


def test_each_piece_says_how_far_into_it_a_value_reaches():
    X = np.random.default_rng(0).normal(size=(200, 3))
    edges = quantile_edges(X)
    encoded = piecewise_linear(X, edges).reshape(200, 3, N_PIECES)
    assert encoded.min() == -1
    assert encoded.max() == 1
    # As many training instances end in each piece.
    ends = (encoded > -1).sum(axis=2)
    for feature in ends.T:
        np.testing.assert_allclose(np.bincount(feature)[1:], 200 / N_PIECES, atol=1)
    # Beyond the training instances there is nothing more to say.
    far = piecewise_linear(np.array([[9.0, -9.0, 9.0]]), edges).reshape(3, N_PIECES)
    np.testing.assert_array_equal(far, [[1.0] * N_PIECES, [-1.0] * N_PIECES, [1.0] * N_PIECES])


def test_a_piece_without_width_is_a_step():
    X = np.array([[0.0], [5.0], [5.0], [5.0], [1e300]])
    encoded = piecewise_linear(X, np.array([[0.0, 5.0, 5.0, 6.0]]))
    np.testing.assert_array_equal(
        encoded, [[-1, -1, -1], [1, -1, -1], [1, -1, -1], [1, -1, -1], [1, 1, 1]]
    )
