//! Projection of a RolloutPolicy of nodewise.dev/v1alpha1.
//!
//! The executor sends policies as they are served. Of the spec it reads only which workloads a policy may target, and which
//! labels of nodes the stages name. What a policy means is the service's to say. Of one that does not count for a workload it sends
//! no stages.

mod stand_in;

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use nodewise_proto::{Timestamp, v1::Label};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use crate::error::ProjectError;
use crate::label_keys::LabelKeysRead;
use crate::managed_fields::object_json;
use crate::meta::Meta;
use crate::parse::parse_text;
use crate::selector::Selector;
use crate::workload::Workload;

/// The most bytes of an object that is kept and sent: as many as the service takes.
pub const MOST_POLICY_BYTES: usize = 1 << 20;
/// The most bytes of the targets of the stand-in for a larger object, and of its status.
const MOST_STAND_IN: usize = 32 << 10;
/// The most bytes of the targets of a mark, and of its status.
const MOST_MARK: usize = 2 << 10;

/// A RolloutPolicy.
#[derive(Clone, Debug)]
pub struct RolloutPolicy {
    /// metadata.namespace.
    pub namespace: String,
    /// metadata.name.
    pub name: String,
    /// metadata.uid.
    pub uid: String,
    /// metadata.resourceVersion.
    pub resource_version: String,
    /// metadata.creationTimestamp.
    pub created: Option<Timestamp>,
    /// spec.targets.
    pub targets: PolicyTargets,
    /// The keys of node labels that the stages name.
    pub reads: LabelKeysRead,
    /// name and uid of the entries of status.targets.
    pub recorded: Vec<(String, String)>,
    /// The object as JSON, without its managed fields. If `reduced` is set, what is kept and sent in its place: a policy that cannot be
    /// used, and that holds the rollouts of its targets.
    pub object: Bytes,
    /// Set if the object is not kept.
    pub reduced: Option<Reduced>,
    /// The status says that the policy cannot be used.
    is_invalid: bool,
    /// As [`Self::not_counting`], once it was asked for. `None`: the policy itself.
    not_counting: OnceLock<Option<Arc<Self>>>,
}

/// What is kept of an object that is too much to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reduced {
    /// Why the object is not kept.
    pub why: String,
    /// The whole status is kept. Without it no plan can know what a write of the status would undo.
    pub has_status: bool,
    /// As little is kept as can be.
    pub is_mark: bool,
}

/// Which workloads of its namespace a policy targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyTargets {
    /// Those of these names.
    Names(Vec<String>),
    /// Those whose labels this selects.
    Selector(Selector),
    /// It cannot be told. Any of them may be meant: no rollout may go on without the policy that was written for it (L-2).
    Unknown,
}

/// The part of spec that is read.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    targets: Value,
    stages: Value,
}

/// A field of a newer version may mean other workloads.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Targets {
    names: Option<Vec<String>>,
    selector: Value,
}

impl PolicyTargets {
    fn read(targets: &Value) -> Self {
        let Ok(Targets { names, selector }) = Targets::deserialize(targets) else {
            return Self::Unknown;
        };
        let names = names.unwrap_or_default();
        match (names.is_empty(), selector.is_null()) {
            (false, true) => Self::Names(names),
            (true, false) => Some(Selector::from_json(&selector))
                .filter(|selector| selector.is_valid() && selector.has_label_syntax())
                .map_or(Self::Unknown, Self::Selector),
            _ => Self::Unknown,
        }
    }

    /// Whether a workload with this name and these labels may be meant.
    fn may_include(&self, name: &str, labels: &[Label]) -> bool {
        match self {
            Self::Names(names) => names.iter().any(|target| target == name),
            Self::Selector(selector) => selector.selects(labels),
            Self::Unknown => true,
        }
    }
}

impl RolloutPolicy {
    /// Reads the JSON of a RolloutPolicy. One whose spec cannot be read is kept: it may target every workload of its namespace.
    pub fn from_json(object: &Value) -> Result<Self, ProjectError> {
        Self::from_text(&object.to_string())
    }

    /// Reads the JSON of a RolloutPolicy from text.
    pub fn from_text(object: &str) -> Result<Self, ProjectError> {
        #[derive(Deserialize)]
        struct Object<'a> {
            metadata: Meta,
            #[serde(borrow)]
            spec: Option<&'a RawValue>,
            #[serde(borrow)]
            status: Option<&'a RawValue>,
        }
        let Object {
            metadata,
            spec,
            status,
        } = parse_text(object)?;
        metadata.require_name()?;
        if metadata.uid.is_empty() {
            return Err(ProjectError::at("metadata.uid", "is missing"));
        }
        let spec: Option<Spec> = spec.and_then(|spec| parse_text(spec.get()).ok());
        let Spec { targets, stages } = spec.unwrap_or_default();
        let policy = Self {
            namespace: metadata.namespace,
            name: metadata.name,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            created: metadata.creation_timestamp.map(Into::into),
            targets: PolicyTargets::read(&targets),
            reads: LabelKeysRead::of_nodes(node_labels(&stages)),
            recorded: status.map_or_else(Vec::new, |status| recorded(status.get())),
            object: object_json(object),
            reduced: None,
            is_invalid: status.is_some_and(|status| is_invalid(status.get())),
            not_counting: OnceLock::new(),
        };
        let size = policy.object.len();
        if size <= MOST_POLICY_BYTES {
            return Ok(policy);
        }
        let why = format!("the policy has {size} bytes; at most {MOST_POLICY_BYTES} are taken");
        Ok(policy.reduce(why, MOST_STAND_IN))
    }

    /// The policy without its object: it targets what it has targeted, and cannot be used.
    #[must_use]
    pub fn mark(&self, why: String) -> Self {
        self.reduce(why, MOST_MARK)
    }

    /// What is sent for a workload for which another policy counts: the policy without most of its spec. The service writes that
    /// conflict into the status, and reads nothing else of the policy. It is written once.
    ///
    /// Some policies stay whole, because the service must read the same in all plans: otherwise each would undo what the others wrote
    /// to the status. It is those whose spec the service has called invalid, and those whose targets cannot be told.
    #[must_use]
    pub fn not_counting(self: &Arc<Self>) -> Arc<Self> {
        let stays = self.reduced.is_some() || self.is_invalid || self.targets == PolicyTargets::Unknown;
        if stays {
            return Arc::clone(self);
        }
        let written = self.not_counting.get_or_init(|| {
            let object = stand_in::not_counting(&String::from_utf8_lossy(&self.object), &self.identity())?;
            (object.len() < self.object.len()).then(|| {
                Arc::new(Self {
                    object,
                    ..Self::clone(self)
                })
            })
        });
        Arc::clone(written.as_ref().unwrap_or(self))
    }

    /// The metadata that every object has.
    fn identity(&self) -> Value {
        json!({
            "name": self.name,
            "namespace": self.namespace,
            "uid": self.uid,
            "resourceVersion": self.resource_version,
        })
    }

    fn reduce(&self, why: String, most: usize) -> Self {
        let identity = self.identity();
        let object = String::from_utf8_lossy(&self.object);
        let stand_in = stand_in::write(&object, &identity, &why, most);
        Self {
            targets: if stand_in.has_targets {
                self.targets.clone()
            } else {
                PolicyTargets::Unknown
            },
            reads: LabelKeysRead::of_nodes(BTreeSet::new()),
            object: stand_in.object,
            reduced: Some(Reduced {
                why,
                has_status: stand_in.has_status,
                is_mark: most == MOST_MARK,
            }),
            not_counting: OnceLock::new(),
            ..self.clone()
        }
    }

    /// Whether the policy targets a workload of its namespace, or may target it.
    #[must_use]
    pub fn may_target(&self, workload: &Workload) -> bool {
        *workload.key.namespace == *self.namespace
            && self.targets.may_include(&workload.key.name, &workload.labels)
    }
}

/// name and uid of the entries of status.targets. Nothing if they cannot be read: then nobody can tell whether one is deleted.
fn recorded(status: &str) -> Vec<(String, String)> {
    #[derive(Deserialize)]
    struct Status {
        #[serde(default)]
        targets: Vec<Target>,
    }
    #[derive(Deserialize)]
    struct Target {
        name: String,
        uid: String,
    }
    let targets = parse_text::<Status>(status).map_or_else(|_| Vec::new(), |status| status.targets);
    targets
        .into_iter()
        .map(|target| (target.name, target.uid))
        .collect()
}

/// Whether a status says that the spec cannot be used.
fn is_invalid(status: &str) -> bool {
    #[derive(Deserialize)]
    struct Status {
        #[serde(default)]
        conditions: Vec<Condition>,
    }
    #[derive(Deserialize)]
    struct Condition {
        r#type: String,
        reason: String,
    }
    let conditions = parse_text::<Status>(status).map_or_else(|_| Vec::new(), |status| status.conditions);
    conditions
        .iter()
        .any(|condition| condition.r#type == "Accepted" && condition.reason == "Invalid")
}

/// The keys of node labels that stages name.
fn node_labels(stages: &Value) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    for stage in stages.as_array().into_iter().flatten() {
        keys.extend(
            Selector::from_json(&stage["nodeSelector"])
                .keys()
                .map(str::to_owned),
        );
        let named = ["spreadBy", "groupBy"]
            .into_iter()
            .filter_map(|field| stage[field].as_str());
        keys.extend(named.map(str::to_owned));
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(spec: &Value) -> RolloutPolicy {
        let metadata = json!({"namespace": "ns", "name": "agents", "uid": "p1", "resourceVersion": "7",
            "creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": [{"manager": "m"}]});
        RolloutPolicy::from_json(&json!({"metadata": metadata, "spec": spec})).expect("a policy")
    }

    fn workload(namespace: &str, name: &str, labels: &Value) -> Workload {
        let metadata = json!({"namespace": namespace, "name": name, "uid": "u", "labels": labels});
        Workload::daemon_set_from_json(&json!({ "metadata": metadata })).expect("a DaemonSet")
    }

    // L-2: where the targets cannot be told, every workload of the namespace may be meant.
    #[test]
    fn a_policy_targets_what_it_names_or_selects() {
        for (targets, expected) in [
            (json!({"names": ["agent"]}), [true, false, false]),
            (json!({"names": ["x", "proxy"]}), [false, true, false]),
            (
                json!({"selector": {"matchLabels": {"tier": "a"}}}),
                [true, false, false],
            ),
            (json!({"selector": {}}), [true, true, false]),
            (json!({"names": ["agent"], "selector": {}}), [true, true, false]),
            (
                json!({"selector": {"matchExpressions": [{"key": "tier", "operator": "Like"}]}}),
                [true, true, false],
            ),
            (
                json!({"selector": {"matchLabels": {"tier ": "a"}}}),
                [true, true, false],
            ),
            (
                json!({"selector": {"matchLabels": {"tier": "a b"}}}),
                [true, true, false],
            ),
            (
                json!({"selector": {"matchExpressions": [{"key": "Example.com/tier", "operator": "Exists"}]}}),
                [true, true, false],
            ),
            (
                json!({"selector": {"matchExpressions": [{"key": "example.com/tier", "operator": "DoesNotExist"}]}}),
                [true, true, false],
            ),
            (json!({"names": "agent"}), [true, true, false]),
            (json!({"names": ["agent"], "newer": 1}), [true, true, false]),
            (json!({}), [true, true, false]),
            (json!(7), [true, true, false]),
        ] {
            let policy = policy(&json!({ "targets": targets }));
            let found = [
                workload("ns", "agent", &json!({"tier": "a"})),
                workload("ns", "proxy", &json!(null)),
                workload("elsewhere", "agent", &json!({"tier": "a"})),
            ];
            assert_eq!(
                found.map(|found| policy.may_target(&found)),
                expected,
                "{targets}"
            );
        }
    }

    #[test]
    fn the_stages_name_labels_of_nodes() {
        let stages = json!([
            {"name": "canary", "nodeSelector": {"matchLabels": {"pool": "canary"}}, "spreadBy": "zone"},
            {"name": "rest", "groupBy": "rack", "nodeSelector": {"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}},
            7,
        ]);
        let policy = policy(&json!({"targets": {}, "stages": stages}));
        let keys: Vec<_> = policy.reads.node_labels.iter().map(String::as_str).collect();
        assert_eq!(keys, ["gpu", "pool", "rack", "zone"]);
    }

    #[test]
    fn the_object_is_kept_as_served() {
        let policy = policy(&json!({"targets": {"names": ["agent"]}, "newer": {"a": 1}}));
        let object: Value = serde_json::from_slice(&policy.object).expect("JSON");
        assert_eq!(object["spec"]["newer"], json!({"a": 1}));
        assert_eq!(object["metadata"]["managedFields"], Value::Null);
        assert_eq!((&*policy.uid, &*policy.resource_version), ("p1", "7"));
        let error = RolloutPolicy::from_text(r#"{"metadata": {"name": "a"}}"#).expect_err("no uid");
        assert_eq!(error.to_string(), "metadata.uid: is missing");
        let odd = RolloutPolicy::from_text(r#"{"metadata": {"name": "a", "uid": "u"}, "spec": 7}"#);
        assert_eq!(odd.expect("a policy").targets, PolicyTargets::Unknown);
    }

    /// A policy with a query of this length and a status of this length.
    fn large(query: usize, message: usize) -> RolloutPolicy {
        let revision = |hash: &str| json!({"hash": hash, "number": 1});
        let target = json!({"name": "agent", "uid": "u", "state": "Soaking", "message": "m".repeat(message),
            "updateRevision": revision("new"), "stableRevision": revision("old"), "rejectedRevision": null});
        let conflict = json!({"name": "proxy", "uid": "v", "state": "Conflict"});
        let metadata = json!({"namespace": "ns", "name": "agents", "uid": "p1", "resourceVersion": "7", "generation": 3,
            "creationTimestamp": "2026-01-01T00:00:00Z"});
        let stages =
            json!([{"name": "canary", "groupBy": "rack", "analysis": [{"query": "q".repeat(query)}]}]);
        let object = json!({"metadata": metadata, "spec": {"targets": {"names": ["agent"]}, "stages": stages},
            "status": {"targets": [target, conflict]}});
        RolloutPolicy::from_json(&object).expect("a policy")
    }

    fn object(policy: &RolloutPolicy) -> Value {
        serde_json::from_slice(&policy.object).expect("JSON")
    }

    // L-2: it holds what it targets, and says why. What it has decided is not forgotten.
    #[test]
    fn of_a_policy_that_is_too_large_a_stand_in_is_kept() {
        assert_eq!(large(MOST_POLICY_BYTES - 1_000, 1).reduced, None);
        let policy = large(MOST_POLICY_BYTES, 1);
        let reduced = policy.reduced.clone().expect("it is too large");
        assert!(reduced.has_status && !reduced.is_mark);
        assert!(policy.object.len() < 2_000 && policy.reads.node_labels.is_empty());
        assert_eq!(policy.targets, PolicyTargets::Names(vec!["agent".to_owned()]));
        let kept = object(&policy);
        assert_eq!(
            kept["metadata"],
            json!({"namespace": "ns", "name": "agents", "uid": "p1", "resourceVersion": "7",
            "generation": 3, "creationTimestamp": "2026-01-01T00:00:00Z"})
        );
        let why = kept["spec"]["stages"].as_str().expect("a text");
        assert_eq!(why, reduced.why);
        assert!(why.contains("bytes; at most 1048576 are taken"), "{why}");
        assert_eq!(kept["spec"]["targets"], json!({"names": ["agent"]}));
        assert_eq!(kept["status"]["targets"][0]["state"], "Soaking");

        let without = large(MOST_POLICY_BYTES, MOST_STAND_IN);
        assert!(!without.reduced.as_ref().expect("it is too large").has_status);
        let decided = json!([{"name": "agent", "uid": "u", "updateRevision": {"hash": "new", "number": 1},
            "stableRevision": {"hash": "old", "number": 1}}]);
        assert_eq!(object(&without)["status"], json!({"targets": decided}));
    }

    // L-1: of a policy that does not count, the service reads only what it needs to write that another one does.
    #[test]
    fn a_policy_that_does_not_count_has_no_stages() {
        let whole = Arc::new(large(100_000, 1));
        let sent = whole.not_counting();
        assert!(sent.object.len() < 2_000, "{}", sent.object.len());
        let (before, after) = (object(&whole), object(&sent));
        for part in ["metadata", "status"] {
            assert_eq!(after[part], before[part], "{part}");
        }
        assert_eq!(
            after["spec"],
            json!({"targets": {"names": ["agent"]}, "paused": true})
        );
        assert_eq!((&sent.targets, &sent.reduced), (&whole.targets, &None));
        assert_eq!(sent.recorded, whole.recorded);
        assert!(Arc::ptr_eq(&sent, &whole.not_counting()), "it is written once");
    }

    // Another plan may have the same policy as the one that counts, and both write its conditions.
    #[test]
    fn a_policy_that_is_invalid_stays_whole_where_it_does_not_count() {
        let stages = json!([{"name": "x".repeat(10_000)}]);
        let names = json!({"names": ["agent"]});
        for (targets, reason, stays) in [
            (&names, "Accepted", false),
            (&names, "Invalid", true),
            (&json!(7), "Accepted", true),
        ] {
            let object = json!({
                "metadata": {"namespace": "ns", "name": "a", "uid": "a"},
                "spec": {"targets": targets, "stages": stages},
                "status": {"conditions": [{"type": "Accepted", "reason": reason}]},
            });
            let policy = Arc::new(RolloutPolicy::from_json(&object).expect("a policy"));
            assert_eq!(
                Arc::ptr_eq(&policy, &policy.not_counting()),
                stays,
                "{targets} {reason}"
            );
        }
        let reduced = Arc::new(large(MOST_POLICY_BYTES, 1));
        assert!(Arc::ptr_eq(&reduced, &reduced.not_counting()), "it says why");
    }

    #[test]
    fn a_mark_is_small() {
        let mark = large(1, MOST_MARK).mark("too many".to_owned());
        let reduced = mark.reduced.clone().expect("a mark");
        assert_eq!(
            reduced,
            Reduced {
                why: "too many".to_owned(),
                has_status: false,
                is_mark: true
            }
        );
        assert!(mark.object.len() < 1_000, "{}", mark.object.len());
        assert_eq!(mark.targets, PolicyTargets::Names(vec!["agent".to_owned()]));
        assert_eq!(object(&mark)["spec"]["stages"], "too many");

        let names: Vec<_> = (0..1_000).map(|number| format!("agent-{number}")).collect();
        let many = policy(&json!({"targets": {"names": names}})).mark("too many".to_owned());
        assert!(many.object.len() < 1_000);
        assert_eq!(many.targets, PolicyTargets::Unknown, "it may target any workload");
    }
}
