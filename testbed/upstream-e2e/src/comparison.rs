//! Decides whether Nodewise did as well as kube-controller-manager, and formats the table.

use std::{fmt::Write as _, time::Duration};

use crate::{
    owner::Owner,
    report::{Spec, SuiteRun},
};

/// The number of specs of the suites in the Kubernetes version of the testbed. Another version may have another number.
const SPECS: usize = 28;

/// How much longer the specs may take with Nodewise than with kube-controller-manager: a second for each spec.
///
/// The specs poll pods every second and a status every two seconds, some twenty times in a run. A change just after a
/// poll costs the whole interval, so the runs of one owner differ by seconds. The README has measurements.
const TOLERANCE: Duration = Duration::from_secs(SPECS as u64);

/// The table cell for a spec that a run does not have.
const ABSENT: &str = "–";

/// Both runs of the suite.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The run with kube-controller-manager.
    pub peer: SuiteRun,
    /// The run with Nodewise.
    pub nodewise: SuiteRun,
}

impl Comparison {
    /// The reasons why Nodewise does not do as well as kube-controller-manager; empty if it does.
    #[must_use]
    pub fn objections(&self) -> Vec<String> {
        let mut objections = Vec::new();
        for (owner, run) in self.runs() {
            let name = owner.name();
            for failure in &run.failures {
                objections.push(format!("{name}: {failure}"));
            }
            for spec in &run.specs {
                if let Some(failure) = &spec.failure {
                    objections.push(format!("{name}: {}: {failure}", spec.name));
                }
            }
            let count = run.specs.len();
            if count != SPECS {
                objections.push(format!("{name}: {count} specs ran where {SPECS} are expected"));
            }
        }
        // A failed spec waits for minutes, so the times are compared only if all specs passed.
        if objections.is_empty() && self.nodewise.total() > self.longest() {
            objections.push(format!(
                "nodewise took {} for all specs, and may take {}: what kube-controller-manager took, and {} more",
                seconds(self.nodewise.total()),
                seconds(self.longest()),
                seconds(TOLERANCE),
            ));
        }
        objections
    }

    /// A line for each spec with its time in both runs, then the totals.
    #[must_use]
    pub fn table(&self) -> String {
        let mut rows = vec![[
            "spec".to_owned(),
            Owner::KubeControllerManager.name().to_owned(),
            Owner::Nodewise.name().to_owned(),
        ]];
        rows.extend(self.names().into_iter().map(|name| {
            let [peer, nodewise] = self.runs().map(|(_, run)| cell(run, name));
            [name.to_owned(), peer, nodewise]
        }));
        rows.push([
            "all".to_owned(),
            seconds(self.peer.total()),
            seconds(self.nodewise.total()),
        ]);
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
        let [name, peer, nodewise] = [0, 1, 2].map(|column| width(column).unwrap_or_default());
        let mut text = String::new();
        for row in &rows {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{:name$}  {:>peer$}  {:>nodewise$}", row[0], row[1], row[2]);
        }
        text
    }

    /// How long Nodewise may take for all specs.
    fn longest(&self) -> Duration {
        self.peer.total() + TOLERANCE
    }

    fn runs(&self) -> [(Owner, &SuiteRun); 2] {
        [
            (Owner::KubeControllerManager, &self.peer),
            (Owner::Nodewise, &self.nodewise),
        ]
    }

    /// The names of all specs, in the order of the first run.
    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for spec in self.peer.specs.iter().chain(&self.nodewise.specs) {
            if !names.contains(&spec.name.as_str()) {
                names.push(&spec.name);
            }
        }
        names
    }
}

fn cell(run: &SuiteRun, name: &str) -> String {
    let spec = run.specs.iter().find(|spec| spec.name == name);
    spec.map_or_else(|| ABSENT.to_owned(), outcome)
}

fn outcome(spec: &Spec) -> String {
    let failed = if spec.failure.is_some() { "FAILED " } else { "" };
    format!("{failed}{}", seconds(spec.duration))
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Failure;

    fn spec(name: &str, duration: Duration) -> Spec {
        Spec {
            name: name.to_owned(),
            duration,
            failure: None,
        }
    }

    /// A run with the expected number of specs and this total duration.
    fn run(total: Duration) -> SuiteRun {
        let mut run = SuiteRun::default();
        for number in 0..SPECS {
            run.specs.push(spec(&format!("spec {number}"), Duration::ZERO));
        }
        run.specs[0].duration = total;
        run
    }

    fn failure(message: &str) -> Failure {
        Failure {
            what: "failed".to_owned(),
            message: message.to_owned(),
            location: None,
        }
    }

    fn objections(change: impl FnOnce(&mut Comparison)) -> Vec<String> {
        let mut comparison = Comparison {
            peer: run(Duration::from_secs(70)),
            nodewise: run(Duration::from_secs(70)),
        };
        change(&mut comparison);
        comparison.objections()
    }

    #[test]
    fn times_within_the_tolerance_are_accepted() {
        assert!(objections(|_| {}).is_empty());
        let slower = |more| objections(move |it| it.nodewise = run(Duration::from_secs(70) + more));
        assert!(slower(TOLERANCE).is_empty());
        let said = slower(TOLERANCE + Duration::from_millis(100));
        assert_eq!(said.len(), 1);
        assert!(
            said[0].contains(" took 98.1 s for all specs, and may take 98.0 s"),
            "{said:?}"
        );
    }

    #[test]
    fn failures_name_owner_and_spec() {
        let said = objections(|it| {
            it.nodewise.specs[3].failure = Some(failure("no pod"));
            // The duration exceeds the limit too, but does not count because of the failure.
            it.nodewise.specs[3].duration = Duration::from_mins(5);
        });
        assert_eq!(said, ["nodewise: spec 3: failed: no pod"]);
        let said = objections(|it| it.peer.failures.push(failure("no node")));
        assert_eq!(said, ["kube-controller-manager: failed: no node"]);
    }

    #[test]
    fn missing_specs_are_objections() {
        let said = objections(|it| {
            it.nodewise.specs.pop();
        });
        assert_eq!(said, ["nodewise: 27 specs ran where 28 are expected"]);
        let said = objections(|it| it.peer = SuiteRun::default());
        assert_eq!(
            said,
            ["kube-controller-manager: 0 specs ran where 28 are expected"]
        );
    }

    #[test]
    fn the_table_has_both_times_of_each_spec_and_both_totals() {
        let mut failed = spec("should retry", Duration::from_secs(301));
        failed.failure = Some(failure("no pod"));
        let comparison = Comparison {
            peer: SuiteRun {
                specs: vec![
                    spec("should run", Duration::from_millis(1_250)),
                    spec("only here", Duration::from_secs(2)),
                ],
                failures: Vec::new(),
            },
            nodewise: SuiteRun {
                specs: vec![failed, spec("should run", Duration::from_millis(940))],
                failures: Vec::new(),
            },
        };
        assert_eq!(
            comparison.table(),
            "spec          kube-controller-manager        nodewise\n\
             should run                      1.2 s           0.9 s\n\
             only here                       2.0 s               –\n\
             should retry                        –  FAILED 301.0 s\n\
             all                             3.2 s         301.9 s\n"
        );
    }
}
