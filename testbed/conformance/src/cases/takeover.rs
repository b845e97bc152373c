//! The DaemonSets change owner, from upstream's controller to the executor or back, and nothing happens to them.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::DaemonSet;
use nodewise_proto::v1::Verdict;
use serde_json::Value;

use crate::{
    api_proxy::{ApiProxy, add_later_fields, later_fields},
    case::{Case, solo},
    cluster::{EXECUTOR_USER, UPSTREAM_USER, Upstream},
    daemon_set::image_patch,
    odd::{odd_placement, odd_volumes, odd_words},
    picture::Picture,
    proxy::Mark,
    scene::{Scene, Solo},
};

pub(super) const CASES: &[Case] = &[
    solo!(
        "take-over-from-upstream",
        "DaemonSets with a history, taken over from kube-controller-manager: no pod restarts, and nothing at all is written.",
        take_over_from_upstream
    ),
    solo!(
        "give-back-to-upstream",
        "DaemonSets that the executor made, taken over by kube-controller-manager: it finds nothing to do.",
        give_back_to_upstream
    ),
    solo!(
        "unknown-fields",
        "Template fields that no client library knows make no new revision, and reach revisions and pods.",
        unknown_fields
    ),
];

const NODES: usize = 4;

/// The DaemonSets: one that surges, one that changes on delete, and one that waits before a pod counts as available.
const NAMES: [&str; 3] = ["surging", "ondelete", "waiting"];

/// Deletes one pod of a DaemonSet and waits until its node has another one that is ready.
async fn replace_one(scene: &Scene, name: &str) -> Result<()> {
    let (pod, uid) = scene.delete_a_pod(name).await?;
    scene
        .eventually(format!("another pod instead of {pod}"), async || {
            ensure!(!scene.uids(name).await?.contains(&uid), "{pod} is still there");
            scene.expect_settled(name).await
        })
        .await
}

/// Creates the DaemonSets and gives each a second revision, under whoever owns them: one has it on all pods, one on a
/// single pod, and one has been rolled back to its first template.
async fn make_history(scene: &Scene) -> Result<()> {
    scene.create(odd_volumes("surging").build()).await?;
    scene.create(odd_placement("ondelete").build()).await?;
    scene.create(odd_words("waiting").build()).await?;
    for name in NAMES {
        scene.rolled_out(name).await?;
    }
    for name in NAMES {
        scene.patch(name, image_patch(2)).await?;
    }
    scene
        .eventually("no pod of revision 2 before one is deleted", async || {
            let status = scene.observed_status("ondelete").await?;
            ensure!(status.updated_number_scheduled.unwrap_or(0) == 0, "{status:?}");
            Ok(())
        })
        .await?;
    replace_one(scene, "ondelete").await?;
    scene
        .eventually("one pod of revision 2", async || {
            let status = scene.observed_status("ondelete").await?;
            ensure!(status.updated_number_scheduled == Some(1), "{status:?}");
            Ok(())
        })
        .await?;
    for name in ["surging", "waiting"] {
        scene.rolled_out(name).await?;
    }
    scene.patch("surging", image_patch(1)).await?;
    scene.rolled_out("surging").await?;
    for name in NAMES {
        scene
            .eventually(format!("{name} to settle"), async || {
                scene.expect_settled(name).await
            })
            .await?;
    }
    expect_revisions(scene, "surging", &[2, 3]).await?;
    expect_revisions(scene, "ondelete", &[1, 2]).await?;
    expect_revisions(scene, "waiting", &[1, 2]).await
}

async fn expect_revisions(scene: &Scene, name: &str, expected: &[i64]) -> Result<()> {
    let revisions = scene.revisions(name).await?;
    ensure!(revisions == expected, "{name} has revisions {revisions:?}");
    Ok(())
}

/// The new owner works: it replaces a deleted pod of `surging` without a new revision, and rolls out a new template, while
/// the other two DaemonSets stay what they were.
async fn owner_works(scene: &Scene, before: &Picture, owner: &str) -> Result<()> {
    replace_one(scene, "surging").await?;
    expect_revisions(scene, "surging", &[2, 3])
        .await
        .context("a pod is no new template")?;
    let old = scene.uids("surging").await?;
    scene.patch("surging", image_patch(3)).await?;
    scene.settled("surging").await?;
    let new = scene.uids("surging").await?;
    let kept = old.intersection(&new).count();
    ensure!(kept == 0, "{kept} pods were not replaced");
    expect_revisions(scene, "surging", &[2, 3, 4]).await?;
    scene.expect_same(before, &NAMES[1..]).await?;

    let events = scene.audit_since(before).await?;
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

/// Waits until the executor has got a plan for each of these DaemonSets since then.
async fn planned(scene: &Scene, since: Mark, names: &[&str]) -> Result<()> {
    scene
        .eventually("a plan for each DaemonSet", async || {
            for name in names {
                ensure!(!scene.plans(since, name).is_empty(), "none for {name}");
            }
            Ok(())
        })
        .await
}

/// Fails unless the executor has only found nothing to do since then, and has done nothing.
async fn expect_idle_plans(scene: &Scene, since: Mark, before: &Picture, names: &[&str]) -> Result<()> {
    for name in names {
        for plan in scene.plans(since, name) {
            ensure!(
                plan.verdict() == Verdict::Noop,
                "it had something to do for {name}: {plan:?}"
            );
        }
    }
    scene.expect_same(before, names).await?;
    scene.expect_no_writes(before, EXECUTOR_USER).await
}

/// Fails unless the executor has looked at the DaemonSets since then, does so again whenever it is woken until the longest
/// minReadySeconds is over, and never does anything.
async fn expect_idle_executor(
    scene: &Scene,
    since: Mark,
    before: &mut Picture,
    names: &[&str],
) -> Result<()> {
    let came = Instant::now();
    planned(scene, since, names).await?;
    expect_idle_plans(scene, since, before, names).await?;
    let mut last_round = false;
    while !last_round {
        last_round = came.elapsed() > before.longest_min_ready();
        scene.label_a_node().await?;
        for name in names {
            let mark = scene.proxy().mark();
            scene.touch(before, name).await?;
            planned(scene, mark, &[name]).await?;
        }
        expect_idle_plans(scene, since, before, names).await?;
    }
    Ok(())
}

/// The same for upstream's controller.
async fn expect_idle_upstream(
    scene: &Scene,
    upstream: &Upstream,
    before: &mut Picture,
    names: &[&str],
) -> Result<()> {
    let (came, namespace) = (Instant::now(), scene.namespace());
    for name in names {
        upstream.synced_since(0, namespace, name).await?;
    }
    let mut last_round = false;
    while !last_round {
        scene.expect_same(before, names).await?;
        scene.expect_no_writes(before, UPSTREAM_USER).await?;
        last_round = came.elapsed() > before.longest_min_ready();
        scene.label_a_node().await?;
        for name in names {
            let syncs = upstream.syncs(namespace, name);
            scene.touch(before, name).await?;
            upstream.synced_since(syncs, namespace, name).await?;
        }
    }
    scene.expect_same(before, names).await?;
    scene.expect_no_writes(before, UPSTREAM_USER).await
}

fn expect_whole(picture: &Picture) -> Result<()> {
    let (pods, revisions) = (picture.count("Pod"), picture.count("ControllerRevision"));
    ensure!(
        (pods, revisions) == (NAMES.len() * NODES, 6),
        "{pods} pods and {revisions} revisions"
    );
    Ok(())
}

async fn take_over_from_upstream(solo: &mut Solo) -> Result<()> {
    solo.add_nodes(NODES).await?;
    let upstream = solo.cluster().start_upstream().await?;
    make_history(solo).await?;
    upstream.stop().await?;
    let mut before = solo.picture(&NAMES).await?;
    expect_whole(&before)?;

    let since = solo.proxy().mark();
    solo.start()?;
    expect_idle_executor(solo, since, &mut before, &NAMES).await?;
    owner_works(solo, &before, EXECUTOR_USER).await
}

async fn give_back_to_upstream(solo: &mut Solo) -> Result<()> {
    solo.add_nodes(NODES).await?;
    solo.start()?;
    make_history(solo).await?;
    solo.stop().await?;
    let mut before = solo.picture(&NAMES).await?;
    expect_whole(&before)?;

    let upstream = solo.cluster().start_upstream().await?;
    expect_idle_upstream(solo, &upstream, &mut before, &NAMES).await?;
    owner_works(solo, &before, UPSTREAM_USER).await?;
    upstream.stop().await
}

/// Whether all fields of a later version are in a pod template or in a pod.
fn has_later_fields(template: &Value) -> bool {
    let mut with_them = template.clone();
    if let Some(spec) = with_them.pointer_mut("/spec").and_then(Value::as_object_mut) {
        // To be put back: what is there and different is as wrong as what is missing.
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

/// The data of a DaemonSet's newest revision, as the apiserver stores it.
async fn newest_data(scene: &Scene, name: &str) -> Result<Value> {
    let revisions = scene.revision_objects(name).await?;
    let newest = revisions.into_iter().max_by_key(|revision| revision.revision);
    let data = newest.and_then(|revision| revision.data);
    Ok(data.context("a revision with data")?.0)
}

/// The templates have fields that no API type knows. They are part of what a revision is compared by, of the revisions that
/// the executor writes, and of the pods that it makes; so neither its start nor its next one restarts anything.
///
/// No apiserver has such fields (client libraries know those of the newest, alpha ones included), so a proxy adds them: see
/// [`ApiProxy`]. What it cannot show is that the pods keep them, because the real apiserver behind it does not.
async fn unknown_fields(solo: &mut Solo) -> Result<()> {
    let name = "later";
    solo.add_nodes(NODES).await?;
    let upstream = solo.cluster().start_upstream().await?;
    let object = odd_words(name).build();
    let mut later = object.clone();
    add_later_fields(&mut later["spec"]["template"]);
    let typed: DaemonSet = serde_json::from_value(later.clone())?;
    ensure!(
        has_later_fields(&later["spec"]["template"])
            && !has_later_fields(&serde_json::to_value(typed)?["spec"]["template"]),
        "the API types know the later fields by now: choose others"
    );
    solo.create(object).await?;
    solo.settled(name).await?;
    upstream.stop().await?;

    let mut before = solo.picture(&[name]).await?;
    let newer = ApiProxy::newer(solo.cluster()).await?;
    let servers = [solo.proxy().url()];
    let since = solo.proxy().mark();
    solo.start_with(Some(newer.kubeconfig()), &servers)?;
    expect_idle_executor(solo, since, &mut before, &[name]).await?;

    replace_one(solo, name).await?;
    expect_revisions(solo, name, &[1]).await?;
    solo.patch(name, image_patch(2)).await?;
    solo.settled(name).await?;
    expect_revisions(solo, name, &[1, 2]).await?;
    let data = newest_data(solo, name).await?;
    ensure!(
        has_later_fields(&data["spec"]["template"]),
        "revision 2 lacks fields: {data:#}"
    );
    let pods = newer.asked_pods();
    ensure!(pods.len() == 1 + NODES, "{} pods were asked for", pods.len());
    for pod in pods {
        ensure!(has_later_fields(&pod), "a pod lacks fields: {pod:#}");
    }

    solo.stop().await?;
    let mut before = solo.picture(&[name]).await?;
    let since = solo.proxy().mark();
    solo.start_with(Some(newer.kubeconfig()), &servers)?;
    expect_idle_executor(solo, since, &mut before, &[name]).await
}
