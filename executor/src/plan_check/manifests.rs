//! Checks the objects that a plan creates: pods of the workload's template or of one of its revisions, and revisions of
//! its template.

use nodewise_projection::Workload;
use nodewise_proto::v1::{self, action::Kind};
use serde_json::{Map, Value, json};

use super::templates::{self, is_owner, labels, normal};
use super::{
    Caches, RequestContext, Violation, bounds,
    json::{parse, parse_written},
    known::DEFAULT_REPLICAS,
    names,
};

/// The JSON pointer to the node name in a pod manifest.
pub(crate) const NODE_NAME_POINTER: &str = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution\
                         /nodeSelectorTerms/0/matchFields/0/values/0";

/// Checks everything that a plan creates.
pub(super) fn check(
    plan: &v1::Plan,
    request: &RequestContext<'_>,
    caches: &impl Caches,
) -> Result<(), Violation> {
    let mut workload = None;
    let mut is_manifest_checked = false;
    for action in plan.actions() {
        let violation = |what| Violation::of(action, what);
        if !matches!(action.kind, Some(Kind::CreatePod(_) | Kind::CreateRevision(_))) {
            continue;
        }
        let object = match workload.take() {
            Some(object) => object,
            None => parse(&request.workload.object, "the workload").map_err(violation)?,
        };
        match &action.kind {
            Some(Kind::CreateRevision(create)) => {
                check_revision(create, &object, request.workload).map_err(violation)?;
            }
            Some(Kind::CreatePod(create)) => {
                check_pod_name(&create.pod_name, request).map_err(violation)?;
                if !std::mem::replace(&mut is_manifest_checked, true) {
                    check_pod(plan, &object, request, caches).map_err(violation)?;
                }
            }
            _ => {}
        }
        workload = Some(object);
    }
    Ok(())
}

fn check_pod_name(name: &str, request: &RequestContext<'_>) -> Result<(), String> {
    let workload = &*request.workload.key.name;
    if name.is_empty() || names::is_of_pod(name, workload, request.rules.pod_hash) {
        return Ok(());
    }
    Err(format!(
        "the pod name {name:?} is not derived from the workload's name {workload:?}"
    ))
}

/// Checks the pod manifest of a plan.
fn check_pod(
    plan: &v1::Plan,
    object: &Value,
    request: &RequestContext<'_>,
    caches: &impl Caches,
) -> Result<(), String> {
    let what = "the plan's pod_manifest";
    let pod = parse_written(&plan.pod_manifest, what)?;
    if request.rules.has_nodes {
        check_node_name(plan, &pod)?;
    } else if !plan.node_name_pointers.is_empty() {
        let found = &plan.node_name_pointers;
        return Err(format!("node_name_pointers is {found:?}, where none belongs"));
    }
    only(&pod, &["apiVersion", "kind", "metadata", "spec"], what, "")?;
    is(&pod, "apiVersion", &["v1"], what)?;
    is(&pod, "kind", &["Pod"], what)?;
    let metadata = &pod["metadata"];
    let allowed = [
        "annotations",
        "finalizers",
        "generateName",
        "labels",
        "name",
        "namespace",
        "ownerReferences",
    ];
    only(metadata, &allowed, what, "metadata.")?;
    check_metadata(metadata, request.workload, what)?;
    check_generate_name(&metadata["generateName"], &request.workload.key.name)?;
    let own = &object["spec"]["template"];
    if !request.rules.has_nodes {
        check_number(plan, object)?;
        return check_same(&pod, own)
            .map_err(|difference| format!("{what} has other {difference} than the workload's template"));
    }
    let Err(difference) = check_template(&pod, own) else {
        return Ok(());
    };
    let live = request.live.iter().filter(|revision| {
        let controller = revision.controller.as_ref();
        controller.is_some_and(|controller| *controller.uid == *request.workload.uid)
    });
    let revisions = caches
        .own_revisions()
        .into_iter()
        .chain(live.filter_map(|revision| revision.object.clone()));
    for revision in revisions {
        // A revision with unreadable data has no template to compare with.
        let revision = parse(&revision, "a revision").unwrap_or_default();
        let template = &revision["data"]["spec"]["template"];
        if template.is_object() && check_template(&pod, template).is_ok() {
            return Ok(());
        }
    }
    Err(format!(
        "{what} has other {difference} than the workload's template and its revisions"
    ))
}

/// Checks that a plan creates no more pods than there should be.
fn check_number(plan: &v1::Plan, object: &Value) -> Result<(), String> {
    let creates = bounds::created(plan).count();
    let replicas = object["spec"]["replicas"].as_i64().unwrap_or(DEFAULT_REPLICAS);
    if usize::try_from(replicas).is_ok_and(|replicas| creates > replicas) {
        return Err(format!(
            "the plan creates {creates} pods, and spec.replicas is {replicas}"
        ));
    }
    Ok(())
}

/// Checks that the pods can go only to the nodes that their actions name: a single node selector term requires the
/// node's name.
fn check_node_name(plan: &v1::Plan, pod: &Value) -> Result<(), String> {
    if plan.node_name_pointers != [NODE_NAME_POINTER] {
        let found = &plan.node_name_pointers;
        return Err(format!(
            "node_name_pointers is {found:?}, where {NODE_NAME_POINTER:?} alone belongs"
        ));
    }
    let terms = pod.pointer(templates::NODE_TERMS).unwrap_or(&Value::Null);
    let mut required = terms.clone();
    if let Some(name) = required.pointer_mut("/0/matchFields/0/values/0") {
        *name = Value::Null;
    }
    let one_node = json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [null]}]}]);
    if required == one_node {
        return Ok(());
    }
    Err(format!(
        "the plan's pod_manifest requires of its node {terms}, where only the name of its action's node belongs"
    ))
}

/// Checks that a pod is made from a template; the error is the field that differs.
fn check_template(pod: &Value, template: &Value) -> Result<(), &'static str> {
    let (pod, template) = (normal(pod), normal(template));
    let (of_pod, of_template) = (&pod["metadata"], &template["metadata"]);
    if labels(&of_pod["labels"]) != labels(&of_template["labels"]) {
        return Err("labels");
    }
    check_copied(of_pod, of_template, &COPIED)?;
    let (of_pod, of_template) = (&pod["spec"], &template["spec"]);
    if !templates::tolerates_as(&of_pod["tolerations"], &of_template["tolerations"]) {
        return Err("tolerations");
    }
    if templates::for_any_node(of_pod) != templates::for_any_node(of_template) {
        return Err("spec");
    }
    Ok(())
}

/// Checks that a pod for any node is exactly what a template says; the error is the field that differs.
fn check_same(pod: &Value, template: &Value) -> Result<(), &'static str> {
    let (pod, template) = (normal(pod), normal(template));
    check_copied(
        &pod["metadata"],
        &template["metadata"],
        &[("labels", || json!({}))],
    )?;
    check_copied(&pod["metadata"], &template["metadata"], &COPIED)?;
    if pod["spec"] == template["spec"] {
        Ok(())
    } else {
        Err("spec")
    }
}

/// A member of the metadata, and what it is if it is absent.
type Copied = (&'static str, fn() -> Value);

/// The members of the metadata of each template that its pods have unchanged.
const COPIED: [Copied; 2] = [("annotations", || json!({})), ("finalizers", || json!([]))];

fn check_copied(of_pod: &Value, of_template: &Value, members: &[Copied]) -> Result<(), &'static str> {
    for (member, empty) in members {
        let value = |metadata: &Value| match &metadata[member] {
            Value::Null => empty(),
            value => value.clone(),
        };
        if value(of_pod) != value(of_template) {
            return Err(member);
        }
    }
    Ok(())
}

fn check_generate_name(name: &Value, workload: &str) -> Result<(), String> {
    // The name alone, if the dash would make it too long.
    let is_whole = workload.len() >= names::MAX_NAME && *name == workload;
    if name.is_null() || *name == format!("{workload}-") || is_whole {
        return Ok(());
    }
    Err(format!(
        "the plan's pod_manifest has the metadata.generateName {name}, which is not {workload:?} and a dash"
    ))
}

/// Checks a revision that the plan creates.
fn check_revision(create: &v1::CreateRevision, object: &Value, workload: &Workload) -> Result<(), String> {
    let what = "its manifest";
    let revision = parse_written(&create.manifest, what)?;
    only(
        &revision,
        &["apiVersion", "data", "kind", "metadata", "revision"],
        what,
        "",
    )?;
    is(&revision, "apiVersion", &["apps/v1"], what)?;
    is(&revision, "kind", &["ControllerRevision"], what)?;
    if !revision["revision"].is_i64() {
        return Err(format!("{what} has no number at revision"));
    }
    let metadata = &revision["metadata"];
    only(
        metadata,
        &["annotations", "labels", "name", "namespace", "ownerReferences"],
        what,
        "metadata.",
    )?;
    check_metadata(metadata, workload, what)?;
    if metadata["name"] != *create.name || !names::is_of_revision(&create.name, &workload.key.name) {
        return Err(format!(
            "the name {:?} of the revision is not the one of {what}, or not derived from the workload's name {:?}",
            create.name, workload.key.name
        ));
    }
    let own = normal(&object["spec"]["template"]);
    if labels(&metadata["labels"]) != labels(&own["metadata"]["labels"]) {
        return Err(format!("{what} has other labels than the workload's template"));
    }
    let annotations = object["metadata"]["annotations"].as_object();
    let is_own = |(key, value): (&String, &Value)| annotations.and_then(|own| own.get(key)) == Some(value);
    if !metadata["annotations"]
        .as_object()
        .is_none_or(|annotations| annotations.iter().all(is_own))
    {
        return Err(format!("{what} has other annotations than the workload"));
    }
    only(&revision["data"], &["spec"], what, "data.")?;
    only(&revision["data"]["spec"], &["template"], what, "data.spec.")?;
    let mut template = revision["data"]["spec"]["template"].clone();
    let patch = template
        .as_object_mut()
        .and_then(|template| template.remove("$patch"));
    if patch != Some(json!("replace")) || normal(&template) != without_patch(own) {
        return Err(format!("{what} has other data than the workload's template"));
    }
    Ok(())
}

/// The template without a `$patch` member of its own.
fn without_patch(mut template: Value) -> Value {
    if let Some(members) = template.as_object_mut() {
        members.remove("$patch");
    }
    template
}

/// Checks that the object is in the workload's namespace, that the workload is its controller and only owner, and that
/// its hash label is a string.
pub(super) fn check_metadata(metadata: &Value, workload: &Workload, what: &str) -> Result<(), String> {
    let namespace = &metadata["namespace"];
    if !namespace.is_null() && *namespace != *workload.key.namespace {
        return Err(format!(
            "{what} is for namespace {namespace}, and the workload is in {:?}",
            &*workload.key.namespace
        ));
    }
    match metadata["ownerReferences"].as_array().map(Vec::as_slice) {
        Some([owner]) if is_owner(owner, workload) => {}
        _ => {
            return Err(format!(
                "{what} does not have the workload as its controller and only owner"
            ));
        }
    }
    let labels = metadata["labels"].as_object();
    match labels.into_iter().flatten().find(|(_, value)| !value.is_string()) {
        Some((key, value)) => Err(format!("{what} has label {key} {value}, which is no string")),
        None => Ok(()),
    }
}

pub(super) fn is(object: &Value, member: &str, values: &[&str], what: &str) -> Result<(), String> {
    if object[member]
        .as_str()
        .is_some_and(|value| values.contains(&value))
    {
        return Ok(());
    }
    Err(format!(
        "{what} has {member} {}, where {} belongs",
        object[member],
        values.join(" or ")
    ))
}

/// Checks that the object has no other members.
pub(super) fn only(object: &Value, members: &[&str], what: &str, path: &str) -> Result<(), String> {
    let none = Map::new();
    let object = object.as_object().unwrap_or(&none);
    match object.keys().find(|key| !members.contains(&key.as_str())) {
        Some(other) => Err(format!("{what} has {path}{other}, which a plan may not set")),
        None => Ok(()),
    }
}
