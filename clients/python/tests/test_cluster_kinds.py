"""Tests ReplicaSets and Deployments with the real service and a real control plane, whose own controllers are off."""

import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kubernetes import client, config

from .polling import eventually_in_thread
from .programs import CLIENT, Program, control_plane_running, running, service_running

NAMESPACE = "default"
CONTROLLERS = "*,-daemonset-controller,-replicaset-controller,-deployment-controller"
EXAMPLE = CLIENT / "examples" / "controller.py"
LABELS = {"app": "web"}


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    with service_running() as url:
        yield url


@pytest.fixture(scope="module")
def control_plane() -> Iterator[str]:
    with control_plane_running("--nodes", 3, "--controllers", CONTROLLERS) as kubeconfig:
        yield kubeconfig


class Cluster:
    """A cluster without workloads."""

    def __init__(self) -> None:
        self.apps, self.core = client.AppsV1Api(), client.CoreV1Api()

    def sets(self) -> list[Any]:
        """The ReplicaSets, oldest first."""
        found: list[Any] = self.apps.list_namespaced_replica_set(NAMESPACE).items
        return sorted(found, key=lambda one: int(one.metadata.annotations["deployment.kubernetes.io/revision"]))

    def pods(self) -> list[Any]:
        found: list[Any] = self.core.list_namespaced_pod(NAMESPACE).items
        return found

    def images(self) -> list[str]:
        return sorted(pod.spec.containers[0].image for pod in self.pods())

    def of(self, image: str) -> list[str]:
        """The images of the pods with this image."""
        return [found for found in self.images() if found == image]

    def wait_for_pods(self, image: str, number: int) -> None:
        """Waits until there are so many pods of an image, or all that there will be."""
        eventually_in_thread(
            lambda: len(self.of(image)) >= number or self.is_complete(30, image), f"{number} pods of {image}"
        )

    def deploy(self, replicas: int, image: str = "web:1", **spec: Any) -> None:
        self.apps.create_namespaced_deployment(NAMESPACE, deployment(replicas, image, **spec))

    def patch(self, **spec: Any) -> None:
        self.apps.patch_namespaced_deployment("web", NAMESPACE, {"spec": spec})

    def is_complete(self, replicas: int, image: str) -> bool:
        """Whether the Deployment has rolled out, and nothing else is there."""
        found = self.apps.read_namespaced_deployment("web", NAMESPACE)
        status = found.status
        counts = (status.replicas, status.updated_replicas, status.available_replicas)
        is_observed = status.observed_generation == found.metadata.generation
        return is_observed and counts == (replicas,) * 3 and self.images() == [image] * replicas

    def wait(self, replicas: int, image: str) -> None:
        """Waits until the Deployment has rolled out."""
        eventually_in_thread(lambda: self.is_complete(replicas, image), f"{replicas} pods of {image} run")


def template(image: str) -> dict[str, Any]:
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": image}]}}


def deployment(replicas: int, image: str, **spec: Any) -> dict[str, Any]:
    spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template(image), **spec}
    return {"metadata": {"name": "web"}, "spec": spec}


@pytest.fixture
def cluster(control_plane: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setenv("KUBECONFIG", control_plane)
    config.load_kube_config(control_plane)
    found = Cluster()
    yield found
    found.apps.delete_collection_namespaced_deployment(NAMESPACE)
    found.apps.delete_collection_namespaced_replica_set(NAMESPACE)
    found.core.delete_collection_namespaced_pod(NAMESPACE)
    there: Callable[[], list[Any]] = lambda: [  # noqa: E731
        *found.apps.list_namespaced_deployment(NAMESPACE).items,
        *found.apps.list_namespaced_replica_set(NAMESPACE).items,
        *found.pods(),
    ]
    eventually_in_thread(lambda: not there(), "everything is deleted")


@pytest.fixture
def controller(cluster: Cluster, service: str) -> Iterator[Program]:
    with start(service) as program:
        yield program
        end(program)


def end(program: Program) -> str:
    """Ends a controller in order. Returns what it logged."""
    status, said = program.end(), program.said()
    assert status == 0, said
    for word in ("defect", "Traceback", "is refused"):
        assert word not in said, said
    return said


def start(service: str) -> Any:
    return running(sys.executable, EXAMPLE, "--controllers", "*", env={"NODEWISE_SERVER": service})


def test_a_deployment_is_created_rolled_scaled_and_undone(cluster: Cluster, controller: Program) -> None:
    cluster.deploy(3)
    cluster.wait(3, "web:1")
    cluster.patch(template=template("web:2"))
    cluster.wait(3, "web:2")
    cluster.patch(replicas=5)
    cluster.wait(5, "web:2")
    old, new = cluster.sets()
    assert (old.spec.replicas, new.spec.replicas) == (0, 5)
    cluster.patch(template=template("web:1"))
    cluster.wait(5, "web:1")
    again = cluster.sets()
    assert {one.metadata.uid for one in again} == {old.metadata.uid, new.metadata.uid}, "the old ReplicaSet is used"
    assert again[-1].metadata.uid == old.metadata.uid
    cluster.patch(replicas=1)
    cluster.wait(1, "web:1")


def test_all_old_pods_end_before_new_ones_start(cluster: Cluster, controller: Program) -> None:
    cluster.deploy(3, strategy={"type": "Recreate"})
    cluster.wait(3, "web:1")
    cluster.patch(template=template("web:2"))
    together = []

    def is_recreated() -> bool:
        if len(set(cluster.images())) > 1:
            together.append(cluster.images())
        return cluster.is_complete(3, "web:2")

    eventually_in_thread(is_recreated, "it is recreated")
    assert together == []


def test_old_replica_sets_beyond_the_history_limit_are_deleted(cluster: Cluster, controller: Program) -> None:
    cluster.deploy(1, revisionHistoryLimit=1)
    cluster.wait(1, "web:1")
    for image in ("web:2", "web:3"):
        cluster.patch(template=template(image))
        cluster.wait(1, image)
    eventually_in_thread(lambda: len(cluster.sets()) == 2, "the oldest one is deleted")


def test_a_replica_set_of_its_own(cluster: Cluster, controller: Program) -> None:
    spec = {"replicas": 4, "selector": {"matchLabels": LABELS}, "template": template("web:1")}
    cluster.core.create_namespaced_pod(
        NAMESPACE, {"metadata": {"name": "orphan", "labels": LABELS}, "spec": template("web:1")["spec"]}
    )
    cluster.apps.create_namespaced_replica_set(NAMESPACE, {"metadata": {"name": "web"}, "spec": spec})

    def available(count: int) -> bool:
        status = cluster.apps.read_namespaced_replica_set("web", NAMESPACE).status
        return (status.replicas, status.available_replicas or 0, len(cluster.pods())) == (count, count, count)

    eventually_in_thread(lambda: available(4), "it runs")
    (adopted,) = [pod for pod in cluster.pods() if pod.metadata.name == "orphan"]
    assert adopted.metadata.owner_references[0].name == "web"
    for replicas in (7, 2):
        cluster.apps.patch_namespaced_replica_set("web", NAMESPACE, {"spec": {"replicas": replicas}})
        eventually_in_thread(lambda replicas=replicas: available(replicas), f"{replicas} run")  # type: ignore[misc]
    victim = cluster.pods()[0].metadata
    cluster.core.delete_namespaced_pod(victim.name, NAMESPACE)
    eventually_in_thread(lambda: available(2) and victim.uid not in uids(cluster.pods()), "the pod is replaced")
    assert victim.name not in {pod.metadata.name for pod in cluster.pods()}, "the name is not used again"


def uids(objects: list[Any]) -> set[str]:
    return {found.metadata.uid for found in objects}


# P-27: another object has the name of the new ReplicaSet.
def test_a_taken_name_raises_the_collision_count(cluster: Cluster, service: str) -> None:
    with start(service) as program:
        cluster.deploy(1)
        cluster.wait(1, "web:1")
        (own,) = cluster.sets()
        end(program)
    # The same Deployment again, while a ReplicaSet that it does not select has the name.
    cluster.apps.delete_namespaced_deployment("web", NAMESPACE, propagation_policy="Orphan")
    name = own.metadata.name
    cluster.apps.delete_namespaced_replica_set(name, NAMESPACE)
    eventually_in_thread(lambda: not cluster.sets() and not cluster.pods(), "the first one is gone")
    other = {"app": "other"}
    of_other = {**template("web:1"), "metadata": {"labels": other}}
    spec = {"replicas": 0, "selector": {"matchLabels": other}, "template": of_other}
    cluster.apps.create_namespaced_replica_set(NAMESPACE, {"metadata": {"name": name, "labels": other}, "spec": spec})
    cluster.deploy(1)
    with start(service) as program:
        cluster.wait(1, "web:1")
        assert "the name of a new object is taken" in end(program)
    found = cluster.apps.read_namespaced_deployment("web", NAMESPACE)
    assert found.status.collision_count == 1
    names = {one.metadata.name for one in cluster.apps.list_namespaced_replica_set(NAMESPACE).items}
    assert len(names) == 2
    assert name in names


# Two executors one after the other, of which the first one may have been killed after any of its writes.
def test_kills_between_writes_make_no_duplicates(cluster: Cluster, service: str) -> None:
    cluster.deploy(30, strategy={"rollingUpdate": {"maxSurge": "50%", "maxUnavailable": 0}})
    for image in ("web:1", "web:2"):
        if image != "web:1":
            cluster.patch(template=template(image))
        for more in (1, 4, 12):
            with start(service) as program:
                cluster.wait_for_pods(image, len(cluster.of(image)) + more)
                program.end(signal.SIGKILL)
            assert len(cluster.pods()) <= 45, "not more than with the surge"
        with start(service) as program:
            # The last one that was killed may have completed it.
            program.wait_for("all caches are filled")
            cluster.wait(30, image)
            end(program)
    assert len(cluster.sets()) == 2, "one for each template"


def created_events(cluster: Cluster) -> list[Any]:
    found = cluster.core.list_namespaced_event(NAMESPACE).items
    return [event for event in found if event.reason in ("SuccessfulCreate", "ScalingReplicaSet")]


def test_events_name_their_controllers(cluster: Cluster, controller: Program) -> None:
    cluster.deploy(2)
    cluster.wait(2, "web:1")

    def sources() -> dict[str, str]:
        found = created_events(cluster)
        return {event.involved_object.kind: event.source.component for event in found}

    wanted = {"Deployment": "deployment-controller", "ReplicaSet": "replicaset-controller"}
    eventually_in_thread(lambda: sources() == wanted, "both emit Events")
