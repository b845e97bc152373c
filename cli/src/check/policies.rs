//! Checks that RolloutPolicies are in force: that the DaemonSets they target exist, and that the executor accepts them.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::DaemonSet;
use kube::core::{DynamicObject, PartialObjectMeta};
use nodewise_api::accepted;
use nodewise_projection::{PolicyTargets, RolloutPolicy};
use nodewise_proto::v1::Label;
use serde_json::Value;

use super::{
    facts::Facts,
    finding::{Finding, Section},
};
use crate::text::names::shorten;

const SECTION: Section = Section::Policies;
/// Most findings about a namespace. A tenant may create many policies, and must not hide the findings of others.
const MOST: usize = 3;

pub(crate) fn check(facts: &Facts) -> Vec<Finding> {
    let policies = match &facts.policies {
        Ok(policies) => policies,
        Err(unread) => return vec![SECTION.unread("RolloutPolicies", unread)],
    };
    match &facts.daemon_sets {
        Ok(daemon_sets) => of_all(policies, daemon_sets),
        Err(unread) => vec![SECTION.unread("DaemonSets", unread)],
    }
}

fn of_all(policies: &[DynamicObject], daemon_sets: &[PartialObjectMeta<DaemonSet>]) -> Vec<Finding> {
    if policies.is_empty() {
        return Vec::new();
    }
    let mut found: BTreeMap<&str, Vec<Finding>> = BTreeMap::new();
    for policy in policies {
        let namespace = policy.metadata.namespace.as_deref().unwrap_or_default();
        if let Some(finding) = of_policy(policy, daemon_sets) {
            found.entry(namespace).or_default().push(finding);
        }
    }
    if found.is_empty() {
        let text = match policies.len() {
            1 => "the only RolloutPolicy is accepted, and targets a DaemonSet".to_owned(),
            all => format!("all {all} RolloutPolicies are accepted, and each targets a DaemonSet"),
        };
        return vec![SECTION.ok(text)];
    }
    found.into_iter().flat_map(of_namespace).collect()
}

/// The first findings, and how many more there are.
fn of_namespace((namespace, mut found): (&str, Vec<Finding>)) -> Vec<Finding> {
    let more = found.len().saturating_sub(MOST);
    found.truncate(MOST);
    if more > 0 {
        found.push(SECTION.warning(
            format!("{more} more RolloutPolicies of namespace {namespace} need a look"),
            format!("kubectl get rolloutpolicies -n {namespace}"),
        ));
    }
    found
}

/// The first thing that is wrong with a policy.
fn of_policy(object: &DynamicObject, daemon_sets: &[PartialObjectMeta<DaemonSet>]) -> Option<Finding> {
    let meta = &object.metadata;
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    let name = meta.name.as_deref().unwrap_or_default();
    let what = format!("RolloutPolicy {namespace}/{name}");
    let policy = serde_json::to_value(object)
        .map_err(|error| error.to_string())
        .and_then(|json| RolloutPolicy::from_json(&json).map_err(|error| error.to_string()));
    let policy = match policy {
        Ok(policy) => policy,
        Err(error) => {
            return Some(SECTION.warning(format!("{what} cannot be read: {error}"), "correct the policy"));
        }
    };
    let here: Vec<_> = daemon_sets
        .iter()
        .filter(|one| one.metadata.namespace.as_deref() == Some(namespace))
        .collect();
    if let Some(absent) = without_target(&policy.targets, &here) {
        return Some(SECTION.warning(format!("{what} {absent}"), hint(namespace, &here)));
    }
    let accepted = accepted(&object.data["status"])
        .filter(|condition| condition["observedGeneration"].as_i64() == meta.generation);
    let said = |condition: &Value| condition["message"].as_str().unwrap_or_default().to_owned();
    let (text, hint) = match accepted {
        Some(condition) if condition["status"] == "True" => return None,
        Some(condition) if condition["reason"] == "Conflict" => (
            format!("{what} does not count: {}", said(condition)),
            "name each DaemonSet in the targets of one policy only",
        ),
        Some(condition) => (
            format!("{what} is not accepted: {}", said(condition)),
            "correct the policy: until then Nodewise replaces no pod of its DaemonSets",
        ),
        None => (
            format!("{what} is not in force: no executor has accepted it as it is now"),
            "look whether an executor runs that owns DaemonSets, and whether it reaches the planning service",
        ),
    };
    Some(SECTION.warning(text, hint))
}

/// What a policy targets that does not exist. `None` if all of that exists, or if it cannot be told: no such policy is accepted.
fn without_target(targets: &PolicyTargets, here: &[&PartialObjectMeta<DaemonSet>]) -> Option<String> {
    match targets {
        PolicyTargets::Names(names) => {
            let exists = |name: &&String| here.iter().any(|one| one.metadata.name.as_deref() == Some(name));
            let absent: Vec<&str> = names
                .iter()
                .filter(|name| !exists(name))
                .map(String::as_str)
                .collect();
            let verb = if absent.len() == 1 { "does" } else { "do" };
            let noun = if absent.len() == 1 {
                "DaemonSet"
            } else {
                "DaemonSets"
            };
            let names = shorten(absent.iter().copied());
            (!absent.is_empty()).then(|| {
                format!(
                    "names the {noun} {names}, which {verb} not exist: for that name it holds nothing back"
                )
            })
        }
        PolicyTargets::Selector(selector) => {
            let labels = |one: &PartialObjectMeta<DaemonSet>| -> Vec<Label> {
                let labels = one.metadata.labels.iter().flatten();
                let label = |(key, value): (&String, &String)| Label {
                    key: key.clone(),
                    value: value.clone(),
                };
                labels.map(label).collect()
            };
            let selects_one = here.iter().any(|one| selector.selects(&labels(one)));
            (!selects_one).then(|| "selects no DaemonSet: it holds nothing back".to_owned())
        }
        PolicyTargets::Unknown => None,
    }
}

fn hint(namespace: &str, here: &[&PartialObjectMeta<DaemonSet>]) -> String {
    let names: Vec<&str> = here
        .iter()
        .filter_map(|one| one.metadata.name.as_deref())
        .collect();
    let exist = match names.as_slice() {
        [] => "has no DaemonSet".to_owned(),
        names => format!("has {}", shorten(names.iter().copied())),
    };
    format!("correct spec.targets of the policy; namespace {namespace} {exist}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ACCEPTS: Option<(&str, &str)> = Some(("True", "Accepted"));

    /// A policy with these targets, and the status and reason of its condition Accepted.
    fn policy(namespace: &str, targets: &Value, accepted: Option<(&str, &str)>) -> DynamicObject {
        let conditions = accepted.map(|(status, reason)| {
            json!([{"type": "Accepted", "status": status, "reason": reason, "message": "so it is",
                "observedGeneration": 2, "lastTransitionTime": "2026-01-01T00:00:00Z"}])
        });
        let object = json!({
            "apiVersion": "nodewise.dev/v1alpha1", "kind": "RolloutPolicy",
            "metadata": {"name": "agents", "namespace": namespace, "uid": "u", "generation": 2},
            "spec": {"targets": targets, "stages": []},
            "status": {"conditions": conditions},
        });
        serde_json::from_value(object).expect("an object")
    }

    fn daemon_set(namespace: &str, name: &str) -> PartialObjectMeta<DaemonSet> {
        let object = json!({
            "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
            "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
        });
        serde_json::from_value(object).expect("metadata")
    }

    #[test]
    fn a_policy_needs_its_daemon_sets_and_must_be_accepted() {
        let all = [daemon_set("monitoring", "agent"), daemon_set("other", "agnet")];
        let names = |names: &[&str]| json!({ "names": names });
        let selecting = |app: &str| json!({"selector": {"matchLabels": {"app": app}}});
        let table = [
            (names(&["agent"]), ACCEPTS, None),
            (names(&["agent"]), Some(("True", "Limited")), None),
            (
                names(&["agent", "agnet"]),
                ACCEPTS,
                Some("RolloutPolicy monitoring/agents names the DaemonSet agnet, which does not exist"),
            ),
            (
                names(&["a", "b"]),
                None,
                Some("names the DaemonSets a, b, which do not exist"),
            ),
            (selecting("agent"), ACCEPTS, None),
            (selecting("agnet"), None, Some("selects no DaemonSet")),
            (
                json!({"new": 1}),
                None,
                Some("no executor has accepted it as it is now"),
            ),
            (
                names(&["agent"]),
                None,
                Some("no executor has accepted it as it is now"),
            ),
            (
                names(&["agent"]),
                Some(("False", "Invalid")),
                Some("RolloutPolicy monitoring/agents is not accepted: so it is"),
            ),
            (
                names(&["agent"]),
                Some(("False", "Conflict")),
                Some("RolloutPolicy monitoring/agents does not count: so it is"),
            ),
        ];
        for (targets, accepted, expected) in table {
            let found = of_policy(&policy("monitoring", &targets, accepted), &all);
            let message = found.map(|finding| finding.message);
            match expected {
                None => assert_eq!(message, None, "{targets}"),
                Some(part) => assert!(
                    message.as_ref().is_some_and(|message| message.contains(part)),
                    "{targets}: {message:?}"
                ),
            }
        }
        let mut outdated = policy("monitoring", &names(&["agent"]), ACCEPTS);
        outdated.metadata.generation = Some(3);
        let found = of_policy(&outdated, &all).expect("a finding");
        assert!(found.message.contains("as it is now"), "{found:?}");
        let found = of_policy(&policy("monitoring", &names(&["agnet"]), None), &all).expect("a finding");
        let hint = "correct spec.targets of the policy; namespace monitoring has agent";
        assert_eq!(found.hint.as_deref(), Some(hint));
    }

    #[test]
    fn an_odd_policy_is_named() {
        let mut odd = policy("monitoring", &json!({"names": ["agent"]}), None);
        odd.metadata.uid = None;
        let found = of_policy(&odd, &[]).expect("a finding");
        assert_eq!(
            found.message,
            "RolloutPolicy monitoring/agents cannot be read: metadata.uid: is missing"
        );
    }

    #[test]
    fn many_policies_of_a_namespace_do_not_hide_others() {
        let targets = json!({"names": ["agnet"]});
        let mut policies = vec![policy("a", &targets, None); 20];
        policies.push(policy("monitoring", &targets, None));
        let found = of_all(&policies, &[]);
        let messages: Vec<_> = found.iter().map(|finding| &*finding.message).collect();
        assert_eq!(messages.len(), 5, "{messages:?}");
        assert_eq!(messages[3], "17 more RolloutPolicies of namespace a need a look");
        assert!(messages[4].contains("monitoring/agents"), "{messages:?}");
    }

    #[test]
    fn without_findings_it_says_so() {
        let fine = policy("monitoring", &json!({"names": ["agent"]}), ACCEPTS);
        let found = of_all(&[fine.clone(), fine], &[daemon_set("monitoring", "agent")]);
        let message = "all 2 RolloutPolicies are accepted, and each targets a DaemonSet";
        assert_eq!(found, [SECTION.ok(message)]);
        assert!(of_all(&[], &[]).is_empty());
    }
}
