"""How many pods the ReplicaSets of a Deployment may get: no more than spec.replicas and the surge of the Deployment
(P-29, P-31).
"""

import re
from typing import Any

from .annotations import replicas_of
from .values import at, is_integer

_DEFAULT_SURGE = "25%"
"""The default of maxSurge, which the apiserver sets."""
_PERCENTAGE = re.compile(r"\+?0*([0-9]{1,19})%")
_MAX_PERCENTAGE = (1 << 63) - 1


def most(deployment: Any) -> int:
    """The most pods that the ReplicaSets of this Deployment may get."""
    replicas, strategy = replicas_of(deployment), at(deployment, "spec", "strategy")
    if at(strategy, "type") == "Recreate":
        return replicas
    surge = at(strategy, "rollingUpdate", "maxSurge")
    return replicas + max(_pods(_DEFAULT_SURGE if surge is None else surge, replicas), 0)


def _pods(surge: Any, replicas: int) -> int:
    """The number of pods that maxSurge means. A percentage is rounded up."""
    if isinstance(surge, str):
        found = _PERCENTAGE.fullmatch(surge)
        percentage = int(found[1]) if found else 0
        return -(-replicas * percentage // 100) if percentage <= _MAX_PERCENTAGE else 0
    return surge if is_integer(surge) else 0
