"""The root span of each reconcile, and its links: to the events that queued the workload, and to its previous
reconcile.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from .kinds import KINDS, Key, ObjectKey, Resource
from .objects import Pod, Workload
from .store import (
    Applied,
    Deleted,
    Event,
    Listed,
    NodeChange,
    PodChange,
    PolicyChange,
    RevisionChange,
    Transition,
    WorkloadChange,
)
from .tracing import NO_SPAN, Span, is_set_up
from .tracing.spans import context_of, root

if TYPE_CHECKING:
    from opentelemetry.trace import SpanContext

MAX_TRIGGERS = 8
"""Most trigger events on one root span: the first ones since the previous reconcile."""
MAX_TRIGGER_LINKS = 8
"""Most links from one reconcile to its triggers."""


class _Trigger(NamedTuple):
    resource: Resource
    name: str
    traceparent: str
    seen: int
    """The time of the event, in nanoseconds since 1970."""


class _Previous(NamedTuple):
    uid: str
    generation: int
    context: "SpanContext"


class ReconcileTraces:
    """The triggers and previous spans of each workload. Empty without an SDK."""

    def __init__(self) -> None:
        self._triggers: dict[Key, list[_Trigger]] = {}
        self._previous: dict[Key, _Previous] = {}

    def noting(self, event: Event, seen: int) -> Callable[[Key, Sequence[Transition]], None] | None:
        """Returns a callback that records which workloads an event queues. `seen` is the time of the event, in
        nanoseconds since 1970. None without an SDK.
        """
        if not is_set_up():
            return None
        pods = _Pods(event)

        def note(key: Key, changes: Sequence[Transition]) -> None:
            noted = self._triggers.setdefault(key, [])
            for change in changes[: MAX_TRIGGERS - len(noted)]:
                resource, name = _changed(change)
                traceparent = pods.traceparents.get(name, "") if resource is Resource.PODS else ""
                noted.append(_Trigger(resource, name, traceparent, seen))

        return note

    @contextmanager
    def reconcile(self, key: Key, workload: Workload | None, waited: float) -> Iterator[Span]:
        """The span of a reconcile. `workload` is the cached workload, and `waited` its time in the queue, in
        seconds.
        """
        triggers = self._triggers.pop(key, [])
        # The last recorded span, until the workload is gone.
        previous = self._previous.get(key) if workload is not None else self._previous.pop(key, None)
        if not is_set_up():
            yield NO_SPAN
            return
        of_kind = f"k8s.{key.kind.lower()}"
        attributes: dict[str, str | float] = {
            "k8s.namespace.name": key.namespace,
            f"{of_kind}.name": key.name,
            "nodewise.queue.duration": waited,
        }
        traceparents = [trigger.traceparent for trigger in triggers]
        links = []
        if workload is not None:
            attributes[f"{of_kind}.uid"] = workload.uid
            traceparents.insert(0, workload.traceparent)
            if previous is not None and previous[:2] == (workload.uid, workload.generation):
                links.append((previous.context, {"nodewise.link": "previous"}))
        links += [(context, {"nodewise.link": "trigger"}) for context in _contexts(traceparents)[:MAX_TRIGGER_LINKS]]
        with root("reconcile", attributes, links) as own:
            for resource, name, _, seen in triggers:
                own.event("trigger", {"nodewise.trigger.resource": resource.value, "nodewise.trigger.name": name}, seen)
            if workload is not None and own.is_recording and own.context is not None:
                self._previous[key] = _Previous(workload.uid, workload.generation, own.context)
            yield own


def _contexts(traceparents: Sequence[str]) -> "list[SpanContext]":
    """The valid contexts, each once: pods of one batch have the same."""
    return [context for context in map(context_of, dict.fromkeys(traceparents)) if context is not None]


class _Pods:
    """The pods of a watch event."""

    def __init__(self, event: Event) -> None:
        self._event = event

    @cached_property
    def traceparents(self) -> dict[str, str]:
        """The traceparents of the pods, by namespace and name."""
        match self._event:
            case Applied(Pod() as pod) | Deleted(Pod() as pod):
                pods = [pod]
            case Listed(Resource.PODS, objects):
                pods = [pod for pod in objects if isinstance(pod, Pod)]
            case _:
                pods = []
        return {_name(pod.object_key): pod.traceparent for pod in pods if pod.traceparent}


def _name(key: ObjectKey) -> str:
    return f"{key.namespace}/{key.name}"


def _changed(change: Transition) -> tuple[Resource, str]:
    """The resource, and the namespace and name, of a changed object."""
    match change:
        case WorkloadChange(old, new):
            obj = new or old
            return (KINDS[obj.key.kind].resource, obj.key.path) if obj else (Resource.DAEMON_SETS, "")
        case PodChange(namespace, before, after):
            pod = after or before
            return Resource.PODS, f"{namespace}/{pod.name}" if pod else ""
        case NodeChange(was, now):
            node = now or was
            return Resource.NODES, node.name if node else ""
        case RevisionChange(older, newer):
            revision = newer or older
            return Resource.REVISIONS, f"{revision.namespace}/{revision.name}" if revision else ""
        case PolicyChange(before_it, after_it):
            policy = after_it or before_it
            return Resource.POLICIES, f"{policy.namespace}/{policy.name}" if policy else ""
