//! Checks the admission webhooks that see what Nodewise writes, or the pods that Nodewise runs in.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        admissionregistration::v1::{
            MutatingWebhookConfiguration, RuleWithOperations, ValidatingWebhookConfiguration,
            WebhookClientConfig,
        },
        discovery::v1::EndpointSlice,
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::core::{Selector, SelectorExt as _};

use super::{
    facts::{Facts, Seen},
    finding::{Finding, Section},
};

const SECTION: Section = Section::Admission;
/// What executors write: API group and resource.
const WRITTEN: [(&str, &str); 6] = [
    ("", "pods"),
    ("apps", "controllerrevisions"),
    ("apps", "daemonsets/status"),
    ("apps", "deployments/status"),
    ("apps", "replicasets"),
    ("apps", "replicasets/status"),
];

/// A webhook of either kind.
#[derive(Debug)]
pub(crate) struct Webhook<'a> {
    /// `ValidatingWebhookConfiguration policy, webhook pods.example.com`.
    title: String,
    rules: &'a [RuleWithOperations],
    client: &'a WebhookClientConfig,
    /// Whether a request fails if the webhook does not answer. This is the default.
    fails: bool,
    namespaces: Option<&'a LabelSelector>,
}

pub(crate) fn of_validating(configurations: &[ValidatingWebhookConfiguration]) -> Vec<Webhook<'_>> {
    let mut all = Vec::new();
    for configuration in configurations {
        let name = configuration.metadata.name.as_deref().unwrap_or_default();
        all.extend(configuration.webhooks.iter().flatten().map(|webhook| Webhook {
            title: format!("ValidatingWebhookConfiguration {name}, webhook {}", webhook.name),
            rules: webhook.rules.as_deref().unwrap_or_default(),
            client: &webhook.client_config,
            fails: webhook.failure_policy.as_deref() != Some("Ignore"),
            namespaces: webhook.namespace_selector.as_ref(),
        }));
    }
    all
}

pub(crate) fn of_mutating(configurations: &[MutatingWebhookConfiguration]) -> Vec<Webhook<'_>> {
    let mut all = Vec::new();
    for configuration in configurations {
        let name = configuration.metadata.name.as_deref().unwrap_or_default();
        all.extend(configuration.webhooks.iter().flatten().map(|webhook| Webhook {
            title: format!("MutatingWebhookConfiguration {name}, webhook {}", webhook.name),
            rules: webhook.rules.as_deref().unwrap_or_default(),
            client: &webhook.client_config,
            fails: webhook.failure_policy.as_deref() != Some("Ignore"),
            namespaces: webhook.namespace_selector.as_ref(),
        }));
    }
    all
}

impl Webhook<'_> {
    /// Whether its failure can refuse a write of executors.
    pub(crate) fn matters(&self) -> bool {
        self.fails && !self.written().is_empty()
    }

    /// The Service that answers, as namespace and name; `None` for a URL.
    pub(crate) fn service(&self) -> Option<(String, String)> {
        let service = self.client.service.as_ref()?;
        Some((service.namespace.clone(), service.name.clone()))
    }

    /// The resources that executors write, and that the rules match.
    fn written(&self) -> Vec<&'static str> {
        let is_matched =
            |(group, resource): &(&str, &str)| self.rules.iter().any(|rule| matches(rule, group, resource));
        let written = WRITTEN.iter().filter(|one| is_matched(one));
        written.map(|(_, resource)| *resource).collect()
    }

    /// Whether it sees requests in a namespace with these labels.
    fn covers(&self, labels: &BTreeMap<String, String>) -> bool {
        let selector = self.namespaces.cloned().unwrap_or_default();
        // The apiserver does not accept a selector that cannot be read.
        Selector::try_from(selector).is_ok_and(|selector| selector.matches(labels))
    }
}

fn matches(rule: &RuleWithOperations, group: &str, resource: &str) -> bool {
    let has = |list: &Option<Vec<String>>, wanted: &[&str]| {
        list.iter().flatten().any(|one| wanted.contains(&one.as_str()))
    };
    let patterns = match resource.split_once('/') {
        Some((main, sub)) => vec![
            resource.to_owned(),
            format!("{main}/*"),
            format!("*/{sub}"),
            "*/*".to_owned(),
        ],
        None => vec![resource.to_owned(), "*".to_owned(), "*/*".to_owned()],
    };
    let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
    has(&rule.api_groups, &["*", group])
        && has(&rule.resources, &patterns)
        && has(&rule.operations, &["*", "CREATE", "UPDATE", "DELETE"])
        && rule.scope.as_deref() != Some("Cluster")
}

pub(crate) fn check(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut webhooks = Vec::new();
    match &facts.validating {
        Ok(all) => webhooks.extend(of_validating(all)),
        Err(unread) => findings.push(SECTION.unread("ValidatingWebhookConfigurations", unread)),
    }
    match &facts.mutating {
        Ok(all) => webhooks.extend(of_mutating(all)),
        Err(unread) => findings.push(SECTION.unread("MutatingWebhookConfigurations", unread)),
    }
    let namespace = namespace_labels(facts);
    webhooks.retain(Webhook::matters);
    let before = findings.len();
    for webhook in &webhooks {
        findings.extend(of_url(webhook));
        findings.extend(of_service(webhook, &facts.endpoints));
        findings.extend(of_own_pods(webhook, &facts.namespace, &namespace));
    }
    if findings.len() == before && facts.validating.is_ok() && facts.mutating.is_ok() {
        findings.push(SECTION.ok(match webhooks.len() {
            0 => "no webhook can refuse what Nodewise writes".to_owned(),
            1 => "the webhook that can refuse what Nodewise writes has ready endpoints".to_owned(),
            n => format!("the {n} webhooks that can refuse what Nodewise writes have ready endpoints"),
        }));
    }
    findings
}

/// The labels of Nodewise's namespace. Before it exists: those that the apiserver gives to every namespace.
fn namespace_labels(facts: &Facts) -> BTreeMap<String, String> {
    let object = facts.namespace_object.as_ref().ok().and_then(Option::as_ref);
    let mut labels = object
        .and_then(|object| object.metadata.labels.clone())
        .unwrap_or_default();
    labels.insert("kubernetes.io/metadata.name".to_owned(), facts.namespace.clone());
    labels
}

/// Whether a webhook at a URL answers, only the apiserver can find out.
fn of_url(webhook: &Webhook<'_>) -> Option<Finding> {
    let url = webhook.client.url.as_ref()?;
    let writes = webhook.written().join(", ");
    Some(SECTION.warning(
        format!(
            "{}: it is at {url}, so nothing in the cluster tells whether it answers, and its failurePolicy is Fail: while it does \
             not, writes of {writes} are refused",
            webhook.title
        ),
        "see apiserver_admission_webhook_rejection_count in the apiserver's metrics, or whether Events tell of refused creates",
    ))
}

fn of_service(
    webhook: &Webhook<'_>,
    endpoints: &BTreeMap<(String, String), Seen<Vec<EndpointSlice>>>,
) -> Option<Finding> {
    let (namespace, name) = webhook.service()?;
    let writes = webhook.written().join(", ");
    match endpoints.get(&(namespace.clone(), name.clone()))? {
        Err(unread) => Some(SECTION.unread(&format!("the endpoints of {}", webhook.title), unread)),
        Ok(slices) if slices.iter().any(has_ready_endpoint) => None,
        Ok(_) => Some(SECTION.error(
            format!(
                "{}: its Service {namespace}/{name} has no ready endpoint, and its failurePolicy is Fail: writes of {writes} are refused",
                webhook.title
            ),
            format!("repair the pods of Service {namespace}/{name}, or delete the configuration if the webhook is gone"),
        )),
    }
}

fn has_ready_endpoint(slice: &EndpointSlice) -> bool {
    // As for kube-proxy, an unknown state counts as ready.
    slice.endpoints.iter().flatten().any(|endpoint| {
        !endpoint.addresses.is_empty()
            && endpoint
                .conditions
                .as_ref()
                .and_then(|conditions| conditions.ready)
                .unwrap_or(true)
    })
}

/// A webhook that sees Nodewise's own pods can keep Nodewise from starting again.
fn of_own_pods(webhook: &Webhook<'_>, namespace: &str, labels: &BTreeMap<String, String>) -> Option<Finding> {
    if !webhook.written().contains(&"pods") || !webhook.covers(labels) {
        return None;
    }
    Some(SECTION.warning(
        format!(
            "{} also sees the pods of namespace {namespace}, and its failurePolicy is Fail: while it is down, no pod of Nodewise can start",
            webhook.title
        ),
        format!(
            "exclude the namespace in its namespaceSelector (kubernetes.io/metadata.name NotIn [{namespace}]), \
             because the webhook's own pods may need Nodewise to start"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::check::finding::Outcome;

    fn configuration(rule: &Value, fields: &Value) -> ValidatingWebhookConfiguration {
        let mut webhook = json!({"name": "w.example.com", "rules": [rule], "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"namespace": "policy", "name": "hook"}}});
        webhook
            .as_object_mut()
            .expect("an object")
            .extend(fields.as_object().expect("an object").clone());
        serde_json::from_value(json!({"metadata": {"name": "policy"}, "webhooks": [webhook]}))
            .expect("a configuration")
    }

    #[test]
    fn rules_match_what_executors_write() {
        let table = [
            (
                json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}),
                vec!["pods"],
            ),
            (
                json!({"apiGroups": [""], "resources": ["pods"], "operations": ["CONNECT"]}),
                vec![],
            ),
            (
                json!({"apiGroups": [""], "resources": ["services"], "operations": ["*"]}),
                vec![],
            ),
            (
                json!({"apiGroups": ["apps"], "resources": ["*"], "operations": ["UPDATE"]}),
                vec!["controllerrevisions", "replicasets"],
            ),
            (
                json!({"apiGroups": ["apps"], "resources": ["*/status"], "operations": ["*"]}),
                vec!["daemonsets/status", "deployments/status", "replicasets/status"],
            ),
            (
                json!({"apiGroups": ["*"], "resources": ["*/*"], "operations": ["*"], "scope": "Cluster"}),
                vec![],
            ),
            (
                json!({"apiGroups": ["*"], "resources": ["*/*"], "operations": ["*"]}),
                WRITTEN.map(|(_, one)| one).to_vec(),
            ),
        ];
        for (rule, expected) in table {
            let configurations = [configuration(&rule, &json!({}))];
            assert_eq!(of_validating(&configurations)[0].written(), expected, "{rule}");
        }
        let rule = json!({"apiGroups": ["*"], "resources": ["*"], "operations": ["*"]});
        let ignored = [configuration(&rule, &json!({"failurePolicy": "Ignore"}))];
        assert!(!of_validating(&ignored)[0].matters());
    }

    #[test]
    fn a_service_needs_a_ready_endpoint() {
        let rule = json!({"apiGroups": [""], "resources": ["pods"], "operations": ["CREATE"]});
        let configurations = [configuration(&rule, &json!({}))];
        let webhook = &of_validating(&configurations)[0];
        let slice = |ready: Value| {
            let endpoint = json!({"addresses": ["10.0.0.1"], "conditions": {"ready": ready}});
            json!([{"addressType": "IPv4", "endpoints": [endpoint]}])
        };
        for (slices, expected) in [
            (json!([]), Some(Outcome::Error)),
            (slice(json!(false)), Some(Outcome::Error)),
            (slice(json!(true)), None),
            (slice(Value::Null), None),
        ] {
            let slices = serde_json::from_value(slices.clone()).expect("EndpointSlices");
            let endpoints = BTreeMap::from([(("policy".to_owned(), "hook".to_owned()), Ok(slices))]);
            let found = of_service(webhook, &endpoints);
            assert_eq!(found.map(|finding| finding.result), expected);
        }
    }

    #[test]
    fn a_webhook_that_sees_own_pods_is_reported() {
        let rule = json!({"apiGroups": [""], "resources": ["pods"], "operations": ["CREATE"]});
        let labels = BTreeMap::from([(
            "kubernetes.io/metadata.name".to_owned(),
            "nodewise-system".to_owned(),
        )]);
        let not_in = json!({"namespaceSelector": {"matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["nodewise-system"]}]}});
        let other = json!({"namespaceSelector": {"matchLabels": {"team": "shop"}}});
        for (fields, is_reported) in [(json!({}), true), (not_in, false), (other, false)] {
            let configurations = [configuration(&rule, &fields)];
            let found = of_own_pods(&of_validating(&configurations)[0], "nodewise-system", &labels);
            assert_eq!(found.is_some(), is_reported, "{fields}");
        }
    }
}
