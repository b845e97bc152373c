//! What people want to know about a node.

use nodewise_projection::timestamp;
use nodewise_proto::v1;

use super::read;

/// The label with the zone of a node.
const ZONE: &str = "/metadata/labels/topology.kubernetes.io~1zone";

/// The labels that name the pool of a node: GKE, EKS, AKS, Karpenter, Cluster API, and node pools of others.
const POOLS: [&str; 8] = [
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "karpenter.sh/nodepool",
    "cluster.x-k8s.io/deployment-name",
    "node.kubernetes.io/pool",
    "alpha.eksctl.io/nodegroup-name",
    "doks.digitalocean.com/node-pool",
];

/// Facts about a node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeFacts {
    /// metadata.name.
    pub name: String,
    /// The conditions that are not as they should be.
    pub conditions: Vec<v1::NodeCondition>,
    /// spec.unschedulable.
    pub unschedulable: bool,
    /// The label `topology.kubernetes.io/zone`.
    pub zone: String,
    /// The label of its node pool.
    pub pool: String,
}

impl NodeFacts {
    /// Reads a v1 Node.
    #[must_use]
    pub fn of(json: &str) -> Self {
        let object = read::object(json);
        let conditions = read::list(&object, "/status/conditions").iter();
        Self {
            name: read::owned(&object, "/metadata/name"),
            conditions: conditions
                .filter(|condition| {
                    let expected = if read::text(condition, "/type") == "Ready" {
                        "True"
                    } else {
                        "False"
                    };
                    read::text(condition, "/status") != expected
                })
                .map(|condition| v1::NodeCondition {
                    r#type: read::owned(condition, "/type"),
                    status: read::owned(condition, "/status"),
                    reason: read::owned(condition, "/reason"),
                    since: read::time(condition, "/lastTransitionTime").map(timestamp),
                })
                .collect(),
            unschedulable: read::flag(&object, "/spec/unschedulable"),
            zone: read::owned(&object, ZONE),
            pool: pool(&object),
        }
    }
}

/// The first label that names a pool.
fn pool(object: &serde_json::Value) -> String {
    let labels = object.pointer("/metadata/labels");
    let label = |key: &&str| labels?.get(key)?.as_str();
    POOLS.iter().find_map(label).unwrap_or_default().to_owned()
}
