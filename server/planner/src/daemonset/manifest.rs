//! The manifest of the pods that a plan creates (D-66 to D-70).
//!
//! The manifest is made from the template as served, so that pods get fields that this version does not know.

use serde_json::json;

use crate::{
    core::{
        json::{Json, Part, rewrite, write_list},
        plan::PodManifest,
        pod_template::{self, PodMetadata},
    },
    daemonset::{eligibility::automatic_tolerations, workload::DaemonSet},
};

/// The label with the hash of a pod's revision.
pub const HASH_LABEL: &str = "controller-revision-hash";
/// The label with a pod's template generation.
pub(crate) const GENERATION_LABEL: &str = "pod-template-generation";
/// The workload's annotation with its template generation.
const GENERATION_ANNOTATION: &str = "deprecated.daemonset.template.generation";
/// The path of the required node terms within an affinity, which are replaced.
const REQUIRED_TERMS: [&str; 3] = [
    "nodeAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
];
/// Where [`require_one_node`] leaves an empty string for the node's name.
const NODE_NAME_POINTER: &str = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution\
                                 /nodeSelectorTerms/0/matchFields/0/values/0";

/// The template generation from the annotation; `None` if absent or not an int64.
pub(crate) fn template_generation(ds: &DaemonSet) -> Option<i64> {
    ds.annotation(GENERATION_ANNOTATION)?.parse().ok()
}

/// How the pods of a plan get their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PodNaming {
    /// The plan names all pods.
    AllDerived,
    /// The apiserver names at least one pod, so the manifest needs a generateName.
    SomeGenerated,
}

/// The manifest for all pods that a plan creates (D-66). With an empty hash the pods get no hash label.
///
/// The executor sets `metadata.name` if the plan names the pod. Otherwise the apiserver generates a name (D-70).
pub(crate) fn pod_manifest(ds: &DaemonSet, current_hash: &str, naming: PodNaming) -> PodManifest {
    let prefix = format!("{}-", ds.name);
    let generation = template_generation(ds).map(|generation| generation.to_string());
    let metadata = PodMetadata {
        template: &ds.template,
        owner: ds.owner(),
        generate_name: (naming == PodNaming::SomeGenerated).then_some(prefix.as_str()),
        labels: &[
            (HASH_LABEL, Some(current_hash).filter(|hash| !hash.is_empty())),
            (GENERATION_LABEL, generation.as_deref()),
        ],
    };
    PodManifest {
        json: pod_template::pod(&metadata, |out, spec| {
            write_spec(out, spec, ds.scheduling.host_network);
        }),
        node_name_pointers: vec![NODE_NAME_POINTER.to_owned()],
    }
}

fn write_spec(out: &mut String, spec: Part<'_>, host_network: bool) {
    rewrite(out, spec, &["affinity", "tolerations"], |written, key, old| {
        let (out, old) = (written.member(key), old.unwrap_or(Part::EMPTY));
        match key {
            "affinity" => require_one_node(out, old, &REQUIRED_TERMS),
            _ => write_tolerations(out, old, host_network),
        }
    });
}

/// Writes the tolerations with the automatic ones (D-19). An automatic toleration replaces every equal one, which drops
/// tolerationSeconds. If there is no equal one, it is appended.
fn write_tolerations(out: &mut String, tolerations: Part<'_>, host_network: bool) {
    let automatic: Vec<Json> = automatic_tolerations(host_network)
        .map(|(key, effect)| json!({"effect": effect, "key": key, "operator": "Exists"}).into())
        .collect();
    let automatic = || automatic.iter().map(Json::part);
    let mut list: Vec<_> = tolerations
        .items()
        .map(|own| {
            automatic()
                .find(|equal| is_same_toleration(own, *equal))
                .unwrap_or(own)
        })
        .collect();
    for toleration in automatic() {
        if !list.contains(&toleration) {
            list.push(toleration);
        }
    }
    write_list(out, list, |out, toleration| out.push_str(toleration.text()));
}

/// Whether two tolerations are equal apart from tolerationSeconds. An absent string equals an empty one.
fn is_same_toleration(a: Part<'_>, b: Part<'_>) -> bool {
    let text = |toleration: Part<'_>, key| {
        toleration
            .get(key)
            .unwrap_or(Part::EMPTY)
            .string_text()
            .to_owned()
    };
    ["key", "operator", "value", "effect"]
        .into_iter()
        .all(|key| text(a, key) == text(b, key))
}

/// Replaces the required node terms by one term for a single node, with an empty node name (D-68). The template's own terms are not
/// needed any more: the planner has evaluated them. Other affinities and the nodeSelector stay. `path` leads to the terms.
fn require_one_node(out: &mut String, part: Part<'_>, path: &[&str]) {
    match path {
        [] => out.push_str(r#"[{"matchFields":[{"key":"metadata.name","operator":"In","values":[""]}]}]"#),
        [key, rest @ ..] => rewrite(out, part, &[key], |written, key, old| {
            require_one_node(written.member(key), old.unwrap_or(Part::EMPTY), rest);
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::{
        core::canonical,
        fixtures::{daemon_set, pairs},
    };

    /// The manifest of a template's pods.
    fn pod(template: Value, hash: &str) -> Value {
        pod_of(
            &DaemonSet {
                template: template.into(),
                ..daemon_set()
            },
            hash,
            PodNaming::AllDerived,
        )
    }

    fn pod_of(ds: &DaemonSet, hash: &str, naming: PodNaming) -> Value {
        serde_json::from_slice(&pod_manifest(ds, hash, naming).json).unwrap()
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
    fn d_66_a_plain_pod() {
        let ds = with_generation("7");
        let manifest = pod_manifest(&ds, "hash1", PodNaming::AllDerived);
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
        let entries: Vec<_> = manifest
            .node_name_pointers
            .iter()
            .map(|pointer| pod.pointer(pointer))
            .collect();
        assert_eq!(
            entries,
            [Some(&json!(""))],
            "the pointer leads to the empty node name"
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
            let mut metadata = pod_of(ds, hash, PodNaming::AllDerived)["metadata"].clone();
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
            template: template.clone().into(),
            ..daemon_set()
        };
        assert_eq!(metadata(&plain, "h"), labels("h", "mine"), "no generation");
        assert_eq!(metadata(&plain, ""), labels("mine", "mine"), "no hash");
        let generated = DaemonSet {
            template: template.into(),
            ..with_generation("3")
        };
        assert_eq!(metadata(&generated, "h"), labels("h", "3"));
        // Pods of a template without labels still have the hash label.
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
        let labels =
            pod_of(&with_generation("007"), "h", PodNaming::AllDerived)["metadata"]["labels"].clone();
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
    fn d_18_pods_on_the_host_network_tolerate_a_missing_network() {
        let mut ds = daemon_set();
        ds.scheduling.host_network = true;
        let tolerations = pod_of(&ds, "h", PodNaming::AllDerived)["spec"]["tolerations"].clone();
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
        let generated = pod_of(&daemon_set(), "h", PodNaming::SomeGenerated);
        assert_eq!(generated["metadata"]["generateName"], "foo-");
        let derived = pod_of(&daemon_set(), "h", PodNaming::AllDerived);
        assert_eq!(derived["metadata"].get("generateName"), None);
        assert_eq!(derived["metadata"].get("name"), None, "left to the executor");
    }
}
