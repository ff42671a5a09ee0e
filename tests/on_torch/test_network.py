"""Our own kernels for layers on the CPU must agree with plain torch; quantiles as inputs."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from unbag.torch import ORNetwork
from unbag.torch.network import (
    N_PIECES,
    BagRows,
    Disturbance,
    MemberNetworks,
    activate,
    bag_means,
    bag_sums,
    one_bag,
    piecewise_linear,
    quantile_edges,
    spread_over_bags,
)

OFFSETS = np.array([0, 3, 3, 4, 9])
CPU = torch.device("cpu")
ROWS = BagRows.of(OFFSETS, CPU)


def drawn(*shape):
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, generator=generator)


def disturbance(dropout, noise=0.0, seed=0):
    return Disturbance(dropout, noise, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("rows", [ROWS, one_bag(9, CPU)], ids=["bags", "one bag"])
def test_activations_and_their_gradients_are_those_of_torch(rows):
    x, weight = drawn(2, 9, 5).requires_grad_(), drawn(2, 9, 5)
    shift = drawn(2, len(rows.offsets) - 1, 5).requires_grad_()
    (activate(x * 1.0, shift, rows, None) * weight).sum().backward()
    found = x.grad, shift.grad
    x.grad = shift.grad = None
    plain = torch.relu(x + shift[:, rows.bag])
    (plain * weight).sum().backward()
    for ours, theirs in zip(found, (x.grad, shift.grad), strict=True):
        torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(activate(x.detach().clone(), shift.detach(), rows, None), plain)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_as_many_units_are_dropped_as_wanted(dtype):
    x = torch.ones(3, 400, 50, dtype=dtype)
    shift = torch.zeros(3, 1, 50, dtype=dtype)
    kept = activate(x.clone(), shift, one_bag(400, CPU), disturbance(0.3)) > 0
    assert kept.double().mean().item() == pytest.approx(0.7, abs=0.01)
    # Neither members nor neighbours lose the same units.
    for one, other in ((kept[0], kept[1]), (kept[:, 1:], kept[:, :-1])):
        assert (one == other).double().mean().item() == pytest.approx(0.58, abs=0.02)


def test_dropped_units_pass_no_gradient_back():
    x = torch.ones(2, 9, 64, requires_grad=True)
    kept = activate(x * 1.0, torch.zeros(2, 1, 64), one_bag(9, CPU), disturbance(0.5))
    kept.sum().backward()
    torch.testing.assert_close(x.grad, 2.0 * (kept.detach() > 0))
    torch.testing.assert_close(kept.detach(), x.grad)


def test_threads_change_nothing():
    x, shift = drawn(4, 4000, 64), drawn(4, 1, 64)
    rows, n_threads = one_bag(4000, CPU), torch.get_num_threads()
    results = []
    try:
        for n in (1, 3):
            torch.set_num_threads(n)
            results.append(activate(x.clone(), shift, rows, disturbance(0.3)))
    finally:
        torch.set_num_threads(n_threads)
    assert torch.equal(*results)


def test_sums_over_bags_by_our_kernel_and_by_torch_for_other_devices():
    values = drawn(2, 9, 3)
    expected = [[member[a:b].sum(0) for a, b in pairwise(OFFSETS)] for member in values]
    expected = torch.stack([torch.stack(member) for member in expected])
    torch.testing.assert_close(bag_sums(values, ROWS), expected)
    lengths = ROWS.sizes.expand(2, 4).contiguous()
    theirs = torch.segment_reduce(values, "sum", lengths=lengths, axis=1, unsafe=True, initial=0.0)
    torch.testing.assert_close(theirs, expected)


def test_gradients_of_what_bags_have():
    values = drawn(2, 9, 3).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda v: bag_means(v, ROWS), (values,))
    per_bag = drawn(2, 4, 3).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda v: spread_over_bags(v, ROWS), (per_bag,))
    assert not bag_means(values, ROWS)[:, 1].any()


@pytest.mark.parametrize("hidden", [(7,), (7, 6), (7, 6, 5)])
def test_a_network_is_the_same_in_both_precisions(hidden):
    model = ORNetwork(hidden, n_members=3, context_units=2)
    network = MemberNetworks.drawn(model, n_inputs=4, n_columns=5, seed=0)
    X = drawn(9, 4).expand(3, 9, 4)
    single = network(X, ROWS)
    assert single.shape == (3, 9, 5)
    double = network.double()(X.double(), ROWS)
    torch.testing.assert_close(single.double(), double, rtol=1e-4, atol=1e-5)


def test_bags_differ_by_their_context_alone():
    instance = drawn(1, 4)
    X = torch.cat([instance, drawn(2, 4), instance, drawn(1, 4)]).expand(2, 5, 4)
    rows = BagRows.of(np.array([0, 3, 5]), CPU)
    for units, same in ((0, True), (3, False)):
        model = ORNetwork((6, 6), n_members=2, context_units=units)
        logits = MemberNetworks.drawn(model, n_inputs=4, n_columns=3, seed=0)(X, rows)
        assert torch.allclose(logits[:, 0], logits[:, 3]) is same


def test_members_are_networks_of_their_own():
    model = ORNetwork((6, 6), n_members=4, context_units=2)
    network = MemberNetworks.drawn(model, n_inputs=3, n_columns=2, seed=0)
    X = drawn(9, 3)
    whole = network(X.expand(4, 9, 3), ROWS)
    parts = [network.members(0, 1), network.members(1, 4)]
    apart = [part(X.expand(part.n_members, 9, 3), ROWS) for part in parts]
    torch.testing.assert_close(torch.cat(apart), whole)
    torch.testing.assert_close(MemberNetworks.joined(parts)(X.expand(4, 9, 3), ROWS), whole)


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
