//! Returns to an earlier template (P-48 to P-50).

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::{
    core::{
        canonical,
        plan::{
            Action, ActionKind, Event, EventType, ObjectRef, PatchType, Reason, Resource, Subresource,
            WriteEvents,
        },
    },
    deployment::{
        annotations::{self, ROLLBACK_TO, is_copied},
        lookup,
        new_set::{member, object},
        plan_builder::PlanBuilder,
        revision, set_write,
        template::{self, HASH_LABEL},
        workload::{Deployment, Set},
    },
};

/// The revision that the Deployment's annotation asks for (P-48).
pub(crate) fn requested(deployment: &Deployment) -> Option<i64> {
    annotations::rollback_to(deployment.annotation(ROLLBACK_TO))
}

/// Plans the rollback to a revision. An error ends the sync.
///
/// If the new ReplicaSet must first be created or written, or the Deployment's status, the plan contains only that, and a later plan
/// has the rollback. Upstream tries both in one sync, but its second write of the Deployment is refused because of the first.
pub(crate) fn plan(builder: &mut PlanBuilder<'_>, requested: i64) -> Result<(), String> {
    lookup::create_if_missing(builder)?;
    if builder.has_early_writes() {
        return Ok(());
    }
    let deployment = builder.deployment;
    let (revision, missing) = match requested {
        0 => (
            revision::second_highest(builder.all_sets()),
            "Unable to find last revision.",
        ),
        revision => (revision, "Unable to find the revision to rollback to."),
    };
    let found = builder
        .all_sets()
        .find(|set| revision::of(set) == Some(revision))
        .filter(|_| requested != 0 || revision != 0);
    let patch = match found {
        None => {
            // The last revision was found, but no set has it: this cannot happen.
            give_up(builder, "DeploymentRollbackRevisionNotFound", missing.to_owned())
        }
        Some(set) if template::equal(&set.template, &deployment.template) => {
            let message = format!(
                "The rollback revision contains the same template as current deployment {:?}",
                deployment.name
            );
            give_up(builder, "DeploymentRollbackTemplateUnchanged", message)
        }
        Some(set) => restore(deployment, set, revision),
    };
    builder.rollback = Some(patch);
    Ok(())
}

/// Emits a warning, and removes the request.
fn give_up(builder: &mut PlanBuilder<'_>, reason: &'static str, message: String) -> Action {
    builder.events.push(Action {
        reason: Reason::RollbackRequested,
        message: "a rollback was requested that is not possible".to_owned(),
        kind: ActionKind::EmitEvent {
            event_type: EventType::Warning,
            reason,
            message,
        },
    });
    let because = format!("annotation {ROLLBACK_TO} is removed, because the request is answered");
    let annotations = BTreeMap::from([(ROLLBACK_TO, Value::Null)]);
    patch(builder.deployment, because, &annotations, None, None)
}

/// Gives the Deployment the template and the annotations of an old set, and removes the request.
fn restore(deployment: &Deployment, set: &Set, revision: i64) -> Action {
    let mut template = object(set.template.to_value());
    if template
        .get("metadata")
        .is_some_and(|metadata| metadata["labels"].is_object())
    {
        member(member(&mut template, "metadata"), "labels").remove(HASH_LABEL);
    }
    let event = Event {
        event_type: EventType::Normal,
        reason: "DeploymentRollback",
        message: format!(
            "Rolled back deployment {:?} to revision {revision}",
            deployment.name
        ),
    };
    let because = format!(
        "annotation {ROLLBACK_TO} asks for the template of revision {revision}, which {} has",
        set.name
    );
    let change = difference(&deployment.template.to_value(), &template.into());
    patch(
        deployment,
        because,
        &restored_annotations(deployment, set),
        change,
        Some(event),
    )
}

/// The changes that give the Deployment the copied annotations of a set. The others stay.
fn restored_annotations<'a>(deployment: &'a Deployment, set: &'a Set) -> BTreeMap<&'a str, Value> {
    let of = |list: &'a [(String, String)]| {
        list.iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .filter(|(key, _)| is_copied(key))
    };
    let gone = of(&deployment.annotations).map(|(key, _)| (key, Value::Null));
    let restored = of(&set.annotations).map(|(key, value)| (key, json!(value)));
    let mut changes: BTreeMap<_, _> = gone.chain(restored).collect();
    changes.retain(|key, value| deployment.annotation(key).map_or(Value::Null, Value::from) != *value);
    changes.insert(ROLLBACK_TO, Value::Null);
    changes
}

fn patch(
    deployment: &Deployment,
    because: String,
    annotations: &BTreeMap<&str, Value>,
    template: Option<Value>,
    event: Option<Event>,
) -> Action {
    let mut metadata = set_write::metadata(&deployment.uid, &deployment.resource_version);
    metadata.insert("annotations".to_owned(), json!(annotations));
    let mut patch = json!({"metadata": metadata});
    if let Some(template) = template {
        patch["spec"] = json!({"template": template});
    }
    Action {
        reason: Reason::RollbackRequested,
        message: because,
        kind: ActionKind::PatchObject {
            resource: Resource::Deployments,
            object: ObjectRef {
                name: deployment.name.clone(),
                uid: deployment.uid.clone(),
            },
            subresource: Subresource::None,
            patch_type: PatchType::Merge,
            patch: canonical::to_bytes(&patch),
            failure_pointer: String::new(),
            claim: None,
            events: Box::new(WriteEvents {
                success: event.into_iter().collect(),
                failure: None,
            }),
        },
    }
}

/// The JSON merge patch from one value to another; `None` if they are equal.
pub(crate) fn difference(from: &Value, to: &Value) -> Option<Value> {
    if from == to {
        return None;
    }
    let (Value::Object(from), Value::Object(to)) = (from, to) else {
        return Some(to.clone());
    };
    let mut patch = Map::new();
    for key in from.keys().filter(|key| !to.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, to) in to {
        match from.get(key) {
            Some(from) => patch.extend(difference(from, to).map(|change| (key.clone(), change))),
            None => {
                patch.insert(key.clone(), to.clone());
            }
        }
    }
    Some(patch.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_49_the_merge_patch_leads_from_one_template_to_the_other() {
        // (from, to, patch)
        let table = [
            (json!({"a": 1}), json!({"a": 1}), None),
            (json!({"a": 1}), json!({"a": 2}), Some(json!({"a": 2}))),
            (json!({"a": 1, "b": 1}), json!({"a": 1}), Some(json!({"b": null}))),
            (json!({"a": 1}), json!({"a": 1, "b": {}}), Some(json!({"b": {}}))),
            (
                json!({"a": {"b": 1, "c": 2}}),
                json!({"a": {"c": 3}}),
                Some(json!({"a": {"b": null, "c": 3}})),
            ),
            (json!({"a": [1, 2]}), json!({"a": [2]}), Some(json!({"a": [2]}))),
            (
                json!({"a": [1]}),
                json!({"a": {"b": 1}}),
                Some(json!({"a": {"b": 1}})),
            ),
            (json!(null), json!({"a": 1}), Some(json!({"a": 1}))),
        ];
        for (from, to, expected) in table {
            assert_eq!(difference(&from, &to), expected, "{from} to {to}");
        }
    }
}
