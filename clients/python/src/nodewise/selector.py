"""Label selectors, as far as an executor needs them: to find the DaemonSets that an orphan may belong to.

The service decides what is claimed. This decides which workloads an orphan wakes, and whether a plan may adopt it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_WITH_VALUES = {"In", "NotIn"}
_WITHOUT_VALUES = {"Exists", "DoesNotExist"}


@dataclass(frozen=True, slots=True)
class _Requirement:
    key: str
    operator: str
    values: frozenset[str]

    def holds(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case _:
                return value is None


@dataclass(frozen=True, slots=True)
class Selector:
    """A metav1 LabelSelector that is used to wake its owner: absent, empty or invalid it matches nothing (D-104)."""

    requirements: tuple[_Requirement, ...] = ()

    @classmethod
    def parse(cls, selector: Any) -> "Selector":
        """Reads `spec.selector`."""
        try:
            return cls(tuple(_requirements(selector)))
        except (TypeError, ValueError, KeyError, AttributeError):
            return cls()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        return (
            bool(labels) and bool(self.requirements) and all(required.holds(labels) for required in self.requirements)
        )


def _requirements(selector: Any) -> list[_Requirement]:
    found = []
    for key, value in (selector.get("matchLabels") or {}).items():
        found.append(_Requirement(_string(key), "In", frozenset([_string(value)])))
    for expression in selector.get("matchExpressions") or []:
        operator, values = expression["operator"], expression.get("values") or []
        if operator not in (_WITH_VALUES if values else _WITHOUT_VALUES):
            raise ValueError(operator)
        found.append(_Requirement(_string(expression["key"]), operator, frozenset(map(_string, values))))
    return found


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value
