//! The phases of the demo: their actions, the conditions that end them, and their limits.

use std::time::{Duration, Instant};

use nodewise_executor::sim::WorkloadCounts;
use serde_json::Value;

use crate::text::count;

use super::{
    progress::Progress,
    report::{Budget, Phase},
    simulation::{Simulation, Subject, node_name},
};

/// A phase without any change for this time has failed.
const STUCK: Duration = Duration::from_secs(30);
/// The part of the cluster that a rollout may change at the same time.
const LIMIT: &str = "10%";
/// The most replicas of the Deployment.
const MAX_REPLICAS: usize = 100;

/// One phase of the demo.
pub(super) struct PhaseScript {
    /// The name in JSON.
    name: &'static str,
    /// The title in text.
    pub(super) title: String,
    /// The workload that changes.
    subject: Subject,
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
    CreateDeployment {
        replicas: usize,
    },
    RollOutDeployment {
        version: u32,
    },
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
    let mut phases = vec![
        PhaseScript {
            name: "create",
            title: "create a DaemonSet".to_owned(),
            subject: Subject::DaemonSet,
            budget: Budget {
                unavailable: None,
                surging: 0,
            },
            steps: in_place(Action::Create),
        },
        PhaseScript {
            name: "rolling-update",
            title: format!("roll out version 2 with maxUnavailable {LIMIT}"),
            subject: Subject::DaemonSet,
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
            subject: Subject::DaemonSet,
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
            subject: Subject::DaemonSet,
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
    ];
    phases.extend(deployment_phases(replicas(nodes)));
    phases
}

/// The number of replicas of the Deployment.
pub(super) fn replicas(nodes: usize) -> usize {
    nodes.min(MAX_REPLICAS)
}

fn deployment_phases(replicas: usize) -> [PhaseScript; 2] {
    let step = |action| {
        vec![Step {
            action,
            until: is_rolled_out,
        }]
    };
    [
        PhaseScript {
            name: "create-deployment",
            title: format!("create a Deployment with {}", count(replicas, "replica")),
            subject: Subject::Deployment,
            budget: Budget {
                unavailable: None,
                surging: 0,
            },
            steps: step(Action::CreateDeployment { replicas }),
        },
        PhaseScript {
            name: "roll-out-deployment",
            title: format!("roll out its version 2 with maxSurge {LIMIT} and maxUnavailable {LIMIT}"),
            subject: Subject::Deployment,
            // The Kubernetes API rounds maxSurge up and maxUnavailable down.
            budget: Budget {
                unavailable: Some(replicas / 10),
                surging: replicas.div_ceil(10),
            },
            steps: step(Action::RollOutDeployment { version: 2 }),
        },
    ]
}

impl PhaseScript {
    /// The number of pods at the end of the phase.
    pub(super) fn size(&self, nodes: usize) -> usize {
        match self.subject {
            Subject::DaemonSet => nodes,
            Subject::Deployment => replicas(nodes),
        }
    }

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
            converged = converged && wait(simulation, self.subject, step.until, progress).await?;
        }
        let counts = simulation.counts(self.subject);
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
            Self::CreateDeployment { replicas } => simulation.create_deployment(*replicas, LIMIT),
            Self::RollOutDeployment { version } => simulation.roll_out_deployment(*version),
        }
    }
}

/// Advances the simulation until a condition is true. Returns false if nothing changes any more before that.
async fn wait(
    simulation: &mut Simulation,
    subject: Subject,
    until: fn(&Observation<'_>) -> bool,
    progress: &Progress,
) -> anyhow::Result<bool> {
    let mut last = WorkloadCounts::default();
    let mut changed = Instant::now();
    loop {
        simulation.tick().await?;
        let counts = simulation.counts(subject);
        progress.show(&counts, &simulation.metrics);
        if until(&Observation {
            counts: &counts,
            object: &simulation.object(subject),
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
    let fields = [
        "desiredNumberScheduled",
        "updatedNumberScheduled",
        "numberAvailable",
    ];
    is_done(observation, &fields) && status_count(observation, "numberMisscheduled") == 0
}

/// Whether every replica of the Deployment is of the present version and available, and the status agrees.
fn is_rolled_out(observation: &Observation<'_>) -> bool {
    is_done(observation, &["replicas", "updatedReplicas", "availableReplicas"])
}

/// Whether there are as many pods as there should be, all of the present version, and these fields of the status say so.
fn is_done(observation: &Observation<'_>, fields: &[&str]) -> bool {
    let WorkloadCounts {
        nodes: wanted,
        pods,
        deleting,
        updated,
        ..
    } = *observation.counts;
    let object = observation.object;
    pods == wanted
        && deleting == 0
        && updated == wanted
        && fields
            .iter()
            .all(|field| status_count(observation, field) == wanted as u64)
        && object["status"]["observedGeneration"] == object["metadata"]["generation"]
}

/// A count of the status; 0 if it is not set.
fn status_count(observation: &Observation<'_>, field: &str) -> u64 {
    observation.object["status"][field].as_u64().unwrap_or_default()
}

/// Whether exactly one node has no ready pod, and the status counts it as misscheduled.
fn is_known_to_be_broken(observation: &Observation<'_>) -> bool {
    observation.counts.available + 1 == observation.counts.nodes
        && observation.object["status"]["numberMisscheduled"] == 1
}
