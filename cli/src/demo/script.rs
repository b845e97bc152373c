//! The phases: what is asked for in each, when it is done, and what must hold meanwhile.

use std::time::{Duration, Instant};

use nodewise_executor::sim::Picture;
use serde_json::Value;

use super::{
    progress::Progress,
    report::{Budget, Phase},
    stage::{Stage, node_name},
};

/// A phase that stands still for so long has failed.
const STUCK: Duration = Duration::from_secs(30);
/// How much of the cluster a rollout may take at once.
const LIMIT: &str = "10%";

/// One phase.
pub(super) struct Act {
    /// For programs.
    name: &'static str,
    /// For people.
    pub(super) title: String,
    budget: Budget,
    steps: Vec<Step>,
}

/// Something that is done, and then waited for.
struct Step {
    action: Action,
    until: fn(&Moment<'_>) -> bool,
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

/// What is true at one moment.
struct Moment<'a> {
    picture: &'a Picture,
    object: &'a Value,
}

/// All phases for a cluster of that many nodes.
pub(super) fn acts(nodes: usize) -> Vec<Act> {
    // As the API scales percentages: rounded up.
    let share = nodes.div_ceil(10);
    let node = node_name(nodes.div_ceil(2), nodes);
    let in_place = |action| {
        vec![Step {
            action,
            until: is_in_place,
        }]
    };
    vec![
        Act {
            name: "create",
            title: "create a DaemonSet".to_owned(),
            budget: Budget {
                unavailable: None,
                surging: 0,
            },
            steps: in_place(Action::Create),
        },
        Act {
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
        Act {
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
        Act {
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
                    until: is_in_place,
                },
            ],
        },
    ]
}

impl Act {
    /// Plays the phase to its end, or until nothing moves any more.
    pub(super) async fn play(&self, stage: &mut Stage, progress: &Progress) -> anyhow::Result<Phase> {
        let begun = Instant::now();
        let (plans, batches) = (stage.metrics.plans(), stage.metrics.batches());
        stage.cluster.reset_counts();
        let mut converged = true;
        for step in &self.steps {
            step.action.perform(stage)?;
            converged = converged && wait(stage, step.until, progress).await?;
        }
        let picture = stage.picture();
        Ok(Phase {
            name: self.name,
            created: picture.created,
            deleted: picture.deleted,
            batches: stage.metrics.batches() - batches,
            plans: stage.metrics.plans() - plans,
            max_unavailable_seen: picture.max_unavailable,
            max_surging_seen: picture.max_surging,
            seconds: (begun.elapsed().as_secs_f64() * 1_000.0).round() / 1_000.0,
            budget: self.budget,
            converged,
        })
    }
}

impl Action {
    fn perform(&self, stage: &Stage) -> anyhow::Result<()> {
        match self {
            Self::Create => stage.create_daemon_set(),
            Self::RollOut {
                version,
                max_unavailable,
                max_surge,
            } => stage.roll_out(*version, max_unavailable, max_surge),
            Self::Break(node) => Ok(stage.cluster.break_node(node)?),
            Self::Recover(node) => Ok(stage.cluster.recover_node(node)?),
        }
    }
}

/// Lets time pass until something is true; false when nothing moves any more before that.
async fn wait(
    stage: &mut Stage,
    until: fn(&Moment<'_>) -> bool,
    progress: &Progress,
) -> anyhow::Result<bool> {
    let mut last = Picture::default();
    let mut moved = Instant::now();
    loop {
        stage.tick().await?;
        let picture = stage.picture();
        progress.show(&picture, &stage.metrics);
        if until(&Moment {
            picture: &picture,
            object: &stage.object(),
        }) {
            return Ok(true);
        }
        if picture != last {
            moved = Instant::now();
            last = picture;
        } else if moved.elapsed() > STUCK {
            return Ok(false);
        }
    }
}

/// Every node has one pod of the present version and nothing else, and the status says so.
fn is_in_place(moment: &Moment<'_>) -> bool {
    let Picture {
        nodes,
        pods,
        deleting,
        updated,
        ..
    } = *moment.picture;
    let status = |field: &str| moment.object["status"][field].as_u64().unwrap_or_default();
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
        && moment.object["status"]["observedGeneration"] == moment.object["metadata"]["generation"]
}

/// One node is without a ready pod, and the status says that it must not run one now.
fn is_known_to_be_broken(moment: &Moment<'_>) -> bool {
    moment.picture.available + 1 == moment.picture.nodes && moment.object["status"]["numberMisscheduled"] == 1
}
