//! Which pods a ReplicaSet creates, deletes, adopts and releases.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::ReplicaSet;
use kube::{
    ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams},
};
use nodewise_testbed::PodBehaviour;
use serde_json::json;

use super::{make_orphans, replace_one, start};
use crate::{
    case::{Case, shared},
    cases::{
        claims::relabel,
        failures::create_quota,
        placement::{expect_batches_in_order, expect_nothing_forbidden},
    },
    fixture::Fixture,
    replicas::controller_of,
    workload_builder::replica_set,
};

pub(super) const CASES: &[Case] = &[
    shared!(
        "rs-create",
        "A ReplicaSet gets exactly as many pods as replicas, in batches one after the other, and no request is forbidden.",
        create
    ),
    shared!(
        "rs-scale-up",
        "A larger ReplicaSet gets the missing pods, and keeps those that it has.",
        scale_up
    ),
    shared!(
        "rs-scale-down",
        "Of a smaller ReplicaSet, pods that are not ready are deleted first, then those with a lower deletion cost.",
        scale_down
    ),
    shared!(
        "rs-adopt",
        "Matching orphans are adopted and count as replicas. Those that are too many are deleted.",
        adopt
    ),
    shared!(
        "rs-release",
        "A pod whose labels no longer match is released, keeps running, and is replaced.",
        release
    ),
    shared!(
        "rs-failed-pod",
        "A failed pod is replaced, and is not deleted.",
        failed_pod
    ),
    shared!(
        "rs-quota-then-raised",
        "When a quota rejects creates, slow start stops, and the condition ReplicaFailure gives the reason. Once the quota is \
         raised, the pods are created, and the condition disappears.",
        quota_then_raised
    ),
    shared!(
        "rs-recreate",
        "A ReplicaSet that is deleted and created again with the same name gets its own pods.",
        recreate
    ),
];

//
async fn create(fixture: &Fixture) -> Result<()> {
    let begun = fixture.begin_history("agent").await?;
    start(fixture, 40).await?;
    let history = fixture.history(&begun).await?;
    history.expect_pods(40, 0)?;
    expect_batches_in_order(fixture, "agent").await?;
    expect_nothing_forbidden(fixture).await
}

//
async fn scale_up(fixture: &Fixture) -> Result<()> {
    start(fixture, 3).await?;
    let begun = fixture.begin_history("agent").await?;
    fixture.scale::<ReplicaSet>("agent", 8).await?;
    fixture.wait_for_replica_set("agent").await?;
    fixture.history(&begun).await?.expect_pods(5, 0)
}

//
async fn scale_down(fixture: &Fixture) -> Result<()> {
    start(fixture, 6).await?;
    let pods = fixture.live_pods("agent").await?;
    let [unready, cheap, ..] = &pods[..] else {
        anyhow::bail!("there are too few pods");
    };
    let plane = fixture.cluster().plane();
    plane
        .set_pod_behaviour(fixture.namespace(), &unready.name_any(), PodBehaviour::Unready)
        .await?;
    let cost =
        json!({ "metadata": { "annotations": { "controller.kubernetes.io/pod-deletion-cost": "-1" } } });
    fixture
        .pod_api()
        .patch(&cheap.name_any(), &PatchParams::default(), &Patch::Merge(cost))
        .await?;
    fixture
        .eventually("five ready pods", async || {
            let set = fixture.replica_set_api().get("agent").await?;
            let ready = set.status.and_then(|status| status.ready_replicas);
            ensure!(ready == Some(5), "{ready:?}");
            Ok(())
        })
        .await?;
    for (replicas, gone) in [(5, unready), (4, cheap)] {
        fixture.scale::<ReplicaSet>("agent", replicas).await?;
        fixture
            .eventually(format!("{replicas} pods"), async || {
                let pods = fixture.live_pods("agent").await?;
                ensure!(i32::try_from(pods.len())? == replicas, "{} pods", pods.len());
                let kept = pods.iter().any(|pod| pod.uid() == gone.uid());
                ensure!(!kept, "{} was kept", gone.name_any());
                Ok(())
            })
            .await?;
    }
    fixture.scale::<ReplicaSet>("agent", 0).await?;
    fixture.wait_for_replica_set("agent").await?;
    Ok(())
}

//
async fn adopt(fixture: &Fixture) -> Result<()> {
    fixture.add_nodes(2).await?;
    fixture
        .start_replica_set(replica_set("earlier", 1).build())
        .await?;
    make_orphans(fixture, 3).await?;
    // Watches of pods and of ReplicaSets are not ordered. An executor that replaces this pod has seen the orphans.
    replace_one(fixture, "earlier").await?;
    let begun = fixture.begin_history("agent").await?;
    let set = fixture.start_replica_set(replica_set("agent", 5).build()).await?;
    for pod in fixture.live_pods("agent").await? {
        ensure!(
            controller_of(&pod.metadata) == set.metadata.uid.as_deref(),
            "{} is not adopted",
            pod.name_any()
        );
    }
    fixture.history(&begun).await?.expect_pods(2, 0)?;
    for number in 0..3 {
        fixture
            .pod_api()
            .delete(&format!("orphan-{number}"), &DeleteParams::default())
            .await?;
    }
    fixture.wait_for_replica_set("agent").await?;
    let begun = fixture.begin_history("agent").await?;
    make_orphans(fixture, 2).await?;
    fixture
        .eventually("two pods to be deleted", async || {
            let deleted = fixture.deletes_of_pods().await?.len();
            ensure!(deleted == 2, "{deleted} were deleted");
            Ok(())
        })
        .await?;
    fixture.wait_for_replica_set("agent").await?;
    let history = fixture.history(&begun).await?;
    // The two orphans are the only new pods.
    ensure!(
        (history.created.len(), history.deleted.len()) == (2, 2),
        "{history:?}"
    );
    Ok(())
}

//
async fn release(fixture: &Fixture) -> Result<()> {
    start(fixture, 3).await?;
    let pod = fixture.live_pods("agent").await?.swap_remove(0).name_any();
    relabel(fixture, &pod).await?;
    wait_until_released(fixture, &pod).await
}

/// Waits until a relabelled pod is released, and the ReplicaSet has another pod instead.
pub(super) async fn wait_until_released(fixture: &Fixture, pod: &str) -> Result<()> {
    fixture
        .eventually(format!("the pod {pod} to be released"), async || {
            let released = fixture.pod_api().get(pod).await?;
            ensure!(
                controller_of(&released.metadata).is_none(),
                "it is still controlled"
            );
            ensure!(
                released.metadata.deletion_timestamp.is_none(),
                "it is being deleted"
            );
            Ok(())
        })
        .await?;
    fixture.wait_for_replica_set("agent").await?;
    Ok(())
}

//
async fn failed_pod(fixture: &Fixture) -> Result<()> {
    start(fixture, 3).await?;
    let begun = fixture.begin_history("agent").await?;
    let pod = fixture.live_pods("agent").await?.swap_remove(0).name_any();
    fixture.fail_pod(&pod).await?;
    fixture
        .eventually("another pod", async || {
            let pods = fixture.pod_names("agent").await?;
            // The simulated kubelet takes a moment.
            ensure!(!pods.contains(&pod), "{pod} has not failed yet");
            let set = fixture.replica_set_api().get("agent").await?;
            let available = set.status.and_then(|status| status.available_replicas);
            let pods = pods.len();
            ensure!((pods, available) == (3, Some(3)), "{pods} pods, {available:?}");
            Ok(())
        })
        .await?;
    fixture.history(&begun).await?.expect_pods(1, 0)
}

/// The reason of the condition ReplicaFailure of `agent`, if it has one.
async fn failure(fixture: &Fixture) -> Result<Option<String>> {
    let set = fixture.replica_set_api().get("agent").await?;
    let conditions = set.status.and_then(|status| status.conditions);
    let mut failures = conditions.into_iter().flatten();
    let failure = failures.find(|condition| condition.type_ == "ReplicaFailure");
    Ok(failure.map(|condition| {
        let message = condition.message.unwrap_or_default();
        format!("{}: {message}", condition.reason.unwrap_or_default())
    }))
}

//
async fn quota_then_raised(fixture: &Fixture) -> Result<()> {
    fixture.add_nodes(2).await?;
    let quotas = create_quota(fixture, json!({ "hard": { "pods": "5" } })).await?;
    let _: ReplicaSet = fixture.create_as(replica_set("agent", 40).build()).await?;
    fixture
        .eventually("five pods and the condition ReplicaFailure", async || {
            let pods = fixture.live_pods("agent").await?.len();
            ensure!(pods == 5, "{pods} pods");
            let failure = failure(fixture).await?.context("no such condition")?;
            ensure!(
                failure.starts_with("FailedCreate: ") && failure.contains("exceeded quota"),
                "{failure}"
            );
            Ok(())
        })
        .await?;
    let writes = fixture.writes().await?;
    let is_refused = |event: &&nodewise_testbed::AuditEvent| event.resource == "pods" && event.code == 403;
    let refused = writes.iter().filter(is_refused).count();
    ensure!(
        refused < 25,
        "{refused} creates were refused: slow start did not stop"
    );
    let more = Patch::Merge(json!({ "spec": { "hard": { "pods": "500" } } }));
    quotas.patch("few-pods", &PatchParams::default(), &more).await?;
    fixture.wait_for_replica_set("agent").await?;
    fixture
        .eventually("the condition to disappear", async || {
            let failure = failure(fixture).await?;
            ensure!(failure.is_none(), "{failure:?}");
            Ok(())
        })
        .await
}

//
async fn recreate(fixture: &Fixture) -> Result<()> {
    let first = start(fixture, 5).await?;
    fixture
        .replica_set_api()
        .delete("agent", &DeleteParams::background())
        .await?;
    fixture
        .eventually("the first one to be gone", async || {
            let left = fixture.replica_set_api().get_opt("agent").await?;
            ensure!(left.is_none(), "it is still there");
            Ok(())
        })
        .await?;
    // Without a pause: the garbage collector may still be deleting the old pods.
    let second = fixture.start_replica_set(replica_set("agent", 5).build()).await?;
    ensure!(first.metadata.uid != second.metadata.uid, "it is the same one");
    for pod in fixture.live_pods("agent").await? {
        ensure!(
            controller_of(&pod.metadata) == second.metadata.uid.as_deref(),
            "{} is of the first one",
            pod.name_any()
        );
    }
    Ok(())
}
