//! Tables have what was put into them.

use jiff::Timestamp;
use proptest::{collection::vec, option, prelude::*};

use super::*;

fn time() -> impl Strategy<Value = Option<Timestamp>> {
    let whole = (-5_i64..5).prop_map(|seconds| Timestamp::from_second(seconds).expect("a time"));
    let exact =
        any::<i32>().prop_map(|nanosecond| Timestamp::from_nanosecond(nanosecond.into()).expect("a time"));
    option::of(prop_oneof![3 => whole, 1 => exact])
}

/// Labels, some of which have the name of a node as their value.
fn labels() -> impl Strategy<Value = Labels> {
    proptest::collection::btree_map("[a-c]{0,2}", "n[0-3]|[0-2]?", 0..12)
        .prop_map(|labels| labels.into_iter().collect())
}

fn taint() -> impl Strategy<Value = Taint> {
    ("[a-c]", "[0-2]?").prop_map(|(key, value)| Taint {
        key,
        value,
        effect: TaintEffect::NoSchedule,
    })
}

fn node() -> impl Strategy<Value = Node> {
    let flags = (any::<bool>(), any::<bool>(), option::of(any::<bool>()));
    ("n?[0-9]{0,3}", labels(), vec(taint(), 0..3), flags, time()).prop_map(
        |(name, labels, taints, (unschedulable, in_maintenance, ready), ready_since)| Node {
            name,
            labels,
            taints,
            unschedulable,
            ready,
            ready_since,
            in_maintenance,
        },
    )
}

fn pod() -> impl Strategy<Value = Pod> {
    let target = prop_oneof![
        3 => "n[0-3]".prop_map(Target::Bound),
        1 => "n[0-3]".prop_map(Target::Meant),
        1 => Just(Target::Nowhere),
    ];
    let controller = option::of("[uv]").prop_map(|uid| {
        uid.map(|uid| {
            ControllerRef {
                kind: "DaemonSet".to_owned(),
                name: "é".to_owned(),
                uid,
            }
            .into()
        })
    });
    let phase = prop_oneof![
        Just(PodPhase::Running),
        Just(PodPhase::Failed),
        Just(PodPhase::Pending)
    ];
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    let numbers = prop_oneof![2 => Just((0, 0, 0)), 1 => (-3..3, 0..3_u32, 0..3_u32)];
    let names = ("p[0-9]{0,2}", "[0-9]{0,2}");
    (
        names,
        labels(),
        controller,
        target,
        phase,
        flags,
        (time(), time()),
        numbers,
    )
        .prop_map(
            |((name, uid), labels, controller, target, phase, flags, times, numbers)| Pod {
                name,
                uid,
                labels,
                controller,
                target,
                phase,
                ready: flags.0,
                ready_since: times.0,
                created: times.1,
                deleting: flags.1,
                has_finalizers: flags.2,
                deletion_cost: numbers.0,
                restarts: numbers.1,
                sidecar_restarts: numbers.2,
            },
        )
}

/// The order of the pods of a bucket, written down once more (D-38).
fn sorted(mut pods: Vec<Pod>) -> Vec<Pod> {
    pods.sort_by_key(|pod| {
        let is_gone = pod.deleting && pod.phase.is_terminal();
        let is_unbound = !matches!(pod.target, Target::Bound(_));
        let node = pod.target.node().map(ToOwned::to_owned);
        (
            node,
            is_gone,
            is_unbound,
            pod.created,
            pod.name.clone(),
            pod.uid.clone(),
        )
    });
    pods
}

proptest! {
    #[test]
    fn a_table_of_nodes_has_its_nodes_by_name(mut nodes in vec(node(), 0..12)) {
        prop_assert_eq!(Nodes::in_order(nodes.clone()).to_vec(), nodes.clone());
        nodes.sort_by(|a, b| a.name.cmp(&b.name));
        let table = Nodes::of(nodes.clone());
        prop_assert_eq!(table.to_vec(), nodes.clone());
        for node in &nodes {
            let found = table.find(&node.name).map(|index| table.at(index).name());
            prop_assert_eq!(found, Some(node.name.as_str()));
        }
        prop_assert_eq!(table.find("m"), None);
    }

    #[test]
    fn the_order_in_which_nodes_are_added_plays_no_part(nodes in vec(node(), 0..12)) {
        let mut distinct = nodes;
        distinct.sort_by(|a, b| a.name.cmp(&b.name));
        distinct.dedup_by(|a, b| a.name == b.name);
        let mut reversed = distinct.clone();
        reversed.reverse();
        prop_assert_eq!(Nodes::of(reversed).to_vec(), distinct);
    }

    /// A result by labels is that of each node, also if it reads a label whose value is the name.
    #[test]
    fn results_by_labels_are_those_of_each_node(nodes in vec(node(), 0..12), key in "[a-c]{0,2}", value in "n[0-3]|[0-2]?") {
        let table = Nodes::in_order(nodes.clone());
        let found = table.by_labels(|read| read == key, |node| Some(node.labels().get(&key) == Some(&value)));
        let expected: Box<[bool]> = nodes.iter().map(|node| node.labels.get(&key) == Some(&value)).collect();
        prop_assert_eq!(found, Some(expected));
    }

    #[test]
    fn a_table_of_pods_has_its_pods_in_order(pods in vec(pod(), 0..12), name in "n[0-3]") {
        let table = Pods::of(pods.clone());
        let sorted = sorted(pods);
        prop_assert_eq!(table.to_vec(), sorted.clone());
        let on_node: Vec<_> = table.on_node(&name).map(PodView::to_pod).collect();
        let expected: Vec<_> = sorted.into_iter().filter(|pod| pod.target.node() == Some(&name)).collect();
        prop_assert_eq!(on_node, expected);
    }
}

#[test]
fn a_node_and_its_pod_take_little_memory() {
    let count = 1_000;
    let nodes = (0..count).map(|index| {
        let name = format!("ip-10-0-{index:04}.eu-west-1.compute.internal");
        let values = [
            ("kubernetes.io/arch", "amd64".to_owned()),
            ("kubernetes.io/hostname", name.clone()),
            ("kubernetes.io/os", "linux".to_owned()),
            (
                "node.kubernetes.io/instance-type",
                format!("m5.{}xlarge", index % 4),
            ),
            ("topology.kubernetes.io/zone", format!("eu-west-1{}", index % 3)),
        ];
        Node {
            labels: values
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect(),
            name,
            taints: vec![],
            unschedulable: false,
            ready: Some(true),
            ready_since: Timestamp::from_second(1_700_000_000).ok(),
            in_maintenance: false,
        }
    });
    let nodes: Vec<Node> = nodes.collect();
    let pods = nodes.iter().enumerate().map(|(index, node)| Pod {
        name: format!("agent-{index:010}"),
        uid: format!("8a7b1a4e-3d9c-4f0e-9d3f-{index:012}"),
        labels: [("app".to_owned(), "agent".to_owned())].into_iter().collect(),
        controller: None,
        target: Target::Bound(node.name.clone()),
        phase: PodPhase::Running,
        ready: true,
        ready_since: Timestamp::from_second(1_700_000_000).ok(),
        created: Timestamp::from_second(1_700_000_000).ok(),
        deleting: false,
        has_finalizers: false,
        deletion_cost: 0,
        restarts: 0,
        sidecar_restarts: 0,
    });
    let pods = Pods::of(pods.collect()).bytes() / count;
    let nodes = Nodes::of(nodes).bytes() / count;
    // The names alone have 37 bytes, and those of a pod with its uid and its node 89.
    assert!(nodes <= 62, "{nodes} bytes for a node");
    assert!(pods <= 135, "{pods} bytes for a pod");
}
