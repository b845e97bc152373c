"""The kinds of workload, the watched kinds of objects, and the keys of objects.

A kind of workload is data: what its plans are made from, what its workloads control, and how its pods are treated.
"""

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

HASH_LABEL = "controller-revision-hash"
"""The revision label of pods and ControllerRevisions."""

TEMPLATE_HASH_LABEL = "pod-template-hash"
"""The label of a ReplicaSet and its pods with the hash of the Deployment's template."""

TRACEPARENT_ANNOTATION = "nodewise.dev/traceparent"
"""The annotation with the W3C traceparent of the span that created an object."""


class Resource(enum.Enum):
    """A watched kind of object, by its plural name in the API."""

    DAEMON_SETS = "daemonsets"
    REPLICA_SETS = "replicasets"
    DEPLOYMENTS = "deployments"
    PODS = "pods"
    NODES = "nodes"
    REVISIONS = "controllerrevisions"
    POLICIES = "rolloutpolicies"

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return _GROUPS.get(self, "apps")

    @property
    def version(self) -> str:
        """The version of the API group."""
        return "v1alpha1" if self is Resource.POLICIES else "v1"

    @property
    def identity(self) -> tuple[str, str, str]:
        """The API group, the version and the name."""
        return self.group, self.version, self.value

    @property
    def api_version(self) -> str:
        """The apiVersion of its objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def api(self) -> str:
        """The path of its API group and version."""
        return f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"

    @property
    def is_optional(self) -> bool:
        """Whether it may be missing. While it is not installed, there are no objects, and nothing waits for a list."""
        return self is Resource.POLICIES

    def collection(self, namespace: str | None) -> str:
        """The path of its collection, in one namespace or in all."""
        if namespace is None or self is Resource.NODES:
            return f"{self.api}/{self.value}"
        return f"{self.api}/namespaces/{namespace}/{self.value}"


_GROUPS = {Resource.PODS: "", Resource.NODES: "", Resource.POLICIES: "nodewise.dev"}
"""The API groups other than `apps`."""


@dataclass(frozen=True, slots=True)
class PodRules:
    """How the pods of a kind of workload are treated."""

    per_node: bool
    """Each pod is for one node. Its bucket, expectations and used name belong to that node. Otherwise the bucket is
    that of the pod's own name, and expectations and used names belong to no node.
    """
    after_ready: float = 0.0
    """How much later than after minReadySeconds a workload is queued whose pod became ready, in seconds."""
    deletes_relabelled: bool = False
    """If a pod gets other labels and a deletion time at once, its state before counts as deleted, too (R-9)."""
    counts_template_labels: bool = False
    """The plan counts the pods that have all labels of the template, so these labels are sent."""
    counts_deletions: bool = False
    """Upstream counts the deletions of pods, instead of tracking them by uid (Q-5)."""
    restarts_matter: bool = True
    """Plans read how often the containers of a pod have restarted. Otherwise only plans that heed a RolloutPolicy do.
    """


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of workload."""

    name: str
    """The kind as the API spells it."""
    resource: Resource
    """The resource of the workloads."""
    controller: str
    """The name of the built-in controller: the source component of Events, which people and tools look for."""
    reads: frozenset[Resource]
    """The resources, besides workloads, from which plans are made, or that queue workloads."""
    burst: int
    """The default of `PlanOptions.burst`."""
    controls: "Kind | None" = None
    """The kind of the workloads that a workload of this kind controls, and from which its plans are made."""
    pods: PodRules | None = None
    """How pods are treated. None if the workloads control no pods, and their snapshots contain none."""
    max_retries: int | None = None
    """How many times in a row a failed workload is retried before it waits for the next event. None: without limit."""

    def __str__(self) -> str:
        return self.name


DAEMON_SET = Kind(
    name="DaemonSet",
    resource=Resource.DAEMON_SETS,
    controller="daemonset-controller",
    reads=frozenset({Resource.PODS, Resource.NODES, Resource.REVISIONS, Resource.POLICIES}),
    burst=250,
    # Another clock stamps readiness, in whole seconds.
    pods=PodRules(per_node=True, after_ready=1.0, counts_deletions=True, restarts_matter=False),
)
"""apps/v1 DaemonSets."""

REPLICA_SET = Kind(
    name="ReplicaSet",
    resource=Resource.REPLICA_SETS,
    controller="replicaset-controller",
    reads=frozenset({Resource.PODS}),
    burst=500,
    pods=PodRules(per_node=False, deletes_relabelled=True, counts_template_labels=True),
)
"""apps/v1 ReplicaSets."""

DEPLOYMENT = Kind(
    name="Deployment",
    resource=Resource.DEPLOYMENTS,
    controller="deployment-controller",
    reads=frozenset({Resource.PODS}),
    burst=250,
    controls=REPLICA_SET,
    # P-63.
    max_retries=15,
)
"""apps/v1 Deployments."""

KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (DAEMON_SET, REPLICA_SET, DEPLOYMENT)}
"""Every kind of workload, by name."""

KIND_OF: Mapping[Resource, Kind] = {kind.resource: kind for kind in KINDS.values()}
"""The kinds of workload, by resource."""

OBJECT_KINDS: Mapping[Resource, str] = {
    Resource.PODS: "Pod",
    Resource.NODES: "Node",
    Resource.REVISIONS: "ControllerRevision",
    Resource.POLICIES: "RolloutPolicy",
    **{resource: kind.name for resource, kind in KIND_OF.items()},
}
"""The kind of each resource's objects."""


def cached_kinds(kinds: Iterable[Kind]) -> list[Kind]:
    """The kinds that have to be cached for the plans of these kinds: these, and those that their workloads control."""
    found: dict[str, Kind] = {}
    for kind in kinds:
        for cached in (kind, kind.controls):
            if cached is not None:
                found.setdefault(cached.name, cached)
    return list(found.values())


def watched(kinds: Iterable[Kind]) -> list[Resource]:
    """The resources that have to be watched for the plans of these kinds."""
    kinds = list(kinds)
    resources = {kind.resource for kind in cached_kinds(kinds)}.union(*(kind.reads for kind in kinds))
    return [resource for resource in Resource if resource in resources]


class Key(NamedTuple):
    """The namespace, name and kind of a workload: the key of queues, expectations and own-write records."""

    namespace: str
    name: str
    kind: str = DAEMON_SET.name

    @property
    def path(self) -> str:
        """The namespace and name."""
        return f"{self.namespace}/{self.name}"

    def __str__(self) -> str:
        # Log lines about DaemonSets have never named the kind.
        return self.path if self.kind == DAEMON_SET.name else f"{self.kind} {self.path}"


class ObjectKey(NamedTuple):
    """The key of one object of a cluster, or of one of its subresources."""

    resource: Resource
    namespace: str
    name: str
    subresource: str = ""
    """`status`, or empty for the object itself."""

    @property
    def path(self) -> str:
        """The path in the API. Names of Kubernetes objects need no escaping."""
        path = f"{self.resource.collection(self.namespace)}/{self.name}"
        return f"{path}/{self.subresource}" if self.subresource else path

    def __str__(self) -> str:
        of = f"the {self.subresource} of " if self.subresource else ""
        return f"{of}{self.resource.value} {self.namespace}/{self.name}"
