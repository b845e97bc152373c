"""One reconcile of one workload: gate, snapshot, plan, check, apply, report, and when to reconcile again."""

from .endings import Ending, Failed, Settled, StoppedError, Unreachable, Waiting
from .executor import MAX_PLANS, Executor, is_telling
from .plans import MAX_AGE_OF_NEXT, MAX_READS

__all__ = [
    "MAX_AGE_OF_NEXT",
    "MAX_PLANS",
    "MAX_READS",
    "Ending",
    "Executor",
    "Failed",
    "Settled",
    "StoppedError",
    "Unreachable",
    "Waiting",
    "is_telling",
]
