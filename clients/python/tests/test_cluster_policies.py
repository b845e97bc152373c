"""Tests RolloutPolicies with the real service, and with a real control plane on which they are installed meanwhile."""

import json
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from kubernetes import client, config, utils

from nodewise import PlanClient, Settled, v1
from nodewise.execute import Executor
from nodewise.state import State
from nodewise.store import Applied, Watched

from .conftest import ROOT
from .fakes import FakeActuator
from .objects import KEY, daemon_set, filled, node, policy
from .polling import eventually_in_thread
from .programs import CLIENT, control_plane_running, running, service_running

NODES, NAMESPACE = 3, "default"
CRD = ROOT / "deploy/kustomize/components/rollout-policy/crd.yaml"
GROUP = ("nodewise.dev", "v1alpha1")
LABELS = {"app": "agent"}
STAGES = [{"name": "canary", "replicas": 1}]


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    with service_running() as url:
        yield url


# What the service says about policies is right by the rules of this executor.
async def test_the_service_and_this_executor_agree_about_policies(service: str) -> None:
    options = v1.PlanOptions()
    template = {"metadata": {"labels": {"app": "foo"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    objects: list[Watched] = [node("n1"), daemon_set(version="2", template=template), policy("p", "10", stages=STAGES)]
    state = filled(State(1, options), *map(Applied, objects))
    actuator = FakeActuator()
    actuator.script("read", "foo", {"metadata": {"name": "foo", "uid": "u1"}})
    async with PlanClient(service) as planner:
        assert "RolloutPolicies" in (await planner.capabilities()).features
        executor = Executor(state, actuator, planner, options)
        assert isinstance(await executor.reconcile(KEY), Settled)
    assert (executor.refused_plans, state.store.unsynced()) == (0, [])
    (status,) = (json.loads(body[1])["status"] for verb, _, body in actuator.bodies if verb == "patch")
    (target,) = status["targets"]
    assert (target["name"], target["uid"]) == ("foo", "u1")
    verbs = [verb for verb, _ in actuator.calls]
    assert verbs.index("patch") < verbs.index("create", verbs.index("patch")), "the status comes before the pods"


class Checks:
    """A webhook that passes each check, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        checks = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                checks.asked.append(json.loads(body))
                answer = b'{"verdict": "pass", "message": "all is well"}'
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "Checks":
        Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class Cluster:
    """A cluster with the DaemonSet `agent`."""

    def __init__(self) -> None:
        self.apps, self.core, self.custom = client.AppsV1Api(), client.CoreV1Api(), client.CustomObjectsApi()
        self.budgets = client.PolicyV1Api()

    def create(self) -> None:
        template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "agent:1"}]}}
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}
        spec = {"selector": {"matchLabels": LABELS}, "template": template, "updateStrategy": strategy}
        self.apps.create_namespaced_daemon_set(NAMESPACE, {"metadata": {"name": "agent"}, "spec": spec})

    def roll_out(self, image: str) -> None:
        containers = [{"name": "c", "image": image}]
        patch = {"spec": {"template": {"spec": {"containers": containers}}}}
        self.apps.patch_namespaced_daemon_set("agent", NAMESPACE, patch)

    def pods(self) -> list[Any]:
        found: list[Any] = self.core.list_namespaced_pod(NAMESPACE).items
        return found

    def runs(self, image: str) -> bool:
        status = self.apps.read_namespaced_daemon_set("agent", NAMESPACE).status
        images = [found.spec.containers[0].image for found in self.pods()]
        return bool(images == [image] * NODES and status.number_available == NODES)

    def install(self) -> None:
        utils.create_from_yaml(client.ApiClient(), str(CRD))

    def give_policy(self, **spec: Any) -> None:
        body = {
            "apiVersion": "/".join(GROUP),
            "kind": "RolloutPolicy",
            "metadata": {"name": "agents"},
            "spec": {"targets": {"names": ["agent"]}, **spec},
        }

        def is_created() -> bool:
            # The apiserver serves a resource some time after it was installed.
            try:
                self.custom.create_namespaced_custom_object(*GROUP, NAMESPACE, "rolloutpolicies", body)
            except client.ApiException as error:
                if error.status != 404:
                    raise
                return False
            return True

        eventually_in_thread(is_created, "the policy is created")

    def target(self) -> dict[str, Any]:
        """The policy's status of the DaemonSet."""
        found: Any = self.custom.get_namespaced_custom_object(*GROUP, NAMESPACE, "rolloutpolicies", "agents")
        targets = found.get("status", {}).get("targets", [])
        return dict(targets[0]) if targets else {}

    def events(self, kind: str) -> set[str]:
        found = self.core.list_namespaced_event(NAMESPACE).items
        return {event.reason for event in found if event.involved_object.kind == kind}


# L-24, L-31, L-37: one story on a cluster where the resource comes while the controller runs.
def test_a_rollout_with_a_policy(service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with control_plane_running("--nodes", NODES) as kubeconfig, Checks() as checks:
        monkeypatch.setenv("KUBECONFIG", kubeconfig)
        config.load_kube_config(kubeconfig)
        cluster = Cluster()
        cluster.create()
        command = [sys.executable, CLIENT / "examples" / "controller.py", "--analysis-host", checks.address]
        with running(*command, env={"NODEWISE_SERVER": service}) as controller:
            eventually_in_thread(lambda: cluster.runs("agent:1"), "all run without the resource")
            cluster.install()
            check = {"name": "hook", "webhook": {"url": f"http://{checks.address}/"}, "count": 1}
            stages = [{"name": "canary", "replicas": 1, "analysis": [check]}, {"name": "rest"}]
            cluster.give_policy(stages=stages, disruption="Evict")
            eventually_in_thread(lambda: bool(cluster.target()), "the policy is heeded")
            budget = {
                "metadata": {"name": "agents"},
                "spec": {"minAvailable": NODES, "selector": {"matchLabels": LABELS}},
            }
            cluster.budgets.create_namespaced_pod_disruption_budget(NAMESPACE, budget)
            before = {found.metadata.uid for found in cluster.pods()}
            cluster.roll_out("agent:2")
            eventually_in_thread(
                lambda: any("agents" in blocked["reason"] for blocked in cluster.target().get("blocking", [])),
                "the status names the budget",
            )
            assert {found.metadata.uid for found in cluster.pods()} == before, "the pods that it protects stay"
            cluster.budgets.delete_namespaced_pod_disruption_budget("agents", NAMESPACE)
            eventually_in_thread(lambda: cluster.runs("agent:2"), "the rollout goes on", 180)
            eventually_in_thread(lambda: cluster.target()["state"] == "Complete", "the rollout is complete")
            (asked,) = checks.asked
            assert (asked["name"], asked["stages"][0]["name"]) == ("agent", "canary")
            reason = "RolloutStageComplete"
            eventually_in_thread(lambda: reason in cluster.events("RolloutPolicy"), "the Events of the policy")
            assert reason in cluster.events("DaemonSet")
            assert controller.end() == 0
            assert not [line for line in controller.said().splitlines() if "defect" in line or "refused" in line]
