"""The caches: DaemonSets by key, pods by their controller, nodes, revisions, and the resourceVersion that each watch
has reached.

Applying an event returns the changes it made. `handlers` derives from them which workloads to reconcile. Pods
controlled by another kind are not cached.
"""

from .cache import Store
from .events import (
    Applied,
    Bookmark,
    DaemonSetChange,
    Deleted,
    Event,
    Listed,
    NodeChange,
    PodChange,
    RevisionChange,
    RevisionPage,
    Transition,
    Visit,
    Watched,
    is_kept,
)
from .namespace import LivePods, PodView

__all__ = [
    "Applied",
    "Bookmark",
    "DaemonSetChange",
    "Deleted",
    "Event",
    "Listed",
    "LivePods",
    "NodeChange",
    "PodChange",
    "PodView",
    "RevisionChange",
    "RevisionPage",
    "Store",
    "Transition",
    "Visit",
    "Watched",
    "is_kept",
]
