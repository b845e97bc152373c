//! The phases of the demo: their actions, the conditions that end them, and their limits.

use std::time::{Duration, Instant};

use nodewise_executor::sim::WorkloadCounts;
use serde_json::Value;

use super::{
    progress::Progress,
    report::{Budget, Phase},
    simulation::{Simulation, node_name},
};

/// A phase without any change for this time has failed.
const STUCK: Duration = Duration::from_secs(30);
/// The part of the cluster that a rollout may change at the same time.
const LIMIT: &str = "10%";

/// One phase of the demo.
pub(super) struct PhaseScript {
    /// The name in JSON.
    name: &'static str,
    /// The title in text.
    pub(super) title: String,
    budget: Budget,
    steps: Vec<Step>,
}

/// An action, and the condition to wait for.
struct Step {
    action: Action,
    until: fn(&Observation<'_>) -> bool,
}

enum Action {
    Create,
    RollOut {
        version: u32,
        max_unavailable: &'static str,
        max_surge: &'static str,
    },
    Break(String),
    Recover(String),
}

/// The state of the simulated cluster at one time.
struct Observation<'a> {
    counts: &'a WorkloadCounts,
    object: &'a Value,
}

/// All phases for a cluster with this number of nodes.
pub(super) fn phases(nodes: usize) -> Vec<PhaseScript> {
    // Percentages are rounded up, as in the Kubernetes API.
    let share = nodes.div_ceil(10);
    let node = node_name(nodes.div_ceil(2), nodes);
    let in_place = |action| {
        vec![Step {
            action,
            until: is_complete,
        }]
    };
    vec![
        PhaseScript {
            name: "create",
            title: "create a DaemonSet".to_owned(),
            budget: Budget {
                unavailable: None,
                surging: 0,
            },
            steps: in_place(Action::Create),
        },
        PhaseScript {
            name: "rolling-update",
            title: format!("roll out version 2 with maxUnavailable {LIMIT}"),
            budget: Budget {
                unavailable: Some(share),
                surging: 0,
            },
            steps: in_place(Action::RollOut {
                version: 2,
                max_unavailable: LIMIT,
                max_surge: "0%",
            }),
        },
        PhaseScript {
            name: "surge",
            title: format!("roll out version 3 with maxSurge {LIMIT}"),
            budget: Budget {
                unavailable: Some(0),
                surging: share,
            },
            steps: in_place(Action::RollOut {
                version: 3,
                max_unavailable: "0%",
                max_surge: LIMIT,
            }),
        },
        PhaseScript {
            name: "break-and-recover",
            title: format!("break {node} and recover it"),
            budget: Budget {
                unavailable: Some(1),
                surging: 0,
            },
            steps: vec![
                Step {
                    action: Action::Break(node.clone()),
                    until: is_known_to_be_broken,
                },
                Step {
                    action: Action::Recover(node),
                    until: is_complete,
                },
            ],
        },
    ]
}

impl PhaseScript {
    /// Runs the phase until its end, or until nothing changes any more.
    pub(super) async fn run(
        &self,
        simulation: &mut Simulation,
        progress: &Progress,
    ) -> anyhow::Result<Phase> {
        let begun = Instant::now();
        let (plans, batches) = (simulation.metrics.plans(), simulation.metrics.batches());
        simulation.cluster.reset_counts();
        let mut converged = true;
        for step in &self.steps {
            step.action.perform(simulation)?;
            converged = converged && wait(simulation, step.until, progress).await?;
        }
        let counts = simulation.counts();
        Ok(Phase {
            name: self.name,
            created: counts.created,
            deleted: counts.deleted,
            batches: simulation.metrics.batches() - batches,
            plans: simulation.metrics.plans() - plans,
            max_unavailable_seen: counts.max_unavailable,
            max_surging_seen: counts.max_surging,
            seconds: (begun.elapsed().as_secs_f64() * 1_000.0).round() / 1_000.0,
            budget: self.budget,
            converged,
        })
    }
}

impl Action {
    fn perform(&self, simulation: &Simulation) -> anyhow::Result<()> {
        match self {
            Self::Create => simulation.create_daemon_set(),
            Self::RollOut {
                version,
                max_unavailable,
                max_surge,
            } => simulation.roll_out(*version, max_unavailable, max_surge),
            Self::Break(node) => Ok(simulation.cluster.break_node(node)?),
            Self::Recover(node) => Ok(simulation.cluster.recover_node(node)?),
        }
    }
}

/// Advances the simulation until a condition is true. Returns false if nothing changes any more before that.
async fn wait(
    simulation: &mut Simulation,
    until: fn(&Observation<'_>) -> bool,
    progress: &Progress,
) -> anyhow::Result<bool> {
    let mut last = WorkloadCounts::default();
    let mut changed = Instant::now();
    loop {
        simulation.tick().await?;
        let counts = simulation.counts();
        progress.show(&counts, &simulation.metrics);
        if until(&Observation {
            counts: &counts,
            object: &simulation.object(),
        }) {
            return Ok(true);
        }
        if counts != last {
            changed = Instant::now();
            last = counts;
        } else if changed.elapsed() > STUCK {
            return Ok(false);
        }
    }
}

/// Whether every node has exactly one pod, of the present version, and the status agrees.
fn is_complete(observation: &Observation<'_>) -> bool {
    let WorkloadCounts {
        nodes,
        pods,
        deleting,
        updated,
        ..
    } = *observation.counts;
    let status = |field: &str| observation.object["status"][field].as_u64().unwrap_or_default();
    pods == nodes
        && deleting == 0
        && updated == nodes
        && [
            "desiredNumberScheduled",
            "updatedNumberScheduled",
            "numberAvailable",
        ]
        .into_iter()
        .all(|field| status(field) == nodes as u64)
        && status("numberMisscheduled") == 0
        && observation.object["status"]["observedGeneration"] == observation.object["metadata"]["generation"]
}

/// Whether exactly one node has no ready pod, and the status counts it as misscheduled.
fn is_known_to_be_broken(observation: &Observation<'_>) -> bool {
    observation.counts.available + 1 == observation.counts.nodes
        && observation.object["status"]["numberMisscheduled"] == 1
}
