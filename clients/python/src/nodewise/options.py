"""How to plan."""

from . import v1

DEFAULT_BURST = 250
"""The burst where options name none, as the service takes it."""


def is_enabled(options: v1.PlanOptions, deviation: v1.Deviation.ValueType) -> bool:
    """Whether a deviation that is on by default is on."""
    strict = options.profile == v1.PROFILE_UPSTREAM_STRICT
    return deviation in options.enabled_deviations or (not strict and deviation not in options.disabled_deviations)


def burst(options: v1.PlanOptions) -> int:
    """Most creates, and separately most deletes, of one plan."""
    return options.burst if options.HasField("burst") else DEFAULT_BURST
