"""The names that the planner derives for what it creates: the workload's name, a dash, and ten letters of a hash.

Other controllers give names of another shape, such as `agent-0`. A plan must not take those.
"""

import re

_DERIVED = re.compile(r"(.*)-([bcdfghjklmnpqrstvwxz2456789]{10})", re.DOTALL)
"""The letters are those of Kubernetes' generated names."""
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_HASH_LENGTH = 10
_MAX_NAME = 253
"""Longest name of an object (a DNS-1123 subdomain)."""
_MAX_POD_NAME = 63
"""Longest name of a pod that is a host name, too (a DNS-1123 label)."""


def is_of_pod(name: str, workload: str) -> bool:
    """Whether a pod of this workload may have this name."""
    return _prefix(name) == _cut(workload, _MAX_POD_NAME)


def is_of_revision(name: str, workload: str) -> bool:
    """Whether a revision of this workload may have this name. Without the deviation that cuts them, names are too long
    for the apiserver.
    """
    return _prefix(name) in (workload, _cut(workload, _MAX_NAME))


def is_of_object(name: str) -> bool:
    """Whether a pod or a revision can be called so: a DNS-1123 subdomain. Another name would lead to other paths of the
    apiserver.
    """
    return len(name) <= _MAX_NAME and _SUBDOMAIN.fullmatch(name) is not None


def _prefix(name: str) -> str | None:
    """What stands before the dash and the letters."""
    derived = _DERIVED.fullmatch(name)
    return derived[1] if derived else None


def _cut(workload: str, limit: int) -> str:
    """A workload's name, cut so that the whole has at most so many characters. No dash and no dot stands before the
    dash then.
    """
    room = limit - _HASH_LENGTH - 1
    return workload if len(workload) <= room else workload[:room].rstrip("-.")
