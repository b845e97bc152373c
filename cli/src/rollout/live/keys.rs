//! The keys of the live view.

use nodewise_proto::workload::{DEPLOYMENT, REPLICA_SET};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::view::View;
use crate::terminal::scrolled_by;

/// What a key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    Quit,
    Close,
    /// Carry out the change that is asked for.
    Yes,
    Undo,
    /// Pause, or resume if the Deployment or the policy is paused.
    Pause,
    /// Approve the stage that a policy waits for.
    Approve,
    /// Let the nodes of a rollout with a policy go back.
    Rollback,
    Retry,
    Restart,
    Explain,
    Logs,
    Diff,
    Help,
    Scroll(i32),
}

/// What a key does now. `None`: nothing.
pub(super) fn command(key: KeyEvent, view: &View) -> Option<Command> {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return (key.code == KeyCode::Char('c')).then_some(Command::Quit);
    }
    if let Some(rows) = scrolled_by(key) {
        return Some(Command::Scroll(rows));
    }
    if let Some(window) = &view.window {
        let is_asking = window.proposal.is_some();
        return match key.code {
            KeyCode::Char('y') if is_asking => Some(Command::Yes),
            KeyCode::Char('n' | 'q') | KeyCode::Esc => Some(Command::Close),
            KeyCode::Enter if !is_asking => Some(Command::Close),
            _ => None,
        };
    }
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => Some(Command::Quit),
        KeyCode::Char('u') => Some(Command::Undo),
        KeyCode::Char('p') => Some(Command::Pause),
        KeyCode::Char('a') => Some(Command::Approve),
        KeyCode::Char('b') => Some(Command::Rollback),
        KeyCode::Char('r') => Some(Command::Retry),
        KeyCode::Char('R') => Some(Command::Restart),
        KeyCode::Char('e') => Some(Command::Explain),
        KeyCode::Char('l') => Some(Command::Logs),
        KeyCode::Char('d') => Some(Command::Diff),
        KeyCode::Char('?' | 'h') => Some(Command::Help),
        _ => None,
    }
}

/// The keys that do something now, in a line.
pub(super) fn legend(view: &View) -> String {
    if let Some(window) = &view.window {
        return if window.proposal.is_some() {
            "y yes  n no  ↑↓ scroll".to_owned()
        } else {
            "Esc close  ↑↓ scroll".to_owned()
        };
    }
    let kind = view.status.as_ref().map_or("", |status| &status.kind);
    let pause = if view.is_paused { "p resume" } else { "p pause" };
    let policy = view.status.as_ref().and_then(|status| status.policy.as_ref());
    let mut keys = Vec::new();
    let may_approve = policy.is_some_and(|policy| policy.pending_approval.is_some());
    if may_approve {
        keys.push("a approve");
    }
    if kind != REPLICA_SET {
        keys.push("u undo");
    }
    if kind == DEPLOYMENT || policy.is_some() {
        keys.push(pause);
    }
    keys.extend(["r retry", "e explain"]);
    // With the approval, 80 columns have no room for all.
    if !may_approve {
        keys.push("l logs");
    }
    if kind != REPLICA_SET && !may_approve {
        keys.push("d diff");
    }
    keys.extend(["↑↓ scroll", "? help", "q quit"]);
    keys.join("  ")
}

/// The keys, and what they do.
pub(super) const HELP: [(&str, &str); 11] = [
    (
        "u",
        "go back to the revision before: shows the difference and kubectl's command, and asks",
    ),
    (
        "p",
        "pause a Deployment or the RolloutPolicy of a DaemonSet, or resume it",
    ),
    (
        "a",
        "approve the stage that a RolloutPolicy waits for: shows its nodes and the plan, and asks",
    ),
    (
        "b",
        "let a RolloutPolicy reject the new revision and take its nodes back; the DaemonSet is not changed",
    ),
    (
        "r",
        "delete the pods that hold up the rollout, so that their controller creates them anew",
    ),
    ("R", "replace all pods, with the same template"),
    ("e", "explain which rule decides for each node or pod, and why"),
    ("l", "show the log of a pod that holds up the rollout"),
    (
        "d",
        "show what differs between the present template and the revision before",
    ),
    ("↑ ↓", "scroll; also j, k, Page Up, Page Down, Home, End"),
    (
        "q",
        "quit; the exit status is 0 when the rollout is complete, 2 while it is in progress, 3 when it is stuck",
    ),
];

#[cfg(test)]
mod tests {
    use nodewise_proto::v1;

    use super::*;
    use crate::rollout::live::view::Window;

    fn key(code: KeyCode) -> KeyEvent {
        KeyEvent::new(code, KeyModifiers::NONE)
    }

    #[test]
    fn a_window_without_a_question_takes_no_yes() {
        let mut view = View::default();
        assert_eq!(command(key(KeyCode::Char('u')), &view), Some(Command::Undo));
        assert_eq!(command(key(KeyCode::Esc), &view), Some(Command::Quit));
        view.window = Some(Window::default());
        assert_eq!(command(key(KeyCode::Char('y')), &view), None);
        assert_eq!(command(key(KeyCode::Char('u')), &view), None);
        assert_eq!(command(key(KeyCode::Esc), &view), Some(Command::Close));
    }

    #[test]
    fn the_keys_fit_into_80_columns() {
        let status = v1::WorkloadStatus {
            kind: DEPLOYMENT.to_owned(),
            ..v1::WorkloadStatus::default()
        };
        let view = View {
            status: Some(status),
            is_paused: true,
            ..View::default()
        };
        let keys = legend(&view);
        assert!(keys.chars().count() <= 80 && keys.ends_with("q quit"), "{keys}");
    }

    #[test]
    fn the_keys_of_a_rollout_with_a_policy_fit_and_begin_with_the_approval() {
        let status = v1::WorkloadStatus {
            kind: nodewise_proto::workload::DAEMON_SET.to_owned(),
            policy: Some(v1::PolicyRollout {
                pending_approval: Some(v1::PolicyApproval::default()),
                ..v1::PolicyRollout::default()
            }),
            ..v1::WorkloadStatus::default()
        };
        let view = View {
            status: Some(status),
            ..View::default()
        };
        let keys = legend(&view);
        assert!(
            keys.chars().count() <= 80 && keys.starts_with("a approve"),
            "{keys}"
        );
        assert!(keys.contains("p pause") && keys.ends_with("q quit"), "{keys}");
        assert_eq!(command(key(KeyCode::Char('a')), &view), Some(Command::Approve));
        assert_eq!(command(key(KeyCode::Char('b')), &view), Some(Command::Rollback));
    }
}
