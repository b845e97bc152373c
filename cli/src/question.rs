//! From a cluster's picture to one request per DaemonSet, and from a refused field back to the file it came from.

use bytes::Bytes;
use jiff::Timestamp;
use nodewise_executor::project::timestamp;
use nodewise_proto::{pods, v1};
use prost::Message as _;

use crate::{
    args::EngineArgs,
    input::{Cluster, Origin, Projected, Served},
};

/// What to ask about one DaemonSet.
pub(crate) struct Question<'a> {
    pub(crate) daemon_set: &'a Served,
    pub(crate) snapshot: v1::Snapshot,
    pub(crate) options: v1::PlanOptions,
    places: Places<'a>,
}

/// Where the parts of a request came from, in the order of the request.
struct Places<'a> {
    daemon_set: &'a Served,
    nodes: &'a [Projected<v1::Node>],
    pods: Vec<&'a Origin>,
    revisions: Vec<&'a Origin>,
}

/// The parts of a request that all DaemonSets of a cluster share.
pub(crate) struct Questioner<'a> {
    cluster: &'a Cluster,
    nodes: Bytes,
    now: Timestamp,
    profile: v1::Profile,
}

impl<'a> Questioner<'a> {
    pub(crate) fn new(cluster: &'a Cluster, engine: &EngineArgs) -> Self {
        let nodes = v1::NodeBucket {
            nodes: cluster.nodes.iter().map(|node| node.object.clone()).collect(),
        };
        Self {
            cluster,
            nodes: nodes.encode_to_vec().into(),
            now: engine.now.unwrap_or_else(Timestamp::now),
            profile: engine.profile.into(),
        }
    }

    /// The snapshot of one DaemonSet: all nodes, and those pods and revisions of its namespace that it controls or that
    /// nobody controls.
    pub(crate) fn ask(&self, daemon_set: &'a Served) -> Question<'a> {
        let concerns = |controller: Option<&str>| controller.is_none_or(|uid| uid == daemon_set.uid);
        let pods: Vec<&Projected<v1::Pod>> = self
            .cluster
            .pods_in(&daemon_set.namespace)
            .iter()
            .filter(|pod| concerns(pod.object.controller.as_ref().map(|owner| owner.uid.as_str())))
            .collect();
        let revisions: Vec<&Served> = self
            .cluster
            .revisions_in(&daemon_set.namespace)
            .iter()
            .filter(|revision| concerns(revision.controller.as_deref()))
            .collect();
        let pod_bucket = pods::sharing(pods.iter().map(|pod| pod.object.clone()).collect());
        let snapshot = v1::Snapshot {
            now: Some(timestamp(self.now)),
            workload: Some(v1::Workload {
                kind: Some(v1::workload::Kind::DaemonSet(v1::DaemonSet {
                    object: json(daemon_set),
                })),
            }),
            revisions: revisions
                .iter()
                .map(|revision| v1::ControllerRevision {
                    object: json(revision),
                    read_after_name_collision: false,
                })
                .collect(),
            caches_synced: true,
            bucket_count: 1,
            node_buckets: vec![inline(self.nodes.clone())],
            pod_buckets: vec![inline(pod_bucket.encode_to_vec().into())],
            ..v1::Snapshot::default()
        };
        Question {
            daemon_set,
            snapshot,
            options: v1::PlanOptions {
                profile: self.profile.into(),
                ..v1::PlanOptions::default()
            },
            places: Places {
                daemon_set,
                nodes: &self.cluster.nodes,
                pods: pods.iter().map(|pod| &pod.origin).collect(),
                revisions: revisions.iter().map(|revision| &revision.origin).collect(),
            },
        }
    }
}

fn json(served: &Served) -> Bytes {
    Bytes::copy_from_slice(served.json.get().as_bytes())
}

fn inline(data: Bytes) -> v1::Bucket {
    v1::Bucket {
        data: Some(data),
        digest: Bytes::new(),
    }
}

impl Question<'_> {
    /// `DaemonSet kube-system/fluentd`.
    pub(crate) fn title(&self) -> String {
        self.daemon_set.title()
    }

    /// A complaint about a field of the request as a complaint about the input that the field was made from.
    pub(crate) fn complaint(&self, field: &str, problem: &str) -> String {
        self.places
            .complaint(field, problem)
            .unwrap_or_else(|| format!("{}: {field}: {problem}", self.places.daemon_set.origin))
    }
}

impl Places<'_> {
    fn complaint(&self, field: &str, problem: &str) -> Option<String> {
        let field = field.strip_prefix("snapshot.")?;
        if field == "now" || field.starts_with("now.") {
            return Some(format!("--now: {problem}"));
        }
        if field == "workload.daemon_set.object" {
            return Some(inside(&self.daemon_set.origin, problem));
        }
        if let Some((index, ".object")) = indexed(field, "revisions[") {
            return Some(inside(self.revisions.get(index)?, problem));
        }
        let (origin, rest) = if let Some((index, rest)) = indexed(field, "node_buckets[0].data.nodes[") {
            (&self.nodes.get(index)?.origin, rest)
        } else {
            let (index, rest) = indexed(field, "pod_buckets[0].data.pods[")?;
            (*self.pods.get(index)?, rest)
        };
        Some(format!("{}: {problem}", origin.at(rest)))
    }
}

/// Where a field holds JSON, the problem begins with the path inside it.
fn inside(origin: &Origin, problem: &str) -> String {
    match problem.split_once(": ") {
        Some((path, problem)) if !path.contains(' ') => format!("{}: {problem}", origin.at(path)),
        _ => format!("{origin}: {problem}"),
    }
}

/// `prefix7]rest` → (7, rest).
fn indexed<'a>(field: &'a str, prefix: &str) -> Option<(usize, &'a str)> {
    let (index, rest) = field.strip_prefix(prefix)?.split_once(']')?;
    Some((index.parse().ok()?, rest))
}
