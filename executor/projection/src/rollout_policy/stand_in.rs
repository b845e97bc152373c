//! What is kept or sent in the place of a policy: an object that says which workloads it targets and what it has decided.
//!
//! Of a policy that is too much to keep, no version of the service can use the spec. So it holds the rollouts of its targets (L-2). Of
//! a policy that does not count for a workload, the service needs all but the rest of the spec.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use crate::parse::parse_text;

/// The object that is kept.
#[derive(Debug)]
pub(super) struct StandIn {
    pub(super) object: Bytes,
    /// The targets are in the object.
    pub(super) has_targets: bool,
    /// The whole status is in the object.
    pub(super) has_status: bool,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Object<'a> {
    api_version: Option<String>,
    metadata: Meta,
    #[serde(borrow)]
    spec: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
}

/// The metadata that is kept besides the identity.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Meta {
    generation: Option<i64>,
    creation_timestamp: Option<String>,
    deletion_timestamp: Option<String>,
}

#[derive(Deserialize)]
struct Spec<'a> {
    #[serde(borrow)]
    targets: &'a RawValue,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    targets: Vec<Target>,
}

/// What decides which revision a pod gets that is needed.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Target {
    name: String,
    uid: String,
    update_revision: Value,
    stable_revision: Value,
    rejected_revision: Value,
}

/// Writes the stand-in of an object. `identity` has the metadata that must be there, and `why` says why the object is not kept. The
/// targets have at most this many bytes, and the status as well.
pub(super) fn write(object: &str, identity: &Value, why: &str, most: usize) -> StandIn {
    let Object {
        metadata,
        spec,
        status,
        ..
    } = parse_text(object).unwrap_or_default();
    let fits = |text: &str| text.len() <= most;
    let targets = spec.and_then(|spec| parse_text::<Spec<'_>>(spec.get()).ok());
    let targets = targets.map(|spec| spec.targets.get()).filter(|text| fits(text));
    let targets = targets.and_then(|targets| parse_text::<Value>(targets).ok());
    let status = status.map_or("{}", RawValue::get);
    let has_status = fits(status);
    let status = if has_status {
        parse_text(status).ok()
    } else {
        Some(decisions(status)).filter(|status| fits(&status.to_string()))
    };
    let has_targets = targets.is_some();
    // The reason stands where a list belongs: the service quotes it when it says why it cannot use the policy.
    let mut stand_in =
        json!({"metadata": identity, "spec": {"stages": why}, "status": status.unwrap_or(json!({}))});
    metadata.add_to(&mut stand_in["metadata"]);
    if let Some(targets) = targets {
        stand_in["spec"]["targets"] = targets;
    }
    StandIn {
        object: stand_in.to_string().into(),
        has_targets,
        has_status,
    }
}

/// Writes what is sent of a policy that does not count for a workload. `None` if it cannot be written.
///
/// Its spec can be read, so that the service does not call the policy invalid. It is paused: should a service take it for the policy
/// that counts after all, nothing is rolled out without the stages.
pub(super) fn not_counting(object: &str, identity: &Value) -> Option<Bytes> {
    let Object {
        api_version,
        metadata,
        spec,
        status,
    } = parse_text(object).ok()?;
    let targets = parse_text::<Spec<'_>>(spec?.get()).ok()?.targets.get();
    let targets: Value = parse_text(targets).ok()?;
    let status: Option<Value> = status.and_then(|status| parse_text(status.get()).ok());
    let mut stand_in = json!({"metadata": identity, "spec": {"targets": targets, "paused": true}});
    metadata.add_to(&mut stand_in["metadata"]);
    if let Some(version) = api_version {
        stand_in["apiVersion"] = version.into();
    }
    if let Some(status) = status {
        stand_in["status"] = status;
    }
    Some(stand_in.to_string().into())
}

impl Meta {
    fn add_to(self, metadata: &mut Value) {
        let members = [
            ("generation", self.generation.map(Value::from)),
            ("creationTimestamp", self.creation_timestamp.map(Value::from)),
            ("deletionTimestamp", self.deletion_timestamp.map(Value::from)),
        ];
        for (name, value) in members {
            if let Some(value) = value {
                metadata[name] = value;
            }
        }
    }
}

/// The part of a status without which a pod could get a revision that it must not get.
fn decisions(status: &str) -> Value {
    let Status { targets } = parse_text(status).unwrap_or_default();
    let decided = targets
        .into_iter()
        .filter(|target| target.stable_revision.is_object() || target.rejected_revision.is_object());
    let targets: Vec<_> = decided
        .map(|target| {
            let mut kept = json!({"name": target.name, "uid": target.uid});
            for (name, revision) in [
                ("updateRevision", target.update_revision),
                ("stableRevision", target.stable_revision),
                ("rejectedRevision", target.rejected_revision),
            ] {
                if revision.is_object() {
                    kept[name] = revision;
                }
            }
            kept
        })
        .collect();
    json!({ "targets": targets })
}
