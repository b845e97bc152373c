//! Checks the patches of objects of any resource: of objects that the workload controls, and of the workload itself.

use nodewise_proto::v1::{Claim, PatchObject, PatchType};
use serde_json::{Map, Value};

use super::json::Lazy;
use super::kinds::Write;
use super::patches::{Ownership, are_objects, check_owner, members, only, parse_patch};
use super::{RequestContext, rollback};

/// The start of the annotations that a plan may set besides those of the workload.
const OWN_ANNOTATIONS: &str = "deployment.kubernetes.io/";
/// The metadata in a patch of an object that the workload controls.
const METADATA: &[&str] = &["uid", "resourceVersion", "annotations"];

/// Checks a patch. `object` is the workload.
pub(super) fn check(
    write: Write,
    patch: &PatchObject,
    object: &Lazy<'_>,
    request: &RequestContext<'_>,
) -> Result<(), String> {
    let reference = patch.object.as_ref().ok_or("it names no object")?;
    let body = parse_patch(&patch.patch, reference)?;
    let metadata = members(&body, "metadata");
    if metadata
        .get("resourceVersion")
        .is_some_and(|version| !version.is_string())
    {
        return Err("its patch sets metadata.resourceVersion to what is no string".to_owned());
    }
    if Claim::try_from(patch.claim).is_err() {
        return Err(format!("its claim {} is unknown", patch.claim));
    }
    let is_claim = write == Write::Patch && patch.claim() != Claim::Unspecified;
    let expected = if is_claim {
        PatchType::StrategicMerge
    } else {
        PatchType::Merge
    };
    if patch.patch_type() != expected {
        let found = patch.patch_type().as_str_name();
        return Err(format!(
            "its patch_type is {found}, where {} belongs",
            expected.as_str_name()
        ));
    }
    if !is_claim && patch.claim() != Claim::Unspecified {
        return Err("it claims the workload itself".to_owned());
    }
    check_failure_pointer(write, patch, &body)?;
    match write {
        Write::Status => check_status(&body, request),
        Write::Rollback => rollback::check_patch(&body, object.read()?, request),
        _ if is_claim => check_claim(patch.claim(), &body, request),
        _ => check_size(&body, object.read()?),
    }
}

/// The error of another action may be written into a status only.
fn check_failure_pointer(write: Write, patch: &PatchObject, body: &Map<String, Value>) -> Result<(), String> {
    let pointer = &patch.failure_pointer;
    let is_string = || {
        let inner = pointer.strip_prefix("/status");
        let status = inner.and_then(|inner| body.get("status")?.pointer(inner));
        status.is_some_and(Value::is_string)
    };
    if pointer.is_empty() || write == Write::Status && is_string() {
        return Ok(());
    }
    Err(format!(
        "its failure_pointer {pointer:?} leads to no string of a status"
    ))
}

fn check_claim(claim: Claim, body: &Map<String, Value>, request: &RequestContext<'_>) -> Result<(), String> {
    only(body, &["metadata"], "")?;
    let mut metadata = members(body, "metadata").clone();
    metadata.remove("resourceVersion");
    let ownership = if claim == Claim::Adopt {
        Ownership::Taken
    } else {
        Ownership::GivenUp
    };
    check_owner(&metadata, request.workload, ownership)
}

/// Checks a change of the size, or of what else follows the workload.
fn check_size(body: &Map<String, Value>, object: &Value) -> Result<(), String> {
    only(body, &["metadata", "spec"], "")?;
    only(members(body, "metadata"), METADATA, "metadata.")?;
    check_annotations(members(body, "metadata").get("annotations"), object, "its patch")?;
    are_objects(body)?;
    let spec = members(body, "spec");
    only(spec, &["replicas", "minReadySeconds"], "spec.")?;
    if let Some(replicas) = spec.get("replicas") {
        check_replicas(replicas, "its patch")?;
    }
    match spec.get("minReadySeconds") {
        Some(seconds) => check_min_ready_seconds(seconds, object, "its patch"),
        None => Ok(()),
    }
}

fn check_status(body: &Map<String, Value>, request: &RequestContext<'_>) -> Result<(), String> {
    only(body, &["metadata", "status"], "")?;
    let metadata = members(body, "metadata");
    only(metadata, request.rules.status_metadata, "metadata.")?;
    check_annotations(metadata.get("annotations"), &Value::Null, "its patch")?;
    are_objects(body)
}

/// Checks annotations: some of the workload's, and such as only its controller sets.
pub(super) fn check_annotations(
    annotations: Option<&Value>,
    object: &Value,
    what: &str,
) -> Result<(), String> {
    let Some(annotations) = annotations else {
        return Ok(());
    };
    // A null in a patch would remove all annotations.
    let Some(annotations) = annotations.as_object() else {
        return Err(format!("{what} has annotations that are no object"));
    };
    let own = &object["metadata"]["annotations"];
    let is_right = |key: &str, value: &Value| {
        value.is_string() && (key.starts_with(OWN_ANNOTATIONS) || own.get(key) == Some(value))
    };
    match annotations.iter().find(|(key, value)| !is_right(key, value)) {
        Some((key, value)) => Err(format!(
            "{what} sets annotation {key} to {value}, which the workload has not"
        )),
        None => Ok(()),
    }
}

/// Checks a number of pods, and returns it.
pub(super) fn check_replicas(replicas: &Value, what: &str) -> Result<i64, String> {
    let is_count = |count: &i64| i32::try_from(*count).is_ok_and(|count| count >= 0);
    let count = replicas.as_i64().filter(is_count);
    count.ok_or_else(|| format!("{what} sets spec.replicas to {replicas}"))
}

/// Checks that minReadySeconds is the workload's. An absent value is 0.
pub(super) fn check_min_ready_seconds(seconds: &Value, object: &Value, what: &str) -> Result<(), String> {
    let or_zero = |seconds: &Value| {
        if seconds.is_null() {
            0.into()
        } else {
            seconds.clone()
        }
    };
    if or_zero(seconds) == or_zero(&object["spec"]["minReadySeconds"]) {
        return Ok(());
    }
    Err(format!(
        "{what} sets spec.minReadySeconds to {seconds}, which is not the workload's"
    ))
}
