"""Which DaemonSets would run on nodes that need not exist, why or why not, and what their pods request there in sum.

An autoscaler subtracts the sum from what a new node offers:

    shape = overhead.Shape(labels={"pool": "gpu"}, taints=[overhead.Taint("gpu", "NoSchedule")])
    async with PlanClient("http://127.0.0.1:7443") as client:
        answer = await overhead.evaluate(client, [shape], daemon_sets)
    print(answer.nodes[0].requests)  # {'cpu': '250m', 'memory': '384Mi', 'pods': '3'}

The answer is that of the DaemonSet controller. The requests are those of Kubernetes' PodRequests, after the defaults
that the apiserver sets in a pod.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import sync, v1
from .client import PlanClient

Quantities = Mapping[str, str]
"""An amount for each resource, in the canonical form of Kubernetes."""


@dataclass(frozen=True, slots=True)
class Taint:
    """One entry of a node's spec.taints."""

    key: str
    effect: str
    """`NoSchedule`, `PreferNoSchedule` or `NoExecute`."""
    value: str = ""


@dataclass(frozen=True, slots=True)
class Shape:
    """What the DaemonSet controller would see of a node."""

    name: str = ""
    """The name of the node; empty if it is not known. Only templates that name nodes depend on it."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The labels that the node will have, with those that the kubelet and the cloud provider set."""
    taints: Sequence[Taint] = ()
    """The taints that stay. Leave out the ones that are removed once the node has started."""

    @classmethod
    def of(cls, node: Mapping[str, Any]) -> "Shape":
        """The shape of an existing node, given as JSON that was parsed."""
        metadata, spec = node.get("metadata") or {}, node.get("spec") or {}
        taints = [Taint(taint["key"], taint["effect"], taint.get("value") or "") for taint in spec.get("taints") or ()]
        return cls(metadata.get("name") or "", metadata.get("labels") or {}, taints)


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a DaemonSet would run on a node, and why."""

    runs: bool
    """Whether the DaemonSet controller would create a pod."""
    rule: int
    """The rule that decides, such as `v1.RULE_NODE_SELECTOR`; `v1.RULE_UNSPECIFIED` if it could not be read."""
    message: str
    """A sentence for people."""
    missing_labels: tuple[str, ...]
    """The labels that the node does not have, and that could turn the decision around."""


@dataclass(frozen=True, slots=True)
class Node:
    """What runs on a node."""

    requests: Quantities
    """The sum of the requests of all pods that would run. It always has `pods`, their number."""
    is_incomplete: bool
    """Whether the sum is too small, because a DaemonSet could not be read: its error says why."""
    decisions: tuple[Decision, ...]
    """The decision about each DaemonSet, in order."""


@dataclass(frozen=True, slots=True)
class DaemonSet:
    """What one pod of a DaemonSet requests."""

    requests: Quantities
    error: str
    """Why the DaemonSet or its requests could not be read; empty if they could."""
    notes: tuple[str, ...]
    """What the template does not tell, for people."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer about all nodes."""

    nodes: tuple[Node, ...]
    """An entry for each shape, in order. Nodes on which the DaemonSets behave alike share it."""
    daemon_sets: tuple[DaemonSet, ...]
    """An entry for each DaemonSet, in order."""


async def evaluate(
    client: PlanClient, shapes: Iterable[Shape], daemon_sets: Iterable[Mapping[str, Any] | bytes]
) -> Answer:
    """Asks about all shapes and DaemonSets in one call. A DaemonSet is JSON that was parsed, or its bytes. One that the
    service cannot read has an error of its own. Raises `ServiceError`.
    """
    request = request_of(shapes, daemon_sets)
    return answer_of(request, await client.evaluate_nodes(request))


def evaluate_sync(
    client: sync.PlanClient, shapes: Iterable[Shape], daemon_sets: Iterable[Mapping[str, Any] | bytes]
) -> Answer:
    """As `evaluate`, with a client for programs without asyncio."""
    request = request_of(shapes, daemon_sets)
    return answer_of(request, client.evaluate_nodes(request))


def request_of(shapes: Iterable[Shape], daemon_sets: Iterable[Mapping[str, Any] | bytes]) -> v1.EvaluateNodesRequest:
    """The request about these shapes and DaemonSets."""
    return v1.EvaluateNodesRequest(
        nodes=[
            v1.NodeShape(
                name=shape.name,
                labels=[v1.Label(key=key, value=value) for key, value in sorted(shape.labels.items())],
                taints=[v1.Taint(key=taint.key, value=taint.value, effect=taint.effect) for taint in shape.taints],
            )
            for shape in shapes
        ],
        daemon_sets=[
            v1.DaemonSet(object=one if isinstance(one, bytes) else json.dumps(one).encode()) for one in daemon_sets
        ],
    )


def answer_of(request: v1.EvaluateNodesRequest, response: v1.EvaluateNodesResponse) -> Answer:
    """Resolves the indices of a response. Raises ValueError if it does not fit the request."""
    sets = len(request.daemon_sets)
    if len(response.node_evaluations) != len(request.nodes) or len(response.daemon_sets) != sets:
        raise ValueError("the planning service answered about other nodes or DaemonSets than it was asked about")
    decisions = [
        Decision(decision.runs, decision.rule, decision.message, tuple(decision.missing_labels))
        for decision in response.decisions
    ]
    try:
        nodes = [
            Node(
                _quantities(evaluation.requests),
                evaluation.is_incomplete,
                tuple(decisions[index] for index in evaluation.decisions),
            )
            for evaluation in response.evaluations
        ]
        of_nodes = tuple(nodes[index] for index in response.node_evaluations)
    except IndexError as error:
        raise ValueError("the planning service answered with an index of an entry that is not there") from error
    if any(len(node.decisions) != sets for node in nodes):
        raise ValueError("the planning service did not decide about each DaemonSet")
    overheads = (
        DaemonSet(_quantities(found.requests), found.error, tuple(found.notes)) for found in response.daemon_sets
    )
    return Answer(of_nodes, tuple(overheads))


def _quantities(quantities: Iterable[v1.ResourceQuantity]) -> Quantities:
    return {found.name: found.quantity for found in quantities}
