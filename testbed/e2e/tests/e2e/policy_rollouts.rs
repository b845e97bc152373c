//! Rollouts with a RolloutPolicy, against a real control plane: a bad image is stopped after the canaries, and goes back where Nodewise
//! creates the pods, whatever crashes meanwhile.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context as _, Result, ensure};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::{
    Api, ResourceExt as _,
    api::{ListParams, Patch, PatchParams, PostParams},
    runtime::{WatchStreamExt as _, watcher},
};
use nodewise_conformance::{
    DEADLINE, daemon_set, image_patch,
    rights::{self, Right},
};
use nodewise_e2e::{Setup, SetupOptions};
use nodewise_testbed::eventually;
use serde_json::{Value, json};

const NODES: usize = 100;
/// The nodes node-0000 to node-0003, on which [`BAD_IMAGE`] crashes.
const BAD_NODES: usize = 4;
const CANARIES: usize = 5;
/// Crashes on four of the hundred nodes. Their label `hardware` differs, and the canaries are spread over it.
const BAD_IMAGE: &str = "registry.example/crashing-on-some:2";

/// A policy for `agent` with these canaries first. A node that is not available after ten seconds has failed.
fn policy() -> Value {
    json!({
        "apiVersion": "nodewise.dev/v1alpha1",
        "kind": "RolloutPolicy",
        "metadata": {"name": "agents", "namespace": "default"},
        "spec": {
            "targets": {"names": ["agent"]},
            "stages": [
                {"name": "canary", "replicas": CANARIES, "spreadBy": "hardware", "soak": "5s"},
                {"name": "rest", "maxUnavailable": "20%"},
            ],
            "progressDeadlineSeconds": 10,
        },
    })
}

async fn create_policy(setup: &Setup, policy: Value) -> Result<()> {
    let policy = serde_json::from_value(policy)?;
    setup.policy_api().create(&PostParams::default(), &policy).await?;
    wait_for_state(setup, "Complete").await?;
    Ok(())
}

async fn target(setup: &Setup) -> Result<Value> {
    let policy = setup.policy_api().get("agents").await?;
    let target = policy.data["status"]["targets"][0].clone();
    ensure!(
        !target.is_null(),
        "the policy has no status: {:?}",
        policy.data["status"]
    );
    Ok(target)
}

/// Waits until the rollout has this state, and returns it.
async fn wait_for_state(setup: &Setup, state: &str) -> Result<Value> {
    eventually(
        Duration::from_mins(3),
        &format!("the state {state}"),
        async || {
            let target = target(setup).await?;
            ensure!(
                target["state"] == state,
                "it is {}: {}; {}",
                target["state"],
                target["message"],
                target["stages"]
            );
            Ok(target)
        },
    )
    .await
}

/// Labels the nodes by their hardware.
async fn label_nodes(setup: &Setup) -> Result<()> {
    let nodes: Api<Node> = Api::all(setup.client());
    for index in 0..NODES {
        let hardware = if index < BAD_NODES { "b" } else { "a" };
        let patch = json!({"metadata": {"labels": {"hardware": hardware}}});
        let name = format!("node-{index:04}");
        nodes
            .patch(&name, &PatchParams::default(), &Patch::Merge(&patch))
            .await?;
    }
    Ok(())
}

/// The nodes that ever had a pod of this image.
fn touched(setup: &Setup, image: &'static str) -> tokio::sync::watch::Receiver<BTreeSet<String>> {
    let (told, nodes) = tokio::sync::watch::channel(BTreeSet::new());
    let pods: Api<Pod> = setup.pod_api();
    tokio::spawn(async move {
        let mut seen = std::pin::pin!(
            watcher(pods, watcher::Config::default())
                .default_backoff()
                .applied_objects()
        );
        while let Some(pod) = seen.next().await {
            let Ok(pod) = pod else { continue };
            let spec = pod.spec.unwrap_or_default();
            let is_of_image = spec
                .containers
                .iter()
                .any(|one| one.image.as_deref() == Some(image));
            if let Some(node) = spec.node_name.filter(|_| is_of_image) {
                told.send_modify(|nodes| {
                    nodes.insert(node);
                });
            }
        }
    });
    nodes
}

/// A cluster of a hundred nodes on which version 1 runs, with the policy.
async fn running(options: SetupOptions) -> Result<Setup> {
    let setup = Setup::start(options.rollout_policies()).await?;
    label_nodes(&setup).await?;
    setup
        .create(daemon_set("agent").max_unavailable(20).build())
        .await?;
    setup.wait_for_rollout("agent").await?;
    create_policy(&setup, policy()).await?;
    Ok(setup)
}

fn bad_image() -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": BAD_IMAGE}]}}}})
}

/// Fails unless every node has a ready pod of the first version, and no more nodes than the canaries ever had the bad image.
async fn expect_back(setup: &Setup, touched: &tokio::sync::watch::Receiver<BTreeSet<String>>) -> Result<()> {
    eventually(DEADLINE, "version 1 on every node", async || {
        let count = setup.count_of_version("agent", 1).await?;
        let ready = setup.observed_status("agent").await?.number_ready;
        ensure!(
            count == NODES && usize::try_from(ready)? == NODES,
            "{count} of version 1, {ready} ready"
        );
        Ok(())
    })
    .await?;
    let nodes = touched.borrow().clone();
    ensure!(
        !nodes.is_empty() && nodes.len() <= CANARIES,
        "{} nodes were touched: {nodes:?}",
        nodes.len()
    );
    Ok(())
}

// L-12, L-14, L-25, L-28, L-36, L-37.
#[tokio::test(flavor = "multi_thread")]
async fn a_bad_image_is_stopped_after_the_canaries_and_goes_back() -> Result<()> {
    let setup = running(SetupOptions::nodes(NODES)).await?;
    let touched = touched(&setup, BAD_IMAGE);
    let watch = setup.watch("agent");
    watch.arm().await?;
    let changed = setup.patch("agent", bad_image()).await?;
    let target = wait_for_state(&setup, "RolledBack").await?;
    expect_back(&setup, &touched).await?;
    let seen = watch.seen().await?;
    seen.expect_no_doubles()?;
    seen.expect_unavailable_at_most(CANARIES)?;
    assert_eq!(
        target["rejectedRevision"]["reason"], "FailureThreshold",
        "{target}"
    );
    // The spec is as the user wrote it, and people can wait for the end.
    let now = setup.daemon_set_api().get("agent").await?;
    assert_eq!(now.metadata.generation, changed.metadata.generation);
    setup
        .kubectl(&[
            "wait",
            "rolloutpolicy/agents",
            "--for=condition=RolledBack",
            "--timeout=10s",
        ])
        .await?;
    let printed = setup.kubectl(&["get", "rolloutpolicies"]).await?;
    for part in ["TARGET", "agent", "canary", "0/100", "RolledBack"] {
        ensure!(printed.contains(part), "{part} is not in:\n{printed}");
    }
    let events: Api<Event> = Api::namespaced(setup.client(), "default");
    eventually(
        DEADLINE,
        "Events on the DaemonSet and on the policy",
        async || {
            let events = events.list(&ListParams::default()).await?.items;
            for kind in ["DaemonSet", "RolloutPolicy"] {
                for reason in [
                    "RolloutStageStarted",
                    "RolloutRejected",
                    "RolloutRollingBack",
                    "RolloutRolledBack",
                ] {
                    let is_there = events.iter().any(|event| {
                        event.reason.as_deref() == Some(reason)
                            && event.involved_object.kind.as_deref() == Some(kind)
                    });
                    ensure!(is_there, "no {reason} on the {kind}");
                }
            }
            Ok(())
        },
    )
    .await?;
    // A good image goes through both stages, by evictions.
    let evicts = json!({"spec": {"disruption": "Evict"}});
    setup
        .policy_api()
        .patch("agents", &PatchParams::default(), &Patch::Merge(&evicts))
        .await?;
    setup.patch("agent", image_patch(3)).await?;
    let target = wait_for_state(&setup, "Complete").await?;
    let states: Vec<_> = target["stages"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|stage| &stage["state"])
        .collect();
    assert_eq!(states, ["Complete", "Complete"], "{target}");
    assert_eq!(setup.count_of_version("agent", 3).await?, NODES);
    expect_rights(&setup).await
}

/// The rights that an executor needs for policies, in mode `own`.
const RIGHTS: [&str; 4] = [
    "create pods/eviction",
    "list rolloutpolicies.nodewise.dev",
    "patch rolloutpolicies/status.nodewise.dev",
    "watch rolloutpolicies.nodewise.dev",
];

/// L-43: fails unless the executor has exactly these rights for policies, has used each, and has needed no other. A test of `deploy/`
/// compares the chart with the manifests.
async fn expect_rights(setup: &Setup) -> Result<()> {
    // Fails if a request was forbidden.
    let requests = setup.executor_requests().await?;
    let given = Right::given_by(&tokio::task::spawn_blocking(|| rights::objects("own")).await??)?;
    let of_policies = given.iter().filter(|right| rights::is_of_policies(right));
    let mut names: Vec<_> = of_policies.clone().map(ToString::to_string).collect();
    names.sort();
    assert_eq!(names, RIGHTS);
    let unused: Vec<_> = of_policies
        .filter(|right| !requests.iter().any(|request| right.is_used_by(request)))
        .map(ToString::to_string)
        .collect();
    ensure!(unused.is_empty(), "nobody uses these rights: {unused:?}");
    let of_secrets = given
        .iter()
        .map(ToString::to_string)
        .find(|right| right.contains(" secrets"));
    ensure!(of_secrets.is_none(), "it may read Secrets: {of_secrets:?}");
    let asked = requests.iter().find(|request| request.resource == "secrets");
    ensure!(asked.is_none(), "it asked for Secrets: {asked:?}");
    Ok(())
}

/// Kills the executor and the service in turns, every one to three seconds: at least six times, and until the rollout has this state.
async fn kill_until(setup: &mut Setup, state: &str) -> Result<()> {
    let mut kills = 0;
    loop {
        let is_there = target(setup).await.is_ok_and(|target| target["state"] == state);
        if is_there && kills >= 6 {
            return Ok(());
        }
        ensure!(kills < 60, "it does not come to an end: {}", target(setup).await?);
        // Between one and three seconds.
        tokio::time::sleep(Duration::from_millis(1_000 + (kills * 700) % 2_000)).await;
        if kills % 2 == 0 {
            setup.kill_executor()?;
            setup
                .start_executor()
                .await
                .context("starting the executor again")?;
        } else {
            setup.kill_server()?;
            setup.start_server_again().await?;
        }
        kills += 1;
    }
}

// L-34: the same, while the executor and the service are killed every few seconds.
#[tokio::test(flavor = "multi_thread")]
async fn kills_change_nothing_about_a_rollback() -> Result<()> {
    let mut setup = running(SetupOptions::nodes(NODES)).await?;
    let touched = touched(&setup, BAD_IMAGE);
    let watch = setup.watch("agent");
    watch.arm().await?;
    setup.patch("agent", bad_image()).await?;
    kill_until(&mut setup, "RolledBack").await?;
    expect_back(&setup, &touched).await?;
    let seen = watch.seen().await?;
    seen.expect_no_doubles()?;
    seen.expect_unavailable_at_most(CANARIES)
}

// L-38: beside the built-in controller a bad image is stopped as well. There is no way back, and the policy says so.
#[tokio::test(flavor = "multi_thread")]
async fn beside_the_built_in_controller_a_bad_image_is_stopped() -> Result<()> {
    let setup = Setup::start(SetupOptions::nodes(NODES).companion().rollout_policies()).await?;
    let _built_in = setup.cluster().start_upstream().await?;
    label_nodes(&setup).await?;
    setup.create(daemon_set("agent").on_delete().build()).await?;
    setup.wait_for_rollout("agent").await?;
    let mut limited = policy();
    limited["spec"]["onFailure"] = json!("Rollback");
    create_policy(&setup, limited).await?;
    let touched = touched(&setup, BAD_IMAGE);
    setup.patch("agent", bad_image()).await?;
    wait_for_state(&setup, "Rejected").await?;
    let nodes = touched.borrow().clone();
    ensure!(!nodes.is_empty() && nodes.len() <= CANARIES, "{nodes:?}");
    let policy = setup.policy_api().get("agents").await?;
    let accepted = &policy.data["status"]["conditions"][0];
    assert_eq!(accepted["reason"], "Limited", "{accepted}");
    ensure!(policy.name_any() == "agents");
    // Another template ends the rejection.
    setup.patch("agent", image_patch(3)).await?;
    wait_for_state(&setup, "Complete").await?;
    assert_eq!(setup.count_of_version("agent", 3).await?, NODES);
    Ok(())
}

/// How many nodes the canaries' stage may have without an available pod beside the built-in controller.
const COMPANION_BUDGET: usize = 2;

// L-11, L-34, L-38: beside the built-in controller, while the executor and the service are killed every few seconds. The budget of the
// stage holds at any time, and once the revision is rejected, no further node gets it.
#[tokio::test(flavor = "multi_thread")]
async fn kills_change_nothing_beside_the_built_in_controller() -> Result<()> {
    let options = SetupOptions::nodes(NODES).companion_without_lease();
    let mut setup = Setup::start(options.rollout_policies()).await?;
    let _built_in = setup.cluster().start_upstream().await?;
    label_nodes(&setup).await?;
    setup.create(daemon_set("agent").on_delete().build()).await?;
    setup.wait_for_rollout("agent").await?;
    let mut within_budget = policy();
    within_budget["spec"]["stages"][0]["maxUnavailable"] = json!(COMPANION_BUDGET);
    create_policy(&setup, within_budget).await?;
    let touched = touched(&setup, BAD_IMAGE);
    let watch = setup.watch("agent");
    watch.arm().await?;
    setup.patch("agent", bad_image()).await?;
    kill_until(&mut setup, "Rejected").await?;
    // Also when both are killed again after that.
    kill_until(&mut setup, "Rejected").await?;
    let nodes = touched.borrow().clone();
    ensure!(
        !nodes.is_empty() && nodes.len() <= CANARIES,
        "{} nodes were touched: {nodes:?}",
        nodes.len()
    );
    let old = setup.count_of_version("agent", 1).await?;
    assert_eq!(old, NODES - nodes.len(), "all others have the first version");
    let seen = watch.seen().await?;
    seen.expect_no_doubles()?;
    seen.expect_unavailable_at_most(COMPANION_BUDGET)?;
    ensure!(
        seen.most_unavailable > 0,
        "the bad image was not available somewhere"
    );
    // A good template then reaches every node, through both stages.
    setup.patch("agent", image_patch(3)).await?;
    kill_until(&mut setup, "Complete").await?;
    assert_eq!(setup.count_of_version("agent", 3).await?, NODES);
    watch.seen().await?.expect_no_doubles()
}
