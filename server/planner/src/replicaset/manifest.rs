//! The manifest of the pods that a plan creates.

use crate::{
    core::{
        names,
        plan::PodManifest,
        pod_template::{self, PodMetadata},
    },
    replicaset::workload::ReplicaSet,
};

/// The manifest for all pods that a plan creates. With `generated` the apiserver names some of them.
pub(crate) fn pod_manifest(rs: &ReplicaSet, generated: bool) -> PodManifest {
    let prefix = name_prefix(&rs.name);
    let metadata = PodMetadata {
        template: &rs.template,
        owner: rs.owner(),
        generate_name: generated.then_some(prefix.as_str()),
        labels: &[],
    };
    PodManifest {
        json: pod_template::pod(&metadata, |out, spec| out.push_str(spec.text())),
        node_name_pointers: Vec::new(),
    }
}

/// The prefix of generated names: the name and a dash, or the name alone if the apiserver would not accept the dash.
fn name_prefix(name: &str) -> String {
    let dashed = format!("{name}-");
    // Upstream checks the prefix with the last two characters replaced by a letter.
    let end = name.len().saturating_sub(1);
    let is_valid = name
        .get(..end)
        .is_some_and(|start| names::is_subdomain(&format!("{start}a")));
    if is_valid { dashed } else { name.to_owned() }
}
