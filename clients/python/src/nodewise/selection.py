"""Selects the owned workloads of a cluster."""

from collections.abc import Collection
from dataclasses import dataclass

from . import selector_text
from .objects import Workload
from .selector import Selector


@dataclass(frozen=True, slots=True)
class Selection:
    """A selection by labels and namespaces."""

    selector: Selector
    """The selector for their labels."""
    namespaces: frozenset[str] | None
    """Their namespaces; None for all."""

    @classmethod
    def of(cls, selector: str | None, namespaces: Collection[str] | None) -> "Selection":
        """Parses the settings of a program; None selects all. Raises `ValueError`."""
        if isinstance(namespaces, str):
            raise ValueError(f"namespaces is a collection of names: write namespaces=[{namespaces!r}]")
        return cls(selector_text.parse(selector or ""), None if namespaces is None else frozenset(namespaces))

    def includes(self, workload: Workload) -> bool:
        """Whether this version of a workload is owned."""
        if self.namespaces is not None and workload.key.namespace not in self.namespaces:
            return False
        return self.selector.selects(workload.labels)

    @property
    def only_namespace(self) -> str | None:
        """The single namespace to watch; None if all must be watched."""
        return next(iter(self.namespaces)) if self.namespaces is not None and len(self.namespaces) == 1 else None


EVERYTHING = Selection.of(None, None)
"""Selects every workload."""
