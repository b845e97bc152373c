//! How long it is remembered that a node's derived pod name was taken.

use crate::support::Cluster;

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
