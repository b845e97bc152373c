"""Checks the patch by which a plan restores an earlier template: it must be the template of an object that the workload
controls.
"""

from collections.abc import Sequence
from typing import Any

from .. import v1
from ..kinds import TEMPLATE_HASH_LABEL
from ..objects import Workload
from . import owned
from .asked import Asked, Caches
from .patches import check_objects, only
from .templates import without_hash
from .values import WrongError, at, object_at, parse, quoted, same

_REQUEST = "deprecated.deployment.rollback.to"
"""The annotation by which a user asks for an earlier template. A plan removes it in any case (P-50)."""


def check_patch(body: dict[str, Any], workload_object: Any, workload: Workload) -> None:
    """Checks that a user has asked for the patch, and its form. `workload_object` is the JSON of the workload. Raises
    `WrongError`.
    """
    if _REQUEST not in object_at(workload_object, "metadata", "annotations"):
        raise WrongError(f"it patches the workload, which has no annotation {_REQUEST}")
    only(body, ["metadata", "spec"], "")
    check_objects(body)
    metadata, spec = object_at(body, "metadata"), object_at(body, "spec")
    only(metadata, ["uid", "resourceVersion", "annotations"], "metadata.")
    only(spec, ["template"], "spec.")
    # Applied to another version, the patch could result in another template.
    if metadata.get("resourceVersion") != workload.resource_version:
        raise WrongError(f"its patch does not carry the resourceVersion {quoted(workload.resource_version)}")
    if not isinstance(metadata.get("annotations", {}), dict):
        raise WrongError("its patch sets metadata.annotations to what is no object")
    annotations = object_at(metadata, "annotations")
    for key in sorted(annotations):
        if not spec and (key != _REQUEST or annotations[key] is not None):
            raise WrongError(f"its patch restores no template, and changes annotation {key}")


def wrong(action: v1.Action, actions: Sequence[v1.Action], asked: Asked, caches: Caches) -> tuple[str | None, int]:
    """What is wrong with the template that an action restores, and the number of the last change of what was compared.
    The template must be that of an object that the workload controls, or that the plan adopts. Raises `WrongError`.
    """
    patch = parse(action.patch_object.patch, "its patch")
    if "spec" not in patch:
        return None, 0
    restored = _merged(parse(asked.workload.object, "the workload"), patch)
    template = at(restored, "spec", "template")
    has_hash = TEMPLATE_HASH_LABEL in object_at(template, "metadata", "labels")
    template, annotations = without_hash(template), object_at(patch, "metadata", "annotations")
    objects = owned.objects(actions, asked, caches)
    changed = owned.last_change(objects, asked, caches)
    for found in map(owned.read, objects):
        is_same = not has_hash and same(without_hash(at(found, "spec", "template")), template)
        if is_same and _are_of(annotations, object_at(found, "metadata", "annotations")):
            return None, changed
    return f"it restores a template and annotations that no {asked.controls} of the workload has", changed


def _are_of(patched: dict[str, Any], annotations: dict[str, Any]) -> bool:
    """Whether every annotation that a patch sets is one of these."""
    return all(
        value is None or (key in annotations and same(annotations[key], value)) for key, value in patched.items()
    )


def _merged(value: Any, patch: Any) -> Any:
    """A value after a JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    members = dict(value) if isinstance(value, dict) else {}
    for key, change in patch.items():
        before = members.pop(key, None)
        if change is not None:
            members[key] = _merged(before, change)
    return members
