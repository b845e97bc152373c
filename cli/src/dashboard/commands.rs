//! Commands for people to copy.

use nodewise_dashboard::Command;
use nodewise_proto::v1;

use crate::rollout::hints;

/// What the commands of hints are for, by how they begin; and whether they change the cluster.
const PURPOSES: [(&str, &str, bool); 8] = [
    ("nodewise explain", "Explain the state of each node or pod", false),
    ("kubectl logs", "Show how the failing container ended last", false),
    ("nodewise rollout diff", "Compare with the revision before", false),
    ("nodewise rollout undo", "Go back to the revision before", true),
    ("nodewise rollout pause", "Pause the rollout", true),
    ("nodewise rollout resume", "Resume the rollout", true),
    (
        "nodewise rollout rollback",
        "Reject the new revision, and let its nodes go back to the stable one",
        true,
    ),
    (
        "nodewise rollout retry",
        "Delete the pods that hold up the rollout",
        true,
    ),
];

/// The commands for a workload. The most useful one is the first.
pub(super) fn of(status: &v1::WorkloadStatus) -> Vec<Command> {
    let target = format!(
        "{}/{} -n {}",
        status.kind.to_ascii_lowercase(),
        status.name,
        status.namespace
    );
    let mut commands: Vec<Command> = hints::of(status).into_iter().map(described).collect();
    commands.push(Command {
        purpose: "Watch the rollout in a terminal".to_owned(),
        line: format!("nodewise rollout status {target} --watch"),
        changes: false,
    });
    commands.push(Command {
        purpose: "Show the plan: what the controller does next".to_owned(),
        line: format!("nodewise plan {target}"),
        changes: false,
    });
    commands
}

fn described(line: String) -> Command {
    let known = PURPOSES.iter().find(|(begin, ..)| line.starts_with(begin));
    let (_, purpose, changes) = known.copied().unwrap_or(("", "Look closer", true));
    Command {
        purpose: purpose.to_owned(),
        line,
        changes,
    }
}
