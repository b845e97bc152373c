"""One reconcile of one workload: gate, snapshot, plan, check, apply, report, and when to reconcile again.

This module makes no decision about the workload. If an error occurs before there is a plan, nothing is written.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from google.protobuf.timestamp_pb2 import Timestamp

from .. import plan_check, plan_log, times, tracing, v1, waiting
from ..actions import actions_of
from ..actuator import Actuator, ActuatorError, WorkloadEvent
from ..apply import DEFAULT_CONCURRENCY, Applied, apply
from ..client import PlanService, RefusedError, ServiceError
from ..expectations import leave_out_foreign
from ..gate import Relisting
from ..kinds import Key, Kind, ObjectKey, Resource
from ..live import LiveObjects
from ..measurements import Measurements
from ..objects import Revision, Workload
from ..options import burst, is_enabled
from ..plan_check import Asked, remembered
from ..requeue_limit import MIN_DELAY, RequeueLimit
from ..sanitize import one_line
from ..selection import EVERYTHING, Selection
from ..state import State
from ..subjects import Subjects
from ..tracing import DEFAULT_TRACES, BatchTraces
from . import analysis
from .calls import ServiceCalls
from .endings import Ending, Failed, ReconcileEndedError, Settled, Waiting
from .plans import Planned, PlanRequests

_log = tracing.logger("nodewise.execute")

MAX_PLANS = 4
"""Most plans that one reconcile requests in a row because a precondition did not hold: a name was taken, or an orphan
was gone.
"""

REPORT_GRACE = 2.0
"""How long the executor waits for the response to a report after it was stopped, in seconds."""


class Executor:
    """Reconciles workloads. Two reconciles of the same workload must not overlap."""

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
        measurements: Measurements | None = None,
        now: Callable[[], Timestamp] = times.now,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.state = state
        self._actuator = actuator
        self._service = service
        self._options = options
        self._apply_concurrency = apply_concurrency
        self._traces = traces
        self.refused_plans = 0
        """The number of plans that were refused because they break rule W15."""
        self._calls = ServiceCalls()
        self._measurements = Measurements() if measurements is None else measurements
        self._now = now
        self._plans = PlanRequests(
            state,
            actuator,
            service,
            options,
            selection=selection,
            calls=self._calls,
            measurements=self._measurements,
            now=now,
        )
        self._requeue_limit = RequeueLimit(clock)
        # An expectation by name does not have to be observed before the next plan: until then, the service creates pods
        # on other nodes only, and the check of the plan counts the pod.
        self._goes_ahead = is_enabled(options, v1.DEVIATION_SLOW_START_ACROSS_PLANS)

    async def reconcile(self, key: Key) -> Ending:
        """Reconciles a workload once. Raises `StoppedError` if it is stopped before there is a plan."""
        try:
            ending = await self._reconcile(key)
        except ReconcileEndedError as ended:
            ending = ended.ending
        if isinstance(ending, Settled | Failed):
            return replace(ending, after=self._requeue_limit.delay(key, ending.after))
        return ending

    def stop(self) -> None:
        """Begins no new reconcile, and cancels the waits for plans. A plan that is being applied is completed, and
        reported if the service answers soon.
        """
        self._calls.stop()

    def waits_for_watches(self, key: Key) -> bool:
        """Whether creates or deletes of a workload have not been observed yet."""
        return self.state.reconcile_states.outstanding(key) != (0, 0)

    async def _reconcile(self, key: Key) -> Ending:
        live = LiveObjects()  # objects that were read live; the caches may not show them yet
        for _ in range(MAX_PLANS):
            workload = self._admit(key, live)
            ahead = self._plans.take_next(key, workload)
            if workload is None:
                return Settled()
            planned = await self._plans.plan(workload, live) if ahead is None or live else ahead
            self._calls.require_running()
            left_out = await self._check(planned, live.revisions)
            self._plans.require_selected(key)
            # A stale plan is not applied, so its expectations would never be observed.
            if planned.plan.verdict == v1.VERDICT_STALE:
                return Failed("the plan is stale: the caches are older than our own writes")
            self._store_state(planned)
            asked, asking = time.monotonic(), asyncio.create_task(self._plans.plan_next(planned))
            try:
                applied = await self._apply(planned, left_out)
                following = await asking
            finally:
                await waiting.cancel_all([asking])
            kind = workload.kind
            colliding = LiveObjects.readable(kind, applied.colliding)
            outdated = not applied.failed and applied.is_outdated
            self._exclude_objects(applied)
            if outdated:
                live.extend(LiveObjects.readable(kind, await self._created_revisions(planned.plan, applied)))
                _log.info("%s: an object is gone or cannot be changed; planning again without it", key)
            elif colliding:
                _log.info("%s: the name of a new object is taken; planning again with the object that has it", key)
            ending = await self._report(planned, applied, left_out)
            if not colliding and not outdated:
                at_once = ending == Settled(0)
                if at_once and applied.taken_names:
                    # The response says so. If an action also failed, the back-off applies.
                    _log_taken_names(key, applied)
                    continue
                if at_once and following is not None and not applied.failed:
                    self._plans.keep_next(key, following, asked)
                return ending
            live.extend(colliding)
        if not colliding and not outdated:
            # Name collisions cause no back-off, however many there are.
            return Settled(MIN_DELAY)
        return Failed(f"an object's name was still taken, or another object gone, after {MAX_PLANS} plans")

    def _admit(self, key: Key, live: LiveObjects) -> Workload | None:
        """Returns the workload if it exists, is selected, and the caches show the executor's last writes to it (D-71,
        steps 1 and 2). While they do not, objects that were read live are kept for the next reconcile.
        """
        workload = self.state.store.workload(key)
        if self._plans.is_not_selected(workload):
            _log.debug("%s: not selected, so it is left alone", key)
            workload = None
        if workload is None:
            self.state.forget(key)
            self._requeue_limit.forget(key)
            self._measurements.forget(key)
            return None
        unknown = self.state.store.unknown(workload.kind)
        if unknown is not None:
            raise ReconcileEndedError(Failed(unknown))
        if self.state.store.is_relisting:
            raise ReconcileEndedError(Waiting(Relisting(tuple(self.state.store.unsynced()))))
        behind = self.state.gate.check(key, self.state.store.reached)
        if behind is not None:
            self.state.keep_live(key, workload.uid, live)
            raise ReconcileEndedError(Waiting(behind))
        live.extend(self.state.take_live(key, workload.uid))
        return workload

    async def _check(self, planned: Planned, live: Sequence[Revision]) -> dict[int, str]:
        """Checks a plan before its state is stored and before its first write (rule W15). Returns the ids of actions
        that must not be carried out, with the reasons. A violation ends the reconcile, as a refused request does.
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
            burst(self._options, workload.kind),
            decides_after_cut,
            self.state.gate.unseen_creates(workload.key, workload.uid, self.state.store.reached),
            planned.policies,
        )
        try:
            left_out = await plan_check.check_with_reads(planned.plan, asked, self.state.store, self._actuator)
        except plan_check.ViolationError as violation:
            reason = str(violation)
            self.refused_plans += 1
            self._actuator.emit(WorkloadEvent(workload.reference, "Warning", "PlanRefused", reason))
            raise ReconcileEndedError(Failed(reason, refused=True)) from violation
        except plan_check.UnclearError as error:
            raise ReconcileEndedError(Failed(str(error), http_status=error.http_status)) from error
        for action, why in left_out.items():
            _log.debug("%s: action %d of plan %s is left out: %s", workload.key, action, planned.plan.plan_id, why)
        return left_out

    def _store_state(self, planned: Planned) -> None:
        """Stores the state of the plan, before its first write."""
        key, uid = planned.workload.key, planned.workload.uid
        self.state.reports_delivered(key)
        if not planned.plan.HasField("state"):
            return
        held = v1.ReconcileState()
        held.CopyFrom(planned.plan.state)
        leave_out_foreign(held, planned.plan, planned.sent)
        remembered.retain(held, planned.sent, self._has_node(planned.workload.kind))
        if not self._actuator.writes:
            # In observe mode nothing is written, so no expectation would be met.
            held.ClearField("expectations")
        self.state.reconcile_states.replace(key, uid, held, planned.sent, self.state.store.pod_view(key, uid))

    async def _apply(self, planned: Planned, left_out: Mapping[int, str]) -> Applied:
        plan, workload, sent = planned.plan, planned.workload, planned.sent
        if not plan.phases:
            self._measurements.counted(workload.key, planned.measured)
            return Applied()
        plan_log.log_plan(_log, plan, writes=self._actuator.writes)
        gate = self.state.gate
        restarts, subjects = gate.restarts, Subjects(plan, planned.policies)
        applied = await apply(
            self._actuator,
            plan,
            workload.object,
            self._apply_concurrency,
            self._traces,
            left_out=left_out,
            kind=workload.kind,
            start=lambda measure: self._measurements.start(subjects.of(measure), measure),
        )
        if analysis.are_counted(plan, applied):
            self._measurements.counted(workload.key, planned.measured)
        # After a restore of etcd the versions of earlier writes mean nothing.
        for write in applied.writes if gate.restarts == restarts else ():
            if self._goes_ahead and write.created_pod:
                gate.record_create(workload.key, workload.uid, write.created_pod, write.resource_version)
            else:
                gate.record(workload.key, workload.uid, write.resource, write.resource_version)
        if left_out:
            # The next plan would be cut again for the same reason, if that is a pod that no watch has shown yet.
            gate.await_creates(workload.key, workload.uid)
        states = self.state.reconcile_states
        states.lower(workload.key, workload.uid, applied.outcomes)
        states.block(workload.key, workload.uid, applied.blocked, sent, self._now())
        if applied.aborted:
            states.restore_backoffs(workload.key, workload.uid, sent)
        return applied

    def _exclude_objects(self, applied: Applied) -> None:
        """Removes orphans that an adoption did not find (D-23) from the caches, and marks objects that cannot be
        changed.
        """
        for key in applied.vanished:
            self.state.store.forget_orphan(key.resource, key.namespace, key.name)
        for key in applied.sealed:
            self.state.store.seal(key.resource, key.namespace, key.name)

    def _has_node(self, kind: Kind) -> Callable[[str], bool] | None:
        """Whether a node exists; None if pods of this kind of workload are for no node."""
        per_node = kind.pods is not None and kind.pods.per_node
        return self.state.store.has_node if per_node else None

    async def _created_revisions(self, plan: v1.Plan, applied: Applied) -> list[tuple[Resource, bytes]]:
        """Reads the revisions that a plan created. The caches may not show them yet."""
        created = []
        for action, outcome in zip(actions_of(plan), applied.outcomes, strict=True):
            if action.HasField("create_revision") and outcome.result == v1.RESULT_SUCCEEDED:
                key = ObjectKey(Resource.REVISIONS, plan.workload.namespace, action.create_revision.name)
                try:
                    created.append((Resource.REVISIONS, await self._actuator.read(key)))
                except Exception as error:
                    # If the read fails, the next plan finds the name taken, and the plan after that knows the revision.
                    _log.debug("reading %s: %s", key, ActuatorError.of(error))
        return created

    async def _report(self, planned: Planned, applied: Applied, left_out: Mapping[int, str]) -> Ending:
        """Reports the outcomes of a plan, and learns when to reconcile again. Without telling outcomes there is no
        report: the service would return the same state and the plan's own time.

        A refused report ends the reconcile. The expectations that it would have settled stay until they expire.
        """
        plan, (key, uid) = planned.plan, (planned.workload.key, planned.workload.uid)
        # If there is a report, a zero `requeue_after` (at once) counts only in its response.
        failed, after = _failure(plan, applied), _requeue_after(plan) or None
        if not applied.outcomes or not self._actuator.writes:
            return _ending(after, failed)
        held = self.state.reconcile_states.get(key, uid)
        # An eviction that was not allowed is asked for again, whatever the service says.
        again = self._next_eviction(held, applied)
        # For the service, an action that was left out was not planned. It is no reason to back off.
        tried = (outcome for outcome in applied.outcomes if outcome.action_id not in left_out)
        telling = list(filter(is_telling, tried))
        if not telling and not left_out:
            return _ending(_requeue_after(plan), failed)
        report = v1.ReportRequest(
            workload=plan.workload,
            plan_id=plan.plan_id,
            state=held,
            outcomes=telling,
            options=self._options,
            requeue_after=plan.requeue_after if plan.HasField("requeue_after") else None,
            plan_error=plan.error,
        )
        try:
            response = await self._calls.run(self._service.report(report), grace=REPORT_GRACE)
        except RefusedError as error:
            # A retry with the next plan request would be refused again, together with the plan.
            refused = failed or Failed(str(error), code=error.code)
            raise ReconcileEndedError(_ending(_sooner(after, again), refused)) from error
        except ServiceError as error:
            # Ask again soon: the report would settle expectations.
            self.state.keep_report(key, report)
            riding = Failed(f"the report rides on the next plan: {error}", code=error.code)
            return _ending(_sooner(after, again), failed or riding)
        if response.HasField("state"):
            remembered.retain(response.state, held, self._has_node(planned.workload.kind))
            self.state.reconcile_states.settle(key, uid, response.state)
        after = _sooner(_requeue_after(response), again)
        if response.requeue == v1.REQUEUE_BACKOFF:
            return _ending(after, failed or Failed(one_line(response.message)))
        # An action that was left out may be part of the next plan.
        return Settled(0 if left_out else after)

    def _next_eviction(self, held: v1.ReconcileState, applied: Applied) -> float | None:
        """The seconds until the first of these evictions may be asked for again that were not allowed."""
        blocked = (entry for entry in held.blocked_evictions if entry.pod_uid in applied.blocked)
        return min((times.until(entry.retry_time, self._now()) for entry in blocked), default=None)


def _sooner(after: float | None, again: float | None) -> float | None:
    return min((delay for delay in (after, again) if delay is not None), default=None)


def is_telling(outcome: v1.Outcome) -> bool:
    """Whether an outcome has to be reported. A success without a subject changes nothing. A plan may adopt every pod of
    a large cluster, and a report with as many empty outcomes would be too large.
    """
    return outcome.result != v1.RESULT_SUCCEEDED or outcome.WhichOneof("subject") is not None


def _requeue_after(said: v1.Plan | v1.ReportResponse) -> float | None:
    """The delay until the next reconcile, in seconds. None if there is none or it is negative."""
    if not said.HasField("requeue_after"):
        return None
    after = times.seconds(said.requeue_after)
    return None if after < 0 else after


def _ending(after: float | None, failed: Failed | None) -> Ending:
    return Settled(after) if failed is None else replace(failed, after=after)


def _failure(plan: v1.Plan, applied: Applied) -> Failed | None:
    """The failure of a plan that has to be retried; None if it succeeded."""
    if applied.failed:
        first = applied.first_failure or v1.Outcome()
        count = Counter(outcome.result for outcome in applied.outcomes)
        done = count[v1.RESULT_SUCCEEDED] + count[v1.RESULT_ALREADY_EXISTS] + count[v1.RESULT_NOT_FOUND]
        skipped = count[v1.RESULT_SKIPPED]
        failed = len(applied.outcomes) - done - skipped - count[v1.RESULT_BLOCKED]
        reason = (
            f"{done} of {len(applied.outcomes)} actions were done, {failed} failed, "
            f"{skipped} were not tried; the first failure: {first.message}"
        )
        return Failed(reason, http_status=first.http_status, conflict=analysis.is_conflict(plan, applied))
    return Failed(plan.error) if plan.error else None


def _log_taken_names(key: Key, applied: Applied) -> None:
    names = applied.taken_names
    _log.info(
        "%s: %d names of new pods are taken by other pods, first: %s; planning again for other names",
        key,
        len(names),
        names[0],
    )
