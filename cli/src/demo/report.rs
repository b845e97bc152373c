//! The report of the demo, as JSON and as text.

use serde::Serialize;

use super::trace::Trace;
use crate::text::{ADD, BOLD, DIM, ERROR, PLAIN, Page, count};

/// The limits of a phase. Counts of nodes; of replicas, if the phase changes the Deployment.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Budget {
    /// Nodes without a ready pod, or replicas that are not ready, at the same time. `None` if no pods ran before the phase.
    pub(super) unavailable: Option<usize>,
    /// Nodes with a second pod, or pods beyond the replicas, at the same time.
    pub(super) surging: usize,
}

/// The results of one phase, as the simulated cluster counted them.
#[derive(Debug, Serialize)]
pub(super) struct Phase {
    pub(super) name: &'static str,
    /// Pods created.
    pub(super) created: u64,
    /// Pods deleted.
    pub(super) deleted: u64,
    /// Batches of writes that the executor applied.
    pub(super) batches: u64,
    /// Plans that the service made.
    pub(super) plans: u64,
    pub(super) max_unavailable_seen: usize,
    pub(super) max_surging_seen: usize,
    pub(super) seconds: f64,
    /// The limits of the phase.
    pub(super) budget: Budget,
    /// Whether the phase reached its end.
    pub(super) converged: bool,
}

impl Phase {
    fn held_its_budget(&self) -> bool {
        self.budget
            .unavailable
            .is_none_or(|allowed| self.max_unavailable_seen <= allowed)
            && self.max_surging_seen <= self.budget.surging
    }
}

/// The report of the whole demo.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    nodes: usize,
    /// The replicas of the Deployment.
    replicas: usize,
    /// The number of pods that a node had beyond what the update strategy allows.
    pub(super) duplicates: u64,
    /// Whether every phase reached its end.
    converged: bool,
    /// Whether every phase kept its limits.
    budgets_held: bool,
    phases: Vec<Phase>,
    /// The trace of the slowest reconcile, with `--trace`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) slowest_reconcile: Option<Trace>,
}

impl Report {
    pub(super) fn new(nodes: usize, replicas: usize) -> Self {
        Self {
            nodes,
            replicas,
            duplicates: 0,
            converged: true,
            budgets_held: true,
            phases: Vec::new(),
            slowest_reconcile: None,
        }
    }

    pub(super) fn add(&mut self, phase: Phase) {
        self.converged &= phase.converged;
        self.budgets_held &= phase.held_its_budget();
        self.phases.push(phase);
    }

    pub(super) fn succeeded(&self) -> bool {
        self.converged && self.budgets_held && self.duplicates == 0
    }
}

/// Renders the introduction.
pub(super) fn introduction(page: &mut Page, nodes: usize, server: &str) {
    page.line(
        0,
        BOLD,
        &format!("A cluster of {}, simulated in this process", count(nodes, "node")),
    );
    let text = format!(
        "An executor watches it and asks a planning service on {server} over gRPC what to do. \
         The numbers of nodes and pods below were counted by the simulated cluster itself."
    );
    page.line(0, DIM, &text);
    page.blank();
}

/// Renders the results of a phase.
pub(super) fn phase(page: &mut Page, title: &str, phase: &Phase) {
    let (sign, style) = if phase.converged && phase.held_its_budget() {
        ("✓", ADD)
    } else {
        ("✗", ERROR)
    };
    page.marked(
        0,
        sign,
        style,
        PLAIN,
        &format!("{title} ({:.1} s)", phase.seconds),
    );
    let mut parts = vec![
        format!("{} created, {} deleted", pods(phase.created), phase.deleted),
        format!(
            "{}, {}",
            counted(phase.plans, "plan"),
            counted(phase.batches, "batch")
        ),
    ];
    if let Some(allowed) = phase.budget.unavailable {
        parts.push(format!(
            "unavailable at once: {} of {allowed} allowed",
            phase.max_unavailable_seen
        ));
    }
    if phase.budget.surging > 0 || phase.max_surging_seen > 0 {
        parts.push(format!(
            "surging at once: {} of {} allowed",
            phase.max_surging_seen, phase.budget.surging
        ));
    }
    page.line(2, DIM, &parts.join("; "));
    if !phase.converged {
        page.line(2, ERROR, "did not complete: nothing changes any more");
    }
}

fn counted(number: u64, noun: &str) -> String {
    count(usize::try_from(number).unwrap_or(usize::MAX), noun)
}

fn pods(number: u64) -> String {
    counted(number, "pod")
}

/// Renders the result of the demo.
pub(super) fn conclusion(page: &mut Page, report: &Report) {
    page.blank();
    let plans: u64 = report.phases.iter().map(|phase| phase.plans).sum();
    let seconds: f64 = report.phases.iter().map(|phase| phase.seconds).sum();
    let nodes = count(report.nodes, "node");
    if report.succeeded() {
        let text = format!(
            "Converged: {nodes}, one pod of the DaemonSet's newest version each, and {} of the Deployment's. No budget was exceeded, no node ever had a duplicate pod. \
             {plans} plans in {seconds:.1} s.",
            count(report.replicas, "replica")
        );
        page.line(0, BOLD, &text);
        return;
    }
    let mut faults = Vec::new();
    if !report.converged {
        faults.push("the last phase did not reach its end".to_owned());
    }
    if !report.budgets_held {
        faults.push("a budget was exceeded".to_owned());
    }
    if report.duplicates > 0 {
        faults.push(format!("{} too many on a node", pods(report.duplicates)));
    }
    page.line(0, ERROR, &format!("Failed: {}.", faults.join("; ")));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase() -> Phase {
        Phase {
            name: "surge",
            created: 20,
            deleted: 1,
            batches: 1,
            plans: 7,
            max_unavailable_seen: 2,
            max_surging_seen: 1,
            seconds: 1.25,
            budget: Budget {
                unavailable: Some(2),
                surging: 1,
            },
            converged: true,
        }
    }

    /// Each condition of success, and the message if it fails.
    #[test]
    fn the_demo_succeeds_only_when_everything_holds() {
        type Case = (fn(&mut Phase), u64, Option<&'static str>);
        let table: [Case; 6] = [
            (|_| (), 0, None),
            (|phase| phase.budget.unavailable = None, 0, None),
            (
                |phase| phase.max_unavailable_seen = 3,
                0,
                Some("Failed: a budget was exceeded."),
            ),
            (
                |phase| phase.max_surging_seen = 2,
                0,
                Some("Failed: a budget was exceeded."),
            ),
            (
                |phase| phase.converged = false,
                0,
                Some("Failed: the last phase did not reach its end."),
            ),
            (|_| (), 2, Some("Failed: 2 pods too many on a node.")),
        ];
        for (change, duplicates, failure) in table {
            let mut phase = phase();
            change(&mut phase);
            let mut report = Report::new(20, 20);
            report.add(phase);
            report.duplicates = duplicates;
            assert_eq!(report.succeeded(), failure.is_none());
            let mut page = Page::new(None);
            conclusion(&mut page, &report);
            let text = anstream::adapter::strip_str(&page.into_text()).to_string();
            assert!(text.contains(failure.unwrap_or("Converged: 20 nodes")), "{text}");
        }
    }

    #[test]
    fn a_phase_reads_well() {
        let mut page = Page::new(None);
        super::phase(&mut page, "roll out", &phase());
        let text = anstream::adapter::strip_str(&page.into_text()).to_string();
        assert_eq!(
            text,
            "✓ roll out (1.2 s)\n  20 pods created, 1 deleted; 7 plans, 1 batch; unavailable at once: 2 of 2 allowed; \
             surging at once: 1 of 1 allowed\n"
        );
    }
}
