//! The fields of each request that can be long, and the memory that each entry takes.

use nodewise_planner::{
    rollout::{Policy, measurement::Measurement},
    snapshot::Labels,
};
use nodewise_proto::v1;

use super::{Part, Shape};

/// Most fields of a shape.
pub(super) const MOST_FIELDS: usize = 6;

/// Bytes of a list entry while the list grows: the new buffer with twice the room, and the old one.
const fn grown<T>() -> usize {
    3 * size_of::<T>()
}

/// A message in a field that is not repeated.
const fn one(inside: &'static Shape) -> Part {
    Part::Message { each: 0, inside }
}

/// A repeated message. `besides` is the memory that the server takes for each one after decoding, up to the response.
const fn many<T>(besides: usize, inside: &'static Shape) -> Part {
    Part::Message {
        each: grown::<T>() + besides,
        inside,
    }
}

/// A repeated object of the cluster, or a repeated entry of the state about one. `besides` as for [`many`].
const fn objects<T>(besides: usize, inside: &'static Shape) -> Part {
    Part::Object {
        each: grown::<T>() + besides,
        inside,
    }
}

const fn texts(each: usize) -> Part {
    Part::Text { each }
}

pub(super) const PLAN_STREAM_REQUEST: Shape = Shape(&[(2, "request", one(&PLAN_REQUEST))]);

pub(super) const PLAN_REQUEST: Shape = Shape(&[
    (1, "snapshot", one(&SNAPSHOT)),
    (2, "options", one(&OPTIONS)),
    (3, "undelivered_reports", many::<v1::ReportRequest>(0, &REPORT)),
]);

pub(super) const EXPLAIN_REQUEST: Shape =
    Shape(&[(1, "snapshot", one(&SNAPSHOT)), (2, "options", one(&OPTIONS))]);

pub(super) const SIMULATE_REQUEST: Shape =
    Shape(&[(1, "snapshot", one(&SNAPSHOT)), (2, "options", one(&OPTIONS))]);

pub(super) const EVALUATE_NODES_REQUEST: Shape = Shape(&[
    (1, "nodes", objects::<v1::NodeShape>(300, &NODE_SHAPE)),
    (2, "daemon_sets", many::<v1::DaemonSet>(900, &DAEMON_SET)),
    (3, "feature_gates", Part::Numbers { each: 16 }),
]);

const NODE_SHAPE: Shape = Shape(&[
    (1, "name", texts(0)),
    (2, "labels", objects::<v1::Label>(100, &NOTHING)),
    (3, "taints", objects::<v1::Taint>(150, &NOTHING)),
]);

pub(super) const REPORT: Shape = Shape(&[
    (3, "state", one(&STATE)),
    (4, "outcomes", many::<v1::Outcome>(100, &OUTCOME)),
    (5, "options", one(&OPTIONS)),
    (7, "plan_error", texts(0)),
]);

const OUTCOME: Shape = Shape(&[(3, "message", texts(0)), (6, "deleted_pod_uid", texts(0))]);

const OPTIONS: Shape = Shape(&[
    (2, "enabled_deviations", Part::Numbers { each: 16 }),
    (3, "disabled_deviations", Part::Numbers { each: 16 }),
    (4, "feature_gates", Part::Numbers { each: 16 }),
    (7, "disabled_feature_gates", Part::Numbers { each: 16 }),
]);

const SNAPSHOT: Shape = Shape(&[
    (2, "workload", one(&WORKLOAD)),
    (3, "revisions", many::<v1::ControllerRevision>(300, &REVISION)),
    (6, "node_buckets", many::<v1::Bucket>(60, &NODE_BUCKET)),
    // Includes the results that a plan keeps for each pod bucket.
    (7, "pod_buckets", many::<v1::Bucket>(460, &POD_BUCKET)),
    (9, "state", one(&STATE)),
    (10, "own_writes", many::<v1::OwnWrite>(100, &NOTHING)),
]);

const WORKLOAD: Shape = Shape(&[
    (1, "daemon_set", one(&DAEMON_SET)),
    (2, "replica_set", one(&REPLICA_SET)),
    (3, "deployment", one(&DEPLOYMENT)),
]);

const DAEMON_SET: Shape = Shape(&[
    (1, "object", Part::Workload),
    (
        2,
        "rollout_policies",
        objects::<v1::RolloutPolicy>(POLICY, &ROLLOUT_POLICY),
    ),
    (
        3,
        "measurements",
        objects::<v1::Measurement>(grown::<Measurement>() + 200, &MEASUREMENT),
    ),
    (4, "analysis_hosts", texts(grown::<String>())),
]);

/// Bytes of a policy after decoding, with a status of conditions and an action that writes it.
const POLICY: usize = grown::<Policy>() + 4_096;

const ROLLOUT_POLICY: Shape = Shape(&[(1, "object", Part::Policy)]);

const MEASUREMENT: Shape = Shape(&[
    (1, "id", one(&MEASUREMENT_ID)),
    (3, "value", Part::Value),
    (4, "verdict", one(&VERDICT)),
    (5, "error", texts(0)),
]);

const MEASUREMENT_ID: Shape = Shape(&[
    (1, "policy_uid", texts(0)),
    (2, "revision_hash", texts(0)),
    (3, "stage", texts(0)),
    (4, "check", texts(0)),
]);

const VERDICT: Shape = Shape(&[(2, "message", texts(0))]);

const REPLICA_SET: Shape = Shape(&[
    (1, "object", Part::Workload),
    (2, "related_pods", objects::<v1::NodePodCount>(50, &NOTHING)),
]);

const DEPLOYMENT: Shape = Shape(&[
    (1, "object", Part::Workload),
    (
        2,
        "replica_sets",
        many::<v1::DeploymentReplicaSet>(900, &DEPLOYMENT_REPLICA_SET),
    ),
]);

const DEPLOYMENT_REPLICA_SET: Shape = Shape(&[(1, "object", Part::ReplicaSet)]);

const REVISION: Shape = Shape(&[(1, "object", Part::Revision)]);

const NODE_BUCKET: Shape = Shape(&[
    (1, "data", one(&NODES)),
    (3, "data_with_shared_labels", one(&NODES)),
]);

/// In `data` there are no shared labels. In `data_with_shared_labels` nodes refer to them.
const NODES: Shape = Shape(&[
    (
        1,
        "nodes",
        Part::Object {
            each: 760,
            inside: &NODE,
        },
    ),
    (2, "shared_labels", objects::<(&str, u64)>(100, &SHARED_LABEL)),
]);

const SHARED_LABEL: Shape = Shape(&[(1, "key", texts(0)), (2, "value", texts(0))]);

const NODE: Shape = Shape(&[
    (1, "name", texts(0)),
    (3, "labels", LABEL_OF_NODE),
    (4, "taints", objects::<v1::Taint>(50, &NOTHING)),
    (9, "shared_labels", Part::LabelNumbers),
]);

const POD_BUCKET: Shape = Shape(&[(1, "data", one(&PODS))]);

const PODS: Shape = Shape(&[
    (
        1,
        "pods",
        Part::Object {
            each: 620,
            inside: &POD,
        },
    ),
    (
        2,
        "shared_metadata",
        objects::<v1::SharedMetadata>(200, &SHARED_METADATA),
    ),
]);

const POD: Shape = Shape(&[
    (1, "name", texts(0)),
    (2, "uid", texts(0)),
    (3, "labels", LABEL_OF_POD),
    (5, "node_name", texts(0)),
    (6, "target_node_name", texts(0)),
]);

const SHARED_METADATA: Shape = Shape(&[(3, "labels", LABEL_OF_POD)]);

/// The labels of a pod are one text with offsets.
const LABEL_OF_POD: Part = Part::Label {
    each: Labels::BYTES_PER_LABEL,
    times: 1,
};

/// Each distinct label of the nodes of a bucket is in a growing text, in growing lists of offsets and in a table.
const LABEL_OF_NODE: Part = Part::Label { each: 20, times: 2 };

const STATE: Shape = Shape(&[
    (1, "expectations", one(&EXPECTATIONS)),
    (
        2,
        "failed_pod_backoffs",
        objects::<v1::FailedPodBackoff>(200, &NOTHING),
    ),
    (
        3,
        "pod_name_collisions",
        objects::<v1::PodNameCollision>(150, &NOTHING),
    ),
    (5, "used_pod_names", objects::<v1::UsedPodName>(150, &NOTHING)),
]);

const EXPECTATIONS: Shape = Shape(&[
    (2, "creates", objects::<v1::ExpectedCreate>(100, &NOTHING)),
    (3, "delete_uids", texts(3 * size_of::<String>() + 50)),
]);

const NOTHING: Shape = Shape(&[]);
