//! Renders the explanation of one pod.

use jiff::Timestamp;
use nodewise_projection::{moment, timestamp};
use nodewise_proto::v1;

use crate::text::{ADD, BOLD, CHANGE, DIM, PLAIN, Page, REMOVE, status::age};

/// The pod itself: its problem first.
pub(crate) fn render(
    page: &mut Page,
    namespace: &str,
    name: &str,
    pod: Option<&v1::PodStatus>,
    now: Timestamp,
) {
    let Some(pod) = pod else {
        page.line(0, BOLD, &format!("Pod {namespace}/{name}"));
        return;
    };
    let on = match pod.node_name.as_str() {
        "" => ", on no node yet".to_owned(),
        node => format!(" on {node}"),
    };
    page.line(0, BOLD, &format!("Pod {namespace}/{name}{on}"));
    let now = Some(timestamp(now));
    let since = |at| age(at, now).map_or_else(String::new, |age| format!(" for {age}"));
    if pod.ready {
        let text = if pod.available {
            "available"
        } else {
            "ready, not yet available"
        };
        page.marked(2, "✓", ADD, PLAIN, text);
    } else if let Some(problem) = &pod.problem {
        let (sign, style) = if problem.is_failing {
            ("✗", REMOVE)
        } else {
            ("·", CHANGE)
        };
        let last = match problem.last_exit.as_str() {
            "" => String::new(),
            last => format!("; it ended last with {last}"),
        };
        let restarts = match problem.restarts {
            0 => String::new(),
            1 => "; restarted once".to_owned(),
            restarts => format!("; restarted {restarts} times"),
        };
        let text = format!(
            "{}{restarts}{last}; not ready{}",
            problem.message,
            since(pod.not_ready_since)
        );
        page.marked(2, sign, style, PLAIN, &text);
    } else {
        page.marked(
            2,
            "·",
            CHANGE,
            PLAIN,
            &format!("not ready{}", since(pod.not_ready_since)),
        );
    }
    if pod.deleted_at.is_some() {
        let holds = match pod.finalizers.as_slice() {
            [] => "its node has not confirmed that the containers have ended".to_owned(),
            finalizers => format!("finalizers hold it: {}", finalizers.join(", ")),
        };
        let overdue = pod.deleted_at.and_then(moment);
        let overdue = overdue.map_or_else(String::new, |at| format!("; it should be gone at {at}"));
        page.marked(
            2,
            "!",
            CHANGE,
            PLAIN,
            &format!("is being deleted{overdue}: {holds}"),
        );
    }
    if let Some(age) = age(pod.created_at, now) {
        page.line(2, DIM, &format!("created {age} ago"));
    }
}

/// The workload, and what it decides about a pod of a ReplicaSet.
pub(crate) fn render_workload(page: &mut Page, title: &str, replica: Option<&v1::ReplicaExplanation>) {
    page.line(2, PLAIN, &format!("controlled by {title}"));
    let Some(replica) = replica else { return };
    let place = match replica.deletion_order {
        0 => String::new(),
        place => format!("place {place} in the order of a scale-down: "),
    };
    page.line(2, PLAIN, &format!("{place}{}", replica.message));
}

/// A pod that no DaemonSet, ReplicaSet or Deployment controls.
pub(crate) fn render_without_workload(page: &mut Page, controller: Option<&v1::ControllerReference>) {
    let text = match controller {
        Some(controller) => format!(
            "controlled by {} {}; DaemonSets, ReplicaSets and Deployments are explained",
            controller.kind, controller.name
        ),
        None => "no controller: nobody replaces this pod when it is gone".to_owned(),
    };
    page.line(2, PLAIN, &text);
}
