//! Checks the quotas of Nodewise's namespace, and the PriorityClasses of its pods.

use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::ResourceQuota},
    apimachinery::pkg::api::resource::Quantity,
};
use nodewise_executor::config::Mode;

use super::{
    facts::{Facts, Seen},
    finding::{Finding, Section},
    install::{Plan, pod_spec, title},
};

const SECTION: Section = Section::Admission;

pub(crate) fn check(facts: &Facts) -> Vec<Finding> {
    let namespace = &facts.namespace;
    let quotas = match &facts.quotas {
        Ok(quotas) => quotas,
        Err(unread) => {
            return vec![SECTION.unread(&format!("ResourceQuotas of namespace {namespace}"), unread)];
        }
    };
    let deployments = facts.servers.iter().chain(&facts.executors).flatten();
    let lacks_pods = deployments
        .filter(|deployment| deployment.metadata.namespace.as_deref() == Some(namespace))
        .any(lacks_pods);
    let used_up: Vec<_> = quotas
        .iter()
        .flat_map(|quota| of_quota(namespace, quota, lacks_pods))
        .collect();
    if used_up.is_empty() {
        vec![SECTION.ok(format!("no ResourceQuota of namespace {namespace} is used up"))]
    } else {
        used_up
    }
}

/// Whether the Deployment has fewer pods than it wants.
fn lacks_pods(deployment: &Deployment) -> bool {
    let wanted = deployment
        .spec
        .as_ref()
        .and_then(|spec| spec.replicas)
        .unwrap_or(1);
    deployment
        .status
        .as_ref()
        .and_then(|status| status.replicas)
        .unwrap_or(0)
        < wanted
}

fn of_quota(namespace: &str, quota: &ResourceQuota, lacks_pods: bool) -> Vec<Finding> {
    let name = quota.metadata.name.as_deref().unwrap_or_default();
    let Some(status) = &quota.status else {
        return Vec::new();
    };
    let (hard, used) = (
        status.hard.clone().unwrap_or_default(),
        status.used.clone().unwrap_or_default(),
    );
    let is_used_up = |resource: &String, hard: &Quantity| {
        let used = used.get(resource).and_then(|used| number(&used.0));
        matches!((used, number(&hard.0)), (Some(used), Some(hard)) if used >= hard)
    };
    let of_pods = |resource: &str| {
        let parts = ["pods", "cpu", "memory", "ephemeral-storage"];
        parts.contains(&resource.rsplit(['/', '.']).next().unwrap_or_default())
    };
    hard.iter()
        .filter(|(resource, hard)| of_pods(resource) && is_used_up(resource, hard))
        .map(|(resource, hard)| {
            let text = format!(
                "ResourceQuota {namespace}/{name} is used up: {resource} {} of {}",
                used[resource].0, hard.0
            );
            let hint = format!("raise spec.hard of ResourceQuota {name}");
            if lacks_pods {
                SECTION.error(
                    format!("{text}; Nodewise has fewer pods than it should have"),
                    hint,
                )
            } else {
                SECTION.warning(format!("{text}; rollouts and autoscaling cannot add pods"), hint)
            }
        })
        .collect()
}

/// The value of a quantity: `500m`, `1Gi`, `5e3`.
fn number(text: &str) -> Option<f64> {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-' || c == '+'))
        .unwrap_or(text.len());
    let (digits, suffix) = text.split_at(end);
    let factor = match suffix {
        "" => 1.0,
        "n" => 1e-9,
        "u" => 1e-6,
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "E" => 1e18,
        "Ki" => 1024.0,
        "Mi" => 1024f64.powi(2),
        "Gi" => 1024f64.powi(3),
        "Ti" => 1024f64.powi(4),
        "Pi" => 1024f64.powi(5),
        "Ei" => 1024f64.powi(6),
        // With an exponent: `5e3`.
        _ => return text.parse().ok(),
    };
    Some(digits.parse::<f64>().ok()? * factor)
}

/// The class that `deploy/` gives to pods, in every mode but observe.
pub(crate) const DEFAULT_CLASS: &str = "system-cluster-critical";

/// The PriorityClass of a Deployment's pods.
pub(crate) fn class(deployment: &Deployment) -> Option<&str> {
    let class = pod_spec(deployment)?.priority_class_name.as_deref()?;
    (!class.is_empty()).then_some(class)
}

pub(crate) fn priorities(facts: &Facts) -> Vec<Finding> {
    let section = Section::Installation;
    let writes = |plan: &Plan| {
        let modes = plan.modes.iter().flatten();
        modes.into_iter().any(|(_, mode)| *mode != Mode::Observe)
    };
    let is_needed = facts.plans.iter().any(writes);
    if facts.pre {
        let of =
            |(class, exists): (&String, &Seen<bool>)| of_class("the manifests and the chart", class, exists);
        return if is_needed {
            facts.priority_classes.iter().map(of).collect()
        } else {
            Vec::new()
        };
    }
    let here = |deployment: &&Deployment| deployment.metadata.namespace.as_deref() == Some(&facts.namespace);
    let deployments = facts
        .servers
        .iter()
        .chain(&facts.executors)
        .flatten()
        .filter(here);
    let of = |deployment: &Deployment| match class(deployment) {
        Some(class) => facts
            .priority_classes
            .get(class)
            .map(|exists| of_class(&title(deployment), class, exists)),
        None => is_needed.then(|| {
            section.warning(
                format!(
                    "{} has no PriorityClass: other pods may take its place",
                    title(deployment)
                ),
                format!("give its pods priorityClassName {DEFAULT_CLASS}"),
            )
        }),
    };
    deployments.filter_map(of).collect()
}

fn of_class(who: &str, class: &str, exists: &Seen<bool>) -> Finding {
    let section = Section::Installation;
    match exists {
        Ok(true) => section.ok(format!("{who}: PriorityClass {class} exists")),
        Ok(false) => section.error(
            format!("{who}: PriorityClass {class} does not exist; the apiserver refuses the pods"),
            "create it, or set another one (priorityClassName)",
        ),
        Err(unread) => section.unread(&format!("PriorityClass {class}"), unread),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::check::finding::Outcome;

    #[test]
    fn quantities_are_compared() {
        for (text, value) in [
            ("3", Some(3.0)),
            ("500m", Some(0.5)),
            ("1Gi", Some(1_073_741_824.0)),
            ("2k", Some(2000.0)),
            ("5e3", Some(5000.0)),
            ("1E", Some(1e18)),
            ("much", None),
        ] {
            assert_eq!(number(text), value, "{text}");
        }
    }

    #[test]
    fn a_quota_that_is_used_up_is_reported() {
        let table = [
            (
                json!({"pods": "2"}),
                json!({"pods": "2"}),
                false,
                Some(Outcome::Warning),
            ),
            (
                json!({"pods": "2"}),
                json!({"pods": "2"}),
                true,
                Some(Outcome::Error),
            ),
            (json!({"pods": "3"}), json!({"pods": "2"}), true, None),
            (
                json!({"requests.cpu": "1"}),
                json!({"requests.cpu": "1000m"}),
                false,
                Some(Outcome::Warning),
            ),
            (
                json!({"limits.memory": "1Gi"}),
                json!({"limits.memory": "512Mi"}),
                false,
                None,
            ),
            (
                json!({"count/pods": "1"}),
                json!({"count/pods": "1"}),
                false,
                Some(Outcome::Warning),
            ),
            (json!({"services": "1"}), json!({"services": "1"}), true, None),
        ];
        for (hard, used, lacks_pods, expected) in table {
            let quota = json!({"metadata": {"name": "q"}, "status": {"hard": hard, "used": used}});
            let quota = serde_json::from_value(quota).expect("a quota");
            let found = of_quota("n", &quota, lacks_pods);
            assert_eq!(found.first().map(|finding| finding.result), expected, "{found:?}");
        }
    }

    #[test]
    fn a_priority_class_must_exist() {
        let forbidden = Err(crate::check::facts::Unread::Forbidden("no".to_owned()));
        for (exists, result) in [
            (Ok(true), Outcome::Ok),
            (Ok(false), Outcome::Error),
            (forbidden, Outcome::Warning),
        ] {
            assert_eq!(of_class("Deployment n/x", "critical", &exists).result, result);
        }
    }
}
