//! The DaemonSets change owner, from upstream's controller to Nodewise or back, and nothing happens to them.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use kube::{
    Api,
    api::{DeleteParams, ListParams},
};
use nodewise_e2e::{
    DEADLINE, EXECUTOR_USER, NewerApi, Picture, Rig, RigOptions, UPSTREAM_USER, Upstream, add_later_fields,
    image_patch, later_fields, odd_placement, odd_volumes, odd_words, plan_count,
};
use nodewise_testbed::eventually;
use serde_json::Value;

const NODES: usize = 6;

/// The DaemonSets: one that surges, one that changes on delete, and one that waits before a pod counts as available.
const NAMES: [&str; 3] = ["surging", "ondelete", "waiting"];

/// The numbers of a DaemonSet's revisions, ascending.
async fn revisions(rig: &Rig, name: &str) -> Result<Vec<i64>> {
    let api: Api<ControllerRevision> = Api::namespaced(rig.client(), "default");
    let list = api
        .list(&ListParams::default().labels(&format!("app={name}")))
        .await?;
    let mut numbers: Vec<i64> = list.items.iter().map(|revision| revision.revision).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Deletes one pod of a DaemonSet and waits until its node has another one that is ready.
async fn replace_one(rig: &Rig, name: &str) -> Result<()> {
    let victim = rig.live_pods(name).await?.swap_remove(0).metadata;
    let (pod, uid) = (victim.name.context("a name")?, victim.uid.context("a uid")?);
    rig.pod_api().delete(&pod, &DeleteParams::default()).await?;
    eventually(DEADLINE, format!("another pod instead of {pod}"), async || {
        ensure!(!rig.uids(name).await?.contains(&uid), "{pod} is still there");
        settled(rig, name).await
    })
    .await
}

/// Fails unless each node has one pod and the status says so; nothing is left for anybody to do then.
async fn settled(rig: &Rig, name: &str) -> Result<()> {
    let pods = rig
        .pod_api()
        .list(&ListParams::default().labels(&format!("app={name}")))
        .await?;
    ensure!(
        pods.items.len() == NODES,
        "{} pods, some are going",
        pods.items.len()
    );
    rig.expect_one_pod_per_node(name).await?;
    let ready = pods
        .items
        .iter()
        .filter(|pod| nodewise_e2e::is_ready(pod))
        .count();
    ensure!(ready == NODES, "{ready} pods are ready");
    let status = rig.observed_status(name).await?;
    let wanted = i32::try_from(NODES)?;
    let all = [
        status.desired_number_scheduled,
        status.current_number_scheduled,
        status.number_ready,
        status.number_available.unwrap_or(0),
    ];
    ensure!(
        all == [wanted; 4] && status.number_misscheduled == 0,
        "{status:?}"
    );
    Ok(())
}

/// Creates the DaemonSets and gives each a second revision, under whoever owns them: one has it on all pods, one on a
/// single pod, and one has been rolled back to its first template.
async fn make_history(rig: &Rig) -> Result<()> {
    rig.create(odd_volumes("surging").build()).await?;
    rig.create(odd_placement("ondelete").build()).await?;
    rig.create(odd_words("waiting").build()).await?;
    for name in NAMES {
        rig.rolled_out(name).await?;
    }
    for name in NAMES {
        rig.patch(name, image_patch(2)).await?;
    }
    eventually(
        DEADLINE,
        "no pod of revision 2 before one is deleted",
        async || {
            let status = rig.observed_status("ondelete").await?;
            ensure!(status.updated_number_scheduled.unwrap_or(0) == 0, "{status:?}");
            Ok(())
        },
    )
    .await?;
    replace_one(rig, "ondelete").await?;
    eventually(DEADLINE, "one pod of revision 2", async || {
        let status = rig.observed_status("ondelete").await?;
        ensure!(status.updated_number_scheduled == Some(1), "{status:?}");
        Ok(())
    })
    .await?;
    for name in ["surging", "waiting"] {
        rig.rolled_out(name).await?;
    }
    rig.patch("surging", image_patch(1)).await?;
    rig.rolled_out("surging").await?;
    for name in NAMES {
        eventually(DEADLINE, format!("{name} to settle"), async || {
            settled(rig, name).await
        })
        .await?;
    }
    assert_eq!(revisions(rig, "surging").await?, [2, 3]);
    assert_eq!(revisions(rig, "ondelete").await?, [1, 2]);
    assert_eq!(revisions(rig, "waiting").await?, [1, 2]);
    Ok(())
}

/// The new owner works: it replaces a deleted pod of `surging` without a new revision, and rolls out a new template, while
/// the other two DaemonSets stay what they were.
async fn owner_works(rig: &Rig, before: &Picture, owner: &str) -> Result<()> {
    replace_one(rig, "surging").await?;
    assert_eq!(
        revisions(rig, "surging").await?,
        [2, 3],
        "a pod is no new template"
    );
    let old = rig.uids("surging").await?;
    rig.patch("surging", image_patch(3)).await?;
    rig.rolled_out("surging").await?;
    eventually(DEADLINE, "the old pods to be gone", async || {
        settled(rig, "surging").await
    })
    .await?;
    let new = rig.uids("surging").await?;
    assert_eq!(old.intersection(&new).count(), 0, "every pod was replaced");
    assert_eq!(revisions(rig, "surging").await?, [2, 3, 4]);
    rig.expect_same(before, &NAMES[1..]).await?;

    let events = rig.audit_since(before).await?;
    let made = |resource: &str| -> Vec<&str> {
        let creates = events
            .iter()
            .filter(|event| event.verb == "create" && event.code == 201);
        let of_resource = creates.filter(|event| event.resource == resource && event.subresource.is_empty());
        of_resource.map(|event| event.user.as_str()).collect()
    };
    assert_eq!(made("controllerrevisions"), [owner], "one new revision");
    assert_eq!(made("pods"), vec![owner; NODES + 1], "one pod replaced, then all");
    Ok(())
}

/// Fails unless the executor has only found nothing to do since it was started, and has done nothing.
async fn expect_idle_plans(rig: &Rig, before: &Picture, names: &[&str], metrics: &[String]) -> Result<()> {
    let idle = |line: &&String| line.contains("verdict=\"noop\"") || line.ends_with(" 0");
    let (idle, other): (Vec<_>, Vec<_>) = metrics
        .iter()
        .filter(|line| {
            line.starts_with("nodewise_plans_total{") || line.starts_with("nodewise_actions_total{")
        })
        .partition(idle);
    ensure!(
        !idle.is_empty() && other.is_empty(),
        "it had something to do: {other:#?}"
    );
    rig.expect_same(before, names).await?;
    rig.expect_no_writes(before, EXECUTOR_USER).await
}

/// Fails unless the executor has looked at the DaemonSets since it was started, does so again whenever it is woken until the
/// longest minReadySeconds is over, and never does anything.
async fn expect_idle_executor(rig: &Rig, before: &mut Picture, names: &[&str]) -> Result<()> {
    let came = Instant::now();
    let mut metrics = rig.executor_planned(names).await?;
    expect_idle_plans(rig, before, names, &metrics).await?;
    let mut last_round = false;
    while !last_round {
        last_round = came.elapsed() > before.longest_min_ready();
        rig.label_a_node().await?;
        metrics = rig.executor_planned_since(plan_count(&metrics)?, names).await?;
        for name in names {
            rig.touch(before, name).await?;
            metrics = rig.executor_planned_since(plan_count(&metrics)?, &[name]).await?;
        }
        expect_idle_plans(rig, before, names, &metrics).await?;
    }
    Ok(())
}

/// The same for upstream's controller, which a node's label does not wake unless it says where pods may run.
async fn expect_idle_upstream(
    rig: &Rig,
    upstream: &Upstream,
    before: &mut Picture,
    names: &[&str],
) -> Result<()> {
    let came = Instant::now();
    upstream.synced(names).await?;
    let mut last_round = false;
    while !last_round {
        rig.expect_same(before, names).await?;
        rig.expect_no_writes(before, UPSTREAM_USER).await?;
        last_round = came.elapsed() > before.longest_min_ready();
        rig.label_a_node().await?;
        for name in names {
            let syncs = upstream.syncs(name);
            rig.touch(before, name).await?;
            upstream.synced_since(syncs, name).await?;
        }
    }
    rig.expect_same(before, names).await?;
    rig.expect_no_writes(before, UPSTREAM_USER).await
}

/// Upstream's controller stops and Nodewise goes on.
#[tokio::test(flavor = "multi_thread")]
async fn nodewise_takes_over_without_a_restart() -> Result<()> {
    let mut rig = Rig::start(RigOptions::nodes(NODES)).await?;
    rig.stop_executor().await?;
    let upstream = rig.start_upstream().await?;
    make_history(&rig).await?;
    upstream.stop().await?;
    let mut before = rig.picture(&NAMES).await?;
    assert_eq!(before.count("Pod"), NAMES.len() * NODES);
    assert_eq!(before.count("ControllerRevision"), 6);

    rig.start_executor().await?;
    expect_idle_executor(&rig, &mut before, &NAMES).await?;
    owner_works(&rig, &before, EXECUTOR_USER).await
}

/// Nodewise stops and upstream's controller goes on, with revisions that Nodewise wrote.
#[tokio::test(flavor = "multi_thread")]
async fn upstream_takes_over_without_a_restart() -> Result<()> {
    let rig = Rig::start(RigOptions::nodes(NODES)).await?;
    make_history(&rig).await?;
    rig.stop_executor().await?;
    let mut before = rig.picture(&NAMES).await?;
    assert_eq!(before.count("Pod"), NAMES.len() * NODES);
    assert_eq!(before.count("ControllerRevision"), 6);

    let upstream = rig.start_upstream().await?;
    expect_idle_upstream(&rig, &upstream, &mut before, &NAMES).await?;
    owner_works(&rig, &before, UPSTREAM_USER).await?;
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
async fn newest_data(rig: &Rig, name: &str) -> Result<Value> {
    let api: Api<ControllerRevision> = Api::namespaced(rig.client(), "default");
    let list = api
        .list(&ListParams::default().labels(&format!("app={name}")))
        .await?;
    let newest = list.items.into_iter().max_by_key(|revision| revision.revision);
    Ok(newest
        .and_then(|revision| revision.data)
        .context("a revision with data")?
        .0)
}

/// The templates have fields that no API type here knows. They are part of what a revision is compared by, of the revisions that
/// Nodewise writes, and of the pods that it makes; so neither Nodewise's start nor its next one restarts anything.
///
/// No apiserver has such fields (k8s-openapi knows those of the newest, alpha ones included), so a proxy adds them: see
/// [`NewerApi`]. What it cannot show is that the pods keep them, because the real apiserver behind it does not.
#[tokio::test(flavor = "multi_thread")]
async fn fields_of_a_later_version_are_kept() -> Result<()> {
    let name = "later";
    let mut rig = Rig::start(RigOptions::nodes(NODES)).await?;
    rig.stop_executor().await?;
    let upstream = rig.start_upstream().await?;
    let object = odd_words(name).build();
    let mut later = object.clone();
    add_later_fields(&mut later["spec"]["template"]);
    let typed: DaemonSet = serde_json::from_value(later.clone())?;
    ensure!(
        has_later_fields(&later["spec"]["template"])
            && !has_later_fields(&serde_json::to_value(typed)?["spec"]["template"]),
        "the API types know the later fields by now: choose others"
    );
    rig.create(object).await?;
    rig.rolled_out(name).await?;
    eventually(DEADLINE, "it to settle", async || settled(&rig, name).await).await?;
    upstream.stop().await?;

    let mut before = rig.picture(&[name]).await?;
    let newer = NewerApi::start(&rig).await?;
    rig.start_executor_with(newer.kubeconfig()).await?;
    expect_idle_executor(&rig, &mut before, &[name]).await?;

    replace_one(&rig, name).await?;
    assert_eq!(revisions(&rig, name).await?, [1]);
    rig.patch(name, image_patch(2)).await?;
    rig.rolled_out(name).await?;
    eventually(DEADLINE, "the old pods to be gone", async || {
        settled(&rig, name).await
    })
    .await?;
    assert_eq!(revisions(&rig, name).await?, [1, 2]);
    let data = newest_data(&rig, name).await?;
    ensure!(
        has_later_fields(&data["spec"]["template"]),
        "revision 2 lacks fields: {data:#}"
    );
    let pods = newer.asked_pods();
    assert_eq!(pods.len(), 1 + NODES);
    for pod in pods {
        ensure!(has_later_fields(&pod), "a pod lacks fields: {pod:#}");
    }

    rig.stop_executor().await?;
    let mut before = rig.picture(&[name]).await?;
    rig.start_executor_with(newer.kubeconfig()).await?;
    expect_idle_executor(&rig, &mut before, &[name]).await
}
