//! Projections: from the JSON of the Kubernetes API to the few fields of a node or pod that a plan reads.
//!
//! The partial types here read an object straight off the wire, so that the rest of it (95 % of a pod) is never kept.
//! Nothing is decided here, with one exception that the protocol asks for: the node that an unbound pod is meant for
//! (D-24).

mod first;
mod keys;
mod served;
mod writers;

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use nodewise_proto::{Timestamp, v1};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, SeqAccess, Visitor};
use serde_json::Value;

pub use first::{First, LookedFor};
pub use keys::{KeySet, MAX_LABELS, Reads, reduce_node, reduce_pod};
pub(crate) use keys::{Named, Template};
pub use served::without_managed_fields;
pub use writers::StatusWriter;
pub(crate) use writers::Writers;

/// An object that is not of the shape its API promises.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {message}")]
pub struct ProjectError {
    /// Where in the object, for example `metadata.creationTimestamp`; `.` for the object as a whole.
    pub path: String,
    /// What is wrong there.
    pub message: String,
}

impl ProjectError {
    fn at(path: &str, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
        }
    }
}

/// Projects a v1 Node.
pub fn node(object: &Value) -> Result<v1::Node, ProjectError> {
    node_from(object)
}

/// Projects a v1 Pod.
pub fn pod(object: &Value) -> Result<v1::Pod, ProjectError> {
    pod_from(object)
}

/// Projects a v1 Node as it is read, so that what is not projected takes no memory.
pub fn node_from<'de>(object: impl Deserializer<'de>) -> Result<v1::Node, ProjectError> {
    parse_from::<NodeObject, _>(object)?.project()
}

/// Projects a v1 Pod as it is read.
pub fn pod_from<'de>(object: impl Deserializer<'de>) -> Result<v1::Pod, ProjectError> {
    parse_from::<PodObject, _>(object)?.project()
}

/// Reads one of the partial types of this module from an object and names the field that does not fit.
pub(crate) fn parse<'a, T: Deserialize<'a>>(object: &'a Value) -> Result<T, ProjectError> {
    parse_from(object)
}

/// Reads one of the partial types of this module from the text of an object.
pub(crate) fn parse_text<'a, T: Deserialize<'a>>(object: &'a str) -> Result<T, ProjectError> {
    // To know at every moment where one is takes time, and next to no object is wrong.
    serde_json::from_str(object).or_else(|_| parse_from(&mut serde_json::Deserializer::from_str(object)))
}

fn parse_from<'de, T: Deserialize<'de>, D: Deserializer<'de>>(object: D) -> Result<T, ProjectError> {
    serde_path_to_error::deserialize(object).map_err(|error| ProjectError {
        path: error.path().to_string(),
        message: error.into_inner().to_string(),
    })
}

/// An object as it is kept and sent.
pub(crate) fn kept(object: &str) -> Bytes {
    without_managed_fields(object).into_owned().into()
}

/// Labels as the protocol carries them, ordered by key.
pub(crate) fn labels(labels: Option<BTreeMap<String, String>>) -> Vec<v1::Label> {
    labels
        .into_iter()
        .flatten()
        .map(|(key, value)| v1::Label { key, value })
        .collect()
}

/// The most bytes of a kind, which is the name of a resource in CamelCase.
const LONGEST_KIND: usize = 63;
/// The most bytes of an object's name.
const LONGEST_NAME: usize = 253;
/// The most bytes of a uid: the apiserver makes them of 36.
const LONGEST_UID: usize = 128;

/// The parts of ObjectMeta that are read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Meta {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    pub(crate) labels: Option<BTreeMap<String, String>>,
    owner_references: Option<First<OwnerReference>>,
    pub(crate) finalizers: Option<Vec<IgnoredAny>>,
    pub(crate) creation_timestamp: Option<Time>,
    pub(crate) deletion_timestamp: Option<Time>,
    pub(crate) generation: Option<i64>,
    annotations: Option<Annotations>,
    managed_fields: Option<Writers>,
}

/// The annotations that are read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Annotations {
    // As in `trace::ANNOTATION`.
    #[serde(rename = "nodewise.dev/traceparent")]
    traceparent: Option<String>,
    /// Who deletes old pods where they are replaced on deletion, as the planner of companions reads it.
    #[serde(rename = "nodewise.dev/rollout")]
    rollout: Option<String>,
}

impl Meta {
    /// Whether its rollouts are asked of a companion.
    pub(crate) fn asks_for_rollouts(&self) -> bool {
        let annotations = self.annotations.as_ref();
        annotations.is_some_and(|annotations| annotations.rollout.as_deref() == Some("managed"))
    }

    /// Who wrote the object.
    pub(crate) fn take_writers(&mut self) -> Writers {
        self.managed_fields.take().unwrap_or_default()
    }

    /// The trace that the object names.
    pub(crate) fn traceparent(&self) -> Option<String> {
        self.annotations.as_ref()?.traceparent.clone()
    }

    /// The owner reference with `controller: true`. Of one that is too long for any workload no more is told than that there is one, of no
    /// kind: anyone who may create the object could make it of any size.
    pub(crate) fn controller(&self) -> Option<v1::ControllerReference> {
        let owner = self.owner_references.as_ref()?.0.as_ref()?;
        if owner.kind.len() > LONGEST_KIND || owner.name.len() > LONGEST_NAME || owner.uid.len() > LONGEST_UID
        {
            return Some(v1::ControllerReference::default());
        }
        Some(v1::ControllerReference {
            kind: owner.kind.clone(),
            name: owner.name.clone(),
            uid: owner.uid.clone(),
        })
    }

    pub(crate) fn require_name(&self) -> Result<(), ProjectError> {
        if self.name.is_empty() {
            Err(ProjectError::at("metadata.name", "is missing"))
        } else {
            Ok(())
        }
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct OwnerReference {
    kind: String,
    name: String,
    uid: String,
    controller: Option<bool>,
}

impl LookedFor for OwnerReference {
    fn is_it(&self) -> bool {
        self.controller == Some(true)
    }
}

/// A time as the API writes it (RFC 3339), within the years that the protocol carries.
///
/// An apiserver takes any year with any time zone, and writes what comes of it in UTC: the last day of 9999, a year of five
/// digits, `-0001-12-31T00:01:00Z`, and from a client that speaks Protobuf more than that. Whoever may write the status of one
/// node or pod could stop the whole controller with a time that is refused. Taken for the first or the last moment it
/// says the same: long ago, or not yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Time(jiff::Timestamp);

/// 0001-01-01T00:00:00Z.
const FIRST_SECOND: i64 = -62_135_596_800;
/// 9999-12-30T00:00:00Z, the last moment that the service takes.
const LAST_SECOND: i64 = 253_402_128_000;

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse()
            .ok()
            .or_else(|| beyond(&text))
            .map(|time: jiff::Timestamp| Self(within_the_protocol(time)))
            .ok_or_else(|| D::Error::custom(format!("not a time: {text:?}")))
    }
}

/// A time whose year has a sign or more than four digits, or which is so late that its date may be another one elsewhere.
fn beyond(text: &str) -> Option<jiff::Timestamp> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (year, rest) = digits.split_at_checked(digits.find('-')?)?;
    let is_beyond = year.len() > 4 || year.len() == 4 && (negative || year == "9999");
    if !is_beyond || !year.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    // The rest must be that of a time, in a year that has every day.
    format!("2000{rest}").parse::<jiff::Timestamp>().ok()?;
    Some(if negative {
        jiff::Timestamp::MIN
    } else {
        jiff::Timestamp::MAX
    })
}

fn within_the_protocol(time: jiff::Timestamp) -> jiff::Timestamp {
    let at = |second| jiff::Timestamp::from_second(second).unwrap_or(time);
    time.clamp(at(FIRST_SECOND), at(LAST_SECOND))
}

impl From<Time> for Timestamp {
    fn from(time: Time) -> Self {
        timestamp(time.0)
    }
}

/// A point in time as the protocol carries it.
#[must_use]
pub fn timestamp(time: jiff::Timestamp) -> Timestamp {
    // Before 1970 jiff counts nanoseconds downwards; Protobuf wants them to count forward always.
    let (seconds, nanos) = (time.as_second(), time.subsec_nanosecond());
    if nanos < 0 {
        Timestamp {
            seconds: seconds - 1,
            nanos: nanos + 1_000_000_000,
        }
    } else {
        Timestamp { seconds, nanos }
    }
}

/// The parts of a v1 Node that are read.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct NodeObject {
    pub(crate) metadata: Meta,
    spec: Option<NodeSpec>,
    status: Option<Status>,
}

#[derive(Clone, Debug, Deserialize)]
struct NodeSpec {
    unschedulable: Option<bool>,
    taints: Option<Vec<Taint>>,
}

#[derive(Clone, Debug, Deserialize)]
struct Taint {
    key: String,
    #[serde(default)]
    value: String,
    #[serde(default)]
    effect: String,
}

impl NodeObject {
    pub(crate) fn project(self) -> Result<v1::Node, ProjectError> {
        self.metadata.require_name()?;
        let (unschedulable, taints) = self
            .spec
            .map_or((None, None), |spec| (spec.unschedulable, spec.taints));
        let (_, ready, _) = Status::read(self.status);
        Ok(v1::Node {
            name: self.metadata.name,
            uid: self.metadata.uid,
            labels: labels(self.metadata.labels),
            taints: taints
                .into_iter()
                .flatten()
                .map(|Taint { key, value, effect }| v1::Taint { key, value, effect })
                .collect(),
            unschedulable: unschedulable.unwrap_or(false),
            ready: ready.into(),
        })
    }
}

/// The parts of a v1 Pod that are read.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct PodObject {
    pub(crate) metadata: Meta,
    spec: Option<PodSpec>,
    status: Option<Status>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodSpec {
    node_name: Option<String>,
    affinity: Option<Affinity>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Affinity {
    node_affinity: Option<NodeAffinity>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeAffinity {
    required_during_scheduling_ignored_during_execution: Option<NodeSelector>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeSelector {
    node_selector_terms: Option<First<Term>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Term {
    match_fields: Option<First<Requirement>>,
}

/// A term is looked for that has the deciding field.
impl LookedFor for Term {
    fn is_it(&self) -> bool {
        matches!(self.match_fields, Some(First(Some(_))))
    }
}

/// The field that decides about the target node (D-24).
impl LookedFor for Requirement {
    fn is_it(&self) -> bool {
        self.key == "metadata.name" && self.operator == "In"
    }
}

#[derive(Clone, Debug, Deserialize)]
struct Requirement {
    key: String,
    operator: String,
    values: Option<Vec<String>>,
}

/// The parts of a node's or pod's status that are read.
#[derive(Clone, Debug, Deserialize)]
struct Status {
    phase: Option<String>,
    conditions: Option<Conditions>,
}

/// The first conditions of the types that are read. The others are dropped: however many there are, they take no memory.
#[derive(Clone, Debug, Default)]
struct Conditions {
    ready: Option<Condition>,
    /// DisruptionTarget.
    disruption: Option<Condition>,
}

impl<'de> Deserialize<'de> for Conditions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ReadConditions)
    }
}

struct ReadConditions;

impl<'de> Visitor<'de> for ReadConditions {
    type Value = Conditions;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("conditions")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Conditions, A::Error> {
        let mut conditions = Conditions::default();
        while let Some(condition) = list.next_element::<Condition>()? {
            let kept = match &*condition.kind {
                "Ready" => &mut conditions.ready,
                "DisruptionTarget" => &mut conditions.disruption,
                _ => continue,
            };
            kept.get_or_insert(condition);
        }
        Ok(conditions)
    }
}

/// A reason is a word in CamelCase. Another text is somebody's who may write statuses.
const LONGEST_REASON: usize = 64;

impl PodObject {
    /// Why the pod is about to be deleted, as far as its condition `DisruptionTarget` tells.
    pub(crate) fn disruption(&mut self) -> Option<String> {
        let disruption = self.status.as_mut()?.conditions.as_mut()?.disruption.take()?;
        let is_word = |reason: &String| {
            (1..=LONGEST_REASON).contains(&reason.len())
                && reason.bytes().all(|byte| byte.is_ascii_alphanumeric())
        };
        let reason = disruption.reason.filter(is_word);
        reason.filter(|_| disruption.status == "True")
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    reason: Option<String>,
    last_transition_time: Option<Time>,
}

impl Status {
    /// The phase, and the status and transition time of the first Ready condition.
    fn read(status: Option<Self>) -> (v1::PodPhase, v1::ConditionStatus, Option<Time>) {
        let Some(status) = status else {
            return (v1::PodPhase::Unspecified, v1::ConditionStatus::Unspecified, None);
        };
        let phase = match status.phase.as_deref() {
            Some("Pending") => v1::PodPhase::Pending,
            Some("Running") => v1::PodPhase::Running,
            Some("Succeeded") => v1::PodPhase::Succeeded,
            Some("Failed") => v1::PodPhase::Failed,
            Some("Unknown") => v1::PodPhase::Unknown,
            _ => v1::PodPhase::Unspecified,
        };
        let ready = status.conditions.and_then(|conditions| conditions.ready);
        let Some(ready) = ready else {
            return (phase, v1::ConditionStatus::Unspecified, None);
        };
        let status = match ready.status.as_str() {
            "True" => v1::ConditionStatus::True,
            "False" => v1::ConditionStatus::False,
            _ => v1::ConditionStatus::Unknown,
        };
        (phase, status, ready.last_transition_time)
    }
}

impl PodSpec {
    /// The node that required node affinity names: the first matchFields entry, over the terms in their order, with key
    /// `metadata.name` and operator `In` decides; with any other number of values than one there is no target (D-24).
    fn target_node_name(self) -> String {
        let terms = self
            .affinity
            .and_then(|affinity| affinity.node_affinity)
            .and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution)
            .and_then(|selector| selector.node_selector_terms);
        let deciding = terms
            .and_then(|terms| terms.0)
            .and_then(|term| term.match_fields)
            .and_then(|fields| fields.0);
        match deciding.and_then(|field| field.values).as_deref() {
            Some([name]) => name.clone(),
            _ => String::new(),
        }
    }
}

impl PodObject {
    pub(crate) fn project(self) -> Result<v1::Pod, ProjectError> {
        self.metadata.require_name()?;
        if self.metadata.uid.is_empty() {
            return Err(ProjectError::at("metadata.uid", "is missing"));
        }
        let mut spec = self.spec.unwrap_or_default();
        let node_name = spec.node_name.take().unwrap_or_default();
        let target_node_name = if node_name.is_empty() {
            spec.target_node_name()
        } else {
            String::new()
        };
        let (phase, ready, ready_transition_time) = Status::read(self.status);
        let meta = self.metadata;
        Ok(v1::Pod {
            controller: meta.controller(),
            has_finalizers: meta.finalizers.as_ref().is_some_and(|list| !list.is_empty()),
            name: meta.name,
            uid: meta.uid,
            labels: labels(meta.labels),
            node_name,
            target_node_name,
            phase: phase.into(),
            ready: ready.into(),
            ready_transition_time: ready_transition_time.map(Into::into),
            creation_time: meta.creation_timestamp.map(Into::into),
            deletion_time: meta.deletion_timestamp.map(Into::into),
            shared_metadata: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod_with(spec: &Value) -> Value {
        json!({"metadata": {"name": "p", "uid": "u"}, "spec": spec})
    }

    fn pinned(terms: &Value) -> Value {
        pod_with(&json!({"affinity": {"nodeAffinity":
            {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}}))
    }

    fn field(operator: &str, values: &[&str]) -> Value {
        json!({"key": "metadata.name", "operator": operator, "values": values})
    }

    // D-24, S-41, S-42.
    #[test]
    fn target_node_of_an_unbound_pod() {
        let other = json!({"key": "metadata.uid", "operator": "In", "values": ["x"]});
        for (terms, expected) in [
            (json!([{"matchFields": [field("In", &["a"])]}]), "a"),
            (
                json!([{"matchFields": [other.clone(), field("In", &["a"])]}]),
                "a",
            ),
            (
                json!([{"matchExpressions": []}, {"matchFields": [field("In", &["b"])]}]),
                "b",
            ),
            (
                json!([{"matchFields": [field("NotIn", &["a"])]}, {"matchFields": [field("In", &["b"])]}]),
                "b",
            ),
            // The first one decides, even when it names no single node.
            (
                json!([{"matchFields": [field("In", &["a", "b"])]}, {"matchFields": [field("In", &["c"])]}]),
                "",
            ),
            (json!([{"matchFields": [field("In", &[])]}]), ""),
            (json!([{"matchFields": [other]}]), ""),
            (json!([]), ""),
            (json!(null), ""),
        ] {
            let projected = pod(&pinned(&terms)).expect("a pod");
            assert_eq!(projected.target_node_name, expected, "{terms}");
        }
        let mut bound = pinned(&json!([{"matchFields": [field("In", &["a"])]}]));
        bound["spec"]["nodeName"] = json!("z");
        let bound = pod(&bound).expect("a pod");
        assert_eq!(
            (bound.node_name.as_str(), bound.target_node_name.as_str()),
            ("z", "")
        );
    }

    // D-3: every field that a plan reads, and nothing else.
    #[test]
    fn a_controller_that_is_too_long_is_of_no_kind() {
        for (kind, name, uid, is_kept) in [
            (9, 253, 128, true),
            (64, 253, 128, false),
            (9, 254, 128, false),
            (9, 253, 129, false),
        ] {
            let text = |length| "a".repeat(length);
            let owner = json!({"kind": text(kind), "name": text(name), "uid": text(uid), "controller": true});
            let object = json!({"metadata": {"name": "p", "uid": "u", "ownerReferences": [owner]}});
            let expected = v1::ControllerReference {
                kind: text(kind),
                name: text(name),
                uid: text(uid),
            };
            let expected = if is_kept {
                expected
            } else {
                v1::ControllerReference::default()
            };
            assert_eq!(pod(&object).expect("a pod").controller, Some(expected));
        }
    }

    #[test]
    fn pod_is_projected_whole() {
        let object = json!({
            "metadata": {
                "name": "foo-x", "namespace": "ns", "uid": "u1", "resourceVersion": "7",
                "labels": {"b": "2", "a": "1"}, "annotations": {"not": "read"},
                "creationTimestamp": "2026-01-02T03:04:05Z", "deletionTimestamp": "2026-01-02T03:05:05Z",
                "finalizers": ["x/y"],
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "n1"},
                    {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "foo", "uid": "d1", "controller": true},
                ],
            },
            "spec": {"nodeName": "node-1", "containers": [{"name": "c"}]},
            "status": {"phase": "Running", "conditions": [
                {"type": "Initialized", "status": "True"},
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T03:04:35Z"},
                {"type": "Ready", "status": "False"},
            ]},
        });
        let at = |text: &str| Some(timestamp(text.parse().expect("a time")));
        let expected = v1::Pod {
            name: "foo-x".into(),
            uid: "u1".into(),
            labels: vec![
                v1::Label {
                    key: "a".into(),
                    value: "1".into(),
                },
                v1::Label {
                    key: "b".into(),
                    value: "2".into(),
                },
            ],
            controller: Some(v1::ControllerReference {
                kind: "DaemonSet".into(),
                name: "foo".into(),
                uid: "d1".into(),
            }),
            node_name: "node-1".into(),
            target_node_name: String::new(),
            phase: v1::PodPhase::Running.into(),
            ready: v1::ConditionStatus::True.into(),
            ready_transition_time: at("2026-01-02T03:04:35Z"),
            creation_time: at("2026-01-02T03:04:05Z"),
            deletion_time: at("2026-01-02T03:05:05Z"),
            has_finalizers: true,
            shared_metadata: 0,
        };
        assert_eq!(pod(&object).expect("a pod"), expected);
    }

    // D-2: name, labels and taints in their order; the rest is for explanations.
    #[test]
    fn node_is_projected_whole() {
        let object = json!({
            "metadata": {"name": "n", "uid": "u", "labels": {"zone": "a"}},
            "spec": {"unschedulable": true, "taints": [
                {"key": "b", "effect": "NoExecute", "timeAdded": "2026-01-02T03:04:05Z"},
                {"key": "a", "value": "v", "effect": "NoSchedule"},
            ]},
            "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]},
        });
        let taint = |key: &str, value: &str, effect: &str| v1::Taint {
            key: key.into(),
            value: value.into(),
            effect: effect.into(),
        };
        let expected = v1::Node {
            name: "n".into(),
            uid: "u".into(),
            labels: vec![v1::Label {
                key: "zone".into(),
                value: "a".into(),
            }],
            taints: vec![taint("b", "", "NoExecute"), taint("a", "v", "NoSchedule")],
            unschedulable: true,
            ready: v1::ConditionStatus::Unknown.into(),
        };
        assert_eq!(node(&object).expect("a node"), expected);
    }

    #[test]
    fn what_is_wrong_is_named_by_its_path() {
        for (object, expected) in [
            (
                json!({"metadata": {"name": "p", "uid": "u", "creationTimestamp": "yesterday"}}),
                "metadata.creationTimestamp: not a time: \"yesterday\"",
            ),
            (json!({"metadata": {"name": "p"}}), "metadata.uid: is missing"),
            (json!({"metadata": {"uid": "u"}}), "metadata.name: is missing"),
            (json!({"spec": {}}), ".: missing field `metadata`"),
        ] {
            assert_eq!(pod(&object).expect_err("wrong").to_string(), expected);
        }
        let object = json!({"metadata": {"name": "n", "labels": {"a": 1}}});
        let error = node(&object).expect_err("wrong").to_string();
        assert!(error.starts_with("metadata.labels.a: "), "{error}");
    }

    // What an apiserver serves of `0000-01-01T00:00:00+23:59`, of `9999-12-31T23:59:59-23:59`, and of larger numbers that came
    // as Protobuf, and what it takes but the service does not.
    #[test]
    fn times_beyond_the_protocol_are_its_first_and_its_last() {
        for (text, expected) in [
            ("-0001-12-31T00:01:00Z", FIRST_SECOND),
            ("-9223-02-29T00:01:00Z", FIRST_SECOND),
            ("-292277022656-01-27T08:29:52Z", FIRST_SECOND),
            ("0000-06-01T00:00:00Z", FIRST_SECOND),
            ("0001-01-01T00:00:00Z", FIRST_SECOND),
            ("0001-01-01T00:00:01Z", FIRST_SECOND + 1),
            ("2026-01-02T03:04:05Z", 1_767_323_045),
            ("9999-12-29T23:59:59Z", LAST_SECOND - 1),
            ("9999-12-31T23:59:59Z", LAST_SECOND),
            ("10000-01-01T23:58:59Z", LAST_SECOND),
            ("292277026596-12-04T15:30:08Z", LAST_SECOND),
        ] {
            let ready = json!([{"type": "Ready", "status": "True", "lastTransitionTime": text}]);
            let object = json!({"metadata": {"name": "p", "uid": "u", "creationTimestamp": text},
                "status": {"conditions": ready}});
            let pod = pod(&object).unwrap_or_else(|error| panic!("{error}"));
            let expected = Some(Timestamp {
                seconds: expected,
                nanos: 0,
            });
            assert_eq!(
                (pod.ready_transition_time, pod.creation_time),
                (expected, expected),
                "{text}"
            );
        }
        for text in [
            "",
            "-",
            "10000",
            "-0001",
            "10000-13-01T00:00:00Z",
            "9999-02-30T00:00:00Z",
            "2025-02-29T00:00:00Z",
            "-0001-12-31",
            "-001-12-31T00:01:00Z",
            "1e400-01-01T00:00:00Z",
            "soon-01-01T00:00:00Z",
        ] {
            let object = json!({"metadata": {"name": "p", "uid": "u", "creationTimestamp": text}});
            assert!(pod(&object).is_err(), "{text:?}");
        }
    }

    #[test]
    fn times_before_the_epoch_count_forward() {
        let time = "1969-12-31T23:59:58.25Z".parse().expect("a time");
        assert_eq!(
            timestamp(time),
            Timestamp {
                seconds: -2,
                nanos: 250_000_000
            }
        );
    }
}
