use serde_json::{Value, json};

use super::*;

/// The requests of a pod spec as text: `cpu=1 memory=64Mi`.
fn requests(spec: &Value) -> Result<String, String> {
    let requests = of_template(&json!({ "spec": spec }).into())?;
    let each: Vec<_> = requests
        .iter()
        .map(|(name, amount)| format!("{name}={amount}"))
        .collect();
    Ok(each.join(" "))
}

fn container(requests: &Value, limits: &Value) -> Value {
    json!({"name": "c", "resources": {"requests": requests, "limits": limits}})
}

fn asks(requests: &Value) -> Value {
    container(requests, &json!(null))
}

fn sidecar(requests: &Value) -> Value {
    let mut sidecar = asks(requests);
    sidecar["restartPolicy"] = json!("Always");
    sidecar
}

#[test]
fn requests_follow_the_formula_of_kubernetes() {
    let cpu = |amount: &str| json!({ "cpu": amount });
    let table = [
        ("no container", json!({}), ""),
        ("no resources", json!({"containers": [{"name": "c"}]}), ""),
        (
            "all containers at once",
            json!({"containers": [
                asks(&json!({"cpu": "100m", "memory": "1Gi", "nvidia.com/gpu": 1})),
                asks(&json!({"cpu": 1, "ephemeral-storage": "512Mi", "hugepages-2Mi": "4Mi"})),
            ]}),
            "cpu=1100m ephemeral-storage=512Mi hugepages-2Mi=4Mi memory=1Gi nvidia.com/gpu=1",
        ),
        (
            "a limit without a request is the request",
            json!({"containers": [container(&json!({"cpu": "1"}), &json!({"cpu": "2", "memory": "1Gi"}))]}),
            "cpu=1 memory=1Gi",
        ),
        (
            "a request of zero stays zero",
            json!({"containers": [container(&json!({"cpu": "0"}), &cpu("2"))]}),
            "cpu=0",
        ),
        (
            "the largest init container, if it needs more than the containers",
            json!({
                "containers": [asks(&json!({"cpu": "1", "memory": "1Gi"}))],
                "initContainers": [asks(&json!({"cpu": "2", "memory": "1Mi"})), asks(&cpu("3"))],
            }),
            "cpu=3 memory=1Gi",
        ),
        (
            "a sidecar runs with the containers",
            json!({"containers": [asks(&cpu("1"))], "initContainers": [sidecar(&cpu("500m"))]}),
            "cpu=1500m",
        ),
        (
            "an init container runs with the sidecars before it, not with those after it",
            json!({
                "containers": [asks(&cpu("1"))],
                "initContainers": [sidecar(&cpu("500m")), asks(&cpu("2")), sidecar(&cpu("700m"))],
            }),
            "cpu=2500m",
        ),
        (
            "overhead is added",
            json!({
                "containers": [asks(&cpu("1"))],
                "overhead": {"cpu": "250m", "memory": "120Mi"},
            }),
            "cpu=1250m memory=120Mi",
        ),
        (
            "resources of the pod replace those of its containers",
            json!({
                "containers": [asks(&json!({"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"}))],
                "resources": {"requests": {"cpu": "3", "ephemeral-storage": "9Gi"}},
            }),
            "cpu=3 ephemeral-storage=1Gi memory=1Gi",
        ),
        (
            "a limit of the pod is its request if no container requests the resource",
            json!({
                "containers": [asks(&cpu("1"))],
                "resources": {"limits": {"cpu": "3", "memory": "4Gi"}},
            }),
            "cpu=1 memory=4Gi",
        ),
        (
            "hugepages of containers are a limit of the pod that has other resources",
            json!({
                "containers": [container(&json!(null), &json!({"hugepages-2Mi": "4Mi"}))],
                "resources": {"requests": {"cpu": "1"}},
            }),
            "cpu=1 hugepages-2Mi=4Mi",
        ),
        (
            "null is absent, and a number is a quantity",
            json!({"containers": [{"name": "c", "resources": null}, asks(&json!({"cpu": 0.5, "memory": 1_048_576}))]}),
            "cpu=500m memory=1048576",
        ),
    ];
    for (what, spec, expected) in table {
        assert_eq!(requests(&spec).as_deref(), Ok(expected), "{what}");
    }
}

#[test]
fn errors_name_the_field_what_was_found_and_what_would_be_right() {
    let many: serde_json::Map<_, _> = (0..65)
        .map(|index| (format!("example.com/{index}"), json!(1)))
        .collect();
    let table = [
        (
            json!({"containers": [{}, asks(&json!({"cpu": "1x"}))]}),
            "spec.template.spec.containers[1].resources.requests.cpu: `1x` is not a quantity such as 250m, 1.5 or 64Mi",
        ),
        (
            json!({"initContainers": [container(&json!(null), &json!({"memory": "-1Gi"}))]}),
            "spec.template.spec.initContainers[0].resources.limits.memory: -1Gi is negative; a request is 0 or more",
        ),
        (
            json!({"containers": {}}),
            "spec.template.spec.containers: must be a list of containers",
        ),
        (
            json!({"containers": [{"resources": 1}]}),
            "spec.template.spec.containers[0].resources: must be an object",
        ),
        (
            json!({"overhead": ["cpu"]}),
            "spec.template.spec.overhead: must be an object of quantities",
        ),
        (
            json!({"overhead": {"cpu": {"a": 1}}}),
            "spec.template.spec.overhead.cpu: `{\"a\":1}` is not a quantity such as 250m, 1.5 or 64Mi",
        ),
        (
            json!({"containers": [asks(&json!({"cpu": "1e29"})), asks(&json!({"cpu": "1e29"}))]}),
            "spec.template.spec: the sum of all requests of cpu is too large",
        ),
        (
            json!({"overhead": many}),
            "spec.template.spec: names 65 resources; at most 64 are taken",
        ),
        (
            json!({"overhead": {"x".repeat(318): 1}}),
            "spec.template.spec.overhead: the name of a resource has 318 bytes; at most 317 are taken",
        ),
    ];
    for (spec, expected) in table {
        assert_eq!(requests(&spec), Err(expected.to_owned()));
    }
}

#[test]
fn notes_say_what_a_template_does_not_tell() {
    let notes = |spec: Value| notes(&json!({ "spec": spec }).into());
    let complete = asks(&json!({"cpu": "1", "memory": "1Gi"}));
    assert!(notes(json!({"containers": [complete]})).is_empty());
    let found = notes(json!({
        "containers": [complete, asks(&json!({"cpu": "1"}))],
        "runtimeClassName": "gvisor",
        "resourceClaims": [{"name": "gpu"}],
    }));
    assert_eq!(found.len(), 3);
    assert!(
        found[0].contains("RuntimeClass") && found[2].starts_with("1 container"),
        "{found:?}"
    );
    let overhead = json!({"containers": [complete], "runtimeClassName": "gvisor", "overhead": {"cpu": "1m"}});
    assert!(notes(overhead).is_empty());
    assert!(notes(json!({"containers": [{}, {}]}))[0].starts_with("2 containers"));
}
