"""Parses times of the Kubernetes API, within the years that the protocol allows."""

import calendar
import functools
import re
import time

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

# 0001-01-01T00:00:00Z and 9999-12-30T00:00:00Z: the first and the last time that the service accepts.
FIRST_SECOND = -62_135_596_800
LAST_SECOND = 253_402_128_000

_RFC_3339 = re.compile(
    r"(?P<sign>-?)(?P<year>\d{4,})-(?P<month>\d\d)-(?P<day>\d\d)[Tt ]"
    r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9})\d*)?"
    r"(?:[Zz]|(?P<east>[+-])(?P<off_hours>\d\d):?(?P<off_minutes>\d\d))"
)


@functools.lru_cache(maxsize=4096)
def parse(text: str) -> tuple[int, int]:
    """Parses a time in RFC 3339. Returns seconds since 1970 and nanoseconds.

    An apiserver accepts any year with any time zone. Refusing such a time would let anyone who may write the status of
    one pod stop a whole controller. So a time out of range becomes the first or the last valid one, which means the
    same: long ago, or not yet.

    Raises ValueError for a text that is not a time.
    """
    match = _RFC_3339.fullmatch(text)
    if match is None:
        raise ValueError(f"not a time: {text!r}")
    year, month, day = int(match["year"]), int(match["month"]), int(match["day"])
    hour, minute, second = int(match["hour"]), int(match["minute"]), int(match["second"])
    # A year out of range has the days of a year within it.
    in_calendar = not match["sign"] and 1 <= year <= 9999
    leap = calendar.isleap(year) if in_calendar else True
    days = calendar.monthrange(2000 if leap else 2001, month)[1] if 1 <= month <= 12 else 0
    if not (1 <= day <= days and hour <= 23 and minute <= 59 and second <= 60):
        raise ValueError(f"not a time: {text!r}")
    if not in_calendar:
        return (FIRST_SECOND, 0) if match["sign"] or year == 0 else (LAST_SECOND, 0)
    seconds = calendar.timegm((year, month, day, hour, minute, min(second, 59)))
    if match["east"]:
        offset = int(match["off_hours"]) * 3600 + int(match["off_minutes"]) * 60
        seconds += offset if match["east"] == "-" else -offset
    nanos = int((match["fraction"] or "0").ljust(9, "0"))
    if seconds < FIRST_SECOND:
        return FIRST_SECOND, 0
    if seconds >= LAST_SECOND:
        return LAST_SECOND, 0
    return seconds, nanos


def timestamp(text: str) -> Timestamp:
    """Parses a time in RFC 3339 as a Timestamp."""
    seconds, nanos = parse(text)
    return Timestamp(seconds=seconds, nanos=nanos)


def now() -> Timestamp:
    """The current time."""
    nanos = time.time_ns()
    return Timestamp(seconds=nanos // 1_000_000_000, nanos=nanos % 1_000_000_000)


def later(moment: Timestamp, seconds: float) -> Timestamp:
    """The moment so many seconds later, at the latest the last one that the service accepts."""
    nanos = min(moment.seconds * 10**9 + moment.nanos + round(seconds * 10**9), LAST_SECOND * 10**9)
    return Timestamp(seconds=nanos // 10**9, nanos=nanos % 10**9)


def until(moment: Timestamp, now: Timestamp) -> float:
    """The seconds until a moment; 0 if it is over."""
    return max(moment.seconds - now.seconds + (moment.nanos - now.nanos) / 1e9, 0.0)


def is_before(moment: Timestamp, now: Timestamp) -> bool:
    """Whether a time is valid for the service and not after `now`."""
    is_valid = moment.seconds >= FIRST_SECOND and 0 <= moment.nanos < 1_000_000_000
    return is_valid and (moment.seconds, moment.nanos) <= (now.seconds, now.nanos)


def seconds(duration: Duration) -> float:
    """A duration in seconds."""
    return duration.seconds + duration.nanos / 1e9
