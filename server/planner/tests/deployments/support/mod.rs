//! Deployment `web` and its ReplicaSets in the planner's own types. ReplicaSets are written as short texts.

pub(crate) mod apply;

use jiff::{SignedDuration, Timestamp};
use nodewise_planner::{
    deployment::{self, Deployment, RollingUpdate, Set, Strategy},
    json::Json,
    plan::{
        Action, ActionKind, Condition, DeploymentStatus, Phase, PhaseKind, Plan, ReplicaSetStatus, Resource,
        Status, Verdict,
    },
    snapshot::{ControllerRef, Deviation, IntOrString, Labels, Options, Selector, Snapshot, State},
};
use serde_json::{Value, json};

pub(crate) const REVISION: &str = "deployment.kubernetes.io/revision";
pub(crate) const HISTORY: &str = "deployment.kubernetes.io/revision-history";
pub(crate) const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
pub(crate) const MAX: &str = "deployment.kubernetes.io/max-replicas";
pub(crate) const ROLLBACK: &str = "deprecated.deployment.rollback.to";
pub(crate) const HASH_LABEL: &str = "pod-template-hash";

/// The time that many seconds after the epoch.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
}

/// The template with an image, as served. That of the Deployment has the image `new`.
pub(crate) fn template(image: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": image, "resources": {}}]},
    })
}

/// A limit of a rollout: a number, a text such as `25%`, or `-` for none.
pub(crate) fn limit(text: &str) -> Option<IntOrString> {
    match text.parse() {
        Ok(number) => Some(IntOrString::Int(number)),
        Err(_) if text == "-" => None,
        Err(_) => Some(IntOrString::String(text.to_owned())),
    }
}

/// A condition with both times at a second, as served.
pub(crate) fn condition(kind: &str, status: &str, reason: &str, seconds: i64) -> Condition {
    let time = at(seconds);
    let served = json!({
        "type": kind, "status": status, "reason": reason, "message": "served",
        "lastTransitionTime": time.to_string(), "lastUpdateTime": time.to_string(),
    });
    Condition {
        r#type: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: "served".to_owned(),
        last_transition_time: Some(time),
        last_update_time: Some(time),
        served: Some(served.into()),
    }
}

/// Deployment `web` with its ReplicaSets.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) now: Timestamp,
    pub(crate) web: Deployment,
    pub(crate) options: Options,
    /// The Events that plans emitted, as `reason: message`.
    pub(crate) events: Vec<String>,
    created: i64,
}

impl World {
    /// A Deployment with a number of replicas, limits of 25%, no ReplicaSets, and the time 1,000 s. No deviation is on.
    pub(crate) fn new(replicas: i32) -> Self {
        Self {
            now: at(1_000),
            web: Deployment {
                name: "web".to_owned(),
                namespace: "default".to_owned(),
                uid: "web-uid".to_owned(),
                resource_version: "7".to_owned(),
                generation: 1,
                deleting: false,
                annotations: vec![],
                selector: Some(Selector {
                    match_labels: Some(vec![("app".to_owned(), "web".to_owned())]),
                    match_expressions: None,
                }),
                selector_json: json!({"matchLabels": {"app": "web"}}).into(),
                replicas,
                paused: false,
                strategy: Strategy::RollingUpdate(Some(RollingUpdate {
                    max_unavailable: limit("25%"),
                    max_surge: limit("25%"),
                })),
                min_ready_seconds: 0,
                progress_deadline_seconds: Some(600),
                revision_history_limit: Some(10),
                template: template("new").into(),
                status: DeploymentStatus {
                    observed_generation: 1,
                    ..DeploymentStatus::default()
                },
                sets: vec![],
            },
            options: Options::upstream_strict(),
            events: vec![],
            created: 100,
        }
    }

    /// Sets the limits of the rolling update, written as for [`limit`].
    pub(crate) fn rolling(mut self, max_surge: &str, max_unavailable: &str) -> Self {
        self.web.strategy = Strategy::RollingUpdate(Some(RollingUpdate {
            max_unavailable: limit(max_unavailable),
            max_surge: limit(max_surge),
        }));
        self
    }

    pub(crate) fn recreate(mut self) -> Self {
        self.web.strategy = Strategy::Recreate;
        self
    }

    /// Switches deviations on.
    pub(crate) fn deviating(mut self, deviations: &[Deviation]) -> Self {
        self.options.deviations.extend(deviations);
        self
    }

    /// Adds a condition `Progressing` of a reason.
    pub(crate) fn progressing(mut self, status: &str, reason: &str, seconds: i64) -> Self {
        self.web
            .status
            .conditions
            .push(condition("Progressing", status, reason, seconds));
        self
    }

    pub(crate) fn annotated(mut self, key: &str, value: &str) -> Self {
        self.web.annotations.push((key.to_owned(), value.to_owned()));
        self.web.annotations.sort();
        self
    }

    /// Adds sets, each written as for [`Self::set`] and separated by semicolons.
    pub(crate) fn with(mut self, sets: &str) -> Self {
        for set in sets.split(';').map(str::trim).filter(|set| !set.is_empty()) {
            self.set(set);
        }
        self
    }

    /// Adds a set: its name, `size/available`, and then any of these. `new` in the name gives it the Deployment's template, and any
    /// other name one of its own. Each set is younger than those before.
    ///
    /// `t=5` (created), `image=x`, `rev=3`, `history=1,2`, `desired=10`, `max=13`, `has=` (status.replicas), `updated=`, `ready=`,
    /// `terminating=`, `pods=` (unfinished), `gen=`, `seen=` (observedGeneration), `min=` (minReadySeconds), `app=`, `orphan`,
    /// `foreign`, `deleting`, `taken` (read after a name collision), `failing=REASON`.
    pub(crate) fn set(&mut self, text: &str) {
        let mut words = text.split_whitespace();
        let name = words.next().expect("a set has a name");
        let (size, available) = words
            .next()
            .and_then(|word| word.split_once('/'))
            .expect("size/available");
        let number = |text: &str| text.parse::<i32>().expect("a number");
        let (size, available) = (number(size), number(available));
        self.created += 1;
        let image = if name.starts_with("new") { "new" } else { name };
        let mut set = set(name, size, available, image, at(self.created));
        set.controller = Some(self.controller());
        for word in words {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            let annotation = match key {
                "rev" => REVISION,
                "history" => HISTORY,
                "desired" => DESIRED,
                "max" => MAX,
                _ => "",
            };
            match key {
                "rev" | "history" | "desired" | "max" => annotate(&mut set, annotation, value),
                "t" => set.created = Some(at(value.parse().expect("a time"))),
                "image" => set.template = with_hash(template(value), name).into(),
                "has" => set.status.replicas = number(value),
                "ready" => set.status.ready_replicas = number(value),
                "terminating" => set.status.terminating_replicas = value.parse().ok(),
                "pods" => set.unfinished_pods = value.parse().expect("a count"),
                "gen" => set.generation = value.parse().expect("a generation"),
                "seen" => set.status.observed_generation = value.parse().expect("a generation"),
                "min" => set.min_ready_seconds = number(value),
                "app" => set.labels = Labels::new(vec![("app".to_owned(), value.to_owned())]),
                "orphan" => set.controller = None,
                "foreign" => {
                    set.controller = Some(ControllerRef {
                        uid: "other".to_owned(),
                        ..self.controller()
                    });
                }
                "deleting" => set.deleting = true,
                "taken" => set.read_after_name_collision = true,
                "failing" => set
                    .status
                    .conditions
                    .push(condition("ReplicaFailure", "True", value, 500)),
                "note" => annotate(&mut set, "note", value),
                _ => panic!("{word} means nothing"),
            }
        }
        self.web.sets.push(set);
    }

    pub(crate) fn controller(&self) -> ControllerRef {
        ControllerRef {
            kind: "Deployment".to_owned(),
            name: self.web.name.clone(),
            uid: self.web.uid.clone(),
        }
    }

    /// Sets the stored status to the one that a plan computes, with `Progressing` for the reason and both times at a second.
    pub(crate) fn settled(mut self, reason: &str, seconds: i64) -> Self {
        self.web.status.conditions = vec![condition("Progressing", "True", reason, seconds)];
        for _ in 0..2 {
            let status = status(&self.plan());
            let progressing = condition("Progressing", "True", reason, seconds);
            let others = status
                .conditions
                .into_iter()
                .filter(|other| other.r#type != "Progressing");
            let mut conditions: Vec<_> = others
                .map(|other| condition(&other.r#type, &other.status, &other.reason, seconds))
                .collect();
            conditions.push(progressing);
            self.web.status = DeploymentStatus { conditions, ..status };
        }
        if let Some(revision) = self.plan_revision() {
            self = self.annotated(REVISION, &revision);
        }
        self
    }

    fn plan_revision(&self) -> Option<String> {
        let plan = self.plan();
        let patch = status_patch(&plan)?;
        patch["metadata"]["annotations"][REVISION]
            .as_str()
            .map(str::to_owned)
    }

    pub(crate) fn snapshot(&self) -> Snapshot<Deployment> {
        Snapshot {
            now: self.now,
            workload: self.web.clone(),
            revisions: vec![],
            buckets: vec![],
            state: State::default(),
            own_writes: vec![],
            options: self.options.clone(),
        }
    }

    pub(crate) fn plan(&self) -> Plan {
        let plan = deployment::plan(&self.snapshot());
        let has_nothing = plan.phases.is_empty() && plan.error.is_none();
        assert_eq!(plan.verdict == Verdict::Noop, has_nothing, "{plan:#?}");
        plan
    }

    /// The set of a name.
    pub(crate) fn find(&self, name: &str) -> &Set {
        self.web
            .sets
            .iter()
            .find(|set| set.name == name)
            .expect("there is such a set")
    }

    /// The sizes of all sets, as `new 3, old 8`. A set that a plan created is called `created`.
    pub(crate) fn sizes(&self) -> String {
        let mut sizes: Vec<_> = self
            .web
            .sets
            .iter()
            .map(|set| {
                let name = if set.name.starts_with("web-") {
                    "created"
                } else {
                    &set.name
                };
                format!("{name} {}", set.replicas)
            })
            .collect();
        sizes.sort();
        sizes.join(", ")
    }
}

fn set(name: &str, size: i32, available: i32, image: &str, created: Timestamp) -> Set {
    Set {
        name: name.to_owned(),
        uid: format!("{name}-uid"),
        resource_version: "3".to_owned(),
        generation: 1,
        deleting: false,
        labels: Labels::new(vec![("app".to_owned(), "web".to_owned())]),
        annotations: vec![],
        controller: None,
        created: Some(created),
        replicas: size,
        min_ready_seconds: 0,
        template: with_hash(template(image), name).into(),
        status: ReplicaSetStatus {
            replicas: size,
            fully_labeled_replicas: size,
            ready_replicas: available,
            available_replicas: available,
            terminating_replicas: Some(0),
            observed_generation: 1,
            conditions: vec![],
        },
        unfinished_pods: 0,
        read_after_name_collision: false,
    }
}

/// The template with a hash label.
pub(crate) fn with_hash(mut template: Value, hash: &str) -> Value {
    template["metadata"]["labels"][HASH_LABEL] = hash.into();
    template
}

pub(crate) fn annotate(set: &mut Set, key: &str, value: &str) {
    set.annotations.retain(|(found, _)| found != key);
    set.annotations.push((key.to_owned(), value.to_owned()));
    set.annotations.sort();
}

/// The annotation of a set; empty if absent.
pub(crate) fn annotation<'a>(set: &'a Set, key: &str) -> &'a str {
    set.annotations
        .iter()
        .find(|(found, _)| found == key)
        .map_or("", |(_, value)| value)
}

/// The phase of a kind.
pub(crate) fn phase(plan: &Plan, kind: PhaseKind) -> Option<&Phase> {
    plan.phases.iter().find(|phase| phase.kind == kind)
}

/// The actions of a phase.
pub(crate) fn actions(plan: &Plan, kind: PhaseKind) -> Vec<&Action> {
    let batches = phase(plan, kind).into_iter().flat_map(|phase| &phase.batches);
    batches.flat_map(|batch| &batch.actions).collect()
}

/// All actions.
pub(crate) fn all_actions(plan: &Plan) -> Vec<&Action> {
    let batches = plan.phases.iter().flat_map(|phase| &phase.batches);
    batches.flat_map(|batch| &batch.actions).collect()
}

/// The kinds of the phases.
pub(crate) fn phases(plan: &Plan) -> Vec<PhaseKind> {
    plan.phases.iter().map(|phase| phase.kind).collect()
}

/// The JSON of an action.
pub(crate) fn json(action: &Action) -> Value {
    let bytes = match &action.kind {
        ActionKind::PatchObject { patch, .. } => patch,
        ActionKind::CreateObject { manifest, .. } => manifest,
        other => panic!("{other:?} has no JSON"),
    };
    serde_json::from_slice(bytes).expect("valid JSON")
}

/// The patch of the status, if the plan writes it.
pub(crate) fn status_patch(plan: &Plan) -> Option<Value> {
    actions(plan, PhaseKind::Status)
        .first()
        .map(|action| json(action))
}

/// The status that a plan computes.
pub(crate) fn status(plan: &Plan) -> DeploymentStatus {
    match &plan.status {
        Some(Status::Deployment(status)) => status.clone(),
        other => panic!("no status of a Deployment: {other:?}"),
    }
}

/// The condition of a type, as `status reason`; empty if absent.
pub(crate) fn condition_of(status: &DeploymentStatus, kind: &str) -> String {
    status
        .conditions
        .iter()
        .find(|condition| condition.r#type == kind)
        .map_or_else(String::new, |condition| {
            format!("{} {}", condition.status, condition.reason)
        })
}

/// What the set of a name is patched with, if the plan writes it.
pub(crate) fn set_patch(plan: &Plan, name: &str) -> Option<Value> {
    let mut actions = all_actions(plan).into_iter();
    let action = actions.find(|action| {
        matches!(&action.kind, ActionKind::PatchObject { resource: Resource::ReplicaSets, object, claim: None, .. }
            if object.name == name)
    });
    action.map(json)
}

/// The success Events of all actions, as messages.
pub(crate) fn events(plan: &Plan) -> Vec<String> {
    all_actions(plan)
        .into_iter()
        .flat_map(|action| match &action.kind {
            ActionKind::PatchObject { events, .. } | ActionKind::CreateObject { events, .. } => {
                events.success.iter().map(|event| event.message.clone()).collect()
            }
            ActionKind::EmitEvent { message, .. } => vec![message.clone()],
            _ => vec![],
        })
        .collect()
}

/// Edits a JSON text.
pub(crate) fn edit(json: &mut Json, change: impl FnOnce(&mut Value)) {
    let mut value = json.to_value();
    change(&mut value);
    *json = value.into();
}
