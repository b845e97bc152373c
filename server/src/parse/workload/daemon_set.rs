//! Parses a DaemonSet.

use k8s_openapi::{
    api::{
        apps::v1::{DaemonSetUpdateStrategy, RollingUpdateDaemonSet},
        core::v1 as core,
    },
    apimachinery::pkg::{apis::meta::v1::LabelSelector, util::intstr},
};
use nodewise_planner::{
    daemonset::{
        DaemonSet, NodeSelectorRequirement, NodeSelectorTerm, RollingUpdate, RolloutInputs, Scheduling,
        Toleration, UpdateStrategy, overhead::Candidate,
    },
    json::Json,
    plan::DaemonSetStatus,
    snapshot::Labels,
};
use nodewise_proto::{v1, workload::DAEMON_SET};
use serde::Deserialize;
use std::collections::BTreeMap;

use super::{
    super::{
        Context, json,
        problems::{Path, Problems},
    },
    measurement,
    object::{self, Read},
    rollout_policy,
};
use crate::{limits::Limits, refusal::Refusal};

/// The most policies, measurements and hosts of a request.
const MOST_POLICIES: usize = 100;
const MOST_MEASUREMENTS: usize = 1_000;
const MOST_HOSTS: usize = 100;
/// The most entries of a policy's status that may be of DaemonSets that it does not target any more.
const MOST_FORMER_TARGETS: usize = 1_000;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    selector: Option<LabelSelector>,
    #[serde(default)]
    template: Json,
    update_strategy: Option<DaemonSetUpdateStrategy>,
    min_ready_seconds: Option<i32>,
    revision_history_limit: Option<i32>,
}

/// The fields of the status that the planner compares.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Counts {
    current_number_scheduled: Option<i32>,
    number_misscheduled: Option<i32>,
    desired_number_scheduled: Option<i32>,
    number_ready: Option<i32>,
    updated_number_scheduled: Option<i32>,
    number_available: Option<i32>,
    number_unavailable: Option<i32>,
    observed_generation: Option<i64>,
    collision_count: Option<i32>,
}

/// The fields of a pod spec that decide on which nodes pods run.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodSpec {
    node_name: Option<String>,
    node_selector: Option<BTreeMap<String, String>>,
    affinity: Option<Affinity>,
    tolerations: Option<Vec<core::Toleration>>,
    host_network: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Affinity {
    node_affinity: Option<NodeAffinity>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeAffinity {
    required_during_scheduling_ignored_during_execution: Option<core::NodeSelector>,
}

#[derive(Deserialize)]
struct Template {
    spec: Option<PodSpec>,
}

/// Reads the DaemonSet at `at`.
pub(super) fn read(
    message: &v1::DaemonSet,
    parent: &Path<'_>,
    context: &mut Context<'_>,
) -> Result<Option<DaemonSet>, Refusal> {
    for (field, count, most) in [
        ("rollout_policies", message.rollout_policies.len(), MOST_POLICIES),
        ("measurements", message.measurements.len(), MOST_MEASUREMENTS),
        ("analysis_hosts", message.analysis_hosts.len(), MOST_HOSTS),
    ] {
        Context::bound(&parent.field(field), count, most)?;
    }
    let at_policies = parent.field("rollout_policies");
    for (index, policy) in message.rollout_policies.iter().enumerate() {
        let at = at_policies.index(index);
        Context::bound(
            &at.field("former_target_uids"),
            policy.former_target_uids.len(),
            MOST_FORMER_TARGETS,
        )?;
    }
    Ok(daemon_set(message, parent, &mut context.problems))
}

fn daemon_set(message: &v1::DaemonSet, parent: &Path<'_>, problems: &mut Problems) -> Option<DaemonSet> {
    let at = parent.field("object");
    let Read { head, spec, status } =
        object::read::<Spec, Counts>(&message.object, DAEMON_SET, &at, problems)?;
    let scheduling = scheduling(&spec.template, &at, problems);
    let selector = object::selector(spec.selector, head.deleting, &at, problems);
    let (name, uid) = head.identity?;
    Some(DaemonSet {
        name,
        uid,
        namespace: head.namespace,
        resource_version: head.resource_version,
        generation: head.generation,
        deleting: head.deleting,
        annotations: head.annotations,
        selector,
        template: spec.template,
        scheduling: scheduling?,
        strategy: strategy(spec.update_strategy),
        min_ready_seconds: spec.min_ready_seconds.unwrap_or_default(),
        revision_history_limit: spec.revision_history_limit,
        collision_count: status.collision_count,
        status: counts(&status),
        rollout: rollout(message, head.labels, parent, problems),
    })
}

/// What progressive rollouts of the DaemonSet depend on.
fn rollout(message: &v1::DaemonSet, labels: Labels, at: &Path<'_>, problems: &mut Problems) -> RolloutInputs {
    let mut inputs = RolloutInputs {
        labels,
        ..RolloutInputs::default()
    };
    let at_policies = at.field("rollout_policies");
    for (index, policy) in message.rollout_policies.iter().enumerate() {
        let policy = rollout_policy::read(
            policy,
            &message.analysis_hosts,
            &at_policies.index(index),
            problems,
        );
        inputs.policies.extend(policy);
    }
    let at_measurements = at.field("measurements");
    for (index, made) in message.measurements.iter().enumerate() {
        let made = measurement::read(made, &at_measurements.index(index), problems);
        inputs.measurements.extend(made);
    }
    inputs
}

/// The parts of a DaemonSet that decide where its pods run and what they request.
pub(in crate::parse) struct PodSource {
    pub(in crate::parse) namespace: String,
    pub(in crate::parse) name: String,
    /// Where its pods run. `None` if there are errors, which are noted.
    pub(in crate::parse) candidate: Option<Candidate>,
    /// spec.template as served.
    pub(in crate::parse) template: Json,
}

/// Reads a DaemonSet that need not be in a cluster. `None` if it cannot be read at all, which is noted.
pub(in crate::parse) fn read_template(
    object: &[u8],
    at: &Path<'_>,
    problems: &mut Problems,
) -> Option<PodSource> {
    let object::Incomplete {
        namespace,
        name,
        deleting,
        spec,
    } = object::read_incomplete::<Spec>(object, DAEMON_SET, at, problems)?;
    let scheduling = scheduling(&spec.template, at, problems);
    let selector = object::selector(spec.selector, deleting, at, problems);
    let candidate = scheduling
        .filter(|_| problems.is_empty())
        .map(|scheduling| Candidate {
            scheduling,
            selector,
            deleting,
        });
    Some(PodSource {
        namespace,
        name,
        candidate,
        template: spec.template,
    })
}

/// Reads the update strategy. The apiserver always sets the strategy and its type; if they are absent, its defaults apply (D-114).
/// An unknown type behaves like OnDelete (D-50).
fn strategy(strategy: Option<DaemonSetUpdateStrategy>) -> UpdateStrategy {
    let strategy = strategy.unwrap_or_default();
    match strategy.type_.as_deref() {
        None => {
            let limits = strategy.rolling_update.unwrap_or_default();
            UpdateStrategy::RollingUpdate(Some(rolling_update(RollingUpdateDaemonSet {
                max_unavailable: limits.max_unavailable.or(Some(intstr::IntOrString::Int(1))),
                max_surge: limits.max_surge.or(Some(intstr::IntOrString::Int(0))),
            })))
        }
        Some("RollingUpdate") => UpdateStrategy::RollingUpdate(strategy.rolling_update.map(rolling_update)),
        Some(_) => UpdateStrategy::OnDelete,
    }
}

fn rolling_update(limits: RollingUpdateDaemonSet) -> RollingUpdate {
    RollingUpdate {
        max_unavailable: limits.max_unavailable.map(object::int_or_string),
        max_surge: limits.max_surge.map(object::int_or_string),
    }
}

fn counts(status: &Counts) -> DaemonSetStatus {
    DaemonSetStatus {
        current_number_scheduled: status.current_number_scheduled.unwrap_or_default(),
        number_misscheduled: status.number_misscheduled.unwrap_or_default(),
        desired_number_scheduled: status.desired_number_scheduled.unwrap_or_default(),
        number_ready: status.number_ready.unwrap_or_default(),
        updated_number_scheduled: status.updated_number_scheduled.unwrap_or_default(),
        number_available: status.number_available.unwrap_or_default(),
        number_unavailable: status.number_unavailable.unwrap_or_default(),
        observed_generation: status.observed_generation.unwrap_or_default(),
    }
}

fn scheduling(template: &Json, at: &Path<'_>, problems: &mut Problems) -> Option<Scheduling> {
    if !template.is_object() {
        problems.add(at, "spec.template: is required and must be an object");
        return None;
    }
    let mut reader = serde_json::Deserializer::from_str(template.as_str());
    let template: Template = match serde_path_to_error::deserialize(&mut reader) {
        Ok(template) => template,
        Err(error) => {
            let inner = error.inner().to_string();
            // Drop the position: it counts from the start of the template, not of the object.
            let inner = inner
                .rfind(" at line ")
                .map_or(inner.as_str(), |end| &inner[..end]);
            problems.add(at, format!("spec.template.{}: {inner}", error.path()));
            return None;
        }
    };
    let spec = template.spec.unwrap_or_default();
    for (field, count, most) in sizes(&spec) {
        if count > most {
            let description = format!("has {count} entries; at most {most} are taken");
            problems.add(at, format!("spec.template.spec.{field}: {description}"));
        }
    }
    let node_name = spec.node_name.unwrap_or_default();
    json::bound(
        "spec.template.spec.nodeName",
        &node_name,
        Limits::NAME_BYTES,
        at,
        problems,
    );
    let required_terms = spec
        .affinity
        .and_then(|affinity| affinity.node_affinity)
        .and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution)
        .map(|required| required.node_selector_terms.into_iter().map(term).collect());
    Some(Scheduling {
        node_name,
        node_selector: spec.node_selector.unwrap_or_default().into_iter().collect(),
        required_terms,
        tolerations: spec
            .tolerations
            .unwrap_or_default()
            .into_iter()
            .map(toleration)
            .collect(),
        host_network: spec.host_network.unwrap_or_default(),
    })
}

/// The parts that the planner walks for every node: field, size and maximum size.
fn sizes(spec: &PodSpec) -> [(&'static str, usize, usize); 4] {
    const REQUIRED: &str = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution";
    let required = spec
        .affinity
        .as_ref()
        .and_then(|affinity| affinity.node_affinity.as_ref())
        .and_then(|affinity| {
            affinity
                .required_during_scheduling_ignored_during_execution
                .as_ref()
        });
    let (mut terms, mut values) = (0, 0);
    for term in required
        .into_iter()
        .flat_map(|required| &required.node_selector_terms)
    {
        terms += 1;
        for requirement in [&term.match_expressions, &term.match_fields]
            .into_iter()
            .flatten()
            .flatten()
        {
            terms += 1;
            values += requirement.values.as_ref().map_or(0, Vec::len);
        }
    }
    [
        (
            "nodeSelector",
            spec.node_selector.as_ref().map_or(0, BTreeMap::len),
            Limits::LIST_ENTRIES,
        ),
        (
            "tolerations",
            spec.tolerations.as_ref().map_or(0, Vec::len),
            Limits::LIST_ENTRIES,
        ),
        (REQUIRED, terms, Limits::LIST_ENTRIES),
        (REQUIRED, values, Limits::SELECTOR_VALUES),
    ]
}

fn term(term: core::NodeSelectorTerm) -> NodeSelectorTerm {
    let requirements = |list: Option<Vec<core::NodeSelectorRequirement>>| {
        list.unwrap_or_default()
            .into_iter()
            .map(|requirement| NodeSelectorRequirement {
                key: requirement.key,
                operator: requirement.operator,
                values: requirement.values.unwrap_or_default(),
            })
            .collect()
    };
    NodeSelectorTerm {
        match_expressions: requirements(term.match_expressions),
        match_fields: requirements(term.match_fields),
    }
}

fn toleration(toleration: core::Toleration) -> Toleration {
    Toleration {
        key: toleration.key.unwrap_or_default(),
        operator: toleration.operator.unwrap_or_default(),
        value: toleration.value.unwrap_or_default(),
        effect: toleration.effect.unwrap_or_default(),
    }
}
