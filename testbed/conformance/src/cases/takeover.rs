//! The owner of the DaemonSets changes from upstream's controller to the executor, or back. Nothing may change in the
//! cluster.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::DaemonSet;
use nodewise_proto::v1::Verdict;
use serde_json::Value;

use crate::{
    api_proxy::{ApiProxy, add_later_fields, later_fields},
    case::{Case, solo},
    cluster::{EXECUTOR_USER, UPSTREAM_USER, Upstream},
    cluster_state::{ClusterState, DAEMON_SETS},
    fixture::{Fixture, SoloFixture},
    proxy::Mark,
    tricky_templates::{tricky_scheduling, tricky_strings, tricky_volumes},
    workload_builder::{daemon_set, image_patch},
};

pub(super) const CASES: &[Case] = &[
    solo!(
        "take-over-from-upstream",
        "The executor takes over DaemonSets with a history from kube-controller-manager: no pod restarts, and nothing is \
         written.",
        take_over_from_upstream
    ),
    solo!(
        "give-back-to-upstream",
        "kube-controller-manager takes over DaemonSets from the executor, and finds nothing to do.",
        give_back_to_upstream
    ),
    solo!(
        "unknown-fields",
        "Template fields that no client library knows cause no new revision, and are kept in revisions and pods.",
        unknown_fields
    ),
];

const NODES: usize = 4;

/// One DaemonSet that surges, one with OnDelete, and one with minReadySeconds.
const NAMES: [&str; 3] = ["surging", "ondelete", "waiting"];

/// Deletes one pod of a DaemonSet and waits until its node has another ready pod.
pub(super) async fn replace_one(fixture: &Fixture, name: &str) -> Result<()> {
    let (pod, uid) = fixture.delete_a_pod(name).await?;
    fixture
        .eventually(format!("another pod instead of {pod}"), async || {
            ensure!(!fixture.uids(name).await?.contains(&uid), "{pod} is still there");
            fixture.expect_settled(name).await
        })
        .await
}

/// Creates the DaemonSets and gives each a second revision, under the present owner. In the end one has it on all pods,
/// one on a single pod, and one is rolled back to its first template.
async fn make_history(fixture: &Fixture) -> Result<()> {
    for object in [
        tricky_volumes(daemon_set("surging")).max_surge("30%"),
        tricky_scheduling(daemon_set("ondelete")).on_delete(),
        tricky_strings(daemon_set("waiting")).max_unavailable("40%"),
    ] {
        fixture.create(object.build()).await?;
    }
    for name in NAMES {
        fixture.wait_for_rollout(name).await?;
    }
    for name in NAMES {
        fixture.patch(name, image_patch(2)).await?;
    }
    fixture
        .eventually("no pod of revision 2 before one is deleted", async || {
            let status = fixture.observed_status("ondelete").await?;
            ensure!(status.updated_number_scheduled.unwrap_or(0) == 0, "{status:?}");
            Ok(())
        })
        .await?;
    replace_one(fixture, "ondelete").await?;
    fixture
        .eventually("one pod of revision 2", async || {
            let status = fixture.observed_status("ondelete").await?;
            ensure!(status.updated_number_scheduled == Some(1), "{status:?}");
            Ok(())
        })
        .await?;
    for name in ["surging", "waiting"] {
        fixture.wait_for_rollout(name).await?;
    }
    fixture.patch("surging", image_patch(1)).await?;
    fixture.wait_for_rollout("surging").await?;
    for name in NAMES {
        fixture
            .eventually(format!("{name} to settle"), async || {
                fixture.expect_settled(name).await
            })
            .await?;
    }
    expect_revisions(fixture, "surging", &[2, 3]).await?;
    expect_revisions(fixture, "ondelete", &[1, 2]).await?;
    expect_revisions(fixture, "waiting", &[1, 2]).await
}

async fn expect_revisions(fixture: &Fixture, name: &str, expected: &[i64]) -> Result<()> {
    let revisions = fixture.revisions(name).await?;
    ensure!(revisions == expected, "{name} has revisions {revisions:?}");
    Ok(())
}

/// The new owner works: it replaces a deleted pod of `surging` without a new revision, and rolls out a new template.
/// The other two DaemonSets do not change.
async fn owner_works(fixture: &Fixture, before: &ClusterState, owner: &str) -> Result<()> {
    replace_one(fixture, "surging").await?;
    expect_revisions(fixture, "surging", &[2, 3])
        .await
        .context("a pod is no new template")?;
    let old = fixture.uids("surging").await?;
    fixture.patch("surging", image_patch(3)).await?;
    fixture.wait_until_settled("surging").await?;
    let new = fixture.uids("surging").await?;
    let kept = old.intersection(&new).count();
    ensure!(kept == 0, "{kept} pods were not replaced");
    expect_revisions(fixture, "surging", &[2, 3, 4]).await?;
    fixture.expect_same(before, &NAMES[1..]).await?;

    let events = fixture.audit_since(before).await?;
    let made = |resource: &str| -> Vec<&str> {
        let creates = events
            .iter()
            .filter(|event| event.verb == "create" && event.code == 201);
        let of_resource = creates.filter(|event| event.resource == resource && event.subresource.is_empty());
        of_resource.map(|event| event.user.as_str()).collect()
    };
    let (revisions, pods) = (made("controllerrevisions"), made("pods"));
    ensure!(revisions == [owner], "revisions were made by {revisions:?}");
    ensure!(pods == vec![owner; NODES + 1], "pods were made by {pods:?}");
    Ok(())
}

/// Waits until the executor has got a plan for each of these workloads since then.
async fn wait_for_plans(fixture: &Fixture, since: Mark, names: &[&str]) -> Result<()> {
    fixture
        .eventually("a plan for each workload", async || {
            for name in names {
                ensure!(!fixture.plans(since, name).is_empty(), "none for {name}");
            }
            Ok(())
        })
        .await
}

/// Fails unless every plan since then says that there is nothing to do, and the executor has written nothing.
async fn expect_idle_plans(
    fixture: &Fixture,
    since: Mark,
    before: &ClusterState,
    names: &[&str],
) -> Result<()> {
    for name in names {
        for plan in fixture.plans(since, name) {
            ensure!(
                plan.verdict() == Verdict::Noop,
                "it had something to do for {name}: {plan:?}"
            );
        }
    }
    fixture.expect_same(before, names).await?;
    fixture.expect_no_writes(before, EXECUTOR_USER).await
}

/// Fails unless the executor reconciles the workloads, does so again after each wake-up until the longest
/// minReadySeconds has passed, and never writes.
pub(super) async fn expect_idle_executor(
    fixture: &Fixture,
    since: Mark,
    before: &mut ClusterState,
    names: &[&str],
) -> Result<()> {
    let came = Instant::now();
    wait_for_plans(fixture, since, names).await?;
    expect_idle_plans(fixture, since, before, names).await?;
    let mut last_round = false;
    while !last_round {
        last_round = came.elapsed() > before.longest_min_ready();
        fixture.label_a_node().await?;
        for name in names {
            let mark = fixture.proxy().mark();
            fixture.touch(before, name).await?;
            wait_for_plans(fixture, mark, &[name]).await?;
        }
        expect_idle_plans(fixture, since, before, names).await?;
    }
    Ok(())
}

/// The same for upstream's controller.
pub(super) async fn expect_idle_upstream(
    fixture: &Fixture,
    upstream: &Upstream,
    before: &mut ClusterState,
    names: &[&str],
) -> Result<()> {
    let (came, namespace) = (Instant::now(), fixture.namespace());
    for name in names {
        upstream.synced_since(0, before.kind(), namespace, name).await?;
    }
    let mut last_round = false;
    while !last_round {
        fixture.expect_same(before, names).await?;
        fixture.expect_no_writes(before, UPSTREAM_USER).await?;
        last_round = came.elapsed() > before.longest_min_ready();
        fixture.label_a_node().await?;
        for name in names {
            let syncs = upstream.syncs(before.kind(), namespace, name);
            fixture.touch(before, name).await?;
            upstream
                .synced_since(syncs, before.kind(), namespace, name)
                .await?;
        }
    }
    fixture.expect_same(before, names).await?;
    fixture.expect_no_writes(before, UPSTREAM_USER).await
}

fn expect_whole(state: &ClusterState) -> Result<()> {
    let (pods, revisions) = (state.count("Pod"), state.count("ControllerRevision"));
    ensure!(
        (pods, revisions) == (NAMES.len() * NODES, 6),
        "{pods} pods and {revisions} revisions"
    );
    Ok(())
}

async fn take_over_from_upstream(solo: &mut SoloFixture) -> Result<()> {
    solo.add_nodes(NODES).await?;
    let upstream = solo.cluster().start_upstream().await?;
    make_history(solo).await?;
    upstream.stop().await?;
    let mut before = solo.cluster_state(DAEMON_SETS, &NAMES).await?;
    expect_whole(&before)?;

    let since = solo.proxy().mark();
    solo.start()?;
    expect_idle_executor(solo, since, &mut before, &NAMES).await?;
    owner_works(solo, &before, EXECUTOR_USER).await
}

async fn give_back_to_upstream(solo: &mut SoloFixture) -> Result<()> {
    solo.add_nodes(NODES).await?;
    solo.start()?;
    make_history(solo).await?;
    solo.stop().await?;
    let mut before = solo.cluster_state(DAEMON_SETS, &NAMES).await?;
    expect_whole(&before)?;

    let upstream = solo.cluster().start_upstream().await?;
    expect_idle_upstream(solo, &upstream, &mut before, &NAMES).await?;
    owner_works(solo, &before, UPSTREAM_USER).await?;
    upstream.stop().await
}

/// Whether all fields of a later version are in a pod template or pod, with the right values.
fn has_later_fields(template: &Value) -> bool {
    let mut with_them = template.clone();
    if let Some(spec) = with_them.pointer_mut("/spec").and_then(Value::as_object_mut) {
        // Removed and added again: a field with a different value is as wrong as a missing one.
        spec.remove(later_fields()[0].0);
        let containers = spec.get_mut("containers").and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
            container.remove(later_fields()[1].0);
        }
    }
    let without_them = with_them.clone();
    add_later_fields(&mut with_them);
    with_them == *template && without_them != *template
}

/// The data of the newest revision of a DaemonSet, as the apiserver stores it.
async fn newest_data(fixture: &Fixture, name: &str) -> Result<Value> {
    let revisions = fixture.revision_objects(name).await?;
    let newest = revisions.into_iter().max_by_key(|revision| revision.revision);
    let data = newest.and_then(|revision| revision.data);
    Ok(data.context("a revision with data")?.0)
}

/// The templates have fields that no API type knows. These fields take part in the comparison with revisions, and are
/// in the revisions that the executor writes and in the pods that it creates. So neither the first nor a second start
/// of the executor restarts a pod.
///
/// Client libraries know all fields of the newest apiserver, so [`ApiProxy`] adds the fields. The real apiserver behind
/// it drops them from stored pods, so the test cannot show that pods keep them.
async fn unknown_fields(solo: &mut SoloFixture) -> Result<()> {
    let name = "later";
    solo.add_nodes(NODES).await?;
    let upstream = solo.cluster().start_upstream().await?;
    let object = tricky_strings(daemon_set(name)).max_unavailable("40%").build();
    let mut later = object.clone();
    add_later_fields(&mut later["spec"]["template"]);
    let typed: DaemonSet = serde_json::from_value(later.clone())?;
    ensure!(
        has_later_fields(&later["spec"]["template"])
            && !has_later_fields(&serde_json::to_value(typed)?["spec"]["template"]),
        "the API types know the later fields by now: choose others"
    );
    solo.create(object).await?;
    solo.wait_until_settled(name).await?;
    upstream.stop().await?;

    let mut before = solo.cluster_state(DAEMON_SETS, &[name]).await?;
    let newer = ApiProxy::newer(solo.cluster()).await?;
    let servers = [solo.proxy().url()];
    let since = solo.proxy().mark();
    solo.start_with(Some(newer.kubeconfig()), &servers)?;
    expect_idle_executor(solo, since, &mut before, &[name]).await?;

    replace_one(solo, name).await?;
    expect_revisions(solo, name, &[1]).await?;
    solo.patch(name, image_patch(2)).await?;
    solo.wait_until_settled(name).await?;
    expect_revisions(solo, name, &[1, 2]).await?;
    let data = newest_data(solo, name).await?;
    ensure!(
        has_later_fields(&data["spec"]["template"]),
        "revision 2 lacks fields: {data:#}"
    );
    let pods = newer.requested_pods();
    ensure!(pods.len() == 1 + NODES, "{} pods were asked for", pods.len());
    for pod in pods {
        ensure!(has_later_fields(&pod), "a pod lacks fields: {pod:#}");
    }

    solo.stop().await?;
    let mut before = solo.cluster_state(DAEMON_SETS, &[name]).await?;
    let since = solo.proxy().mark();
    solo.start_with(Some(newer.kubeconfig()), &servers)?;
    expect_idle_executor(solo, since, &mut before, &[name]).await
}
