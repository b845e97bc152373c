"""Normalizes and compares pod templates."""

from typing import Any

from ..kinds import HASH_LABEL, TEMPLATE_HASH_LABEL
from ..objects import Workload
from .values import at, list_at, object_at, same

NODE_TERMS = (
    "spec",
    "affinity",
    "nodeAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
)
"""The path in a pod to its required node selector terms."""
_SET_LABELS = {HASH_LABEL, "pod-template-generation"}


def is_owner(owner: Any, workload: Workload) -> bool:
    """Whether an owner reference makes the workload the controller."""
    if not isinstance(owner, dict):
        return False
    members = {key: value for key, value in owner.items() if key != "blockOwnerDeletion"}
    expected = {"apiVersion": "apps/v1", "kind": workload.key.kind, "name": workload.key.name, "uid": workload.uid}
    return same(members, {**expected, "controller": True})


def normal(template: Any) -> dict[str, Any]:
    """A pod template in the form that is compared: without nulls, with metadata and spec, and with the resources of
    each container. Upstream writes templates in that form into its revisions.
    """
    whole = _without_nulls(template)
    whole = whole if isinstance(whole, dict) else {}
    for member in ("metadata", "spec"):
        whole[member] = object_at(whole, member)
    for containers in ("containers", "initContainers"):
        for container in list_at(whole, "spec", containers):
            if isinstance(container, dict):
                container.setdefault("resources", {})
    return whole


def without_hash(template: Any) -> dict[str, Any]:
    """A pod template in the form that is compared, without the label of its hash."""
    whole: dict[str, Any] = _without(normal(template), "metadata", "labels", TEMPLATE_HASH_LABEL)
    whole.setdefault("metadata", {})
    return whole


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(member) for key, member in value.items() if member is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def difference(pod: Any, template: Any) -> str | None:
    """The field in which a pod differs from a template; None if there is none."""
    pod, template = normal(pod), normal(template)
    if not same(labels(pod["metadata"]), labels(template["metadata"])):
        return "labels"
    differs = _differing(pod, template, _COPIED)
    if differs is not None:
        return differs
    if not _tolerates_as(list_at(pod, "spec", "tolerations"), list_at(template, "spec", "tolerations")):
        return "tolerations"
    return None if same(_for_any_node(pod["spec"]), _for_any_node(template["spec"])) else "spec"


def difference_for_any_node(pod: Any, template: Any) -> str | None:
    """The field in which a pod that is for no node differs from a template; None if there is none."""
    pod, template = normal(pod), normal(template)
    differs = _differing(pod, template, [("labels", {}), *_COPIED])
    return differs or (None if same(pod["spec"], template["spec"]) else "spec")


_COPIED: list[tuple[str, Any]] = [("annotations", {}), ("finalizers", [])]
"""The members of the metadata of each template that its pods have unchanged, and what each is if it is absent."""


def _differing(pod: Any, template: Any, members: list[tuple[str, Any]]) -> str | None:
    """The first of these members of the metadata that differs."""
    for member, empty in members:
        if not same(at(pod, "metadata", member) or empty, at(template, "metadata", member) or empty):
            return member
    return None


def labels(metadata: Any) -> dict[str, Any]:
    """The labels without those that the service sets."""
    return {key: value for key, value in object_at(metadata, "labels").items() if key not in _SET_LABELS}


def _for_any_node(spec: dict[str, Any]) -> Any:
    """A normalized pod spec without the fields that the service sets: required node selector terms and tolerations."""
    rest = {key: value for key, value in spec.items() if key != "tolerations"}
    return _without(rest, *NODE_TERMS[1:])


def _without(value: Any, member: str, *inner: str) -> Any:
    """A value without the member at a path. Objects on the path that become empty are removed, too."""
    if not isinstance(value, dict) or member not in value:
        return value
    rest = {key: found for key, found in value.items() if key != member}
    left = _without(value[member], *inner) if inner else {}
    return rest if left == {} else {**rest, member: left}


def _tolerates_as(tolerations: list[Any], template: list[Any]) -> bool:
    """Whether these tolerations are those of the template plus automatic ones. A toleration may lose its
    tolerationSeconds.
    """
    have, own = [_without_seconds(one) for one in tolerations], [_without_seconds(one) for one in template]

    def is_in(found: list[Any], toleration: Any) -> bool:
        return any(same(other, toleration) for other in found)

    def is_automatic(toleration: Any) -> bool:
        key = at(toleration, "key")
        return isinstance(key, str) and key.startswith("node.kubernetes.io/")

    return all(is_in(have, one) for one in own) and all(is_in(own, one) or is_automatic(one) for one in have)


def _without_seconds(toleration: Any) -> Any:
    if not isinstance(toleration, dict):
        return toleration
    # An absent string equals an empty one.
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds" and value != ""}
