//! Checks the `ReplicaSet`s that the plan of a `Deployment` creates: of its template, with the label of the template's hash.

use nodewise_projection::Workload;
use nodewise_proto::v1;
use nodewise_proto::workload::TEMPLATE_HASH_LABEL;
use serde_json::{Map, Value};

use super::json::parse_written;
use super::manifests::{check_metadata, is, only};
use super::object_patches::{check_annotations, check_min_ready_seconds, check_replicas};
use super::{names, sizes, templates};

/// Checks a manifest. `object` is the workload.
pub(super) fn check(create: &v1::CreateObject, object: &Value, workload: &Workload) -> Result<(), String> {
    let what = "its manifest";
    let set = parse_written(&create.manifest, what)?;
    only(&set, &["apiVersion", "kind", "metadata", "spec"], what, "")?;
    is(&set, "apiVersion", &["apps/v1"], what)?;
    is(&set, "kind", &["ReplicaSet"], what)?;
    let (metadata, spec) = (&set["metadata"], &set["spec"]);
    let allowed = ["annotations", "labels", "name", "namespace", "ownerReferences"];
    only(metadata, &allowed, what, "metadata.")?;
    check_metadata(metadata, workload, what)?;
    check_annotations(metadata.get("annotations"), object, what)?;
    let hash = names::template_hash(&create.name, &workload.key.name);
    let Some(hash) = hash.filter(|_| metadata["name"] == *create.name) else {
        return Err(format!(
            "the name {:?} of the ReplicaSet is not the one of {what}, or not derived from the workload's name {:?}",
            create.name, &*workload.key.name
        ));
    };
    let allowed = ["minReadySeconds", "replicas", "selector", "template"];
    only(spec, &allowed, what, "spec.")?;
    let (size, most) = (check_replicas(&spec["replicas"], what)?, sizes::most(object));
    if size > most {
        return Err(format!(
            "{what} sets spec.replicas to {size}, and {most} is the most"
        ));
    }
    check_min_ready_seconds(&spec["minReadySeconds"], object, what)?;
    let (own, own_selector) = (&object["spec"]["template"], &object["spec"]["selector"]);
    let selector = &spec["selector"];
    only(
        selector,
        &["matchExpressions", "matchLabels"],
        what,
        "spec.selector.",
    )?;
    let own_labels = &own["metadata"]["labels"];
    for (labels, own, of) in [
        (&metadata["labels"], own_labels, "labels"),
        (
            &spec["template"]["metadata"]["labels"],
            own_labels,
            "labels in its template",
        ),
        (
            &selector["matchLabels"],
            &own_selector["matchLabels"],
            "labels in its selector",
        ),
    ] {
        check_labels(labels, own, hash).map_err(|wrong| format!("{what} has {wrong} {of}"))?;
    }
    if selector["matchExpressions"] != own_selector["matchExpressions"] {
        return Err(format!("{what} has another selector than the workload"));
    }
    if templates::without_hash(&spec["template"]) != templates::without_hash(own) {
        return Err(format!("{what} has another template than the workload"));
    }
    Ok(())
}

/// Checks that labels are the workload's and that of the hash.
fn check_labels(labels: &Value, own: &Value, hash: &str) -> Result<(), &'static str> {
    let of = |labels: &Value| labels.as_object().cloned().unwrap_or_else(Map::new);
    let (mut labels, mut own) = (of(labels), of(own));
    own.remove(TEMPLATE_HASH_LABEL);
    if labels
        .remove(TEMPLATE_HASH_LABEL)
        .is_none_or(|found| found != hash)
    {
        return Err("not the hash of its name among the");
    }
    if labels == own {
        Ok(())
    } else {
        Err("other than the workload's")
    }
}
