//! Measures the time of an answer about 1,000 nodes and 100 DaemonSets, from the message to the message, on one thread. Fails if the
//! median is over the goal.

use std::time::{Duration, Instant};

use anyhow::ensure;
use nodewise_proto::v1;
use nodewise_server::{ByteSize, Engine, Limits, never};
use prost::Message as _;
use serde_json::{Value, json};

const NODES: usize = 1_000;
const DAEMON_SETS: usize = 100;
/// Timed calls, and calls before them that are not timed.
const CALLS: usize = 50;
const WARM_UP: usize = 5;
/// The goal.
const LONGEST: Duration = Duration::from_millis(50);

fn main() -> anyhow::Result<()> {
    // `cargo test --all-targets` runs this program too, without the flag.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let engine = Engine::new(Limits::default(), ByteSize::mib(0));
    let request = request().encode_to_vec();
    println!(
        "{NODES} nodes, {DAEMON_SETS} DaemonSets, a request of {} bytes",
        request.len()
    );
    let (mut times, mut response) = (Vec::new(), v1::EvaluateNodesResponse::default());
    for call in 0..WARM_UP + CALLS {
        let began = Instant::now();
        let message = nodewise_server::decode::<v1::EvaluateNodesRequest>(request.clone().into())?;
        response = engine.evaluate_nodes(message, &never)?;
        let encoded = response.encode_to_vec();
        if call >= WARM_UP {
            times.push(began.elapsed());
        }
        ensure!(!encoded.is_empty(), "an answer");
    }
    times.sort_unstable();
    let (evaluations, decisions) = (response.evaluations.len(), response.decisions.len());
    println!(
        "{evaluations} distinct evaluations, {decisions} distinct decisions, a response of {} bytes",
        response.encoded_len()
    );
    let median = times[CALLS / 2];
    println!("median {median:?}, {:?} to {:?}", times[0], times[CALLS - 1]);
    ensure!(median <= LONGEST, "the median is over the goal of {LONGEST:?}");
    Ok(())
}

/// Nodes of 40 instance types in three zones and five pools, each with a name of its own, and 100 DaemonSets: for all nodes, for
/// pools, for zones and for instance types, with and without tolerations.
fn request() -> v1::EvaluateNodesRequest {
    v1::EvaluateNodesRequest {
        nodes: (0..NODES).map(node).collect(),
        daemon_sets: (0..DAEMON_SETS).map(daemon_set).collect(),
        feature_gates: Vec::new(),
    }
}

fn node(index: usize) -> v1::NodeShape {
    let mut labels = vec![
        ("kubernetes.io/os", "linux".to_owned()),
        ("kubernetes.io/arch", ["amd64", "arm64"][index % 2].to_owned()),
        (
            "kubernetes.io/hostname",
            format!("ip-10-0-{}-{}", index / 250, index % 250),
        ),
        ("topology.kubernetes.io/zone", format!("zone-{}", index % 3)),
        ("topology.kubernetes.io/region", "region-1".to_owned()),
        ("node.kubernetes.io/instance-type", format!("type-{}", index % 40)),
        ("karpenter.k8s.aws/instance-cpu", (1 << (index % 8)).to_string()),
        ("karpenter.sh/nodepool", format!("pool-{}", index % 5)),
        (
            "karpenter.sh/capacity-type",
            ["spot", "on-demand"][index % 2].to_owned(),
        ),
    ];
    // Real nodes have about thirty labels.
    let more: Vec<String> = (0..20)
        .map(|label| format!("example.com/label-{label:02}"))
        .collect();
    labels.extend(
        more.iter()
            .map(|key| (key.as_str(), "a value of some length".to_owned())),
    );
    let taints = index.is_multiple_of(5).then(|| v1::Taint {
        key: "dedicated".to_owned(),
        value: "gpu".to_owned(),
        effect: "NoSchedule".to_owned(),
    });
    v1::NodeShape {
        name: String::new(),
        labels: labels
            .into_iter()
            .map(|(key, value)| v1::Label {
                key: key.to_owned(),
                value,
            })
            .collect(),
        taints: taints.into_iter().collect(),
    }
}

fn daemon_set(index: usize) -> v1::DaemonSet {
    let name = format!("agent-{index:03}");
    let container = |name: &str| {
        json!({
            "name": name,
            "image": format!("registry.example/{name}:1"),
            "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
            "resources": {"requests": {"cpu": "25m", "memory": "64Mi"}, "limits": {"memory": "128Mi", "ephemeral-storage": "1Gi"}},
            "volumeMounts": [{"name": "host", "mountPath": "/host", "readOnly": true}],
        })
    };
    let mut spec = json!({
        "containers": [container("main"), container("helper")],
        "initContainers": [container("setup")],
        "volumes": [{"name": "host", "hostPath": {"path": "/"}}],
    });
    place(&mut spec, index);
    let object = json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "kube-system", "uid": format!("uid-{index}")},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
        },
    });
    v1::DaemonSet {
        object: object.to_string().into(),
    }
}

fn place(spec: &mut Value, index: usize) {
    let term = |key: &str, operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
    let terms = match index % 5 {
        0 => return,
        1 => {
            spec["nodeSelector"] = json!({"karpenter.sh/nodepool": format!("pool-{}", index % 7)});
            return;
        }
        2 => vec![term("karpenter.k8s.aws/instance-cpu", "Gt", &["15"])],
        3 => vec![
            term(
                "node.kubernetes.io/instance-type",
                "In",
                &["type-1", "type-2", "type-3", "type-4"],
            ),
            term("topology.kubernetes.io/zone", "NotIn", &["zone-0"]),
        ],
        _ => vec![term("example.com/not-there", "Exists", &[])],
    };
    spec["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}});
    if index.is_multiple_of(2) {
        spec["tolerations"] = json!([{"operator": "Exists"}]);
    }
}
