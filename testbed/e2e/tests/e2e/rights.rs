//! The RBAC rights in `deploy/`: none is missing and none is unused. All other tests run executors with these rights
//! too.

use anyhow::{Context as _, Result, ensure};
use kube::api::PatchParams;
use nodewise_conformance::{
    Candidate, Cluster, DEADLINE, EXECUTOR_USER, Run, all_cases, binaries,
    report::{self, Verdict},
    rights::{self, Right},
};
use nodewise_testbed::{AuditEvent, manifests};
use serde_json::{Value, json};

/// A right that no request uses by itself; see [`finalizers_right_is_needed`].
const FINALIZERS: &str = "update daemonsets/finalizers.apps";

/// Cases that together use every right.
const CASES: [&str; 6] = [
    // 50 pods produce enough events that the executor aggregates them.
    "create-one-pod-per-node",
    "adopt-orphan",
    "pod-name-taken",
    "revision-name-collision",
    "revision-history-limit",
    "rollback-keeps-pods",
];

/// Flags as in `deploy/`: leader election and a Service, which has no endpoints here; the server of the case is
/// configured too. The lease is renewed early, because the cases may take less than the default of two seconds.
const FLAGS: &str = "--mode own --http-listen 127.0.0.1:0 --leader-elect=true --lease-namespace=nodewise-system --retry-period=200ms \
                     --server $NODEWISE_SERVER,kubernetes:///nodewise-server.nodewise-system:grpc --plaintext";

#[tokio::test(flavor = "multi_thread")]
async fn every_right_is_used_and_none_is_missing() -> Result<()> {
    let executor = tokio::task::spawn_blocking(binaries).await??.executor.display();
    let logs = tempfile::tempdir()?;
    let run = Run {
        lanes: 1,
        deadline: DEADLINE,
        logs: Some(logs.path().to_owned()),
    };
    let cases: Vec<_> = all_cases()
        .into_iter()
        .filter(|case| CASES.contains(&case.id))
        .collect();
    ensure!(cases.len() == CASES.len(), "not all cases were found");
    let executor = format!("{executor} {FLAGS}");
    let outcomes = run.run(Candidate { executor, cases }, |_| ()).await?;
    let passed = outcomes.iter().all(|outcome| outcome.verdict == Verdict::Passed);
    ensure!(passed, "{}", report::table(&outcomes));

    let mut requests = AuditEvent::read_all(&logs.path().join("lane-1/audit.log"))?;
    requests.retain(|event| event.user == EXECUTOR_USER);
    let missing: Vec<_> = requests.iter().filter(|event| event.is_forbidden).collect();
    ensure!(missing.is_empty(), "rights are missing: {missing:?}");
    let objects = tokio::task::spawn_blocking(|| rights::objects("own")).await??;
    let given = Right::given_by(&objects)?;
    let unused: Vec<_> = rights::unused(&given, &requests)
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        unused,
        [FINALIZERS],
        "nobody uses these rights: take them out of deploy/kustomize"
    );
    Ok(())
}

/// The admission plugin in these clusters requires this right. Without it no pod can be created.
#[tokio::test(flavor = "multi_thread")]
async fn finalizers_right_is_needed() -> Result<()> {
    let cluster = Cluster::start().await?;
    let executor = cluster.plane().client_for(EXECUTOR_USER).await?;
    let owner = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "1", "controller": true, "blockOwnerDeletion": true,
    });
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "agent", "namespace": "default", "ownerReferences": [owner] },
        "spec": { "containers": [{ "name": "c", "image": "i" }] },
    });
    let dry_run = PatchParams::apply("test").dry_run();
    manifests::apply(&executor, &pod, &dry_run)
        .await
        .context("with the right")?;

    let objects = tokio::task::spawn_blocking(|| rights::objects("own")).await??;
    let find = |object: &&Value| {
        object["kind"] == "ClusterRole" && object["metadata"]["name"] == "nodewise-executor-own"
    };
    let mut role = objects.iter().find(find).context("the role")?.clone();
    let rules = role["rules"].as_array_mut().context("its rules")?;
    rules.retain(|rule| rule["resources"] != json!(["daemonsets/finalizers"]));
    manifests::apply(
        &cluster.client(),
        &role,
        &PatchParams::apply("nodewise-conformance"),
    )
    .await?;
    nodewise_testbed::eventually(DEADLINE, "a pod to be refused", async || {
        let error = manifests::apply(&executor, &pod, &dry_run)
            .await
            .err()
            .context("it is taken")?;
        ensure!(
            format!("{error:#}").contains("cannot set blockOwnerDeletion"),
            "{error:#}"
        );
        Ok(())
    })
    .await
}
