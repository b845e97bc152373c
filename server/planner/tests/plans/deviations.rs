//! Each deviation from upstream that changes plans, on and off.

use nodewise_planner::{
    plan::{Action, ActionKind, PhaseKind, Plan, Reason},
    snapshot::{Deviation, Expectations, OwnWrite, Selector},
};

use crate::support::{Cluster, actions, at, collision, counts, events, pod_names, reasons};

/// The plan with the default profile and the plan without deviations. Checks that the first names the deviation.
fn both(cluster: &Cluster, deviation: Deviation) -> (Plan, Plan) {
    let (here, upstream) = (cluster.plan(), cluster.clone().strict().plan());
    assert!(
        here.deviations.contains(&deviation),
        "{deviation:?} is named: {:?}",
        here.deviations
    );
    assert!(
        upstream.deviations.is_empty(),
        "nothing deviates: {:?}",
        upstream.deviations
    );
    let mut off = cluster.clone();
    off.options.deviations.remove(&deviation);
    assert!(
        !off.plan().deviations.contains(&deviation),
        "{deviation:?} can be switched off alone"
    );
    (here, upstream)
}

#[test]
fn idempotent_creates() {
    let mut cluster = Cluster::new(2);
    let (here, upstream) = both(&cluster, Deviation::IdempotentCreates);
    assert_eq!(pod_names(&upstream), ["", ""], "D-70: the apiserver chooses");
    let first: Vec<String> = pod_names(&here).into_iter().map(str::to_owned).collect();
    assert!(
        first.iter().all(|name| name.starts_with("foo-")) && first[0] != first[1],
        "{first:?}"
    );
    assert_eq!(
        pod_names(&cluster.plan()),
        first,
        "the same decision gives the same name"
    );
    // A name that a pod of the snapshot has is skipped.
    cluster.pod(&format!("{}@elsewhere foreign", first[0]));
    let second: Vec<String> = pod_names(&cluster.plan())
        .into_iter()
        .map(str::to_owned)
        .collect();
    assert!(second[0] != first[0] && second[1] == first[1], "{second:?}");
    // A name that was taken before is skipped, too.
    cluster.pods.clear();
    cluster.state.pod_name_collisions = vec![collision("node-1", 1, 0), collision("node-9", 4, 0)];
    let plan = cluster.plan();
    assert!(pod_names(&plan)[0] == first[0] && pod_names(&plan)[1] != first[1]);
    assert_eq!(
        plan.state.pod_name_collisions,
        [collision("node-1", 1, 0)],
        "kept while the node lacks a pod"
    );
    // A finished pod that a finalizer holds still has its name, so its replacement gets another name.
    let mut held = Cluster::new(1);
    let name = pod_names(&held.plan())[0].to_owned();
    held.pod(&format!("{name}@node-0 failed deleting"));
    let plan = held.plan();
    assert_ne!(pod_names(&plan), [name.as_str()]);
    // That create may have succeeded though the response was lost (D-82). If the caches show that the finished pod is gone, but
    // do not show the new pod yet, the plan must use the same name again.
    held.state.pod_name_collisions = plan.state.pod_name_collisions.clone();
    held.pods.clear();
    assert_eq!(pod_names(&held.plan()), pod_names(&plan), "D-82");
    // Other pods on the node do not change the name: here an outdated pod that is being deleted.
    for cluster in [Cluster::new(1), Cluster::new(1).rolling("0", "1")] {
        let beside = cluster.clone().with(&["a@node-0 old failed deleting"]).plan();
        assert_eq!(pod_names(&beside), pod_names(&cluster.plan()), "D-82");
    }
    // For a node with its pod, the count is dropped.
    held.pods.clear();
    held.pod("a@node-0 new");
    held.state.pod_name_collisions = vec![collision("node-0", 1, 0)];
    assert_eq!(held.plan().state.pod_name_collisions, []);
    // A node that may not run a pod now may get one later.
    held.pods.clear();
    let held = held.taint(0, &["a:NoSchedule"]);
    assert_eq!(
        held.plan().state.pod_name_collisions,
        held.state.pod_name_collisions
    );
}

#[test]
fn q_4_relabel_duplicates_only() {
    let mut cluster = Cluster::new(2)
        .rolling("2", "0")
        .with(&["a@node-0 ready", "b@node-1 old ready"]);
    let mut duplicate = cluster.revisions[0].clone();
    (duplicate.name, duplicate.uid, duplicate.number) = ("copy".to_owned(), "uid-of-copy".to_owned(), 9);
    duplicate.labels = [("app", "foo"), ("controller-revision-hash", "copied")]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    cluster.revisions.push(duplicate);
    let relabelled = |plan: &Plan| {
        actions(plan, PhaseKind::Revisions)
            .into_iter()
            .filter_map(|action| match &action.kind {
                ActionKind::RelabelPod { pod, .. } => Some(pod.name.clone()),
                _ => None,
            })
            .collect::<Vec<_>>()
    };
    let (here, upstream) = both(&cluster, Deviation::RelabelDuplicatesOnly);
    // D-57: a relabelled pod counts as updated in the same plan.
    assert_eq!(
        (relabelled(&here), counts(&here)),
        (vec!["a".to_owned()], (0, 1)),
        "Q-4, D-56, D-57"
    );
    assert_eq!(
        (relabelled(&upstream).len(), counts(&upstream)),
        (2, (0, 0)),
        "Q-4: b is never replaced"
    );
    // D-57, D-63: the former revision of a relabelled pod is no longer needed.
    let mut former = cluster.revisions[0].clone();
    (former.name, former.uid, former.number) = ("former".to_owned(), "uid-of-former".to_owned(), 0);
    former.data = serde_json::json!({}).into();
    former.labels = cluster.pods[1].labels.clone();
    cluster.revisions.push(former);
    cluster.ds.revision_history_limit = Some(0);
    let (here, upstream) = both(&cluster, Deviation::RelabelDuplicatesOnly);
    assert_eq!(reasons(&here, PhaseKind::Cleanup), [], "D-63: b carries it");
    assert_eq!(
        reasons(&upstream, PhaseKind::Cleanup),
        [Reason::HistoryLimit],
        "D-57, D-63"
    );
}

#[test]
fn q_6_skip_deleting_on_missing_nodes() {
    let cluster = Cluster::new(0).with(&["a@lost unbound deleting"]);
    let (here, upstream) = both(&cluster, Deviation::SkipDeletingOnMissingNodes);
    assert_eq!((counts(&here), counts(&upstream)), ((0, 0), (0, 1)), "Q-6, D-36");
}

#[test]
fn q_12_decide_after_cut() {
    let mut cluster = Cluster::new(2).with(&["a@node-0 failed", "b@node-1 failed"]);
    cluster.options.burst = 1;
    let (here, upstream) = both(&cluster, Deviation::DecideAfterCut);
    assert_eq!((counts(&here), counts(&upstream)), ((0, 1), (0, 1)));
    assert_eq!(
        (events(&here).len(), here.state.failed_pod_backoffs.len()),
        (1, 1),
        "Q-12"
    );
    assert_eq!(
        (events(&upstream).len(), upstream.state.failed_pod_backoffs.len()),
        (2, 2),
        "Q-12, D-101"
    );
}

#[test]
fn q_14_shorten_revision_names() {
    let mut cluster = Cluster::new(0);
    cluster.ds.name = "a".repeat(253);
    cluster.revisions.clear();
    let name = |plan: &Plan| match &actions(plan, PhaseKind::Revisions)[0].kind {
        ActionKind::CreateRevision { name, .. } => name.len(),
        other => panic!("{other:?}"),
    };
    let (here, upstream) = both(&cluster, Deviation::ShortenRevisionNames);
    assert_eq!((name(&here), name(&upstream)), (253, 264), "Q-14, D-60");
}

#[test]
fn q_16_delete_with_uid() {
    let cluster = Cluster::new(0).with(&["a@lost unbound"]);
    let (here, upstream) = both(&cluster, Deviation::DeleteWithUid);
    let precondition = |plan: &Plan| match &actions(plan, PhaseKind::Deletes)[0].kind {
        ActionKind::DeletePod { uid_precondition, .. } => *uid_precondition,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        (precondition(&here), precondition(&upstream)),
        (true, false),
        "Q-16, D-81"
    );
}

#[test]
fn q_17_empty_selector_by_meaning() {
    let mut cluster = Cluster::new(1).with(&["a@node-0 orphan"]);
    cluster.ds.selector = Some(Selector {
        match_labels: Some(vec![]),
        match_expressions: None,
    });
    let (here, upstream) = both(&cluster, Deviation::EmptySelectorByMeaning);
    assert_eq!(reasons(&here, PhaseKind::Events), [Reason::SelectingAll], "Q-17");
    assert_eq!(
        reasons(&upstream, PhaseKind::Claims),
        [Reason::SelectorMatches],
        "Q-17: it selects everything"
    );
    // If upstream recognizes the empty selector, too, nothing deviates.
    cluster.ds.selector = Some(Selector::default());
    assert!(cluster.plan().deviations.is_empty());
}

#[test]
fn q_18_earliest_requeue() {
    let cluster = Cluster::new(1).min_ready(10).with(&["a@node-0 since=997"]);
    let (here, upstream) = both(&cluster, Deviation::EarliestRequeue);
    let seconds = |plan: &Plan| plan.requeue.as_ref().map(|requeue| requeue.delay.as_secs());
    assert_eq!(
        (seconds(&here), seconds(&upstream)),
        (Some(7), Some(10)),
        "Q-18, D-92"
    );
}

#[test]
fn q_21_skip_equal_status_writes() {
    let mut cluster = Cluster::new(1).with(&["a@node-0 ready"]);
    cluster.sync();
    cluster.ds.generation = 2;
    let expectations = Expectations {
        set_at: at(999),
        creates: vec![],
        delete_uids: vec!["x".to_owned()],
    };
    cluster.state.expectations = Some(expectations);
    let (here, upstream) = both(&cluster, Deviation::SkipEqualStatusWrites);
    assert!(here.phases.is_empty(), "Q-21");
    assert_eq!(
        reasons(&upstream, PhaseKind::Status),
        [Reason::StatusRewritten],
        "Q-21, D-90"
    );
}

// STATUS_WITH_UID: upstream writes the status to any workload of that name.
#[test]
fn statuses_are_for_the_workload_that_was_planned_for() {
    let preconditions = |plan: &Plan| {
        let actions = actions(plan, PhaseKind::Status);
        let precondition = |action: &Action| match action.kind {
            ActionKind::UpdateStatus { uid_precondition, .. } => uid_precondition,
            _ => panic!("phase Status writes the status"),
        };
        actions.into_iter().map(precondition).collect::<Vec<_>>()
    };
    let cluster = Cluster::new(1);
    let (here, upstream) = (cluster.plan(), cluster.strict().plan());
    assert_eq!(
        (preconditions(&here), preconditions(&upstream)),
        (vec![true], vec![false])
    );
}

#[test]
fn deviations_of_the_executor_change_no_plan() {
    // concern the executor between plans.
    let mut cluster = Cluster::new(2).with(&["a@node-0 failed", "b@lost unbound deleting"]);
    let plan = cluster.plan();
    for deviation in [
        Deviation::ClearReplacedOwnWrites,
        Deviation::DeletionsByUid,
        Deviation::WakeOnNodeDelete,
        Deviation::LowerOnNamespaceTerminating,
    ] {
        cluster.options.deviations.remove(&deviation);
        assert_eq!(cluster.plan(), plan, "{deviation:?}");
    }
    let mut snapshot = cluster.snapshot();
    snapshot.own_writes = vec![OwnWrite {
        resource: "pods".into(),
        written: "1".into(),
        observed: "1".into(),
    }];
    assert_eq!(
        nodewise_planner::daemonset::plan(&snapshot),
        plan,
        "own writes that are seen change nothing"
    );
}
