"""Objects as the apiserver sent them, as far as applying a plan reads them."""

import json
from typing import Any

from .. import rawjson
from ..actuator import ActuatorError
from ..kinds import ObjectKey
from ..rawjson import Served


def parse(key: ObjectKey, served: bytes) -> dict[str, Any]:
    """Reads what the apiserver sent as an object, without its managedFields: others may nest these deeper than can be
    read, and an object that is written without them keeps them.
    """
    try:
        obj = json.loads(Served(served).without_managed_fields)
    except (ValueError, RecursionError) as error:
        raise ActuatorError(f"reading {key}: {error}") from error
    if not isinstance(obj, dict):
        raise ActuatorError(f"reading {key}: it is no object")
    return obj


def parse_metadata(key: ObjectKey, served: bytes) -> dict[str, Any]:
    """Reads the metadata of an object that the apiserver sent, and nothing else of it."""
    try:
        metadata = Served(served).members.get("metadata", b"null")
    except ValueError as error:
        raise ActuatorError(f"reading {key}: {error}") from error
    return metadata_of(parse(key, rawjson.write({"metadata": metadata})))


def metadata_of(obj: dict[str, Any]) -> dict[str, Any]:
    """Its metadata."""
    metadata = obj.get("metadata")
    return metadata if isinstance(metadata, dict) else {}
