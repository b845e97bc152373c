//! The time of `EvaluateNodes`: which DaemonSets would run on nodes that need not exist, and what they request.

use std::time::Instant;

use anyhow::{Result, ensure};
use nodewise_proto::v1;
use nodewise_server::{ByteSize, Engine, Limits, never};
use prost::Message as _;
use serde_json::{Value, json};

use crate::calls::percentile;
use crate::figure::figure;
use crate::measure::Spread;
use crate::report::{Finding, Target};

const SIZE: Size = Size {
    nodes: 1_000,
    daemon_sets: 100,
    calls: 50,
};
/// The goal for the median.
const LONGEST_MS: f64 = 50.0;

const ABOUT: &str = "\
One request asks about 1,000 node shapes, each with about thirty labels and a host name of its own, and 100 DaemonSets with three \
containers each: for all nodes, for a pool, for some instance types, for a zone, with and without tolerations. The time is that of the \
service on one thread, from the bytes of the request to the bytes of the response; nothing is cached between calls.";

/// Measures the given number of rounds.
///
/// # Errors
/// The request is refused.
pub fn measure(rounds: usize) -> Result<Finding> {
    Ok(finding(&answers(SIZE, rounds)?))
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// The number of node shapes.
    pub nodes: usize,
    /// The number of DaemonSets.
    pub daemon_sets: usize,
    /// The number of calls in a round.
    pub calls: usize,
}

/// The measurements.
#[derive(Debug)]
pub struct Answers {
    /// The number of calls in a round.
    pub of: usize,
    /// The median of a round, in ms.
    pub p50: Spread,
    /// The 99th percentile of a round, in ms.
    pub p99: Spread,
    /// The size of the request and of the response, in kB (1,000 bytes).
    pub sizes: [f64; 2],
}

/// Measures calls.
///
/// # Errors
/// As [`measure`].
pub fn answers(size: Size, rounds: usize) -> Result<Answers> {
    ensure!(size.calls > 0, "nothing is measured by no call");
    let engine = Engine::new(Limits::default(), ByteSize::mib(0));
    let request = request(size).encode_to_vec();
    let answer = || -> Result<Vec<u8>> {
        let message = nodewise_server::decode::<v1::EvaluateNodesRequest>(request.clone().into())?;
        Ok(engine.evaluate_nodes(message, &never)?.encode_to_vec())
    };
    // The first calls also set up memory, so they do not count.
    for _ in 0..5.min(size.calls) {
        answer()?;
    }
    let (mut p50, mut p99, mut response) = (Vec::new(), Vec::new(), 0);
    for _ in 0..rounds {
        let mut times = Vec::with_capacity(size.calls);
        for _ in 0..size.calls {
            let begun = Instant::now();
            response = answer()?.len();
            times.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        ensure!(response > 0, "an answer");
        times.sort_by(f64::total_cmp);
        p50.push(percentile(&times, 50));
        p99.push(percentile(&times, 99));
    }
    #[expect(clippy::cast_precision_loss, reason = "a few million")]
    let sizes = [request.len(), response].map(|bytes| bytes as f64 / 1e3);
    Ok(Answers {
        of: size.calls,
        p50: Spread::of(p50)?,
        p99: Spread::of(p99)?,
        sizes,
    })
}

fn finding(answers: &Answers) -> Finding {
    let Answers { of, p50, p99, sizes } = answers;
    let what = "1,000 node shapes × 100 DaemonSets";
    Finding {
        title: "DaemonSets on nodes that need not exist".to_owned(),
        about: ABOUT.to_owned(),
        columns: [
            "request",
            "kB sent",
            "kB received",
            "p50, ms",
            "p99, ms",
            "rounds × calls",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: vec![vec![
            what.to_owned(),
            figure(sizes[0]),
            figure(sizes[1]),
            p50.to_string(),
            p99.to_string(),
            format!("{} × {of}", p50.rounds()),
        ]],
        targets: vec![Target::at_most(
            format!("{what}: p50"),
            LONGEST_MS,
            p50.median(),
            "ms",
        )],
        charts: Vec::new(),
    }
}

/// Nodes of 40 instance types in three zones and five pools, each with a name of its own, and DaemonSets for all nodes, for
/// pools, for zones and for instance types, with and without tolerations.
fn request(size: Size) -> v1::EvaluateNodesRequest {
    v1::EvaluateNodesRequest {
        nodes: (0..size.nodes).map(node).collect(),
        daemon_sets: (0..size.daemon_sets).map(daemon_set).collect(),
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
        ..v1::DaemonSet::default()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_measured() -> Result<()> {
        let size = Size {
            nodes: 10,
            daemon_sets: 5,
            calls: 3,
        };
        let answers = answers(size, 2)?;
        assert_eq!(
            (answers.of, answers.p50.rounds(), answers.p99.rounds()),
            (3, 2, 2)
        );
        assert!(answers.sizes.iter().all(|size| *size > 0.0), "{answers:?}");
        let finding = finding(&answers);
        assert_eq!(finding.rows[0].len(), finding.columns.len());
        Ok(())
    }
}
