//! Runs a vector of `proto/testdata/plan_checks_kinds.json`: plans for `ReplicaSet`s and `Deployment`s.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use nodewise_projection::{Key, Pod, Workload};
use nodewise_proto::{v1, workload};
use nodewise_runtime::Resource;
use nodewise_runtime::store::{LivePods, is_live};
use serde_json::Value;

use super::{Caches, Known, RequestContext, Violation, check, rules};
use crate::daemon_set::DAEMON_SETS;

const REPLICA_SETS: Resource = Resource {
    plural: "replicasets",
    kind: workload::REPLICA_SET,
    ..DAEMON_SETS
};

const DEPLOYMENTS: Resource = Resource {
    plural: "deployments",
    kind: workload::DEPLOYMENT,
    ..DAEMON_SETS
};

/// The number of the last cache change in the snapshot.
const AS_OF: u64 = 1;

/// What the caches show, as in the vector.
struct Shown<'a> {
    vector: &'a Value,
    first: &'a Value,
    workload: &'a Workload,
}

impl Shown<'_> {
    /// The member of a vector with the objects of a resource.
    fn member(resource: Resource) -> &'static str {
        match resource {
            Resource::PODS => "pods",
            REPLICA_SETS => "replica_sets",
            _ => "",
        }
    }

    fn objects(&self, resource: Resource) -> impl Iterator<Item = &Value> {
        let member = Self::member(resource);
        let of = |vector: &'_ Value| vector[member].is_array();
        let vector = if of(self.vector) { self.vector } else { self.first };
        vector[member].as_array().into_iter().flatten()
    }

    fn find(&self, resource: Resource, name: &str) -> Option<&Value> {
        self.objects(resource)
            .find(|object| object["metadata"]["name"] == name)
    }
}

impl Caches for Shown<'_> {
    fn object(&self, resource: Resource, name: &str) -> Option<Known> {
        let object = self.find(resource, name)?.to_string();
        Some(Known::read(resource, object.as_bytes()).expect("an object"))
    }

    fn has_node(&self, _: &str) -> bool {
        true
    }

    fn changed(&self, resource: Resource, name: &str) -> u64 {
        let has =
            |names: &Value, name: &str| names.as_array().is_some_and(|names| names.contains(&name.into()));
        let member = Self::member(resource);
        let has_changed = match self.find(resource, name) {
            Some(_) => has(&self.vector["changed"][member], name),
            None => has(&self.vector["removed"], member),
        };
        AS_OF + u64::from(has_changed)
    }

    fn own_revisions(&self) -> Vec<Bytes> {
        Vec::new()
    }

    fn controlled(&self, resource: Resource) -> Vec<Bytes> {
        self.objects(resource)
            .map(|object| object.to_string().into())
            .collect()
    }

    fn hashes(&self) -> HashSet<String> {
        HashSet::new()
    }

    fn revisions_changed(&self) -> u64 {
        0
    }

    fn live_pods<'n>(&self, _: &HashSet<&'n str>) -> HashMap<&'n str, LivePods> {
        HashMap::new()
    }

    fn live_pods_beyond(&self, most: usize) -> Option<LivePods> {
        let pods = self.objects(Resource::PODS).map(|object| {
            let pod = Pod::from_json(object).expect("a pod");
            pod.projection
        });
        let controls = |pod: &v1::Pod| {
            let controller = pod.controller.as_ref();
            controller.is_some_and(|controller| *controller.uid == *self.workload.uid)
        };
        let own: Vec<_> = pods.filter(controls).collect();
        let live = own
            .iter()
            .filter(|pod| is_live(pod) && self.workload.selector.selects(&pod.labels));
        let live: Vec<_> = live.map(|pod| self.changed(Resource::PODS, &pod.name)).collect();
        (own.len() > most).then(|| LivePods {
            count: live.len(),
            changed: live.into_iter().max().unwrap_or_default(),
        })
    }

    fn unseen_creates(&self) -> Vec<String> {
        serde_json::from_value(self.vector["unseen_creates"].clone()).unwrap_or_default()
    }
}

/// Checks the vector's plan. Members that the vector does not have come from `first`, the first vector of the kind.
/// Returns the ids of the actions that are left out; the error is the violation.
pub(crate) fn answer(vector: &Value, first: &Value) -> Result<Vec<u32>, Violation> {
    let (resource, kind) = match vector["kind"].as_str() {
        Some(workload::DEPLOYMENT) => (DEPLOYMENTS, workload::DEPLOYMENT),
        _ => (REPLICA_SETS, workload::REPLICA_SET),
    };
    let object = vector.get("workload").unwrap_or(&first["workload"]);
    // Every kind has the same metadata and selector.
    let workload = Workload::daemon_set_from_json(object).expect("a workload");
    let workload = Workload {
        key: Key::new(kind, &workload.key.namespace, &workload.key.name),
        replicas: Some(serde_json::from_value(object["spec"]["replicas"].clone()).unwrap_or(1)),
        ..workload
    };
    let burst: Option<u32> = serde_json::from_value(vector["burst"].clone()).expect("a burst");
    let rules = rules(kind);
    let request = RequestContext {
        workload: &workload,
        resource,
        controls: REPLICA_SETS,
        rules,
        scope: v1::Scope::Unspecified,
        live: &[],
        policies: &[],
        as_of: AS_OF,
        sent: &v1::ReconcileState::default(),
        delete_with_uid: true,
        burst: burst.unwrap_or(rules.burst) as usize,
        decides_after_cut: true,
    };
    let plan: v1::Plan = serde_json::from_value(vector["plan"].clone()).expect("a plan");
    let shown = Shown {
        vector,
        first,
        workload: &workload,
    };
    let mut checked = check(&plan, &request, &shown)?;
    for named in std::mem::take(&mut checked.unseen) {
        let live = vector["live"].as_array().into_iter().flatten();
        let mut live = live.filter(|object| object["kind"] == named.resource.kind);
        if let Some(object) = live.find(|object| object["metadata"]["name"] == *named.reference.name) {
            checked.read(&named, &request, &shown, object.to_string().as_bytes())?;
        }
    }
    Ok(checked.left_out(&plan).into_keys().collect())
}
