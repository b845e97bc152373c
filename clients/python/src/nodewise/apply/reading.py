"""Objects as the apiserver sent them, as far as applying a plan reads them."""

import json
from typing import Any

from ..actuator import ActuatorError
from ..kinds import ObjectKey


def parse(key: ObjectKey, served: bytes) -> dict[str, Any]:
    """Reads what the apiserver sent as an object."""
    try:
        obj = json.loads(served)
    except (ValueError, RecursionError) as error:
        raise ActuatorError(f"reading {key}: {error}") from error
    if not isinstance(obj, dict):
        raise ActuatorError(f"reading {key}: it is no object")
    return obj


def metadata_of(obj: dict[str, Any]) -> dict[str, Any]:
    """Its metadata."""
    metadata = obj.get("metadata")
    return metadata if isinstance(metadata, dict) else {}
