//! The effects of a sync of a ReplicaSet or a Deployment.
//!
//! What counts of workloads is their content after the sync, not the number of writes: upstream writes a Deployment's
//! status, and one of its ReplicaSets, several times in one sync, and Nodewise once (P-3).

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Map, Value};

use super::{Effects, Field, Sending, parse, text};
use crate::case::{Case, Kind};
use crate::outcome::{Call, Outcome, Stored};
use crate::workloads::stripped;

/// Upstream's rate limiter gives a key whose last sync succeeded this delay.
const RATE_LIMITED: f64 = 0.005;

/// Members that every write changes, or that only one side has.
const SILENT: [&str; 6] = [
    "creationTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "uid",
    // Upstream's later writes of a set that it has adopted or released do not have the change. A real apiserver refuses
    // them. The claims themselves are compared.
    "ownerReferences",
];

/// The effects of `outcome`, a sync of `case` that did not panic.
pub(super) fn effects(case: &Case, outcome: &Outcome, sending: Sending) -> Result<Effects> {
    let mut effects = Effects::default();
    let is_rate_limited = outcome.queue.iter().any(|asked| asked == "rate limited");
    let is_retried = outcome.error.is_some() && is_rate_limited;
    if is_retried {
        effects.say(Field::Error, "the sync ends with an error");
    }
    if sending == Sending::AsIs {
        effects.say(Field::Order, order(case, outcome).join(", "));
    }
    for call in &outcome.calls {
        take_call(&mut effects, case, call, sending)?;
    }
    take_status(&mut effects, case, &outcome.calls);
    for stored in &outcome.stored {
        take_stored(&mut effects, &outcome.calls, stored);
    }
    let names = match sending {
        Sending::AsIs => BTreeMap::new(),
        Sending::Normalized => text::created_names(case, outcome)?,
    };
    for event in &outcome.events {
        effects.say(Field::Events, text::event_text(event, &names));
    }
    if outcome.error.is_none() && !wakes_itself(case, &outcome.calls) {
        match outcome.requeue.first() {
            Some(first) if (*first - RATE_LIMITED).abs() > f64::EPSILON => {
                effects.say(Field::Requeue, format!("after {first:.9} s"));
            }
            Some(_) => effects.say(Field::Requeue, "rate limited"),
            None if is_rate_limited => effects.say(Field::Requeue, "rate limited"),
            None => {}
        }
    }
    if case.kind == Kind::ReplicaSet {
        effects.take_expectations(case, outcome);
    }
    Ok(effects)
}

/// Whether the sync wrote the status of a Deployment. The event of that write wakes the key, so a timer does not matter
/// (P-62).
fn wakes_itself(case: &Case, calls: &[Call]) -> bool {
    case.kind == Kind::Deployment
        && calls
            .iter()
            .any(|call| call.op == "update-status" && call.code < 400)
}

/// The kinds of writes in the order of their first occurrence. Of a Deployment without the status, which upstream writes
/// several times, and without creates that found the name taken, which change nothing.
fn order<'a>(case: &Case, outcome: &'a Outcome) -> Vec<&'a str> {
    let mut kinds = text::order(&outcome.sequence);
    if case.kind == Kind::Deployment {
        let creates = outcome
            .calls
            .iter()
            .any(|call| call.op == "create-replicaset" && !is_taken(call));
        kinds.retain(|kind| *kind != "update-status" && (creates || *kind != "create-replicaset"));
    }
    kinds
}

fn is_taken(call: &Call) -> bool {
    call.op == "create-replicaset" && call.code == 409
}

fn take_call(effects: &mut Effects, case: &Case, call: &Call, sending: Sending) -> Result<()> {
    let Call { op, name, body, code } = call;
    match op.as_str() {
        "adopt-pod" | "release-pod" | "adopt-replicaset" | "release-replicaset" => {
            let body: Value = parse(call)?;
            effects.say_once(Field::Claims, format!("{op} {name} ({code}) {body}"));
        }
        "create-pod" => {
            let manifest = text::manifest_text(case, sending, parse(call)?)?;
            effects.say(Field::PodCreates, format!("{name} ({code}) {manifest}"));
        }
        "delete-pod" => {
            let preconditions = text::preconditions(sending, call)?;
            effects.say(Field::PodDeletes, format!("{name} ({code}){preconditions}"));
        }
        "create-replicaset" if is_taken(call) => {}
        "create-replicaset" => {
            let manifest = stripped(&parse(call)?);
            effects.say(Field::SetCreates, format!("{name} ({code}) {manifest}"));
        }
        "update-replicaset" | "update-deployment" if *code >= 400 => {
            effects.say_once(Field::SetRefusals, format!("{name} ({code})"));
        }
        // What succeeded is in `stored`.
        "update-replicaset" | "update-deployment" | "update-status" => {}
        "delete-replicaset" => effects.say(Field::SetDeletes, format!("{name} ({code})")),
        other => anyhow::bail!("an unknown kind of call: {other} {name}: {body}"),
    }
    Ok(())
}

/// A status that could not be written. The controller of ReplicaSets tries a second time.
fn take_status(effects: &mut Effects, case: &Case, calls: &[Call]) {
    let mut writes = calls.iter().filter(|call| call.op == "update-status").peekable();
    let is_refused = |call: &Call| call.code >= 400;
    let refused = match case.kind {
        Kind::Deployment => writes.any(is_refused),
        _ => writes.peek().is_some() && writes.all(is_refused),
    };
    if refused {
        effects.say(Field::Status, "it could not be written");
    }
}

fn take_stored(effects: &mut Effects, calls: &[Call], stored: &Stored) {
    let Stored {
        resource,
        name,
        changes,
    } = stored;
    let is_created = calls
        .iter()
        .any(|call| call.op == "create-replicaset" && call.name == *name && call.code < 400);
    if changes.is_null() || resource == "replicasets" && is_created {
        return;
    }
    let changes = normal("", changes);
    if changes.as_object().is_some_and(|changes| !changes.is_empty()) {
        effects.say(Field::Stored, format!("{resource}/{name}: {changes}"));
    }
}

/// A merge patch without what every write changes, with null for what equals a missing member.
fn normal(holder: &str, patch: &Value) -> Value {
    let Value::Object(members) = patch else {
        return stripped(patch);
    };
    let members = members
        .iter()
        .filter(|(name, _)| !SILENT.contains(&name.as_str()))
        // A rollback removes these structs also if they are empty, which is no change of their content.
        .filter(|(name, value)| {
            !value.is_null() || !["affinity", "securityContext"].contains(&name.as_str())
        });
    let members = members.map(|(name, value)| {
        let is_count = matches!(name.as_str(), "collisionCount" | "terminatingReplicas")
            || holder == "spec" && name == "replicas";
        let value = match value {
            // A size is never removed.
            Value::Null if holder == "spec" && name == "replicas" => 0.into(),
            Value::Number(number) if number.as_i64() == Some(0) && !is_count => Value::Null,
            Value::Array(items) if items.is_empty() => Value::Null,
            Value::Object(_) => normal(name, value),
            other => stripped(other),
        };
        (name.clone(), value)
    });
    let changed: Map<_, _> = members
        .filter(|(_, value)| value.as_object().is_none_or(|changes| !changes.is_empty()))
        .collect();
    changed.into()
}
