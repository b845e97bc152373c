//! Derived names that are taken or were used.

use std::cell::Cell;

use nodewise_planner::{
    daemonset::plan_cache::PlanCache,
    plan::{
        ActionKind, PhaseKind,
        Reason::{
            self, ExcessPod, RolloutOldUnavailable, RolloutWithinBudget, SurgeNewAvailable, SurgeOldNotReady,
        },
    },
    snapshot::{Deviation, Labels, Revision},
};
use serde_json::json;

use crate::support::{
    Cluster, GENERATION_LABEL, HASH_LABEL, actions, collision, pod_changes, pod_names, reasons, status, used,
};

#[test]
fn d_82_taken_names_are_kept_until_the_node_has_its_pod() {
    // (the node's pod, whether they are kept)
    let table = [
        ("a@node-0 new", false),
        ("a@node-0 new unbound", false),
        ("a@node-0 old", true),
        ("a@node-0 new failed", true),
        ("a@node-0 new deleting", true),
        ("a@elsewhere new", true),
    ];
    for (pod, is_kept) in table {
        let mut cluster = Cluster::new(1).with(&[pod]);
        cluster.state.pod_name_collisions = vec![collision("node-0", 1, 0)];
        let kept = cluster.plan().state.pod_name_collisions;
        assert_eq!(!kept.is_empty(), is_kept, "D-82: {pod}: {kept:?}");
    }
}

// A new pod must not have the name of the pod that it replaces: people and programs wait until a name is gone.
#[test]
fn d_82_a_pod_does_not_get_the_name_of_the_pod_that_it_replaces() {
    let name = |cluster: &Cluster| pod_names(&cluster.plan())[0].to_owned();
    let mut cluster = Cluster::new(1);
    let first = name(&cluster);
    cluster.state.used_pod_names = vec![used("node-0", &first)];
    let second = name(&cluster);
    assert_ne!(second, first);
    assert_eq!(
        name(&cluster),
        second,
        "a create that is repeated collides with itself"
    );
    let held = cluster.plan().state;
    assert_eq!(
        held.used_pod_names, cluster.state.used_pod_names,
        "held until the pod is seen"
    );
    assert_eq!(held.pod_name_collisions, [], "no name was found taken");
    // The second pod is gone, too, and the executor has not seen a third one.
    cluster.state.used_pod_names.push(used("node-0", &second));
    let third = name(&cluster);
    assert!(third != first && third != second);
    // The names of other nodes' pods do not count.
    cluster.state.used_pod_names = vec![used("node-1", "foo-other")];
    assert_eq!(name(&cluster), first);
}

#[test]
fn d_82_used_names_are_kept_for_nodes_that_lack_a_pod() {
    // (the node's pod, whether the name is kept)
    let table = [
        ("a@elsewhere new", true),
        ("a@node-0 old", true),
        ("a@node-0 new failed", true),
        ("a@node-0 new deleting", true),
        ("a@node-0 new", false),
        ("a@node-0 new unbound", false),
    ];
    for (pod, is_held) in table {
        let mut cluster = Cluster::new(1).with(&[pod]);
        cluster.state.used_pod_names = vec![used("node-0", "foo-gone"), used("no-such-node", "foo-lost")];
        let held = cluster.plan().state.used_pod_names;
        let expected = if is_held {
            vec![used("node-0", "foo-gone")]
        } else {
            vec![]
        };
        assert_eq!(held, expected, "{pod}");
        // If the apiserver chooses names, no names are kept.
        cluster.options.deviations.remove(&Deviation::IdempotentCreates);
        assert_eq!(cluster.plan().state.used_pod_names, [], "{pod}");
    }
}

// The node may get a pod later, which must have another name.
#[test]
fn d_82_names_are_kept_for_nodes_where_no_pod_may_run_now() {
    // (the node's taint, its pod, whether names are kept)
    let table = [
        ("k=v:NoSchedule", None, true),
        ("k=v:NoExecute", None, true),
        ("k=v:NoSchedule", Some("a@node-0 old"), true),
        ("k=v:NoSchedule", Some("a@node-0 new"), false),
        ("k=v:NoSchedule", Some("a@node-0 new ready"), false),
        ("k=v:NoSchedule", Some("a@node-0 new ready foreign"), true),
        ("k=v:NoSchedule", Some("a@node-1 new ready"), true),
    ];
    for (taint, pod, is_held) in table {
        let mut cluster = Cluster::new(2).taint(0, &[taint]);
        cluster = cluster.with(pod.as_slice());
        cluster.state.pod_name_collisions = vec![collision("node-0", 1, 0)];
        cluster.state.used_pod_names = vec![used("no-such-node", "foo-lost"), used("node-0", "foo-gone")];
        let held = cluster.plan().state;
        let collisions = held.pod_name_collisions.iter();
        let nodes = collisions.map(|collision| &*collision.node_name);
        let nodes = nodes.chain(held.used_pod_names.iter().map(|used| &*used.node_name));
        let nodes: Vec<_> = nodes.filter(|node| *node != "node-1").collect();
        let expected: &[&str] = if is_held { &["node-0", "node-0"] } else { &[] };
        assert_eq!(nodes, expected, "{taint}, {pod:?}");
    }
    // If a DaemonSet was removed from all nodes of a large cluster, its state is limited.
    let mut cluster = Cluster::new(1_002);
    for index in 0..1_001 {
        cluster = cluster.taint(index, &["k=v:NoSchedule"]);
    }
    let names = (0..1_002).map(|index| used(&format!("node-{index}"), "foo-gone"));
    cluster.state.used_pod_names = names.collect();
    let held = cluster.plan().state.used_pod_names;
    let is_held = |node: &str| held.iter().any(|used| used.node_name == node);
    assert!(is_held("node-0") && is_held("node-1001"));
    assert_eq!((held.len(), is_held("node-999")), (1_001, false));
}

// A node may have any number of other pods. A cancelled plan must stop visiting them.
#[test]
fn d_82_a_cancelled_plan_stops_checking_names() {
    let mut cluster = Cluster::new(1).taint(0, &["k=v:NoSchedule"]);
    for number in 0..1_000 {
        cluster = cluster.with(&[&format!("pod-{number}@node-0 new ready foreign")]);
    }
    // How often the plan checks for cancellation; it is cancelled at check `last`.
    let plan = |cluster: &Cluster, last: usize| {
        let asked = Cell::new(0);
        let stop = || asked.replace(asked.get() + 1) >= last;
        let plan =
            nodewise_planner::daemonset::plan_until(&cluster.snapshot(), &mut PlanCache::default(), &stop);
        (asked.get(), plan.is_some())
    };
    let (without, _) = plan(&cluster, usize::MAX);
    cluster.state.used_pod_names = vec![used("node-0", "foo-gone")];
    let (with, planned) = plan(&cluster, usize::MAX);
    assert!(
        planned && with > without + 10,
        "{with} times, and {without} without names"
    );
    for last in [without + 1, with - 1] {
        assert_eq!(plan(&cluster, last), (last + 1, false), "it stops at once");
    }
}

#[test]
fn d_62_q_14_if_a_shortened_revision_name_is_taken_the_plan_names_the_deviation() {
    let mut cluster = Cluster::new(0);
    cluster.ds.name = "a".repeat(253);
    let mut taken = cluster.revisions.remove(0);
    let plan = cluster.plan();
    taken.name = match &actions(&plan, PhaseKind::Revisions)[0].kind {
        ActionKind::CreateRevision { name, .. } => name.clone(),
        other => panic!("{other:?} creates no revision"),
    };
    (taken.data, taken.read_after_name_collision) = (json!({"other": true}).into(), true);
    cluster.revisions = vec![taken];
    let plan = cluster.plan();
    assert!(plan.error.is_some(), "D-62");
    assert!(
        plan.deviations.contains(&Deviation::ShortenRevisionNames),
        "Q-14: without it another name would have been tried"
    );
}

/// Gives a pod other values of the hash label and the generation label; `-` for none.
fn relabel(cluster: &mut Cluster, pod: &str, hash: &str, generation: &str) {
    let labels = [("app", "foo"), (HASH_LABEL, hash), (GENERATION_LABEL, generation)];
    let labels = labels.into_iter().filter(|(_, value)| *value != "-");
    cluster.pod(pod).labels = labels
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
}

#[test]
fn d_34_q_3_with_an_empty_hash_pods_without_a_hash_are_new_only_beside_other_pods() {
    // (maxUnavailable, maxSurge, the node's pods with hash and generation, deleted and why, updated in the status)
    type Row<'a> = (
        &'a str,
        &'a str,
        &'a [(&'a str, &'a str, &'a str)],
        &'a [(&'a str, Reason)],
        i32,
    );
    let table: [Row<'_>; 10] = [
        // Two pods on a node with surge: one may be new, by hash.
        (
            "0",
            "1",
            &[("a@node-0", "-", "-"), ("b@node-0", "x", "-")],
            &[("b", SurgeOldNotReady)],
            0,
        ),
        (
            "0",
            "1",
            &[("a@node-0 ready", "", "-"), ("b@node-0 ready", "x", "-")],
            &[("b", SurgeNewAvailable)],
            0,
        ),
        (
            "0",
            "1",
            &[("a@node-0", "x", "-"), ("b@node-0", "-", "-")],
            &[("a", SurgeOldNotReady)],
            0,
        ),
        (
            "0",
            "1",
            &[("a@node-0", "-", "-"), ("b@node-0", "", "-")],
            &[("b", ExcessPod)],
            0,
        ),
        (
            "0",
            "1",
            &[("a@node-0", "x", "-"), ("b@node-0", "y", "-")],
            &[("b", ExcessPod)],
            0,
        ),
        // One pod alone is outdated, with or without hash.
        (
            "1",
            "0",
            &[("a@node-0 ready", "-", "-")],
            &[("a", RolloutWithinBudget)],
            0,
        ),
        (
            "1",
            "0",
            &[("a@node-0", "", "-")],
            &[("a", RolloutOldUnavailable)],
            0,
        ),
        (
            "1",
            "0",
            &[("a@node-0 ready", "x", "-")],
            &[("a", RolloutWithinBudget)],
            0,
        ),
        // It is updated if its template generation is current.
        ("1", "0", &[("a@node-0 ready", "-", "1")], &[], 1),
        ("1", "0", &[("a@node-0 ready", "x", "1")], &[], 1),
    ];
    for (max_unavailable, max_surge, pods, deleted, updated) in table {
        let mut cluster = Cluster::new(1).rolling(max_unavailable, max_surge);
        let generation = (
            "deprecated.daemonset.template.generation".to_owned(),
            "1".to_owned(),
        );
        cluster.ds.annotations.push(generation);
        let found = &mut cluster.revisions[0];
        (found.labels, found.read_after_name_collision) = (Labels::default(), true);
        for (pod, hash, generation) in pods {
            relabel(&mut cluster, pod, hash, generation);
        }
        let plan = cluster.plan();
        let (creates, names) = pod_changes(&plan);
        assert!(creates.is_empty(), "{pods:?}: {creates:?}");
        let reasons = reasons(&plan, PhaseKind::Deletes);
        assert_eq!(
            names.into_iter().zip(reasons).collect::<Vec<_>>(),
            deleted,
            "{pods:?}"
        );
        assert_eq!(status(&plan).updated_number_scheduled, updated, "{pods:?}");
    }
}

// D-54, D-56: of two revisions of one template, the one with the higher number is kept. If the apiserver rejects its renumbering,
// the other one is deleted already, and the next plan creates it again.
#[test]
fn d_56_no_template_is_lost_if_the_kept_revision_cannot_be_changed() {
    let mut cluster = Cluster::new(1).with(&["a@node-0 new ready"]);
    let good = cluster.revisions[0].clone();
    let revision = |name: &str, number, data| Revision {
        name: name.to_owned(),
        uid: format!("uid-of-{name}"),
        labels: [
            ("app".to_owned(), "foo".to_owned()),
            (HASH_LABEL.to_owned(), name.to_owned()),
        ]
        .into_iter()
        .collect(),
        number,
        data,
        ..good.clone()
    };
    cluster.revisions.push(revision("by-hand", 2, good.data.clone()));
    cluster
        .revisions
        .push(revision("other", 3, json!({"other": true}).into()));
    let written = actions(&cluster.plan(), PhaseKind::Revisions)
        .into_iter()
        .cloned()
        .collect::<Vec<_>>();
    let [relabel, delete, refused] = &written[..] else {
        panic!("{written:?}")
    };
    assert!(
        matches!(&delete.kind, ActionKind::DeleteRevision { revision, .. } if revision.name == good.name)
    );
    assert!(
        matches!(&refused.kind, ActionKind::UpdateRevision { revision, .. } if revision.name == "by-hand")
    );
    for action in [relabel, delete] {
        cluster.write(action);
    }
    // From then on the executor marks the revision like this.
    cluster.revisions[0].read_after_name_collision = true;
    for action in actions(&cluster.plan(), PhaseKind::Revisions) {
        cluster.write(action);
    }
    let history = cluster.revisions.iter().map(|revision| {
        (
            revision.name.as_str(),
            revision.number,
            revision.data == good.data,
        )
    });
    let expected = [("by-hand", 2, true), ("other", 3, false), (&*good.name, 4, true)];
    assert_eq!(history.collect::<Vec<_>>(), expected);
    assert_eq!(cluster.plan().error, None);
}
