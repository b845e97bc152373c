//! Fairness between workloads: nodes come while large rollouts are under way.

use std::collections::HashMap;
use std::sync::Mutex;

use nodewise_client::{Answer, BuildRequest};
use nodewise_projection::{Node, Pod, Revision, RolloutPolicy, Workload};
use nodewise_proto::bucket::Receiver;
use prost::Message as _;
use serde_json::json;

use super::*;
use crate::daemon_set::{DAEMON_SETS, DaemonSets};

const NODES: usize = 5_000;
const AGENTS: usize = 20;
/// Number of pods of each rollout.
const PODS: usize = 250;

fn name_of(role: &str, index: usize) -> String {
    format!("{role}-{index}")
}

fn workload(name: &str) -> Workload {
    let object = json!({
        "metadata": {"namespace": "ns", "name": name, "uid": name, "resourceVersion": "10"},
        "spec": {"selector": {"matchLabels": {"app": name}}},
    });
    Workload::daemon_set_from_json(&object).expect("a DaemonSet")
}

/// The pods of a rollout. Deletes do not remove them.
fn pods(role: &str) -> impl Iterator<Item = Pod> {
    (0..PODS).map(move |index| {
        let name = name_of(role, index);
        let owner = json!({"kind": "DaemonSet", "name": role, "uid": role, "controller": true});
        let metadata = json!({"namespace": "ns", "name": name, "uid": name, "ownerReferences": [owner]});
        Pod::from_json(&json!({ "metadata": metadata })).expect("a pod")
    })
}

fn node(name: &str) -> Node {
    let object = json!({"metadata": {"name": name, "resourceVersion": "11"}});
    Node::from_json(&object).expect("a node")
}

/// Answers each request for a rollout with as many deletes as a plan may have, and each request for an agent with an
/// empty plan. The uid of a workload is its name here.
#[derive(Default)]
struct Rollouts {
    /// The newest node.
    fresh: Mutex<String>,
    /// By workload: the number of plan requests with the newest node and without it, since that node came.
    asked: Mutex<HashMap<String, (usize, usize)>>,
}

impl Rollouts {
    fn expect(&self, fresh: &str) {
        fresh.clone_into(&mut self.fresh.lock().expect("no panic"));
        self.asked.lock().expect("no panic").clear();
    }

    /// For each workload of this role: the number of plan requests that contained the newest node.
    fn plans(&self, role: &str, count: usize) -> Vec<usize> {
        let asked = self.asked.lock().expect("no panic");
        (0..count)
            .map(|index| asked.get(&name_of(role, index)).map_or(0, |asked| asked.0))
            .collect()
    }

    fn all(&self) -> usize {
        let asked = self.asked.lock().expect("no panic");
        asked.values().map(|(with, without)| with + without).sum()
    }
}

fn shows(request: &v1::PlanRequest, node: &str) -> bool {
    let snapshot = request.snapshot.as_ref().expect("a snapshot");
    let bucket = nodewise_proto::bucket::of(node, snapshot.bucket_count) as usize;
    let data = snapshot.node_buckets[bucket].data.clone().expect("inline");
    let nodes = v1::NodeBucket::decode(data).expect("a bucket").nodes;
    nodes.iter().any(|shown| shown.name == node)
}

impl PlanService for Rollouts {
    async fn plan(&self, uid: &str, build: &mut BuildRequest<'_>) -> Result<Answer, ServiceError> {
        let answer = |plan| Answer { plan, request: 0 };
        let shown = shows(&build(&Receiver::EMPTY), &self.fresh.lock().expect("no panic"));
        let mut asked = self.asked.lock().expect("no panic");
        let (with, without) = asked.entry(uid.to_owned()).or_default();
        *(if shown { with } else { without }) += 1;
        let workload = Some(v1::WorkloadReference {
            name: uid.to_owned(),
            uid: uid.to_owned(),
            ..reference()
        });
        if !uid.starts_with("rollout") {
            return Ok(answer(v1::Plan { workload, ..noop() }));
        }
        let deletes = (0..PODS).map(|index| {
            let name = name_of(uid, index);
            v1::action::Kind::DeletePod(v1::DeletePod {
                pod: Some(v1::ObjectReference {
                    uid: name.clone(),
                    name,
                }),
                uid_precondition: true,
                ..Default::default()
            })
        });
        Ok(answer(v1::Plan {
            workload,
            ..with_actions(v1::PhaseKind::Deletes, deletes.collect())
        }))
    }

    async fn report(&self, _: v1::ReportRequest) -> Result<v1::ReportResponse, ServiceError> {
        // At once, as after the events of the deleted pods.
        Ok(v1::ReportResponse {
            requeue: v1::Requeue::After.into(),
            requeue_after: Some(nodewise_proto::Duration {
                seconds: 0,
                nanos: 1_000_000,
            }),
            ..Default::default()
        })
    }
}

struct Cluster {
    service: Arc<Rollouts>,
    events: mpsc::UnboundedSender<ClusterEvent>,
    stop: CancellationToken,
    end: JoinHandle<Result<(), ManagerError>>,
}

/// Agents and rollouts on 5,000 nodes, with the default of two workers.
fn start_with(rollouts: usize, actuator: ScriptedActuator) -> Cluster {
    let (events, stream) = mpsc::unbounded_channel();
    let (service, stop) = (Arc::new(Rollouts::default()), CancellationToken::new());
    let config = Config {
        drain_timeout: MILLISECOND,
        ..Config::default()
    };
    let daemon_sets = controller::Config::default();
    assert_eq!(daemon_sets.workers, 2);
    let manager = Manager::new(config, Metrics::new(), stop.clone());
    let manager = manager.with::<DaemonSets>(daemon_sets, Arc::new(actuator), Arc::clone(&service));
    let end = tokio::spawn(manager.run(UnboundedReceiverStream::new(stream)));
    let names = (0..rollouts).map(|index| name_of("rollout", index));
    let names = names.chain((0..AGENTS).map(|index| name_of("agent", index)));
    for event in [
        ClusterEvent::Nodes(listed(
            (0..NODES).map(|index| node(&name_of("n", index))).collect(),
        )),
        ClusterEvent::Pods(listed(
            (0..rollouts)
                .flat_map(|index| pods(&name_of("rollout", index)).collect::<Vec<_>>())
                .collect(),
        )),
        ClusterEvent::Revisions(listed::<Revision>(Vec::new())),
        ClusterEvent::Policies(listed::<RolloutPolicy>(Vec::new())),
        ClusterEvent::Workloads(DAEMON_SETS, listed(names.map(|name| workload(&name)).collect())),
    ] {
        events.send(event).expect("the controller listens");
    }
    Cluster {
        service,
        events,
        stop,
        end,
    }
}

impl Cluster {
    fn add_node(&self, name: &str) {
        self.service.expect(name);
        let event = ClusterEvent::Nodes(Delta::Applied(node(name)));
        self.events.send(event).expect("the controller listens");
    }

    async fn end(self) {
        self.stop.cancel();
        let end = self.end.await.expect("the controller does not panic");
        assert!(matches!(end, Err(ManagerError::NotDrained(..))), "{end:?}");
    }
}

// Rollouts occupy both workers when a node comes. Each other DaemonSet is planned for that node exactly once.
#[tokio::test(start_paused = true)]
async fn a_new_node_does_not_wait_for_two_rollouts() {
    let actuator = ScriptedActuator {
        gate: Some(Arc::new(Semaphore::new(0))),
        ..Default::default()
    };
    let cluster = start_with(2, actuator);
    tokio::time::sleep(SECOND).await;
    for name in ["fresh-1", "fresh-2"] {
        cluster.add_node(name);
        tokio::time::sleep(25 * MILLISECOND).await;
        assert_eq!(cluster.service.plans("agent", AGENTS), [1; AGENTS], "{name}");
        assert_eq!(cluster.service.all(), AGENTS, "{name}");
    }
    cluster.end().await;
}

// There are more rollouts than workers, and each reconcile takes 40 s. New nodes do not wait for the rollouts, and new
// nodes do not keep the rollouts from making progress.
#[tokio::test(start_paused = true)]
async fn new_nodes_and_many_rollouts_do_not_block_each_other() {
    const ROLLOUTS: usize = 5;
    let actuator = ScriptedActuator {
        latency: 10 * SECOND,
        ..Default::default()
    };
    let cluster = start_with(ROLLOUTS, actuator);
    // By now each rollout was reconciled once, so the queue knows that its reconciles are long.
    tokio::time::sleep(200 * SECOND).await;
    let mut turns = [0; ROLLOUTS];
    for round in 0..40 {
        let name = name_of("fresh", round);
        cluster.add_node(&name);
        tokio::time::sleep(25 * MILLISECOND).await;
        assert_eq!(cluster.service.plans("agent", AGENTS), [1; AGENTS], "{name}");
        assert!(cluster.service.all() <= AGENTS + ROLLOUTS, "{name}");
        tokio::time::sleep(7 * SECOND).await;
        let planned = cluster.service.plans("rollout", ROLLOUTS);
        turns
            .iter_mut()
            .zip(planned)
            .for_each(|(turns, planned)| *turns += planned);
    }
    assert!(turns.iter().all(|turns| *turns >= 2), "{turns:?}");
    cluster.end().await;
}
