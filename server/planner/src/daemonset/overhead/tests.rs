use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    core::{
        plan::ActionKind,
        snapshot::{Node, Snapshot},
    },
    daemonset::{
        self,
        explain::Rule,
        workload::{DaemonSet, NodeSelectorRequirement, NodeSelectorTerm, Toleration},
    },
    fixtures::{self, node, pairs, table},
};

fn candidate(scheduling: Scheduling) -> Candidate {
    Candidate {
        scheduling,
        selector: fixtures::daemon_set().selector,
        deleting: false,
    }
}

fn evaluate_all(candidates: Vec<Scheduling>, nodes: &[Node]) -> Evaluations {
    let candidates: Vec<_> = candidates.into_iter().map(|one| Some(candidate(one))).collect();
    evaluate(&candidates, &table(nodes), false, &|| false).expect("nothing asks to stop")
}

/// The decisions about a node, by candidate.
fn decisions(evaluations: &Evaluations, node: usize) -> Vec<&Decision> {
    let row = &evaluations.distinct[evaluations.of_node[node] as usize];
    row.iter()
        .map(|index| &evaluations.decisions[*index as usize])
        .collect()
}

/// For each node, whether each candidate runs.
fn runs(evaluations: &Evaluations) -> Vec<Vec<bool>> {
    let nodes = 0..evaluations.of_node.len();
    let of_node = |node| {
        decisions(evaluations, node)
            .iter()
            .map(|one| one.runs == Some(true))
            .collect()
    };
    nodes.map(of_node).collect()
}

fn term(key: &str, operator: &str, values: &[&str]) -> NodeSelectorTerm {
    NodeSelectorTerm {
        match_expressions: vec![NodeSelectorRequirement {
            key: key.to_owned(),
            operator: operator.to_owned(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        }],
        match_fields: vec![],
    }
}

fn requiring(terms: Vec<NodeSelectorTerm>) -> Scheduling {
    Scheduling {
        required_terms: Some(terms),
        ..Scheduling::default()
    }
}

fn requests_of(spec: &Value) -> Option<PodRequests> {
    requests(&json!({ "spec": spec }).into()).ok()
}

fn asking(requests: &Value) -> Value {
    json!({"containers": [{"name": "c", "resources": {"requests": requests}}]})
}

fn shown(sum: &Sum) -> String {
    let each: Vec<_> = sum
        .requests
        .iter()
        .map(|(name, amount)| format!("{name}={amount}"))
        .collect();
    each.join(" ")
}

/// The sum for each node.
fn sums(evaluations: &Evaluations, requests: &[Option<PodRequests>]) -> Vec<String> {
    let sums = Sums::new(requests);
    let nodes = 0..evaluations.of_node.len();
    nodes
        .map(|node| shown(&sums.of(decisions(evaluations, node).into_iter())))
        .collect()
}

#[test]
fn karpenter_715_of_daemon_sets_that_are_split_by_size_only_the_one_for_the_size_counts() {
    const CPU: &str = "karpenter.k8s.aws/instance-cpu";
    let split = vec![
        requiring(vec![term(CPU, "Lt", &["17"])]),
        requiring(vec![term(CPU, "Gt", &["16"])]),
    ];
    let nodes = [node("", &[(CPU, "4")], &[]), node("", &[(CPU, "64")], &[])];
    let found = evaluate_all(split, &nodes);
    let requests = [
        requests_of(&asking(&json!({"cpu": "100m"}))),
        requests_of(&asking(&json!({"cpu": "4"}))),
    ];
    assert_eq!(sums(&found, &requests), ["cpu=100m pods=1", "cpu=4 pods=1"]);
}

#[test]
fn karpenter_2838_a_well_known_label_that_a_shape_lacks_is_not_any_value() {
    const TYPE: &str = "node.kubernetes.io/instance-type";
    let candidates = || {
        vec![
            requiring(vec![term(TYPE, "In", &["m5.large"])]),
            requiring(vec![term(TYPE, "NotIn", &["m5.large"])]),
        ]
    };
    let nodes = [
        node("", &[], &[]),
        node("", &[(TYPE, "m5.large")], &[]),
        node("", &[(TYPE, "c5.large")], &[]),
    ];
    let found = evaluate_all(candidates(), &nodes);
    assert_eq!(runs(&found), [[false, true], [true, false], [false, true]]);
    // The response names the label, because its value would turn both decisions around.
    assert!(
        decisions(&found, 0)
            .iter()
            .all(|decision| decision.missing_labels == [TYPE])
    );
    assert!(
        decisions(&found, 1)
            .iter()
            .all(|decision| decision.missing_labels.is_empty())
    );
}

#[test]
fn karpenter_1337_every_term_of_the_affinity_counts_not_only_the_first() {
    const MAKER: &str = "karpenter.k8s.aws/instance-gpu-manufacturer";
    let terms = vec![
        term("zalando.org/nvidia-gpu", "Exists", &[]),
        term(MAKER, "In", &["nvidia"]),
    ];
    let reversed = terms.iter().rev().cloned().collect();
    let found = evaluate_all(
        vec![requiring(terms), requiring(reversed)],
        &[node("", &[(MAKER, "nvidia")], &[])],
    );
    assert_eq!(runs(&found), [[true, true]]);
}

#[test]
fn karpenter_1749_a_toleration_with_exists_and_no_key_tolerates_every_taint() {
    let everything = Scheduling {
        tolerations: vec![Toleration {
            operator: "Exists".to_owned(),
            ..Toleration::default()
        }],
        ..Scheduling::default()
    };
    let tainted = node("", &[], &["team=a:NoSchedule", "drain:NoExecute"]);
    let found = evaluate_all(vec![everything, Scheduling::default()], &[tainted]);
    assert_eq!(runs(&found), [[true, false]]);
    assert_eq!(decisions(&found, 0)[1].rule, Some(Rule::TaintNoExecute));
}

#[test]
fn karpenter_532_the_affinity_of_the_template_counts_for_pools_without_a_selector() {
    const POOL: &str = "karpenter.sh/nodepool";
    let of_pool = |pool| requiring(vec![term(POOL, "In", &[pool])]);
    let found = evaluate_all(vec![of_pool("a"), of_pool("b")], &[node("", &[(POOL, "a")], &[])]);
    assert_eq!(runs(&found), [[true, false]]);
    let other = decisions(&found, 0)[1];
    assert_eq!(
        other.message,
        "the required node affinity does not match: it asks for karpenter.sh/nodepool In [b], and the node has karpenter.sh/nodepool=a"
    );
}

#[test]
fn karpenter_2161_labels_that_a_node_gets_later_are_named() {
    const REGISTERED: &str = "karpenter.sh/registered";
    let selecting = Scheduling {
        node_selector: pairs(&[(REGISTERED, "true")]),
        ..Scheduling::default()
    };
    let nodes = [node("", &[], &[]), node("", &[(REGISTERED, "true")], &[])];
    let found = evaluate_all(vec![selecting], &nodes);
    assert_eq!(runs(&found), [[false], [true]]);
    assert_eq!(decisions(&found, 0)[0].missing_labels, [REGISTERED]);
}

#[test]
fn karpenter_provider_aws_6507_only_daemon_sets_count_and_each_once() {
    let small = asking(&json!({"cpu": "50m", "memory": "64Mi"}));
    let requests: Vec<_> = (0..6).map(|_| requests_of(&small)).collect();
    let found = evaluate_all(vec![Scheduling::default(); 6], &[node("", &[], &[])]);
    assert_eq!(sums(&found, &requests), ["cpu=300m memory=384Mi pods=6"]);
}

#[test]
fn karpenter_provider_aws_1573_limits_count_where_there_are_no_requests() {
    let limited =
        json!({"containers": [{"name": "c", "resources": {"limits": {"cpu": "1", "memory": "500Mi"}}}]});
    let found = evaluate_all(vec![Scheduling::default()], &[node("", &[], &[])]);
    assert_eq!(
        sums(&found, &[requests_of(&limited)]),
        ["cpu=1 memory=500Mi pods=1"]
    );
}

#[test]
fn sums_without_a_decision_or_without_requests_are_incomplete() {
    let candidates = [Some(candidate(Scheduling::default())), None];
    let nodes = [node("", &[], &[]), node("", &[], &["a:NoSchedule"])];
    let found = evaluate(&candidates, &table(&nodes), false, &|| false).expect("nothing asks to stop");
    let known = requests_of(&asking(&json!({"cpu": "1"})));
    let sum =
        |requests: &[Option<PodRequests>], node| Sums::new(requests).of(decisions(&found, node).into_iter());
    let first = sum(&[known.clone(), None], 0);
    assert_eq!(
        (shown(&first).as_str(), first.is_incomplete),
        ("cpu=1 pods=1", true)
    );
    let unknown = decisions(&found, 0)[1];
    assert_eq!((unknown.runs, unknown.rule), (None, None));

    let found = evaluate(&candidates[..1], &table(&nodes), false, &|| false).expect("nothing asks to stop");
    let sum =
        |requests: &[Option<PodRequests>], node| Sums::new(requests).of(decisions(&found, node).into_iter());
    assert!(sum(&[None], 0).is_incomplete, "it runs there");
    assert!(!sum(&[None], 1).is_incomplete, "it does not run there");
    assert!(!sum(&[known], 0).is_incomplete);
    // Nothing at all.
    let none = Sums::new(&[]).of([].into_iter());
    assert_eq!((shown(&none).as_str(), none.is_incomplete), ("pods=0", false));
}

#[test]
fn a_sum_that_is_too_large_is_incomplete_and_pods_are_counted_not_summed() {
    let huge = requests_of(&asking(&json!({"cpu": "1e29", "pods": "5"})));
    let found = evaluate_all(vec![Scheduling::default(); 2], &[node("", &[], &[])]);
    let sum = Sums::new(&[huge.clone(), huge]).of(decisions(&found, 0).into_iter());
    assert!(sum.is_incomplete);
    assert_eq!(sum.requests.last(), Some(&("pods".to_owned(), "2".to_owned())));
}

#[test]
fn d_71_a_workload_that_is_deleted_or_selects_everything_runs_nowhere() {
    let ordinary = candidate(Scheduling::default());
    let deleting = Candidate {
        deleting: true,
        ..ordinary.clone()
    };
    let selects_all = Candidate {
        selector: Some(Selector {
            match_labels: Some(vec![]),
            match_expressions: None,
        }),
        ..ordinary
    };
    let found = evaluate(
        &[Some(deleting), Some(selects_all)],
        &table(&[node("", &[], &[])]),
        false,
        &|| false,
    );
    let found = found.expect("nothing asks to stop");
    for (decision, word) in decisions(&found, 0).into_iter().zip(["deleted", "selector"]) {
        assert_eq!(
            (decision.runs, decision.rule),
            (Some(false), Some(Rule::WorkloadInactive))
        );
        assert!(decision.message.contains(word), "{}", decision.message);
    }
}

#[test]
fn equal_results_are_kept_once() {
    let nodes: Vec<_> = (0..1_000)
        .map(|index| {
            let (zone, host) = (format!("z{}", index % 2), format!("host-{index}"));
            node(&host, &[("zone", &zone), ("kubernetes.io/hostname", &host)], &[])
        })
        .collect();
    let zonal = Scheduling {
        node_selector: pairs(&[("zone", "z0")]),
        ..Scheduling::default()
    };
    let found = evaluate_all(vec![zonal, Scheduling::default()], &nodes);
    assert_eq!((found.decisions.len(), found.distinct.len()), (3, 2));
    assert_eq!(found.of_node[..4], [0, 1, 0, 1]);
}

#[test]
fn explanations_beyond_the_limit_are_left_out() {
    let key = "k".repeat(300);
    let selecting = |index: usize| Scheduling {
        node_selector: vec![(key.clone(), format!("{index}"))],
        ..Scheduling::default()
    };
    let count = 4_000;
    let found = evaluate_all((0..count).map(selecting).collect(), &[node("", &[], &[])]);
    let text = |decision: &Decision| {
        decision.message.len() + decision.missing_labels.iter().map(String::len).sum::<usize>()
    };
    assert!(found.decisions.iter().map(text).sum::<usize>() <= most_text(&table(&[node("", &[], &[])])));
    assert!(!found.decisions[0].message.is_empty());
    let last = &found.decisions[count - 1];
    assert_eq!((last.message.as_str(), last.missing_labels.len()), ("", 0));
    assert_eq!(last.rule, Some(Rule::NodeSelector));
}

#[test]
fn a_stop_ends_the_evaluation() {
    let candidates = [Some(candidate(Scheduling::default()))];
    assert_eq!(
        evaluate(&candidates, &table(&[node("", &[], &[])]), false, &|| true),
        None
    );
}

fn schedulings() -> impl Strategy<Value = Scheduling> {
    let key = prop::sample::select(vec!["zone", "disk"]);
    let value = || prop::sample::select(vec!["a", "b"]);
    let expression = (
        key.clone(),
        prop::sample::select(vec!["In", "NotIn", "Exists", "DoesNotExist"]),
        value(),
    );
    let expression = expression.prop_map(|(key, operator, value)| NodeSelectorRequirement {
        key: key.to_owned(),
        operator: operator.to_owned(),
        values: operator
            .ends_with("In")
            .then(|| value.to_owned())
            .into_iter()
            .collect(),
    });
    let name = prop::sample::select(vec!["n0", "n1"]).prop_map(|name| NodeSelectorRequirement {
        key: "metadata.name".to_owned(),
        operator: "In".to_owned(),
        values: vec![name.to_owned()],
    });
    let term = (
        prop::collection::vec(expression, 0..3),
        prop::option::weighted(0.2, name),
    );
    let term = term.prop_map(|(match_expressions, name)| NodeSelectorTerm {
        match_expressions,
        match_fields: name.into_iter().collect(),
    });
    let toleration = (
        prop::sample::select(vec!["", "x", "y"]),
        prop::sample::select(vec!["", "NoSchedule", "NoExecute"]),
    );
    let toleration = toleration.prop_map(|(key, effect)| Toleration {
        key: key.to_owned(),
        operator: "Exists".to_owned(),
        value: String::new(),
        effect: effect.to_owned(),
    });
    (
        prop::option::weighted(0.1, prop::sample::select(vec!["n0", "n1"])),
        prop::collection::btree_map(key, value(), 0..2),
        prop::option::of(prop::collection::vec(term, 0..3)),
        prop::collection::vec(toleration, 0..2),
    )
        .prop_map(|(name, selector, required_terms, tolerations)| Scheduling {
            node_name: name.unwrap_or_default().to_owned(),
            node_selector: selector
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
            required_terms,
            tolerations,
            host_network: false,
        })
}

fn nodes() -> impl Strategy<Value = Vec<Node>> {
    let value = || prop::option::of(prop::sample::select(vec!["a", "b"]));
    let taints = prop::sample::subsequence(vec!["x:NoSchedule", "y:NoExecute", "z:PreferNoSchedule"], 0..3);
    let one = (value(), value(), taints);
    prop::collection::vec(one, 1..5).prop_map(|nodes| {
        let one = |index, zone: Option<&str>, disk: Option<&str>, taints: &[&str]| {
            let labels = [("zone", zone), ("disk", disk)];
            let labels: Vec<_> = labels
                .iter()
                .filter_map(|(key, value)| Some((*key, (*value)?)))
                .collect();
            node(&format!("n{index}"), &labels, taints)
        };
        let nodes = nodes.iter().enumerate();
        nodes
            .map(|(index, (zone, disk, taints))| one(index, *zone, *disk, taints))
            .collect()
    })
}

proptest! {
    /// The decisions are those of a plan: it creates a pod on exactly these nodes.
    #[test]
    fn d_8_decisions_are_those_of_a_plan_for_nodes_without_pods(
        schedulings in prop::collection::vec(schedulings(), 1..4), nodes in nodes(),
    ) {
        let found = evaluate_all(schedulings.clone(), &nodes);
        for (index, scheduling) in schedulings.into_iter().enumerate() {
            let snapshot = Snapshot {
                buckets: vec![fixtures::bucket(nodes.clone(), vec![])],
                ..fixtures::snapshot(DaemonSet { scheduling, ..fixtures::daemon_set() }, vec![])
            };
            let plan = daemonset::plan(&snapshot);
            let actions = plan.phases.iter().flat_map(|phase| &phase.batches).flat_map(|batch| &batch.actions);
            let mut created: Vec<&str> = actions
                .filter_map(|action| match &action.kind {
                    ActionKind::CreatePod { node_name, .. } => Some(node_name.as_str()),
                    _ => None,
                })
                .collect();
            created.sort_unstable();
            let runs = runs(&found);
            let expected: Vec<&str> = (nodes.iter().zip(&runs))
                .filter(|(_, runs)| runs[index])
                .map(|(node, _)| node.name.as_str())
                .collect();
            prop_assert_eq!(created, expected);
        }
    }

    /// A decision without missing labels stays as it is, whatever further labels the node gets.
    #[test]
    fn only_missing_labels_can_turn_a_decision_around(
        scheduling in schedulings(), nodes in nodes(), zone in "[ab]", disk in "[ab]",
    ) {
        let before = evaluate_all(vec![scheduling.clone()], &nodes);
        let with_all: Vec<Node> = nodes.iter().map(|node| {
            let mut labels = vec![("zone", zone.as_str()), ("disk", disk.as_str())];
            labels.extend(node.labels.iter());
            Node { labels: fixtures::labels(&labels), ..node.clone() }
        }).collect();
        let after = evaluate_all(vec![scheduling], &with_all);
        for index in 0..nodes.len() {
            let (before, after) = (decisions(&before, index)[0], decisions(&after, index)[0]);
            prop_assert!(
                before.runs == after.runs || !before.missing_labels.is_empty(), "{:?} then {:?}", before, after
            );
        }
    }
}
