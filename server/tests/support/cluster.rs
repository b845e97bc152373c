//! A DaemonSet, nodes as clouds make them, and pods.

use bytes::Bytes;
use nodewise_proto::{Timestamp, bucket, pods, v1};
use nodewise_server::{ByteSize, Engine, Limits, never};
use prost::Message as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// 2026-01-01T00:00:00Z.
pub const NOW: i64 = 1_767_225_600;

#[allow(clippy::unnecessary_wraps, reason = "fields of messages are optional")]
pub fn moment(seconds: i64) -> Option<Timestamp> {
    Some(Timestamp { seconds, nanos: 0 })
}

pub fn engine() -> Engine {
    Engine::new(Limits::default(), ByteSize::mib(16))
}

/// How buckets are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Inline,
    InlineWithDigest,
    DigestOnly,
}

/// A DaemonSet and what there is in its cluster.
#[derive(Debug, Clone)]
pub struct Cluster {
    pub daemon_set: Value,
    pub nodes: Vec<v1::Node>,
    pub pods: Vec<v1::Pod>,
    pub revisions: Vec<Value>,
}

impl Cluster {
    /// So many nodes with labels as real ones have them, and no pods yet.
    pub fn empty(nodes: usize) -> Self {
        Self {
            daemon_set: daemon_set(),
            nodes: (0..nodes).map(node).collect(),
            pods: Vec::new(),
            revisions: Vec::new(),
        }
    }

    /// As [`Cluster::empty`], with the revision and a ready pod on each node, as the plan itself would have them.
    pub fn settled(nodes: usize) -> Self {
        let mut cluster = Self::empty(nodes);
        let plan = engine()
            .plan(Self::empty(0).request(1, Form::Inline), &never)
            .expect("a plan")
            .plan
            .unwrap();
        let revision = actions(&plan)
            .find_map(|action| match action.kind {
                Some(v1::action::Kind::CreateRevision(create)) => Some(create.manifest),
                _ => None,
            })
            .expect("the first plan creates a revision");
        let mut revision: Value = serde_json::from_slice(&revision).unwrap();
        revision["metadata"]["uid"] = json!("revision-uid-1");
        let hash = revision["metadata"]["labels"]["controller-revision-hash"]
            .as_str()
            .unwrap()
            .to_owned();
        cluster.pods = (0..nodes).map(|index| pod(index, &hash)).collect();
        cluster.revisions = vec![revision];
        cluster.daemon_set["status"] = json!({
            "currentNumberScheduled": nodes, "desiredNumberScheduled": nodes, "numberReady": nodes,
            "updatedNumberScheduled": nodes, "numberAvailable": nodes, "numberMisscheduled": 0,
            "observedGeneration": 1,
        });
        cluster
    }

    pub fn request(&self, buckets: u32, form: Form) -> v1::PlanRequest {
        let place = |name: &str| bucket::of(name, buckets);
        let node_buckets = split(&self.nodes, buckets, |node| place(&node.name))
            .map(|nodes| v1::NodeBucket { nodes }.encode_to_vec());
        let pod_buckets = split(&self.pods, buckets, |pod| {
            place(if pod.node_name.is_empty() {
                &pod.target_node_name
            } else {
                &pod.node_name
            })
        })
        .map(|pods| pods::sharing(pods).encode_to_vec());
        let json = |value: &Value| Bytes::from(serde_json::to_vec(value).unwrap());
        v1::PlanRequest {
            snapshot: Some(v1::Snapshot {
                now: moment(NOW),
                workload: Some(v1::Workload {
                    kind: Some(v1::workload::Kind::DaemonSet(v1::DaemonSet {
                        object: json(&self.daemon_set),
                    })),
                }),
                revisions: self
                    .revisions
                    .iter()
                    .map(|revision| v1::ControllerRevision {
                        object: json(revision),
                        ..Default::default()
                    })
                    .collect(),
                caches_synced: true,
                bucket_count: buckets,
                node_buckets: node_buckets.map(|data| bucket_message(data, form)).collect(),
                pod_buckets: pod_buckets.map(|data| bucket_message(data, form)).collect(),
                digest_function: if form == Form::Inline {
                    0
                } else {
                    v1::DigestFunction::Sha256.into()
                },
                ..Default::default()
            }),
            ..Default::default()
        }
    }
}

pub fn bucket_message(data: Vec<u8>, form: Form) -> v1::Bucket {
    let digest = match form {
        Form::Inline => Bytes::new(),
        Form::InlineWithDigest | Form::DigestOnly => Bytes::copy_from_slice(&Sha256::digest(&data)),
    };
    v1::Bucket {
        data: (form != Form::DigestOnly).then(|| data.into()),
        digest,
    }
}

fn split<T: Clone>(items: &[T], buckets: u32, place: impl Fn(&T) -> u32) -> impl Iterator<Item = Vec<T>> {
    let mut lists = vec![Vec::new(); buckets as usize];
    for item in items {
        lists[place(item) as usize].push(item.clone());
    }
    lists.into_iter()
}

pub fn actions(plan: &v1::Plan) -> impl Iterator<Item = v1::Action> {
    plan.actions().cloned()
}

pub fn created_nodes(plan: &v1::Plan) -> Vec<String> {
    actions(plan)
        .filter_map(|action| match action.kind {
            Some(v1::action::Kind::CreatePod(create)) => Some(create.node_name),
            _ => None,
        })
        .collect()
}

pub fn daemon_set() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {
            "name": "node-agent",
            "namespace": "monitoring",
            "uid": "11111111-2222-3333-4444-555555555555",
            "resourceVersion": "1000",
            "generation": 1,
            "creationTimestamp": "2025-01-01T00:00:00Z",
            "annotations": {"deprecated.daemonset.template.generation": "1"},
        },
        "spec": {
            "selector": {"matchLabels": {"app": "node-agent"}},
            "template": {
                "metadata": {"labels": {"app": "node-agent"}},
                "spec": {
                    "containers": [{
                        "name": "agent", "image": "registry.example/agent:1", "imagePullPolicy": "IfNotPresent",
                        "resources": {}, "terminationMessagePath": "/dev/termination-log",
                        "terminationMessagePolicy": "File",
                    }],
                    "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler",
                    "securityContext": {}, "terminationGracePeriodSeconds": 30,
                },
            },
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
            "revisionHistoryLimit": 10,
        },
    })
}

fn labels(entries: &[(&str, String)]) -> Vec<v1::Label> {
    entries
        .iter()
        .map(|(key, value)| v1::Label {
            key: (*key).to_owned(),
            value: value.clone(),
        })
        .collect()
}

pub fn node(index: usize) -> v1::Node {
    let name = format!(
        "ip-10-{}-{}-{}.compute.internal",
        index >> 16,
        (index >> 8) & 255,
        index & 255
    );
    v1::Node {
        labels: labels(&[
            ("beta.kubernetes.io/arch", "amd64".into()),
            ("beta.kubernetes.io/os", "linux".into()),
            ("kubernetes.io/arch", "amd64".into()),
            ("kubernetes.io/hostname", name.clone()),
            ("kubernetes.io/os", "linux".into()),
            (
                "node.kubernetes.io/instance-type",
                ["m6i.xlarge", "m6i.2xlarge", "c6i.4xlarge"][index % 3].into(),
            ),
            ("topology.kubernetes.io/region", "eu-central-1".into()),
            (
                "topology.kubernetes.io/zone",
                format!("eu-central-1{}", ["a", "b", "c"][index % 3]),
            ),
        ]),
        uid: format!("22222222-3333-4444-5555-{index:012}"),
        name,
        ready: v1::ConditionStatus::True.into(),
        ..Default::default()
    }
}

pub fn pod(index: usize, hash: &str) -> v1::Pod {
    v1::Pod {
        name: format!("node-agent-{index:05}"),
        uid: format!("33333333-4444-5555-6666-{index:012}"),
        labels: labels(&[
            ("app", "node-agent".into()),
            ("controller-revision-hash", hash.to_owned()),
            ("pod-template-generation", "1".into()),
        ]),
        controller: Some(v1::ControllerReference {
            kind: "DaemonSet".into(),
            name: "node-agent".into(),
            uid: "11111111-2222-3333-4444-555555555555".into(),
        }),
        node_name: node(index).name,
        phase: v1::PodPhase::Running.into(),
        ready: v1::ConditionStatus::True.into(),
        ready_transition_time: moment(NOW - 3_600),
        creation_time: moment(NOW - 3_700),
        ..Default::default()
    }
}
