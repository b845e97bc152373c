"""Checks the ReplicaSets that the plan of a Deployment creates: of its template, with the label of its hash."""

from typing import Any

from .. import v1
from ..kinds import TEMPLATE_HASH_LABEL
from ..objects import Workload
from . import names, sizes
from .annotations import check_annotations, check_min_ready_seconds, check_replicas
from .manifests import check_metadata, check_object, only
from .templates import without_hash
from .values import WrongError, at, object_at, parse_written, quoted, same

_WHAT = "its manifest"


def check(create: v1.CreateObject, workload_object: Any, workload: Workload) -> None:
    """Checks a manifest. `workload_object` is the JSON of the workload. Raises `WrongError`."""
    found = parse_written(create.manifest, _WHAT)
    check_object(_WHAT, found, "apps/v1", "ReplicaSet", ["spec"])
    check_metadata(_WHAT, found, ["annotations", "labels", "name", "namespace", "ownerReferences"], workload)
    check_annotations(object_at(found, "metadata"), workload_object, _WHAT)
    own_name = workload.key.name
    hash_of_name = names.template_hash(create.name, own_name)
    if hash_of_name is None or at(found, "metadata", "name") != create.name:
        raise WrongError(
            f"the name {quoted(create.name)} of the ReplicaSet is not the one of {_WHAT}, "
            f"or not derived from the workload's name {quoted(own_name)}"
        )
    spec = object_at(found, "spec")
    only(_WHAT, spec, ["minReadySeconds", "replicas", "selector", "template"], "spec.")
    check_replicas(spec.get("replicas"), _WHAT)
    size, most = spec["replicas"], sizes.most(workload_object)
    if size > most:
        raise WrongError(f"{_WHAT} sets spec.replicas to {size}, and {most} is the most")
    check_min_ready_seconds(spec.get("minReadySeconds"), workload_object, _WHAT)
    own_template, own_selector = (at(workload_object, "spec", member) for member in ("template", "selector"))
    selector = object_at(spec, "selector")
    only(_WHAT, selector, ["matchExpressions", "matchLabels"], "spec.selector.")
    own_labels = at(own_template, "metadata", "labels")
    for labels, own, of in (
        (at(found, "metadata", "labels"), own_labels, "labels"),
        (at(spec, "template", "metadata", "labels"), own_labels, "labels in its template"),
        (selector.get("matchLabels"), at(own_selector, "matchLabels"), "labels in its selector"),
    ):
        wrong = _wrong_labels(labels, own, hash_of_name)
        if wrong is not None:
            raise WrongError(f"{_WHAT} has {wrong} {of}")
    if not same(selector.get("matchExpressions"), at(own_selector, "matchExpressions")):
        raise WrongError(f"{_WHAT} has another selector than the workload")
    if not same(without_hash(spec.get("template")), without_hash(own_template)):
        raise WrongError(f"{_WHAT} has another template than the workload")


def _wrong_labels(labels: Any, own: Any, hash_of_name: str) -> str | None:
    """What is wrong with labels, which must be the workload's and that of the hash; None if nothing is."""
    of, expected = dict(object_at(labels)), dict(object_at(own))
    expected.pop(TEMPLATE_HASH_LABEL, None)
    if of.pop(TEMPLATE_HASH_LABEL, None) != hash_of_name:
        return "not the hash of its name among the"
    return None if same(of, expected) else "other than the workload's"
