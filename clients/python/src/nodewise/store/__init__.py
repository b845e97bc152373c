"""The caches: workloads by key and controller, pods by their controller, nodes, revisions, RolloutPolicies, and the
resourceVersion that each watch has reached.

Applying an event returns the changes it made. `handlers` derives from them which workloads to reconcile. Pods
that a workload of another kind controls are not cached.
"""

from .cache import Store
from .events import (
    Applied,
    Bookmark,
    Deleted,
    Event,
    Listed,
    NodeChange,
    PodChange,
    PolicyChange,
    RevisionChange,
    RevisionPage,
    Transition,
    Unknown,
    Visit,
    Watched,
    WorkloadChange,
    is_kept,
)
from .namespace import LivePods, PodView

__all__ = [
    "Applied",
    "Bookmark",
    "Deleted",
    "Event",
    "Listed",
    "LivePods",
    "NodeChange",
    "PodChange",
    "PodView",
    "PolicyChange",
    "RevisionChange",
    "RevisionPage",
    "Store",
    "Transition",
    "Unknown",
    "Visit",
    "Watched",
    "WorkloadChange",
    "is_kept",
]
