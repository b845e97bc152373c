//! Checks the patch by which a plan restores an earlier template: it must be the template of an object that the workload
//! controls.

use nodewise_proto::v1::{self, action::Kind};
use nodewise_proto::workload::TEMPLATE_HASH_LABEL;
use serde_json::{Map, Value};

use super::json::parse;
use super::kinds::{self, Write};
use super::owned::{self, Owned};
use super::patches::{are_objects, members, only};
use super::{Caches, Checked, RequestContext, Violation, templates};

/// The annotation by which a user asks for an earlier template. A plan removes it in any case (P-50).
const REQUEST: &str = "deprecated.deployment.rollback.to";

/// Checks the form of the patch, and that a user has asked for it. `object` is the workload.
pub(super) fn check_patch(
    body: &Map<String, Value>,
    object: &Value,
    request: &RequestContext<'_>,
) -> Result<(), String> {
    if object["metadata"]["annotations"].get(REQUEST).is_none() {
        return Err(format!(
            "it patches the workload, which has no annotation {REQUEST}"
        ));
    }
    only(body, &["metadata", "spec"], "")?;
    are_objects(body)?;
    let (metadata, spec) = (members(body, "metadata"), members(body, "spec"));
    only(metadata, &["uid", "resourceVersion", "annotations"], "metadata.")?;
    only(spec, &["template"], "spec.")?;
    // Applied to another version, the patch could result in another template.
    if metadata.get("resourceVersion").and_then(Value::as_str) != Some(&request.workload.resource_version) {
        return Err(format!(
            "its patch does not carry the resourceVersion {:?}",
            request.workload.resource_version
        ));
    }
    let annotations = metadata.get("annotations");
    if annotations.is_some_and(|annotations| !annotations.is_object()) {
        return Err("its patch sets metadata.annotations to what is no object".to_owned());
    }
    let is_removed = |value: &Value| value.is_null();
    let mut annotations = members(metadata, "annotations").iter();
    let other = annotations.find(|(key, value)| spec.is_empty() && (*key != REQUEST || !is_removed(value)));
    match other {
        Some((key, _)) => Err(format!(
            "its patch restores no template, and changes annotation {key}"
        )),
        None => Ok(()),
    }
}

/// Checks that the restored template is that of an object that the workload controls, or that the plan adopts. Such an
/// object may have changed since the snapshot.
pub(super) fn check(
    plan: &v1::Plan,
    request: &RequestContext<'_>,
    caches: &impl Caches,
    checked: &mut Checked<'_>,
) -> Result<(), Violation> {
    for (action, kind, write) in kinds::writes(plan, request) {
        let (Write::Rollback, Kind::PatchObject(patch)) = (write, kind) else {
            continue;
        };
        let violation = |what| Violation::of(action, what);
        let patch = parse(&patch.patch, "its patch").map_err(violation)?;
        if patch.get("spec").is_none() {
            continue;
        }
        let object = parse(&request.workload.object, "the workload").map_err(violation)?;
        let restored = merged(object, &patch);
        let template = &restored["spec"]["template"];
        let has_hash = template["metadata"]["labels"].get(TEMPLATE_HASH_LABEL).is_some();
        let template = templates::without_hash(template);
        let annotations = &patch["metadata"]["annotations"];
        let owned = owned::objects(plan, request, caches);
        let is_restored = owned.iter().map(Owned::object).any(|object| {
            !has_hash
                && templates::without_hash(&object["spec"]["template"]) == template
                && are_of(annotations, &object["metadata"]["annotations"])
        });
        if !is_restored {
            let changed = owned::last_change(&owned, request, caches);
            let kind = request.controls.kind;
            let what = format!("it restores a template and annotations that no {kind} of the workload has");
            checked.leave_out(action, request, changed, what)?;
        }
    }
    Ok(())
}

/// Whether every annotation that a patch sets is one of these.
fn are_of(set: &Value, annotations: &Value) -> bool {
    let set = set.as_object().into_iter().flatten();
    let mut set = set.filter(|(_, value)| !value.is_null());
    set.all(|(key, value)| annotations.get(key) == Some(value))
}

/// An object after a JSON merge patch (RFC 7386).
fn merged(object: Value, patch: &Value) -> Value {
    let Value::Object(changes) = patch else {
        return patch.clone();
    };
    let mut members = match object {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    for (key, change) in changes {
        let before = members.remove(key).unwrap_or_default();
        if !change.is_null() {
            members.insert(key.clone(), merged(before, change));
        }
    }
    Value::Object(members)
}
