"""Checks what a plan says about RolloutPolicies: that it heeds those that were sent, what it writes to them, and whom
it asks.

A policy is written by whoever owns a namespace, and the executor writes and calls with its own rights. So a plan may
write only the status of a policy that was sent, in the version that was sent, and may ask only those whom such a policy
names.
"""

from collections.abc import Iterator
from typing import TypeAlias

import msgspec

from .. import v1
from ..kinds import Resource
from ..policies import RolloutPolicy
from . import names, policy_spec
from .asked import Asked, ViolationError
from .patches import check_objects, only, parse_patch, type_name
from .policy_spec import Analysis, RolloutPolicySpec, Stage
from .values import WrongError, object_at, quoted

_MAX_WAVE_VALUE = 63
"""Longest value in the name of a wave: that of a label."""
_BEFORE_POLICIES = {v1.PHASE_KIND_REVISIONS, v1.PHASE_KIND_CLAIMS, v1.PHASE_KIND_EVENTS}
"""The phases that may come before that of the policies."""

_Provider: TypeAlias = v1.PrometheusQuery | v1.WebhookCall | v1.VerdictCall


def is_of_policy(patch: v1.PatchObject) -> bool:
    """Whether a patch is of a RolloutPolicy."""
    named = patch.resource
    return (named.group, named.version, named.resource) == Resource.POLICIES.identity


def check_confirmation(plan: v1.Plan, asked: Asked) -> None:
    """Checks that the plan heeds the policies that were sent. An older service does not know policies, and would roll
    out without them. Raises `WrongError`.
    """
    if list(plan.rollout_policy_uids) == [policy.uid for policy in asked.policies]:
        return
    if not asked.policies:
        raise WrongError("it heeds RolloutPolicies, and none was sent")
    sent = ", ".join(policy.name for policy in asked.policies)
    raise WrongError(
        f"it does not confirm each RolloutPolicy that was sent ({sent}): a service that is too old for policies "
        "ignores them, and nothing is rolled out without them"
    )


def check_phases(plan: v1.Plan, asked: Asked) -> None:
    """Checks that statuses of policies are written before what depends on them, and that measurements come last. Raises
    `ViolationError`.
    """
    before: set[v1.PhaseKind.ValueType] = set()
    for index, phase in enumerate(plan.phases):
        is_special = phase.kind in (v1.PHASE_KIND_ROLLOUT_POLICIES, v1.PHASE_KIND_ANALYSIS)
        if is_special and not asked.has_policies:
            raise ViolationError(f"a plan for a {asked.kind} has no phase {_name(phase.kind)}")
        is_last = index == len(plan.phases) - 1
        is_early = phase.kind == v1.PHASE_KIND_ROLLOUT_POLICIES and not before <= _BEFORE_POLICIES
        if is_early or (phase.kind == v1.PHASE_KIND_ANALYSIS and not is_last):
            raise ViolationError(f"its phase {_name(phase.kind)} is not in its place")
        before.add(phase.kind)
        for action in _actions(phase):
            belongs = _phase_of(action)
            if phase.kind != belongs and (is_special or belongs is not None):
                raise ViolationError(f"it does not belong in the phase {_name(phase.kind)}", action)


def _actions(phase: v1.Phase) -> Iterator[v1.Action]:
    return (action for batch in phase.batches for action in batch.actions)


def _phase_of(action: v1.Action) -> v1.PhaseKind.ValueType | None:
    """The phase of an action for policies; None for other actions."""
    if action.HasField("patch_object") and is_of_policy(action.patch_object):
        return v1.PHASE_KIND_ROLLOUT_POLICIES
    return v1.PHASE_KIND_ANALYSIS if action.HasField("measure") else None


def _name(kind: v1.PhaseKind.ValueType) -> str:
    known = kind if kind in v1.PhaseKind.values() else v1.PHASE_KIND_UNSPECIFIED
    return v1.PhaseKind.Name(known).removeprefix("PHASE_KIND_")


def check_patch(patch: v1.PatchObject, asked: Asked) -> None:
    """Checks the patch of a policy. Raises `WrongError`."""
    if not patch.HasField("object"):
        raise WrongError("it names no object")
    policy = _sent(asked, patch.object.name, patch.object.uid)
    if patch.subresource != "status":
        raise WrongError(
            f"it patches RolloutPolicy {policy.name} with the subresource {quoted(patch.subresource)}, and a plan may "
            "patch its status only"
        )
    if patch.patch_type != v1.PATCH_TYPE_MERGE:
        found, belongs = type_name(patch.patch_type), type_name(v1.PATCH_TYPE_MERGE)
        raise WrongError(f"its patch_type is {found}, where {belongs} belongs")
    if patch.claim != v1.CLAIM_UNSPECIFIED:
        raise WrongError(f"it claims RolloutPolicy {policy.name}")
    if patch.failure_pointer:
        raise WrongError("it has a failure_pointer, and the status of a RolloutPolicy has no failure")
    body = parse_patch(patch.patch, patch.object.uid)
    only(body, ["metadata", "status"], "")
    check_objects(body)
    metadata = object_at(body, "metadata")
    only(metadata, ["uid", "resourceVersion"], "metadata.")
    # Applied to another version, the patch could undo what somebody else has decided.
    if metadata.get("resourceVersion") != policy.resource_version:
        raise WrongError(f"its patch does not carry the resourceVersion {quoted(policy.resource_version)}")


class Measurements:
    """The measurements that one plan asks for."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._ids: set[bytes] = set()
        self._specs: dict[str, RolloutPolicySpec] = {}
        """The specs of the policies that are asked about, by uid. A plan may ask for many measurements of one."""

    def check(self, action: v1.Action) -> None:
        """Checks one action after the other. Raises `WrongError`."""
        if not action.HasField("measure"):
            return
        self._check_measure(action.measure)
        of = action.measure.id.SerializeToString(deterministic=True)
        if of in self._ids:
            raise WrongError("the plan asks for the measurement twice")
        self._ids.add(of)

    def _check_measure(self, measure: v1.Measure) -> None:
        if not measure.HasField("id"):
            raise WrongError("it has no id")
        of = measure.id
        if not of.revision_hash or not names.is_label_value(of.revision_hash):
            raise WrongError(f"it is about the revision {quoted(of.revision_hash)}, and no label has such a value")
        policy = _sent(self._asked, measure.policy_name, of.policy_uid)
        stages = (stage for stage in self._spec(policy).stages if _is_of_stage(of.stage, stage))
        check = next((check for stage in stages for check in stage.analysis if check.name == of.check), None)
        if check is None:
            raise WrongError(f"RolloutPolicy {policy.name} has no check {quoted(of.check)} in stage {quoted(of.stage)}")
        provider = measure.WhichOneof("provider")
        found = None if provider is None else getattr(measure, provider)
        if found != _provider(check) or measure.credential != (check.credential or ""):
            raise WrongError(f"it asks somebody else than check {of.check} of RolloutPolicy {policy.name}")

    def _spec(self, policy: RolloutPolicy) -> RolloutPolicySpec:
        spec = self._specs.get(policy.uid)
        if spec is None:
            spec = self._specs[policy.uid] = _spec(policy)
        return spec


def _sent(asked: Asked, name: str, uid: str) -> RolloutPolicy:
    """The policy of this name and uid that was sent."""
    for policy in asked.policies:
        if (policy.name, policy.uid) == (name, uid):
            return policy
    raise WrongError(f"it is about RolloutPolicy {quoted(name)} with uid {quoted(uid)}, which was not sent")


def _spec(policy: RolloutPolicy) -> RolloutPolicySpec:
    try:
        return policy_spec.read(policy.object)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise WrongError(f"the spec of RolloutPolicy {policy.name} cannot be read: {error}") from None


def _is_of_stage(name: str, stage: Stage) -> bool:
    """Whether this is the name of a stage, or of a wave of it."""
    prefix = f"{stage.name}/"
    is_wave = stage.group_by is not None and name.startswith(prefix)
    return name == stage.name or (is_wave and len(name.removeprefix(prefix).encode()) <= _MAX_WAVE_VALUE)


def _provider(check: Analysis) -> _Provider | None:
    """Who is asked for a check. None if the check does not name exactly one."""
    match check.prometheus, check.webhook, check.grpc:
        case policy_spec.PrometheusQuery(address, query), None, None:
            return v1.PrometheusQuery(address=address, query=query)
        case None, policy_spec.Webhook(url), None:
            return v1.WebhookCall(url=url)
        case None, None, policy_spec.GrpcVerdict(address, tls):
            return v1.VerdictCall(address=address, tls=tls is not False)
    return None
