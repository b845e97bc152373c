//! A whole rollout on a real apiserver: from the DaemonSet to all its pods, and from a new image to all pods new and ready.

mod bare;
mod finding;
mod foreign;
mod kubelets;
mod owner;
mod run;
pub mod writes;

use std::time::Duration;

use anyhow::{Context as _, Result};
use nodewise_testbed::{ControlPlane, User};

use self::bare::Template;
pub use self::owner::Programs;
use self::owner::Who;
use crate::report::Finding;

/// How long a condition may take. Generous: it is reached only by a bench that fails.
const DEADLINE: Duration = Duration::from_mins(10);

/// How large it all is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Nodes.
    pub nodes: usize,
    /// Pods that belong to no DaemonSet.
    pub foreign_pods: usize,
    /// Rollouts of each owner.
    pub rounds: usize,
}

/// Measures both owners in turns, and the bare loop after them.
///
/// # Errors
/// A program cannot be built or started, or a rollout does not come to an end.
pub async fn measure(size: Size, programs: &Programs) -> Result<Finding> {
    let plane = ControlPlane::builder()
        .audit_log(true)
        .user(User::new(Who::Upstream.user()).group("system:masters"))
        .user(User::new(Who::Nodewise.user()).group("system:masters"))
        .start()
        .await?;
    let client = plane.client();
    eprintln!(
        "creating {} nodes and {} foreign pods",
        size.nodes, size.foreign_pods
    );
    let nodes = plane.create_nodes(size.nodes).await?;
    foreign::create(&client, size.foreign_pods, &nodes).await?;
    let (mut upstream, mut nodewise, mut limits) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=size.rounds {
        // Whoever comes first in one round comes second in the next.
        let mut order = [(Who::Upstream, &mut upstream), (Who::Nodewise, &mut nodewise)];
        if round.is_multiple_of(2) {
            order.reverse();
        }
        let mut template = None;
        for (who, rollouts) in order {
            let namespace = format!("{}-{round}", who.user());
            let (rollout, created) = run::rollout(&plane, who, programs, &namespace, nodes.len()).await?;
            eprintln!("round {round} of {}, {}: {rollout}", size.rounds, who.name());
            rollouts.push(rollout);
            template = Some(created);
        }
        let template: Template = template.context("both created pods")?;
        let limit = run::bare(&plane, &format!("bench-bare-{round}"), &template, &nodes).await?;
        eprintln!("round {round} of {}, a bare loop: {limit}", size.rounds);
        limits.push(limit);
    }
    finding::of(size, &upstream, &nodewise, &limits)
}
