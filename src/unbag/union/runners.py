"""From the bags of a batch to each kernel and back."""

import math

import numpy as np

from unbag._compile import kernel

from .adaptive import adaptive
from .arithmetic import log_of
from .chain import chain
from .dense import dense, dense_few, dense_room, dense_two
from .layout import INTRACTABLE, Batch, Layout, labels_part, part
from .mixed import mixed
from .paper import fast_compiled, forward_compiled

# Up to here, dense costs no more than finding out whether adaptive would cost less.
FEW_LABELS = 5
# Where the number of labels does not say what a bag takes, 2**28 multiplications are what it
# may take: about a second.
MOST_WORK = float(1 << 28)


@kernel
def run_dense(layout, log_prior, batch, chosen, tolerance):
    """Answer the chosen bags by `unbag.union.dense.dense`."""
    n_floats = 1
    for m in chosen:
        n_labels = batch.n_labels[m]
        n_instances = batch.row_offsets[m + 1] - batch.row_offsets[m]
        few = n_labels <= FEW_LABELS
        n_floats = max(n_floats, n_instances << n_labels if few else dense_room(n_labels))
    room = np.empty(n_floats)
    for m in chosen:
        slack = part(batch.slack, batch.row_offsets, m)
        slack_posterior = part(batch.slack_posterior, batch.row_offsets, m)
        n_labels, n_instances = batch.n_labels[m], slack.shape[0]
        if n_labels <= 2:
            z, error_bound = dense_two(
                part(batch.share, batch.share_offsets, m),
                slack,
                part(batch.posterior, batch.share_offsets, m),
                slack_posterior,
            )
        else:
            share = labels_part(batch.share, batch, m)
            posterior = labels_part(batch.posterior, batch, m)
            if n_labels <= FEW_LABELS:
                terms = room[: n_instances << n_labels].reshape((1 << n_labels, n_instances))
                z, error_bound = dense_few(share, slack, posterior, slack_posterior, terms)
            else:
                z, error_bound = dense(share, slack, posterior, slack_posterior, room)
        batch.log_z[m, 0] = log_of(z)
        batch.error_bound[m] = error_bound


@kernel
def run_adaptive(layout, log_prior, batch, chosen, tolerance):
    """Answer the chosen bags by `unbag.union.adaptive.adaptive`."""
    for m in chosen:
        slack = part(batch.slack, batch.row_offsets, m)
        z, batch.error_bound[m], gave_up = adaptive(
            labels_part(batch.share, batch, m),
            slack,
            tolerance,
            int(batch.budget[m] / max(slack.shape[0], 1)),
            labels_part(batch.posterior, batch, m),
            part(batch.slack_posterior, batch.row_offsets, m),
        )
        batch.log_z[m, 0] = log_of(z)
        if gave_up:
            batch.served[m] = INTRACTABLE


@kernel
def run_chain(layout, log_prior, batch, chosen, tolerance):
    """Answer the chosen bags by `unbag.union.chain.chain`."""
    for m in chosen:
        columns = part(layout.columns, layout.column_offsets, batch.bags[m])
        batch.log_z[m, 0], batch.log_z[m, 1], batch.error_bound[m] = chain(
            log_prior,
            part(batch.rows, batch.row_offsets, m),
            columns[: batch.n_labels[m]],
            part(batch.top, batch.row_offsets, m),
            part(batch.sums, batch.row_offsets, m),
            part(batch.slack, batch.row_offsets, m),
            labels_part(batch.posterior, batch, m),
            part(batch.slack_posterior, batch.row_offsets, m),
        )


def run_mixed(
    layout: Layout, log_prior: np.ndarray, batch: Batch, chosen: np.ndarray, tolerance: float
) -> None:
    """Answer the chosen bags by `unbag.union.mixed.mixed`.

    Not a kernel: mixed is a few of them, one after the other, and compiled as one they would take
    twice as long to compile.
    """
    for m in chosen.tolist():
        budget = float(batch.budget[m])
        answer = mixed(
            log_prior,
            part(batch.rows, batch.row_offsets, m),
            layout.required(int(batch.bags[m])),
            part(batch.top, batch.row_offsets, m),
            part(batch.sums, batch.row_offsets, m),
            labels_part(batch.share, batch, m),
            part(batch.slack, batch.row_offsets, m),
            0.9 * tolerance,
            budget,
            budget / 3.0 if budget < MOST_WORK else math.inf,
            labels_part(batch.posterior, batch, m),
            part(batch.slack_posterior, batch.row_offsets, m),
            part(batch.chained, batch.label_offsets, m),
        )
        batch.log_z[m, 0], batch.log_z[m, 1], batch.error_bound[m], gave_up = answer
        if gave_up:
            batch.served[m] = INTRACTABLE


@kernel
def run_forward(layout, log_prior, batch, chosen, tolerance):
    """Answer the chosen bags by `unbag.union.paper.forward`, compiled."""
    for m in chosen:
        z, batch.error_bound[m] = forward_compiled(
            labels_part(batch.share, batch, m),
            part(batch.slack, batch.row_offsets, m),
            labels_part(batch.posterior, batch, m),
            part(batch.slack_posterior, batch.row_offsets, m),
        )
        batch.log_z[m, 0] = log_of(z)


@kernel
def run_fast(layout, log_prior, batch, chosen, tolerance):
    """Answer the chosen bags by `unbag.union.paper.fast`, compiled."""
    for m in chosen:
        z, batch.error_bound[m] = fast_compiled(
            labels_part(batch.share, batch, m),
            part(batch.slack, batch.row_offsets, m),
            labels_part(batch.posterior, batch, m),
            part(batch.slack_posterior, batch.row_offsets, m),
        )
        batch.log_z[m, 0] = log_of(z)
