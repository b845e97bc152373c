"""Label selectors, as far as an executor needs them: to find the DaemonSets that an orphan may belong to, and those
that are owned.

The service decides what is claimed. This decides which workloads an orphan wakes, of which orphans the service is
told, and whether a plan may adopt one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_WITH_VALUES = {"In", "NotIn"}
_WITHOUT_VALUES = {"Exists", "DoesNotExist"}


@dataclass(frozen=True, slots=True)
class Requirement:
    """What one label has to be like."""

    key: str
    operator: str
    values: frozenset[str]

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether it is, among these labels."""
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
        """Of a selector as text only: the label is a number that is greater or less than the one value."""
        if value is None or not (value.isascii() and value.isdecimal()):
            return False
        than = int(next(iter(self.values)))
        return int(value) > than if self.operator == "Gt" else int(value) < than


@dataclass(frozen=True, slots=True)
class Selector:
    """A metav1 LabelSelector."""

    requirements: tuple[Requirement, ...] | None = None
    """Absent where the selector is absent or invalid: it selects nothing then."""

    @classmethod
    def parse(cls, selector: Any) -> "Selector":
        """Reads `spec.selector`."""
        try:
            return cls(tuple(_requirements(selector)))
        except (TypeError, ValueError, KeyError, AttributeError):
            return cls()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an orphan with these labels wakes the owner of the selector. Absent, empty or invalid it wakes for
        nothing, and an orphan without labels wakes nothing (D-104).
        """
        return bool(labels) and bool(self.requirements) and self.selects(labels)

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected, as the service sees it (D-22): the empty selector selects
        everything.
        """
        return self.requirements is not None and all(required.holds(labels) for required in self.requirements)

    def keys(self) -> Iterator[str]:
        """The keys of the labels that it looks at."""
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
