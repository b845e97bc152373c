//! The manifest of the pods to create (chapter 10).
//!
//! It is made from the template as served, so that fields newer than this program reach the pods.

use serde_json::{Map, Value, json};

use crate::{
    canonical,
    claims::owner_reference,
    eligibility::automatic_tolerations,
    plan::PodManifest,
    snapshot::{DaemonSet, Deviation, Options},
};

/// The label that names a pod's revision.
pub(crate) const HASH_LABEL: &str = "controller-revision-hash";
/// The label that tells a pod's template generation.
pub(crate) const GENERATION_LABEL: &str = "pod-template-generation";
/// The annotation of the workload that tells its template generation.
const GENERATION_ANNOTATION: &str = "deprecated.daemonset.template.generation";
/// Where [`aim_at_one_node`] leaves a place for the node's name.
const NODE_NAME_POINTER: &str = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution\
                                 /nodeSelectorTerms/0/matchFields/0/values/0";

/// The template generation, from its annotation; `None` when absent or not an int64.
pub(crate) fn template_generation(ds: &DaemonSet) -> Option<i64> {
    let (_, value) = ds
        .annotations
        .iter()
        .find(|(key, _)| key == GENERATION_ANNOTATION)?;
    value.parse().ok()
}

/// The manifest of every pod that a plan creates (D-66). An empty hash gives no hash label.
///
/// With derived names the executor sets `metadata.name`; without them the apiserver generates one (D-70).
pub(crate) fn pod_manifest(ds: &DaemonSet, current_hash: &str, options: &Options) -> PodManifest {
    let mut metadata = pod_metadata(ds, current_hash);
    if !options.deviates(Deviation::IdempotentCreates) {
        metadata.insert("generateName".to_owned(), format!("{}-", ds.name).into());
    }
    let mut spec = member(&ds.template, "spec").cloned().unwrap_or_default();
    add_tolerations(&mut spec, ds.scheduling.host_network);
    aim_at_one_node(&mut spec);
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
    PodManifest {
        json: canonical::to_bytes(&pod),
        node_name_pointers: vec![NODE_NAME_POINTER.to_owned()],
    }
}

/// The labels of the template, as it has them.
pub(crate) fn template_labels(ds: &DaemonSet) -> Map<String, Value> {
    let metadata = member(&ds.template, "metadata");
    metadata
        .and_then(|metadata| metadata.get("labels"))
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default()
}

/// Of the template's metadata only labels, annotations and finalizers reach the pod.
fn pod_metadata(ds: &DaemonSet, current_hash: &str) -> Map<String, Value> {
    let mut labels = template_labels(ds);
    if let Some(generation) = template_generation(ds) {
        labels.insert(GENERATION_LABEL.to_owned(), generation.to_string().into());
    }
    if !current_hash.is_empty() {
        labels.insert(HASH_LABEL.to_owned(), current_hash.into());
    }
    let copied = ["annotations", "finalizers"].into_iter().filter_map(|key| {
        let value = member(&ds.template, "metadata")?.get(key)?;
        (!value.is_null()).then(|| (key.to_owned(), value.clone()))
    });
    let own = [
        ("labels", Value::Object(labels)),
        ("ownerReferences", json!([owner_reference(ds)])),
    ];
    own.map(|(key, value)| (key.to_owned(), value))
        .into_iter()
        .chain(copied)
        .collect()
}

/// Adds the automatic tolerations (D-19): each takes the place of every equal one, and so drops its seconds, or comes last.
fn add_tolerations(spec: &mut Map<String, Value>, host_network: bool) {
    let mut tolerations = match spec.remove("tolerations") {
        Some(Value::Array(tolerations)) => tolerations,
        _ => Vec::new(),
    };
    for (key, effect) in automatic_tolerations(host_network) {
        let automatic = json!({"effect": effect, "key": key, "operator": "Exists"});
        let mut added = false;
        for equal in tolerations
            .iter_mut()
            .filter(|own| is_same_toleration(own, &automatic))
        {
            equal.clone_from(&automatic);
            added = true;
        }
        if !added {
            tolerations.push(automatic);
        }
    }
    spec.insert("tolerations".to_owned(), tolerations.into());
}

/// Equal but for the seconds; an absent string is an empty one.
fn is_same_toleration(a: &Value, b: &Value) -> bool {
    fn text<'a>(toleration: &'a Value, key: &str) -> &'a str {
        toleration.get(key).and_then(Value::as_str).unwrap_or_default()
    }
    ["key", "operator", "value", "effect"]
        .iter()
        .all(|key| text(a, key) == text(b, key))
}

/// Leaves the scheduler one node, whose name is still open (D-68). What the template required of nodes has been decided
/// and is replaced; its other affinities and its nodeSelector stay.
fn aim_at_one_node(spec: &mut Map<String, Value>) {
    let field = json!({"key": "metadata.name", "operator": "In", "values": [""]});
    update_object(spec, "affinity", |affinity| {
        update_object(affinity, "nodeAffinity", |node_affinity| {
            update_object(
                node_affinity,
                "requiredDuringSchedulingIgnoredDuringExecution",
                |required| {
                    required.insert("nodeSelectorTerms".to_owned(), json!([{"matchFields": [field]}]));
                },
            );
        });
    });
}

fn member<'a>(value: &'a Value, key: &str) -> Option<&'a Map<String, Value>> {
    value.get(key)?.as_object()
}

/// Updates the object under a key; anything else there gives way to an empty one.
fn update_object(parent: &mut Map<String, Value>, key: &str, update: impl FnOnce(&mut Map<String, Value>)) {
    let mut object = match parent.remove(key) {
        Some(Value::Object(object)) => object,
        _ => Map::new(),
    };
    update(&mut object);
    parent.insert(key.to_owned(), Value::Object(object));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{daemon_set, pairs};

    /// The manifest of a template's pods.
    fn pod(template: Value, hash: &str) -> Value {
        pod_of(
            &DaemonSet {
                template,
                ..daemon_set()
            },
            hash,
            &Options::default(),
        )
    }

    fn pod_of(ds: &DaemonSet, hash: &str, options: &Options) -> Value {
        serde_json::from_slice(&pod_manifest(ds, hash, options).json).unwrap()
    }

    fn tolerations_of(own: &Value) -> Value {
        pod(json!({"spec": {"tolerations": own}}), "h")["spec"]["tolerations"].clone()
    }

    fn with_generation(value: &str) -> DaemonSet {
        DaemonSet {
            annotations: pairs(&[("a", "b"), (GENERATION_ANNOTATION, value)]),
            ..daemon_set()
        }
    }

    #[test]
    fn d_66_s_3_a_plain_pod() {
        let ds = with_generation("7");
        let manifest = pod_manifest(&ds, "hash1", &Options::default());
        let pod: Value = serde_json::from_slice(&manifest.json).unwrap();
        let exists = |key: &str, effect| json!({"key": format!("node.kubernetes.io/{key}"), "operator": "Exists", "effect": effect});
        let expected = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "labels": {"app": "foo", "controller-revision-hash": "hash1", "pod-template-generation": "7"},
                "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "foo", "uid": "foo-uid",
                    "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "spec": {
                "containers": [{"name": "c", "image": "img:1", "resources": {}}],
                "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [""]}]},
                ]}}},
                "tolerations": [
                    exists("not-ready", "NoExecute"),
                    exists("unreachable", "NoExecute"),
                    exists("disk-pressure", "NoSchedule"),
                    exists("memory-pressure", "NoSchedule"),
                    exists("pid-pressure", "NoSchedule"),
                    exists("unschedulable", "NoSchedule"),
                ],
            },
        });
        // D-67: the owner; D-68: one term, one field; D-69: no nodeName.
        assert_eq!(pod, expected);
        assert_eq!(
            manifest.json,
            canonical::to_bytes(&expected),
            "members are sorted"
        );
        let places: Vec<_> = manifest
            .node_name_pointers
            .iter()
            .map(|pointer| pod.pointer(pointer))
            .collect();
        assert_eq!(
            places,
            [Some(&json!(""))],
            "the node's name goes where it is empty"
        );
    }

    #[test]
    fn d_66_labels_are_overwritten_in_order_and_only_some_metadata_is_copied() {
        let template = json!({"metadata": {
            "name": "n", "namespace": "ns", "generateName": "g-", "ownerReferences": [{"uid": "x"}],
            "creationTimestamp": null,
            "labels": {"app": "foo", "controller-revision-hash": "mine", "pod-template-generation": "mine"},
            "annotations": {"k": "v"}, "finalizers": ["f/a"],
        }});
        let metadata = |ds: &DaemonSet, hash| {
            let mut metadata = pod_of(ds, hash, &Options::default())["metadata"].clone();
            metadata.as_object_mut().unwrap().remove("ownerReferences");
            metadata
        };
        let labels = |hash: &str, generation: &str| {
            json!({
                "labels": {"app": "foo", "controller-revision-hash": hash, "pod-template-generation": generation},
                "annotations": {"k": "v"}, "finalizers": ["f/a"],
            })
        };
        let plain = DaemonSet {
            template: template.clone(),
            ..daemon_set()
        };
        assert_eq!(metadata(&plain, "h"), labels("h", "mine"), "no generation");
        assert_eq!(metadata(&plain, ""), labels("mine", "mine"), "no hash");
        let generated = DaemonSet {
            template,
            ..with_generation("3")
        };
        assert_eq!(metadata(&generated, "h"), labels("h", "3"));
        // A template without labels still gives labels: the hash is one.
        assert_eq!(
            pod(json!({}), "h")["metadata"]["labels"],
            json!({"controller-revision-hash": "h"})
        );
    }

    #[test]
    fn the_template_generation_is_a_decimal_int64() {
        let table = [
            ("1", Some(1)),
            ("-2", Some(-2)),
            ("+3", Some(3)),
            ("007", Some(7)),
            ("", None),
            ("x", None),
            ("1.0", None),
            (" 1", None),
            ("9223372036854775808", None),
        ];
        for (value, expected) in table {
            assert_eq!(
                template_generation(&with_generation(value)),
                expected,
                "{value:?}"
            );
        }
        assert_eq!(template_generation(&daemon_set()), None);
        // D-66: the label holds the decimal form, not the annotation.
        let labels = pod_of(&with_generation("007"), "h", &Options::default())["metadata"]["labels"].clone();
        assert_eq!(labels[GENERATION_LABEL], "7");
    }

    #[test]
    fn d_19_automatic_tolerations_replace_equal_ones_in_place() {
        let not_ready =
            json!({"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"});
        let with = |member: &str, value: Value| {
            let mut toleration = not_ready.clone();
            toleration[member] = value;
            toleration
        };
        let own = json!({"key": "mine", "operator": "Exists"});
        let seconds = with("tolerationSeconds", json!(30));
        // (what, the template's, the pod's, without the five others that follow)
        let table = [
            ("none", json!(null), vec![not_ready.clone()]),
            ("another", json!([own]), vec![own.clone(), not_ready.clone()]),
            (
                "seconds are dropped",
                json!([seconds, own]),
                vec![not_ready.clone(), own.clone()],
            ),
            (
                "all duplicates",
                json!([seconds, own, seconds]),
                vec![not_ready.clone(), own.clone(), not_ready.clone()],
            ),
            (
                "an empty value is none",
                json!([with("value", json!(""))]),
                vec![not_ready.clone()],
            ),
            (
                "another value",
                json!([with("value", json!("x"))]),
                vec![with("value", json!("x")), not_ready.clone()],
            ),
            (
                "another effect",
                json!([with("effect", json!("NoSchedule"))]),
                vec![with("effect", json!("NoSchedule")), not_ready.clone()],
            ),
            (
                "another operator",
                json!([with("operator", json!(""))]),
                vec![with("operator", json!("")), not_ready.clone()],
            ),
        ];
        for (what, template, expected) in table {
            let tolerations = tolerations_of(&template);
            let (head, rest) = tolerations.as_array().unwrap().split_at(expected.len());
            assert_eq!(head, expected, "D-19: {what}");
            assert_eq!(rest.len(), 5, "D-18: {what}");
        }
    }

    #[test]
    fn d_18_the_host_network_tolerates_its_absence_too() {
        let mut ds = daemon_set();
        ds.scheduling.host_network = true;
        let tolerations = pod_of(&ds, "h", &Options::default())["spec"]["tolerations"].clone();
        let last = json!({"key": "node.kubernetes.io/network-unavailable", "operator": "Exists", "effect": "NoSchedule"});
        assert_eq!(tolerations.as_array().unwrap().len(), 7);
        assert_eq!(tolerations[6], last);
    }

    #[test]
    fn d_68_required_terms_are_replaced_and_all_else_stays() {
        let template = json!({"spec": {
            "nodeSelector": {"disk": "ssd"},
            "nodeName": "node-0",
            "aFieldOfTheFuture": {"x": [1]},
            "affinity": {
                "podAffinity": {"p": 1},
                "podAntiAffinity": {"q": 2},
                "nodeAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}],
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": []}, {}]},
                },
            },
        }});
        let one = json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [""]}]}]);
        let mut expected = template["spec"].clone();
        let required =
            "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
        *expected.pointer_mut(required).unwrap() = one.clone();
        let mut spec = pod(template, "h")["spec"].clone();
        spec.as_object_mut().unwrap().remove("tolerations");
        // D-69: the template's own nodeName stays.
        assert_eq!(spec, expected);
        for affinity in [
            json!(null),
            json!({}),
            json!({"nodeAffinity": null}),
            json!("odd"),
        ] {
            let spec = pod(json!({"spec": {"affinity": affinity}}), "h")["spec"].clone();
            assert_eq!(
                spec.pointer(required),
                Some(&one),
                "missing parents are made: {affinity}"
            );
        }
    }

    #[test]
    fn d_70_the_apiserver_names_the_pod_only_without_derived_names() {
        let strict = pod_of(&daemon_set(), "h", &Options::upstream_strict());
        assert_eq!(strict["metadata"]["generateName"], "foo-");
        let derived = pod_of(&daemon_set(), "h", &Options::default());
        assert_eq!(derived["metadata"].get("generateName"), None);
        assert_eq!(derived["metadata"].get("name"), None, "left to the executor");
    }
}
