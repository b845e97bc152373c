"""The measurements that plans ask for: which are under way, and the results that no plan has counted yet.

A plan asks for a measurement and does not wait for it. When the measurement has ended, its workload is planned again,
with the result in the snapshot. This module does the bookkeeping; a `Measurer` makes the calls. Everything is in
memory: after a restart, plans ask again.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from . import times, tracing, v1, waiting
from .kinds import Key
from .sanitize import one_line

_log = tracing.logger(__name__)

MOST = 1_000
"""Most measurements of a workload that are under way or whose results are held: as many as a snapshot may have."""
MOST_BYTES = 4 << 20
"""Most bytes of the results of a workload that are held. A service that asks for measurements and never counts them
must not fill the memory. Of one that counts them, each plan drops what is held.
"""
MOST_HOSTS = 100
"""Most hosts of a snapshot."""
MOST_VALUE_BYTES = 64 << 10
"""Longest value, in bytes. The service takes no longer ones."""
INTERVAL = 60.0
"""The time between two measurements of a check that names none, in seconds."""

Result: TypeAlias = str | v1.MeasuredVerdict
"""The result of a measurement: a value as JSON, or the verdict of whoever was asked."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a measurement is about, as far as a call needs it."""

    workload: v1.WorkloadReference
    status: bytes = b"{}"
    """The policy's status of the workload as JSON; `{}` if there is none. It is sent to webhooks and VerdictServices.
    """
    interval: float = INTERVAL
    """The time between two measurements of the check, in seconds."""

    @property
    def key(self) -> Key:
        """The key of the workload."""
        return Key(self.workload.namespace, self.workload.name, self.workload.kind)


def require_short(value: str) -> None:
    """Raises `ValueError` if a value is too long for the service."""
    size = len(value.encode())
    if size > MOST_VALUE_BYTES:
        raise ValueError(f"the value has {size} bytes, and {MOST_VALUE_BYTES} are allowed")


class Measurer(Protocol):
    """Makes measurements."""

    @property
    def hosts(self) -> Sequence[str]:
        """The hosts that may be called: `HOST` or `HOST:PORT`, in lower case, at most 100. A policy that names another
        one is not accepted.
        """

    async def measure(self, subject: Subject, request: v1.Measure) -> Result:
        """Makes a measurement. It must end by itself. An exception means that the measurement could not be made; its
        text is the reason. It is cancelled as soon as nobody waits for the result any more.
        """


class NoMeasurer:
    """A measurer that calls nobody."""

    hosts: Sequence[str] = ()
    """None."""

    async def measure(self, subject: Subject, request: v1.Measure) -> Result:
        """Always fails."""
        raise RuntimeError("this executor makes no measurements")


class _Id(NamedTuple):
    """A MeasurementId, in the order of results."""

    policy_uid: str
    check: str
    stage: str
    revision_hash: str
    number: int

    @classmethod
    def of(cls, wire: v1.MeasurementId) -> "_Id":
        return cls(wire.policy_uid, wire.check, wire.stage, wire.revision_hash, wire.number)


class _OfWorkload:
    """The measurements of the workload of one uid."""

    def __init__(self, uid: str) -> None:
        self.uid = uid
        self.under_way: dict[_Id, asyncio.Task[None]] = {}
        self.ended: dict[_Id, v1.Measurement] = {}

    def keep(self, key: _Id, measurement: v1.Measurement) -> None:
        """Keeps a result, or an error in its place if too much is held already. The error counts as one of the check,
        so that the rollout waits.
        """
        size, held = measurement.ByteSize(), sum(made.ByteSize() for made in self.ended.values())
        if held + size > MOST_BYTES:
            measurement.error = (
                f"the result has {size} bytes, and {held} bytes of results wait to be counted; at most {MOST_BYTES} "
                "are held for a workload"
            )
        self.ended[key] = measurement

    def retain(self, policies: Collection[str]) -> None:
        self.ended = {key: made for key, made in self.ended.items() if key.policy_uid in policies}
        for key in [key for key in self.under_way if key.policy_uid not in policies]:
            self.under_way.pop(key).cancel()

    def cancel(self) -> None:
        for task in self.under_way.values():
            task.cancel()


class Measurements:
    """The measurements of all workloads. They run on the event loop on which they are started."""

    def __init__(self, measurer: Measurer | None = None, ended: Callable[[Key], None] = lambda _: None) -> None:
        """`ended` is called with the workload of each measurement that has ended."""
        self._measurer: Measurer = NoMeasurer() if measurer is None else measurer
        self.hosts = list(self._measurer.hosts)
        """The hosts that may be called."""
        if len(self.hosts) > MOST_HOSTS:
            raise ValueError(f"a measurer may call {MOST_HOSTS} hosts at most, and this one names {len(self.hosts)}")
        self._ended = ended
        self._of: dict[Key, _OfWorkload] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_over = False

    def start(self, subject: Subject, request: v1.Measure) -> None:
        """Starts a measurement, and returns at once. A request for a measurement that is under way or whose result is
        held is ignored.
        """
        key, uid, of_request = subject.key, subject.workload.uid, _Id.of(request.id)
        if self._is_over or not request.HasField("id"):
            return
        of = self._of.get(key)
        if of is None or of.uid != uid:
            self.forget(key)
            of = self._of[key] = _OfWorkload(uid)
        is_known = of_request in of.under_way or of_request in of.ended
        if is_known or len(of.under_way) + len(of.ended) >= MOST:
            return
        # The plan may be changed or dropped while the measurement is made.
        copy = v1.Measure.FromString(request.SerializeToString())
        with tracing.detached():
            task = asyncio.create_task(self._run(of, subject, copy))
        of.under_way[of_request] = task
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, of: _OfWorkload, subject: Subject, request: v1.Measure) -> None:
        key, task = _Id.of(request.id), asyncio.current_task()
        try:
            measurement = await self._made(subject, request)
        finally:
            # Also if the measurer was cancelled by something else: a plan asks again.
            is_wanted = of.under_way.get(key) is task
            if is_wanted:
                del of.under_way[key]
        if is_wanted and self._of.get(subject.key) is of:
            of.keep(key, measurement)
            self._ended(subject.key)

    async def _made(self, subject: Subject, request: v1.Measure) -> v1.Measurement:
        made = v1.Measurement(id=request.id)
        try:
            result = await self._measurer.measure(subject, request)
            if isinstance(result, v1.MeasuredVerdict):
                made.verdict.CopyFrom(result)
            else:
                require_short(result)
                made.value = result
        except Exception as error:
            made.error = one_line(str(error) or type(error).__name__)
            _log.debug("%s: check %s cannot be measured: %s", subject.key, request.id.check, made.error)
        made.time.CopyFrom(times.now())
        return made

    def results(self, key: Key, uid: str) -> list[v1.Measurement]:
        """The results for the workload of this uid that no plan has counted yet, in the order of their ids."""
        of = self._of.get(key)
        return [of.ended[found] for found in sorted(of.ended)] if of is not None and of.uid == uid else []

    def counted(self, key: Key, measured: Iterable[v1.MeasurementId]) -> None:
        """Drops these results of a workload: a plan that had them was carried out."""
        of = self._of.get(key)
        if of is None:
            return
        for found in measured:
            of.ended.pop(_Id.of(found), None)
        if not of.ended and not of.under_way:
            del self._of[key]

    def retain(self, key: Key, policies: Collection[str]) -> None:
        """Forgets what was measured for policies of a workload whose uids are not these, and ends what is under way for
        them.
        """
        of = self._of.get(key)
        if of is None:
            return
        of.retain(policies)
        if not of.ended and not of.under_way:
            del self._of[key]

    def forget(self, key: Key) -> None:
        """Forgets a workload that is gone, and ends its measurements."""
        of = self._of.pop(key, None)
        if of is not None:
            of.cancel()

    async def close(self) -> None:
        """Ends all measurements, and starts none from now on."""
        self._is_over = True
        self._of.clear()
        await waiting.cancel_all(self._tasks)
