"""Checks the patches of objects of any resource: of objects that the workload controls, and of the workload itself."""

from typing import Any

from .. import v1
from ..manifest import locate
from . import rollback
from .annotations import check_annotations, check_min_ready_seconds, check_replicas
from .asked import Asked
from .kinds import Write, rules_of
from .patches import check_objects, check_owner, only, parse_patch, type_name
from .values import WrongError, object_at, quoted

_METADATA = ("uid", "resourceVersion", "annotations")
"""The metadata in a patch of an object that the workload controls."""


def check(write: Write, patch: v1.PatchObject, workload: Any, asked: Asked) -> None:
    """Checks a patch. `workload` is the JSON of the workload. Raises `WrongError`."""
    body = parse_patch(patch.patch, patch.object.uid)
    metadata = object_at(body, "metadata")
    if not isinstance(metadata.get("resourceVersion", ""), str):
        raise WrongError("its patch sets metadata.resourceVersion to what is no string")
    if patch.claim not in v1.Claim.values():
        raise WrongError(f"its claim {patch.claim} is unknown")
    is_claim = write is Write.PATCH and patch.claim != v1.CLAIM_UNSPECIFIED
    expected = v1.PATCH_TYPE_STRATEGIC_MERGE if is_claim else v1.PATCH_TYPE_MERGE
    if patch.patch_type != expected:
        found, belongs = type_name(patch.patch_type), type_name(expected)
        raise WrongError(f"its patch_type is {found}, where {belongs} belongs")
    if not is_claim and patch.claim != v1.CLAIM_UNSPECIFIED:
        raise WrongError("it claims the workload itself")
    _check_failure_pointer(write, patch.failure_pointer, body)
    if write is Write.STATUS:
        _check_status(body, asked)
    elif write is Write.ROLLBACK:
        rollback.check_patch(body, workload, asked.workload)
    elif is_claim:
        only(body, ["metadata"], "")
        of_owners = {key: value for key, value in metadata.items() if key != "resourceVersion"}
        check_owner(of_owners, asked.workload, adopts=patch.claim == v1.CLAIM_ADOPT)
    else:
        _check_size(body, workload)


def _check_failure_pointer(write: Write, pointer: str, body: dict[str, Any]) -> None:
    """The error of another action may be written into a status only."""
    if not pointer:
        return
    leads_into = pointer == "/status" or pointer.startswith("/status/")
    if write is not Write.STATUS or not leads_into or locate(body, pointer) is None:
        raise WrongError(f"its failure_pointer {quoted(pointer)} leads to no string of a status")


def _check_size(body: dict[str, Any], workload: Any) -> None:
    """Checks a change of the size, or of what else follows the workload."""
    only(body, ["metadata", "spec"], "")
    metadata = object_at(body, "metadata")
    only(metadata, _METADATA, "metadata.")
    check_annotations(metadata, workload, "its patch")
    check_objects(body)
    spec = object_at(body, "spec")
    only(spec, ["replicas", "minReadySeconds"], "spec.")
    if "replicas" in spec:
        check_replicas(spec["replicas"], "its patch")
    if "minReadySeconds" in spec:
        check_min_ready_seconds(spec["minReadySeconds"], workload, "its patch")


def _check_status(body: dict[str, Any], asked: Asked) -> None:
    only(body, ["metadata", "status"], "")
    metadata = object_at(body, "metadata")
    only(metadata, rules_of(asked).status_metadata, "metadata.")
    check_annotations(metadata, None, "its patch")
    check_objects(body)
