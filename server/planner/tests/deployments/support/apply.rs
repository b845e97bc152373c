//! Applies plans to a [`World`], as an executor does when every write succeeds.

use nodewise_planner::{
    deployment::Set,
    json::Json,
    plan::{
        Action, ActionKind, Condition, DeploymentStatus, Event, ObjectClaim, Plan, ReplicaSetStatus,
        Resource, Subresource, Verdict, When,
    },
    snapshot::Labels,
};
use serde_json::Value;

use super::{World, annotate, at};

impl World {
    /// Plans and applies the plan. Returns it.
    pub(crate) fn sync(&mut self) -> Plan {
        let plan = self.plan();
        self.apply(&plan);
        plan
    }

    /// Applies a plan.
    pub(crate) fn apply(&mut self, plan: &Plan) {
        assert_ne!(plan.verdict, Verdict::Stale);
        for phase in plan
            .phases
            .iter()
            .filter(|phase| phase.when != When::AfterFailure)
        {
            for action in phase.batches.iter().flat_map(|batch| &batch.actions) {
                self.write(action);
            }
        }
    }

    /// Applies one action.
    pub(crate) fn write(&mut self, action: &Action) {
        match &action.kind {
            ActionKind::CreateObject {
                name,
                manifest,
                events,
                ..
            } => {
                let manifest = serde_json::from_slice(manifest).expect("valid JSON");
                self.create(name, &manifest);
                self.emit(&events.success);
            }
            ActionKind::PatchObject {
                resource,
                object,
                subresource,
                patch,
                claim,
                events,
                ..
            } => {
                let patch: Value = serde_json::from_slice(patch).expect("valid JSON");
                assert_eq!(
                    patch["metadata"]["uid"], object.uid,
                    "the patch is for this object"
                );
                match (resource, subresource) {
                    (Resource::Deployments, Subresource::Status) => self.write_status(&patch),
                    (Resource::Deployments, Subresource::None) => self.write_deployment(&patch),
                    (Resource::ReplicaSets, _) => self.write_set(&object.name, &patch, *claim),
                    (Resource::RolloutPolicies, _) => panic!("a Deployment has no policy"),
                }
                self.emit(&events.success);
            }
            ActionKind::DeleteObject { object, .. } => self.web.sets.retain(|set| set.uid != object.uid),
            ActionKind::EmitEvent { reason, message, .. } => self.events.push(format!("{reason}: {message}")),
            other => panic!("no action of a Deployment: {other:?}"),
        }
    }

    fn emit(&mut self, events: &[Event]) {
        for event in events {
            self.events.push(format!("{}: {}", event.reason, event.message));
        }
    }

    fn create(&mut self, name: &str, manifest: &Value) {
        self.created += 1;
        let labels = &manifest["metadata"]["labels"];
        assert_eq!(manifest["metadata"]["ownerReferences"][0]["uid"], self.web.uid);
        let mut set = Set {
            name: name.to_owned(),
            uid: format!("{name}-uid"),
            resource_version: "1".to_owned(),
            generation: 1,
            deleting: false,
            labels: Labels::new(strings(labels)),
            annotations: vec![],
            controller: Some(self.controller()),
            created: Some(at(self.created)),
            replicas: int(&manifest["spec"]["replicas"]),
            min_ready_seconds: int(&manifest["spec"]["minReadySeconds"]),
            template: Json::from(&manifest["spec"]["template"]),
            status: ReplicaSetStatus::default(),
            unfinished_pods: 0,
            read_after_name_collision: false,
        };
        for (key, value) in strings(&manifest["metadata"]["annotations"]) {
            annotate(&mut set, &key, &value);
        }
        let is_new = self.web.sets.iter().all(|set| set.name != name);
        assert!(is_new, "{name} exists");
        self.web.sets.push(set);
    }

    fn write_set(&mut self, name: &str, patch: &Value, claim: Option<ObjectClaim>) {
        let controller = self.controller();
        let found = self.web.sets.iter_mut().find(|set| set.name == name);
        let set = found.expect("the set exists");
        match claim {
            Some(ObjectClaim::Adopt) => set.controller = Some(controller),
            Some(ObjectClaim::Release) => set.controller = None,
            None => {}
        }
        for (key, value) in strings(&patch["metadata"]["annotations"]) {
            annotate(set, &key, &value);
        }
        if let Some(spec) = patch.get("spec") {
            set.generation += 1;
            for (field, key) in [
                (&mut set.replicas, "replicas"),
                (&mut set.min_ready_seconds, "minReadySeconds"),
            ] {
                if !spec[key].is_null() {
                    *field = int(&spec[key]);
                }
            }
        }
    }

    fn write_deployment(&mut self, patch: &Value) {
        self.write_annotations(patch);
        if let Some(change) = patch["spec"].get("template") {
            let mut template = self.web.template.to_value();
            merge(&mut template, change);
            self.web.template = template.into();
            self.web.generation += 1;
        }
    }

    fn write_annotations(&mut self, patch: &Value) {
        for (key, value) in patch["metadata"]["annotations"].as_object().into_iter().flatten() {
            self.web.annotations.retain(|(found, _)| found != key);
            if let Some(value) = value.as_str() {
                self.web.annotations.push((key.clone(), value.to_owned()));
            }
        }
        self.web.annotations.sort();
    }

    fn write_status(&mut self, patch: &Value) {
        self.write_annotations(patch);
        let (patch, old) = (&patch["status"], self.web.status.clone());
        let field = |key: &str, old: i32| patch.get(key).map_or(old, int);
        let optional = |key: &str, old: Option<i32>| match patch.get(key) {
            None => old,
            Some(Value::Null) => None,
            Some(value) => Some(int(value)),
        };
        self.web.status = DeploymentStatus {
            replicas: field("replicas", old.replicas),
            updated_replicas: field("updatedReplicas", old.updated_replicas),
            ready_replicas: field("readyReplicas", old.ready_replicas),
            available_replicas: field("availableReplicas", old.available_replicas),
            unavailable_replicas: field("unavailableReplicas", old.unavailable_replicas),
            terminating_replicas: optional("terminatingReplicas", old.terminating_replicas),
            collision_count: optional("collisionCount", old.collision_count),
            observed_generation: patch["observedGeneration"]
                .as_i64()
                .unwrap_or(old.observed_generation),
            conditions: match patch.get("conditions") {
                None => old.conditions,
                Some(list) => list.as_array().expect("a list").iter().map(condition).collect(),
            },
        };
    }
}

/// A condition as an apiserver serves it.
fn condition(value: &Value) -> Condition {
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let time = |key: &str| value[key].as_str().map(|time| time.parse().expect("a time"));
    Condition {
        r#type: text("type"),
        status: text("status"),
        reason: text("reason"),
        message: text("message"),
        last_transition_time: time("lastTransitionTime"),
        last_update_time: time("lastUpdateTime"),
        served: Some(value.into()),
    }
}

fn strings(value: &Value) -> Vec<(String, String)> {
    let members = value.as_object().into_iter().flatten();
    members
        .map(|(key, value)| (key.clone(), value.as_str().expect("a string").to_owned()))
        .collect()
}

fn int(value: &Value) -> i32 {
    i32::try_from(value.as_i64().expect("a number")).expect("32 bits")
}

/// Applies a JSON merge patch (RFC 7386).
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Some(changes) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(serde_json::Map::new());
    }
    let members = target.as_object_mut().expect("an object");
    for (key, change) in changes {
        if change.is_null() {
            members.remove(key);
        } else {
            merge(members.entry(key).or_insert(Value::Null), change);
        }
    }
}
