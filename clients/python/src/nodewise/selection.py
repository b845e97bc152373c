"""Which DaemonSets of a cluster are owned."""

from collections.abc import Collection
from dataclasses import dataclass

from . import selector_text
from .objects import DaemonSet
from .selector import Selector


@dataclass(frozen=True, slots=True)
class Selection:
    """By their labels and their namespaces."""

    selector: Selector
    """What their labels must match."""
    namespaces: frozenset[str] | None
    """The namespaces that they may be in; None for any."""

    @classmethod
    def of(cls, selector: str | None, namespaces: Collection[str] | None) -> "Selection":
        """Reads what a program asks for; None asks for all. Raises `ValueError`."""
        if isinstance(namespaces, str):
            raise ValueError(f"namespaces is a collection of names: write namespaces=[{namespaces!r}]")
        return cls(selector_text.parse(selector or ""), None if namespaces is None else frozenset(namespaces))

    def includes(self, daemon_set: DaemonSet) -> bool:
        """Whether this DaemonSet, as it is here, is owned."""
        if self.namespaces is not None and daemon_set.key.namespace not in self.namespaces:
            return False
        return self.selector.selects(daemon_set.labels)

    @property
    def only_namespace(self) -> str | None:
        """The namespace to watch, if a single one will do."""
        return next(iter(self.namespaces)) if self.namespaces is not None and len(self.namespaces) == 1 else None


EVERYTHING = Selection.of(None, None)
"""Every DaemonSet."""
