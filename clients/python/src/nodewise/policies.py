"""RolloutPolicies as the executor caches them.

Policies are sent as they are served. Of the spec only this is read: which workloads a policy may target, and which
labels of nodes its stages name. What a policy means is the service's to say.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from . import convert
from .convert import ConversionError
from .kinds import OBJECT_KINDS, Resource
from .label_keys import LabelKeys
from .objects import Workload, identity_of, metadata_of
from .selector import Selector

_LABEL_PART = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_LABEL_PREFIX = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")


@dataclass(frozen=True, slots=True)
class Targets:
    """Which workloads of its namespace a policy targets: those of these names, or those that the selector selects. If
    both are None it cannot be told, and any of them may be meant: no rollout may go on without the policy that was
    written for it (L-2).
    """

    names: frozenset[str] | None = None
    selector: Selector | None = None

    @classmethod
    def of(cls, targets: Any) -> "Targets":
        """Reads `spec.targets`."""
        # A member of a newer version may mean other workloads.
        if not isinstance(targets, dict) or not targets.keys() <= {"names", "selector"}:
            return cls()
        names, selector = targets.get("names") or [], targets.get("selector")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            return cls()
        if names and selector is None:
            return cls(names=frozenset(names))
        parsed = Selector.parse(selector)
        is_clear = not names and _has_label_syntax(parsed)
        return cls(selector=parsed) if is_clear else cls()

    @property
    def are_unknown(self) -> bool:
        """Whether it cannot be told which workloads are meant."""
        return self.names is None and self.selector is None

    def may_include(self, workload: Workload) -> bool:
        """Whether a workload of the namespace may be meant."""
        if self.names is not None:
            return workload.name in self.names
        return self.selector is None or self.selector.selects(workload.labels)


@dataclass(frozen=True, slots=True)
class RolloutPolicy:
    """A RolloutPolicy of nodewise.dev/v1alpha1."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    created: tuple[int, int] | None
    """metadata.creationTimestamp, in seconds and nanoseconds."""
    targets: Targets
    label_keys: LabelKeys
    """The keys of node labels that the stages name."""
    recorded: tuple[tuple[str, str], ...]
    """name and uid of the entries of status.targets."""
    object: bytes = field(repr=False)

    @classmethod
    def read(cls, served: convert.KubernetesObject) -> "RolloutPolicy":
        """Reads a policy. One whose spec cannot be read is kept: it may target every workload of its namespace."""
        of = Resource.POLICIES
        text, members = convert.served_with_members(served, OBJECT_KINDS[of], of.api_version)
        metadata = metadata_of(members)
        identity = identity_of(metadata)
        if not identity.uid:
            raise ConversionError("metadata.uid", "is missing")
        created = convert._Meta({"metadata": metadata}).time("creationTimestamp")
        try:
            spec = msgspec.json.decode(members.get("spec", b"null"))
        except (msgspec.MsgspecError, RecursionError):
            spec = None
        spec = spec if isinstance(spec, dict) else {}
        return cls(
            namespace=identity.namespace,
            name=identity.name,
            uid=identity.uid,
            resource_version=identity.resource_version,
            created=None if created is None else (created.seconds, created.nanos),
            targets=Targets.of(spec.get("targets")),
            label_keys=LabelKeys(node_labels=frozenset(_node_labels(spec.get("stages")))),
            recorded=tuple(_recorded(members.get("status", b"null"))),
            object=text,
        )

    def may_target(self, workload: Workload) -> bool:
        """Whether the policy targets a workload, or may target it."""
        return workload.namespace == self.namespace and self.targets.may_include(workload)


def _has_label_syntax(selector: Selector) -> bool:
    """Whether a selector is valid, and a label can have each of its keys and values. The service refuses others."""
    return selector.requirements is not None and all(
        _is_label_key(requirement.key) and all(_LABEL_PART.fullmatch(value) for value in requirement.values)
        for requirement in selector.requirements
    )


def _is_label_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    has_prefix = not slash or (len(prefix) <= 253 and _LABEL_PREFIX.fullmatch(prefix) is not None)
    return has_prefix and bool(name) and _LABEL_PART.fullmatch(name) is not None


def _recorded(status: bytes) -> Iterator[tuple[str, str]]:
    """Name and uid of the entries of status.targets, as far as they can be read."""
    try:
        read = msgspec.json.decode(status)
    except (msgspec.MsgspecError, RecursionError):
        return
    targets = read.get("targets") if isinstance(read, dict) else None
    for target in targets if isinstance(targets, list) else ():
        if not isinstance(target, dict):
            continue
        name, uid = target.get("name"), target.get("uid")
        if isinstance(name, str) and isinstance(uid, str):
            yield name, uid


def _node_labels(stages: Any) -> Iterator[str]:
    """The keys of node labels that stages name."""
    for stage in stages if isinstance(stages, list) else ():
        if not isinstance(stage, dict):
            continue
        yield from Selector.parse(stage.get("nodeSelector")).keys()
        yield from (key for key in (stage.get("spreadBy"), stage.get("groupBy")) if isinstance(key, str))
