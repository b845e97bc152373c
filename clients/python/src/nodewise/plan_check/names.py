"""Checks the names that the planner derives: the workload's name, a dash, and ten letters of a hash.

Names of other controllers have another shape, such as `agent-0`. A plan must not use those.
"""

import re

_DERIVED = re.compile(r"(.*)-([bcdfghjklmnpqrstvwxz2456789]{10})", re.DOTALL)
"""The letters are those of Kubernetes' generated names."""
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_HASH_LENGTH = 10
_MAX_NAME = 253
"""Longest name of an object (a DNS-1123 subdomain)."""
_MAX_POD_NAME = 63
"""Longest name of a pod, which must also be a valid host name (a DNS-1123 label)."""


def is_of_pod(name: str, workload: str) -> bool:
    """Whether a pod of this workload may have this name."""
    return _prefix(name) == _cut(workload, _MAX_POD_NAME)


def is_of_revision(name: str, workload: str) -> bool:
    """Whether a revision of this workload may have this name. Without the deviation that cuts names, they may be too
    long for the apiserver.
    """
    return _prefix(name) in (workload, _cut(workload, _MAX_NAME))


def is_of_object(name: str) -> bool:
    """Whether the name is valid for a pod or a revision: a DNS-1123 subdomain. Another name could lead to another path
    of the API.
    """
    return len(name) <= _MAX_NAME and _SUBDOMAIN.fullmatch(name) is not None


def _prefix(name: str) -> str | None:
    """The part before the dash and the letters."""
    derived = _DERIVED.fullmatch(name)
    return derived[1] if derived else None


def _cut(workload: str, limit: int) -> str:
    """A workload's name, cut so that the derived name has at most `limit` characters and does not end with a dash or a
    dot before the derived dash.
    """
    room = limit - _HASH_LENGTH - 1
    return workload if len(workload) <= room else workload[:room].rstrip("-.")
