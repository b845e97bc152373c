"""Checks the names that the planner derives: the workload's name, a dash, and some letters of a hash.

Names of other controllers have another shape, such as `agent-0`. A plan must not use those.
"""

import re

_DERIVED = re.compile(r"(.*)-([bcdfghjklmnpqrstvwxz2456789]+)", re.DOTALL)
"""The letters are those of Kubernetes' generated names."""
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LENGTH = 10
"""The number of letters of the hash in the names of revisions, and in those of pods that are for one node. Also the
most in the name of an object of which the workload has one for each template.
"""
MAX_NAME = 253
"""Longest name of an object (a DNS-1123 subdomain)."""
_MAX_POD_NAME = 63
"""Longest name of a pod, which must also be a valid host name (a DNS-1123 label)."""


_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


def is_label_value(value: str) -> bool:
    """Whether a label can have this value."""
    return _LABEL_VALUE.fullmatch(value) is not None


def is_of_pod(name: str, workload: str, length: int = LENGTH) -> bool:
    """Whether a pod of this workload may have this name, which ends with a hash of `length` letters."""
    return _prefix(name, length) == _cut(workload, _MAX_POD_NAME, length)


def is_of_revision(name: str, workload: str) -> bool:
    """Whether a revision of this workload may have this name. Without the deviation that cuts names, they may be too
    long for the apiserver.
    """
    return _prefix(name, LENGTH) in (workload, _cut(workload, MAX_NAME, LENGTH))


def is_of_object(name: str) -> bool:
    """Whether the name is valid for a pod or a revision: a DNS-1123 subdomain. Another name could lead to another path
    of the API.
    """
    return len(name) <= MAX_NAME and _SUBDOMAIN.fullmatch(name) is not None


def template_hash(name: str, workload: str) -> str | None:
    """The hash in the name of an object of which the workload has one for each template. None if the name is not
    derived from the workload's name. That is cut as upstream does it, also before a dash.
    """
    derived = _DERIVED.fullmatch(name)
    if derived is None or len(derived[2]) > LENGTH:
        return None
    return derived[2] if derived[1] == workload[: MAX_NAME - len(derived[2]) - 1] else None


def _prefix(name: str, length: int) -> str | None:
    """The part before the dash and a hash of `length` letters."""
    derived = _DERIVED.fullmatch(name)
    return derived[1] if derived and len(derived[2]) == length else None


def _cut(workload: str, limit: int, length: int) -> str:
    """A workload's name, cut so that the derived name has at most `limit` characters and does not end with a dash or a
    dot before the derived dash.
    """
    room = limit - length - 1
    return workload if len(workload) <= room else workload[:room].rstrip("-.")
