"""What a replica must know for a request.

During an upgrade the replicas of a service differ. One that does not know a kind of workload refuses it, and one that
does not know a field of the snapshot ignores it, and its plan would be wrong. So a replica is asked only what it knows.
"""

import json
from collections.abc import Mapping
from typing import NamedTuple

import grpc

from .. import v1
from ..kinds import DAEMON_SET, DEPLOYMENT, REPLICA_SET, Kind
from ..sanitize import one_line
from .capabilities import Capabilities
from .fault import Failed
from .replica import Replica

ROLLOUT_POLICIES = "RolloutPolicies"
"""The name of the feature in `GetCapabilitiesResponse.features`."""

_KINDS: Mapping[str, Kind] = {"daemon_set": DAEMON_SET, "replica_set": REPLICA_SET, "deployment": DEPLOYMENT}
"""The kinds of workload by the members of a snapshot."""


class Needs(NamedTuple):
    """What a replica must know for a request."""

    kind: str | None
    """The kind of the workload; None for a DaemonSet, for which every version plans."""
    policies: bool
    """Whether the workload has a RolloutPolicy (L-44)."""

    @classmethod
    def of(cls, snapshot: v1.Snapshot) -> "Needs":
        """What a snapshot needs."""
        kind = kind_of(snapshot)
        return cls(
            None if kind is None or kind is DAEMON_SET else kind.name,
            kind is DAEMON_SET and bool(snapshot.workload.daemon_set.rollout_policies),
        )

    @property
    def are_none(self) -> bool:
        """Whether every version knows what is needed."""
        return self.kind is None and not self.policies

    def lacking(self, known: Capabilities, replica: Replica, snapshot: v1.Snapshot) -> Failed | None:
        """A failure if a replica does not know what is needed; None if it does."""
        if self.kind is not None and self.kind not in known.kinds:
            planned = ", ".join(known.kinds)
            reason = f"{replica}: its version plans for {planned}, and not for {self.kind}; upgrade it"
            return Failed(grpc.StatusCode.UNIMPLEMENTED, one_line(reason))
        if self.policies and ROLLOUT_POLICIES not in known.features:
            daemon_set = snapshot.workload.daemon_set
            reason = (
                f'{replica}: its version "{known.version}" does not know {ROLLOUT_POLICIES}, and DaemonSet '
                f"{_name_of(daemon_set.object)} has RolloutPolicy {_name_of(daemon_set.rollout_policies[0].object)}; "
                "upgrade it"
            )
            return Failed(grpc.StatusCode.UNIMPLEMENTED, one_line(reason), lacks=ROLLOUT_POLICIES)
        return None


def kind_of(snapshot: v1.Snapshot) -> Kind | None:
    """The kind of the workload of a snapshot; None if there is no workload."""
    return _KINDS.get(snapshot.workload.WhichOneof("kind") or "")


def object_of(snapshot: v1.Snapshot) -> bytes:
    """The workload of a snapshot as JSON."""
    workload = snapshot.workload
    named: bytes = getattr(workload, workload.WhichOneof("kind") or "daemon_set").object
    return named


def _name_of(served: bytes) -> str:
    """The namespace and the name of an object, for people."""
    try:
        metadata = json.loads(served)["metadata"]
        return f"{metadata.get('namespace')}/{metadata.get('name')}"
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return "(unreadable)"
