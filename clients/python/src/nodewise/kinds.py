"""The kinds of objects that are watched, and the names of one."""

import enum
from typing import NamedTuple

HASH_LABEL = "controller-revision-hash"
"""The revision label of pods and ControllerRevisions."""

TRACEPARENT_ANNOTATION = "nodewise.dev/traceparent"
"""The annotation that names, by W3C, the span that an object came from."""

OWNER_KIND = "DaemonSet"
"""The owner kind whose pods and revisions are kept."""


class Key(NamedTuple):
    """The namespace and name of a workload: what queues, expectations and own-write records are kept by."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Resource(enum.Enum):
    """A kind of object that is watched, by its plural name in the API."""

    DAEMON_SETS = "daemonsets"
    PODS = "pods"
    NODES = "nodes"
    REVISIONS = "controllerrevisions"

    @property
    def api(self) -> str:
        """The path of its API group and version."""
        return "/apis/apps/v1" if self in (Resource.DAEMON_SETS, Resource.REVISIONS) else "/api/v1"

    def collection(self, namespace: str | None) -> str:
        """The path of its collection, in a namespace or in all."""
        if namespace is None or self is Resource.NODES:
            return f"{self.api}/{self.value}"
        return f"{self.api}/namespaces/{namespace}/{self.value}"


class ObjectKey(NamedTuple):
    """One object of a cluster."""

    resource: Resource
    namespace: str
    name: str

    @property
    def path(self) -> str:
        """Its path in the API. Names of Kubernetes objects need no escaping."""
        return f"{self.resource.collection(self.namespace)}/{self.name}"

    def __str__(self) -> str:
        return f"{self.resource.value} {self.namespace}/{self.name}"
