//! Writes the manifest of the pods to create, from the template as served, so that pods get fields that this version does not know.

use crate::core::{
    claims::owner_reference,
    json::{Json, Object, Part, rewrite, write_list, write_string},
    owner::Owner,
};

/// The labels of a template, as served.
pub(crate) fn labels(template: &Json) -> Part<'_> {
    template.part().object("metadata").object("labels")
}

/// Whether a template has labels.
pub(crate) fn has_labels(template: &Json) -> bool {
    labels(template).members().next().is_some()
}

/// Writes the labels of the template with these labels set. `set` must be sorted by key; a label without a value keeps the
/// template's value.
pub(crate) fn write_labels(out: &mut String, template: &Json, set: &[(&str, Option<&str>)]) {
    let keys: Vec<_> = set.iter().map(|(key, _)| *key).collect();
    rewrite(out, labels(template), &keys, |written, key, old| {
        let new = set.iter().find(|(label, _)| *label == key);
        match (new.and_then(|(_, value)| *value), old) {
            (Some(value), _) => write_string(written.member(key), value),
            (None, Some(old)) => written.member(key).push_str(old.text()),
            (None, None) => {}
        }
    });
}

/// Writes the owner references of objects that the workload creates.
pub(crate) fn write_owner(out: &mut String, owner: Owner<'_>) {
    write_list(out, [owner_reference(owner)], |out, owner| {
        out.push_str(Json::from(owner).as_str());
    });
}

/// The metadata of a pod to create.
pub(crate) struct PodMetadata<'a> {
    /// The template. Only labels, annotations and finalizers are copied from it.
    pub(crate) template: &'a Json,
    /// The controller of the pod.
    pub(crate) owner: Owner<'a>,
    /// metadata.generateName, if the apiserver names the pod.
    pub(crate) generate_name: Option<&'a str>,
    /// Labels to set, as for [`write_labels`].
    pub(crate) labels: &'a [(&'a str, Option<&'a str>)],
}

/// A v1 Pod as JSON, without its name. `write_spec` writes the spec; it gets the template's, or an empty object.
pub(crate) fn pod(metadata: &PodMetadata<'_>, write_spec: impl FnOnce(&mut String, Part<'_>)) -> Vec<u8> {
    let template = metadata.template;
    let mut out = String::with_capacity(template.as_str().len());
    let mut pod = Object::begin(&mut out);
    pod.member("apiVersion").push_str(r#""v1""#);
    pod.member("kind").push_str(r#""Pod""#);
    write_metadata(pod.member("metadata"), metadata);
    write_spec(pod.member("spec"), template.part().object("spec"));
    pod.end();
    out.into_bytes()
}

fn write_metadata(out: &mut String, of: &PodMetadata<'_>) {
    let template = of.template.part().object("metadata");
    let mut metadata = Object::begin(out);
    for key in ["annotations", "finalizers"] {
        if let Some(value) = template.get(key).filter(|value| !value.is_null()) {
            metadata.member(key).push_str(value.text());
        }
    }
    if let Some(prefix) = of.generate_name {
        write_string(metadata.member("generateName"), prefix);
    }
    write_labels(metadata.member("labels"), of.template, of.labels);
    write_owner(metadata.member("ownerReferences"), of.owner);
    metadata.end();
}
