"""Asking for plans: builds the request, reads the revisions that the caches lack, and asks for the next plan early."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from google.protobuf.timestamp_pb2 import Timestamp

from .. import snapshot, times, tracing, v1, waiting
from ..actuator import Actuator, ActuatorError, WorkloadEvent
from ..client import PlanService, RefusedError, ServiceError
from ..kinds import Key, ObjectKey, Resource
from ..live import LiveObjects
from ..log_limit import LogLimit
from ..measurements import Measurements
from ..objects import Revision, Workload
from ..policies import RolloutPolicy
from ..receiver import Receiver
from ..revisions import MAX_BYTES
from ..sanitize import one_line
from ..selection import Selection
from ..state import State
from . import analysis
from .calls import ServiceCalls
from .endings import Failed, ReconcileEndedError, Settled, StoppedError, Unreachable

_log = tracing.logger("nodewise.execute")

MAX_AGE_OF_NEXT = 1.0
"""The maximum age, in seconds, of a plan that was requested while the previous one was applied."""

MAX_READS = 16
"""Most revisions that are read one by one before a plan is requested. More are read by a list of their namespace."""


class Planned(NamedTuple):
    """A plan, and the inputs that it was made from."""

    plan: v1.Plan
    workload: Workload
    sent: v1.ReconcileState
    as_of: int
    """The number of the last cache change that the snapshot contains."""
    policies: list[RolloutPolicy]
    """The RolloutPolicies of the snapshot."""
    measured: list[v1.MeasurementId]
    """The measurements of the snapshot."""


class PlanRequests:
    """Asks the service for plans."""

    def __init__(
        self,
        state: State,
        actuator: Actuator,
        service: PlanService,
        options: v1.PlanOptions,
        *,
        selection: Selection,
        calls: ServiceCalls,
        measurements: Measurements,
        now: Callable[[], Timestamp],
    ) -> None:
        self.state = state
        self._actuator = actuator
        self._service = service
        self._options = options
        self._selection = selection
        self._calls = calls
        self._measurements = measurements
        self._now = now
        self._next: dict[Key, tuple[Planned, float]] = {}
        """Plans that were asked for early, and when."""
        self._too_many_revisions = LogLimit()

    def keep_next(self, key: Key, planned: Planned, asked: float) -> None:
        """Keeps a plan that was asked for early for the workload's next reconcile."""
        self._next[key] = planned, asked

    def require_selected(self, key: Key) -> None:
        """Ends the reconcile if the workload is not selected any more. The event that changed its labels queued it
        again, and the next reconcile forgets it.
        """
        if self.is_not_selected(self.state.store.workload(key)):
            raise ReconcileEndedError(Settled())

    def is_not_selected(self, workload: Workload | None) -> bool:
        """Whether the workload exists and is not selected."""
        return workload is not None and not self._selection.includes(workload)

    async def plan(self, workload: Workload, live: LiveObjects) -> Planned:
        """Asks for a plan. Ends the reconcile if there is none."""
        try:
            return await self._ask_for_plan(workload, live)
        except RefusedError as error:
            if error.lacks is None:
                self._drop_dispensable(workload, error)
            else:
                # The request is not the cause. Nothing is rolled out until somebody upgrades the service (L-44).
                self._actuator.emit(WorkloadEvent(workload.reference, "Warning", "ServiceTooOld", one_line(str(error))))
            raise ReconcileEndedError(Failed(str(error), code=error.code, refused=True)) from error
        except ServiceError as error:
            self._calls.require_running()
            raise ReconcileEndedError(Unreachable(str(error), error.code)) from error

    def _drop_dispensable(self, workload: Workload, error: RefusedError) -> None:
        """Drops inputs that may have caused a refusal: undelivered reports, and the state from earlier plans unless the
        service rejected another field. A faulty service may have produced that state, and correct replicas would reject
        it forever.
        """
        self.state.reports_delivered(workload.key)
        states = self.state.reconcile_states
        if error.may_concern("snapshot.state") and states.drop_planned(workload.key, workload.uid, self._now()):
            _log.warning(
                "%s: the service refused the request; what earlier plans left to remember is dropped, since it may be "
                "the cause: %s",
                workload.key,
                error,
            )

    async def _ask_for_plan(self, workload: Workload, live: LiveObjects) -> Planned:
        """Asks the service for a plan. Raises `ServiceError` if there is none."""
        key, uid, state = workload.key, workload.uid, self.state
        current, sent, left_out, as_of = workload, v1.ReconcileState(), 0, 0
        unread: list[Revision] = []
        policies: list[RolloutPolicy] = []
        measured: list[v1.MeasurementId] = []
        await self._read_revisions(workload, live.revisions)

        def build(receiver: Receiver) -> v1.PlanRequest:
            nonlocal current, sent, left_out, unread, as_of, policies, measured
            # A retry uses the current caches, unless the workload was replaced. Then it keeps the object it had.
            newer = state.store.workload(key)
            if newer is not None and newer.uid == uid:
                current = newer
            self.require_selected(key)
            sent, as_of = state.reconcile_states.get(key, uid), state.store.last_change
            unread = snapshot.unread(state.store, current, live.revisions)
            policies = state.store.policies(current)
            with tracing.span("snapshot"):
                taken, left_out = snapshot.take(state.store, current, sent, live, now=self._now(), receiver=receiver)
                measured = analysis.add(taken, current, policies, self._measurements)
                return v1.PlanRequest(
                    snapshot=taken,
                    options=self._options,
                    undelivered_reports=state.undelivered(key, uid),
                )

        self._calls.require_running()
        try:
            plan = await self._calls.run(self._service.plan(uid, build), grace=0)
        finally:
            if left_out and self._too_many_revisions.is_due(key):
                _log.warning(
                    "%s: the %s take more than %d bytes together; %d that rank last are not sent",
                    key,
                    "revisions" if workload.kind.controls is None else f"{workload.kind.controls}s",
                    MAX_BYTES,
                    left_out,
                )
        if unread:
            raise ReconcileEndedError(Failed(f"ControllerRevision {unread[0].name} has changed since it was read"))
        plan.error, plan.plan_id = one_line(plan.error), one_line(plan.plan_id)
        return Planned(plan, current, sent, as_of, policies, measured)

    async def _read_revisions(self, workload: Workload, live: Sequence[Revision]) -> None:
        """Reads the revisions of the next snapshot that the caches do not hold completely, in particular orphans that
        are older than the workload.
        """
        store, namespace = self.state.store, workload.key.namespace
        unread = {revision.name for revision in snapshot.unread(store, workload, live)}
        if not unread:
            return
        self._calls.require_running()
        try:
            if len(unread) > MAX_READS:
                async for served in self._actuator.read_all(Resource.REVISIONS, namespace):
                    self._calls.require_running()
                    for revision in self._readable(workload, served):
                        if revision.name in unread:
                            store.keep_whole(revision)
                return
            for name in sorted(unread):
                self._calls.require_running()
                served = await self._actuator.read(ObjectKey(Resource.REVISIONS, namespace, name))
                for revision in self._readable(workload, served):
                    store.keep_whole(revision)
        except ActuatorError as error:
            reason = f"reading revisions of {namespace}: {error.message}"
            raise ReconcileEndedError(Failed(reason, http_status=error.http_status)) from error

    @staticmethod
    def _readable(workload: Workload, served: bytes) -> list[Revision]:
        return LiveObjects.readable(workload.kind, [(Resource.REVISIONS, served)]).revisions

    async def plan_next(self, planned: Planned) -> Planned | None:
        """Asks early for the plan after the one that is being applied. Returns it only if it arrives soon and does
        nothing but create pods: other actions depend on pods that may change until then.
        """
        if not (_goes_on_by_itself(planned.plan) and self._actuator.writes):
            return None
        try:
            async with waiting.timeout(MAX_AGE_OF_NEXT):
                following = await self._ask_for_plan(planned.workload, LiveObjects())
        except (asyncio.TimeoutError, ServiceError, ReconcileEndedError, StoppedError):
            return None
        except Exception:
            # The outcomes of the current plan must be reported all the same.
            _log.exception("%s: asking for the next plan ended with a defect", planned.workload.key)
            return None
        return following if _only_creates(following.plan) else None

    def take_next(self, key: Key, workload: Workload | None) -> Planned | None:
        """The plan that was requested early, if the workload has not changed since and the plan is not too old."""
        following, asked = self._next.pop(key, (None, 0.0))
        if workload is None or following is None or time.monotonic() - asked > MAX_AGE_OF_NEXT:
            return None
        made_from = following.workload
        same = (made_from.uid, made_from.resource_version) == (workload.uid, workload.resource_version)
        return following if same else None


def _goes_on_by_itself(plan: v1.Plan) -> bool:
    """Whether the next plan can be requested before this one is applied: it only creates pods, and the state holds all
    of their names.
    """
    at_once = plan.HasField("requeue_after") and not times.seconds(plan.requeue_after)
    # With several batches the slow start is not at its end, and their outcomes decide about the next plan.
    if not (at_once and _only_creates(plan) and len(plan.phases[0].batches) == 1):
        return False
    return all(action.create_pod.pod_name for action in plan.phases[0].batches[0].actions)


def _only_creates(plan: v1.Plan) -> bool:
    return [phase.kind for phase in plan.phases] == [v1.PHASE_KIND_CREATES]
