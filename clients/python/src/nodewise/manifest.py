"""The pod manifest of a plan: parsed once per plan, rendered once per pod."""

import json
from typing import Any

from . import convert, v1
from .kinds import HASH_LABEL


class ManifestError(ValueError):
    """The manifest is invalid."""


class PodManifest:
    """`Plan.pod_manifest`, and the positions of the node name in it."""

    def __init__(self, plan: v1.Plan) -> None:
        try:
            self._manifest: Any = json.loads(plan.pod_manifest)
        except (ValueError, RecursionError) as error:
            raise ManifestError(f"the plan's pod_manifest: {error}") from error
        if not isinstance(self._manifest, dict) or not isinstance(self._manifest.get("metadata"), dict):
            raise ManifestError("the plan's pod_manifest has no metadata")
        self._places = [self._place(pointer) for pointer in plan.node_name_pointers]

    def render(self, create: v1.CreatePod) -> bytes:
        """The manifest of the pod for one node. With an empty pod name the apiserver uses generateName."""
        for parent, member in self._places:
            parent[member] = create.node_name
        metadata = self._manifest["metadata"]
        metadata.pop("name", None)
        if create.pod_name:
            metadata["name"] = create.pod_name
        return convert.to_json(self._manifest)

    def annotate(self, name: str, value: str) -> None:
        """Sets this annotation on all pods from now on."""
        metadata = self._manifest["metadata"]
        metadata["annotations"] = {**(metadata.get("annotations") or {}), name: value}

    @property
    def revision_hash(self) -> str:
        """The revision label of the plan's pods; empty if there is none."""
        labels = self._manifest["metadata"].get("labels") or {}
        value = labels.get(HASH_LABEL, "")
        return value if isinstance(value, str) else ""

    def _place(self, pointer: str) -> tuple[Any, Any]:
        found = locate(self._manifest, pointer)
        if found is None:
            raise ManifestError(f"the plan's pod_manifest has no string at node_name_pointers entry {pointer}")
        return found


def locate(value: Any, pointer: str) -> tuple[Any, Any] | None:
    """Resolves an RFC 6901 pointer to a string: the container, and the member or index in it. None if there is no
    string at the pointer.
    """
    parent: Any = None
    member: Any = None
    for token in pointer.split("/")[1:]:
        parent, member = value, token.replace("~1", "/").replace("~0", "~")
        try:
            member = int(member) if isinstance(parent, list) else member
            value = parent[member]
        except (KeyError, IndexError, TypeError, ValueError):
            return None
    return (parent, member) if parent is not None and isinstance(value, str) else None


def is_same_pod(
    live: convert.KubernetesObject, workload: v1.WorkloadReference, node_name: str, revision_hash: str
) -> bool:
    """Whether a live pod is the one that a create of this plan would have made: same controller, node and revision. If
    the create is for no node, any pod of the workload is. Raises `ConversionError` if the pod cannot be read.

    Anyone who may create pods can name the workload's uid in a reference with another kind or name. The caches do not
    count such a pod as the workload's.
    """
    pod = convert.pod(live)
    hashes = [label.value for label in pod.labels if label.key == HASH_LABEL]
    is_for_node = (hashes or [""])[0] == revision_hash and convert.target_node(pod) == node_name
    found, wanted = pod.controller, workload
    is_controlled = (found.kind, found.name, found.uid) == (wanted.kind, wanted.name, wanted.uid)
    return is_controlled and (not node_name or is_for_node)
