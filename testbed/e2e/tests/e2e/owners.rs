//! Each kind of workload has an owner of its own: the executor, or a controller of kube-controller-manager.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use kube::api::ListParams;
use nodewise_conformance::{
    Controllers, EXECUTOR_USER, UPSTREAM_USER, daemon_set, deployment, image_patch, replica_set,
};
use nodewise_e2e::{OBSERVER_COMPONENTS, Setup, SetupOptions};
use nodewise_testbed::AuditEvent;

/// One process owns DaemonSets and observes the other kinds, for which it has only the rights to read.
#[tokio::test(flavor = "multi_thread")]
async fn daemon_sets_are_owned_while_other_kinds_are_observed() -> Result<()> {
    let options = SetupOptions::nodes(3)
        .controllers("*", OBSERVER_COMPONENTS)
        .executor_arg("--mode=deployment=observe,replicaset=observe");
    let setup = Setup::start(options).await?;
    let _: Deployment = setup.create_as(deployment("web", 2).build()).await?;
    let _: ReplicaSet = setup.create_as(replica_set("single", 2).build()).await?;
    setup.roll_out("agent", daemon_set("agent").build()).await?;
    let planned = [
        ("Deployment", "CreateObject", "NEW_TEMPLATE"),
        ("ReplicaSet", "CreatePod", "TOO_FEW_PODS"),
    ];
    setup.wait_for_planned(&planned).await?;
    let sets = setup.replica_set_api().list(&ListParams::default()).await?;
    let pods = setup.pod_api().list(&ListParams::default()).await?;
    let counts = (sets.items.len(), pods.items.len());
    ensure!(counts == (1, 3), "ReplicaSets and pods: {counts:?}");

    let built_in = Controllers::Deployments.names();
    let _running = setup.cluster().start_built_in(built_in).await?;
    setup.wait_for_deployment("web").await?;
    setup.wait_for_replica_set("single").await?;
    setup.patch("agent", image_patch(2)).await?;
    setup.wait_until_settled("agent").await?;
    // The Deployment, its ReplicaSet and the other one, without the DaemonSet.
    setup.divergences("0 of 3 workloads diverge").await?;
    let requests = setup.executor_requests().await?;
    let foreign = |event: &&AuditEvent| event.is_write() && !event.name.starts_with("agent");
    let foreign: Vec<_> = requests.iter().filter(foreign).collect();
    ensure!(foreign.is_empty(), "it wrote: {foreign:?}");
    Ok(())
}

/// Rolls out a Deployment, and rolls it back. Each pod is replaced once, within the bounds.
async fn create_roll_and_undo(setup: &Setup) -> Result<()> {
    let begun = setup.begin_history("web").await?;
    let web = deployment("web", 10).rolling(3, 2).build();
    setup.start_deployment(web).await?;
    setup.wait_for_sizes("web", &[(1, 10)]).await?;
    setup.history(&begun).await?.expect_pods(10, 0)?;
    for (version, sizes) in [(2, [(1, 0), (2, 10)]), (1, [(1, 10), (2, 0)])] {
        let begun = setup.begin_history("web").await?;
        setup.patch_deployment("web", image_patch(version)).await?;
        setup.wait_for_deployment("web").await?;
        setup.wait_for_sizes("web", &sizes).await?;
        let history = setup.history(&begun).await?;
        history.expect_within(13, 8)?;
        history.expect_pods(10, 10)?;
    }
    let sets = setup.replica_set_api().list(&ListParams::default()).await?;
    ensure!(sets.items.len() == 2, "{} ReplicaSets", sets.items.len());
    Ok(())
}

/// Resources and their subresources: what the owner of Deployments writes, and what the owner of ReplicaSets writes.
type Resources = [(&'static str, &'static str); 2];
const OF_DEPLOYMENTS: Resources = [("deployments", "status"), ("replicasets", "")];
const OF_REPLICA_SETS: Resources = [("pods", ""), ("replicasets", "status")];

/// Fails unless these are the resources that a user wrote, without Events, and if the executor lacked a right.
async fn expect_written(setup: &Setup, user: &str, expected: Resources) -> Result<()> {
    setup.executor_requests().await?;
    let is_write = |event: &AuditEvent| event.user == user && event.is_write() && event.resource != "events";
    let writes = setup.audit(is_write).await?;
    let written = writes
        .iter()
        .map(|event| (event.resource.as_str(), event.subresource.as_str()))
        .collect::<BTreeSet<_>>();
    ensure!(
        written == BTreeSet::from(expected),
        "{user} wrote {written:?}, and not {expected:?}"
    );
    Ok(())
}

/// A controller, and what it writes.
type Part = (&'static str, Resources);
const DEPLOYMENTS: Part = ("deployment-controller", OF_DEPLOYMENTS);
const REPLICA_SETS: Part = ("replicaset-controller", OF_REPLICA_SETS);

/// The executor runs one of the two controllers, with the rights of these components of `deploy/`, and
/// kube-controller-manager the other.
async fn roll_out_with_two_owners(
    own: Part,
    components: &'static [&'static str],
    built_in: Part,
) -> Result<()> {
    let setup = Setup::start(SetupOptions::nodes(3).controllers(own.0, components)).await?;
    let _running = setup.cluster().start_built_in(built_in.0).await?;
    create_roll_and_undo(&setup).await?;
    expect_written(&setup, EXECUTOR_USER, own.1).await?;
    expect_written(&setup, UPSTREAM_USER, built_in.1).await
}

#[tokio::test(flavor = "multi_thread")]
async fn own_deployments_are_rolled_out_by_the_built_in_replica_set_controller() -> Result<()> {
    roll_out_with_two_owners(DEPLOYMENTS, &["deployment-controller-own"], REPLICA_SETS).await
}

#[tokio::test(flavor = "multi_thread")]
async fn own_replica_sets_follow_the_built_in_deployment_controller() -> Result<()> {
    roll_out_with_two_owners(REPLICA_SETS, &["replicaset-controller-own"], DEPLOYMENTS).await
}
