//! `nodewise check` on a real control plane, before and after installing.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::{Api, api::DeleteParams, api::PatchParams};
use nodewise_conformance::DEADLINE;
use nodewise_e2e::{Setup, SetupOptions};
use nodewise_testbed::{eventually, manifests};
use serde_json::{Value, json};

/// The printed text. Fails if the exit status is another one.
async fn check(setup: &Setup, args: &[&str], code: i32) -> Result<String> {
    let output = setup.nodewise(&[&["check"], args].concat()).await?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.code() == Some(code),
        "{}, expected {code}: {text}{errors}",
        output.status
    );
    Ok(text)
}

fn contains(text: &str, parts: &[&str]) -> Result<()> {
    // Lines are not wrapped, because standard output is no terminal.
    for part in parts {
        ensure!(text.contains(part), "no {part:?} in: {text}");
    }
    Ok(())
}

async fn apply(setup: &Setup, object: &Value) -> Result<()> {
    let params = PatchParams::apply("nodewise-e2e").force();
    manifests::apply(&setup.client(), object, &params).await.map(drop)
}

/// A mirror of the static pod that kubeadm runs.
fn controller_manager(name: &str, controllers: &str) -> Value {
    let flag = format!("--controllers={controllers}");
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": "kube-system", "labels": { "component": "kube-controller-manager" } },
        "spec": { "containers": [{ "name": "kube-controller-manager", "image": "i", "command": ["kube-controller-manager", flag] }] },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn says_before_installing_what_is_in_the_way() -> Result<()> {
    let setup = Setup::start(SetupOptions::nodes(1)).await?;
    let unknown = check(&setup, &["--pre", "--mode", "own"], 0).await?;
    contains(
        &unknown,
        &[
            "✓ the apiserver's version is v1.",
            "✓ the clocks of the apiserver and of this machine agree",
            "‼ which controllers kube-controller-manager runs is not known",
            "✓ you have the rights to install (all 13)",
            "✓ the manifests and the chart: PriorityClass system-cluster-critical exists",
            "✓ no webhook can refuse what Nodewise writes",
        ],
    )?;

    apply(&setup, &controller_manager("kcm-1", "*")).await?;
    let second = check(&setup, &["--pre", "--mode", "own"], 2).await?;
    contains(
        &second,
        &["× daemonset-controller has two owners: the executor to install and kube-controller-manager"],
    )?;
    contains(
        &check(&setup, &["--pre"], 0).await?,
        &["✓ daemonset-controller: kube-controller-manager is the only owner"],
    )?;

    let hook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": "policy" },
        "webhooks": [{
            "name": "pods.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": { "service": { "namespace": "policy", "name": "hook" } },
            "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"] }],
        }],
    });
    apply(&setup, &hook).await?;
    contains(
        &check(&setup, &["--pre"], 2).await?,
        &[
            "× ValidatingWebhookConfiguration policy, webhook pods.example.com: its Service policy/hook has no ready endpoint",
            "also sees the pods of namespace nodewise-system",
        ],
    )?;

    let none = setup.nodewise(&["check", "--context", "absent"]).await?;
    ensure!(none.status.code() == Some(1), "without a cluster: {none:?}");
    Ok(())
}

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

/// Applies the Secrets with certificates of this validity.
async fn install_certificates(setup: &Setup, days: u32) -> Result<()> {
    let output = Command::new(deploy().join("certificates.sh"))
        .args(["nodewise-system", "nodewise", &days.to_string()])
        .output()
        .context("running deploy/certificates.sh")?;
    ensure!(output.status.success(), "{output:?}");
    let folder = tempfile::tempdir()?;
    let secrets = folder.path().join("secrets.yaml");
    std::fs::write(&secrets, &output.stdout)?;
    apply_files(setup, ["-f", &secrets.display().to_string()]).await
}

/// Applies files or an overlay.
async fn apply_files(setup: &Setup, source: [&str; 2]) -> Result<()> {
    let args = [&["apply", "--server-side", "--force-conflicts"], &source[..]].concat();
    setup.kubectl(&args).await.map(|_| ())
}

#[tokio::test(flavor = "multi_thread")]
async fn says_after_installing_what_is_broken() -> Result<()> {
    let setup = Setup::start(SetupOptions::nodes(3).leader_election()).await?;
    setup.wait_for_leader().await?;
    contains(
        &check(&setup, &[], 2).await?,
        &[
            "× namespace nodewise-system has no Deployment with label app.kubernetes.io/name=nodewise-executor",
        ],
    )?;
    // The pods of the manifests are fakes; the lease is held by the executor of the setup.
    install_certificates(&setup, 200).await?;
    let overlay = deploy().join("kustomize/overlays/own-secrets");
    apply_files(&setup, ["-k", &overlay.display().to_string()]).await?;
    apply(&setup, &controller_manager("kcm-1", "*,-daemonset-controller")).await?;
    // The apiserver cannot list RolloutPolicies for a moment after their definition was applied.
    let fine = eventually(DEADLINE, "all checks to be fine", async || {
        let text = check(&setup, &[], 0).await?;
        contains(&text, &["0 errors, 0 warnings"])?;
        Ok(text)
    })
    .await?;
    contains(
        &fine,
        &[
            "✓ Deployment nodewise-system/nodewise-server has 1 of 1 pods ready",
            "✓ Deployment nodewise-system/nodewise-executor has 2 of 2 pods ready",
            "✓ daemonset-controller: Deployment nodewise-system/nodewise-executor is the only owner",
            "✓ ServiceAccount nodewise-system/nodewise-executor has the rights that the executor needs",
            "✓ Secret nodewise-system/nodewise-executor-tls: the certificate (tls.crt) is valid for ",
            "✓ Lease nodewise-system/nodewise-executor is held by",
        ],
    )?;

    let policy = json!({
        "apiVersion": "nodewise.dev/v1alpha1", "kind": "RolloutPolicy",
        "metadata": { "name": "agents", "namespace": "default" },
        "spec": { "targets": { "names": ["agnet"] }, "stages": [{ "name": "all" }] },
    });
    apply(&setup, &policy).await?;
    contains(
        &check(&setup, &[], 0).await?,
        &["‼ RolloutPolicy default/agents names the DaemonSet agnet, which does not exist"],
    )?;

    let bindings: Api<ClusterRoleBinding> = Api::all(setup.client());
    bindings
        .delete("nodewise-executor-own", &DeleteParams::default())
        .await?;
    install_certificates(&setup, 5).await?;
    setup.stop_executor().await?;
    let broken = eventually(DEADLINE, "the missing rights", async || {
        let text = check(&setup, &["-o", "json"], 2).await?;
        contains(&text, &["lacks rights that the executor needs"])?;
        Ok(text)
    })
    .await?;
    let report: Value = serde_json::from_str(&broken)?;
    let failed: Vec<_> = (report["checks"].as_array().context("checks")?.iter())
        .filter(|one| one["result"] == "error")
        .map(|one| one["section"].as_str().unwrap_or_default())
        .collect();
    for section in ["rights", "certificates", "lease"] {
        ensure!(failed.contains(&section), "no error in {section}: {broken}");
    }
    ensure!(report["result"] == "error", "{broken}");
    contains(
        &broken,
        &["create pods", "the certificate (tls.crt) is valid for "],
    )
}
