//! `nodewise simulate` and `nodewise plan -f` foretell what the controllers of a real control plane then do, and what its apiserver
//! says about a change.

use std::{collections::BTreeMap, fs, path::Path, process::Output, time::Instant};

use anyhow::{Context as _, Result, ensure};
use nodewise_conformance::{DEADLINE, daemon_set, deployment, image_patch, node_of};
use nodewise_e2e::{Setup, SetupOptions};
use nodewise_testbed::eventually;
use serde_json::{Value, json};

/// The assumptions about the fake kubelets.
const FAST: [&str; 4] = ["--ready-after", "1s", "--gone-after", "1s"];

fn json_of(output: &Output) -> Result<Value> {
    serde_json::from_slice(&output.stdout).with_context(|| format!("{output:?}"))
}

/// The nodes or names of the deleted pods, in their order.
fn deleted(played: &Value, field: &str) -> Vec<String> {
    let steps = played["steps"].as_array().into_iter().flatten();
    let changes = steps.flat_map(|step| step["changes"].as_array().into_iter().flatten());
    changes
        .filter(|change| change["verb"] == "delete" && change["resource"] == "pods")
        .map(|change| change[field].as_str().unwrap_or_default().to_owned())
        .collect()
}

async fn simulate(setup: &Setup, workload: &str, image: &str) -> Result<Value> {
    let change = [
        "simulate", workload, "-n", "default", "--image", image, "-o", "json",
    ];
    let output = setup.nodewise(&[&change[..], &FAST].concat()).await?;
    ensure!(output.status.success(), "{output:?}");
    let played = json_of(&output)?;
    ensure!(played["end"]["result"] == "done", "{played}");
    Ok(played)
}

/// Rolls out what was simulated. Returns the nodes in the order in which they lost their pods.
async fn roll_out(setup: &Setup, worst: usize) -> Result<Vec<String>> {
    let pods = setup.pods("agent").await?;
    let node_of_uid: BTreeMap<String, String> = pods
        .iter()
        .map(|pod| (pod.metadata.uid.clone().unwrap_or_default(), node_of(pod)))
        .collect();
    let watch = setup.watch("agent");
    watch.arm().await?;
    setup.patch("agent", image_patch(2)).await?;
    setup.wait_for_rollout("agent").await?;
    let seen = watch.seen().await?;
    seen.expect_rollout(worst, 2 * pods.len())?;
    let mut order: Vec<(Instant, String)> = seen
        .deleted
        .iter()
        .filter_map(|(uid, at)| Some((*at, node_of_uid.get(uid)?.clone())))
        .collect();
    order.sort();
    Ok(order.into_iter().map(|(_, node)| node).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_executor_rolls_out_in_the_simulated_order() -> Result<()> {
    let setup = Setup::start(SetupOptions::nodes(8)).await?;
    setup
        .create(daemon_set("agent").max_unavailable(1).build())
        .await?;
    setup.wait_for_rollout("agent").await?;
    let played = simulate(&setup, "ds/agent", "registry.example/agent:2").await?;
    assert_eq!(played["worstUnavailable"], 1);
    let order = deleted(&played, "node");
    assert_eq!(order.len(), 8);
    assert_eq!(roll_out(&setup, 1).await?, order);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_built_in_controllers_keep_to_the_simulated_worst_case() -> Result<()> {
    let setup = Setup::start(SetupOptions::nodes(9).observe()).await?;
    let _built_in = setup.cluster().start_upstream().await?;
    let agent = daemon_set("agent").max_unavailable(3).build();
    setup.create(agent).await?;
    setup.wait_for_rollout("agent").await?;
    let played = simulate(&setup, "ds/agent", "registry.example/agent:2").await?;
    let worst = usize::try_from(played["worstUnavailable"].as_u64().context("a number")?)?;
    assert_eq!(worst, 3);
    let mut simulated = deleted(&played, "node");
    let mut order = roll_out(&setup, worst).await?;
    // The built-in controller takes the nodes in random order.
    simulated.sort();
    order.sort();
    assert_eq!(order, simulated);

    let web = deployment("web", 6).rolling(2, 1).build();
    setup.start_deployment(web).await?;
    setup.wait_for_deployment("web").await?;
    let played = simulate(&setup, "deploy/web", "registry.example/agent:2").await?;
    assert_eq!(
        (&played["worstUnavailable"], &played["worstSurging"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(deleted(&played, "name").len(), 6);
    let begun = setup.begin_history("web").await?;
    setup.patch_deployment("web", image_patch(2)).await?;
    setup.wait_for_deployment("web").await?;
    let history = setup.history(&begun).await?;
    history.expect_within(6 + 2, 6 - 1)?;
    history.expect_pods(6, 6)
}

/// A policy that refuses images of one registry.
fn policy() -> [Value; 2] {
    let name = "no-foreign-images";
    let rules = json!([{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["daemonsets"]}]);
    let api = "admissionregistration.k8s.io/v1";
    [
        json!({"apiVersion": api, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": rules},
            "validations": [{
                "expression": "object.spec.template.spec.containers.all(c, !c.image.startsWith('foreign.example/'))",
                "message": "images of foreign.example are not allowed",
            }],
        }}),
        json!({"apiVersion": api, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name}, "spec": {
            "policyName": name, "validationActions": ["Deny"],
        }}),
    ]
}

fn manifest(folder: &Path, image: &str) -> Result<String> {
    let file = folder.join("new.yaml");
    // JSON is YAML. Most fields of the template are left to the apiserver's defaults.
    let object = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"}, "spec": {
        "selector": {"matchLabels": {"app": "agent"}},
        "template": {
            "metadata": {"labels": {"app": "agent"}},
            "spec": {"containers": [{"name": "main", "image": image}]},
        },
    }});
    fs::write(&file, object.to_string())?;
    Ok(file.display().to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_apiserver_completes_and_checks_the_planned_change() -> Result<()> {
    let setup = Setup::start(SetupOptions::nodes(4)).await?;
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name).display().to_string();
    let [first, second] = ["registry.example/agent:1", "registry.example/agent:2"];
    let file = manifest(folder.path(), first)?;

    // A new workload has a plan, and nothing is stored.
    let output = setup.nodewise(&["plan", "-f", &file, "-o", "json"]).await?;
    ensure!(output.status.success(), "{output:?}");
    let plans = json_of(&output)?;
    assert_eq!(plans[0]["change"], "new", "{plans}");
    assert_eq!(plans[0]["forecast"]["end"]["result"], "done", "{plans}");
    let found = setup.kubectl(&["get", "daemonsets", "-o", "name"]).await?;
    assert_eq!(found.trim(), "");

    setup.kubectl(&["apply", "--server-side", "-f", &file]).await?;
    setup.wait_for_rollout("agent").await?;
    let unchanged = setup.nodewise(&["plan", "-f", &file, "-o", "json"]).await?;
    // With the apiserver's defaults the manifest is what is stored.
    assert_eq!(json_of(&unchanged)?[0]["change"], "unchanged", "{unchanged:?}");

    manifest(folder.path(), second)?;
    let kept = path("new.plan");
    let output = setup
        .nodewise(&["plan", "-f", &file, "--detailed-exitcode"])
        .await?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    for expected in [
        "DaemonSet default/agent: changed",
        "-   - image: registry.example/agent:1",
        "+   - image: registry.example/agent:2",
        "new revision: ControllerRevision agent-",
        "done after",
    ] {
        ensure!(text.contains(expected), "{expected} in {text}");
    }
    let keep = setup.nodewise(&["plan", "-f", &file, "--out", &kept]).await?;
    ensure!(keep.status.success(), "{keep:?}");
    let compare = ["plan", "-f", &file, "--compare", &kept];
    let same = setup.nodewise(&compare).await?;
    assert_eq!(same.status.code(), Some(0), "{same:?}");

    // Another change comes first: the kept plan is not that of the cluster any more.
    setup.kubectl(&["cordon", "node-0000"]).await?;
    setup
        .patch(
            "agent",
            json!({"spec": {"template": {"spec": {"nodeSelector": {"none": "such"}}}}}),
        )
        .await?;
    eventually(DEADLINE, "the plan to differ", async || {
        let output = setup.nodewise(&compare).await?;
        ensure!(output.status.code() == Some(2), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(text.contains("the plan has changed"), "{text}");
        ensure!(text.contains("1 node changed: node-0000"), "{text}");
        Ok(())
    })
    .await?;

    for object in policy() {
        let file = path("policy.json");
        fs::write(&file, object.to_string())?;
        setup.kubectl(&["apply", "-f", &file]).await?;
    }
    manifest(folder.path(), "foreign.example/agent:3")?;
    eventually(DEADLINE, "the policy to refuse the image", async || {
        let plan = setup.nodewise(&["plan", "-f", &file]).await?;
        let text = String::from_utf8_lossy(&plan.stderr).into_owned();
        ensure!(plan.status.code() == Some(1), "{plan:?}");
        ensure!(
            text.contains("images of foreign.example are not allowed"),
            "{text}"
        );
        Ok(())
    })
    .await?;
    let image = [
        "simulate",
        "ds/agent",
        "-n",
        "default",
        "--image",
        "foreign.example/agent:3",
    ];
    let refused = setup.nodewise(&image).await?;
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    ensure!(text.contains("the dry run is refused"), "{text}");
    Ok(())
}

/// The manifest of a DaemonSet that tolerates these taints and whose container has these environment variables.
fn with_tolerations(taints: &[&str], variables: &[&str]) -> Value {
    let tolerations: Vec<Value> = taints
        .iter()
        .map(|taint| json!({"key": taint, "operator": "Exists", "effect": "NoSchedule"}))
        .collect();
    let variables: Vec<Value> = variables
        .iter()
        .map(|name| json!({"name": name, "value": "1"}))
        .collect();
    json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"}, "spec": {
        "selector": {"matchLabels": {"app": "agent"}},
        "template": {
            "metadata": {"labels": {"app": "agent"}},
            "spec": {
                "containers": [{"name": "main", "image": "registry.example/agent:1", "env": variables}],
                "tolerations": tolerations,
            },
        },
    }})
}

/// Plain `kubectl apply` removes what the manifest has no longer, and keeps what others have set. The plan foretells exactly that.
#[tokio::test(flavor = "multi_thread")]
async fn a_field_that_the_manifest_has_no_longer_is_removed() -> Result<()> {
    let setup = Setup::start(SetupOptions::nodes(2)).await?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("agent.yaml");
    let file = path.display().to_string();
    let plan = ["plan", "-f", &file, "-o", "json"];

    fs::write(&path, with_tolerations(&["gpu", "spot"], &["A", "B"]).to_string())?;
    setup.kubectl(&["apply", "-f", &file]).await?;
    setup
        .kubectl(&["set", "env", "daemonset/agent", "THEIRS=1"])
        .await?;
    setup.wait_for_rollout("agent").await?;
    let unchanged = setup.nodewise(&plan).await?;
    assert_eq!(json_of(&unchanged)?[0]["change"], "unchanged", "{unchanged:?}");

    fs::write(&path, with_tolerations(&["spot"], &["B"]).to_string())?;
    let output = setup.nodewise(&["plan", "-f", &file]).await?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let is_removed = |what: &str| {
        text.lines()
            .any(|line| line.starts_with('-') && line.contains(what))
    };
    ensure!(output.status.success() && is_removed("key: gpu"), "{output:?}");
    ensure!(is_removed("name: A") && !is_removed("THEIRS"), "{text}");

    // The name of a revision has the hash of the whole template.
    let plans = json_of(&setup.nodewise(&plan).await?)?;
    let revision = plans[0]["revision"]["name"].as_str().context("a revision")?;
    let revision = revision.trim_start_matches("ControllerRevision ");
    setup.kubectl(&["apply", "-f", &file]).await?;
    setup.wait_for_rollout("agent").await?;
    let stored = setup
        .kubectl(&["get", "controllerrevisions", "-o", "name"])
        .await?;
    ensure!(stored.contains(revision), "no {revision} in {stored}");
    let unchanged = setup.nodewise(&plan).await?;
    assert_eq!(json_of(&unchanged)?[0]["change"], "unchanged", "{unchanged:?}");

    // `simulate -f` makes the same dry run.
    fs::write(&path, with_tolerations(&["other"], &["B"]).to_string())?;
    let simulate = ["simulate", "ds/agent", "-n", "default", "-f", &file, "-o", "json"];
    let played = json_of(&setup.nodewise(&[&simulate[..], &FAST].concat()).await?)?;
    let differences = played["differences"].to_string();
    let expected = "spec.template.spec.tolerations[0].key: spot → other";
    ensure!(differences.contains(expected), "{played}");
    // So does a merge without the apiserver.
    let played = json_of(
        &setup
            .nodewise(&[&simulate[..], &FAST, &["--local"]].concat())
            .await?,
    )?;
    assert_eq!(played["differences"].to_string(), differences, "{played}");
    Ok(())
}
