"""The watched kinds of objects, and the keys of objects."""

import enum
from typing import NamedTuple

HASH_LABEL = "controller-revision-hash"
"""The revision label of pods and ControllerRevisions."""

TRACEPARENT_ANNOTATION = "nodewise.dev/traceparent"
"""The annotation with the W3C traceparent of the span that created an object."""

OWNER_KIND = "DaemonSet"
"""Pods and revisions of this owner kind are cached."""


class Key(NamedTuple):
    """The namespace and name of a workload: the key of queues, expectations and own-write records."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Resource(enum.Enum):
    """A watched kind of object, by its plural name in the API."""

    DAEMON_SETS = "daemonsets"
    PODS = "pods"
    NODES = "nodes"
    REVISIONS = "controllerrevisions"

    @property
    def api(self) -> str:
        """The path of its API group and version."""
        return "/apis/apps/v1" if self in (Resource.DAEMON_SETS, Resource.REVISIONS) else "/api/v1"

    def collection(self, namespace: str | None) -> str:
        """The path of its collection, in one namespace or in all."""
        if namespace is None or self is Resource.NODES:
            return f"{self.api}/{self.value}"
        return f"{self.api}/namespaces/{namespace}/{self.value}"


class ObjectKey(NamedTuple):
    """The key of one object of a cluster."""

    resource: Resource
    namespace: str
    name: str

    @property
    def path(self) -> str:
        """The path in the API. Names of Kubernetes objects need no escaping."""
        return f"{self.resource.collection(self.namespace)}/{self.name}"

    def __str__(self) -> str:
        return f"{self.resource.value} {self.namespace}/{self.name}"
