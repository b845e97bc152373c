//! `nodewise rollout pause|resume|rollback` of a DaemonSet with a RolloutPolicy: one patch of the policy in charge.

use anyhow::{Context as _, bail, ensure};
use nodewise_proto::v1::{self, WorkloadMode};
use serde_json::json;

use super::{
    change, held,
    policy_page::{named, page},
    proposal::{Proposal, Proposed, named as named_workload},
    quote::{is_digest, word},
};
use crate::{
    input::{Cluster, Served},
    kind::Kind,
    text::{CHANGE, PLAIN, Page},
};

/// The annotations of a policy by which people ask it for something.
pub(super) const APPROVE: &str = "nodewise.dev/approve";
const REJECT: &str = "nodewise.dev/reject";
const RESUME: &str = "nodewise.dev/resume";
const ROLLBACK: &str = "nodewise.dev/rollback";

/// The policy in charge of a workload.
///
/// # Errors
/// There is none. The error says which policies there are, and what they would need.
pub(super) fn in_charge<'s>(
    cluster: &Cluster,
    workload: &Served,
    status: &'s v1::WorkloadStatus,
) -> anyhow::Result<&'s v1::PolicyRollout> {
    let title = workload.title();
    ensure!(
        workload.kind == Kind::DaemonSet,
        "{title}: RolloutPolicies are for DaemonSets; expected a DaemonSet"
    );
    status.policy.as_ref().with_context(|| {
        let namespace = &workload.namespace;
        let there = cluster.policies_in(namespace).iter();
        let there: Vec<&str> = there.map(|policy| policy.name.as_str()).collect();
        match there.as_slice() {
            [] => format!("{title}: it has no RolloutPolicy; there is none in namespace {namespace}"),
            names => format!(
                "{title}: it has no RolloutPolicy; spec.targets of {} in namespace {namespace} does not include it",
                names.join(", ")
            ),
        }
    })
}

/// kubectl's command for these changes of annotations; `None` removes one. The keys are ours, and need no quotes.
pub(super) fn annotate(
    workload: &Served,
    policy: &v1::PolicyRollout,
    changes: &[(&str, Option<&str>)],
) -> String {
    let changes = changes.iter().map(|(key, value)| match value {
        Some(value) => format!(" {key}={}", word(value)),
        None => format!(" {key}-"),
    });
    let changes: String = changes.collect();
    format!(
        "kubectl annotate {} --overwrite{changes}",
        named(workload, policy)
    )
}

/// A change of annotations of the policy.
fn annotating(
    workload: &Served,
    policy: &v1::PolicyRollout,
    page: Page,
    question: String,
    changes: &[(&str, Option<&str>)],
) -> Proposed {
    let command = annotate(workload, policy, changes);
    let annotations: serde_json::Map<String, serde_json::Value> = changes
        .iter()
        .map(|(key, value)| ((*key).to_owned(), json!(value)))
        .collect();
    let patch = json!({ "metadata": { "annotations": annotations } });
    Proposed::Change(Proposal::patch_policy(
        workload, policy, page, &command, question, patch,
    ))
}

/// A change of spec.paused of the policy.
fn set_paused(workload: &Served, policy: &v1::PolicyRollout, page: Page, pauses: bool) -> Proposed {
    let verb = if pauses { "pause" } else { "resume" };
    let question = format!("Do you want to {verb} {}?", workload.title());
    let patch = json!({ "spec": { "paused": pauses } });
    let command = format!(
        "kubectl patch {} --type merge -p {}",
        named(workload, policy),
        word(&patch.to_string())
    );
    Proposed::Change(Proposal::patch_policy(
        workload, policy, page, &command, question, patch,
    ))
}

/// Pauses or resumes the policy in charge or, without one, a Deployment.
///
/// # Errors
/// The workload cannot be paused, or its rollout waits for something that `resume` cannot end.
pub(super) fn pausing(
    cluster: &Cluster,
    workload: &Served,
    policy: Option<&v1::PolicyRollout>,
    pauses: bool,
) -> anyhow::Result<Proposed> {
    match policy {
        Some(policy) if pauses => Ok(pause(workload, policy)),
        Some(policy) => resume(cluster, workload, policy),
        None => change::pause(workload, pauses),
    }
}

/// Pauses the policy.
fn pause(workload: &Served, policy: &v1::PolicyRollout) -> Proposed {
    if policy.paused {
        return Proposed::Nothing(format!(
            "{}: RolloutPolicy {} is paused already.",
            workload.title(),
            policy.name
        ));
    }
    let mut page = page(workload, policy, "is paused: no pod that runs is replaced");
    if policy.state == "RollingBack" {
        let text = "nodes go back to the stable revision now; that stops, too";
        page.marked(2, "!", CHANGE, PLAIN, text);
    }
    set_paused(workload, policy, page, true)
}

/// Resumes a policy that is paused, or else the revision that is rejected, or else the check that was inconclusive.
fn resume(cluster: &Cluster, workload: &Served, policy: &v1::PolicyRollout) -> anyhow::Result<Proposed> {
    let title = workload.title();
    let rejection = policy.rejection.as_ref();
    if policy.paused {
        let mut page = page(workload, policy, "goes on");
        if let Some(rejection) = rejection {
            let text = format!(
                "the revision stays rejected: {}. To let it go on, run the command once more",
                rejection.message
            );
            page.marked(2, "!", CHANGE, PLAIN, &text);
        }
        return Ok(set_paused(workload, policy, page, false));
    }
    let Some(rejection) = rejection else {
        return not_rejected(cluster, workload, policy);
    };
    if rejection.resume_digest.is_empty() {
        return Ok(Proposed::Nothing(format!(
            "{title}: no executor has recorded yet that the revision is rejected; try again in a moment."
        )));
    }
    check_digest(workload, policy, &rejection.resume_digest)?;
    let mut page = page(workload, policy, "lets the rejected revision go on");
    let text = format!("it was rejected: {}", rejection.message);
    page.marked(2, "·", PLAIN, PLAIN, &text);
    page.marked(2, "·", PLAIN, PLAIN, "failures so far do not count any more");
    let mut changes = vec![(RESUME, Some(rejection.resume_digest.as_str()))];
    // An approval that was denied stays denied, and a request to go back is not one to go on.
    let denied = [REJECT, ROLLBACK].into_iter();
    let denied = denied.filter(|key| policy.requests.iter().any(|request| request == key));
    changes.extend(denied.map(|key| (key, None)));
    let question = format!("Let the rejected revision of {title} go on?");
    Ok(annotating(workload, policy, page, question, &changes))
}

/// Resumes a rollout that is neither paused nor rejected.
///
/// # Errors
/// It is held by what no command can resume. The error says what helps.
fn not_rejected(
    cluster: &Cluster,
    workload: &Served,
    policy: &v1::PolicyRollout,
) -> anyhow::Result<Proposed> {
    if policy.state == "AnalysisHeld"
        && let Some(proposed) = held::resume(cluster, workload, policy)
    {
        return Ok(proposed);
    }
    let title = workload.title();
    let target = named_workload(workload);
    let helps = match policy.state.as_str() {
        "AnalysisHeld" => {
            "a check that could not be made is made again each interval; repair what it asks, or let go of the revision with \
             `nodewise rollout rollback`"
                .to_owned()
        }
        "AwaitingApproval" => format!(
            "`nodewise rollout approve {target}` lets the stage begin; to deny it, give the policy the annotation {REJECT} with the same digest"
        ),
        "OutsideWindow" => "it goes on when a window opens; windows are in the policy".to_owned(),
        "Partitioned" => "lower partition in the policy".to_owned(),
        "TooManyNodesNotReady" => "repair the nodes, or raise maxExempt in the policy".to_owned(),
        "ProgressDeadlineExceeded" => {
            format!("repair the nodes that failed, or run `nodewise rollout rollback {target}`")
        }
        "Invalid" => "correct the policy".to_owned(),
        _ => {
            return Ok(Proposed::Nothing(format!(
                "{title}: RolloutPolicy {} is not paused, and rejects no revision.",
                policy.name
            )));
        }
    };
    bail!(
        "{title}: RolloutPolicy {} is not paused, and rejects no revision, so there is nothing to resume. It is {}: {}. What helps: {helps}",
        policy.name,
        policy.state,
        policy.message
    )
}

/// Rejects the present revision, and lets its nodes go back.
///
/// # Errors
/// No policy is in charge, or there is no way back.
pub(super) fn roll_back(
    cluster: &Cluster,
    workload: &Served,
    status: &v1::WorkloadStatus,
) -> anyhow::Result<Proposed> {
    let title = workload.title();
    let policy = in_charge(cluster, workload, status)?;
    let name = &policy.name;
    usable(workload, policy)?;
    let current = status.revisions.iter().find(|revision| revision.is_current);
    let hash = current.map_or("", |revision| revision.hash.as_str());
    let number = current.map_or(0, |revision| revision.number);
    let is_back = matches!(policy.state.as_str(), "RollingBack" | "RolledBack");
    if is_back
        || policy
            .rejection
            .as_ref()
            .is_some_and(|rejection| rejection.roll_back)
    {
        return Ok(Proposed::Nothing(format!(
            "{title}: RolloutPolicy {name} takes it back already: {}.",
            policy.message
        )));
    }
    if policy.stable_hash == hash || policy.state == "Complete" {
        bail!(
            "{title}: revision {number} is the stable one, and no rollout is going on; to go back to an earlier revision, run \
             `nodewise rollout undo`"
        );
    }
    ensure!(
        !policy.stable_hash.is_empty(),
        "{title}: RolloutPolicy {name} knows no stable revision to go back to"
    );
    ensure!(
        !policy.rollback_digest.is_empty(),
        "{title}: no executor has taken up the rollout of revision {number} yet; try again in a moment, or look at the log of \
         nodewise-executor"
    );
    check_digest(workload, policy, &policy.rollback_digest)?;
    let stable = policy.stable_number;
    let what = format!("rejects revision {number}, and its nodes go back to revision {stable}");
    let mut page = page(workload, policy, &what);
    let updated = status
        .nodes
        .iter()
        .filter(|node| node.pods.iter().any(|pod| pod.updated));
    let updated = crate::text::count(updated.count(), "node");
    let text = format!("{updated} with a pod of revision {number}; the DaemonSet is not changed");
    page.marked(2, "·", PLAIN, PLAIN, &text);
    if status.mode() == WorkloadMode::Companion {
        let text = "another controller creates the pods here, so the nodes keep the revision; no further node gets it";
        page.marked(2, "!", CHANGE, PLAIN, text);
    }
    if policy.paused {
        let text = "the policy is paused: nothing goes back until `nodewise rollout resume`";
        page.marked(2, "!", CHANGE, PLAIN, text);
    }
    let question = format!("Take {title} back to revision {stable}?");
    let changes = [(ROLLBACK, Some(policy.rollback_digest.as_str()))];
    Ok(annotating(workload, policy, page, question, &changes))
}

/// Fails if what should be a digest is none. Digests for people are in the status of a policy, which the executor is not the only one to
/// write.
pub(super) fn check_digest(
    workload: &Served,
    policy: &v1::PolicyRollout,
    digest: &str,
) -> anyhow::Result<()> {
    ensure!(
        is_digest(digest),
        "{}: the status of RolloutPolicy {} has {digest:?} where a digest belongs, which has only hexadecimal digits; look at who \
         wrote the status (`kubectl get {} -o yaml --show-managed-fields`)",
        workload.title(),
        policy.name,
        named(workload, policy)
    );
    Ok(())
}

/// Fails if the policy cannot be used: then it heeds no request.
pub(super) fn usable(workload: &Served, policy: &v1::PolicyRollout) -> anyhow::Result<()> {
    ensure!(
        policy.state != "Invalid",
        "{}: RolloutPolicy {} cannot be used, so it holds the rollout: {}",
        workload.title(),
        policy.name,
        policy.message
    );
    Ok(())
}
