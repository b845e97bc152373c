//! `nodewise rollout approve`: shows what a stage would do, and approves just that.

use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use nodewise_proto::v1::{self, action};
use serde_json::json;

use super::{
    args::ApproveArgs,
    policy::{self, APPROVE},
    policy_page::page,
    proposal::{Proposal, agreed, write},
    revisions,
};
use crate::{
    engine::Engine,
    input::Served,
    plan::present_status,
    request::RequestFactory,
    text::{self, BOLD, CHANGE, DIM, PLAIN, Page, count, names},
    view,
};

pub(super) async fn run(args: &ApproveArgs) -> anyhow::Result<ExitCode> {
    let change = &args.change;
    let (cluster, target) = revisions::read(&change.workload).await?;
    let workload = revisions::workload(&cluster, &target, &change.workload)?;
    let engine = Engine::in_process();
    let requests = RequestFactory::at(&cluster, None, v1::Profile::Default);
    let source = view::Source {
        cluster: &cluster,
        engine: &engine,
        requests: &requests,
    };
    let proposal = approve(&source, workload, args.digest.as_deref()).await?;
    if !agreed(change, workload, &proposal)? {
        return Ok(ExitCode::FAILURE);
    }
    if !change.yes {
        // Nodes may have come or gone while somebody thought about it.
        let (cluster, target) = revisions::read(&change.workload).await?;
        let workload = revisions::workload(&cluster, &target, &change.workload)?;
        let status = view::local_status(&cluster, workload).await?;
        refuse_outdated(&proposal, workload, status.policy.as_ref())?;
    }
    write(change, &proposal).await
}

/// Fails if the rollout waits for something else by now.
pub(super) fn refuse_outdated(
    proposal: &Proposal,
    workload: &Served,
    policy: Option<&v1::PolicyRollout>,
) -> anyhow::Result<()> {
    let Some(approved) = &proposal.approves else {
        return Ok(());
    };
    let pending = policy.and_then(|policy| policy.pending_approval.as_ref());
    let present = pending.map_or("", |pending| pending.digest.as_str());
    ensure!(present == approved, outdated(workload, approved, pending));
    Ok(())
}

fn outdated(workload: &Served, approved: &str, pending: Option<&v1::PolicyApproval>) -> String {
    let now = match pending {
        Some(pending) => format!(
            "stage {} would now run on {}, and its digest is {}",
            pending.stage,
            count(pending.nodes as usize, "node"),
            pending.digest
        ),
        None => "the rollout waits for no approval now".to_owned(),
    };
    format!(
        "{}: the digest {approved} is out of date: {now}. Nothing was changed; run `nodewise rollout approve` to see what it would do",
        workload.title()
    )
}

/// The approval of the stage that the rollout waits for. `expected` is the digest that it must have.
///
/// # Errors
/// No policy is in charge, the rollout waits for no approval, or for that of another digest.
pub(super) async fn approve(
    source: &view::Source<'_>,
    workload: &Served,
    expected: Option<&str>,
) -> anyhow::Result<Proposal> {
    let (plan, explanation) = source.planned(workload).await?;
    let status = source.status_of(workload, None, &plan, &explanation)?;
    let policy = policy::in_charge(source.cluster, workload, &status)?;
    policy::usable(workload, policy)?;
    let pending = policy.pending_approval.as_ref();
    if let Some(expected) = expected {
        let is_present = pending.is_some_and(|pending| pending.digest == expected);
        ensure!(is_present, outdated(workload, expected, pending));
    }
    let pending = pending.with_context(|| {
        format!(
            "{}: RolloutPolicy {} waits for no approval; it is {}: {}",
            workload.title(),
            policy.name,
            policy.state,
            policy.message
        )
    })?;
    let digest = pending.digest.as_str();
    policy::check_digest(workload, policy, digest)?;
    let request = source.requests.request_for(workload);
    let request = request.with_annotation(&policy.uid, APPROVE, digest);
    let approved = source.engine.plan(&request).await?;
    let after = source.status_of(workload, None, &approved, &explanation)?;

    let what = format!("waits for an approval of stage {}", pending.stage);
    let mut page = page(workload, policy, &what);
    about_stage(&mut page, &status, policy, pending);
    page.blank();
    page.line(0, BOLD, "Once it is approved");
    if let Some(after) = &after.policy {
        page.line(2, PLAIN, &after.message);
    }
    render_plan(&mut page, workload, approved);
    page.blank();
    page.marked(0, "digest", BOLD, PLAIN, digest);
    let changes = [(APPROVE, Some(digest))];
    let command = policy::annotate(workload, policy, &changes);
    let question = format!(
        "Approve stage {} on {}?",
        pending.stage,
        count(pending.nodes as usize, "node")
    );
    let patch = json!({ "metadata": { "annotations": { APPROVE: digest } } });
    let mut proposal = Proposal::patch_policy(workload, policy, page, &command, question, patch);
    proposal.approves = Some(digest.to_owned());
    Ok(proposal)
}

/// The nodes of the stage, the revision that they get, and an approval that does not count.
fn about_stage(
    page: &mut Page,
    status: &v1::WorkloadStatus,
    policy: &v1::PolicyRollout,
    pending: &v1::PolicyApproval,
) {
    let is_of_stage = |node: &&v1::NodeStatus| {
        let wave = node.rollout_stage.strip_prefix(&pending.stage);
        wave.is_some_and(|wave| wave.is_empty() || wave.starts_with('/'))
    };
    let nodes = || status.nodes.iter().filter(is_of_stage);
    let mut rows = vec![(
        "nodes",
        format!(
            "{}: {}",
            count(pending.nodes as usize, "node"),
            names::shorten(nodes().map(|node| node.node_name.as_str()))
        ),
    )];
    let exempt = nodes().filter(|node| node.rollout_exempt);
    let exempt: Vec<&str> = exempt.map(|node| node.node_name.as_str()).collect();
    if !exempt.is_empty() {
        rows.push(("exempt", names::shorten(exempt)));
    }
    if let Some(current) = status.revisions.iter().find(|revision| revision.is_current) {
        rows.push((
            "revision",
            format!("{} → {} ({})", policy.stable_number, current.number, current.name),
        ));
    }
    let images = text::status::images(&status.revisions);
    if !images.is_empty() {
        rows.push(("images", images.join(", ")));
    }
    for (name, value) in rows {
        page.marked(2, &format!("{name:9}"), DIM, PLAIN, &value);
    }
    if !pending.outdated_digest.is_empty() {
        let text = format!(
            "the policy has an approval of {}, which is not for what this stage would do now",
            pending.outdated_digest
        );
        page.marked(2, "!", CHANGE, PLAIN, &text);
    }
}

/// What the plan does to pods.
fn render_plan(page: &mut Page, workload: &Served, mut plan: v1::Plan) {
    for phase in &mut plan.phases {
        for batch in &mut phase.batches {
            batch.actions.retain(is_about_pods);
        }
        phase.batches.retain(|batch| !batch.actions.is_empty());
    }
    plan.phases.retain(|phase| !phase.batches.is_empty());
    text::plan::render_one(
        page,
        &text::plan::Planned {
            title: "The next plan".to_owned(),
            kind: workload.kind.name(),
            plan: &plan,
            status: present_status(workload),
        },
    );
}

fn is_about_pods(action: &v1::Action) -> bool {
    matches!(
        action.kind,
        Some(action::Kind::CreatePod(_) | action::Kind::DeletePod(_) | action::Kind::EvictPod(_))
    )
}
