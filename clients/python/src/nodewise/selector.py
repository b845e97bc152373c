"""Label selectors: which workloads an orphan concerns, and which workloads are owned.

The service decides about adoption. The executor uses selectors to decide which workloads an orphan queues, which
orphans it sends, and whether a plan may adopt an orphan.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_WITH_VALUES = {"In", "NotIn"}
_WITHOUT_VALUES = {"Exists", "DoesNotExist"}


@dataclass(frozen=True, slots=True)
class Requirement:
    """A requirement on one label."""

    key: str
    operator: str
    values: frozenset[str]

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether these labels meet the requirement."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "Gt" | "Lt":
                return self._compares(value)
            case _:
                return value is None

    def _compares(self, value: str | None) -> bool:
        """Compares a numeric label with the single value. Only selectors in text form have these operators."""
        if value is None or not (value.isascii() and value.isdecimal()):
            return False
        than = int(next(iter(self.values)))
        return int(value) > than if self.operator == "Gt" else int(value) < than


@dataclass(frozen=True, slots=True)
class Selector:
    """A metav1 LabelSelector."""

    requirements: tuple[Requirement, ...] | None = None
    """None if the selector is absent or invalid. It then selects nothing."""

    @classmethod
    def parse(cls, selector: Any) -> "Selector":
        """Reads `spec.selector`."""
        try:
            return cls(tuple(_requirements(selector)))
        except (TypeError, ValueError, KeyError, AttributeError):
            return cls()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an orphan with these labels queues the owner of the selector. An absent, empty or invalid selector is
        never queued, and an orphan without labels queues nothing (D-104).
        """
        return bool(labels) and bool(self.requirements) and self.selects(labels)

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether the selector matches these labels, as the service decides it (D-22). The empty selector matches
        everything.
        """
        return self.requirements is not None and all(required.holds(labels) for required in self.requirements)

    def keys(self) -> Iterator[str]:
        """The label keys of the selector."""
        return (required.key for required in self.requirements or ())


def _requirements(selector: Any) -> list[Requirement]:
    found = []
    for key, value in (selector.get("matchLabels") or {}).items():
        found.append(Requirement(_string(key), "In", frozenset([_string(value)])))
    for expression in selector.get("matchExpressions") or []:
        operator, values = expression["operator"], expression.get("values") or []
        if operator not in (_WITH_VALUES if values else _WITHOUT_VALUES):
            raise ValueError(operator)
        found.append(Requirement(_string(expression["key"]), operator, frozenset(map(_string, values))))
    return found


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value
