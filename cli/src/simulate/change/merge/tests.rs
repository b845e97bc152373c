//! Tests merging with manifests that are written by hand.

use super::*;

fn workload() -> Value {
    json!({"metadata": {"generation": 4}, "spec": {
        "selector": {"matchLabels": {"app": "a"}},
        "template": {"spec": {
            "containers": [{"name": "a", "image": "a:1", "tty": true}, {"name": "b", "image": "b:1"}],
        }},
    }})
}

#[test]
fn a_manifest_keeps_what_it_does_not_name() {
    let mut object = workload();
    let change = json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "a:2"}]}}}});
    apply(&mut object, &change).expect("valid");
    let containers = &object["spec"]["template"]["spec"]["containers"];
    assert_eq!(*containers, json!([{"name": "a", "image": "a:2", "tty": true}]));
    raise_generations(Kind::DaemonSet, &workload(), &mut object);
    assert_eq!(object["metadata"]["generation"], 5);
    assert_eq!(object["metadata"]["annotations"][TEMPLATE_GENERATION], "1");

    let other = json!({"spec": {"selector": {"matchLabels": {"app": "b"}}}});
    let error = apply(&mut object, &other).expect_err("another selector");
    assert!(error.to_string().starts_with("spec.selector: "), "{error}");
    let wrong = json!({"spec": {"template": "text"}});
    let error = apply(&mut object, &wrong).expect_err("no object");
    assert_eq!(
        error.to_string(),
        "spec.template: is a string; expected an object"
    );
}

/// The stored spec, the spec that was applied last, the new one, and what is expected to be stored.
fn check_three_way(what: &str, [live, last, new, expected]: [Value; 4]) {
    let object = |spec: Value| json!({"metadata": {"uid": "u"}, "spec": spec});
    let (live, last, new) = (object(live), object(last), object(new));
    let after = three_way(&live, &last, &new);
    assert_eq!(after["spec"], expected, "{what}");
    // The patch leads to the same object.
    let patch = patch(&live, &last, &new).expect("valid");
    assert_eq!(patch["metadata"], json!({"uid": "u"}), "{what}");
    let mut patched = live;
    merge_rfc_7386(&mut patched, &patch);
    assert_eq!(patched["spec"], expected, "{what}: {patch}");
}

fn merge_rfc_7386(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let target = target.as_object_mut().expect("an object");
    for (key, value) in patch {
        if value.is_null() {
            target.remove(key);
        } else {
            merge_rfc_7386(target.entry(key).or_insert(Value::Null), value);
        }
    }
}

#[test]
fn fields_that_a_manifest_has_no_longer_are_removed() {
    check_three_way(
        "a map; what others set stays",
        [
            json!({"a": {"mine": 1, "old": 1, "theirs": 1}, "default": 1}),
            json!({"a": {"mine": 1, "old": 1}}),
            json!({"a": {"mine": 2}}),
            json!({"a": {"mine": 2, "theirs": 1}, "default": 1}),
        ],
    );
    check_three_way(
        "a list that is replaced as a whole",
        [
            json!({"tolerations": [{"key": "a"}, {"key": "b"}]}),
            json!({"tolerations": [{"key": "a"}, {"key": "b"}]}),
            json!({"tolerations": [{"key": "b"}]}),
            json!({"tolerations": [{"key": "b"}]}),
        ],
    );
    check_three_way(
        "a list that is gone",
        [
            json!({"tolerations": [{"key": "a"}], "replicas": 3}),
            json!({"tolerations": [{"key": "a"}]}),
            json!({}),
            json!({"replicas": 3}),
        ],
    );
    check_three_way(
        "null",
        [
            json!({"a": 1, "b": 2}),
            json!({}),
            json!({"a": null}),
            json!({"b": 2}),
        ],
    );
}

#[test]
fn elements_are_the_same_by_their_key() {
    check_three_way(
        "containers: one is gone, one was injected, one has lost a variable, and a default stays",
        [
            json!({"containers": [
                {"name": "a", "image": "a:1", "tty": false, "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "1"}]},
                {"name": "injected"},
                {"name": "gone"},
            ]}),
            json!({"containers": [
                {"name": "a", "image": "a:1", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "1"}]},
                {"name": "gone"},
            ]}),
            json!({"containers": [{"name": "a", "image": "a:2", "env": [{"name": "Y", "value": "2"}]}, {"name": "new"}]}),
            json!({"containers": [
                {"name": "a", "image": "a:2", "tty": false, "env": [{"name": "Y", "value": "2"}]},
                {"name": "injected"},
                {"name": "new"},
            ]}),
        ],
    );
    check_three_way(
        "the order is that of the manifest",
        [
            json!({"volumeMounts": [{"mountPath": "/a", "readOnly": true}, {"mountPath": "/b"}]}),
            json!({"volumeMounts": [{"mountPath": "/a"}, {"mountPath": "/b"}]}),
            json!({"volumeMounts": [{"mountPath": "/b"}, {"mountPath": "/a"}]}),
            json!({"volumeMounts": [{"mountPath": "/b"}, {"mountPath": "/a", "readOnly": true}]}),
        ],
    );
    check_three_way(
        "the same port twice",
        [
            json!({"ports": [{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53, "protocol": "TCP"}]}),
            json!({"ports": [{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53}]}),
            json!({"ports": [{"containerPort": 53, "protocol": "UDP"}]}),
            json!({"ports": [{"containerPort": 53, "protocol": "UDP"}]}),
        ],
    );
    check_three_way(
        "a volume has one source",
        [
            json!({"volumes": [{"name": "v", "emptyDir": {}}]}),
            json!({"volumes": [{"name": "v"}]}),
            json!({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}),
            json!({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}),
        ],
    );
    check_three_way(
        "another strategy has no budget",
        [
            json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}}}),
            json!({}),
            json!({"strategy": {"type": "Recreate"}}),
            json!({"strategy": {"type": "Recreate"}}),
        ],
    );
}

#[test]
fn what_was_applied_last_is_in_an_annotation() {
    let manifest = |labels: Value| json!({"metadata": {"labels": labels}, "spec": {"replicas": 1}});
    let mut object = manifest(json!({"a": "1", "b": "1", "theirs": "1"}));
    object["metadata"]["annotations"] =
        json!({LAST_APPLIED: manifest(json!({"a": "1", "b": "1"})).to_string(), "theirs": "1"});
    let mut new = manifest(json!({"b": "2"}));
    // As in a manifest that `kubectl get -o yaml` printed.
    new["metadata"]["annotations"] = json!({LAST_APPLIED: "{}", "mine": "1"});
    let after = applied(&object, &new).expect("valid");
    assert_eq!(after["metadata"]["labels"], json!({"b": "2", "theirs": "1"}));
    let annotations = after["metadata"]["annotations"].as_object().expect("annotations");
    assert_eq!(
        annotations.keys().collect::<Vec<_>>(),
        [LAST_APPLIED, "mine", "theirs"]
    );
    assert_ne!(annotations[LAST_APPLIED], "{}");

    for text in ["", "[]", "not json"] {
        object["metadata"]["annotations"][LAST_APPLIED] = json!(text);
        assert_eq!(last_applied(&object), None, "{text}");
    }
}
