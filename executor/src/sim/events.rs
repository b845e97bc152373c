//! Changes of the simulated cluster as events of watches.

use nodewise_projection::{Node, Pod, ProjectError, Revision, Workload};
use nodewise_runtime::{Delta, event::ClusterEvent};
use nodewise_simulator::{Change, Cluster, Resource};
use serde_json::Value;

use crate::{daemon_set::DAEMON_SETS, deployment::DEPLOYMENTS, replica_set::REPLICA_SETS};

/// The lists with which a watch of a cluster begins.
pub(super) fn lists(cluster: &Cluster) -> [ClusterEvent; 7] {
    // The objects were all validated before they were stored.
    [
        ClusterEvent::Workloads(
            DAEMON_SETS,
            listed(cluster, Resource::DaemonSets, Workload::daemon_set_from_json),
        ),
        ClusterEvent::Pods(listed(cluster, Resource::Pods, Pod::from_json)),
        ClusterEvent::Nodes(listed(cluster, Resource::Nodes, Node::from_json)),
        ClusterEvent::Revisions(listed(cluster, Resource::Revisions, Revision::from_json)),
        ClusterEvent::Workloads(
            DEPLOYMENTS,
            listed(cluster, Resource::Deployments, Workload::deployment_from_json),
        ),
        ClusterEvent::Workloads(
            REPLICA_SETS,
            listed(cluster, Resource::ReplicaSets, Workload::replica_set_from_json),
        ),
        // The simulated cluster does not have the custom resource.
        ClusterEvent::Policies(Delta::Listed {
            objects: Vec::new(),
            resource_version: String::new(),
        }),
    ]
}

fn listed<T, E>(cluster: &Cluster, resource: Resource, read: impl Fn(&Value) -> Result<T, E>) -> Delta<T> {
    let objects = cluster.list(resource);
    Delta::Listed {
        objects: objects.filter_map(|object| read(object).ok()).collect(),
        resource_version: cluster.version().to_string(),
    }
}

/// The event of a change.
pub(super) fn of_change(change: &Change) -> Result<ClusterEvent, ProjectError> {
    event(change.key.resource, &change.object, change.is_deleted)
}

/// Refuses the objects that the executor cannot read.
pub(super) fn validate(resource: Resource, object: &Value) -> Result<(), String> {
    event(resource, object, false)
        .map(drop)
        .map_err(|error| error.to_string())
}

fn event(resource: Resource, object: &Value, deleted: bool) -> Result<ClusterEvent, ProjectError> {
    fn delta<T>(object: T, deleted: bool) -> Delta<T> {
        if deleted {
            Delta::Deleted(object)
        } else {
            Delta::Applied(object)
        }
    }
    Ok(match resource {
        Resource::DaemonSets => ClusterEvent::Workloads(
            DAEMON_SETS,
            delta(Workload::daemon_set_from_json(object)?, deleted),
        ),
        Resource::ReplicaSets => ClusterEvent::Workloads(
            REPLICA_SETS,
            delta(Workload::replica_set_from_json(object)?, deleted),
        ),
        Resource::Deployments => ClusterEvent::Workloads(
            DEPLOYMENTS,
            delta(Workload::deployment_from_json(object)?, deleted),
        ),
        Resource::Pods => ClusterEvent::Pods(delta(Pod::from_json(object)?, deleted)),
        Resource::Nodes => ClusterEvent::Nodes(delta(Node::from_json(object)?, deleted)),
        Resource::Revisions => ClusterEvent::Revisions(delta(Revision::from_json(object)?, deleted)),
    })
}
