"""Tests `nodewise.overhead`, with the real service and with scripted replicas."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import grpc
import pytest

from nodewise import PlanClient, RefusedError, overhead, sync, v1

from .programs import service_running
from .servers import Server, fails


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    with service_running() as url:
        yield url


@pytest.fixture
async def servers() -> AsyncIterator[list[Server]]:
    started = [await Server().start() for _ in range(2)]
    yield started
    for server in started:
        await server.stop()


def daemon_set(name: str, **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    return {
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def asking(**requests: str) -> list[dict[str, Any]]:
    return [{"name": "c", "image": "c:1", "resources": {"requests": requests}}]


SETS = [
    daemon_set("proxy", containers=asking(cpu="100m", memory="128Mi")),
    daemon_set("gpu", containers=asking(cpu="1"), nodeSelector={"pool": "gpu"}, tolerations=[{"operator": "Exists"}]),
]
NODE = {
    "metadata": {"name": "n", "labels": {"pool": "gpu"}},
    "spec": {"taints": [{"key": "gpu", "value": "true", "effect": "NoSchedule"}]},
}
SHAPES = [
    overhead.Shape(labels={"zone": "a"}),
    overhead.Shape.of(NODE),
    overhead.Shape(labels={"zone": "b"}),
]


def expect(answer: overhead.Answer) -> None:
    web, gpu, other = answer.nodes
    assert web.requests == {"cpu": "100m", "memory": "128Mi", "pods": "1"}
    assert not web.is_incomplete
    assert gpu.requests == {"cpu": "1", "pods": "1"}
    assert web is other
    assert web.decisions[1].rule == v1.RULE_NODE_SELECTOR
    assert web.decisions[1].missing_labels == ("pool",)
    assert gpu.decisions[0].message == "taint gpu=true:NoSchedule is not tolerated"
    assert [one.requests for one in answer.daemon_sets] == [{"cpu": "100m", "memory": "128Mi"}, {"cpu": "1"}]


async def test_the_real_service_evaluates_shapes(service: str) -> None:
    async with PlanClient(service) as client:
        assert "EvaluateNodes" in (await client.capabilities()).methods
        expect(await overhead.evaluate(client, SHAPES, SETS))
        odd = await overhead.evaluate(
            client, SHAPES[:1], [SETS[0], b"{", daemon_set("odd", containers=asking(cpu="1x"))]
        )
        assert odd.nodes[0].is_incomplete
        assert not odd.daemon_sets[0].error
        assert odd.daemon_sets[1].error
        assert "resources.requests.cpu: `1x` is not a quantity" in odd.daemon_sets[2].error
        with pytest.raises(RefusedError, match="must be NoSchedule") as refused:
            await overhead.evaluate(client, [overhead.Shape(taints=[overhead.Taint("a", "Never")])], [])
        assert refused.value.violations[0].field == "nodes[0].taints[0].effect"


def test_the_real_service_without_asyncio(service: str) -> None:
    with sync.PlanClient(service) as client:
        expect(overhead.evaluate_sync(client, SHAPES, SETS))


async def test_a_replica_without_the_method_is_too_old_and_stays_in_use(servers: list[Server]) -> None:
    async with PlanClient(*(server.url for server in servers)) as client:
        with pytest.raises(RefusedError, match="does not have the method EvaluateNodes; upgrade it") as old:
            await overhead.evaluate(client, SHAPES, SETS)
        assert old.value.code is grpc.StatusCode.UNIMPLEMENTED
        for server in servers:
            server.behave = fails(grpc.StatusCode.UNIMPLEMENTED, "as a server of an older version")
        with pytest.raises(RefusedError, match="does not have the method Simulate; upgrade it"):
            _ = [step async for step in client.simulate(v1.SimulateRequest())]
        assert client.health() is None, "it is healthy"


@pytest.mark.parametrize(
    "response",
    [
        v1.EvaluateNodesResponse(),
        v1.EvaluateNodesResponse(node_evaluations=[0], daemon_sets=[v1.DaemonSetOverhead()]),
        v1.EvaluateNodesResponse(
            node_evaluations=[0], daemon_sets=[v1.DaemonSetOverhead()], evaluations=[v1.NodeEvaluation()]
        ),
        v1.EvaluateNodesResponse(
            node_evaluations=[0], daemon_sets=[v1.DaemonSetOverhead()], evaluations=[v1.NodeEvaluation(decisions=[1])]
        ),
    ],
)
def test_foreign_answers_are_errors(response: v1.EvaluateNodesResponse) -> None:
    request = overhead.request_of(SHAPES[:1], SETS[:1])
    with pytest.raises(ValueError, match="the planning service"):
        overhead.answer_of(request, response)
