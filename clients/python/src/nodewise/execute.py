"""One reconcile of one workload: gate → snapshot → plan → hold → apply → report, and when to come back.

Nothing is decided here about the workload. Whatever goes wrong before a plan is in hand leaves the cluster untouched.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias, TypeVar

import grpc
from google.protobuf.timestamp_pb2 import Timestamp

from . import plan_check, plan_log, snapshot, times, tracing, v1, waiting
from .actions import actions_of
from .actuator import Actuator, ActuatorError, WorkloadEvent
from .apply import DEFAULT_CONCURRENCY, Applied, apply
from .buckets import Digest
from .client import PlanService, RefusedError, ServiceError, UnreachableError
from .convert import ConversionError
from .expectations import leave_out_foreign
from .gate import Behind, Relisting
from .kinds import OWNER_KIND, Key, ObjectKey, Resource
from .objects import DaemonSet, Revision
from .options import burst, is_enabled
from .pace import SOONEST, Pace
from .plan_check import Asked, remembered
from .quiet import Quiet
from .revisions import MAX_BYTES
from .selection import EVERYTHING, Selection
from .state import State
from .told import in_short
from .tracing import DEFAULT_TRACES, BatchTraces

_log = tracing.logger(__name__)
_T = TypeVar("_T")

MAX_PLANS = 4
"""Plans that one reconcile may ask for in a row because what one rested on was not so: a name was taken, an orphan was
gone.
"""

MAX_AGE_OF_NEXT = 1.0
"""How old a plan may be, in seconds, that was asked for while the one before it was applied."""

MAX_READS = 16
"""Most revisions that are read one by one before a plan is asked for. More are read by a list of their namespace."""

REPORT_GRACE = 2.0
"""How long the answer to a report is waited for once the executor stops, in seconds."""


@dataclass(frozen=True, slots=True)
class Settled:
    """Done: the retry counter is reset."""

    after: float | None = None
    """Come back after this time, in seconds."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Something failed: come back with the workload's own back-off."""

    reason: str
    """What failed."""
    after: float | None = None
    """Come back after this time besides, in seconds."""
    http_status: int = 0
    """The HTTP status of the apiserver's answer, such as 403, to the first action that failed, or to a read that the
    check of the plan needs. 0 if there was no answer, or something else failed.
    """
    code: grpc.StatusCode | None = None
    """The gRPC status of the service's answer, if the request for the plan or the report failed."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The caches do not show our own last write yet, or are partly of before a restore of etcd. The workload is woken
    when they are up to date.
    """

    behind: Behind | Relisting


@dataclass(frozen=True, slots=True)
class Unreachable:
    """The service is not there: nothing was written. That is no failure of the workload."""

    reason: str
    code: grpc.StatusCode | None = None
    """The gRPC status of the last replica that was asked, if one was."""


Ending: TypeAlias = Settled | Failed | Waiting | Unreachable
"""How a reconcile ended."""


class _Planned(NamedTuple):
    """A plan, and what it was made from."""

    plan: v1.Plan
    workload: DaemonSet
    sent: v1.ReconcileState
    as_of: int
    """The number of the last change of the caches that its snapshot shows."""


class StoppedError(Exception):
    """The reconcile was given up, since the executor stops: no plan was in hand."""


class _EndedError(Exception):
    """The reconcile ends here."""

    def __init__(self, ending: Ending) -> None:
        self.ending = ending


class Executor:
    """What is needed to reconcile any workload. A workload must not be reconciled twice at a time."""

    def __init__(
        self,
        state: State,
        actuator: Actuator,
        service: PlanService,
        options: v1.PlanOptions,
        *,
        selection: Selection = EVERYTHING,
        apply_concurrency: int = DEFAULT_CONCURRENCY,
        traces: BatchTraces = DEFAULT_TRACES,
        now: Callable[[], Timestamp] = times.now,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.state = state
        self._actuator = actuator
        self._service = service
        self._options = options
        self._selection = selection
        self._apply_concurrency = apply_concurrency
        self._traces = traces
        self._now = now
        self._stopping = False
        self.refused_plans = 0
        """Plans that were not applied, since they break rule W15."""
        self._calls: dict[asyncio.Task[Any], float] = {}
        """Calls of the service that are under way, and how long each may go on after the stop."""
        self._next: dict[Key, tuple[_Planned, float]] = {}
        """Plans that are there before their turn, and when they were asked for."""
        self._too_many_revisions = Quiet()
        self._pace = Pace(clock)
        # Creates that expectations tell by name need not be seen before more is created: until they are, only nodes
        # that are not among theirs get pods.
        self._goes_ahead = is_enabled(options, v1.DEVIATION_SLOW_START_ACROSS_PLANS)

    async def reconcile(self, key: Key) -> Ending:
        """Reconciles a workload once. Raises `StoppedError` when it is stopped before there is a plan."""
        try:
            ending = await self._reconcile(key)
        except _EndedError as ended:
            ending = ended.ending
        if isinstance(ending, Settled | Failed):
            return replace(ending, after=self._pace.slow(key, ending.after))
        return ending

    def stop(self) -> None:
        """From now on nothing is begun. Whoever waits for a plan does so no more; what is being applied goes on to its
        end, and is reported if the service answers soon.
        """
        self._stopping = True
        for call, grace in self._calls.items():
            _give_up(call, grace)

    def waits_for_watches(self, key: Key) -> bool:
        """Whether creates or deletes of a workload are still to be seen."""
        return self.state.holdings.outstanding(key) != (0, 0)

    async def _reconcile(self, key: Key) -> Ending:
        live: list[Revision] = []  # revisions that the caches need not show, as they were read
        for _ in range(MAX_PLANS):
            workload = self._admit(key, live)
            ahead = self._take_next(key, workload)
            if workload is None:
                return Settled()
            planned = await self._plan(workload, live) if ahead is None or live else ahead
            self._go_on()
            left_out = await self._check(planned, live)
            self._stay_selected(key)
            # Nothing of it is carried out, so what it expects would never be seen.
            if planned.plan.verdict == v1.VERDICT_STALE:
                return Failed("the plan is stale: the caches are older than our own writes")
            self._hold(planned)
            asked, asking = time.monotonic(), asyncio.create_task(self._plan_next(planned))
            try:
                applied = await self._apply(planned, left_out)
                following = await asking
            finally:
                await waiting.ended([asking])
            colliding = _readable(applied.colliding_revisions)
            outdated = not applied.failed and applied.is_outdated
            self._heed(applied)
            if outdated:
                live += _readable(await self._created_revisions(planned.plan, applied))
                _log.info("%s: an object is gone or cannot be changed; planning again without it", key)
            elif colliding:
                _log.info("%s: the name of a new revision is taken; planning again with the object of that name", key)
            ending = await self._report(planned, applied, left_out)
            if not colliding and not outdated:
                at_once = ending == Settled(0)
                if at_once and applied.taken_names:
                    # The service says so in its answer: if something failed besides, back-off counts.
                    _tell_taken_names(key, applied)
                    continue
                if at_once and following is not None and not applied.failed:
                    self._next[key] = following, asked
                return ending
            live += colliding
        if not colliding and not outdated:
            # Names that others took cost no back-off, also when they are many.
            return Settled(SOONEST)
        return Failed(f"a revision's name was still taken, or another object gone, after {MAX_PLANS} plans")

    def _admit(self, key: Key, live: list[Revision]) -> DaemonSet | None:
        """The workload, if it exists, is selected, and the caches show our last writes to it (D-71, steps 1 and 2).
        While they do not, what was read live is kept, and is there again when the workload is admitted.
        """
        workload = self.state.store.daemon_set(key)
        if self._is_left_alone(workload):
            _log.debug("%s: not selected, so it is left alone", key)
            workload = None
        if workload is None:
            self.state.forget(key)
            self._pace.forget(key)
            return None
        if self.state.store.is_relisting:
            raise _EndedError(Waiting(Relisting(tuple(self.state.store.unsynced()))))
        behind = self.state.gate.check(key, self.state.store.reached)
        if behind is not None:
            self.state.keep_live(key, workload.uid, live)
            raise _EndedError(Waiting(behind))
        live += self.state.take_live(key, workload.uid)
        return workload

    def _stay_selected(self, key: Key) -> None:
        """Ends the reconcile of a workload that is not selected any more. The event that showed that has woken it, and
        the next reconcile forgets it.
        """
        if self._is_left_alone(self.state.store.daemon_set(key)):
            raise _EndedError(Settled())

    def _is_left_alone(self, workload: DaemonSet | None) -> bool:
        """Whether a workload exists, and is not selected."""
        return workload is not None and not self._selection.includes(workload)

    async def _plan(self, workload: DaemonSet, live: Sequence[Revision]) -> _Planned:
        """The plan for a workload; without one the reconcile ends."""
        try:
            return await self._ask_for_plan(workload, live)
        except RefusedError as error:
            self._drop_dispensable(workload, error)
            raise _EndedError(Failed(str(error), code=error.code)) from error
        except ServiceError as error:
            self._go_on()
            raise _EndedError(Unreachable(str(error), error.code)) from error

    def _drop_dispensable(self, workload: DaemonSet, error: RefusedError) -> None:
        """Drops what a request may have been refused for: old reports, and what earlier plans left to remember, unless
        it is another part of the request that is wrong. A wrong service may have made that, and right replicas would
        refuse it for ever.
        """
        self.state.reports_delivered(workload.key)
        is_of_another_field = error.code is grpc.StatusCode.INVALID_ARGUMENT and "snapshot.state" not in str(error)
        if not is_of_another_field and self.state.holdings.drop_planned(workload.key, workload.uid, self._now()):
            _log.warning(
                "%s: the service refused the request; what earlier plans left to remember is dropped, since it may be "
                "the cause: %s",
                workload.key,
                error,
            )

    async def _ask_for_plan(self, workload: DaemonSet, live: Sequence[Revision]) -> _Planned:
        """Asks the service for a plan. Raises `ServiceError` when there is none."""
        key, uid, state = workload.key, workload.uid, self.state
        current, sent, left_out, as_of = workload, v1.ReconcileState(), 0, 0
        unread: list[Revision] = []
        await self._read_revisions(workload, live)

        def build(known: Callable[[Digest], bool]) -> v1.PlanRequest:
            nonlocal current, sent, left_out, unread, as_of
            # A retry takes what is known by now, unless the workload was replaced: then it finishes with what it had.
            newer = state.store.daemon_set(key)
            if newer is not None and newer.uid == uid:
                current = newer
            self._stay_selected(key)
            sent, as_of = state.holdings.get(key, uid), state.store.last_change
            unread = snapshot.unread(state.store, current, live)
            with tracing.span("snapshot"):
                taken, left_out = snapshot.take(state.store, current, sent, live, now=self._now(), known=known)
                return v1.PlanRequest(
                    snapshot=taken,
                    options=self._options,
                    undelivered_reports=state.undelivered(key, uid),
                )

        self._go_on()
        try:
            plan = await self._ask(self._service.plan(uid, build), grace=0)
        finally:
            if left_out and self._too_many_revisions.is_due(key):
                _log.warning(
                    "%s: the revisions take more than %d bytes together; %d that rank last are not sent",
                    key,
                    MAX_BYTES,
                    left_out,
                )
        if unread:
            raise _EndedError(Failed(f"ControllerRevision {unread[0].name} has changed since it was read"))
        plan.error, plan.plan_id = in_short(plan.error), in_short(plan.plan_id)
        return _Planned(plan, current, sent, as_of)

    async def _read_revisions(self, workload: DaemonSet, live: Sequence[Revision]) -> None:
        """Reads those revisions of the next snapshot that the caches do not keep whole, in particular orphans that were
        there before the workload came.
        """
        store, namespace = self.state.store, workload.key.namespace
        unread = {revision.name for revision in snapshot.unread(store, workload, live)}
        if not unread:
            return
        self._go_on()
        try:
            if len(unread) > MAX_READS:
                async for served in self._actuator.read_all(Resource.REVISIONS, namespace):
                    self._go_on()
                    for revision in _readable([served]):
                        if revision.name in unread:
                            store.keep_whole(revision)
                return
            for name in sorted(unread):
                self._go_on()
                for revision in _readable([await self._actuator.read(ObjectKey(Resource.REVISIONS, namespace, name))]):
                    store.keep_whole(revision)
        except ActuatorError as error:
            reason = f"reading revisions of {namespace}: {error.message}"
            raise _EndedError(Failed(reason, http_status=error.http_status)) from error

    async def _plan_next(self, planned: _Planned) -> _Planned | None:
        """The plan that follows one that is being applied, if that can be told by now, comes soon, and creates and does
        nothing else: what else there may be to do rests on pods, and these may have changed by then.
        """
        if not (_goes_on_by_itself(planned.plan) and self._actuator.writes):
            return None
        try:
            async with waiting.timeout(MAX_AGE_OF_NEXT):
                following = await self._ask_for_plan(planned.workload, ())
        except (asyncio.TimeoutError, ServiceError, _EndedError, StoppedError):
            return None
        except Exception:
            # What the present plan has done must be told all the same.
            _log.exception("%s: asking for the next plan ended with a defect", planned.workload.key)
            return None
        return following if _only_creates(following.plan) else None

    def _take_next(self, key: Key, workload: DaemonSet | None) -> _Planned | None:
        """The plan that is there for a workload, if it was made from the workload as it is now, and not long ago."""
        following, asked = self._next.pop(key, (None, 0.0))
        if workload is None or following is None or time.monotonic() - asked > MAX_AGE_OF_NEXT:
            return None
        made_from = following.workload
        same = (made_from.uid, made_from.resource_version) == (workload.uid, workload.resource_version)
        return following if same else None

    def _go_on(self) -> None:
        if self._stopping:
            raise StoppedError

    async def _check(self, planned: _Planned, live: Sequence[Revision]) -> dict[int, str]:
        """Checks a plan before anything of it is held or written (rule W15). Answers with why actions are not to be
        carried out, by their ids. A violation ends the reconcile as a refused request does.
        """
        workload = planned.workload
        deletes_with_uid = is_enabled(self._options, v1.DEVIATION_DELETE_WITH_UID)
        decides_after_cut = is_enabled(self._options, v1.DEVIATION_DECIDE_AFTER_CUT)
        asked = Asked(
            workload,
            self._options.scope,
            live,
            planned.as_of,
            planned.sent,
            deletes_with_uid,
            burst(self._options),
            decides_after_cut,
        )
        try:
            left_out = await plan_check.check_with_reads(planned.plan, asked, self.state.store, self._actuator)
        except plan_check.ViolationError as violation:
            reason = str(violation)
            reference = v1.WorkloadReference(
                kind=OWNER_KIND,
                namespace=workload.key.namespace,
                name=workload.key.name,
                uid=workload.uid,
                resource_version=workload.resource_version,
            )
            self.refused_plans += 1
            self._actuator.emit(WorkloadEvent(reference, "Warning", "PlanRefused", reason))
            raise _EndedError(Failed(reason)) from violation
        except plan_check.UnclearError as error:
            raise _EndedError(Failed(str(error), http_status=error.http_status)) from error
        for action, why in left_out.items():
            _log.debug("%s: action %d of plan %s is left out: %s", workload.key, action, planned.plan.plan_id, why)
        return left_out

    def _hold(self, planned: _Planned) -> None:
        """Holds what the plan says, before its first write."""
        key, uid = planned.workload.key, planned.workload.uid
        self.state.reports_delivered(key)
        if not planned.plan.HasField("state"):
            return
        held = v1.ReconcileState()
        held.CopyFrom(planned.plan.state)
        leave_out_foreign(held, planned.plan, planned.sent)
        remembered.retain(held, planned.sent, self.state.store.has_node)
        if not self._actuator.writes:
            # What is not done is never observed.
            held.ClearField("expectations")
        self.state.holdings.replace(key, uid, held, planned.sent, self.state.store.sighted(key.namespace, uid))

    async def _apply(self, planned: _Planned, left_out: Mapping[int, str]) -> Applied:
        plan, workload, sent, _ = planned
        if not plan.phases:
            return Applied()
        plan_log.tell_plan(_log, plan, writes=self._actuator.writes)
        applied = await apply(
            self._actuator, plan, workload.object, self._apply_concurrency, self._traces, left_out=left_out
        )
        for write in applied.writes:
            if not (self._goes_ahead and write.is_expected_by_name):
                self.state.gate.record(workload.key, workload.uid, write.resource, write.resource_version)
        self.state.holdings.lower(workload.key, workload.uid, applied.outcomes)
        if applied.aborted:
            self.state.holdings.restore_backoffs(workload.key, workload.uid, sent)
        return applied

    def _heed(self, applied: Applied) -> None:
        """Leaves out from now on what an adoption did not find (D-23), and leaves alone what cannot be changed."""
        for key in applied.vanished:
            self.state.store.forget_orphan(key.resource, key.namespace, key.name)
        for key in applied.sealed:
            self.state.store.seal(key.resource, key.namespace, key.name)

    async def _created_revisions(self, plan: v1.Plan, applied: Applied) -> list[bytes]:
        """The revisions that a plan created, as they are: caches need not show them yet, and their names are taken."""
        created = []
        for action, outcome in zip(actions_of(plan), applied.outcomes, strict=True):
            if action.HasField("create_revision") and outcome.result == v1.RESULT_SUCCEEDED:
                key = ObjectKey(Resource.REVISIONS, plan.workload.namespace, action.create_revision.name)
                try:
                    created.append(await self._actuator.read(key))
                except Exception as error:
                    # Without it the next plan finds the name taken, and the one after that has it.
                    _log.debug("reading %s: %s", key, ActuatorError.of(error))
        return created

    async def _report(self, planned: _Planned, applied: Applied, left_out: Mapping[int, str]) -> Ending:
        """Tells the service what became of the plan, and learns when to come back. Without actions there is nothing to
        tell.

        A report that is refused ends the reconcile: what it would settle stays as it is until it expires.
        """
        plan, (key, uid) = planned.plan, (planned.workload.key, planned.workload.uid)
        # "At once" goes on from what was done.
        failed, after = _failure(plan, applied), _requeue_after(plan) or None
        if not applied.outcomes or not self._actuator.writes:
            return _ending(after, failed)
        held = self.state.holdings.get(key, uid)
        # What was left out is for the service as if it had not been planned: it is no reason to come back later.
        outcomes = (outcome for outcome in applied.outcomes if outcome.action_id not in left_out)
        report = v1.ReportRequest(
            workload=plan.workload,
            plan_id=plan.plan_id,
            state=held,
            outcomes=filter(is_telling, outcomes),
            options=self._options,
            requeue_after=plan.requeue_after if plan.HasField("requeue_after") else None,
            plan_error=plan.error,
        )
        try:
            response = await self._ask(self._service.report(report), grace=REPORT_GRACE)
        except RefusedError as error:
            # It would be refused again with the next plan, and the plan with it.
            raise _EndedError(_ending(after, failed or Failed(str(error), code=error.code))) from error
        except ServiceError as error:
            # Ask again soon: what the report would settle must not be waited for.
            self.state.keep_report(key, report)
            riding = Failed(f"the report rides on the next plan: {error}", code=error.code)
            return _ending(after, failed or riding)
        if response.HasField("state"):
            remembered.retain(response.state, held, self.state.store.has_node)
            self.state.holdings.settle(key, uid, response.state)
        after = _requeue_after(response)
        if response.requeue == v1.REQUEUE_BACKOFF:
            return _ending(after, failed or Failed(in_short(response.message)))
        # What was left out may still be due, in another plan.
        return Settled(0 if left_out else after)

    async def _ask(self, asking: Coroutine[Any, Any, _T], *, grace: float) -> _T:
        """The answer of the service, which is waited for so long at most once the executor stops. A call that is given
        up then, or that somebody else cancelled, as whoever closes its channel does, has none; the reconcile goes on.
        """
        call = asyncio.create_task(asking)
        self._calls[call] = grace
        if self._stopping:
            _give_up(call, grace)
        try:
            await asyncio.wait({call})
        finally:
            del self._calls[call]
            call.cancel()
        if call.cancelled():
            raise UnreachableError("the call of the planning service was cancelled")
        return call.result()


def _give_up(call: "asyncio.Task[Any]", grace: float) -> None:
    asyncio.get_running_loop().call_later(grace, call.cancel)


def is_telling(outcome: v1.Outcome) -> bool:
    """Nothing depends on what succeeded without a subject. A plan may adopt every pod of a large cluster, and a report
    of as many outcomes with next to nothing in them would be refused.
    """
    return outcome.result != v1.RESULT_SUCCEEDED or outcome.WhichOneof("subject") is not None


def _requeue_after(said: v1.Plan | v1.ReportResponse) -> float | None:
    """When to come back, in seconds; none where nothing is said or the time is negative."""
    if not said.HasField("requeue_after"):
        return None
    after = times.seconds(said.requeue_after)
    return None if after < 0 else after


def _ending(after: float | None, failed: Failed | None) -> Ending:
    return Settled(after) if failed is None else replace(failed, after=after)


def _goes_on_by_itself(plan: v1.Plan) -> bool:
    """Whether the plan that follows at once can be asked for before this one is done: pods are created, all of which
    the state holds by name, and nothing else is done.
    """
    at_once = plan.HasField("requeue_after") and not times.seconds(plan.requeue_after)
    # With several batches the slow start has not come to its end, and what these lead to decides about the next.
    if not (at_once and _only_creates(plan) and len(plan.phases[0].batches) == 1):
        return False
    return all(action.create_pod.pod_name for action in plan.phases[0].batches[0].actions)


def _only_creates(plan: v1.Plan) -> bool:
    return [phase.kind for phase in plan.phases] == [v1.PHASE_KIND_CREATES]


def _failure(plan: v1.Plan, applied: Applied) -> Failed | None:
    """Why a plan has to be retried, if so."""
    if applied.failed:
        first = applied.failures[0]
        count = Counter(outcome.result for outcome in applied.outcomes)
        done = count[v1.RESULT_SUCCEEDED] + count[v1.RESULT_ALREADY_EXISTS] + count[v1.RESULT_NOT_FOUND]
        skipped = count[v1.RESULT_SKIPPED]
        failed = len(applied.outcomes) - done - skipped
        reason = (
            f"{done} of {len(applied.outcomes)} actions were done, {failed} failed, "
            f"{skipped} were not tried; the first failure: {first.message}"
        )
        return Failed(reason, http_status=first.http_status)
    return Failed(plan.error) if plan.error else None


def _tell_taken_names(key: Key, applied: Applied) -> None:
    names = applied.taken_names
    _log.info(
        "%s: %d names of new pods are taken by other pods, first: %s; planning again for other names",
        key,
        len(names),
        names[0],
    )


def _readable(served: Iterable[bytes]) -> list[Revision]:
    """Those of the revisions that can be read; the others are passed over, as by the watch. What the name of a new
    revision collides with is then not known to the next plan, so the workload fails and says that the name is taken.
    """
    revisions = []
    for text in served:
        try:
            revisions.append(Revision.read(text))
        except ConversionError as error:
            _log.warning("a ControllerRevision is passed over, since it cannot be read: %s", error)
    return revisions
