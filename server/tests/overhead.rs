//! EvaluateNodes: which DaemonSets would run on nodes that need not exist, from messages to messages.

mod support;

use nodewise_proto::v1::{self, Rule};
use nodewise_server::{Config, Refusal, never};
use serde_json::{Value, json};
use support::{Server, engine};
use tonic::Code;
use tonic_types::StatusExt as _;

fn daemon_set(name: &str, spec: &Value) -> v1::DaemonSet {
    let object = json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
        },
    });
    v1::DaemonSet {
        object: object.to_string().into(),
        ..v1::DaemonSet::default()
    }
}

fn asking(requests: &Value) -> Value {
    json!({"containers": [{"name": "c", "image": "c:1", "resources": {"requests": requests}}]})
}

fn shape(labels: &[(&str, &str)], taints: &[(&str, &str)]) -> v1::NodeShape {
    let text = |text: &&str| (*text).to_owned();
    v1::NodeShape {
        name: String::new(),
        labels: labels
            .iter()
            .map(|(key, value)| v1::Label {
                key: text(key),
                value: text(value),
            })
            .collect(),
        taints: taints
            .iter()
            .map(|(key, effect)| v1::Taint {
                key: text(key),
                value: String::new(),
                effect: text(effect),
            })
            .collect(),
    }
}

fn request(nodes: Vec<v1::NodeShape>, daemon_sets: Vec<v1::DaemonSet>) -> v1::EvaluateNodesRequest {
    v1::EvaluateNodesRequest {
        nodes,
        daemon_sets,
        feature_gates: Vec::new(),
    }
}

fn evaluate(request: v1::EvaluateNodesRequest) -> v1::EvaluateNodesResponse {
    engine().evaluate_nodes(request, &never).expect("an answer")
}

fn shown(requests: &[v1::ResourceQuantity]) -> String {
    let each: Vec<_> = requests
        .iter()
        .map(|one| format!("{}={}", one.name, one.quantity))
        .collect();
    each.join(" ")
}

/// The evaluation of a node, and its decisions.
fn of_node(
    response: &v1::EvaluateNodesResponse,
    node: usize,
) -> (&v1::NodeEvaluation, Vec<&v1::DaemonSetDecision>) {
    let evaluation = &response.evaluations[response.node_evaluations[node] as usize];
    let decision = |index: &u32| &response.decisions[*index as usize];
    (evaluation, evaluation.decisions.iter().map(decision).collect())
}

fn violations(request: v1::EvaluateNodesRequest) -> Vec<String> {
    match engine().evaluate_nodes(request, &never) {
        Err(Refusal::Invalid { violations, .. }) => violations.iter().map(ToString::to_string).collect(),
        other => panic!("expected violations, got {other:?}"),
    }
}

#[test]
fn nodes_that_are_alike_share_an_evaluation() {
    let gpu = json!({
        "nodeSelector": {"pool": "gpu"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}, "limits": {"nvidia.com/gpu": 1}}}],
    });
    let sets = vec![
        daemon_set("proxy", &asking(&json!({"cpu": "100m", "memory": "128Mi"}))),
        daemon_set("gpu", &gpu),
    ];
    let nodes = vec![
        shape(&[("pool", "web"), ("kubernetes.io/hostname", "a")], &[]),
        shape(&[("pool", "gpu")], &[("gpu", "NoSchedule")]),
        shape(&[("pool", "web"), ("kubernetes.io/hostname", "b")], &[]),
    ];
    let response = evaluate(request(nodes, sets));
    assert_eq!(response.node_evaluations, [0, 1, 0]);
    let (web, decisions) = of_node(&response, 0);
    assert_eq!(shown(&web.requests), "cpu=100m memory=128Mi pods=1");
    assert!(decisions[0].runs && decisions[0].rule() == Rule::Eligible);
    assert!(!decisions[1].runs && decisions[1].rule() == Rule::NodeSelector);
    assert_eq!(
        decisions[1].message,
        "nodeSelector asks for pool=gpu, and the node has pool=web"
    );
    let (gpu, decisions) = of_node(&response, 1);
    assert_eq!(shown(&gpu.requests), "cpu=1 nvidia.com/gpu=1 pods=1");
    assert_eq!(decisions[0].rule(), Rule::TaintNoSchedule);
    assert!(decisions[1].runs && !gpu.is_incomplete);
    let names: Vec<_> = response.daemon_sets.iter().map(|set| set.name.as_str()).collect();
    assert_eq!(names, ["proxy", "gpu"]);
    assert_eq!(shown(&response.daemon_sets[1].requests), "cpu=1 nvidia.com/gpu=1");
}

#[test]
fn a_daemon_set_that_cannot_be_read_does_not_fail_the_others() {
    let sets = vec![
        daemon_set("good", &asking(&json!({"cpu": "1"}))),
        v1::DaemonSet {
            object: "{".into(),
            ..v1::DaemonSet::default()
        },
        daemon_set("odd", &asking(&json!({"cpu": "1x"}))),
        daemon_set("affinity", &json!({"affinity": 1})),
        v1::DaemonSet {
            object: json!({"kind": "Deployment", "spec": {"template": {}}})
                .to_string()
                .into(),
            ..v1::DaemonSet::default()
        },
        v1::DaemonSet::default(),
    ];
    let response = evaluate(request(vec![shape(&[], &[])], sets));
    let errors: Vec<_> = response
        .daemon_sets
        .iter()
        .map(|set| set.error.as_str())
        .collect();
    let begins = [
        "",
        "EOF while parsing",
        "spec.template.spec.containers[0].resources.requests.cpu: `1x` is not a quantity",
        "spec.template.spec.affinity: invalid type",
        "kind: must be DaemonSet",
        "is required",
    ];
    for (error, begin) in errors.iter().zip(begins) {
        assert!(error.starts_with(begin), "{error}");
    }
    assert_eq!(errors[0], "");
    let (evaluation, decisions) = of_node(&response, 0);
    assert_eq!(shown(&evaluation.requests), "cpu=1 pods=2");
    assert!(evaluation.is_incomplete);
    // Where the odd one runs is known, although what it requests is not.
    let rules: Vec<_> = decisions.iter().map(|decision| decision.rule()).collect();
    let unknown = Rule::Unspecified;
    assert_eq!(
        rules,
        [Rule::Eligible, unknown, Rule::Eligible, unknown, unknown, unknown]
    );
}

#[test]
fn wrong_nodes_are_refused_with_the_field_and_what_would_be_right() {
    let mut nodes = vec![
        shape(&[("", "x"), ("zone", "a"), ("zone", "b")], &[]),
        shape(&[], &[("", "NoSchedule"), ("a", "NoSchedul")]),
    ];
    nodes[1].name = "n".repeat(254);
    let wrong = v1::EvaluateNodesRequest {
        feature_gates: vec![99],
        ..request(nodes, vec![])
    };
    assert_eq!(
        violations(wrong),
        [
            "feature_gates[0]: 99 is no FeatureGate that this server knows",
            "nodes[0].labels[0].key: is required",
            "nodes[0].labels: `zone` is there twice; a node has one value of each label",
            "nodes[1].name: has 254 bytes; at most 253 are taken",
            "nodes[1].taints[0].key: is required",
            "nodes[1].taints[1].effect: is `NoSchedul`; must be NoSchedule, PreferNoSchedule or NoExecute",
        ]
    );
}

#[test]
fn too_many_decisions_are_refused() {
    let table = [
        (
            request(
                vec![v1::NodeShape::default(); 2_001],
                vec![v1::DaemonSet::default(); 2_000],
            ),
            "nodes: 2001 nodes and 2000 DaemonSets are 4002000 decisions; at most 4000000 are taken: send the nodes in parts",
        ),
        (
            request(vec![], vec![v1::DaemonSet::default(); 10_001]),
            "daemon_sets: 10001 are more than the 10000 that this server takes",
        ),
    ];
    for (request, expected) in table {
        match engine().evaluate_nodes(request, &never) {
            Err(Refusal::TooLarge(violation)) => assert_eq!(violation.to_string(), expected),
            other => panic!("expected a refusal, got {other:?}"),
        }
    }
}

#[test]
fn without_nodes_the_requests_of_each_daemon_set_are_answered() {
    let response = evaluate(request(
        vec![],
        vec![daemon_set("a", &asking(&json!({"cpu": "1500m"})))],
    ));
    assert!(response.evaluations.is_empty() && response.decisions.is_empty());
    assert_eq!(shown(&response.daemon_sets[0].requests), "cpu=1500m");
    assert_eq!(
        evaluate(request(vec![], vec![])),
        v1::EvaluateNodesResponse::default()
    );
    let alone = evaluate(request(vec![shape(&[], &[])], vec![]));
    assert_eq!(shown(&of_node(&alone, 0).0.requests), "pods=0");
}

#[test]
fn a_feature_gate_allows_comparisons_in_tolerations() {
    let tolerating =
        json!({"tolerations": [{"key": "level", "operator": "Gt", "value": "3", "effect": "NoSchedule"}]});
    let mut asked = request(
        vec![shape(&[], &[("level", "NoSchedule")])],
        vec![daemon_set("a", &tolerating)],
    );
    asked.nodes[0].taints[0].value = "5".to_owned();
    assert!(!evaluate(asked.clone()).decisions[0].runs);
    asked.feature_gates = vec![v1::FeatureGate::TaintTolerationComparisonOperators.into()];
    assert!(evaluate(asked).decisions[0].runs);
}

#[test]
fn work_ends_when_the_caller_leaves() {
    let asked = request(vec![shape(&[], &[])], vec![daemon_set("a", &json!({}))]);
    let stopped = engine().evaluate_nodes(asked, &|| true);
    assert!(matches!(stopped, Err(Refusal::Stopped)), "{stopped:?}");
}

#[tokio::test]
async fn the_method_is_served_announced_and_bounded() {
    let server = Server::start(Config::default()).await;
    let mut client = server.client().await;
    let capabilities = client.get_capabilities(v1::GetCapabilitiesRequest {}).await;
    let methods = capabilities.expect("capabilities").into_inner().methods;
    assert!(
        methods.iter().any(|method| method == "EvaluateNodes"),
        "{methods:?}"
    );

    let sets: Vec<_> = (0..100)
        .map(|index| daemon_set(&format!("set-{index}"), &asking(&json!({"cpu": "10m"}))))
        .collect();
    let nodes: Vec<_> = (0..1_000)
        .map(|index| shape(&[("kubernetes.io/hostname", &format!("host-{index}"))], &[]))
        .collect();
    let asked = request(nodes, sets);
    let response = client
        .evaluate_nodes(asked.clone())
        .await
        .expect("an answer")
        .into_inner();
    assert_eq!(response, evaluate(asked), "the same as without a network");
    assert_eq!(shown(&response.evaluations[0].requests), "cpu=1 pods=100");

    let refused = client
        .evaluate_nodes(request(vec![shape(&[("", "")], &[])], vec![]))
        .await;
    let status = refused.expect_err("a refusal");
    assert_eq!(status.code(), Code::InvalidArgument);
    let field = &status
        .get_details_bad_request()
        .expect("a violation")
        .field_violations[0]
        .field;
    assert_eq!(field, "nodes[0].labels[0].key");

    // A request that has more and smaller parts than any cluster is refused before it is decoded.
    let tiny = request(vec![], vec![v1::DaemonSet::default(); 200_000]);
    let status = client.evaluate_nodes(tiny).await.expect_err("a refusal");
    assert_eq!(status.code(), Code::ResourceExhausted);
}
