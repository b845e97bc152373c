"""The spec of a RolloutPolicy, as far as it has to be valid: the check must not trust a policy that it cannot read.

Members that are not known are ignored, as by an apiserver that has a newer schema.
"""

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

Count: TypeAlias = Annotated[int, Meta(ge=0, le=(1 << 32) - 1)]
IntOrPercent: TypeAlias = (
    Annotated[int, Meta(ge=0, le=(1 << 31) - 1)] | Annotated[str, Meta(pattern=r"^(100|[1-9]?[0-9])%\Z")]
)
Duration: TypeAlias = Annotated[str, Meta(pattern=r"^(?=.)([0-9]{1,6}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?\Z")]
TimeOfDay: TypeAlias = Annotated[str, Meta(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]\Z")]


class Expression(msgspec.Struct):
    """A requirement of a label selector."""

    key: str
    operator: str
    values: list[str] | None = None


class LabelSelector(msgspec.Struct, rename="camel"):
    """A metav1 LabelSelector."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[Expression] | None = None


class PrometheusQuery(msgspec.Struct):
    """A query of a Prometheus."""

    address: str
    query: str


class Webhook(msgspec.Struct):
    """A call of an HTTP server."""

    url: str


class GrpcVerdict(msgspec.Struct):
    """A call of a VerdictService."""

    address: str
    tls: bool | None = None


class Analysis(msgspec.Struct, rename="camel"):
    """A check of a stage."""

    name: str
    when: Literal["WhileSoaking", "BeforeStage"] | None = None
    prometheus: PrometheusQuery | None = None
    webhook: Webhook | None = None
    grpc: GrpcVerdict | None = None
    credential: str | None = None
    success_condition: str | None = None
    interval: Duration | None = None
    count: Count | None = None
    failure_limit: Count | None = None
    inconclusive_limit: Count | None = None
    consecutive_error_limit: Count | None = None


class Stage(msgspec.Struct, rename="camel"):
    """A stage of a rollout."""

    name: str
    replicas: IntOrPercent | None = None
    node_selector: LabelSelector | None = None
    spread_by: str | None = None
    group_by: str | None = None
    max_unavailable: IntOrPercent | None = None
    max_surge: IntOrPercent | None = None
    soak: Duration | None = None
    analysis: list[Analysis] = []
    approval: Literal["Required"] | None = None


class Targets(msgspec.Struct):
    """Which workloads the policy targets."""

    names: list[str] = []
    selector: LabelSelector | None = None


class Nodes(msgspec.Struct, rename="camel"):
    """What becomes of nodes that are not well."""

    not_ready: Literal["Exempt", "Count"] | None = None
    max_exempt: IntOrPercent | None = None
    in_maintenance: Literal["Exempt", "First", "Count"] | None = None


class Pace(msgspec.Struct):
    """How many nodes are begun in an interval."""

    nodes: Count
    interval: Duration


class Window(msgspec.Struct, rename="camel"):
    """When pods that run may be replaced."""

    days: list[Literal["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]] = []
    start_time: TimeOfDay | None = None
    end_time: TimeOfDay | None = None
    time_zone: str | None = None


class RolloutPolicySpec(msgspec.Struct, rename="camel"):
    """The spec."""

    targets: Targets
    paused: bool | None = None
    partition: IntOrPercent | None = None
    stages: list[Stage] = []
    nodes: Nodes | None = None
    unadmitted: Literal["Stable", "Update"] | None = None
    order: Literal["Name", "OldestPod"] | None = None
    pace: Pace | None = None
    disruption: Literal["Delete", "Evict"] | None = None
    windows: list[Window] = []
    progress_deadline_seconds: Count | None = None
    max_restarts: Count | None = None
    failure_threshold: IntOrPercent | None = None
    on_failure: Literal["Rollback", "Pause"] | None = None


class _Object(msgspec.Struct):
    spec: RolloutPolicySpec


def read(policy: bytes) -> RolloutPolicySpec:
    """Reads the spec of a policy from its JSON. Raises `msgspec.MsgspecError` and `RecursionError`."""
    return msgspec.json.decode(policy, type=_Object).spec
