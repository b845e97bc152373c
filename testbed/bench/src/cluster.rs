//! A rollout on a real apiserver: the creation of all pods of a DaemonSet, and a rolling update to a new image.

mod bare;
pub mod deployments;
mod finding;
mod foreign;
mod kubelets;
mod owner;
mod part;
mod policies;
mod run;
mod sides;
pub mod stages;
pub mod storm;
pub mod writes;

use std::time::Duration;

use anyhow::{Context as _, Result};
use nodewise_testbed::{ControlPlane, User};

use self::bare::Template;
use self::owner::OwnerKind;
pub use self::owner::Programs;
use self::sides::Sides;
use crate::report::Finding;

/// How long to wait for a condition. Only a failed run reaches it.
const DEADLINE: Duration = Duration::from_mins(10);

/// The size of the benchmark.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// The number of nodes.
    pub nodes: usize,
    /// The number of pods that belong to no DaemonSet.
    pub foreign_pods: usize,
    /// The number of rollouts per owner.
    pub rounds: usize,
}

/// Measures both owners in turns, and after them the bare loop.
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
    let client = plane.client();
    eprintln!(
        "creating {} nodes and {} foreign pods",
        size.nodes, size.foreign_pods
    );
    let nodes = plane.create_nodes(size.nodes).await?;
    foreign::create(&client, size.foreign_pods, &nodes).await?;
    let (mut sides, mut limits) = (Sides::default(), Vec::new());
    for round in 1..=size.rounds {
        let mut template = None;
        for who in OwnerKind::in_round(round) {
            let namespace = format!("{}-{round}", who.user());
            let (rollout, created) =
                run::rollout(&plane, who, programs, &namespace, nodes.len(), None).await?;
            eprintln!("round {round} of {}, {}: {rollout}", size.rounds, who.name());
            sides.push(who, rollout);
            template = Some(created);
        }
        let template: Template = template.context("both created pods")?;
        let limit = run::bare(&plane, &format!("bench-bare-{round}"), &template, &nodes).await?;
        eprintln!("round {round} of {}, a bare loop: {limit}", size.rounds);
        limits.push(limit);
    }
    finding::of(size, &sides, &limits)
}
