//! The executor's readiness and leader election when a process is killed.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::{Api, api::ListParams};
use nodewise_conformance::{DEADLINE, daemon_set, deployment, image_patch};
use nodewise_e2e::{OWNER_COMPONENTS, Setup, SetupOptions};
use nodewise_testbed::eventually;

/// After SIGKILL of the server, readiness reports the reason, and work resumes when the server is back.
#[tokio::test(flavor = "multi_thread")]
async fn readiness_reports_a_killed_server() -> Result<()> {
    let mut setup = Setup::start(SetupOptions::nodes(3)).await?;
    setup.create(daemon_set("agent").build()).await?;
    setup.wait_for_rollout("agent").await?;
    setup.kill_server()?;
    setup.create(daemon_set("second").build()).await?;
    eventually(
        DEADLINE,
        "the executor to say that it is not ready, and why",
        async || {
            let (status, body) = setup.executor_get("/readyz").await?;
            // Status 500, as other Kubernetes components answer when a check fails.
            ensure!(
                status == 500 && body.contains("no replica of the planning service answers"),
                "{status}: {body}"
            );
            Ok(())
        },
    )
    .await?;
    setup.start_server_again().await?;
    setup.wait_for_rollout("second").await?;
    eventually(DEADLINE, "the executor to be ready again", async || {
        let (status, body) = setup.executor_get("/readyz").await?;
        ensure!(status == 200, "{status}: {body}");
        Ok(())
    })
    .await
}

/// Two executors: after SIGKILL of the leader the other takes over within the lease duration, and no node gets two
/// pods.
#[tokio::test(flavor = "multi_thread")]
async fn a_standby_takes_over() -> Result<()> {
    let setup = Setup::start(SetupOptions::nodes(20).leader_election()).await?;
    setup.wait_for_leader().await?;
    let standby = setup.spawn_executor("standby").await?;
    let watch = setup.watch("agent");
    setup
        .create(daemon_set("agent").max_unavailable(2).build())
        .await?;
    setup.wait_for_rollout("agent").await?;
    let holder = setup.lease_holder().await?;
    setup.patch("agent", image_patch(2)).await?;
    setup.kill_executor()?;
    let killed = Instant::now();
    eventually(DEADLINE, "another holder of the lease", async || {
        let now = setup.lease_holder().await?;
        ensure!(now.is_some() && now != holder, "it is held by {now:?}");
        Ok(())
    })
    .await?;
    // The lease lasts 15 s, and a candidate tries every 2 s, with jitter.
    let waited = killed.elapsed();
    ensure!(waited < Duration::from_secs(25), "it took {waited:?}");
    setup.wait_for_rollout("agent").await?;
    setup.expect_one_pod_per_node("agent").await?;
    assert_eq!(watch.seen().await?.most_live.0, 1);

    // After SIGTERM the leader releases the lease at once.
    let successor = setup.spawn_executor("successor").await?;
    let before = setup.lease_holder().await?;
    standby.terminate(DEADLINE).await?;
    let ended = Instant::now();
    eventually(DEADLINE, "the lease to be handed over", async || {
        let now = setup.lease_holder().await?;
        ensure!(
            now.as_deref().is_some_and(|holder| !holder.is_empty()) && now != before,
            "it is held by {now:?}"
        );
        Ok(())
    })
    .await?;
    // The successor tries every 2 s. The lease would expire 15 s after its last renewal, which is at most 2 s older than the end.
    let waited = ended.elapsed();
    ensure!(
        waited < Duration::from_secs(11),
        "the successor waited for the lease to expire: {waited:?}"
    );
    setup.create(daemon_set("second").build()).await?;
    setup.wait_for_rollout("second").await?;
    successor.terminate(DEADLINE).await?;

    // One Event about each leader.
    let events: Api<Event> = Api::namespaced(setup.client(), "nodewise-system");
    eventually(DEADLINE, "an Event about each leader", async || {
        let of_lease = ListParams::default().fields("involvedObject.kind=Lease,reason=LeaderElection");
        let messages = events.list(&of_lease).await?.items;
        let messages = messages.into_iter().filter_map(|event| event.message);
        let messages: std::collections::BTreeSet<_> = messages.collect();
        let became = messages
            .iter()
            .filter(|message| message.ends_with("became leader"));
        ensure!(became.count() == 3, "{messages:?}");
        Ok(())
    })
    .await
}

/// The same in the middle of the rollout of a Deployment: the other executor finishes it, and no pod is replaced twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_standby_takes_over_a_deployment() -> Result<()> {
    let options = SetupOptions::nodes(3)
        .leader_election()
        .controllers("*", OWNER_COMPONENTS);
    let setup = Setup::start(options).await?;
    setup.wait_for_leader().await?;
    let standby = setup.spawn_executor("standby").await?;
    let web = deployment("web", 20).rolling(2, 1).build();
    setup.start_deployment(web).await?;
    let begun = setup.begin_history("web").await?;
    setup.patch_deployment("web", image_patch(2)).await?;
    eventually(DEADLINE, "the rollout to begin", async || {
        let sets = setup.replica_set_api().list(&ListParams::default()).await?;
        ensure!(sets.items.len() == 2, "{} ReplicaSets", sets.items.len());
        Ok(())
    })
    .await?;
    setup.kill_executor()?;
    setup.wait_for_deployment("web").await?;
    setup.wait_for_sizes("web", &[(1, 0), (2, 20)]).await?;
    setup.history(&begun).await?.expect_pods(20, 20)?;
    standby.terminate(DEADLINE).await?;
    Ok(())
}

/// The controllers work that have the rights to read what they need. Readiness names what another one lacks.
#[tokio::test(flavor = "multi_thread")]
async fn a_controller_without_rights_stops_no_other_one() -> Result<()> {
    let options = SetupOptions::nodes(3).controllers("*", &[]).never_ready();
    let setup = Setup::start(options).await?;
    setup.create(daemon_set("agent").build()).await?;
    setup.wait_for_rollout("agent").await?;
    eventually(DEADLINE, "readiness to name the missing watches", async || {
        let (status, body) = setup.executor_get("/readyz").await?;
        for watch in ["watch-deployments", "watch-replicasets"] {
            let line = body.lines().find(|line| line.contains(watch)).unwrap_or("");
            ensure!(
                status == 500 && line.matches("cannot list").count() == 1,
                "{status}: {body}"
            );
        }
        Ok(())
    })
    .await
}

/// The number of creates and deletes of pods since `since`.
async fn pods_written(setup: &Setup, since: Option<Timestamp>) -> Result<usize> {
    let is_write = |event: &nodewise_testbed::AuditEvent| {
        event.resource == "pods"
            && event.subresource.is_empty()
            && ["create", "delete"].contains(&event.verb.as_str())
            && since.is_none_or(|since| event.received > since)
    };
    Ok(setup.audit(is_write).await?.len())
}

/// A leader is paused until another one has the lease. It does not send its queued writes when it resumes.
#[tokio::test(flavor = "multi_thread")]
async fn paused_leader_does_not_write_after_losing_the_lease() -> Result<()> {
    let options = [
        "--client-qps=2",
        "--lease-duration=4s",
        "--renew-deadline=3s",
        "--retry-period=300ms",
    ]
    .into_iter()
    .fold(
        SetupOptions::nodes(30).leader_election(),
        SetupOptions::executor_arg,
    );
    let setup = Setup::start(options).await?;
    setup.wait_for_leader().await?;
    let (holder, standby) = (
        setup.lease_holder().await?,
        setup.spawn_executor("standby").await?,
    );
    setup.create(daemon_set("agent").build()).await?;
    eventually(DEADLINE, "some pods", async || {
        let written = pods_written(&setup, None).await?;
        ensure!(written >= 3, "{written} were written");
        Ok(())
    })
    .await?;
    setup.executor().pause()?;
    eventually(DEADLINE, "another holder of the lease", async || {
        let now = setup.lease_holder().await?;
        ensure!(now.is_some() && now != holder, "it is held by {now:?}");
        Ok(())
    })
    .await?;
    // From here on only the former leader could write.
    standby.pause()?;
    let mut before = None;
    eventually(DEADLINE, "an end of what the standby has sent", async || {
        let now = pods_written(&setup, None).await?;
        let was = before.replace(now);
        ensure!(was == Some(now), "{now} were written, before {was:?}");
        Ok(())
    })
    .await?;
    let resumed = Timestamp::now();
    setup.executor().resume()?;
    eventually(
        DEADLINE,
        "the first executor to know that it leads no more",
        async || {
            let (_, metrics) = setup.executor_get("/metrics").await?;
            let leads = metrics
                .lines()
                .any(|line| line.starts_with("leader_election_master_status") && line.ends_with(" 1"));
            ensure!(!leads, "it leads");
            Ok(())
        },
    )
    .await?;
    let written = pods_written(&setup, Some(resumed)).await?;
    ensure!(
        written == 0,
        "{written} pods were written by an executor that did not lead"
    );
    standby.resume()?;
    setup.wait_for_rollout("agent").await?;
    setup.expect_one_pod_per_node("agent").await?;
    standby.terminate(DEADLINE).await?;
    Ok(())
}

/// The last time at which a pod of the workload was created or its Ready condition changed.
async fn last_change(setup: &Setup, name: &str) -> Result<Timestamp> {
    let pods = setup.live_pods(name).await?;
    let times = pods.into_iter().flat_map(|pod| {
        let conditions = pod.status.unwrap_or_default().conditions.unwrap_or_default();
        let ready = conditions
            .into_iter()
            .filter(|condition| condition.type_ == "Ready");
        let ready = ready.filter_map(|condition| condition.last_transition_time);
        ready.chain(pod.metadata.creation_timestamp).map(|time| time.0)
    });
    times.max().context("a pod with a time")
}

/// The metric of the time since the last progress of the rollout, in seconds.
async fn since_progress(setup: &Setup, name: &str) -> Result<f64> {
    let series = format!(
        "nodewise_rollout_since_progress_seconds{{kind=\"DaemonSet\",namespace=\"default\",name=\"{name}\"}} "
    );
    let (_, scrape) = setup.executor_get("/metrics").await?;
    let age = scrape.lines().find_map(|line| line.strip_prefix(&series));
    Ok(age.with_context(|| format!("no {series}"))?.parse()?)
}

/// Otherwise an alert about a stuck rollout would end with each restart.
#[tokio::test(flavor = "multi_thread")]
async fn restarted_executor_knows_how_long_a_rollout_is_stuck() -> Result<()> {
    let mut setup = Setup::start(SetupOptions::nodes(3)).await?;
    setup
        .roll_out("agent", daemon_set("agent").max_unavailable(1).build())
        .await?;
    setup.patch("agent", setup.never_ready_patch(2)).await?;
    eventually(DEADLINE, "a pod that does not become ready", async || {
        let status = setup.observed_status("agent").await?;
        let counts = (status.updated_number_scheduled, status.number_available);
        ensure!(counts == (Some(1), Some(2)), "{status:?}");
        Ok(())
    })
    .await?;
    setup.stop_executor().await?;
    let stuck = Duration::from_secs(5);
    let since = last_change(&setup, "agent").await?;
    let age = || Timestamp::now().duration_since(since).as_secs_f64();
    eventually(DEADLINE, "the rollout to stand still for a while", async || {
        ensure!(age() > stuck.as_secs_f64(), "{} s", age());
        Ok(())
    })
    .await?;
    let began = Instant::now();
    setup.start_executor().await?;
    let told = eventually(DEADLINE, "the age of the rollout", async || {
        let (least, told) = (age(), since_progress(&setup, "agent").await?);
        ensure!(told >= least, "{told} s, and it was {least} s before");
        Ok(told)
    })
    .await?;
    ensure!(
        told > (began.elapsed() + stuck / 2).as_secs_f64(),
        "{told} s, which began with the executor"
    );
    // From here on the metric works as usual.
    setup.patch("agent", setup.ready_again_patch(3)).await?;
    setup.wait_for_rollout("agent").await?;
    eventually(DEADLINE, "the end of the rollout", async || {
        let told = since_progress(&setup, "agent").await?;
        ensure!(told == 0.0, "{told} s");
        Ok(())
    })
    .await
}

/// A person holds the lease, as when ReplicaSets and Deployments are taken over: no executor writes until it is given back.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_leads_while_a_person_holds_the_lease() -> Result<()> {
    let setup = Setup::start(SetupOptions::nodes(3).leader_election()).await?;
    setup.wait_for_leader().await?;
    setup.hold_lease("take-over").await?;
    eventually(
        DEADLINE,
        "the executor to know that it does not lead",
        async || {
            let (_, metrics) = setup.executor_get("/metrics").await?;
            let leads = metrics
                .lines()
                .any(|line| line.starts_with("leader_election_master_status") && line.ends_with(" 1"));
            ensure!(!leads, "it leads");
            Ok(())
        },
    )
    .await?;
    let standby = setup.spawn_executor("standby").await?;
    setup.create(daemon_set("agent").build()).await?;
    let created = Timestamp::now();
    eventually(DEADLINE, "both executors to look at the lease", async || {
        let looks = |event: &nodewise_testbed::AuditEvent| {
            event.resource == "leases" && event.verb == "get" && event.received > created
        };
        let looked = setup.audit(looks).await?.len();
        ensure!(looked >= 4, "they looked {looked} times");
        Ok(())
    })
    .await?;
    assert_eq!(
        pods_written(&setup, None).await?,
        0,
        "an executor wrote while a person held the lease"
    );
    setup.delete_lease().await?;
    setup.wait_for_rollout("agent").await?;
    standby.terminate(DEADLINE).await?;
    Ok(())
}
