"""Checks what a plan creates: pods of the workload's template or of one of its revisions, and revisions of its
template.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from .. import v1
from ..actions import actions_of
from ..objects import Workload
from .annotations import replicas_of
from .asked import Asked
from .kinds import rules_of
from .names import MAX_NAME, is_of_pod, is_of_revision
from .templates import NODE_TERMS, difference, difference_for_any_node, is_owner, labels, normal
from .values import WrongError, at, is_integer, list_at, object_at, other_than, parse, parse_written, quoted, same, text

_NODE_NAME = f"/{'/'.join(NODE_TERMS)}/0/matchFields/0/values/0"
"""The pointer to the node name."""
_POD = "the plan's pod_manifest"
_REVISION = "its manifest"


class Creates:
    """The creates of one plan."""

    def __init__(self, plan: v1.Plan, asked: Asked, revisions: Sequence[bytes]) -> None:
        """`revisions` are the JSON of revisions that the workload controls."""
        self._plan, self._asked, self._workload, self._revisions = plan, asked, asked.workload, revisions
        self._is_manifest_checked = False

    def check(self, action: v1.Action) -> None:
        """Checks an action, if it is a create. Raises `WrongError`."""
        if action.HasField("create_revision"):
            self._check_revision(action.create_revision)
        elif action.HasField("create_pod"):
            name, own = action.create_pod.pod_name, self._workload.key.name
            if name and not is_of_pod(name, own, rules_of(self._asked).pod_hash):
                raise WrongError(f"the pod name {quoted(name)} is not derived from the workload's name {quoted(own)}")
            if not self._is_manifest_checked:
                self._is_manifest_checked = True
                self._check_pod()

    @cached_property
    def _object(self) -> Any:
        return parse(self._workload.object, "the workload")

    def _check_pod(self) -> None:
        """Checks the manifest of the plan's pods."""
        pod = parse_written(self._plan.pod_manifest, _POD)
        if self._asked.per_node:
            self._check_node_name(pod)
        elif self._plan.node_name_pointers:
            found = ", ".join(map(quoted, self._plan.node_name_pointers))
            raise WrongError(f"node_name_pointers is [{found}], where none belongs")
        check_object(_POD, pod, "v1", "Pod", ["spec"])
        allowed = ["annotations", "finalizers", "generateName", "labels", "name", "namespace", "ownerReferences"]
        check_metadata(_POD, pod, allowed, self._workload)
        self._check_generate_name(at(pod, "metadata", "generateName"))
        template = at(self._object, "spec", "template")
        if not self._asked.per_node:
            self._check_number()
            differs = difference_for_any_node(pod, template)
            if differs is not None:
                raise WrongError(f"{_POD} has other {differs} than the workload's template")
            return
        differs = difference(pod, template)
        if differs is not None and not any(_is_of(pod, revision) for revision in self._revisions):
            raise WrongError(f"{_POD} has other {differs} than the workload's template and its revisions")

    def _check_number(self) -> None:
        """Checks that the plan creates no more pods than there should be."""
        creates = sum(action.HasField("create_pod") for action in actions_of(self._plan))
        most = replicas_of(self._object)
        if 0 <= most < creates:
            raise WrongError(f"the plan creates {creates} pods, and spec.replicas is {most}")

    def _check_node_name(self, pod: Any) -> None:
        """Checks that each pod goes to the node of its action and nowhere else: exactly one term requires a node of
        that name.
        """
        pointers = self._plan.node_name_pointers
        if list(pointers) != [_NODE_NAME]:
            found = ", ".join(map(quoted, pointers))
            raise WrongError(f"node_name_pointers is [{found}], where {quoted(_NODE_NAME)} alone belongs")
        terms = at(pod, *NODE_TERMS)
        one_node = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [_value(terms)]}]}]
        if not same(terms, one_node):
            raise WrongError(
                f"{_POD} requires of its node {text(terms)}, where only the name of its action's node belongs"
            )

    def _check_generate_name(self, name: Any) -> None:
        own = self._workload.key.name
        # The name alone, if the dash would make it too long.
        whole = own if len(own) >= MAX_NAME else None
        if name not in (None, f"{own}-", whole):
            raise WrongError(
                f"{_POD} has the metadata.generateName {text(name)}, which is not {quoted(own)} and a dash"
            )

    def _check_revision(self, create: v1.CreateRevision) -> None:
        revision = parse_written(create.manifest, _REVISION)
        check_object(_REVISION, revision, "apps/v1", "ControllerRevision", ["data", "revision"])
        if not is_integer(at(revision, "revision")):
            raise WrongError(f"{_REVISION} has no number at revision")
        allowed = ["annotations", "labels", "name", "namespace", "ownerReferences"]
        check_metadata(_REVISION, revision, allowed, self._workload)
        own = self._workload.key.name
        if at(revision, "metadata", "name") != create.name or not is_of_revision(create.name, own):
            raise WrongError(
                f"the name {quoted(create.name)} of the revision is not the one of {_REVISION}, "
                f"or not derived from the workload's name {quoted(own)}"
            )
        template = normal(at(self._object, "spec", "template"))
        if not same(labels(at(revision, "metadata")), labels(template["metadata"])):
            raise WrongError(f"{_REVISION} has other labels than the workload's template")
        annotations = object_at(self._object, "metadata", "annotations")
        for key, value in object_at(revision, "metadata", "annotations").items():
            if key not in annotations or not same(annotations[key], value):
                raise WrongError(f"{_REVISION} has other annotations than the workload")
        _check_data(at(revision, "data"), template)


def check_metadata(what: str, manifest: Any, allowed: list[str], workload: Workload) -> None:
    """Checks that the object is in the workload's namespace, that the workload is its controller and only owner, and
    that labels are strings. Raises `WrongError`.
    """
    metadata, namespace = object_at(manifest, "metadata"), workload.key.namespace
    only(what, metadata, allowed, "metadata.")
    if metadata.get("namespace") not in (None, namespace):
        found = text(metadata["namespace"])
        raise WrongError(f"{what} is for namespace {found}, and the workload is in {quoted(namespace)}")
    owners = list_at(metadata, "ownerReferences")
    if len(owners) != 1 or not is_owner(owners[0], workload):
        raise WrongError(f"{what} does not have the workload as its controller and only owner")
    for key, value in object_at(metadata, "labels").items():
        if not isinstance(value, str):
            raise WrongError(f"{what} has label {key} {text(value)}, which is no string")


def _value(terms: Any) -> Any:
    """The first value of the first field of the first node selector term."""
    match terms:
        case [{"matchFields": [{"values": [value, *_]}, *_]}, *_]:
            return value
    return None


def _is_of(pod: Any, revision: bytes) -> bool:
    """Whether a pod has the template of a revision. A revision whose data cannot be read has no template."""
    try:
        template = at(parse(revision, "a revision"), "data", "spec", "template")
        return isinstance(template, dict) and difference(pod, template) is None
    except (WrongError, RecursionError):
        return False


def _check_data(data: Any, template: dict[str, Any]) -> None:
    """Checks that the data of a revision replaces the template by this one."""
    only(_REVISION, object_at(data), ["spec"], "data.")
    only(_REVISION, object_at(data, "spec"), ["template"], "data.spec.")
    made = normal(at(data, "spec", "template"))
    patch = made.pop("$patch", None)
    # A template with this member is written without it.
    template.pop("$patch", None)
    if patch != "replace" or not same(made, template):
        raise WrongError(f"{_REVISION} has other data than the workload's template")


def check_object(what: str, manifest: Any, version: str, kind: str, members: list[str]) -> None:
    """Checks the kind of a manifest, and that it has no other members. Raises `WrongError`."""
    only(what, object_at(manifest), ["apiVersion", "kind", "metadata", *members], "")
    for member, expected in (("apiVersion", version), ("kind", kind)):
        found = at(manifest, member)
        if found != expected:
            raise WrongError(f"{what} has {member} {text(found)}, where {expected} belongs")


def only(what: str, members: dict[str, Any], allowed: list[str], path: str) -> None:
    """Checks that an object in a manifest has no other members. Raises `WrongError`."""
    other = other_than(members, allowed)
    if other is not None:
        raise WrongError(f"{what} has {path}{other}, which a plan may not set")
