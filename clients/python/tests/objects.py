"""Kubernetes objects for tests."""

import json
from typing import Any

from nodewise.kinds import DAEMON_SET, DEPLOYMENT, REPLICA_SET, Key, Kind, Resource
from nodewise.objects import Node, Pod, Revision, Workload
from nodewise.policies import RolloutPolicy
from nodewise.state import State
from nodewise.store import Event, Listed, Watched

KEY = Key("ns", "foo")


DEEP = b'{"f:a":' * 8_000 + b"{}" + b"}" * 8_000
"""Anyone who may create an object may nest its managedFields this deep, and the apiserver serves them."""


def compact(of: dict[str, Any]) -> bytes:
    return json.dumps(of, separators=(",", ":")).encode()


def deep(of: dict[str, Any]) -> bytes:
    """An object with such managedFields, as it is served."""
    odd = {**of, "metadata": {**of["metadata"], "managedFields": [{"manager": "m", "fieldsV1": "DEEP"}]}}
    return compact(odd).replace(b'"DEEP"', DEEP)


def owners(uid: str | None, kind: str = "DaemonSet", name: str = "foo") -> list[dict[str, Any]]:
    return [] if uid is None else [{"kind": kind, "name": name, "uid": uid, "controller": True}]


def daemon_set(
    uid: str = "u1",
    version: str = "1",
    name: str = "foo",
    *,
    namespace: str = "ns",
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> Workload:
    spec = {"selector": {"matchLabels": {"app": name}}, **spec}
    metadata = {"namespace": namespace, "name": name, "uid": uid, "resourceVersion": version, "labels": labels}
    return Workload.read(DAEMON_SET, {"metadata": metadata, "spec": spec})


def pod(
    name: str = "p",
    version: str = "1",
    owner: str | None = "u1",
    *,
    owner_name: str = "foo",
    uid: str | None = None,
    labels: dict[str, str] | None = None,
    deleting: bool = False,
    ready: bool = False,
    node: str = "n1",
    kind: str = "DaemonSet",
    namespace: str = "ns",
    phase: str | None = None,
    spec: Any = None,
) -> Pod:
    metadata: dict[str, Any] = {
        "namespace": namespace,
        "name": name,
        "uid": uid or f"{name}-uid",
        "resourceVersion": version,
        "labels": {"app": "foo"} if labels is None else labels,
        "ownerReferences": owners(owner, kind, owner_name),
    }
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    status = {"phase": phase, "conditions": conditions}
    return Pod.read({"metadata": metadata, "spec": spec or {"nodeName": node}, "status": status})


def node(name: str = "n1", version: str = "1", *, taints: Any = None, labels: Any = None) -> Node:
    metadata = {"name": name, "resourceVersion": version, "labels": labels}
    return Node.read({"metadata": metadata, "spec": {"taints": taints}})


def revision(
    name: str = "r",
    version: str = "1",
    owner: str | None = "u1",
    *,
    labels: dict[str, str] | None = None,
    kind: str = "DaemonSet",
    deleting: bool = False,
    number: Any = None,
    size: int = 0,
) -> Revision:
    """A revision with at least this many bytes."""
    metadata: dict[str, Any] = {
        "namespace": "ns",
        "name": name,
        "resourceVersion": version,
        "labels": {"app": "foo"} if labels is None else labels,
        "ownerReferences": owners(owner, kind),
    }
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    served: dict[str, Any] = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": metadata}
    served["data"] = {"spec": {}}
    if number is not None:
        served["revision"] = number
    text = json.dumps(served)
    if size > len(text):
        text = text.replace('"spec": {}', '"spec": {"": "' + "x" * (size - len(text) - len('"": ""')) + '"}')
    return Revision.read(text.encode())


def policy(
    name: str = "p", version: str = "1", targets: Any = None, *, created: int | None = None, **spec: Any
) -> RolloutPolicy:
    """A RolloutPolicy of the uid `NAME-uid`, for the DaemonSet `foo` unless it has other targets."""
    metadata: dict[str, Any] = {"namespace": "ns", "name": name, "uid": f"{name}-uid", "resourceVersion": version}
    if created is not None:
        metadata["creationTimestamp"] = f"2026-01-01T00:00:{created:02}Z"
    spec = {"targets": {"names": ["foo"]} if targets is None else targets, **spec}
    return RolloutPolicy.read({"metadata": metadata, "spec": spec})


def listed(resource: Resource, *objects: Watched, version: str = "1") -> Listed:
    return Listed(resource, list(objects), version)


def filled(state: State, *events: Event) -> State:
    """Fills all caches, with one DaemonSet, and then applies the events."""
    for resource in Resource:
        objects = [daemon_set()] if resource is Resource.DAEMON_SETS else []
        state.apply_event(listed(resource, *objects))
    for event in events:
        state.apply_event(event)
    return state


SET_KEY = Key("ns", "web-1", "ReplicaSet")
DEPLOYMENT_KEY = Key("ns", "web", "Deployment")


def workload(
    kind: Kind,
    name: str,
    uid: str,
    version: str = "1",
    owner: str | None = None,
    *,
    labels: dict[str, str] | None = None,
    created: str | None = None,
    deleting: bool = False,
    **spec: Any,
) -> Workload:
    """A ReplicaSet or Deployment that selects `app=web`, controlled by the Deployment `web` of the uid `owner`."""
    metadata: dict[str, Any] = {
        "namespace": "ns",
        "name": name,
        "uid": uid,
        "resourceVersion": version,
        "labels": {"app": "web"} if labels is None else labels,
        "ownerReferences": owners(owner, "Deployment", "web"),
    }
    if created is not None:
        metadata["creationTimestamp"] = created
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec = {"selector": {"matchLabels": {"app": "web"}}, **spec}
    return Workload.read(kind, {"metadata": metadata, "spec": spec})


def replica_set(
    name: str = "web-1", uid: str = "s1", version: str = "1", owner: str | None = "d1", **of: Any
) -> Workload:
    return workload(REPLICA_SET, name, uid, version, owner, **of)


def deployment(uid: str = "d1", version: str = "1", **of: Any) -> Workload:
    return workload(DEPLOYMENT, "web", uid, version, **of)


def web_pod(name: str = "p", version: str = "1", owner: str | None = "s1", **of: Any) -> Pod:
    """A pod of the ReplicaSet `web-1`."""
    of = {"labels": {"app": "web"}, "owner_name": "web-1", "kind": "ReplicaSet", **of}
    return pod(name, version, owner, **of)
