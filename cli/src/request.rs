//! Builds the request for each workload, and maps a rejected field of a request back to its position in the input.

mod policies;
mod related;

pub(crate) use policies::uid as uid_of_policy;

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
    kind::Kind,
};

/// The number of node buckets and of pod buckets: the default of the clients.
const BUCKETS: u32 = 64;

/// The request for one workload.
pub(crate) struct WorkloadRequest<'a> {
    pub(crate) workload: &'a Served,
    /// The snapshot with all buckets inline.
    snapshot: v1::Snapshot,
    pub(crate) options: v1::PlanOptions,
    origins: Origins<'a>,
}

/// The origins of the parts of a request, in the order of the request.
struct Origins<'a> {
    workload: &'a Served,
    nodes: &'a [Projected<v1::Node>],
    pods: Vec<&'a Projected<v1::Pod>>,
    revisions: Vec<&'a Origin>,
    replica_sets: Vec<&'a Origin>,
    policies: Vec<&'a Origin>,
}

/// Builds the requests for the workloads of a cluster. Node buckets are built once for all.
pub(crate) struct RequestFactory<'a> {
    cluster: &'a Cluster,
    nodes: Vec<v1::Bucket>,
    now: Timestamp,
    profile: v1::Profile,
}

/// The buckets of all nodes of a cluster. Clones share the data.
#[derive(Debug, Clone, Default)]
pub(crate) struct NodeBuckets(Vec<v1::Bucket>);

impl NodeBuckets {
    pub(crate) fn of(cluster: &Cluster) -> Self {
        let bucket = |nodes: &Vec<&Projected<v1::Node>>| v1::NodeBucket {
            nodes: nodes.iter().map(|node| node.object.clone()).collect(),
            ..v1::NodeBucket::default()
        };
        let buckets = node_buckets(&cluster.nodes);
        Self(buckets.iter().map(|nodes| inline(&bucket(nodes))).collect())
    }
}

impl WorkloadRequest<'_> {
    /// The same request, if the policy of this uid had an annotation.
    pub(crate) fn with_annotation(mut self, policy_uid: &str, key: &str, value: &str) -> Self {
        let kind = self
            .snapshot
            .workload
            .as_mut()
            .and_then(|workload| workload.kind.as_mut());
        if let Some(v1::workload::Kind::DaemonSet(daemon_set)) = kind {
            for policy in &mut daemon_set.rollout_policies {
                policies::annotate(policy, policy_uid, key, value);
            }
        }
        self
    }
}

impl<'a> RequestFactory<'a> {
    pub(crate) fn new(cluster: &'a Cluster, engine: &EngineArgs) -> Self {
        Self::at(cluster, engine.now, engine.profile.into())
    }

    /// For this time; `None`: now.
    pub(crate) fn at(cluster: &'a Cluster, now: Option<Timestamp>, profile: v1::Profile) -> Self {
        Self::with_nodes(cluster, NodeBuckets::of(cluster), now, profile)
    }

    /// As [`RequestFactory::at`], with buckets that were made from the same nodes.
    pub(crate) fn with_nodes(
        cluster: &'a Cluster,
        nodes: NodeBuckets,
        now: Option<Timestamp>,
        profile: v1::Profile,
    ) -> Self {
        Self {
            cluster,
            nodes: nodes.0,
            now: now.unwrap_or_else(Timestamp::now),
            profile,
        }
    }

    /// The time of all snapshots.
    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    /// The request for one workload. Its snapshot has what a plan for its kind reads: of the objects of the namespace those that
    /// the workload controls or that have no controller.
    pub(crate) fn request_for(&self, workload: &'a Served) -> WorkloadRequest<'a> {
        let mut origins = Origins {
            workload,
            nodes: &[],
            pods: Vec::new(),
            revisions: Vec::new(),
            replica_sets: Vec::new(),
            policies: Vec::new(),
        };
        let snapshot = v1::Snapshot {
            now: Some(timestamp(self.now)),
            caches_synced: true,
            ..v1::Snapshot::default()
        };
        let snapshot = match workload.kind {
            Kind::ReplicaSet => self.add_replica_set(snapshot, &mut origins),
            Kind::Deployment => self.add_deployment(snapshot, &mut origins),
            _ => self.add_daemon_set(snapshot, &mut origins),
        };
        WorkloadRequest {
            workload,
            snapshot,
            options: v1::PlanOptions {
                profile: self.profile.into(),
                ..v1::PlanOptions::default()
            },
            origins,
        }
    }

    /// As [`Self::request_for`]. That for a Deployment also has the pods of its ReplicaSets, which no plan for it reads.
    pub(crate) fn request_to_play(&self, workload: &'a Served) -> WorkloadRequest<'a> {
        let mut request = self.request_for(workload);
        if workload.kind == Kind::Deployment {
            let sets = self.cluster.workloads_in(Kind::ReplicaSet, &workload.namespace);
            let owners: Vec<&str> = sets
                .filter(|set| set.controller.as_deref() == Some(&workload.uid))
                .map(|set| set.uid.as_str())
                .collect();
            let owner = |pod: &'a v1::Pod| pod.controller.as_ref().map(|owner| owner.uid.as_str());
            let pods = self.cluster.pods_in(&workload.namespace).iter();
            let own = pods.filter(|pod| owner(&pod.object).is_some_and(|owner| owners.contains(&owner)));
            request.origins.pods = own.collect();
            request.snapshot = with_pods(request.snapshot, workload.kind, &request.origins.pods);
        }
        request
    }

    fn add_daemon_set(&self, snapshot: v1::Snapshot, origins: &mut Origins<'a>) -> v1::Snapshot {
        let workload = origins.workload;
        let revisions = self.cluster.revisions_in(&workload.namespace).iter();
        let revisions: Vec<&Served> = revisions
            .filter(|revision| is_relevant(workload, revision.controller.as_deref()))
            .collect();
        origins.nodes = &self.cluster.nodes;
        origins.revisions = revisions.iter().map(|revision| &revision.origin).collect();
        let policies = self.cluster.policies_in(&workload.namespace);
        origins.policies = policies.iter().map(|policy| &policy.origin).collect();
        let kind = v1::workload::Kind::DaemonSet(v1::DaemonSet {
            object: json(workload),
            rollout_policies: policies.iter().map(policies::message).collect(),
            analysis_hosts: policies::hosts(policies),
            measurements: Vec::new(),
        });
        let snapshot = v1::Snapshot {
            workload: Some(v1::Workload { kind: Some(kind) }),
            revisions: revisions
                .iter()
                .map(|revision| v1::ControllerRevision {
                    object: json(revision),
                    read_after_name_collision: false,
                })
                .collect(),
            node_buckets: self.nodes.clone(),
            ..snapshot
        };
        self.add_pods(snapshot, origins)
    }

    fn add_replica_set(&self, snapshot: v1::Snapshot, origins: &mut Origins<'a>) -> v1::Snapshot {
        let workload = origins.workload;
        let kind = v1::workload::Kind::ReplicaSet(v1::ReplicaSet {
            object: json(workload),
            related_pods: related::pods(self.cluster, workload),
        });
        let snapshot = v1::Snapshot {
            workload: Some(v1::Workload { kind: Some(kind) }),
            ..snapshot
        };
        self.add_pods(snapshot, origins)
    }

    fn add_deployment(&self, snapshot: v1::Snapshot, origins: &mut Origins<'a>) -> v1::Snapshot {
        let workload = origins.workload;
        let sets = self.cluster.workloads_in(Kind::ReplicaSet, &workload.namespace);
        let sets: Vec<&Served> = sets
            .filter(|set| is_relevant(workload, set.controller.as_deref()))
            .collect();
        origins.replica_sets = sets.iter().map(|set| &set.origin).collect();
        let recreates = related::recreates(workload);
        let message = |set: &&Served| v1::DeploymentReplicaSet {
            object: json(set),
            // Only a plan for the strategy Recreate waits for pods to finish.
            unfinished_pods: if recreates {
                related::unfinished_pods(self.cluster, set)
            } else {
                0
            },
            read_after_name_collision: false,
        };
        let kind = v1::workload::Kind::Deployment(v1::Deployment {
            object: json(workload),
            replica_sets: sets.iter().map(message).collect(),
        });
        v1::Snapshot {
            workload: Some(v1::Workload { kind: Some(kind) }),
            ..snapshot
        }
    }

    /// Adds the pods of the namespace that the workload controls or that have no controller.
    fn add_pods(&self, snapshot: v1::Snapshot, origins: &mut Origins<'a>) -> v1::Snapshot {
        let workload = origins.workload;
        let uid = |pod: &'a v1::Pod| pod.controller.as_ref().map(|owner| owner.uid.as_str());
        let pods = self.cluster.pods_in(&workload.namespace).iter();
        origins.pods = pods
            .filter(|pod| is_relevant(workload, uid(&pod.object)))
            .collect();
        with_pods(snapshot, workload.kind, &origins.pods)
    }
}

/// The snapshot with the pods in buckets.
fn with_pods(snapshot: v1::Snapshot, kind: Kind, pods: &[&Projected<v1::Pod>]) -> v1::Snapshot {
    let bucket =
        |pods: &Vec<&Projected<v1::Pod>>| sharing(pods.iter().map(|pod| pod.object.clone()).collect());
    v1::Snapshot {
        bucket_count: BUCKETS,
        digest_function: v1::DigestFunction::Sha256.into(),
        pod_buckets: pod_buckets(kind, pods)
            .iter()
            .map(|pods| inline(&bucket(pods)))
            .collect(),
        ..snapshot
    }
}

/// Whether an object with this controller may belong to the workload.
fn is_relevant(workload: &Served, controller: Option<&str>) -> bool {
    controller.is_none_or(|uid| uid == workload.uid)
}

fn node_buckets(nodes: &[Projected<v1::Node>]) -> Vec<Vec<&Projected<v1::Node>>> {
    divided(nodes.iter(), |node| &node.name)
}

/// The pods of a DaemonSet are divided by node, those of other kinds by their own names.
fn pod_buckets<'a>(kind: Kind, pods: &[&'a Projected<v1::Pod>]) -> Vec<Vec<&'a Projected<v1::Pod>>> {
    match kind {
        Kind::ReplicaSet | Kind::Deployment => divided(pods.iter().copied(), |pod| &pod.name),
        _ => divided(pods.iter().copied(), target_node),
    }
}

/// Divides objects into buckets by a name.
fn divided<'a, T: 'a>(
    objects: impl Iterator<Item = &'a Projected<T>>,
    name: impl Fn(&T) -> &str,
) -> Vec<Vec<&'a Projected<T>>> {
    let mut buckets: Vec<_> = (0..BUCKETS).map(|_| Vec::new()).collect();
    for object in objects {
        buckets[bucket::of(name(&object.object), BUCKETS) as usize].push(object);
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
        ..v1::Bucket::default()
    }
}

impl WorkloadRequest<'_> {
    pub(crate) fn uid(&self) -> &str {
        &self.workload.uid
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
        self.workload.title()
    }

    /// Converts an error about a field of the request into an error about the input.
    pub(crate) fn input_error(&self, field: &str, problem: &str) -> String {
        self.origins
            .input_error(field, problem)
            .unwrap_or_else(|| format!("{}: {field}: {problem}", self.origins.workload.origin))
    }
}

impl Origins<'_> {
    fn input_error(&self, field: &str, problem: &str) -> Option<String> {
        let field = field.strip_prefix("snapshot.")?;
        if field == "now" || field.starts_with("now.") {
            return Some(format!("--now: {problem}"));
        }
        let objects = [
            "workload.daemon_set.object",
            "workload.replica_set.object",
            "workload.deployment.object",
        ];
        if objects.contains(&field) {
            return Some(inside(&self.workload.origin, problem));
        }
        if let Some((index, ".object")) = indexed(field, "workload.deployment.replica_sets[") {
            return Some(inside(self.replica_sets.get(index)?, problem));
        }
        if let Some((index, ".object")) = indexed(field, "workload.daemon_set.rollout_policies[") {
            return Some(inside(self.policies.get(index)?, problem));
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
            (
                &pod_buckets(self.workload.kind, &self.pods)
                    .get(bucket)?
                    .get(index)?
                    .origin,
                rest,
            )
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
