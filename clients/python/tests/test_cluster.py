"""Tests the real service with a real control plane: the commands of the README, and every way of running a
reconciler.
"""

import ast
import asyncio
import json
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Awaitable, Iterator
from typing import Any

import grpc
import pytest
from google.protobuf import json_format
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from kubernetes import client, config, utils

from nodewise import (
    ClientConfig,
    Config,
    Ending,
    Failed,
    KubeClient,
    PlanClient,
    PlanService,
    Reconciler,
    RefusedError,
    ServiceError,
    Settled,
    Waiting,
    convert,
    snapshot_of,
    sync,
    v1,
    waiting,
)
from nodewise.actions import actions_of
from nodewise.client import BuildRequest
from nodewise.execute import Executor
from nodewise.state import State
from nodewise.store import Applied

from .conftest import ROOT, vector
from .fakes import FakeActuator
from .objects import KEY, daemon_set, filled, node
from .polling import eventually_in_thread
from .programs import CLIENT, control_plane_running, running, service_running
from .test_vectors import PLANS, REPORTS

NODES = 5
README = (CLIENT / "README.md").read_text()


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    with service_running() as url:
        yield url


@pytest.fixture(scope="module")
def control_plane() -> Iterator[str]:
    with control_plane_running("--nodes", NODES) as kubeconfig:
        yield kubeconfig


@pytest.fixture
def cluster(control_plane: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[client.AppsV1Api]:
    """A cluster without DaemonSets."""
    monkeypatch.setenv("KUBECONFIG", control_plane)
    config.load_kube_config(control_plane)
    apps = client.AppsV1Api()
    yield apps
    apps.delete_collection_namespaced_daemon_set("default")
    eventually_in_thread(lambda: not names(apps) and not pods(), "everything is deleted")


def names(apps: client.AppsV1Api) -> list[str]:
    return [daemon_set.metadata.name for daemon_set in apps.list_namespaced_daemon_set("default").items]


def pods() -> list[Any]:
    found: list[Any] = client.CoreV1Api().list_namespaced_pod("default").items
    return found


def create() -> None:
    utils.create_from_yaml(client.ApiClient(), str(CLIENT / "examples" / "agent.yaml"))


def runs(apps: client.AppsV1Api) -> bool:
    """Whether each node has its pod, and the status agrees."""
    status = apps.read_namespaced_daemon_set("agent", "default").status
    nodes = {pod.spec.node_name for pod in pods()}
    return bool(status.number_available == NODES == len(nodes) == len(pods()))


def example(text: str) -> str:
    """An example, as the README runs it."""
    assert f"clients/python/{text}" in README, "the README says how to run it"
    return str(CLIENT / text)


# What every server answers, to the last value; and what it refuses is refused here.
def answers(paths: list[pathlib.Path]) -> pytest.MarkDecorator:
    """A test for each of these vectors."""
    found = [json.loads(path.read_text()) for path in paths]
    return pytest.mark.parametrize("case", found, ids=[str(case["name"]) for case in found])


async def expect_refusal(answer: Awaitable[Any], case: dict[str, Any]) -> None:
    code = next(code for code in grpc.StatusCode if code.value[0] == case["refusal"]["code"])
    with pytest.raises(ServiceError, match=code.name) as error:
        await answer
    assert isinstance(error.value, RefusedError) is (code is grpc.StatusCode.INVALID_ARGUMENT)


@answers(PLANS)
async def test_the_vectors_of_plans(service: str, case: dict[str, Any]) -> None:
    request = json_format.ParseDict(case["request"], v1.PlanRequest())
    async with PlanClient(service) as planner:
        if "response" in case:
            response = json_format.ParseDict(case["response"], v1.PlanResponse())
            assert await planner.plan_request(request) == response.plan
        else:
            await expect_refusal(planner.plan_request(request), case)


@answers(REPORTS)
async def test_the_vectors_of_reports(service: str, case: dict[str, Any]) -> None:
    request = json_format.ParseDict(case["request"], v1.ReportRequest())
    async with PlanClient(service) as planner:
        if "response" in case:
            assert await planner.report(request) == json_format.ParseDict(case["response"], v1.ReportResponse())
        else:
            await expect_refusal(planner.report(request), case)


async def test_everything_that_a_service_offers(service: str) -> None:
    request = json_format.ParseDict(vector("plans/rollout")["request"], v1.PlanRequest())
    async with PlanClient(service) as planner:
        capabilities = await planner.capabilities()
        assert v1.DIGEST_FUNCTION_SHA256 in capabilities.digest_functions
        explained = await planner.explain(v1.ExplainRequest(snapshot=request.snapshot))
        assert {node.state for node in explained.nodes} != {v1.NODE_STATE_UNSPECIFIED}
        assert "Simulate" in capabilities.methods


async def test_a_rollout_is_played_to_its_end(service: str) -> None:
    request = json_format.ParseDict(vector("plans/rollout")["request"], v1.PlanRequest())
    asked = v1.SimulateRequest(snapshot=request.snapshot)
    asked.assumptions.ready_after.FromSeconds(7)
    async with PlanClient(service) as planner:
        played = [response async for response in planner.simulate(asked)]
        *steps, last = played
        assert steps
        assert all(response.HasField("step") for response in steps)
        assert last.end.result in (v1.SimulationEnd.RESULT_DONE, v1.SimulationEnd.RESULT_STUCK)
        assert last.end.steps == sum(not response.step.continues for response in steps)
        assert last.end.worst_unavailable == max(response.step.worst_unavailable for response in steps)
        # Whoever has seen enough leaves; the service then has room for others.
        async for _ in planner.simulate(asked):
            break
        asked.assumptions.failing_share = 2
        with pytest.raises(RefusedError, match=r"assumptions\.failing_share: is 2; must be from 0 to 1"):
            [response async for response in planner.simulate(asked)]


def test_a_rollout_is_played_for_programs_without_asyncio(service: str) -> None:
    request = json_format.ParseDict(vector("plans/rollout")["request"], v1.PlanRequest())
    with sync.PlanClient(service) as planner:
        responses = list(planner.simulate(v1.SimulateRequest(snapshot=request.snapshot)))
    assert responses[-1].HasField("end")


def test_the_examples_of_the_readme(cluster: client.AppsV1Api, service: str) -> None:
    create()
    env = {"NODEWISE_SERVER": service}
    command = [sys.executable, example("examples/plan.py"), "default", "agent"]
    planned = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, check=True).stdout
    assert planned.splitlines()[0] == "VERDICT_APPLY"
    assert len(re.findall("^create_pod: node-.* has no pod of this workload$", planned, re.MULTILINE)) == NODES
    assert not pods(), "it only says so"
    with running(sys.executable, example("examples/controller.py"), env=env) as controller:
        eventually_in_thread(lambda: runs(cluster), "each node has a pod")
        assert controller.end() == 0
    planned = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, check=True).stdout
    assert planned == "VERDICT_NOOP\n"


# With only a filter in front of the library, pods of the other DaemonSet were created.
def test_no_other_daemon_set_than_those_that_are_selected_is_owned(cluster: client.AppsV1Api, service: str) -> None:
    create()
    cluster.patch_namespaced_daemon_set("agent", "default", {"metadata": {"labels": {"tier": "a"}}})
    labels, containers = {"app": "other"}, [{"name": "c", "image": "registry.k8s.io/pause:3.10"}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    cluster.create_namespaced_daemon_set(
        "default", {"metadata": {"name": "other", "labels": {"tier": "b"}}, "spec": spec}
    )
    command = [sys.executable, example("examples/controller.py"), "--selector", "tier in (a)"]
    with running(*command, env={"NODEWISE_SERVER": service}) as controller:
        eventually_in_thread(lambda: runs(cluster), "each node has a pod")
        assert controller.end() == 0
    assert {pod.metadata.owner_references[0].name for pod in pods()} == {"agent"}
    other = cluster.read_namespaced_daemon_set("other", "default")
    assert other.status.observed_generation is None
    revisions = cluster.list_namespaced_controller_revision("default").items
    assert {revision.metadata.owner_references[0].name for revision in revisions} == {"agent"}


def test_inside_kopf(cluster: client.AppsV1Api, service: str) -> None:
    kopf = [sys.executable, "-m", "kopf", "run", "--all-namespaces", example("examples/kopf_operator.py")]
    with running(*kopf, env={"NODEWISE_SERVER": service}) as operator:
        operator.wait_for("all caches are filled")
        create()
        eventually_in_thread(lambda: runs(cluster), "each node has a pod")
        victim = pods()[0].metadata
        client.CoreV1Api().delete_namespaced_pod(victim.name, "default")
        eventually_in_thread(
            lambda: victim.uid not in {pod.metadata.uid for pod in pods()} and runs(cluster), "it is replaced"
        )
        assert operator.end() == 0
        assert not [line for line in operator.said().splitlines() if "defect" in line or "Traceback" in line]


async def test_reconciles_on_demand(cluster: client.AppsV1Api, service: str) -> None:
    async with (
        KubeClient.from_environment() as kube,
        PlanClient(service) as planner,
        Reconciler(kube, planner, Config(namespaces=["default"])) as reconciler,
    ):
        await asyncio.to_thread(create)

        async def reconcile_at_once() -> list[Ending]:
            return await asyncio.gather(*(reconciler.reconcile("default", "agent") for _ in range(5)))

        async with waiting.timeout(90):
            endings = await reconcile_at_once()
            # As long as the watch is behind the reconciler's own writes, a reconcile only waits.
            while any(isinstance(ending, Waiting) for ending in endings):
                endings = await reconcile_at_once()
        assert all(isinstance(ending, Settled) for ending in endings)
        await asyncio.to_thread(eventually_in_thread, lambda: runs(cluster), "each node has a pod")
        assert await reconciler.reconcile("default", "nothing") == Settled()
        assert reconciler.health() == []


def test_without_asyncio(cluster: client.AppsV1Api, service: str) -> None:
    with sync.Reconciler(service) as reconciler:
        create()
        eventually_in_thread(lambda: runs(cluster), "each node has a pod")
        eventually_in_thread(
            lambda: isinstance(reconciler.reconcile("default", "agent"), Settled), "its own writes are seen"
        )


async def test_observing_changes_nothing(
    cluster: client.AppsV1Api, service: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    await asyncio.to_thread(create)
    async with (
        KubeClient.from_environment() as kube,
        PlanClient(service) as planner,
        Reconciler(kube, planner, Config(observe=True)) as reconciler,
    ):
        assert isinstance(await reconciler.reconcile("default", "agent"), Settled)
    assert len(re.findall(r"would create pods default/agent-", caplog.text)) == NODES
    assert not pods()


async def test_nothing_is_written_while_the_service_is_away(cluster: client.AppsV1Api) -> None:
    await asyncio.to_thread(create)
    quick = ClientConfig(timeout=1, base_pause=0.01)
    async with (
        KubeClient.from_environment() as kube,
        PlanClient("http://127.0.0.1:1", config=quick) as planner,
        Reconciler(kube, planner, Config(unreachable_delay=0.1)) as reconciler,
    ):
        for _ in range(3):
            ending = await reconciler.reconcile("default", "agent")
            assert type(ending).__name__ == "Unreachable"
    assert not pods()
    assert not cluster.list_namespaced_controller_revision("default").items


# All input forms give the same plan.
async def test_typed_objects_give_the_same_plan(cluster: client.AppsV1Api, service: str) -> None:
    await asyncio.to_thread(create)
    core, raw = client.CoreV1Api(), {"_preload_content": False}
    typed = snapshot_of(
        cluster.read_namespaced_daemon_set("agent", "default"),
        nodes=core.list_node().items,
        pods=core.list_namespaced_pod("default").items,
        revisions=cluster.list_namespaced_controller_revision("default").items,
    )
    served = snapshot_of(
        cluster.read_namespaced_daemon_set("agent", "default", **raw).data,
        nodes=convert.items(core.list_node(**raw).data),
        pods=convert.items(core.list_namespaced_pod("default", **raw).data),
        revisions=convert.items(cluster.list_namespaced_controller_revision("default", **raw).data),
        now=typed.now,
    )
    async with PlanClient(service) as planner:
        plans = [await planner.plan_request(v1.PlanRequest(snapshot=snapshot)) for snapshot in (typed, served)]
    assert [action.create_pod.pod_name for action in creates(plans[0])] == [
        action.create_pod.pod_name for action in creates(plans[1])
    ]
    assert len(creates(plans[0])) == NODES


class WrongOnce:
    """A service whose first plan has a state that the server rejects."""

    def __init__(self, right: PlanService) -> None:
        self._right = right
        self._is_right = False

    def health(self) -> str | None:
        return self._right.health()

    async def plan(self, uid: str, build: BuildRequest) -> v1.Plan:
        planned = await self._right.plan(uid, build)
        if not self._is_right:
            self._is_right = True
            planned.state.failed_pod_backoffs.add(node_name="n", delay=Duration(seconds=-1), last=Timestamp(seconds=1))
        return planned

    async def report(self, report: v1.ReportRequest) -> v1.ReportResponse:
        return await self._right.report(report)


# W12: without this the workload stopped until a restart.
async def test_a_state_that_the_service_refuses_does_not_hold_up_the_workload(service: str) -> None:
    options = v1.PlanOptions()
    template = {"metadata": {"labels": {"app": "foo"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    state = filled(State(1, options), Applied(node("n")), Applied(daemon_set(version="2", template=template)))
    async with PlanClient(service) as right:
        executor = Executor(state, FakeActuator(writes=False), WrongOnce(right), options)
        assert isinstance(await executor.reconcile(KEY), Settled)
        refused = await executor.reconcile(KEY)
        assert isinstance(refused, Failed)
        assert refused.code is grpc.StatusCode.INVALID_ARGUMENT, refused
        assert "failed_pod_backoffs[0].delay" in refused.reason
        assert isinstance(await executor.reconcile(KEY), Settled)


def creates(plan: v1.Plan) -> list[v1.Action]:
    return [action for action in actions_of(plan) if action.HasField("create_pod")]


async def test_the_program_of_the_readme(cluster: client.AppsV1Api) -> None:
    program, selection, kinds, policies, forecast, *_ = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names: dict[str, Any] = {}
    exec(program, names)
    exec(selection, names)
    exec(forecast, names)
    given = {**names, "kube": KubeClient.from_environment(), "service": PlanClient("http://127.0.0.1:1")}
    for example in (kinds, policies):
        exec(example, dict(given))
    stop = asyncio.Event()
    running = asyncio.create_task(names["main"](stop))
    done, _ = await asyncio.wait({running}, timeout=1)
    assert not done, "it works until it is told to stop"
    stop.set()
    await running


async def test_the_loop_of_the_readme(cluster: client.AppsV1Api, service: str) -> None:
    *_, loop, _ = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names: dict[str, Any] = {}
    exec(loop, names)
    await asyncio.to_thread(create)
    state = v1.ReconcileState()
    async with KubeClient.from_environment() as kube, PlanClient(service) as planner:

        async def step() -> None:
            await names["step"](kube, planner, "default", "agent", state)

        await step()
        assert len(pods()) == NODES
        assert not state.HasField("expectations")
        for _ in range(60):
            if runs(cluster):
                break
            await asyncio.sleep(1)
            await step()
        assert runs(cluster)
        victim = pods()[0].metadata
        client.CoreV1Api().delete_namespaced_pod(victim.name, "default", grace_period_seconds=0)
        await step()
        assert victim.uid not in {pod.metadata.uid for pod in pods()}
        assert len(pods()) == NODES


async def test_the_question_of_the_readme(service: str, capsys: pytest.CaptureFixture[str]) -> None:
    *_, question = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    code = compile(
        question.replace("http://127.0.0.1:7443", service), "README.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    )
    container = {"name": "main", "image": "agent:1", "resources": {"requests": {"cpu": "250m"}}}
    tolerations = [{"operator": "Exists"}]
    template = {
        "metadata": {"labels": {"app": "agent"}},
        "spec": {"containers": [container], "tolerations": tolerations},
    }
    spec = {"selector": {"matchLabels": {"app": "agent"}}, "template": template}
    await eval(code, {"daemon_sets": [{"metadata": {"namespace": "ns", "name": "agent"}, "spec": spec}]})
    sums, decision = capsys.readouterr().out.splitlines()
    assert sums == "{'cpu': '250m', 'pods': '1'}"
    assert decision.startswith("True ")


def test_what_the_readme_names_is_there() -> None:
    blocks = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    commands = [line for block in blocks for line in block.splitlines()]
    for command in commands:
        for path in re.findall(r"clients/python[\w/.]*", command):
            assert (ROOT / path).exists(), command
    assert any("plan.py default agent" in command for command in commands)
