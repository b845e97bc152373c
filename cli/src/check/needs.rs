//! The rights that executors need: those of the manifests in `deploy/kustomize`, which the end-to-end tests hold to what executors use.

use std::fmt;

use nodewise_executor::{config::Mode, controllers::Controller};
use serde::Deserialize;

use super::install::Plan;

/// The roles of every executor, and those that each mode and controller adds.
const BASE: &str = include_str!("../../../deploy/kustomize/base/rbac.yaml");
const OWN: &str = include_str!("../../../deploy/kustomize/components/own/rbac.yaml");
const COMPANION: &str = include_str!("../../../deploy/kustomize/components/companion/rbac.yaml");
const LEASE: &str = include_str!("../../../deploy/kustomize/components/leader/lease.yaml");
const DEPLOYMENT: &str = include_str!("../../../deploy/kustomize/components/deployment-controller/rbac.yaml");
const DEPLOYMENT_OWN: &str =
    include_str!("../../../deploy/kustomize/components/deployment-controller-own/rbac.yaml");
const REPLICA_SET: &str =
    include_str!("../../../deploy/kustomize/components/replicaset-controller/rbac.yaml");
const REPLICA_SET_OWN: &str =
    include_str!("../../../deploy/kustomize/components/replicaset-controller-own/rbac.yaml");
const POLICIES: &str = include_str!("../../../deploy/kustomize/components/rollout-policy/rbac.yaml");
const POLICIES_WRITE: &str =
    include_str!("../../../deploy/kustomize/components/rollout-policy-write/rbac.yaml");

/// A right, as the apiserver is asked about it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Right {
    pub(crate) group: String,
    /// With its subresource: `daemonsets/status`.
    pub(crate) resource: String,
    pub(crate) verb: String,
    /// The only object that it is for; `None`: all.
    pub(crate) name: Option<String>,
    /// `None`: in all namespaces.
    pub(crate) namespace: Option<String>,
}

impl Right {
    pub(crate) fn new(verb: &str, resource: &str, group: &str, namespace: Option<&str>) -> Self {
        Self {
            group: group.to_owned(),
            resource: resource.to_owned(),
            verb: verb.to_owned(),
            name: None,
            namespace: namespace.map(str::to_owned),
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        if let Some(name) = &self.name {
            write!(f, " {name}")?;
        }
        match &self.namespace {
            Some(namespace) => write!(f, " in namespace {namespace}"),
            None => Ok(()),
        }
    }
}

/// A document of a manifest. Other kinds than roles have no rules.
#[derive(Deserialize)]
struct Document {
    kind: String,
    #[serde(default)]
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    api_groups: Vec<String>,
    resources: Vec<String>,
    #[serde(default)]
    resource_names: Vec<String>,
    verbs: Vec<String>,
}

/// The rights that an executor needs, sorted. `has_policies`: the cluster has, or shall have, the kind RolloutPolicy.
pub(crate) fn needed(plan: &Plan, has_policies: bool) -> Vec<Right> {
    let mut rights = of_manifest(BASE, &plan.namespace);
    let is_own = |controller| plan.mode(controller) == Some(Mode::Own);
    let has = |mode| {
        Controller::ALL
            .into_iter()
            .any(|controller| plan.mode(controller) == Some(mode))
    };
    for (is_needed, manifest) in [
        (has(Mode::Own), OWN),
        (has(Mode::Companion), COMPANION),
        (plan.mode(Controller::Deployment).is_some(), DEPLOYMENT),
        (is_own(Controller::Deployment), DEPLOYMENT_OWN),
        (plan.mode(Controller::ReplicaSet).is_some(), REPLICA_SET),
        (is_own(Controller::ReplicaSet), REPLICA_SET_OWN),
    ] {
        if is_needed {
            rights.extend(of_manifest(manifest, &plan.namespace));
        }
    }
    rights.retain(|right| is_for(plan, right));
    let daemon_sets = plan.mode(Controller::DaemonSet).filter(|_| has_policies);
    if let Some(mode) = daemon_sets {
        rights.extend(of_manifest(POLICIES, &plan.namespace));
        if mode != Mode::Observe {
            rights.extend(of_manifest(POLICIES_WRITE, &plan.namespace));
        }
    }
    if let Some(namespace) = &plan.lease_namespace {
        rights.extend(of_manifest(LEASE, namespace));
    }
    rights.sort_unstable();
    rights.dedup();
    rights
}

/// Whether a controller of this executor uses the right. The roles of all executors and of mode own are also those of the DaemonSet
/// controller.
fn is_for(plan: &Plan, right: &Right) -> bool {
    let writes = !["get", "list", "watch"].contains(&right.verb.as_str());
    let daemon_sets = plan.mode(Controller::DaemonSet);
    let is_own = |controller| plan.mode(controller) == Some(Mode::Own);
    match right.resource.split('/').next().unwrap_or_default() {
        "daemonsets" | "controllerrevisions" | "nodes" if writes => daemon_sets == Some(Mode::Own),
        "daemonsets" | "controllerrevisions" | "nodes" => daemon_sets.is_some(),
        "pods" if writes || right.verb == "get" => {
            is_own(Controller::ReplicaSet) || matches!(daemon_sets, Some(Mode::Own | Mode::Companion))
        }
        _ => true,
    }
}

/// The rights of a manifest's roles. Those of a Role are for this namespace.
fn of_manifest(text: &str, namespace: &str) -> Vec<Right> {
    let documents: Vec<Document> = serde_saphyr::from_multiple(text).expect("a manifest of this repository");
    let mut rights = Vec::new();
    for document in documents {
        let namespace = (document.kind == "Role").then(|| namespace.to_owned());
        for rule in &document.rules {
            rights.extend(rule.rights(namespace.as_ref()));
        }
    }
    rights
}

impl Rule {
    fn rights(&self, namespace: Option<&String>) -> Vec<Right> {
        let names: Vec<_> = if self.resource_names.is_empty() {
            vec![None]
        } else {
            self.resource_names.iter().cloned().map(Some).collect()
        };
        let mut rights = Vec::new();
        for (group, resource) in self
            .api_groups
            .iter()
            .flat_map(|group| self.resources.iter().map(move |one| (group, one)))
        {
            for (verb, name) in self
                .verbs
                .iter()
                .flat_map(|verb| names.iter().map(move |name| (verb, name)))
            {
                rights.push(Right {
                    group: group.clone(),
                    resource: resource.clone(),
                    verb: verb.clone(),
                    name: name.clone(),
                    namespace: namespace.cloned(),
                });
            }
        }
        rights
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(mode: &str, controllers: &str) -> Vec<String> {
        let modes: Vec<_> = mode.split(',').map(|one| one.parse().expect("a mode")).collect();
        let list: Vec<_> = controllers
            .split(',')
            .map(|one| one.parse().expect("a controller"))
            .collect();
        let rights = needed(&Plan::planned("nodewise-system", &modes, &list), true);
        rights.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_executor_needs_what_its_controllers_and_modes_use() {
        let observe = of("observe", "daemonset");
        assert_eq!(observe.len(), 14, "{observe:?}");
        assert!(
            observe
                .contains(&"watch endpointslices.discovery.k8s.io in namespace nodewise-system".to_owned())
        );
        let table = [
            ("own", "daemonset", "update daemonsets/status.apps", true),
            ("own", "daemonset", "create pods", true),
            (
                "own",
                "daemonset",
                "update leases.coordination.k8s.io nodewise-executor in namespace nodewise-system",
                true,
            ),
            ("observe", "daemonset", "create pods", false),
            ("observe", "*", "list deployments.apps", true),
            ("observe", "*", "patch deployments/status.apps", false),
            ("companion", "daemonset", "delete pods", true),
            ("companion", "daemonset", "create pods", false),
            ("observe", "daemonset", "watch rolloutpolicies.nodewise.dev", true),
            (
                "observe",
                "daemonset",
                "patch rolloutpolicies/status.nodewise.dev",
                false,
            ),
            ("companion", "daemonset", "create pods/eviction", true),
            ("own", "deployment", "list rolloutpolicies.nodewise.dev", false),
            ("own", "deployment", "create pods/eviction", false),
            ("own", "deployment", "create pods", false),
            ("own", "deployment", "list nodes", false),
            ("own", "deployment", "patch deployments/status.apps", true),
            ("own", "replicaset", "create pods", true),
            (
                "own,daemonset-controller=observe",
                "*",
                "update daemonsets/status.apps",
                false,
            ),
        ];
        for (mode, controllers, right, is_needed) in table {
            let rights = of(mode, controllers);
            assert_eq!(
                rights.iter().any(|one| one == right),
                is_needed,
                "{mode} {controllers} {right}: {rights:?}"
            );
        }
    }

    #[test]
    fn a_cluster_without_policies_needs_no_rights_for_them() {
        let mode = "own".parse().expect("a mode");
        let plan = Plan::planned("nodewise-system", &[mode], &["*".parse().expect("a controller")]);
        let all = needed(&plan, false);
        assert!(!all.iter().any(|right| right.group == "nodewise.dev"), "{all:?}");
        assert_eq!(needed(&plan, true).len(), all.len() + 4);
    }
}
