"""Tests the watch of RolloutPolicies, a resource that may not be installed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from nodewise.actuator import ActuatorError
from nodewise.kinds import Resource
from nodewise.kube import KubeClient, watch
from nodewise.kube.installed import is_installed
from nodewise.kube.pages import UnreadableError
from nodewise.kube.watch import _Follower
from nodewise.policies import RolloutPolicy
from nodewise.store import Applied, Event, Listed, Unknown

from .polling import eventually
from .test_kube import Apiserver, Handler, answer, apiserver, lines, page, raw, refuse

__all__ = ["apiserver"]

GROUP = "/apis/nodewise.dev"
DISCOVERY = f"{GROUP}/v1alpha1"
POLICIES = f"{DISCOVERY}/rolloutpolicies"
MISSING = refuse(404, "NotFound")
ABSENT = "listed  at "


def resources(*names: str) -> Handler:
    return answer({"kind": "APIResourceList", "resources": [{"name": name} for name in names]})


INSTALLED = resources("rolloutpolicies", "rolloutpolicies/status")


def served(name: str, version: str = "1") -> dict[str, Any]:
    return {"metadata": {"namespace": "ns", "name": name, "uid": name, "resourceVersion": version}}


def policies(*names: str, version: str) -> Handler:
    return page([served(name) for name in names], version)


class Followed:
    """A follower of policies, and what it has shown."""

    def __init__(self, client: KubeClient) -> None:
        self.told: list[str] = []
        self.restored: list[Resource] = []
        restored = self.restored.append
        self.follower = _Follower(client, Resource.POLICIES, None, self.take, restored=restored, kinds=())

    def take(self, event: Event) -> None:
        match event:
            case Listed(Resource.POLICIES, objects, version):
                names = [found.name for found in objects if isinstance(found, RolloutPolicy)]
                self.told.append(f"listed {' '.join(names)} at {version}")
            case Applied(RolloutPolicy() as policy):
                self.told.append(f"applied {policy.name}@{policy.resource_version}")
            case Unknown(Resource.POLICIES, reason):
                self.told.append(reason)
            case _:
                raise AssertionError(event)

    async def shows(self, *expected: str) -> None:
        await eventually(lambda: self.told == list(expected) or len(self.told) > len(expected), f"{expected}")
        assert self.told == list(expected)


@asynccontextmanager
async def following(
    of: tuple[Apiserver, KubeClient], discoveries: list[Handler], answers: list[Handler]
) -> AsyncIterator[Followed]:
    server, client = of
    server.script = {f"GET {DISCOVERY}": discoveries, f"GET {POLICIES}": answers}
    followed = Followed(client)
    task = asyncio.create_task(followed.follower.run())
    try:
        yield followed
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks again at once, and does not back off."""

    async def no_pause(_: _Follower) -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr(watch, "DISCOVERY_INTERVAL", 0.001)
    monkeypatch.setattr(_Follower, "_back_off", no_pause)


# Without the resource there are no policies, and nothing waits for them. That is said once.
async def test_a_resource_that_is_not_installed_is_looked_for(apiserver: tuple[Apiserver, KubeClient]) -> None:
    discoveries = [MISSING, resources("others"), MISSING, INSTALLED]
    answers = [policies("a", version="7"), lines({"type": "ADDED", "object": served("b", "8")})]
    async with following(apiserver, discoveries, answers) as followed:
        await followed.shows(ABSENT, "listed a at 7", "applied b@8")
        assert followed.follower.failure == ""
    asked = [path for _, path, _, _ in apiserver[0].requests]
    assert asked[:8] == [DISCOVERY, GROUP] * 3 + [DISCOVERY, POLICIES]


# L-2: nothing may be rolled out without knowing the policies. The check names the right that is missing.
async def test_a_resource_that_cannot_be_listed_is_not_absent(apiserver: tuple[Apiserver, KubeClient]) -> None:
    message = 'cannot list resource "rolloutpolicies"'
    allowed = asyncio.Event()

    async def guarded(request: Any) -> Any:
        if not allowed.is_set():
            return await refuse(403, "Forbidden", message)(request)
        return await policies("a", version="7")(request) if "watch" not in request.query else await lines()(request)

    async with following(apiserver, [INSTALLED], [guarded]) as followed:
        await eventually(lambda: message in followed.follower.failure, "the reason")
        assert followed.told == []
        allowed.set()
        await followed.shows("listed a at 7")


# A discovery that fails says nothing: neither that there are policies, nor that there are none.
async def test_a_discovery_that_fails_says_nothing(apiserver: tuple[Apiserver, KubeClient]) -> None:
    discoveries = [refuse(503), refuse(403, "Forbidden"), raw(200, b"no JSON"), INSTALLED]
    async with following(apiserver, discoveries, [policies(version="7"), lines()]) as followed:
        await followed.shows("listed  at 7")


# L-3: a resource that is removed has no objects. A list that is not found for another reason is no removal.
async def test_the_objects_of_a_removed_resource_are_gone(apiserver: tuple[Apiserver, KubeClient]) -> None:
    discoveries = [INSTALLED, INSTALLED, MISSING, INSTALLED]
    answers = [
        policies("a", version="7"),
        MISSING,
        policies("a", version="8"),
        MISSING,
        policies("c", version="9"),
        lines(),
    ]
    async with following(apiserver, discoveries, answers) as followed:
        await followed.shows("listed a at 7", "listed a at 8", ABSENT, "listed c at 9")
        assert followed.restored == [], "versions have not restarted"


# D-112: after a restore of etcd every resource is listed again, also one that is not installed.
async def test_a_restore_is_answered_without_the_resource(
    apiserver: tuple[Apiserver, KubeClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "DISCOVERY_INTERVAL", 3600)
    async with following(apiserver, [MISSING], []) as followed:
        await followed.shows(ABSENT)
        followed.follower.list_again()
        await followed.shows(ABSENT, ABSENT)


OTHER = (
    "rolloutpolicies are not served as nodewise.dev/v1alpha1, but as nodewise.dev/v1, nodewise.dev/v1beta1: this "
    "program does not know that version; upgrade it, or serve v1alpha1 as well"
)
VERSIONS = answer(
    {"kind": "APIGroup", "versions": [{"version": of} for of in ("v1beta1", "v1alpha1", "v1", "v1beta2")]}
)


# L-2: policies of a version that the program cannot read are there all the same.
@pytest.mark.parametrize("before", [MISSING, INSTALLED], ids=["none before", "others before"])
async def test_a_resource_of_another_version_is_not_absent(
    apiserver: tuple[Apiserver, KubeClient], before: Handler, caplog: pytest.LogCaptureFixture
) -> None:
    discoveries = [before, MISSING, resources("others"), resources("others"), INSTALLED]
    groups = [VERSIONS] if before is INSTALLED else [MISSING, VERSIONS]
    server, _ = apiserver
    async with following(
        apiserver, discoveries, [policies(version="7"), MISSING, policies("a", version="9"), lines()]
    ) as of:
        server.script |= {
            f"GET {GROUP}": groups,
            f"GET {GROUP}/v1": [INSTALLED],
            f"GET {GROUP}/v1beta1": [INSTALLED],
            f"GET {GROUP}/v1beta2": [resources("others")],
        }
        first = ABSENT if before is MISSING else "listed  at 7"
        # A list that comes before the resource is not found has no policy.
        lists = ["listed  at 7", "listed a at 9"] if before is MISSING else ["listed a at 9"]
        await of.shows(first, OTHER, OTHER, OTHER, *lists)
        await eventually(lambda: of.follower.failure == "", "the reason is gone")
    assert caplog.text.count("nothing is rolled out without the rolloutpolicies") == 1


async def test_whether_a_group_has_other_versions_may_be_unknown(apiserver: tuple[Apiserver, KubeClient]) -> None:
    server, client = apiserver
    server.script = {f"GET {DISCOVERY}": [MISSING], f"GET {GROUP}": [refuse(503), raw(200, b"no JSON"), VERSIONS]}
    server.script[f"GET {GROUP}/v1"] = [refuse(503), MISSING]
    with pytest.raises(ActuatorError):
        await is_installed(client, Resource.POLICIES)
    with pytest.raises(UnreadableError, match=f"reading what is installed at {GROUP}: "):
        await is_installed(client, Resource.POLICIES)
    with pytest.raises(ActuatorError):
        await is_installed(client, Resource.POLICIES)
    assert not await is_installed(client, Resource.POLICIES)
