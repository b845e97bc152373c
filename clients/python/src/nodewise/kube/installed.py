"""Asks an apiserver whether it serves a custom resource. Every authenticated user may ask that."""

from typing import TypeVar

import msgspec

from ..actuator import ActuatorError
from ..kinds import Resource
from ..rawjson import UNREADABLE
from ..sanitize import one_line
from .client import KubeClient
from .pages import OBJECT_BYTES, UnreadableError

TIMEOUT = 30.0
"""Timeout of a question, in seconds."""


class OtherVersionError(Exception):
    """The resource is served only in other versions of its API group: it is installed, and its objects cannot be
    read.
    """


class _Named(msgspec.Struct):
    name: str = ""


class _Resources(msgspec.Struct):
    """An APIResourceList."""

    resources: list[_Named] = []


class _Version(msgspec.Struct):
    version: str = ""


class _Group(msgspec.Struct):
    """An APIGroup."""

    versions: list[_Version] = []


_T = TypeVar("_T", _Resources, _Group)


async def is_installed(client: KubeClient, resource: Resource) -> bool:
    """Whether the resource is served. Raises `OtherVersionError` if it is served only in other versions,
    `ActuatorError` if the question failed, and `UnreadableError` if the answer cannot be read.
    """
    group = f"/apis/{resource.group}"
    if await _serves(client, group, resource.version, resource):
        return True
    found = await _read(client, group, _Group)
    versions = sorted({of.version for of in found.versions} - {"", resource.version}) if found is not None else []
    others = [version for version in versions if await _serves(client, group, version, resource)]
    if others:
        served = ", ".join(f"{resource.group}/{version}" for version in others)
        raise OtherVersionError(
            one_line(
                f"{resource.value} are not served as {resource.api_version}, but as {served}: this program does not "
                f"know that version; upgrade it, or serve {resource.version} as well"
            )
        )
    return False


async def _serves(client: KubeClient, group: str, version: str, resource: Resource) -> bool:
    """Whether a version of an API group has the resource."""
    found = await _read(client, f"{group}/{version}", _Resources)
    return found is not None and any(named.name == resource.value for named in found.resources)


async def _read(client: KubeClient, path: str, of: type[_T]) -> _T | None:
    """What the apiserver tells of its API at a path. None if there is nothing."""
    try:
        answer = await client.call("GET", path, timeout=TIMEOUT, max_bytes=OBJECT_BYTES)
    except ActuatorError as error:
        if error.http_status == 404:
            return None
        raise
    try:
        return msgspec.json.decode(answer.body, type=of)
    except UNREADABLE as error:
        raise UnreadableError(f"reading what is installed at {path}: {error}") from error
