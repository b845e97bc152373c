//! Odd nodes, as a kubelet or anyone who can update a node may write.

use nodewise_proto::{Timestamp, v1};
use nodewise_server::{OddKind, OddReason};
use serde_json::json;

use super::{
    ask, decided, engine, junk, label, plan, says,
    support::{Cluster, Form, NOW, created_nodes, inline, moment, node},
};

/// A settled cluster whose workload has a node selector.
fn with_node_selector() -> Cluster {
    let mut cluster = Cluster::settled(3);
    cluster.daemon_set["spec"]["template"]["spec"]["nodeSelector"] = json!({"kubernetes.io/os": "linux"});
    cluster
}

#[test]
fn a_node_may_have_any_number_of_labels() {
    let usual = plan(&with_node_selector());
    says(&usual, &[]);
    let name = node(1).name;
    // The last case has more than 1 MiB of labels.
    for count in [1_017, 1_018, 100_000, 200_000] {
        let mut cluster = with_node_selector();
        cluster.nodes[1].labels.splice(0..0, junk(count));
        let there = cluster.nodes[1].labels.len();
        let odd = plan(&cluster);
        if there > 1_024 {
            let expected =
                format!("Node {name}: labels: there are {there}, more than 1024; all of them are read");
            says(&odd, &[&expected]);
        } else {
            says(&odd, &[]);
        }
        assert_eq!(decided(odd), decided(usual.clone()), "{count}");
    }
}

/// No apiserver serves such labels.
#[test]
fn duplicate_and_empty_label_keys_are_warnings() {
    let name = node(1).name;
    let mut cluster = with_node_selector();
    let labels = &mut cluster.nodes[1].labels;
    labels.insert(0, label("kubernetes.io/os", "plan9"));
    labels.push(label("", "x"));
    let odd = plan(&cluster);
    says(
        &odd,
        &[
            &format!("Node {name}: labels: 1 without a key; they are left out"),
            &format!(
                "Node {name}: labels: key `kubernetes.io/os` is there more than once; its last value is used"
            ),
        ],
    );
    assert_eq!(decided(odd), decided(plan(&with_node_selector())));
}

fn taints(count: usize, effect: &str) -> Vec<v1::Taint> {
    let taint = |number| v1::Taint {
        key: format!("t{number:x}"),
        value: String::new(),
        effect: effect.into(),
    };
    (0..count).map(taint).collect()
}

/// All taints are read: any of them may forbid a pod, or require that it is deleted.
#[test]
fn a_node_may_have_any_number_of_taints() {
    const MANY: usize = 60_000;
    let name = node(1).name;
    let warning = format!("Node {name}: taints: there are {MANY}, more than 1024; all of them are read");
    // (effect, whether all taints are tolerated, whether a pod starts, whether a pod may stay)
    let table = [
        ("PreferNoSchedule", false, true, true),
        ("NoSchedule", false, false, true),
        ("NoExecute", false, false, false),
        ("NoSchedule", true, true, true),
        ("NoExecute", true, true, true),
    ];
    for (effect, all_tolerated, runs, keeps) in table {
        for mut cluster in [Cluster::settled(2), Cluster::empty(2)] {
            let is_there = !cluster.pods.is_empty();
            cluster.nodes[1].taints = taints(MANY, effect);
            let mut tolerations: Vec<_> = (0..1_023)
                .map(|number| json!({"key": format!("t{number:x}"), "operator": "Exists"}))
                .collect();
            if all_tolerated {
                tolerations.push(json!({"operator": "Exists"}));
            }
            cluster.daemon_set["spec"]["template"]["spec"]["tolerations"] = json!(tolerations);
            let plan = plan(&cluster);
            says(&plan, &[&warning]);
            let deletes = super::support::actions(&plan)
                .filter(|action| matches!(action.kind, Some(v1::action::Kind::DeletePod(_))));
            if is_there {
                assert_eq!(deletes.count(), usize::from(!keeps), "{effect} {all_tolerated}");
            } else {
                assert_eq!(
                    created_nodes(&plan).contains(&name),
                    runs,
                    "{effect} {all_tolerated}"
                );
            }
        }
    }
}

/// The smallest objects: nodes with short names and no labels.
#[test]
fn a_large_cluster_may_have_small_nodes() {
    let mut cluster = Cluster::empty(0);
    cluster.nodes = (0..50_000)
        .map(|number| v1::Node {
            name: format!("n{number}"),
            ready: v1::ConditionStatus::True.into(),
            ..Default::default()
        })
        .collect();
    let plan = plan(&cluster);
    says(&plan, &[]);
    assert_eq!(created_nodes(&plan).len(), 250);
}

/// If all pods fail, or all names are taken, the state has an entry for each node.
#[test]
fn a_large_state_may_name_small_nodes() {
    let mut request = inline(&Cluster::settled(2));
    let name = |number| format!("n{number}");
    let state = v1::ReconcileState {
        failed_pod_backoffs: (0..50_000)
            .map(|number| v1::FailedPodBackoff {
                observed_generation: 1,
                node_name: name(number),
                delay: Some(nodewise_proto::Duration { seconds: 1, nanos: 0 }),
                last: Some(Timestamp {
                    seconds: NOW,
                    nanos: 0,
                }),
            })
            .collect(),
        pod_name_collisions: (0..50_000)
            .map(|number| v1::PodNameCollision {
                node_name: name(number),
                count: 1,
                ..Default::default()
            })
            .collect(),
        ..Default::default()
    };
    request.snapshot.as_mut().expect("a snapshot").state = Some(state);
    ask(&engine(), &request);
}

#[test]
fn warnings_are_counted_and_do_not_depend_on_the_cache() {
    let mut cluster = with_node_selector();
    cluster.nodes[1].labels.splice(0..0, junk(2_000));
    cluster.nodes[2].taints = taints(2_000, "PreferNoSchedule");
    cluster.pods[0].ready_transition_time = moment(i64::MAX);
    let warm = engine();
    let mut answers = vec![ask(&engine(), &cluster.request(2, Form::InlineWithDigest))];
    for form in [Form::InlineWithDigest, Form::InlineWithDigest, Form::DigestOnly] {
        answers.push(ask(&warm, &cluster.request(2, form)));
    }
    says(
        &answers[0],
        &["Node ", "Node ", "Pod node-agent-00000: ready_transition_time: "],
    );
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:#?}");
    for (kind, reason, count) in [
        (OddKind::Node, OddReason::Labels, 3),
        (OddKind::Node, OddReason::Taints, 3),
        (OddKind::Pod, OddReason::Time, 3),
        (OddKind::Pod, OddReason::Labels, 0),
    ] {
        assert_eq!(warm.warnings(kind, reason), count, "{kind:?} {reason:?}");
    }
}

/// The number of warnings in a plan is bounded, and the plan says how many it leaves out.
#[test]
fn of_many_odd_nodes_the_first_ones_have_warnings() {
    let mut cluster = Cluster::empty(100);
    for node in &mut cluster.nodes {
        node.labels.extend(junk(1_024));
    }
    let mut shuffled = cluster.clone();
    shuffled.nodes.reverse();
    for cluster in [cluster, shuffled] {
        for buckets in [1, 16] {
            let plan = ask(&engine(), &cluster.request(buckets, Form::Inline));
            assert_eq!((plan.warnings.len(), plan.more_warnings), (32, 68));
            let mut names: Vec<_> = cluster.nodes.iter().map(|node| node.name.clone()).collect();
            names.sort_unstable();
            let found: Vec<_> = plan.warnings.iter().map(|warning| warning.name.clone()).collect();
            assert_eq!(found, names[..32]);
        }
    }
}
