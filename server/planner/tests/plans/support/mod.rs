//! A small cluster in the planner's own types. Pods and taints are written as short texts.
//!
//! Tests of single plans set every field directly, also to what no apiserver would serve. Tests of whole histories use a
//! simulated cluster instead: `properties/simulated.rs`.

pub(crate) mod apply;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use nodewise_planner::{
    daemonset::{DaemonSet, RollingUpdate, RolloutInputs, Scheduling, Toleration, UpdateStrategy},
    json::Json,
    plan::{Action, ActionKind, DaemonSetStatus, PhaseKind, Plan, Reason, Status},
    snapshot::{
        Bucket, ControllerRef, IntOrString, Labels, Node, Options, Pod, PodNameCollision, PodPhase, Revision,
        Selector, Snapshot, State, Taint, TaintEffect, Target, UsedPodName,
    },
};
use serde_json::{Value, json};

/// The hash label of pods that are not of the current template.
pub(crate) const OLD_HASH: &str = "old";
pub(crate) const HASH_LABEL: &str = "controller-revision-hash";
pub(crate) const GENERATION_LABEL: &str = "pod-template-generation";

/// The time that many seconds after the epoch.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
}

/// A count of taken names of a node.
pub(crate) fn collision(node: &str, count: u32, refused: u32) -> PodNameCollision {
    PodNameCollision {
        node_name: node.to_owned(),
        count,
        refused,
    }
}

/// The name of a pod that is gone.
pub(crate) fn used(node: &str, pod: &str) -> UsedPodName {
    UsedPodName {
        node_name: node.to_owned(),
        pod_name: pod.to_owned(),
    }
}

/// A cluster with DaemonSet `foo`.
#[derive(Debug, Clone)]
pub(crate) struct Cluster {
    pub(crate) now: Timestamp,
    pub(crate) ds: DaemonSet,
    pub(crate) nodes: Vec<Node>,
    pub(crate) pods: Vec<Pod>,
    pub(crate) revisions: Vec<Revision>,
    pub(crate) state: State,
    pub(crate) options: Options,
    /// Reasons of the events that plans emitted, with their messages.
    pub(crate) events: Vec<(&'static str, String)>,
    /// The hash of the pods that the plan creates that is being applied.
    creating: String,
    created: usize,
}

impl Cluster {
    /// `nodes` untainted nodes `node-0`, `node-1`, …, no pods, the revision of the template in place, and the time 1,000 s.
    pub(crate) fn new(nodes: usize) -> Self {
        let mut cluster = Self {
            now: at(1_000),
            ds: daemon_set(),
            nodes: (0..nodes)
                .map(|index| node(&format!("node-{index}"), &[]))
                .collect(),
            pods: vec![],
            revisions: vec![],
            state: State::default(),
            options: Options::default(),
            events: vec![],
            creating: String::new(),
            created: 0,
        };
        cluster.install_revision();
        cluster
    }

    /// Creates the revision of the present template as planned, and sets observedGeneration.
    pub(crate) fn install_revision(&mut self) {
        let plan = self.plan();
        for action in actions(&plan, PhaseKind::Revisions) {
            self.write(action);
        }
        self.ds.status.observed_generation = self.ds.generation;
    }

    /// Adds pods, each written as for [`Self::pod`].
    pub(crate) fn with(mut self, pods: &[&str]) -> Self {
        for pod in pods {
            self.pod(pod);
        }
        self
    }

    /// Adds an old, ready and available pod to each node.
    pub(crate) fn with_old_pods(mut self) -> Self {
        for index in 0..self.nodes.len() {
            let text = format!("old-{index}@{} old ready", self.nodes[index].name);
            self.pod(&text);
        }
        self
    }

    /// Sets the strategy RollingUpdate with these limits, written as for [`int_or_string`].
    pub(crate) fn rolling(mut self, max_unavailable: &str, max_surge: &str) -> Self {
        self.ds.strategy = UpdateStrategy::RollingUpdate(Some(RollingUpdate {
            max_unavailable: int_or_string(max_unavailable),
            max_surge: int_or_string(max_surge),
        }));
        self
    }

    /// Sets the strategy OnDelete.
    pub(crate) fn on_delete(mut self) -> Self {
        self.ds.strategy = UpdateStrategy::OnDelete;
        self
    }

    /// Sets minReadySeconds.
    pub(crate) fn min_ready(mut self, seconds: i32) -> Self {
        self.ds.min_ready_seconds = seconds;
        self
    }

    /// Switches all deviations off.
    pub(crate) fn strict(mut self) -> Self {
        self.options = Options {
            burst: self.options.burst,
            ..Options::upstream_strict()
        };
        self
    }

    /// Sets the taints of a node, each written `key=value:Effect`.
    pub(crate) fn taint(mut self, node: usize, taints: &[&str]) -> Self {
        self.nodes[node].taints = taints.iter().map(|text| taint(text)).collect();
        self
    }

    /// Adds a toleration of a key with every value and effect.
    pub(crate) fn tolerate(mut self, key: &str) -> Self {
        self.ds.scheduling.tolerations.push(Toleration {
            key: key.to_owned(),
            operator: "Exists".to_owned(),
            ..Toleration::default()
        });
        self
    }

    /// Adds a pod: `name@node words…`, where words are `new` or `old` (its template), `ready`, `unready` (the default),
    /// `pending`, `failed`, `succeeded`, `deleting`, `unbound`, `nowhere`, `orphan`, `foreign`, `stray` (labels do not
    /// match), `by-generation` (only that label is current), `t=<created>` and `since=<ready since>` in seconds.
    pub(crate) fn pod(&mut self, text: &str) -> &mut Pod {
        let mut words = text.split_whitespace();
        let (name, node) = words
            .next()
            .and_then(|word| word.split_once('@'))
            .expect("a pod is written name@node");
        let mut pod = self.blank_pod(name, node);
        for word in words {
            self.apply_word(&mut pod, word);
        }
        self.pods.push(pod);
        self.pods.last_mut().expect("just pushed")
    }

    fn blank_pod(&self, name: &str, node: &str) -> Pod {
        Pod {
            name: name.to_owned(),
            uid: format!("uid-of-{name}"),
            labels: pod_labels("foo", &self.current_hash()),
            controller: Some(self.controller().into()),
            target: Target::Bound(node.to_owned()),
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
        match word {
            "new" => pod.labels = pod_labels("foo", &self.current_hash()),
            "old" => pod.labels = pod_labels("foo", OLD_HASH),
            "by-generation" => {
                let mut labels = pod_labels("foo", OLD_HASH);
                labels = labels
                    .iter()
                    .map(|(key, value)| (key.to_owned(), value.to_owned()))
                    .chain([(GENERATION_LABEL.to_owned(), "1".to_owned())])
                    .collect();
                pod.labels = labels;
            }
            "stray" => pod.labels = pod_labels("other", OLD_HASH),
            "ready" => (pod.ready, pod.ready_since) = (true, Some(at(0))),
            "unready" => pod.ready = false,
            "pending" => pod.phase = PodPhase::Pending,
            "failed" => pod.phase = PodPhase::Failed,
            "succeeded" => pod.phase = PodPhase::Succeeded,
            "deleting" => pod.deleting = true,
            "unbound" => pod.target = Target::Meant(pod.target.node().unwrap_or_default().to_owned()),
            "nowhere" => pod.target = Target::Nowhere,
            "orphan" => pod.controller = None,
            "foreign" => {
                pod.controller = Some(Arc::new(ControllerRef {
                    uid: "another".to_owned(),
                    ..self.controller()
                }));
            }
            _ => {
                let (key, value) = word
                    .split_once('=')
                    .unwrap_or_else(|| panic!("unknown word {word}"));
                let time = at(value.parse().expect("a time is in seconds"));
                match key {
                    "t" => pod.created = Some(time),
                    "since" => (pod.ready, pod.ready_since) = (true, Some(time)),
                    _ => panic!("unknown word {word}"),
                }
            }
        }
    }

    /// The controller reference of objects that `foo` owns.
    pub(crate) fn controller(&self) -> ControllerRef {
        ControllerRef {
            kind: "DaemonSet".to_owned(),
            name: self.ds.name.clone(),
            uid: self.ds.uid.clone(),
        }
    }

    /// The hash of the newest revision.
    pub(crate) fn current_hash(&self) -> String {
        let newest = self.revisions.iter().max_by_key(|revision| revision.number);
        newest
            .and_then(|revision| revision.labels.get(HASH_LABEL))
            .unwrap_or_default()
            .to_owned()
    }

    /// A snapshot of the cluster.
    pub(crate) fn snapshot(&self) -> Snapshot<DaemonSet> {
        Snapshot {
            now: self.now,
            workload: self.ds.clone(),
            revisions: self.revisions.clone(),
            buckets: Bucket::divide(self.nodes.clone(), self.pods.clone(), 1, |_| 0),
            state: self.state.clone(),
            own_writes: vec![],
            options: self.options.clone(),
        }
    }

    /// The plan for the cluster.
    pub(crate) fn plan(&self) -> Plan {
        nodewise_planner::daemonset::plan(&self.snapshot())
    }

    /// Changes the image in the template.
    pub(crate) fn change_template(&mut self, image: &str) {
        edit(&mut self.ds.template, |template| {
            template["spec"]["containers"][0]["image"] = json!(image);
        });
        self.ds.generation += 1;
    }
}

/// The nodes of a plan's creates and the names of the pods that it deletes, in order.
pub(crate) fn pod_changes(plan: &Plan) -> (Vec<&str>, Vec<&str>) {
    let creates = actions(plan, PhaseKind::Creates)
        .into_iter()
        .map(|action| match &action.kind {
            ActionKind::CreatePod { node_name, .. } => node_name.as_str(),
            other => panic!("{other:?} among creates"),
        });
    let deletes = actions(plan, PhaseKind::Deletes)
        .into_iter()
        .map(|action| match &action.kind {
            ActionKind::DeletePod { pod, .. } | ActionKind::EvictPod { pod, .. } => pod.name.as_str(),
            other => panic!("{other:?} among deletes"),
        });
    (creates.collect(), deletes.collect())
}

/// How many creates and deletes a plan has.
pub(crate) fn counts(plan: &Plan) -> (usize, usize) {
    let (creates, deletes) = pod_changes(plan);
    (creates.len(), deletes.len())
}

/// The reasons of a phase's actions.
pub(crate) fn reasons(plan: &Plan, kind: PhaseKind) -> Vec<Reason> {
    actions(plan, kind)
        .into_iter()
        .map(|action| action.reason)
        .collect()
}

/// The events of a plan: reasons and messages.
pub(crate) fn events(plan: &Plan) -> Vec<(&'static str, &str)> {
    let events = actions(plan, PhaseKind::Events)
        .into_iter()
        .map(|action| match &action.kind {
            ActionKind::EmitEvent { reason, message, .. } => (*reason, message.as_str()),
            other => panic!("{other:?} among events"),
        });
    events.collect()
}

/// The actions of a phase, in order.
pub(crate) fn actions(plan: &Plan, kind: PhaseKind) -> Vec<&Action> {
    let phases = plan.phases.iter().filter(|phase| phase.kind == kind);
    phases
        .flat_map(|phase| &phase.batches)
        .flat_map(|batch| &batch.actions)
        .collect()
}

/// The status of a plan.
pub(crate) fn status(plan: &Plan) -> DaemonSetStatus {
    plan.status
        .as_ref()
        .and_then(Status::daemon_set)
        .expect("the plan counted")
}

/// DaemonSet `foo`, which selects `app=foo`, with maxUnavailable 1.
pub(crate) fn daemon_set() -> DaemonSet {
    DaemonSet {
        name: "foo".to_owned(),
        namespace: "default".to_owned(),
        uid: "uid-of-foo".to_owned(),
        resource_version: "1".to_owned(),
        generation: 1,
        deleting: false,
        annotations: vec![],
        selector: Some(Selector {
            match_labels: Some(vec![("app".to_owned(), "foo".to_owned())]),
            match_expressions: None,
        }),
        template: json!({
            "metadata": {"labels": {"app": "foo"}},
            "spec": {"containers": [{"name": "c", "image": "img:1", "resources": {}}]},
        })
        .into(),
        scheduling: Scheduling::default(),
        strategy: UpdateStrategy::RollingUpdate(Some(RollingUpdate {
            max_unavailable: Some(IntOrString::Int(1)),
            max_surge: Some(IntOrString::Int(0)),
        })),
        min_ready_seconds: 0,
        revision_history_limit: Some(10),
        status: DaemonSetStatus::default(),
        collision_count: None,
        rollout: RolloutInputs::default(),
    }
}

/// Edits a JSON text through a [`Value`].
pub(crate) fn edit(json: &mut Json, change: impl FnOnce(&mut Value)) {
    let mut value = json.to_value();
    change(&mut value);
    *json = value.into();
}

/// A node with taints.
pub(crate) fn node(name: &str, taints: &[&str]) -> Node {
    Node {
        name: name.to_owned(),
        labels: Labels::new(vec![("kubernetes.io/hostname".to_owned(), name.to_owned())]),
        taints: taints.iter().map(|text| taint(text)).collect(),
        unschedulable: false,
        ready: Some(true),
        ready_since: None,
        in_maintenance: false,
    }
}

/// A taint, written `key=value:Effect`.
pub(crate) fn taint(text: &str) -> Taint {
    let (rest, effect) = text.split_once(':').expect("a taint is written key=value:Effect");
    let (key, value) = rest.split_once('=').unwrap_or((rest, ""));
    let effect = match effect {
        "NoSchedule" => TaintEffect::NoSchedule,
        "NoExecute" => TaintEffect::NoExecute,
        _ => TaintEffect::Other,
    };
    Taint {
        key: key.to_owned(),
        value: value.to_owned(),
        effect,
    }
}

/// A limit: `-` for none, else a number or a string.
pub(crate) fn int_or_string(text: &str) -> Option<IntOrString> {
    match text {
        "-" => None,
        _ => Some(text.parse().map_or_else(
            |_| IntOrString::String(text.trim_matches('"').to_owned()),
            IntOrString::Int,
        )),
    }
}

fn pod_labels(app: &str, hash: &str) -> Labels {
    Labels::new(vec![
        ("app".to_owned(), app.to_owned()),
        (HASH_LABEL.to_owned(), hash.to_owned()),
    ])
}

/// The labels of an object as JSON.
pub(crate) fn labels_of(object: &Value) -> Labels {
    let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
    labels
        .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect()
}

/// The names of the pods that a plan creates, in order; empty if the apiserver chooses the name.
pub(crate) fn pod_names(plan: &Plan) -> Vec<&str> {
    let names = actions(plan, PhaseKind::Creates)
        .into_iter()
        .filter_map(|action| match &action.kind {
            ActionKind::CreatePod { pod_name, .. } => Some(pod_name.as_str()),
            _ => None,
        });
    names.collect()
}
