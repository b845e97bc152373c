//! What people want to know about a RolloutPolicy.

use std::collections::BTreeMap;

use jiff::Timestamp;
use nodewise_api::{Duration, IntOrPercent};
use serde::Deserialize;
use serde_json::Value;

use super::{WorkloadFacts, read};

/// What the annotations begin with by which people ask a policy for something.
const REQUEST: &str = "nodewise.dev/";

/// Facts about a RolloutPolicy.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PolicyFacts {
    /// metadata.name.
    pub name: String,
    /// metadata.uid.
    pub uid: String,
    /// metadata.creationTimestamp.
    pub created: Option<Timestamp>,
    /// spec.paused.
    pub is_paused: bool,
    /// spec.onFailure; `Rollback` if it is absent.
    pub on_failure: String,
    /// spec.disruption is `Evict`.
    pub evicts: bool,
    /// The annotations by which people have asked for something, without their values.
    pub requests: Vec<String>,
    /// spec.pace.
    pub(crate) pace: Option<PaceFacts>,
    /// spec.nodes.maxExempt, if it is there.
    pub(crate) max_exempt: Option<IntOrPercent>,
    /// The stages, by name.
    pub(crate) stages: BTreeMap<String, StageFacts>,
    /// status.
    pub(crate) status: Value,
    targets: Option<Targets>,
}

/// Facts about a stage of a policy.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct StageFacts {
    /// approval is `Required`.
    pub(crate) needs_approval: bool,
    /// In seconds.
    pub(crate) soak: i64,
    /// By name.
    pub(crate) checks: BTreeMap<String, CheckFacts>,
}

/// Facts about a check of a stage.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct CheckFacts {
    /// How many measurements are wanted.
    pub(crate) count: u32,
    /// How many may fail.
    pub(crate) failure_limit: u32,
    /// How many may be inconclusive.
    pub(crate) inconclusive_limit: u32,
}

/// How many nodes may be begun within an interval.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PaceFacts {
    pub(crate) nodes: i64,
    /// The interval as it is written.
    pub(crate) interval: String,
    pub(crate) seconds: i64,
}

/// Which DaemonSets a policy applies to.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Targets {
    #[serde(default)]
    names: Vec<String>,
    selector: Option<Selector>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Selector {
    #[serde(default)]
    match_labels: BTreeMap<String, String>,
    #[serde(default)]
    match_expressions: Vec<Requirement>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Requirement {
    key: String,
    operator: Operator,
    #[serde(default)]
    values: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

impl PolicyFacts {
    /// Reads a RolloutPolicy of `nodewise.dev/v1alpha1`.
    #[must_use]
    pub fn of(json: &str) -> Self {
        let mut object = read::object(json);
        let on_failure = read::text(&object, "/spec/onFailure");
        let annotations = object.pointer("/metadata/annotations").and_then(Value::as_object);
        let requests = annotations.into_iter().flat_map(|all| all.keys());
        let stages = read::list(&object, "/spec/stages").iter();
        Self {
            name: read::owned(&object, "/metadata/name"),
            uid: read::owned(&object, "/metadata/uid"),
            created: read::time(&object, "/metadata/creationTimestamp"),
            is_paused: read::flag(&object, "/spec/paused"),
            on_failure: if on_failure.is_empty() {
                "Rollback".to_owned()
            } else {
                on_failure.to_owned()
            },
            pace: object.pointer("/spec/pace").map(PaceFacts::of),
            max_exempt: object
                .pointer("/spec/nodes/maxExempt")
                .and_then(|value| IntOrPercent::deserialize(value).ok()),
            evicts: read::text(&object, "/spec/disruption") == "Evict",
            requests: requests.filter(|key| key.starts_with(REQUEST)).cloned().collect(),
            stages: stages
                .map(|stage| (read::owned(stage, "/name"), StageFacts::of(stage)))
                .collect(),
            targets: object
                .pointer("/spec/targets")
                .and_then(|targets| Targets::deserialize(targets).ok())
                .filter(|targets| targets.names.is_empty() == targets.selector.is_some()),
            status: object["status"].take(),
        }
    }

    /// The policy that counts for a workload, of those of its namespace.
    #[must_use]
    pub fn in_charge<'p>(policies: &'p [Self], workload: &WorkloadFacts) -> Option<&'p Self> {
        let all = Self::of_workload(policies, &workload.name, &workload.labels);
        all.first().copied()
    }

    /// The stage of this name; of a wave, which has the name of its stage and the value of its label, its stage.
    pub(crate) fn stage(&self, name: &str) -> Option<&StageFacts> {
        let of_wave = || self.stages.get(name.split_once('/')?.0);
        self.stages.get(name).or_else(of_wave)
    }

    /// The names of the stages that begin only after an approval.
    pub fn approvals(&self) -> impl Iterator<Item = &str> {
        let stages = self.stages.iter().filter(|(_, stage)| stage.needs_approval);
        stages.map(|(name, _)| name.as_str())
    }

    /// The names of the stages with checks, and of their checks.
    pub fn checks(&self) -> impl Iterator<Item = (&str, &str)> {
        let stages = self.stages.iter();
        stages.flat_map(|(name, stage)| {
            stage
                .checks
                .keys()
                .map(move |check| (name.as_str(), check.as_str()))
        })
    }

    /// The policies of a namespace that target the workload with this name and these labels, that which counts first (L-1): the oldest,
    /// then the first by name. One whose targets cannot be read might target everything, so it is among them, as the last.
    pub(crate) fn of_workload<'p>(
        policies: &'p [Self],
        name: &str,
        labels: &BTreeMap<String, String>,
    ) -> Vec<&'p Self> {
        let targets = |policy: &&Self| {
            let targets = policy.targets.as_ref();
            targets.is_none_or(|targets| targets.include(name, labels))
        };
        let mut found: Vec<&Self> = policies.iter().filter(targets).collect();
        found.sort_by_key(|policy| (policy.targets.is_none(), policy.created, &policy.name));
        found
    }
}

impl PaceFacts {
    fn of(pace: &Value) -> Self {
        let interval = read::owned(pace, "/interval");
        let seconds = interval.parse().map_or(0, Duration::as_secs);
        Self {
            nodes: read::number(pace, "/nodes"),
            seconds: i64::try_from(seconds).unwrap_or(i64::MAX),
            interval,
        }
    }
}

impl StageFacts {
    fn of(stage: &Value) -> Self {
        let soak = read::text(stage, "/soak").parse().map_or(0, Duration::as_secs);
        let number = |check: &Value, field: &str, default: u32| {
            let number = check.get(field).and_then(Value::as_u64);
            number.map_or(default, |number| u32::try_from(number).unwrap_or(u32::MAX))
        };
        let check = |check: &Value| {
            let count = number(check, "count", nodewise_api::defaults::ANALYSIS_COUNT);
            let facts = CheckFacts {
                count,
                failure_limit: number(check, "failureLimit", nodewise_api::defaults::FAILURE_LIMIT),
                inconclusive_limit: number(
                    check,
                    "inconclusiveLimit",
                    nodewise_api::defaults::INCONCLUSIVE_LIMIT,
                ),
            };
            (read::owned(check, "/name"), facts)
        };
        Self {
            needs_approval: read::text(stage, "/approval") == "Required",
            soak: i64::try_from(soak).unwrap_or(i64::MAX),
            checks: read::list(stage, "/analysis").iter().map(check).collect(),
        }
    }
}

impl Targets {
    fn include(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        match &self.selector {
            None => self.names.iter().any(|target| target == name),
            Some(selector) => {
                let mut wanted = selector.match_labels.iter();
                wanted.all(|(key, value)| labels.get(key) == Some(value))
                    && selector.match_expressions.iter().all(|one| one.is_met(labels))
            }
        }
    }
}

impl Requirement {
    fn is_met(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        let is_listed = value.is_some_and(|value| self.values.contains(value));
        match self.operator {
            Operator::In => is_listed,
            Operator::NotIn => !is_listed,
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn policy(name: &str, created: &str, targets: &Value) -> PolicyFacts {
        let object =
            json!({"metadata": {"name": name, "creationTimestamp": created}, "spec": {"targets": targets}});
        PolicyFacts::of(&object.to_string())
    }

    fn names(policies: &[PolicyFacts], labels: &[(&str, &str)]) -> Vec<String> {
        let labels = labels.iter();
        let labels = labels
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        let found = PolicyFacts::of_workload(policies, "agent", &labels);
        found.iter().map(|policy| policy.name.clone()).collect()
    }

    #[test]
    fn l_1_the_oldest_counts_and_one_that_cannot_be_read_comes_last() {
        let [one, two] = ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"];
        let named = json!({"names": ["agent"]});
        let all = [
            policy("b", two, &named),
            policy("a", two, &json!({"selector": {}})),
            policy("other", one, &json!({"names": ["web"]})),
            policy("old", one, &named),
            policy("unreadable", one, &json!({"names": ["agent"], "selector": {}})),
        ];
        assert_eq!(names(&all, &[]), ["old", "a", "b", "unreadable"]);
    }

    #[test]
    fn a_selector_is_that_of_kubernetes() {
        let expression = |operator: &str, values: &[&str]| json!({"selector": {"matchExpressions": [{"key": "team", "operator": operator, "values": values}]}});
        for (targets, with, without) in [
            (json!({"selector": {"matchLabels": {"team": "a"}}}), true, false),
            (expression("In", &["a", "b"]), true, false),
            (expression("NotIn", &["a"]), false, true),
            (expression("Exists", &[]), true, false),
            (expression("DoesNotExist", &[]), false, true),
        ] {
            let all = [policy("p", "2026-01-01T00:00:00Z", &targets)];
            assert_eq!(!names(&all, &[("team", "a")]).is_empty(), with, "{targets}");
            assert_eq!(!names(&all, &[]).is_empty(), without, "{targets}");
        }
    }
}
