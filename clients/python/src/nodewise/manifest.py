"""The manifest of a plan's pods: parsed once per plan, rendered once per pod."""

import json
from typing import Any

from . import convert, v1
from .kinds import HASH_LABEL


class ManifestError(ValueError):
    """A manifest that no pod can be made from."""


class PodManifest:
    """`Plan.pod_manifest` with the places that differ from pod to pod."""

    def __init__(self, plan: v1.Plan) -> None:
        try:
            self._manifest: Any = json.loads(plan.pod_manifest)
        except (ValueError, RecursionError) as error:
            raise ManifestError(f"the plan's pod_manifest: {error}") from error
        if not isinstance(self._manifest, dict) or not isinstance(self._manifest.get("metadata"), dict):
            raise ManifestError("the plan's pod_manifest has no metadata")
        self._places = [self._place(pointer) for pointer in plan.node_name_pointers]

    def render(self, create: v1.CreatePod) -> bytes:
        """The pod for one node. An empty pod name leaves the name to the manifest's generateName."""
        for parent, member in self._places:
            parent[member] = create.node_name
        metadata = self._manifest["metadata"]
        metadata.pop("name", None)
        if create.pod_name:
            metadata["name"] = create.pod_name
        return convert.to_json(self._manifest)

    def annotate(self, name: str, value: str) -> None:
        """All pods from now on have this annotation, whatever the plan says of it."""
        metadata = self._manifest["metadata"]
        metadata["annotations"] = {**(metadata.get("annotations") or {}), name: value}

    @property
    def revision_hash(self) -> str:
        """The value of the revision label that the plan's pods carry; empty for none."""
        labels = self._manifest["metadata"].get("labels") or {}
        value = labels.get(HASH_LABEL, "")
        return value if isinstance(value, str) else ""

    def _place(self, pointer: str) -> tuple[Any, Any]:
        """Where an RFC 6901 pointer points: what holds it, and the member or index there."""
        parent: Any = None
        member: Any = None
        value = self._manifest
        for token in pointer.split("/")[1:]:
            parent, member = value, token.replace("~1", "/").replace("~0", "~")
            try:
                member = int(member) if isinstance(parent, list) else member
                value = parent[member]
            except (KeyError, IndexError, TypeError, ValueError):
                value = None
                break
        if parent is None or not isinstance(value, str):
            raise ManifestError(f"the plan's pod_manifest has no string at node_name_pointers entry {pointer}")
        return parent, member


def is_same_pod(live: convert.KubernetesObject, workload_uid: str, node_name: str, revision_hash: str) -> bool:
    """Whether a live pod is the one that a create of this plan would have made: same controller, node and revision.
    Raises ConversionError when the pod cannot be read.
    """
    pod = convert.pod(live)
    hashes = [label.value for label in pod.labels if label.key == HASH_LABEL]
    return (
        pod.controller.uid == workload_uid
        and (hashes or [""])[0] == revision_hash
        and convert.target_node(pod) == node_name
    )
