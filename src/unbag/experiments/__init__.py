"""The paper's experiments, and ours, beside the published figures: one file each."""

from .ledger import Ledger
from .plan import Plan
from .published import published
from .reproduce import EXPERIMENTS, find_experiment, reproduce

__all__ = ["EXPERIMENTS", "Ledger", "Plan", "find_experiment", "published", "reproduce"]
