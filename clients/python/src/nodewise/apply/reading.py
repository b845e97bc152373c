"""Reads served objects, as far as applying a plan needs them."""

import json
from typing import Any

from .. import rawjson
from ..actuator import ActuatorError
from ..kinds import ObjectKey
from ..rawjson import Served


def parse(key: ObjectKey, served: bytes) -> dict[str, Any]:
    """Reads a served object, without its managedFields. Other clients may nest these deeper than Python can read. An
    object that is written without them keeps them.
    """
    try:
        obj = json.loads(Served(served).without_managed_fields)
    except (ValueError, RecursionError) as error:
        raise ActuatorError(f"reading {key}: {error}") from error
    if not isinstance(obj, dict):
        raise ActuatorError(f"reading {key}: it is no object")
    return obj


def parse_metadata(key: ObjectKey, served: bytes) -> dict[str, Any]:
    """Reads only the metadata of a served object."""
    try:
        metadata = Served(served).members.get("metadata", b"null")
    except ValueError as error:
        raise ActuatorError(f"reading {key}: {error}") from error
    return metadata_of(parse(key, rawjson.write({"metadata": metadata})))


def metadata_of(obj: dict[str, Any]) -> dict[str, Any]:
    """The metadata of an object; empty if there is none."""
    metadata = obj.get("metadata")
    return metadata if isinstance(metadata, dict) else {}
