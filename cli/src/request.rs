//! Builds the request for each DaemonSet, and maps a rejected field of a request back to its position in the input.

use bytes::Bytes;
use jiff::Timestamp;
use nodewise_client::Digest;
use nodewise_projection::timestamp;
use nodewise_proto::{
    bucket,
    pods::{sharing, target_node},
    v1,
};
use prost::Message;
use sha2::Digest as _;

use crate::{
    args::EngineArgs,
    input::{Cluster, Origin, Projected, Served},
};

/// The number of node buckets and of pod buckets: the default of the clients.
const BUCKETS: u32 = 64;

/// The request for one DaemonSet.
pub(crate) struct WorkloadRequest<'a> {
    pub(crate) daemon_set: &'a Served,
    /// The snapshot with all buckets inline.
    snapshot: v1::Snapshot,
    pub(crate) options: v1::PlanOptions,
    origins: Origins<'a>,
}

/// The origins of the parts of a request, in the order of the request.
struct Origins<'a> {
    daemon_set: &'a Served,
    nodes: &'a [Projected<v1::Node>],
    pods: Vec<&'a Projected<v1::Pod>>,
    revisions: Vec<&'a Origin>,
}

/// Builds the requests for the DaemonSets of a cluster. Node buckets are built once for all.
pub(crate) struct RequestFactory<'a> {
    cluster: &'a Cluster,
    nodes: Vec<v1::Bucket>,
    now: Timestamp,
    profile: v1::Profile,
}

impl<'a> RequestFactory<'a> {
    pub(crate) fn new(cluster: &'a Cluster, engine: &EngineArgs) -> Self {
        let bucket = |nodes: &Vec<&Projected<v1::Node>>| v1::NodeBucket {
            nodes: nodes.iter().map(|node| node.object.clone()).collect(),
        };
        Self {
            cluster,
            nodes: node_buckets(&cluster.nodes)
                .iter()
                .map(|nodes| inline(&bucket(nodes)))
                .collect(),
            now: engine.now.unwrap_or_else(Timestamp::now),
            profile: engine.profile.into(),
        }
    }

    /// The request for one DaemonSet. Its snapshot has all nodes, and the pods and revisions of the namespace that the DaemonSet
    /// controls or that have no controller.
    pub(crate) fn request_for(&self, daemon_set: &'a Served) -> WorkloadRequest<'a> {
        let is_relevant = |controller: Option<&str>| controller.is_none_or(|uid| uid == daemon_set.uid);
        let pods: Vec<&Projected<v1::Pod>> = self
            .cluster
            .pods_in(&daemon_set.namespace)
            .iter()
            .filter(|pod| is_relevant(pod.object.controller.as_ref().map(|owner| owner.uid.as_str())))
            .collect();
        let revisions: Vec<&Served> = self
            .cluster
            .revisions_in(&daemon_set.namespace)
            .iter()
            .filter(|revision| is_relevant(revision.controller.as_deref()))
            .collect();
        let bucket =
            |pods: &Vec<&Projected<v1::Pod>>| sharing(pods.iter().map(|pod| pod.object.clone()).collect());
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
            bucket_count: BUCKETS,
            digest_function: v1::DigestFunction::Sha256.into(),
            node_buckets: self.nodes.clone(),
            pod_buckets: pod_buckets(&pods)
                .iter()
                .map(|pods| inline(&bucket(pods)))
                .collect(),
            ..v1::Snapshot::default()
        };
        WorkloadRequest {
            daemon_set,
            snapshot,
            options: v1::PlanOptions {
                profile: self.profile.into(),
                ..v1::PlanOptions::default()
            },
            origins: Origins {
                daemon_set,
                nodes: &self.cluster.nodes,
                pods,
                revisions: revisions.iter().map(|revision| &revision.origin).collect(),
            },
        }
    }
}

fn node_buckets(nodes: &[Projected<v1::Node>]) -> Vec<Vec<&Projected<v1::Node>>> {
    divided(nodes.iter(), |node| &node.name)
}

fn pod_buckets<'a>(pods: &[&'a Projected<v1::Pod>]) -> Vec<Vec<&'a Projected<v1::Pod>>> {
    divided(pods.iter().copied(), target_node)
}

/// Divides objects into buckets by node name.
fn divided<'a, T: 'a>(
    objects: impl Iterator<Item = &'a Projected<T>>,
    node_name: impl Fn(&T) -> &str,
) -> Vec<Vec<&'a Projected<T>>> {
    let mut buckets: Vec<_> = (0..BUCKETS).map(|_| Vec::new()).collect();
    for object in objects {
        buckets[bucket::of(node_name(&object.object), BUCKETS) as usize].push(object);
    }
    buckets
}

fn json(served: &Served) -> Bytes {
    Bytes::copy_from_slice(served.json.get().as_bytes())
}

fn inline(bucket: &impl Message) -> v1::Bucket {
    let data = bucket.encode_to_vec();
    v1::Bucket {
        digest: sha2::Sha256::digest(&data).to_vec().into(),
        data: Some(data.into()),
    }
}

impl WorkloadRequest<'_> {
    pub(crate) fn uid(&self) -> &str {
        &self.daemon_set.uid
    }

    /// The snapshot without the data of the buckets that the replica has.
    pub(crate) fn snapshot(&self, knows: impl Fn(&Digest) -> bool) -> v1::Snapshot {
        let mut snapshot = self.snapshot.clone();
        for bucket in snapshot.node_buckets.iter_mut().chain(&mut snapshot.pod_buckets) {
            if Digest::try_from(&*bucket.digest).is_ok_and(|digest| knows(&digest)) {
                bucket.data = None;
            }
        }
        snapshot
    }

    /// `DaemonSet kube-system/fluentd`.
    pub(crate) fn title(&self) -> String {
        self.daemon_set.title()
    }

    /// Converts an error about a field of the request into an error about the input.
    pub(crate) fn input_error(&self, field: &str, problem: &str) -> String {
        self.origins
            .input_error(field, problem)
            .unwrap_or_else(|| format!("{}: {field}: {problem}", self.origins.daemon_set.origin))
    }
}

impl Origins<'_> {
    fn input_error(&self, field: &str, problem: &str) -> Option<String> {
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
        let (origin, rest) = if let Some((bucket, rest)) = indexed(field, "node_buckets[") {
            let (index, rest) = indexed(rest, ".data.nodes[")?;
            (&node_buckets(self.nodes).get(bucket)?.get(index)?.origin, rest)
        } else {
            let (bucket, rest) = indexed(field, "pod_buckets[")?;
            let (index, rest) = indexed(rest, ".data.pods[")?;
            (&pod_buckets(&self.pods).get(bucket)?.get(index)?.origin, rest)
        };
        Some(format!("{}: {problem}", origin.at(rest)))
    }
}

/// An error about a field that holds JSON. The problem begins with the path inside the JSON.
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
