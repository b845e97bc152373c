"""A scripted actuator and a scripted planning service."""

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from nodewise import v1
from nodewise.actuator import ActuatorError, Blocked, PatchType, Refusal, WorkloadEvent, Written
from nodewise.client import BuildRequest, Receiver
from nodewise.kinds import ObjectKey, Resource

ANYTHING = object()


def refused(code: int, reason: str = "", message: str = "refused", causes: tuple[str, ...] = ()) -> ActuatorError:
    return ActuatorError(message, Refusal.of(code, reason, causes), code)


@dataclass
class FakeActuator:
    """Records every call. Returns what was scripted for `(verb, name)`, or success."""

    writes: bool = True
    answers: dict[tuple[str, str], list[Any]] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)
    bodies: list[tuple[str, str, Any]] = field(default_factory=list)
    events: list[WorkloadEvent] = field(default_factory=list)
    version: int = 100
    on_call: Callable[[str, str], None] | None = None

    def script(self, verb: str, name: str, *answers: Any) -> None:
        self.answers.setdefault((verb, name), []).extend(answers)

    async def create(self, resource: Resource, namespace: str, manifest: bytes) -> Written:
        obj = json.loads(manifest)
        name = obj["metadata"].get("name") or obj["metadata"]["generateName"] + "xyz"
        return self._written("create", name, obj)

    async def patch(self, key: ObjectKey, patch_type: PatchType, patch: bytes) -> Written:
        return self._written("patch", key.name, (patch_type, patch))

    async def delete(self, key: ObjectKey, uid: str | None, resource_version: str | None = None) -> None:
        self._answer("delete", key.name, uid if resource_version is None else (uid, resource_version))

    async def evict(self, key: ObjectKey, uid: str) -> Blocked | None:
        answer = self._answer("evict", key.name, uid)
        return answer if isinstance(answer, Blocked) else None

    async def replace_status(self, key: ObjectKey, manifest: bytes) -> Written:
        return self._written("status", key.name, json.loads(manifest))

    async def read(self, key: ObjectKey) -> bytes:
        answer = self._answer("read", key.name, None)
        if answer is None:
            raise refused(404)
        return answer if isinstance(answer, bytes) else json.dumps(answer).encode()

    async def read_all(self, resource: Resource, namespace: str) -> AsyncIterator[bytes]:
        for served in self._answer("read_all", namespace, resource) or ():
            yield served

    def emit(self, event: WorkloadEvent) -> None:
        self.events.append(event)

    def _written(self, verb: str, name: str, body: Any) -> Written:
        self._answer(verb, name, body)
        self.version += 1
        return Written(name, str(self.version) if self.writes else "")

    def _answer(self, verb: str, name: str, body: Any) -> Any:
        self.calls.append((verb, name))
        self.bodies.append((verb, name, body))
        if self.on_call is not None:
            self.on_call(verb, name)
        scripted = self.answers.get((verb, name))
        answer = scripted.pop(0) if scripted else None
        if isinstance(answer, Exception):
            raise answer
        return answer


@dataclass
class FakeService:
    """Returns the scripted plans and reports, and records the requests."""

    plans: list[Any] = field(default_factory=list)
    reports: list[Any] = field(default_factory=list)
    requests: list[v1.PlanRequest] = field(default_factory=list)
    reported: list[v1.ReportRequest] = field(default_factory=list)
    on_plan: Callable[[], object] | None = None

    unwell: str | None = None

    def health(self) -> str | None:
        return self.unwell

    async def plan(self, uid: str, build: BuildRequest) -> v1.Plan:
        self.requests.append(build(Receiver()))
        if self.on_plan is not None:
            self.on_plan()
        answer = self.plans.pop(0)
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, v1.Plan)
        return answer

    async def report(self, report: v1.ReportRequest) -> v1.ReportResponse:
        self.reported.append(report)
        answer = self.reports.pop(0) if self.reports else v1.ReportResponse(requeue=v1.REQUEUE_NONE, state=report.state)
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, v1.ReportResponse)
        return answer


OWNER = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "foo", "uid": "u1", "controller": True}
FIELD = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
TERM = {"matchFields": [FIELD]}
REQUIRED = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [TERM]}}
NODE_NAME = (
    "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution"
    "/nodeSelectorTerms/0/matchFields/0/values/0"
)
MANIFEST: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "generateName": "foo-",
        "labels": {"controller-revision-hash": "h1"},
        "ownerReferences": [OWNER],
    },
    "spec": {"affinity": {"nodeAffinity": REQUIRED}},
}
REVISION = json.dumps(
    {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {"name": "foo-rrrrrrrrrr", "ownerReferences": [OWNER]},
        "data": {"spec": {"template": {"$patch": "replace"}}},
        "revision": 1,
    }
).encode()
"""A revision of the empty template."""
_IDS = iter(range(1, 1_000_000))


def action(**kind: Any) -> v1.Action:
    return v1.Action(id=next(_IDS), **kind)


def pod_name(number: int) -> str:
    """The name of one of many pods, in the planner's form."""
    letters = "bcdfghjklmnpqrstvwxz2456789"
    return f"foo-pppppppp{letters[number // 27]}{letters[number % 27]}"


def create(name: str, node: str = "n1") -> v1.Action:
    return action(create_pod=v1.CreatePod(pod_name=name, node_name=node))


def delete(name: str, *, uid_precondition: bool = True) -> v1.Action:
    pod = v1.ObjectReference(name=name, uid=f"{name}-uid")
    return action(delete_pod=v1.DeletePod(pod=pod, node_name="n1", uid_precondition=uid_precondition))


def adopt(name: str) -> v1.Action:
    pod = v1.ObjectReference(name=name, uid=f"{name}-uid")
    patch = json.dumps({"metadata": {"ownerReferences": [OWNER], "uid": pod.uid}}).encode()
    return action(adopt_pod=v1.AdoptPod(pod=pod, patch=patch))


def batch(*actions: v1.Action, confirm: bool = False) -> v1.Batch:
    return v1.Batch(actions=actions, confirm_workload=confirm)


def phase(kind: v1.PhaseKind.ValueType, *batches: v1.Batch, aborts: bool = False, requires: bool = False) -> v1.Phase:
    return v1.Phase(kind=kind, batches=batches, aborts_on_failure=aborts, requires_success=requires)


def plan(*phases: v1.Phase, **fields: Any) -> v1.Plan:
    return v1.Plan(
        verdict=fields.pop("verdict", v1.VERDICT_APPLY),
        plan_id="plan",
        workload=v1.WorkloadReference(kind="DaemonSet", namespace="ns", name="foo", uid="u1"),
        phases=phases,
        pod_manifest=json.dumps(MANIFEST).encode(),
        node_name_pointers=[NODE_NAME],
        **fields,
    )
