"""Helpers for `PlanOptions`."""

from . import v1
from .kinds import DAEMON_SET, Kind

DEFAULT_BURST = DAEMON_SET.burst
"""The default burst of the service for DaemonSets."""


def is_enabled(options: v1.PlanOptions, deviation: v1.Deviation.ValueType) -> bool:
    """Whether a deviation that is on by default is enabled."""
    strict = options.profile == v1.PROFILE_UPSTREAM_STRICT
    return deviation in options.enabled_deviations or (not strict and deviation not in options.disabled_deviations)


def burst(options: v1.PlanOptions, kind: Kind = DAEMON_SET) -> int:
    """The maximum number of creates, and separately of deletes, of one plan for a workload of this kind."""
    return options.burst if options.HasField("burst") else kind.burst
