//! The RBAC rights in `deploy/`: none is missing and none is unused. All other tests run executors with these rights
//! too.

use std::collections::BTreeSet;

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

/// The cases of ReplicaSets that together use every right of their controller.
const REPLICA_SETS: [&str; 3] = ["rs-create", "rs-adopt", "rs-scale-down"];

/// The same of Deployments.
const DEPLOYMENTS: [&str; 5] = [
    "deployment-create",
    "deployment-adopt",
    "deployment-name-collision",
    "deployment-history-limit",
    "deployment-rollback-annotation",
];

/// Runs these cases and returns the executor's requests. None of them was forbidden.
async fn requests(cases: &[&str], lane: &str) -> Result<Vec<AuditEvent>> {
    let executor = tokio::task::spawn_blocking(binaries).await??.executor.display();
    let logs = tempfile::tempdir()?;
    let run = Run {
        lanes: 1,
        deadline: DEADLINE,
        logs: Some(logs.path().to_owned()),
    };
    let mut chosen = all_cases();
    chosen.retain(|case| cases.contains(&case.id));
    ensure!(chosen.len() == cases.len(), "not all cases were found");
    let candidate = Candidate {
        executor: format!("{executor} {FLAGS}"),
        cases: chosen,
    };
    let outcomes = run.run(candidate, |_| ()).await?;
    let passed = outcomes.iter().all(|outcome| outcome.verdict == Verdict::Passed);
    ensure!(passed, "{}", report::table(&outcomes));

    let mut requests = AuditEvent::read_all(&logs.path().join(lane).join("audit.log"))?;
    requests.retain(|event| event.user == EXECUTOR_USER);
    let missing: Vec<_> = requests.iter().filter(|event| event.is_forbidden).collect();
    ensure!(missing.is_empty(), "rights are missing: {missing:?}");
    Ok(requests)
}

async fn objects(overlay: &'static str) -> Result<Vec<Value>> {
    tokio::task::spawn_blocking(move || rights::objects(overlay)).await?
}

fn unused(given: &BTreeSet<Right>, requests: &[AuditEvent]) -> Vec<String> {
    rights::unused(given, requests).map(ToString::to_string).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_right_is_used_and_none_is_missing() -> Result<()> {
    let requests = requests(&CASES, "lane-1").await?;
    let given = Right::given_by(&objects("own").await?)?;
    assert_eq!(
        unused(&given, &requests),
        [FINALIZERS],
        "nobody uses these rights: take them out of deploy/kustomize"
    );
    Ok(())
}

/// The same for the other controllers. The rights of all of them are in one overlay, in roles of their own.
#[tokio::test(flavor = "multi_thread")]
async fn rights_of_each_other_controller_are_used_and_none_is_missing() -> Result<()> {
    let (all, own) = (objects("own-all-controllers").await?, objects("own").await?);
    let of_daemon_sets = Right::given_by(&own)?;
    let is_of_deployments = |role: &Value| {
        let name = role["metadata"]["name"].as_str().unwrap_or_default();
        name.contains("-deployment")
    };
    let without: Vec<_> = all
        .iter()
        .filter(|role| !is_of_deployments(role))
        .cloned()
        .collect();
    for (cases, objects, finalizers) in [
        (&REPLICA_SETS[..], without, &["replicasets"][..]),
        (&DEPLOYMENTS, all, &["deployments", "replicasets"]),
    ] {
        let requests = requests(cases, "lane-1-replicas").await?;
        let given = Right::given_by(&objects)?;
        let is_given = |event: &&AuditEvent| given.iter().any(|right| right.is_used_by(event));
        let foreign: Vec<_> = requests
            .iter()
            .filter(|event| !event.resource.is_empty() && !is_given(event))
            .collect();
        ensure!(
            foreign.is_empty(),
            "rights of other controllers were used: {foreign:?}"
        );
        let added = given.difference(&of_daemon_sets).cloned().collect();
        let expected: Vec<_> = finalizers
            .iter()
            .map(|plural| format!("update {plural}/finalizers.apps"))
            .collect();
        assert_eq!(
            unused(&added, &requests),
            expected,
            "nobody uses these rights: take them out of deploy/kustomize"
        );
    }
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

    let objects = objects("own").await?;
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
