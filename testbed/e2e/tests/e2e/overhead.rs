//! `nodewise overhead` says where the built-in controller puts pods, and what these request.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams},
};
use nodewise_conformance::{DEADLINE, daemon_set};
use nodewise_e2e::{Setup, SetupOptions};
use nodewise_testbed::eventually;
use serde_json::{Value, json};

/// The node's DaemonSets, and the sum of what their pods request: `cpu` in thousandths and `memory` in MiB.
type OnNode = (BTreeSet<String>, BTreeMap<String, u64>);

/// The number of a quantity such as `250m`, `2` or `64Mi`, in thousandths or MiB.
fn amount(quantity: &str) -> Result<u64> {
    let (digits, times) = match quantity {
        _ if quantity.ends_with('m') => (quantity.trim_end_matches('m'), 1),
        _ if quantity.ends_with("Mi") => (quantity.trim_end_matches("Mi"), 1),
        _ if quantity.ends_with("Gi") => (quantity.trim_end_matches("Gi"), 1024),
        _ => (quantity, 1000),
    };
    let number: u64 = digits
        .parse()
        .with_context(|| format!("{quantity} of the test"))?;
    Ok(number * times)
}

fn container(resources: &Value) -> Value {
    json!({ "name": "main", "image": "registry.example/agent:1", "resources": resources })
}

/// What the pods of DaemonSets on each node request. The apiserver has set the defaults of their requests.
async fn pods(setup: &Setup) -> Result<BTreeMap<String, OnNode>> {
    let pods: Api<Pod> = Api::namespaced(setup.client(), "default");
    let mut found: BTreeMap<String, OnNode> = BTreeMap::new();
    for pod in pods.list(&ListParams::default()).await? {
        let labels = pod.metadata.labels.unwrap_or_default();
        let name = labels.get("app").context("the label of the test's pods")?;
        let spec = pod.spec.context("a spec")?;
        let (names, sum) = found
            .entry(spec.node_name.context("a pod that is bound")?)
            .or_default();
        names.insert(name.clone());
        for container in spec.containers {
            let requests = container.resources.and_then(|resources| resources.requests);
            for (resource, quantity) in requests.unwrap_or_default() {
                *sum.entry(resource).or_default() += amount(&quantity.0)?;
            }
        }
    }
    Ok(found)
}

/// What `nodewise overhead` says about a node.
async fn told(setup: &Setup, node: &str, server: &[&str]) -> Result<OnNode> {
    let words = ["overhead", "--like", node, "-o", "json"];
    let output = setup.nodewise(&[&words, server].concat()).await?;
    ensure!(output.status.success(), "{output:?}");
    let answer: Value = serde_json::from_slice(&output.stdout)?;
    let decisions = answer["nodes"][0]["decisions"].as_array().context("decisions")?;
    let running = decisions.iter().filter(|decision| decision["runs"] == true);
    let names: BTreeSet<String> = running
        .filter_map(|decision| Some(decision["name"].as_str()?.to_owned()))
        .collect();
    let requests = answer["nodes"][0]["requests"].as_object().context("requests")?;
    assert_eq!(requests["pods"], json!(names.len().to_string()));
    let others = requests.iter().filter(|(resource, _)| *resource != "pods");
    let sum = others.map(|(resource, quantity)| {
        let quantity = quantity.as_str().context("a quantity")?;
        Ok((resource.clone(), amount(quantity)?))
    });
    Ok((names, sum.collect::<Result<_>>()?))
}

#[tokio::test(flavor = "multi_thread")]
async fn overhead_is_what_the_built_in_controller_starts() -> Result<()> {
    let setup = Setup::start(SetupOptions::nodes(4).built_in_controllers()).await?;
    let nodes: Api<Node> = Api::all(setup.client());
    let names = setup.node_names().await?;
    let gpu = json!({ "metadata": { "labels": { "pool": "gpu" } },
        "spec": { "taints": [{ "key": "gpu", "value": "only", "effect": "NoSchedule" }] } });
    let cordoned = json!({ "spec": { "unschedulable": true } });
    let labelled = json!({ "metadata": { "labels": { "pool": "web" } } });
    for (name, change) in names.iter().zip([gpu, cordoned, labelled]) {
        nodes
            .patch(name, &PatchParams::default(), &Patch::Merge(change))
            .await?;
    }

    let spec = "/spec/template/spec";
    let everywhere = json!([container(
        &json!({ "requests": { "cpu": "100m", "memory": "64Mi" } })
    )]);
    let limited = json!([container(&json!({ "limits": { "cpu": "1", "memory": "1Gi" } }))]);
    let term = |values: Value| json!({ "matchExpressions": [{ "key": "pool", "operator": "In", "values": values }] });
    let second = json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [term(json!(["none"])), term(json!(["web", "gpu"]))] } } });
    setup
        .create(
            daemon_set("everywhere")
                .set(spec, "containers", everywhere)
                .build(),
        )
        .await?;
    setup
        .create(
            daemon_set("gpu")
                .set(spec, "containers", limited)
                .set(spec, "nodeSelector", json!({ "pool": "gpu" }))
                .set(spec, "tolerations", json!([{ "operator": "Exists" }]))
                .build(),
        )
        .await?;
    setup
        .create(daemon_set("second-term").set(spec, "affinity", second).build())
        .await?;

    let expected = [
        (0, vec!["gpu"]),
        (1, vec!["everywhere"]),
        (2, vec!["everywhere", "second-term"]),
        (3, vec!["everywhere"]),
    ];
    let found = eventually(DEADLINE, "the built-in controller's pods", async || {
        let found = pods(&setup).await?;
        for (index, sets) in &expected {
            let here = found.get(&names[*index]).map(|(sets, _)| sets);
            let sets: BTreeSet<String> = sets.iter().map(|name| (*name).to_owned()).collect();
            ensure!(
                here == Some(&sets),
                "{}: {here:?}, expected {sets:?}",
                names[*index]
            );
        }
        Ok(found)
    })
    .await?;
    for name in &names {
        assert_eq!(told(&setup, name, &[]).await?, found[name], "{name}");
    }
    let url = setup.server_url();
    assert_eq!(
        told(&setup, &names[0], &["--server", &url]).await?,
        found[&names[0]],
        "the service answers as the planner in the binary does"
    );
    Ok(())
}
