//! A storm of node events beside a rollout: all nodes become not ready and ready again, while the pods of a DaemonSet are replaced.

mod finding;
mod flaps;
mod observe;

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use nodewise_testbed::{ControlPlane, User, eventually};
use serde_json::json;

use self::flaps::Storm;
use self::observe::Observed;
use super::kubelets::Kubelets;
use super::owner::{Owner, OwnerKind, Programs};
use super::part::Part;
use super::run::{Counts, RolloutNamespace};
use super::sides::Sides;
use super::{DEADLINE, foreign};
use crate::figure::figure;
use crate::report::Finding;

/// The size of the benchmark.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// The number of nodes.
    pub nodes: usize,
    /// The number of pods that belong to no DaemonSet.
    pub foreign_pods: usize,
    /// How long the nodes flap.
    pub lasts: Duration,
    /// How often each node becomes not ready in that time.
    pub flaps: usize,
    /// The number of storms per owner.
    pub rounds: usize,
}

/// The measurements of one storm.
#[derive(Clone, Debug)]
struct Run {
    /// From the change of the image until every node has a new pod that is ready, in seconds.
    rollout: f64,
    /// From that change until the storm and the rollout have ended.
    part: Part,
    /// The number of times that a node became ready or not ready.
    changes: f64,
    observed: Observed,
    /// The peak memory of the owner, in MB.
    peak_memory_mb: f64,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [rollout, changes, gap, wait] = [
            self.rollout,
            self.changes,
            self.observed.longest_gap,
            self.observed.longest_wait,
        ]
        .map(figure);
        let [first, second, peak] = [
            self.observed.first_half_mb,
            self.observed.second_half_mb,
            self.peak_memory_mb,
        ]
        .map(figure);
        write!(
            f,
            "rolled out in {rollout} s; {changes} changes of nodes; {}; at most {gap} s between plans, {wait} s in a queue; \
             {first} and {second} MB, {peak} at most",
            self.part
        )
    }
}

/// Measures both owners, one after the other, in each round.
///
/// # Errors
/// A program cannot be built or started, or a rollout does not finish.
pub async fn measure(size: Size, programs: &Programs) -> Result<Finding> {
    let plane = ControlPlane::builder()
        .audit_log(true)
        .user(User::new(OwnerKind::Upstream.user()).group("system:masters"))
        .user(User::new(OwnerKind::Nodewise.user()).group("system:masters"))
        .start()
        .await?;
    let nodes = plane.create_nodes(size.nodes).await?;
    foreign::create(&plane.client(), size.foreign_pods, &nodes).await?;
    let mut sides = Sides::default();
    for round in 1..=size.rounds {
        for who in OwnerKind::in_round(round) {
            let namespace = format!("{}-{round}", who.user());
            let run = run(&plane, who, programs, &namespace, size, &nodes).await?;
            eprintln!("round {round} of {}, {}: {run}", size.rounds, who.name());
            sides.push(who, run);
        }
    }
    finding::of(size, &sides)
}

/// One storm with one owner. All nodes are ready before and after it.
async fn run(
    plane: &ControlPlane,
    who: OwnerKind,
    programs: &Programs,
    namespace: &str,
    size: Size,
    nodes: &[String],
) -> Result<Run> {
    let home = RolloutNamespace {
        plane,
        client: plane.client(),
        namespace,
        nodes: nodes.len(),
        user: who.user(),
    };
    foreign::make_namespace(&home.client, namespace).await?;
    let owner = Owner::with_metrics(plane, who, programs, "daemonset-controller").await?;
    home.create_daemon_set("agent", json!({})).await?;
    home.wait_for_pods(&owner, nodes.len()).await?;
    let pods = kube::api::Api::namespaced(home.client.clone(), namespace);
    let mut kubelets = Kubelets::start(&home.client, pods);
    until_made_ready(&owner, &kubelets, nodes.len()).await?;
    let is_available = |counts: &Counts| counts.available == counts.desired;
    home.observed(&owner, "agent", is_available).await?;

    let storm = Storm {
        nodes,
        lasts: size.lasts,
        flaps: size.flaps,
    };
    let (mut took, mut changes, mut observed) = (Duration::ZERO, 0, None);
    let all = async || {
        let begun = Instant::now();
        let roll_out = async {
            home.change_image().await?;
            // The status does not count nodes that are not ready: their pods are not desired.
            until_made_ready(&owner, &kubelets, 2 * nodes.len()).await?;
            Ok(begun.elapsed())
        };
        let both = async { tokio::try_join!(roll_out, storm.run(&home.client)) };
        let (result, samples) = observe::during(&owner, who, size.lasts, both).await?;
        (took, changes) = result;
        observed = Some(samples);
        Ok(())
    };
    let (part, _) = Part::measure(plane, &owner, home.user, all).await?;
    kubelets.check_running().await?;
    let peak_memory_mb = owner.peak_memory_mb()?;
    owner.stop().await?;
    drop(kubelets);
    home.clean_up().await?;
    flaps::wait_until_ready(&home.client, DEADLINE).await?;
    #[expect(clippy::cast_precision_loss, reason = "some ten thousand")]
    let changes = changes as f64;
    Ok(Run {
        rollout: took.as_secs_f64(),
        part,
        changes,
        observed: observed.unwrap_or_default(),
        peak_memory_mb,
    })
}

/// Waits until so many pods were made ready since the kubelets started.
async fn until_made_ready(owner: &Owner, kubelets: &Kubelets, count: usize) -> Result<()> {
    let ended = eventually(DEADLINE, "ready pods", async || {
        if let Err(ended) = owner.check_running() {
            return Ok(Some(ended));
        }
        let ready = kubelets.made_ready();
        ensure!(ready >= count, "{ready} of {count} were made ready");
        Ok(None)
    });
    ended.await?.map_or(Ok(()), Err)
}
