//! Reads the JSON report of ginkgo, the test framework of the suite.

use std::{fmt, time::Duration};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

/// One run of the suite.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SuiteRun {
    /// The specs that ran, in order.
    pub specs: Vec<Spec>,
    /// Failures outside of specs: in the set-up or clean-up of the suite, or of the whole run.
    pub failures: Vec<Failure>,
}

/// One test of the suite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// The text of the spec, without the text of its group.
    pub name: String,
    /// The duration.
    pub duration: Duration,
    /// The failure, unless the spec passed.
    pub failure: Option<Failure>,
}

/// A failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Ginkgo's state (`failed`, `timedout`, `panicked`). Outside of a spec with the type of the node.
    pub what: String,
    /// The message of the test.
    pub message: String,
    /// File and line of the test, if ginkgo reports them.
    pub location: Option<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.message)?;
        match &self.location {
            Some(location) => write!(f, "\n    at {location}"),
            None => Ok(()),
        }
    }
}

impl SuiteRun {
    /// Parses the report of a run. Specs outside the focus are not included.
    ///
    /// # Errors
    /// The text is not ginkgo's report of one suite.
    pub fn parse(json: &str) -> Result<Self> {
        let reports: Vec<Report> = serde_json::from_str(json).context("reading ginkgo's JSON report")?;
        ensure!(
            reports.len() == 1,
            "ginkgo's JSON report is of {} suites, not of one",
            reports.len()
        );
        let mut run = Self::default();
        for report in reports {
            let reasons = report.special_suite_failure_reasons.unwrap_or_default();
            run.failures.extend(reasons.into_iter().map(|message| Failure {
                what: "the whole run failed".to_owned(),
                message,
                location: None,
            }));
            for node in report.spec_reports.unwrap_or_default() {
                run.add(node);
            }
        }
        Ok(run)
    }

    /// Adds what another run of the test program ran.
    pub fn append(&mut self, other: Self) {
        self.specs.extend(other.specs);
        self.failures.extend(other.failures);
    }

    /// The total duration of all specs, without set-up and clean-up of the suite.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.specs.iter().map(|spec| spec.duration).sum()
    }

    /// Whether everything that ran passed.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.failures.is_empty() && self.specs.iter().all(|spec| spec.failure.is_none())
    }

    fn add(&mut self, node: Node) {
        let is_spec = node.leaf_node_type == "It";
        let failure = match node.state.as_str() {
            "passed" => None,
            // Specs outside the focus have no failure entry. A spec that skips itself has one, and did not pass.
            "skipped" | "pending" if node.failure.is_none() => return,
            state => {
                let what = if is_spec {
                    state.to_owned()
                } else {
                    format!("{} {state}", node.leaf_node_type)
                };
                Some(node.failure.unwrap_or_default().of(what))
            }
        };
        if is_spec {
            self.specs.push(Spec {
                name: node.leaf_node_text,
                duration: Duration::from_nanos(node.run_time),
                failure,
            });
        } else {
            self.failures.extend(failure);
        }
    }
}

/// The parts of ginkgo's `types.Report` that are used.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Report {
    special_suite_failure_reasons: Option<Vec<String>>,
    spec_reports: Option<Vec<Node>>,
}

/// Ginkgo's `types.SpecReport`: a spec, or a set-up or clean-up of the suite.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Node {
    leaf_node_type: String,
    #[serde(default)]
    leaf_node_text: String,
    state: String,
    /// In nanoseconds.
    run_time: u64,
    failure: Option<NodeFailure>,
}

/// Ginkgo's `types.Failure`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct NodeFailure {
    message: String,
    forwarded_panic: String,
    location: Location,
}

/// Ginkgo's `types.CodeLocation`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Location {
    file_name: String,
    line_number: u32,
}

impl NodeFailure {
    fn of(self, what: String) -> Failure {
        let message = [self.message, self.forwarded_panic];
        let parts: Vec<_> = message.iter().filter(|part| !part.is_empty()).collect();
        Failure {
            what,
            message: match parts.as_slice() {
                [] => "the report does not say why".to_owned(),
                parts => parts
                    .iter()
                    .map(|part| part.trim())
                    .collect::<Vec<_>>()
                    .join(": "),
            },
            location: (!self.location.file_name.is_empty())
                .then(|| format!("{}:{}", self.location.file_name, self.location.line_number)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn parse(nodes: &[Value], reasons: &Value) -> Result<SuiteRun> {
        let report = json!([{"SpecialSuiteFailureReasons": reasons, "SpecReports": nodes}]);
        SuiteRun::parse(&report.to_string())
    }

    fn node(kind: &str, state: &str) -> Value {
        json!({"LeafNodeType": kind, "LeafNodeText": "should run", "State": state, "RunTime": 1_500_000_000})
    }

    #[test]
    fn specs_that_ran_are_read_with_their_times() -> Result<()> {
        let nodes = [
            node("SynchronizedBeforeSuite", "passed"),
            node("It", "passed"),
            node("It", "skipped"),
            node("It", "pending"),
        ];
        let run = parse(&nodes, &Value::Null)?;
        assert!(run.passed());
        assert_eq!(run.total(), Duration::from_millis(1_500));
        let names: Vec<_> = run.specs.iter().map(|spec| spec.name.as_str()).collect();
        assert_eq!(names, ["should run"]);
        Ok(())
    }

    #[test]
    fn failures_have_a_reason() -> Result<()> {
        let cases = [
            (
                "It",
                "failed",
                json!({"Message": "no pod\n", "Location": {"FileName": "daemon_set.go", "LineNumber": 7}}),
                "failed: no pod\n    at daemon_set.go:7",
            ),
            (
                "It",
                "panicked",
                json!({"Message": "Test Panicked", "ForwardedPanic": "nil map"}),
                "panicked: Test Panicked: nil map",
            ),
            (
                "It",
                "timedout",
                json!({}),
                "timedout: the report does not say why",
            ),
            // A spec that skips itself, for example because it needs another provider.
            (
                "It",
                "skipped",
                json!({"Message": "not on skeleton"}),
                "skipped: not on skeleton",
            ),
            (
                "SynchronizedBeforeSuite",
                "failed",
                json!({"Message": "no node is ready"}),
                "SynchronizedBeforeSuite failed: no node is ready",
            ),
        ];
        for (kind, state, failure, told) in cases {
            let mut node = node(kind, state);
            node["Failure"] = failure;
            let run = parse(&[node], &Value::Null)?;
            assert!(!run.passed(), "{kind} {state}");
            let specs = run.specs.iter().filter_map(|spec| spec.failure.as_ref());
            let all: Vec<_> = specs.chain(&run.failures).map(ToString::to_string).collect();
            assert_eq!(all, [told]);
        }
        Ok(())
    }

    #[test]
    fn interrupted_run_did_not_pass() -> Result<()> {
        let run = parse(&[node("It", "passed")], &json!(["Suite Timeout Elapsed"]))?;
        assert!(!run.passed());
        assert_eq!(
            run.failures[0].to_string(),
            "the whole run failed: Suite Timeout Elapsed"
        );
        Ok(())
    }

    #[test]
    fn invalid_report_is_an_error() {
        for (text, said) in [("{}", "ginkgo's JSON report"), ("[]", "0 suites")] {
            let error = SuiteRun::parse(text).expect_err("no report");
            assert!(format!("{error:#}").contains(said), "{error:#}");
        }
    }
}
