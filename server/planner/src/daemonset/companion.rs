//! Rollouts beside another controller. A DaemonSet with update strategy OnDelete can ask Nodewise by annotation to decide when
//! its old pods are deleted. The other controller makes all other decisions and creates the new pods.

use std::borrow::Cow;

use crate::{
    core::{
        plan::Reason,
        snapshot::{IntOrString, Options, Scope},
    },
    daemonset::{
        pod_changes::{Delete, PodChanges},
        revisions::Resolution,
        rollout::limits,
        workload::{DaemonSet, RollingUpdate, UpdateStrategy},
    },
};

/// The annotation with which a DaemonSet asks for rollouts, and its only valid value.
const ROLLOUT: (&str, &str) = ("nodewise.dev/rollout", "managed");
/// The annotation with the budget: a number of nodes or a percentage, like maxUnavailable.
const MAX_UNAVAILABLE: &str = "nodewise.dev/max-unavailable";

/// What a workload's annotations ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RolloutRequest {
    /// Nothing.
    None,
    /// Something invalid; the message says why.
    Wrong(String),
    /// Rollouts with this budget.
    Rollouts(RollingUpdate),
}

/// Reads the annotations of a workload.
pub(crate) fn rollout_request(ds: &DaemonSet) -> RolloutRequest {
    let (key, managed) = ROLLOUT;
    match ds.annotation(key) {
        None => return RolloutRequest::None,
        Some(value) if value != managed => {
            return RolloutRequest::Wrong(format!(
                "annotation {key} is {value:?}: only {managed:?} is known"
            ));
        }
        Some(_) => {}
    }
    if ds.strategy != UpdateStrategy::OnDelete {
        return RolloutRequest::Wrong(format!(
            "annotation {key} is for DaemonSets with spec.updateStrategy.type OnDelete: those with RollingUpdate are \
             rolled out by their own controller"
        ));
    }
    let budget = ds
        .annotation(MAX_UNAVAILABLE)
        .map_or(IntOrString::Int(1), |text| {
            text.parse()
                .map_or_else(|_| IntOrString::String(text.to_owned()), IntOrString::Int)
        });
    let of_hundred = limits::scale(MAX_UNAVAILABLE, &budget, 100);
    let is_right = match budget {
        IntOrString::Int(count) => count > 0,
        IntOrString::String(_) => of_hundred.is_ok_and(|percent| (1..=100).contains(&percent)),
    };
    if !is_right {
        return RolloutRequest::Wrong(format!(
            "annotation {MAX_UNAVAILABLE} is {:?}: write a number of nodes above 0, or a percentage from \"1%\" to \"100%\"",
            ds.annotation(MAX_UNAVAILABLE).unwrap_or_default()
        ));
    }
    RolloutRequest::Rollouts(RollingUpdate {
        max_unavailable: Some(budget),
        max_surge: None,
    })
}

/// The update strategy by which Nodewise rolls a workload out.
pub(crate) fn strategy<'a>(ds: &'a DaemonSet, options: &Options) -> Cow<'a, UpdateStrategy> {
    if options.scope == Scope::Workload {
        return Cow::Borrowed(&ds.strategy);
    }
    Cow::Owned(match rollout_request(ds) {
        RolloutRequest::Rollouts(update) => UpdateStrategy::RollingUpdate(Some(update)),
        RolloutRequest::None | RolloutRequest::Wrong(_) => UpdateStrategy::OnDelete,
    })
}

/// The changes of a rollout step, without those that must wait. `others` are the changes that the other controller is about to
/// make; they come first (D-74). Only the deletes of finished pods do not hold the rollout up: the other controller decides when
/// to delete those pods, and their nodes count against the budget.
pub(crate) fn changes<'a>(
    resolution: &Resolution<'_>,
    others: &PodChanges<'a>,
    step: PodChanges<'a>,
) -> PodChanges<'a> {
    let is_finished = |delete: &Delete<'_>| matches!(delete.reason, Reason::PodFailed | Reason::PodSucceeded);
    let is_settled = others.creates.is_empty() && others.deletes.iter().all(is_finished);
    if is_unrecorded(resolution) || !is_settled {
        return PodChanges::default();
    }
    let mut changes = step;
    // The other controller must adopt orphans first.
    changes.deletes.retain(|delete| delete.pod.controller().is_some());
    changes
}

/// Whether the other controller has not recorded the template as a revision yet. Until then it is unknown which pods are old.
pub(crate) fn is_unrecorded(resolution: &Resolution<'_>) -> bool {
    resolution.halt.is_some() || !resolution.batches.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        HASH_LABEL,
        core::{
            canonical,
            plan::{ActionKind, Plan, Verdict},
            snapshot::{Pod, PodPhase, Revision, Snapshot, Target},
        },
        daemonset::sync,
        fixtures::{self, pairs},
    };

    fn managed(annotations: &[(&str, &str)]) -> DaemonSet {
        let mut all = pairs(annotations);
        all.push((ROLLOUT.0.to_owned(), ROLLOUT.1.to_owned()));
        all.sort();
        DaemonSet {
            annotations: all,
            strategy: UpdateStrategy::OnDelete,
            ..fixtures::daemon_set()
        }
    }

    fn beside(
        ds: DaemonSet,
        revisions: Vec<Revision>,
        nodes: &[&str],
        pods: Vec<Pod>,
    ) -> Snapshot<DaemonSet> {
        let nodes = nodes.iter().map(|name| fixtures::node(name, &[], &[])).collect();
        Snapshot {
            buckets: vec![fixtures::bucket(nodes, pods)],
            options: Options {
                scope: Scope::Rollouts,
                ..Options::default()
            },
            ..fixtures::snapshot(ds, revisions)
        }
    }

    fn current_revision(ds: &DaemonSet, hash: &str) -> Revision {
        Revision {
            name: format!("foo-{hash}"),
            uid: format!("{hash}-uid"),
            labels: fixtures::labels(&[("app", "foo"), (HASH_LABEL, hash)]),
            controller: Some(fixtures::controller(ds)),
            created: None,
            deleting: false,
            number: 1,
            data: canonical::revision_data(&ds.template),
            read_after_name_collision: false,
        }
    }

    fn deleted(plan: &Plan) -> Vec<&str> {
        let actions = plan
            .phases
            .iter()
            .flat_map(|phase| &phase.batches)
            .flat_map(|batch| &batch.actions);
        actions
            .map(|action| match &action.kind {
                ActionKind::DeletePod { pod, .. } => pod.name.as_str(),
                other => panic!("expected only deletes: {other:?}"),
            })
            .collect()
    }

    // L-39.
    #[test]
    fn only_valid_annotations_ask_for_rollouts() {
        let budget = |text: &str| managed(&[(MAX_UNAVAILABLE, text)]);
        let rolled_out = |max_unavailable| {
            RolloutRequest::Rollouts(RollingUpdate {
                max_unavailable: Some(max_unavailable),
                max_surge: None,
            })
        };
        assert_eq!(rollout_request(&managed(&[])), rolled_out(IntOrString::Int(1)));
        assert_eq!(rollout_request(&budget("3")), rolled_out(IntOrString::Int(3)));
        assert_eq!(
            rollout_request(&budget("10%")),
            rolled_out(IntOrString::String("10%".to_owned()))
        );
        assert_eq!(rollout_request(&fixtures::daemon_set()), RolloutRequest::None);
        let rolling = DaemonSet {
            strategy: UpdateStrategy::RollingUpdate(None),
            ..managed(&[])
        };
        let mut other = managed(&[]);
        other.annotations[0].1 = "manged".to_owned();
        for (ds, said) in [
            (rolling, "OnDelete"),
            (other, "\"manged\""),
            (budget("0"), "\"0\""),
            (budget("-1"), "\"-1\""),
            (budget("101%"), "\"101%\""),
            (budget("some"), "\"some\""),
            (budget(""), "\"\""),
        ] {
            let RolloutRequest::Wrong(because) = rollout_request(&ds) else {
                panic!("{said} is wrong");
            };
            assert!(because.contains(said), "{because}");
        }
    }

    #[test]
    fn old_pods_are_deleted_within_the_budget_and_nothing_else_is_done() {
        let ds = managed(&[(MAX_UNAVAILABLE, "2")]);
        let current = current_revision(&ds, "new");
        let old = |name: &str, node: &str| fixtures::pod(&ds, name, node, "old");
        let nodes = ["a", "b", "c", "d"];
        let pods = vec![
            old("p-a", "a"),
            old("p-b", "b"),
            old("p-c", "c"),
            fixtures::pod(&ds, "p-d", "d", "new"),
        ];
        let plan =
            |pods: Vec<Pod>, revisions| crate::daemonset::plan(&beside(ds.clone(), revisions, &nodes, pods));
        let some = plan(pods.clone(), vec![current.clone()]);
        assert_eq!(deleted(&some), ["p-a", "p-b"]);
        assert_eq!(some.verdict, Verdict::Apply);
        assert!(
            some.phases[0].batches[0]
                .actions
                .iter()
                .all(|action| action.reason == Reason::RolloutWithinBudget)
        );

        // An unavailable pod is deleted first, and uses the budget.
        let mut unavailable = pods.clone();
        unavailable[2].ready = false;
        assert_eq!(deleted(&plan(unavailable, vec![current.clone()])), ["p-c", "p-a"]);

        // A failed pod uses the budget, but does not hold the rollout up.
        let mut failed = pods.clone();
        failed[3].phase = PodPhase::Failed;
        failed[3].ready = false;
        assert_eq!(deleted(&plan(failed, vec![current.clone()])), ["p-a"]);

        // The changes of the other controller come first: a create for a node without a pod, a delete of a pod of a missing node.
        let mut nowhere = pods.clone();
        nowhere[3].target = Target::Meant("gone".to_owned());
        for busy in [pods[1..].to_vec(), nowhere] {
            let waits = plan(busy, vec![current.clone()]);
            assert_eq!((waits.verdict, waits.phases.len()), (Verdict::Noop, 0));
        }

        // The other controller must adopt an orphan first.
        let mut orphaned = pods.clone();
        orphaned[0].controller = None;
        assert_eq!(deleted(&plan(orphaned, vec![current.clone()])), ["p-b"]);

        // Without a revision of the template it is unknown which pods are old.
        assert_eq!(plan(pods.clone(), vec![]).verdict, Verdict::Noop);

        // Deletes that the cache does not show yet hold the rollout up.
        let mut waiting = beside(ds.clone(), vec![current], &nodes, pods);
        waiting.state = some.state;
        let waits = crate::daemonset::plan(&waiting);
        assert_eq!((waits.verdict, waits.phases.len()), (Verdict::StatusOnly, 0));
    }

    #[test]
    fn without_the_annotation_nothing_is_planned_and_an_invalid_one_gives_an_event() {
        let ds = fixtures::daemon_set();
        let pods = vec![fixtures::pod(&ds, "p-a", "a", "old")];
        let plan = crate::daemonset::plan(&beside(ds, vec![], &["a", "b"], pods));
        assert_eq!((plan.verdict, plan.phases.len()), (Verdict::Noop, 0));
        for value in ["x", &"\u{e4}".repeat(100_000)] {
            let ds = managed(&[(MAX_UNAVAILABLE, value)]);
            let plan = crate::daemonset::plan(&beside(ds, vec![], &["a"], vec![]));
            let action = &plan.phases[0].batches[0].actions[0];
            let ActionKind::EmitEvent { reason, message, .. } = &action.kind else {
                panic!("{action:?}");
            };
            assert_eq!(*reason, "InvalidRollout");
            assert!(message.contains(MAX_UNAVAILABLE), "{message}");
            assert!(message.len() <= sync::MAX_EVENT_MESSAGE, "{}", message.len());
            assert_eq!(plan.phases.len(), 1);
        }
    }
}
