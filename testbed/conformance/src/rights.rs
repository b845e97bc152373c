//! RBAC rights of an executor, and which of them are never used.

use std::{collections::BTreeSet, fmt, path::Path};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use k8s_openapi::api::rbac::v1::PolicyRule;
use nodewise_testbed::{AuditEvent, manifests};
use serde_json::Value;

/// The kinds of RBAC objects.
const KINDS: [&str; 5] = [
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "ClusterRole",
    "ClusterRoleBinding",
];

/// The namespace and the RBAC objects of an overlay of `deploy/kustomize`.
pub fn objects(overlay: &str) -> Result<Vec<Value>> {
    rendered("overlays", overlay)
}

/// The RBAC objects that a component of `deploy/kustomize` adds to an overlay.
pub fn added_by(component: &str) -> Result<Vec<Value>> {
    rendered("components", component)
}

fn rendered(folder: &str, name: &str) -> Result<Vec<Value>> {
    let kustomize = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/kustomize");
    let mut objects = manifests::kustomize(&kustomize.join(folder).join(name))?;
    objects.retain(|object| {
        let kind = object["kind"].as_str().unwrap_or_default();
        kind == "Namespace" || KINDS.contains(&kind)
    });
    Ok(objects)
}

/// One right that a role grants.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    /// The namespace, if the right is limited to one.
    namespace: Option<String>,
    group: String,
    /// The resource with its subresource, as roles write it: `daemonsets/status`.
    resource: String,
    /// The object name, if the right is limited to one.
    name: Option<String>,
    verb: String,
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            group,
            resource,
            verb,
            ..
        } = self;
        write!(f, "{verb} {resource}")?;
        if !group.is_empty() {
            write!(f, ".{group}")?;
        }
        Ok(())
    }
}

impl Right {
    /// All rights that the roles among these objects grant. Rules for non-resource URLs are an error, because the audit
    /// log would not show their use.
    pub fn given_by(objects: &[Value]) -> Result<BTreeSet<Self>> {
        let mut rights = BTreeSet::new();
        for role in objects {
            if role["kind"] != "Role" && role["kind"] != "ClusterRole" {
                continue;
            }
            let namespace = role["metadata"]["namespace"].as_str();
            let rules: Vec<PolicyRule> =
                serde_json::from_value(role["rules"].clone()).context("the rules of a role")?;
            let is_about_objects = rules.iter().all(|rule| rule.non_resource_urls.is_none());
            ensure!(
                is_about_objects,
                "{} has nonResourceURLs",
                role["metadata"]["name"]
            );
            rights.extend(rules.iter().flat_map(|rule| Self::of_rule(namespace, rule)));
        }
        Ok(rights)
    }

    fn of_rule(namespace: Option<&str>, rule: &PolicyRule) -> Vec<Self> {
        let names: Vec<Option<String>> = match &rule.resource_names {
            Some(names) => names.iter().cloned().map(Some).collect(),
            None => vec![None],
        };
        let mut rights = Vec::new();
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                for name in &names {
                    rights.extend(rule.verbs.iter().map(|verb| Self {
                        namespace: namespace.map(str::to_owned),
                        group: group.clone(),
                        resource: resource.clone(),
                        name: name.clone(),
                        verb: verb.clone(),
                    }));
                }
            }
        }
        rights
    }

    /// Whether this request needed the right and was not forbidden.
    #[must_use]
    pub fn is_used_by(&self, event: &AuditEvent) -> bool {
        let resource = match event.subresource.as_str() {
            "" => event.resource.clone(),
            subresource => format!("{}/{subresource}", event.resource),
        };
        !event.is_forbidden
            && event.verb == self.verb
            && event.group == self.group
            && resource == self.resource
            && self.namespace.as_ref().is_none_or(|it| *it == event.namespace)
            && self.name.as_ref().is_none_or(|it| *it == event.name)
    }

    /// The SubjectAccessReview that asks whether this user has the right.
    #[must_use]
    pub fn review(&self, user: &str) -> SubjectAccessReview {
        let (resource, subresource) = match self.resource.split_once('/') {
            Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
            None => (self.resource.as_str(), None),
        };
        SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(user.to_owned()),
                resource_attributes: Some(ResourceAttributes {
                    namespace: self.namespace.clone(),
                    group: Some(self.group.clone()),
                    resource: Some(resource.to_owned()),
                    subresource,
                    name: self.name.clone(),
                    verb: Some(self.verb.clone()),
                    ..ResourceAttributes::default()
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        }
    }
}

/// Whether only executors of clusters with RolloutPolicies use a right.
#[must_use]
pub fn is_of_policies(right: &Right) -> bool {
    right.resource.starts_with("rolloutpolicies") || right.resource == "pods/eviction"
}

/// The rights that no request used, but for those of RolloutPolicies.
pub fn unused<'a>(
    rights: &'a BTreeSet<Right>,
    requests: &'a [AuditEvent],
) -> impl Iterator<Item = &'a Right> {
    let is_used = |right: &&Right| requests.iter().any(|event| right.is_used_by(event));
    rights
        .iter()
        .filter(move |right| !is_used(right) && !is_of_policies(right))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(
        verb: &str,
        resource: &str,
        subresource: &str,
        namespace: &str,
        is_forbidden: bool,
    ) -> AuditEvent {
        AuditEvent {
            user: "u".into(),
            verb: verb.into(),
            resource: resource.into(),
            subresource: subresource.into(),
            group: "apps".into(),
            namespace: namespace.into(),
            name: "n".into(),
            code: 0,
            is_forbidden,
            user_agent: String::new(),
            uri: String::new(),
            received: jiff::Timestamp::UNIX_EPOCH,
            answered: jiff::Timestamp::UNIX_EPOCH,
            complete: true,
        }
    }

    #[test]
    fn non_resource_rules_are_rejected() {
        let urls = json!({ "nonResourceURLs": ["/metrics"], "verbs": ["get"] });
        let role = json!({ "kind": "ClusterRole", "metadata": { "name": "r" }, "rules": [urls] });
        Right::given_by(&[role]).expect_err("it has nonResourceURLs");
    }

    #[test]
    fn unused_rights_are_found() -> Result<()> {
        let all = json!({ "apiGroups": ["apps"], "resources": ["daemonsets", "daemonsets/status"], "verbs": ["get", "update"] });
        let named = json!({ "apiGroups": ["apps"], "resources": ["leases"], "verbs": ["get"], "resourceNames": ["n", "other"] });
        let role = json!({ "kind": "Role", "metadata": { "namespace": "here" }, "rules": [all, named] });
        let rights = Right::given_by(&[role, json!({ "kind": "ServiceAccount" })])?;
        assert_eq!(rights.len(), 6);
        let requests = [
            request("get", "daemonsets", "", "here", false),
            request("update", "daemonsets", "", "there", false),
            request("update", "daemonsets", "status", "here", false),
            request("get", "daemonsets", "status", "here", true),
            request("get", "leases", "", "here", false),
        ];
        let unused: Vec<_> = unused(&rights, &requests).map(ToString::to_string).collect();
        assert_eq!(
            unused,
            [
                "update daemonsets.apps",
                "get daemonsets/status.apps",
                "get leases.apps"
            ]
        );
        Ok(())
    }
}
