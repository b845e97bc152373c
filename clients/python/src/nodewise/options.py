"""Helpers for `PlanOptions`."""

from . import v1

DEFAULT_BURST = 250
"""The default burst of the service."""


def is_enabled(options: v1.PlanOptions, deviation: v1.Deviation.ValueType) -> bool:
    """Whether a deviation that is on by default is enabled."""
    strict = options.profile == v1.PROFILE_UPSTREAM_STRICT
    return deviation in options.enabled_deviations or (not strict and deviation not in options.disabled_deviations)


def burst(options: v1.PlanOptions) -> int:
    """The maximum number of creates, and separately of deletes, of one plan."""
    return options.burst if options.HasField("burst") else DEFAULT_BURST
