//! What follows when a derived name is taken.

use nodewise_planner::{
    plan::{ActionKind, PhaseKind},
    snapshot::Deviation,
};
use serde_json::json;

use crate::support::{Cluster, actions};

#[test]
fn d_82_taken_names_are_remembered_until_the_node_has_what_it_should_have() {
    // (the node's pod, whether they still are)
    let table = [
        ("a@node-0 new", false),
        ("a@node-0 new unbound", false),
        ("a@node-0 old", true),
        ("a@node-0 new failed", true),
        ("a@node-0 new deleting", true),
        ("a@elsewhere new", true),
    ];
    for (pod, remembered) in table {
        let mut cluster = Cluster::new(1).with(&[pod]);
        cluster.state.pod_name_collisions = vec![("node-0".to_owned(), 1)];
        let kept = cluster.plan().state.pod_name_collisions;
        assert_eq!(!kept.is_empty(), remembered, "D-82: {pod}: {kept:?}");
    }
}

#[test]
fn d_62_q_14_a_shortened_revision_name_that_is_taken_tells_that_it_was_shortened() {
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
