//! Checks what a plan says about RolloutPolicies: that it heeds those that were sent, what it writes to them, and whom it asks.
//!
//! A policy is written by whoever owns a namespace, and the executor writes and calls with its own rights. So a plan may write only
//! the status of a policy that was sent, in the version that was sent, and may ask only those whom such a policy names.

use std::collections::{HashMap, HashSet, hash_map::Entry};

use nodewise_api::{Analysis, RolloutPolicySpec, Stage};
use nodewise_projection::{RolloutPolicy, is_label_value};
use nodewise_proto::v1::{self, Claim, PatchObject, PatchType, PhaseKind, action::Kind, measure::Provider};
use serde::Deserialize;

use super::patches::{are_objects, members, only, parse_patch};
use super::{RequestContext, Violation, kinds};

/// Checks that the plan heeds the policies that were sent. An older service does not know policies, and would roll out without them
///.
pub(super) fn check_confirmation(plan: &v1::Plan, request: &RequestContext<'_>) -> Result<(), Violation> {
    let confirmed = plan.rollout_policy_uids.iter().map(String::as_str);
    if confirmed.eq(request.policies.iter().map(|policy| &*policy.uid)) {
        return Ok(());
    }
    if request.policies.is_empty() {
        return Err(Violation::of_plan("it heeds RolloutPolicies, and none was sent"));
    }
    let names: Vec<_> = request.policies.iter().map(|policy| &*policy.name).collect();
    let names = names.join(", ");
    Err(Violation::of_plan(format!(
        "it does not confirm each RolloutPolicy that was sent ({names}): a service that is too old for policies ignores them, and \
         nothing is rolled out without them"
    )))
}

/// Longest value in the name of a wave: that of a label.
const MAX_WAVE_VALUE: usize = 63;

/// The phases that may come before that of the policies.
const BEFORE_POLICIES: [PhaseKind; 3] = [PhaseKind::Revisions, PhaseKind::Claims, PhaseKind::Events];

/// Checks that statuses of policies are written before what depends on them, and that measurements come last.
pub(super) fn check_phases(plan: &v1::Plan, request: &RequestContext<'_>) -> Result<(), Violation> {
    let last = plan.phases.len().saturating_sub(1);
    for (index, phase) in plan.phases.iter().enumerate() {
        let kind = phase.kind();
        let is_special = matches!(kind, PhaseKind::RolloutPolicies | PhaseKind::Analysis);
        let name = kind.as_str_name().trim_start_matches("PHASE_KIND_");
        if is_special && !request.rules.has_policies {
            let of = request.workload.key.kind;
            return Err(Violation::of_plan(format!(
                "a plan for a {of} has no phase {name}"
            )));
        }
        let is_in_place = match kind {
            PhaseKind::RolloutPolicies => {
                let mut before = plan.phases[..index].iter();
                before.all(|phase| BEFORE_POLICIES.contains(&phase.kind()))
            }
            PhaseKind::Analysis => index == last,
            _ => true,
        };
        if !is_in_place {
            return Err(Violation::of_plan(format!(
                "its phase {name} is not in its place"
            )));
        }
        let actions = phase.batches.iter().flat_map(|batch| &batch.actions);
        for action in actions {
            let belongs = match &action.kind {
                Some(Kind::PatchObject(patch)) if kinds::is_of_policy(patch) => PhaseKind::RolloutPolicies,
                Some(Kind::Measure(_)) => PhaseKind::Analysis,
                _ if is_special => PhaseKind::Unspecified,
                _ => continue,
            };
            if kind != belongs {
                return Err(Violation::of(
                    action,
                    format!("it does not belong in the phase {name}"),
                ));
            }
        }
    }
    Ok(())
}

/// Checks the patch of a policy.
pub(super) fn check_patch(patch: &PatchObject, request: &RequestContext<'_>) -> Result<(), String> {
    let reference = patch.object.as_ref().ok_or("it names no object")?;
    let policy = sent(request, &reference.name, &reference.uid)?;
    if patch.subresource != "status" {
        return Err(format!(
            "it patches RolloutPolicy {} with the subresource {:?}, and a plan may patch its status only",
            policy.name, patch.subresource
        ));
    }
    if patch.patch_type() != PatchType::Merge {
        let found = patch.patch_type().as_str_name();
        return Err(format!(
            "its patch_type is {found}, where {} belongs",
            PatchType::Merge.as_str_name()
        ));
    }
    if patch.claim != i32::from(Claim::Unspecified) {
        return Err(format!("it claims RolloutPolicy {}", policy.name));
    }
    if !patch.failure_pointer.is_empty() {
        return Err("it has a failure_pointer, and the status of a RolloutPolicy has no failure".to_owned());
    }
    let body = parse_patch(&patch.patch, reference)?;
    only(&body, &["metadata", "status"], "")?;
    are_objects(&body)?;
    let metadata = members(&body, "metadata");
    only(metadata, &["uid", "resourceVersion"], "metadata.")?;
    let version = metadata
        .get("resourceVersion")
        .and_then(serde_json::Value::as_str);
    // Applied to another version, the patch could undo what somebody else has decided.
    if version != Some(&policy.resource_version) {
        return Err(format!(
            "its patch does not carry the resourceVersion {:?}",
            policy.resource_version
        ));
    }
    Ok(())
}

/// Checks the measurements that the plan asks for.
pub(super) fn check(plan: &v1::Plan, request: &RequestContext<'_>) -> Result<(), Violation> {
    let (mut asked, mut specs) = (HashSet::new(), Specs::default());
    for action in plan.actions() {
        let Some(Kind::Measure(measure)) = &action.kind else {
            continue;
        };
        let violation = |what| Violation::of(action, what);
        let id = check_measure(measure, request, &mut specs).map_err(violation)?;
        let parts = (&id.policy_uid, &id.revision_hash, &id.stage, &id.check, id.number);
        if !asked.insert(parts) {
            return Err(violation("the plan asks for the measurement twice".to_owned()));
        }
    }
    Ok(())
}

/// Checks one measurement, and returns its id.
fn check_measure<'m, 'r>(
    measure: &'m v1::Measure,
    request: &RequestContext<'r>,
    specs: &mut Specs<'r>,
) -> Result<&'m v1::MeasurementId, String> {
    let id = measure.id.as_ref().ok_or("it has no id")?;
    if id.revision_hash.is_empty() || !is_label_value(&id.revision_hash) {
        return Err(format!(
            "it is about the revision {:?}, and no label has such a value",
            id.revision_hash
        ));
    }
    let policy = sent(request, &measure.policy_name, &id.policy_uid)?;
    let spec = specs.of(policy)?;
    let mut checks = (spec.stages.iter())
        .filter(|stage| is_of_stage(&id.stage, stage))
        .flat_map(|stage| &stage.analysis);
    let Some(check) = checks.find(|check| check.name == id.check) else {
        return Err(format!(
            "RolloutPolicy {} has no check {:?} in stage {:?}",
            policy.name, id.check, id.stage
        ));
    };
    if measure.provider.as_ref() != provider(check).as_ref()
        || measure.credential != check.credential.as_deref().unwrap_or_default()
    {
        return Err(format!(
            "it asks somebody else than check {} of RolloutPolicy {}",
            id.check, policy.name
        ));
    }
    Ok(id)
}

/// The policy of this name and uid that was sent.
fn sent<'a>(request: &RequestContext<'a>, name: &str, uid: &str) -> Result<&'a RolloutPolicy, String> {
    let mut sent = request.policies.iter();
    let policy = sent.find(|policy| policy.name == name && policy.uid == uid);
    policy
        .map(|policy| &**policy)
        .ok_or_else(|| format!("it is about RolloutPolicy {name:?} with uid {uid:?}, which was not sent"))
}

/// The specs of policies, by uid. Each is read once for a plan: a policy may have 1 MiB, and a plan many measurements for it.
#[derive(Default)]
struct Specs<'r> {
    read: HashMap<&'r str, RolloutPolicySpec>,
}

impl<'r> Specs<'r> {
    fn of(&mut self, policy: &'r RolloutPolicy) -> Result<&RolloutPolicySpec, String> {
        Ok(match self.read.entry(&policy.uid) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(read_spec(policy)?),
        })
    }
}

fn read_spec(policy: &RolloutPolicy) -> Result<RolloutPolicySpec, String> {
    #[derive(Deserialize)]
    struct Object {
        spec: RolloutPolicySpec,
    }
    let object: Object = serde_json::from_slice(&policy.object).map_err(|error| {
        format!(
            "the spec of RolloutPolicy {} cannot be read: {error}",
            policy.name
        )
    })?;
    Ok(object.spec)
}

/// Whether this is the name of a stage, or of a wave of it.
fn is_of_stage(name: &str, stage: &Stage) -> bool {
    let is_wave = || {
        let value = name
            .strip_prefix(&*stage.name)
            .and_then(|rest| rest.strip_prefix('/'));
        stage.group_by.is_some() && value.is_some_and(|value| value.len() <= MAX_WAVE_VALUE)
    };
    name == stage.name || is_wave()
}

/// Who is asked for a check.
fn provider(check: &Analysis) -> Option<Provider> {
    match (&check.prometheus, &check.webhook, &check.grpc) {
        (Some(prometheus), None, None) => Some(Provider::Prometheus(v1::PrometheusQuery {
            address: prometheus.address.clone(),
            query: prometheus.query.clone(),
        })),
        (None, Some(webhook), None) => Some(Provider::Webhook(v1::WebhookCall {
            url: webhook.url.clone(),
        })),
        (None, None, Some(grpc)) => Some(Provider::VerdictService(v1::VerdictCall {
            address: grpc.address.clone(),
            tls: grpc.tls.unwrap_or(true),
        })),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_spec_is_read_once() {
        let policy = |uid: &str| {
            let object =
                json!({"metadata": {"name": "p", "uid": uid}, "spec": {"targets": {"names": ["agent"]}}});
            RolloutPolicy::from_json(&object).expect("a policy")
        };
        let [policy, other] = ["u1", "u2"].map(policy);
        let mut specs = Specs::default();
        let mut read = |policy| std::ptr::from_ref(specs.of(policy).expect("a spec"));
        let first = read(&policy);
        assert_eq!(read(&policy), first);
        assert_ne!(read(&other), first);
    }
}
