//! A ReplicaSet with its pods, in the planner's own types. Pods are written as short texts.

pub(crate) mod apply;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use nodewise_planner::{
    plan::{Action, ActionKind, Condition, PhaseKind, Plan, ReplicaSetStatus, Status},
    replicaset::ReplicaSet,
    snapshot::{
        Bucket, ControllerRef, Deviation, Expectations, ExpectedCreate, Labels, Options, Pod, PodPhase,
        Selector, Snapshot, State, Target, UsedPodName,
    },
};
use serde_json::{Value, json};

/// The time that many seconds after the epoch.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
}

/// ReplicaSet `web` with its pods.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) now: Timestamp,
    pub(crate) rs: ReplicaSet,
    pub(crate) pods: Vec<Pod>,
    pub(crate) state: State,
    pub(crate) options: Options,
    pub(crate) created: usize,
}

impl World {
    /// A ReplicaSet that wants so many pods, and has none. The time is a day after the epoch.
    pub(crate) fn new(replicas: i32) -> Self {
        Self {
            now: at(86_400),
            rs: replica_set(replicas),
            pods: vec![],
            state: State::default(),
            options: Options {
                burst: Options::REPLICA_SET_BURST,
                ..Options::default()
            },
            created: 0,
        }
    }

    /// Adds pods, each written as for [`Self::pod`].
    pub(crate) fn with(mut self, pods: &[&str]) -> Self {
        for pod in pods {
            self.pod(pod);
        }
        self
    }

    /// Adds so many ready pods `p-0`, `p-1`, ….
    pub(crate) fn with_ready(mut self, count: usize) -> Self {
        for index in 0..count {
            self.pod(&format!("p-{index}@n ready"));
        }
        self
    }

    /// Switches all deviations off.
    pub(crate) fn strict(mut self) -> Self {
        self.options.deviations.clear();
        self
    }

    /// Switches one deviation off.
    pub(crate) fn without(mut self, deviation: Deviation) -> Self {
        self.options.deviations.remove(&deviation);
        self
    }

    /// Sets the burst.
    pub(crate) fn burst(mut self, burst: usize) -> Self {
        self.options.burst = burst;
        self
    }

    /// Sets minReadySeconds.
    pub(crate) fn min_ready(mut self, seconds: i32) -> Self {
        self.rs.min_ready_seconds = seconds;
        self
    }

    /// Sets the numbers of related pods by node.
    pub(crate) fn related(mut self, counts: &[(&str, u32)]) -> Self {
        self.rs.related_pods = counts
            .iter()
            .map(|(node, pods)| ((*node).to_owned(), *pods))
            .collect();
        self
    }

    /// Adds a pod: `name@node words…`. Without a node it is not assigned. Words are `ready` (for a day), `unready` (the default),
    /// `pending`, `unknown`, `failed`, `succeeded`, `deleting`, `orphan`, `foreign`, `stray` (labels do not match), `extra` (has
    /// the label `extra`), and numbers: `t=` (created) and `since=` (ready) in seconds before now, `cost=`, `restarts=`,
    /// `sidecar=`; `uid=` is a text. Times without a value are unknown.
    pub(crate) fn pod(&mut self, text: &str) -> &mut Pod {
        let mut words = text.split_whitespace();
        let name = words.next().expect("a pod has a name");
        let (name, node) = name.split_once('@').expect("a pod is written name@node");
        let mut pod = self.blank_pod(name);
        if !node.is_empty() {
            pod.target = Target::Bound(node.to_owned());
        }
        for word in words {
            self.apply_word(&mut pod, word);
        }
        self.pods.push(pod);
        self.pods.last_mut().expect("just pushed")
    }

    fn blank_pod(&self, name: &str) -> Pod {
        Pod {
            name: name.to_owned(),
            uid: format!("uid-of-{name}"),
            labels: labels(&[("app", "web")]),
            controller: Some(self.controller().into()),
            target: Target::Nowhere,
            phase: PodPhase::Running,
            ready: false,
            ready_since: None,
            created: Some(at(0)),
            deleting: false,
            has_finalizers: false,
            deletion_cost: 0,
            restarts: 0,
            sidecar_restarts: 0,
        }
    }

    fn apply_word(&self, pod: &mut Pod, word: &str) {
        let (word, value) = word.split_once('=').unwrap_or((word, ""));
        let number = || value.parse::<i64>().unwrap_or_else(|_| panic!("{word}={value}"));
        let ago = || {
            let age = value.parse().map(SignedDuration::from_secs_f64);
            age.ok().map(|age| self.now - age)
        };
        match word {
            "ready" => (pod.ready, pod.ready_since) = (true, Some(at(0))),
            "since" => (pod.ready, pod.ready_since) = (true, ago()),
            "t" => pod.created = ago(),
            "unready" => pod.ready = false,
            "pending" => pod.phase = PodPhase::Pending,
            "unknown" => pod.phase = PodPhase::Unknown,
            "failed" => pod.phase = PodPhase::Failed,
            "succeeded" => pod.phase = PodPhase::Succeeded,
            "deleting" => pod.deleting = true,
            "orphan" => pod.controller = None,
            "foreign" => {
                pod.controller = Some(Arc::new(ControllerRef {
                    uid: "another".to_owned(),
                    ..self.controller()
                }));
            }
            "stray" => pod.labels = labels(&[("app", "other")]),
            "extra" => pod.labels = labels(&[("app", "web"), ("extra", "1")]),
            "cost" => pod.deletion_cost = number().try_into().expect("a cost has 32 bits"),
            "restarts" => pod.restarts = number().try_into().expect("a small number"),
            "sidecar" => pod.sidecar_restarts = number().try_into().expect("a small number"),
            "uid" => value.clone_into(&mut pod.uid),
            _ => panic!("unknown word {word}"),
        }
    }

    /// The controller reference of pods that `web` owns.
    pub(crate) fn controller(&self) -> ControllerRef {
        ControllerRef {
            kind: "ReplicaSet".to_owned(),
            name: self.rs.name.clone(),
            uid: self.rs.uid.clone(),
        }
    }

    /// Sets outstanding creates and deletes, of a plan that many seconds ago.
    pub(crate) fn expect(&mut self, creates: &[&str], deletes: &[&str], age: i64) {
        self.state.expectations = Some(Expectations {
            set_at: self.now - SignedDuration::from_secs(age),
            creates: creates.iter().map(|name| expected_create(name)).collect(),
            delete_uids: deletes.iter().map(|uid| (*uid).to_owned()).collect(),
        });
    }

    /// A snapshot of the world.
    pub(crate) fn snapshot(&self) -> Snapshot<ReplicaSet> {
        Snapshot {
            now: self.now,
            workload: self.rs.clone(),
            revisions: vec![],
            buckets: Bucket::divide(vec![], self.pods.clone(), 1, |_| 0),
            state: self.state.clone(),
            own_writes: vec![],
            options: self.options.clone(),
        }
    }

    /// The plan for the world.
    pub(crate) fn plan(&self) -> Plan {
        nodewise_planner::replicaset::plan(&self.snapshot())
    }

    /// Sets the status to what the plan computes, so that plans do not write it.
    pub(crate) fn settled(mut self) -> Self {
        self.rs.status = status(&self.plan());
        self
    }
}

/// A create that is outstanding.
pub(crate) fn expected_create(pod_name: &str) -> ExpectedCreate {
    ExpectedCreate {
        pod_name: pod_name.to_owned(),
        node_name: String::new(),
    }
}

/// The name of a pod that is gone.
pub(crate) fn used(pod_name: &str) -> UsedPodName {
    UsedPodName {
        node_name: String::new(),
        pod_name: pod_name.to_owned(),
    }
}

/// Labels from borrowed pairs.
pub(crate) fn labels(entries: &[(&str, &str)]) -> Labels {
    Labels::of(&mut entries.to_vec())
}

/// ReplicaSet `web`, which selects `app=web`.
pub(crate) fn replica_set(replicas: i32) -> ReplicaSet {
    ReplicaSet {
        name: "web".to_owned(),
        namespace: "default".to_owned(),
        uid: "uid-of-web".to_owned(),
        resource_version: "1".to_owned(),
        generation: 1,
        deleting: false,
        selector: Some(Selector {
            match_labels: Some(vec![("app".to_owned(), "web".to_owned())]),
            match_expressions: None,
        }),
        replicas,
        min_ready_seconds: 0,
        template: json!({
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "img:1"}]},
        })
        .into(),
        template_labels: labels(&[("app", "web")]),
        status: ReplicaSetStatus::default(),
        related_pods: vec![],
    }
}

/// Edits the template.
pub(crate) fn edit_template(rs: &mut ReplicaSet, change: impl FnOnce(&mut Value)) {
    let mut template = rs.template.to_value();
    change(&mut template);
    rs.template = template.into();
}

/// A condition as an apiserver serves it.
pub(crate) fn condition(r#type: &str, reason: &str, message: &str) -> Condition {
    let served = json!({
        "type": r#type, "status": "True", "reason": reason, "message": message,
        "lastTransitionTime": "1970-01-01T00:00:00Z",
    });
    Condition {
        r#type: r#type.to_owned(),
        status: "True".to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_transition_time: Some(at(0)),
        last_update_time: None,
        served: Some(served.into()),
    }
}

/// The actions of a phase, in order.
pub(crate) fn actions(plan: &Plan, kind: PhaseKind) -> Vec<&Action> {
    let phases = plan.phases.iter().filter(|phase| phase.kind == kind);
    phases
        .flat_map(|phase| &phase.batches)
        .flat_map(|batch| &batch.actions)
        .collect()
}

/// The sizes of the batches of a phase.
pub(crate) fn batches(plan: &Plan, kind: PhaseKind) -> Vec<usize> {
    let phases = plan.phases.iter().filter(|phase| phase.kind == kind);
    phases
        .flat_map(|phase| &phase.batches)
        .map(|batch| batch.actions.len())
        .collect()
}

/// The phases of a plan, in order.
pub(crate) fn phases(plan: &Plan) -> Vec<PhaseKind> {
    plan.phases.iter().map(|phase| phase.kind).collect()
}

/// The names of the pods that a plan creates, in order.
pub(crate) fn creates(plan: &Plan) -> Vec<&str> {
    let creates = actions(plan, PhaseKind::Creates).into_iter();
    creates
        .map(|action| match &action.kind {
            ActionKind::CreatePod { pod_name, node_name } => {
                assert_eq!(node_name, "", "the scheduler binds the pods of a ReplicaSet");
                pod_name.as_str()
            }
            other => panic!("{other:?} among creates"),
        })
        .collect()
}

/// The names of the pods that a plan deletes, in order.
pub(crate) fn deletes(plan: &Plan) -> Vec<&str> {
    let deletes = actions(plan, PhaseKind::Deletes).into_iter();
    deletes
        .map(|action| match &action.kind {
            ActionKind::DeletePod { pod, .. } => pod.name.as_str(),
            other => panic!("{other:?} among deletes"),
        })
        .collect()
}

/// How many creates and deletes a plan has.
pub(crate) fn counts(plan: &Plan) -> (usize, usize) {
    (creates(plan).len(), deletes(plan).len())
}

/// The number of outstanding creates and deletes.
pub(crate) fn outstanding(state: &State) -> (usize, usize) {
    let expected = state.expectations.as_ref();
    expected.map_or((0, 0), |expected| {
        (expected.creates.len(), expected.delete_uids.len())
    })
}

/// The status that a plan computed.
pub(crate) fn status(plan: &Plan) -> ReplicaSetStatus {
    match &plan.status {
        Some(Status::ReplicaSet(status)) => status.clone(),
        other => panic!("the plan counted {other:?}"),
    }
}

/// The counts of a status: replicas, fully labelled, ready, available.
pub(crate) fn numbers(status: &ReplicaSetStatus) -> [i32; 4] {
    [
        status.replicas,
        status.fully_labeled_replicas,
        status.ready_replicas,
        status.available_replicas,
    ]
}

/// The patch of a phase's only action, and the pointer to the message of its failure.
pub(crate) fn patch(plan: &Plan, kind: PhaseKind) -> Option<(Value, &str)> {
    let action = actions(plan, kind).into_iter().next()?;
    match &action.kind {
        ActionKind::PatchObject {
            patch,
            failure_pointer,
            ..
        } => {
            let patch = serde_json::from_slice(patch).expect("a patch is JSON");
            Some((patch, failure_pointer))
        }
        other => panic!("{other:?} writes the status"),
    }
}
