//! A settled cluster for both sides, as the JSON that an apiserver serves: nodes as in a cloud, DaemonSets, and a ready
//! pod of each DaemonSet on every node.
//!
//! The pods and revisions are those of Nodewise's first plans; there are no others. Each object is made from its index,
//! so that a large cluster need not be in memory twice. [`Cluster::case`] is the input of upstream, [`Caches`] has the
//! caches and requests of the executor.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use nodewise_client::Digest;
use nodewise_compare::case::{self, Case};
use nodewise_executor::daemon_set::{DAEMON_SETS, DaemonSets};
use nodewise_projection::{Node, Pod, Revision};
use nodewise_proto::bucket::Receiver;
use nodewise_proto::{Timestamp, v1};
use nodewise_runtime::Delta;
use nodewise_runtime::event::ClusterEvent;
use nodewise_runtime::kind::Kind;
use nodewise_runtime::{
    snapshot::{self, LiveObjects},
    store::Store,
};
use nodewise_server::{ByteSize, Engine, Limits, never};
use serde_json::{Value, json, value::RawValue};

mod large;
mod manifests;
mod policies;
mod replica_set;

pub use large::{Filling, LargeSize, Spent};
pub use policies::{CANARIES, stages};
pub use replica_set::ReplicaSetCaches;

use manifests::{CREATED, NAMESPACE, condition, daemon_set, node, node_name, suffix};

/// 2026-01-01T00:00:00Z, long after all objects were created.
const NOW: i64 = 1_767_225_600;
/// The default number of buckets of an executor.
const BUCKETS: u32 = 64;
/// The resource version of the initial lists.
const FIRST_VERSION: i64 = 2_000_000;
/// Placeholders in the text of a pod.
const NODE_MARK: &str = "@node";
const NAME_MARK: &str = "@name";
const UID_MARK: &str = "@uid";
const READY_MARK: &str = "@ready";
const SINCE_MARK: &str = "@since";

/// A settled cluster.
#[derive(Debug)]
pub struct Cluster {
    nodes: usize,
    workloads: Vec<Workload>,
}

/// A DaemonSet with a pod on every node.
#[derive(Debug)]
struct Workload {
    index: usize,
    daemon_set: Value,
    /// The revision. Its data is raw text, because upstream compares the bytes.
    revision: BTreeMap<String, Box<RawValue>>,
    /// The text of a ready pod, with placeholders.
    pod: String,
}

impl Cluster {
    /// A cluster with `nodes` nodes and `workloads` DaemonSets.
    ///
    /// # Errors
    /// Nodewise's first plan for a DaemonSet does not create its revision and its pods.
    pub fn settled(nodes: usize, workloads: usize) -> Result<Self> {
        let workloads = (0..workloads).map(|index| Workload::new(index, nodes));
        Ok(Self {
            nodes,
            workloads: workloads.collect::<Result<_>>()?,
        })
    }

    /// The number of nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// The caches of upstream's controller. The first DaemonSet is synced.
    ///
    /// # Errors
    /// An object is not valid JSON.
    pub fn case(&self) -> Result<Case> {
        let parsed = |text: String| serde_json::from_str(&text).with_context(|| text);
        let pods = self
            .pods(|workload, node| parsed(workload.pod(node, true, CREATED)))
            .collect::<Result<_>>()?;
        Ok(Case {
            now: "2026-01-01T00:00:00Z".to_owned(),
            daemon_sets: self
                .workloads
                .iter()
                .map(|workload| workload.daemon_set.clone())
                .collect(),
            nodes: (0..self.nodes).map(node).collect(),
            pods,
            revisions: self
                .workloads
                .iter()
                .map(Workload::case_revision)
                .collect::<Result<_>>()?,
            burst: 250,
            ..Case::default()
        })
    }

    /// The result of `each` for every pod, given its DaemonSet and the index of its node.
    fn pods<'a, T>(&'a self, each: impl Fn(&'a Workload, usize) -> T + 'a) -> impl Iterator<Item = T> + 'a {
        let places = self
            .workloads
            .iter()
            .flat_map(|workload| (0..self.nodes).map(move |node| (workload, node)));
        places.map(move |(workload, node)| each(workload, node))
    }
}

impl Workload {
    fn new(index: usize, nodes: usize) -> Result<Self> {
        let name = format!("node-agent-{index}");
        let uid = format!("{index:08x}-5d2e-4c0f-9b1a-7f3c2a9e6d10");
        let first = first_plan(&daemon_set(&name, &uid, 0))
            .with_context(|| format!("planning for {name} for the first time"))?;
        Ok(Self {
            index,
            daemon_set: daemon_set(&name, &uid, nodes),
            revision: revision(&first, index)?,
            pod: pod(&first, &name)?,
        })
    }

    /// The text of the pod on a node, which has been ready (or not ready) since `since`.
    fn pod(&self, node: usize, ready: bool, since: &str) -> String {
        self.pod_from(&self.pod, node, ready, since)
    }

    /// The same, from another text with placeholders.
    fn pod_from(&self, template: &str, node: usize, ready: bool, since: &str) -> String {
        let name = self.daemon_set["metadata"]["name"].as_str().unwrap_or_default();
        let pod = PodOnNode {
            workload: self.index,
            name,
            node,
        };
        pod.text(template, ready, since)
    }

    fn case_revision(&self) -> Result<case::Revision> {
        let mut object = self.revision.clone();
        let data = object.remove("data").context("a revision without data")?;
        Ok(case::Revision {
            object: serde_json::to_value(object)?,
            data: data.get().to_owned(),
        })
    }
}

/// What differs between the pods of a cluster.
struct PodOnNode<'a> {
    /// The number of its workload.
    workload: usize,
    /// The name of its workload.
    name: &'a str,
    /// The number of its node.
    node: usize,
}

impl PodOnNode<'_> {
    /// The text of the pod, which has been ready (or not ready) since `since`, from a text with placeholders.
    fn text(&self, template: &str, ready: bool, since: &str) -> String {
        let Self { workload, name, node } = *self;
        template
            .replace(NODE_MARK, &node_name(node))
            .replace(NAME_MARK, &format!("{name}-{}", suffix(node)))
            .replace(
                UID_MARK,
                &format!("{node:08x}-{workload:04x}-4c0f-9b1a-2e8d7c6b5a49"),
            )
            .replace(READY_MARK, if ready { "True" } else { "False" })
            .replace(SINCE_MARK, since)
    }
}

/// The time of the event with this number, after everything was created.
fn time_of(event: i64) -> Result<String> {
    let created: jiff::Timestamp = CREATED.parse()?;
    Ok((created + jiff::SignedDuration::from_secs(event)).to_string())
}

/// The executor's caches of a settled cluster.
#[derive(Debug)]
pub struct Caches {
    cluster: Arc<Cluster>,
    store: Store,
    workloads: Vec<nodewise_projection::Workload>,
    events: i64,
    /// The pods of the first DaemonSet that a rollout has replaced.
    replaced: Option<policies::Replaced>,
    /// The policy of the first DaemonSet.
    governing: Option<Value>,
}

impl Caches {
    /// The caches after the initial lists.
    ///
    /// # Errors
    /// An object is not one that an apiserver would serve.
    pub fn of(cluster: &Arc<Cluster>) -> Result<Self> {
        let daemon_sets = cluster
            .workloads
            .iter()
            .map(|workload| nodewise_projection::Workload::daemon_set_from_json(&workload.daemon_set));
        let workloads: Vec<_> = daemon_sets.collect::<Result<_, _>>().context("a DaemonSet")?;
        let revisions = cluster.workloads.iter().map(|workload| -> Result<_> {
            Ok(Revision::from_text(&serde_json::to_string(&workload.revision)?)?)
        });
        let nodes = (0..cluster.nodes).map(|number| Node::from_json(&node(number)));
        let pods = cluster.pods(|workload, node| Pod::from_text(&workload.pod(node, true, CREATED)));
        let mut store = Store::new(&[DAEMON_SETS], BUCKETS);
        for event in [
            ClusterEvent::Workloads(DAEMON_SETS, listed(workloads.clone())),
            ClusterEvent::Nodes(listed(nodes.collect::<Result<_, _>>().context("a node")?)),
            ClusterEvent::Pods(listed(pods.collect::<Result<_, _>>().context("a pod")?)),
            ClusterEvent::Revisions(listed(revisions.collect::<Result<_>>().context("a revision")?)),
            ClusterEvent::Policies(listed(Vec::new())),
        ] {
            store.apply_each(event, &mut |_, _| ());
        }
        Ok(Self {
            cluster: Arc::clone(cluster),
            store,
            workloads,
            events: 0,
            replaced: None,
            governing: None,
        })
    }

    /// The number of nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.cluster.nodes
    }

    /// Applies a pod event: the pod of a workload on a node becomes ready or unready. The timestamp differs each time,
    /// so that no bucket ever has the same content again.
    ///
    /// # Errors
    /// The workload or the node does not exist.
    pub fn set_ready(&mut self, workload: usize, node: usize, ready: bool) -> Result<()> {
        let of = self.cluster.workloads.get(workload).context("no such workload")?;
        ensure!(node < self.cluster.nodes, "there is no node {node}");
        self.events += 1;
        let replaced = self
            .replaced
            .as_ref()
            .filter(|replaced| workload == 0 && node < replaced.nodes);
        let template = replaced.map_or(&of.pod, |replaced| &replaced.pod);
        let mut pod = Pod::from_text(&of.pod_from(template, node, ready, &time_of(self.events)?))?;
        pod.resource_version = (FIRST_VERSION + self.events).to_string();
        self.store.apply(ClusterEvent::Pods(Delta::Applied(pod)));
        Ok(())
    }

    /// The executor's request for a plan for a workload. Buckets that the receiver has are sent by digest.
    ///
    /// # Panics
    /// If the workload does not exist.
    pub fn request(&mut self, workload: usize, receiver: &Receiver<'_>) -> v1::PlanRequest {
        plan_request::<DaemonSets>(&mut self.store, &self.workloads[workload], receiver)
    }
}

/// The executor's request for a plan for a workload, without anything outstanding.
fn plan_request<K: Kind>(
    store: &mut Store,
    workload: &nodewise_projection::Workload,
    receiver: &Receiver<'_>,
) -> v1::PlanRequest {
    let state = v1::ReconcileState::default();
    let now = Timestamp {
        seconds: NOW,
        nanos: 0,
    };
    let receiver = receiver.reading_shared_labels(true);
    let snapshot = snapshot::take::<K>(store, workload, state, &LiveObjects::default(), now, &receiver);
    v1::PlanRequest {
        snapshot: Some(snapshot),
        ..v1::PlanRequest::default()
    }
}

/// The caches of an executor with one settled workload.
pub trait Settled {
    /// The number of pods of the workload.
    fn pods(&self) -> usize;

    /// Applies a pod event: this pod becomes ready or unready.
    ///
    /// # Errors
    /// There is no such pod.
    fn set_ready(&mut self, pod: usize, ready: bool) -> Result<()>;

    /// The executor's request for a plan. Buckets that the receiver has are sent by digest.
    fn request(&mut self, receiver: &Receiver<'_>) -> v1::PlanRequest;

    /// Whether there is nothing to do while all pods are ready.
    fn is_at_rest(&self) -> bool {
        true
    }
}

/// The first DaemonSet.
impl Settled for Caches {
    fn pods(&self) -> usize {
        self.nodes()
    }

    fn set_ready(&mut self, pod: usize, ready: bool) -> Result<()> {
        self.set_ready(0, pod, ready)
    }

    fn request(&mut self, receiver: &Receiver<'_>) -> v1::PlanRequest {
        self.request(0, receiver)
    }

    fn is_at_rest(&self) -> bool {
        self.replaced.is_none()
    }
}

/// The digests of the buckets in a request.
pub fn digests(request: &v1::PlanRequest) -> impl Iterator<Item = Digest> {
    let buckets = request
        .snapshot
        .iter()
        .flat_map(|snapshot| snapshot.node_buckets.iter().chain(&snapshot.pod_buckets));
    buckets.filter_map(|bucket| Digest::try_from(&*bucket.digest).ok())
}

fn listed<T>(objects: Vec<T>) -> Delta<T> {
    Delta::Listed {
        objects,
        resource_version: FIRST_VERSION.to_string(),
    }
}

/// Nodewise's plan for a new DaemonSet in a cluster with one node.
fn first_plan(daemon_set: &Value) -> Result<v1::Plan> {
    let workload = nodewise_projection::Workload::daemon_set_from_json(daemon_set)?;
    let mut node = node(0);
    node["metadata"]["name"] = json!(NODE_MARK);
    let mut store = Store::new(&[DAEMON_SETS], 1);
    for event in [
        ClusterEvent::Workloads(DAEMON_SETS, listed(vec![workload.clone()])),
        ClusterEvent::Nodes(listed(vec![Node::from_json(&node)?])),
        ClusterEvent::Pods(listed(Vec::new())),
        ClusterEvent::Revisions(listed(Vec::new())),
        ClusterEvent::Policies(listed(Vec::new())),
    ] {
        store.apply(event);
    }
    let request = plan_request::<DaemonSets>(&mut store, &workload, &Receiver::EMPTY);
    planned(request)
}

/// The plan of an engine that has no buckets yet.
fn planned(request: v1::PlanRequest) -> Result<v1::Plan> {
    let answer = engine().plan(request, &never)?;
    answer.plan.context("an answer without a plan")
}

/// An engine with the default cache size of a server.
#[must_use]
pub fn engine() -> Engine {
    Engine::new(Limits::default(), ByteSize::mib(256))
}

/// The revision that a plan creates, as an apiserver serves it.
fn revision(plan: &v1::Plan, index: usize) -> Result<BTreeMap<String, Box<RawValue>>> {
    let mut created = plan.actions().filter_map(|action| match &action.kind {
        Some(v1::action::Kind::CreateRevision(create)) => Some(&create.manifest),
        _ => None,
    });
    let manifest: &Bytes = created.next().context("the plan creates no revision")?;
    let mut object: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(manifest)?;
    let metadata = object.get("metadata").context("a revision without metadata")?;
    let mut metadata: Value = serde_json::from_str(metadata.get())?;
    metadata["uid"] = json!(format!("{index:08x}-91c4-4be2-8a07-3d5f1c7b2e64"));
    metadata["resourceVersion"] = json!("1001");
    metadata["creationTimestamp"] = json!(CREATED);
    object.insert("metadata".to_owned(), serde_json::value::to_raw_value(&metadata)?);
    Ok(object)
}

/// The text of a pod that a plan creates, bound, running and ready, with placeholders.
fn pod(plan: &v1::Plan, daemon_set: &str) -> Result<String> {
    ensure!(!plan.pod_manifest.is_empty(), "the plan creates no pod");
    let mut pod: Value = serde_json::from_slice(&plan.pod_manifest)?;
    pod["spec"]["nodeName"] = json!(NODE_MARK);
    for pointer in &plan.node_name_pointers {
        *pod.pointer_mut(pointer).context("no place for the node's name")? = json!(NODE_MARK);
    }
    let metadata = &mut pod["metadata"];
    metadata["name"] = json!(NAME_MARK);
    metadata["generateName"] = json!(format!("{daemon_set}-"));
    metadata["namespace"] = json!(NAMESPACE);
    metadata["uid"] = json!(UID_MARK);
    metadata["resourceVersion"] = json!("1002");
    metadata["creationTimestamp"] = json!(CREATED);
    pod["spec"]["nodeName"] = json!(NODE_MARK);
    pod["status"] = json!({
        "phase": "Running",
        "conditions": [
            condition("Initialized", "True", CREATED),
            condition("Ready", READY_MARK, SINCE_MARK),
            condition("ContainersReady", READY_MARK, SINCE_MARK),
            condition("PodScheduled", "True", CREATED),
        ],
        "hostIP": "10.0.0.1", "podIP": "10.1.0.1", "podIPs": [{"ip": "10.1.0.1"}], "startTime": CREATED, "qosClass": "Burstable",
        "containerStatuses": [{
            "name": "agent", "ready": true, "started": true, "restartCount": 0, "image": "registry.example/agent:1",
            "imageID": "registry.example/agent@sha256:4b1d", "containerID": "containerd://7c2f",
            "state": {"running": {"startedAt": CREATED}}, "lastState": {},
        }],
    });
    Ok(pod.to_string())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn verdict(caches: &mut Caches, workload: usize) -> Result<v1::Verdict> {
        Ok(planned(caches.request(workload, &Receiver::EMPTY))?.verdict())
    }

    #[test]
    fn nothing_to_do_until_a_pod_changes() -> Result<()> {
        let mut caches = Caches::of(&Arc::new(Cluster::settled(40, 2)?))?;
        assert_eq!(verdict(&mut caches, 0)?, v1::Verdict::Noop);
        assert_eq!(verdict(&mut caches, 1)?, v1::Verdict::Noop);
        caches.set_ready(1, 7, false)?;
        assert_eq!(verdict(&mut caches, 0)?, v1::Verdict::Noop, "it is not its pod");
        assert_eq!(verdict(&mut caches, 1)?, v1::Verdict::Apply);
        caches.set_ready(1, 7, true)?;
        assert_eq!(verdict(&mut caches, 1)?, v1::Verdict::Noop);
        assert!(caches.set_ready(2, 0, true).is_err() && caches.set_ready(0, 40, true).is_err());
        Ok(())
    }

    /// The executor's objects, read from upstream's case, give the same snapshot.
    #[test]
    fn both_sides_have_the_same_objects() -> Result<()> {
        let cluster = Arc::new(Cluster::settled(30, 1)?);
        let case = cluster.case()?;
        let mut store = Store::new(&[DAEMON_SETS], BUCKETS);
        let workload = nodewise_projection::Workload::daemon_set_from_json(&case.daemon_sets[0])?;
        let revision = case.revisions.iter().map(|revision| -> Result<_> {
            let mut object = revision.object.clone();
            object["data"] = serde_json::from_str(&revision.data)?;
            Ok(Revision::from_json(&object)?)
        });
        for event in [
            ClusterEvent::Workloads(DAEMON_SETS, listed(vec![workload.clone()])),
            ClusterEvent::Nodes(listed(
                case.nodes.iter().map(Node::from_json).collect::<Result<_, _>>()?,
            )),
            ClusterEvent::Pods(listed(
                case.pods.iter().map(Pod::from_json).collect::<Result<_, _>>()?,
            )),
            ClusterEvent::Revisions(listed(revision.collect::<Result<_>>()?)),
            ClusterEvent::Policies(listed(Vec::new())),
        ] {
            store.apply(event);
        }
        let theirs = plan_request::<DaemonSets>(&mut store, &workload, &Receiver::EMPTY);
        let theirs = theirs.snapshot.context("a snapshot")?;
        let ours = Caches::of(&cluster)?
            .request(0, &Receiver::EMPTY)
            .snapshot
            .context("a snapshot")?;
        assert_eq!(theirs.node_buckets, ours.node_buckets);
        assert_eq!(theirs.pod_buckets, ours.pod_buckets);
        assert_eq!(theirs.workload, ours.workload);
        let values = |snapshot: &v1::Snapshot| -> Result<Vec<Value>> {
            let objects = snapshot
                .revisions
                .iter()
                .map(|revision| serde_json::from_slice(&revision.object));
            Ok(objects.collect::<Result<_, _>>()?)
        };
        assert_eq!(values(&theirs)?, values(&ours)?);
        assert_eq!(
            (case.nodes.len(), case.pods.len(), case.revisions.len()),
            (30, 30, 1)
        );
        Ok(())
    }

    #[test]
    fn one_changed_pod_is_one_changed_bucket() -> Result<()> {
        let mut caches = Caches::of(&Arc::new(Cluster::settled(300, 1)?))?;
        let known: HashSet<_> = digests(&caches.request(0, &Receiver::EMPTY)).collect();
        caches.set_ready(0, 123, false)?;
        let request = caches.request(0, &Receiver::new(&|digest| known.contains(digest)));
        let snapshot = request.snapshot.context("a snapshot")?;
        let inline =
            |buckets: &[v1::Bucket]| buckets.iter().filter(|bucket| bucket.inline().is_some()).count();
        assert_eq!(
            (inline(&snapshot.node_buckets), inline(&snapshot.pod_buckets)),
            (0, 1)
        );
        Ok(())
    }
}
