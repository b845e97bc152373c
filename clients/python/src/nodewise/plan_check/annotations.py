"""Checks what an object that the workload controls has in common with the workload: annotations, its number of pods,
and minReadySeconds.
"""

from typing import Any

from .values import WrongError, at, is_integer, object_at, same, text

_OWN_ANNOTATIONS = "deployment.kubernetes.io/"
"""The start of the annotations that a plan may set besides those of the workload."""
_MAX_REPLICAS = (1 << 31) - 1
_DEFAULT_REPLICAS = 1


def check_annotations(metadata: dict[str, Any], workload: Any, what: str) -> None:
    """Checks the annotations in metadata: some of the workload's, and such as only its controller sets. Raises
    `WrongError`.
    """
    if "annotations" not in metadata:
        return
    # A null in a patch would remove all annotations.
    annotations = metadata["annotations"]
    if not isinstance(annotations, dict):
        raise WrongError(f"{what} has annotations that are no object")
    own = object_at(workload, "metadata", "annotations")
    for key in sorted(annotations):
        value = annotations[key]
        is_own = key in own and same(own[key], value)
        if not isinstance(value, str) or not (key.startswith(_OWN_ANNOTATIONS) or is_own):
            raise WrongError(f"{what} sets annotation {key} to {text(value)}, which the workload has not")


def replicas_of(workload: Any) -> int:
    """spec.replicas of a workload, or its default."""
    replicas = at(workload, "spec", "replicas")
    return replicas if is_integer(replicas) else _DEFAULT_REPLICAS


def check_replicas(replicas: Any, what: str) -> None:
    """Checks a number of pods. Raises `WrongError`."""
    if not is_integer(replicas) or not 0 <= replicas <= _MAX_REPLICAS:
        raise WrongError(f"{what} sets spec.replicas to {text(replicas)}")


def check_min_ready_seconds(seconds: Any, workload: Any, what: str) -> None:
    """Checks that minReadySeconds is the workload's. An absent value is 0. Raises `WrongError`."""
    own = at(workload, "spec", "minReadySeconds")
    if not same(0 if seconds is None else seconds, 0 if own is None else own):
        raise WrongError(f"{what} sets spec.minReadySeconds to {text(seconds)}, which is not the workload's")
