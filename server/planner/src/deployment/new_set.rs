//! Name, hash and content of a new ReplicaSet (P-24, P-25).

use serde_json::{Map, Value, json};

use crate::{
    core::{canonical, claims},
    deployment::{
        annotations::{DESIRED_REPLICAS, MAX_REPLICAS, REVISION},
        revision,
        template::HASH_LABEL,
        workload::Deployment,
    },
};

/// The longest object name.
const MAX_NAME: usize = 253;

/// The hash of the Deployment's template (P-24). It depends on the collision count, so that a new name can be chosen.
///
/// Existing ReplicaSets are recognized by their template, so the hash only has to be the same in every version of Nodewise.
pub(crate) fn hash(deployment: &Deployment) -> String {
    let mut hash = 0x811c_9dc5_u32;
    let mut write = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        }
    };
    write(deployment.template.as_str().as_bytes());
    if let Some(count) = deployment.status.collision_count {
        write(&count.to_le_bytes());
        write(&[0; 4]);
    }
    hash.to_string().bytes().map(encoded).collect()
}

/// The character for a decimal digit: one that cannot form a word, and looks like no other.
fn encoded(digit: u8) -> char {
    char::from(b"456789bcdf"[usize::from(digit - b'0')])
}

/// The name of the new ReplicaSet. The Deployment's name is cut so that the result is not too long.
pub(crate) fn name(deployment: &str, hash: &str) -> String {
    let room = MAX_NAME.saturating_sub(hash.len() + 1);
    let end = deployment.floor_char_boundary(room);
    format!("{}-{hash}", &deployment[..end])
}

/// The new ReplicaSet as JSON. `max` is the most replicas of a rollout. A revision that is no more than 0 is left out, as upstream
/// does after an overflow (P-20).
pub(crate) fn manifest(
    deployment: &Deployment,
    (name, hash): (&str, &str),
    revision: i64,
    (size, max): (i32, i32),
) -> Vec<u8> {
    let mut template = object(deployment.template.to_value());
    let metadata = member(&mut template, "metadata");
    let labels = member(metadata, "labels");
    labels.insert(HASH_LABEL.to_owned(), hash.into());
    let labels = labels.clone();
    let mut selector = object(deployment.selector_json.to_value());
    member(&mut selector, "matchLabels").insert(HASH_LABEL.to_owned(), hash.into());
    let mut annotations: Map<String, Value> = revision::copied(deployment)
        .map(|(key, value)| (key.to_owned(), value.into()))
        .collect();
    if revision > 0 {
        annotations.insert(REVISION.to_owned(), revision.to_string().into());
    }
    annotations.insert(
        DESIRED_REPLICAS.to_owned(),
        deployment.replicas.to_string().into(),
    );
    annotations.insert(MAX_REPLICAS.to_owned(), max.to_string().into());
    canonical::to_bytes(&json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "namespace": deployment.namespace,
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [claims::owner_reference(deployment.owner())],
        },
        "spec": {
            "replicas": size,
            "minReadySeconds": deployment.min_ready_seconds,
            "selector": selector,
            "template": template,
        },
    }))
}

/// The members of an object; none for any other value.
pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// The members of a member, which becomes an object if it is none.
pub(crate) fn member<'a>(object: &'a mut Map<String, Value>, key: &str) -> &'a mut Map<String, Value> {
    let value = object.entry(key).or_insert_with(|| Map::new().into());
    if !value.is_object() {
        *value = Map::new().into();
    }
    value.as_object_mut().expect("it is an object")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deployment::fixtures::deployment;

    #[test]
    fn p_24_the_hash_depends_on_the_template_and_the_collision_count() {
        let with = |image: &str, count| {
            let mut deployment = deployment(1);
            deployment.template = json!({"spec": {"image": image}}).into();
            deployment.status.collision_count = count;
            hash(&deployment)
        };
        let hashes = [
            with("a", None),
            with("b", None),
            with("a", Some(0)),
            with("a", Some(1)),
            with("a", Some(-1)),
        ];
        for (index, hash) in hashes.iter().enumerate() {
            assert!((1..=10).contains(&hash.len()), "{hash}");
            assert!(hash.bytes().all(|byte| b"456789bcdf".contains(&byte)), "{hash}");
            assert!(!hashes[..index].contains(hash), "{hashes:?}");
        }
        // The hash must be the same in every version of Nodewise. FNV-1a of no bytes is 2166136261.
        assert_eq!(
            "2166136261".bytes().map(encoded).collect::<String>(),
            "65bb57b6b5"
        );
        assert_eq!(with("a", None), "6c64f9dc58");
    }

    #[test]
    fn p_25_only_the_name_of_the_deployment_is_cut() {
        let long = "a".repeat(250);
        // PS-84
        assert_eq!(
            name(&long, "bcdfbcdfbc"),
            format!("{}-bcdfbcdfbc", "a".repeat(242))
        );
        assert_eq!(
            name(&"é".repeat(200), "b").len(),
            252,
            "no character is cut in two"
        );
        assert_eq!(name("web", "bcd"), "web-bcd");
        assert_eq!(name("", "bcd"), "-bcd");
    }
}
