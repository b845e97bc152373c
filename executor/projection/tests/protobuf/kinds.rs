//! The fields of pods and nodes for random objects, as Go's types declare them: names in JSON, numbers in Protobuf, and what JSON leaves
//! out. This is independent of the messages that the crate decodes.

/// A field of a Go struct.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) number: u32,
    pub(crate) kind: Kind,
    pub(crate) form: Form,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// A text, most often one of these.
    Text(&'static [&'static str]),
    Bool,
    Int32,
    Time,
    /// A map of texts, most often with these keys.
    Map(&'static [&'static str]),
    Message(&'static [Field]),
}

/// The form of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Present in both encodings.
    Present,
    /// A value whose tag has `omitempty`: JSON leaves it out if it is empty.
    OmitEmpty,
    /// A pointer: both encodings leave it out if it is nil.
    Pointer,
    /// A slice whose tag has `omitempty`.
    List,
}

use Form::{List, OmitEmpty, Pointer, Present};
use Kind::{Bool, Int32, Map, Message, Text, Time};

const fn field(name: &'static str, number: u32, kind: Kind, form: Form) -> Field {
    Field {
        name,
        number,
        kind,
        form,
    }
}

const STATUSES: &[&str] = &["True", "True", "False", "Unknown"];
const REASONS: &[&str] = &[
    "Evicted",
    "DeletionByTaintManager",
    "Not A Word",
    "CrashLoopBackOff",
    "ContainerCreating",
];
const MESSAGES: &[&str] = &["one line", "two\nlines", " <&> \"quoted\" \u{1} \u{2028}"];
const CONTAINERS: &[&str] = &["a", "b"];

const META: &[Field] = &[
    field("name", 1, Text(&["p", "q-1"]), OmitEmpty),
    field("generateName", 2, Text(&["p-"]), OmitEmpty),
    field("namespace", 3, Text(&["default", "kube-system"]), OmitEmpty),
    field("uid", 5, Text(&["u", "3a5b"]), OmitEmpty),
    field(
        "resourceVersion",
        6,
        Text(&["1", "18446744073709551615"]),
        OmitEmpty,
    ),
    field("creationTimestamp", 8, Time, OmitEmpty),
    field("deletionTimestamp", 9, Time, Pointer),
    field("labels", 11, Map(&["app", "zone"]), OmitEmpty),
    field(
        "annotations",
        12,
        Map(&[
            "nodewise.dev/traceparent",
            "controller.kubernetes.io/pod-deletion-cost",
            "nodewise.dev/rollout",
        ]),
        OmitEmpty,
    ),
    field("ownerReferences", 13, Message(OWNER), List),
    field("finalizers", 14, Text(&["example.com/wait", "other"]), List),
    field("managedFields", 17, Message(MANAGED_FIELDS), List),
];

const OWNER: &[Field] = &[
    field("kind", 1, Text(&["DaemonSet", "ReplicaSet", "Job"]), Present),
    field("name", 3, Text(&["agent"]), Present),
    field("uid", 4, Text(&["owner"]), Present),
    field("apiVersion", 5, Text(&["apps/v1"]), Present),
    field("controller", 6, Bool, Pointer),
];

const MANAGED_FIELDS: &[Field] = &[
    field("manager", 1, Text(&["kubelet", "nodewise-executor"]), OmitEmpty),
    field("operation", 2, Text(&["Update", "Apply"]), OmitEmpty),
    field("time", 4, Time, Pointer),
    field("subresource", 8, Text(&["status", "", ""]), OmitEmpty),
];

pub(crate) const POD: &[Field] = &[
    field("metadata", 1, Message(META), Present),
    field("spec", 2, Message(POD_SPEC), Present),
    field("status", 3, Message(POD_STATUS), Present),
];

const POD_SPEC: &[Field] = &[
    field("containers", 2, Message(CONTAINER), List),
    field("nodeName", 10, Text(&["n1", "", ""]), OmitEmpty),
    field("hostNetwork", 11, Bool, OmitEmpty),
    field("affinity", 18, Message(AFFINITY), Pointer),
    field("initContainers", 20, Message(CONTAINER), List),
];

const CONTAINER: &[Field] = &[
    field("name", 1, Text(CONTAINERS), Present),
    field("image", 2, Text(&["agent:1"]), OmitEmpty),
    field("restartPolicy", 24, Text(&["Always", "Always", "Never"]), Pointer),
];

const AFFINITY: &[Field] = &[field("nodeAffinity", 1, Message(NODE_AFFINITY), Pointer)];

const NODE_AFFINITY: &[Field] = &[field(
    "requiredDuringSchedulingIgnoredDuringExecution",
    1,
    Message(NODE_SELECTOR),
    Pointer,
)];

const NODE_SELECTOR: &[Field] = &[field("nodeSelectorTerms", 1, Message(TERM), List)];

const TERM: &[Field] = &[
    field("matchExpressions", 1, Message(REQUIREMENT), List),
    field("matchFields", 2, Message(REQUIREMENT), List),
];

const REQUIREMENT: &[Field] = &[
    field(
        "key",
        1,
        Text(&["metadata.name", "metadata.name", "zone"]),
        Present,
    ),
    field("operator", 2, Text(&["In", "In", "NotIn"]), Present),
    field("values", 3, Text(&["n1", "n2"]), List),
];

const POD_STATUS: &[Field] = &[
    field(
        "phase",
        1,
        Text(&["Pending", "Running", "Running", "Succeeded", "Failed", "Unknown"]),
        OmitEmpty,
    ),
    field("conditions", 2, Message(CONDITION), List),
    field("message", 3, Text(MESSAGES), OmitEmpty),
    field("reason", 4, Text(REASONS), OmitEmpty),
    field("startTime", 7, Time, Pointer),
    field("containerStatuses", 8, Message(CONTAINER_STATUS), List),
    field("initContainerStatuses", 10, Message(CONTAINER_STATUS), List),
];

const CONDITION: &[Field] = &[
    field(
        "type",
        1,
        Text(&[
            "Ready",
            "Ready",
            "DisruptionTarget",
            "MaintenanceInProgress",
            "PodScheduled",
        ]),
        Present,
    ),
    field("status", 2, Text(STATUSES), Present),
    field("lastTransitionTime", 4, Time, Present),
    field("reason", 5, Text(REASONS), OmitEmpty),
    field("message", 6, Text(MESSAGES), OmitEmpty),
];

const CONTAINER_STATUS: &[Field] = &[
    field("name", 1, Text(CONTAINERS), Present),
    field("state", 2, Message(STATE), Present),
    field("lastState", 3, Message(STATE), Present),
    field("ready", 4, Bool, Present),
    field("restartCount", 5, Int32, Present),
    field("image", 6, Text(&["agent:1"]), Present),
    field("started", 9, Bool, Pointer),
];

const STATE: &[Field] = &[
    field("waiting", 1, Message(WAITING), Pointer),
    field("running", 2, Message(RUNNING), Pointer),
    field("terminated", 3, Message(TERMINATED), Pointer),
];

const WAITING: &[Field] = &[
    field("reason", 1, Text(REASONS), OmitEmpty),
    field("message", 2, Text(MESSAGES), OmitEmpty),
];

const RUNNING: &[Field] = &[field("startedAt", 1, Time, Present)];

const TERMINATED: &[Field] = &[
    field("exitCode", 1, Int32, Present),
    field("signal", 2, Int32, OmitEmpty),
    field("reason", 3, Text(REASONS), OmitEmpty),
    field("message", 4, Text(MESSAGES), OmitEmpty),
    field("startedAt", 5, Time, Present),
];

pub(crate) const NODE: &[Field] = &[
    field("metadata", 1, Message(META), Present),
    field("spec", 2, Message(NODE_SPEC), Present),
    field("status", 3, Message(NODE_STATUS), Present),
];

const NODE_SPEC: &[Field] = &[
    field("providerID", 3, Text(&["cloud://1"]), OmitEmpty),
    field("unschedulable", 4, Bool, OmitEmpty),
    field("taints", 5, Message(TAINT), List),
];

const TAINT: &[Field] = &[
    field("key", 1, Text(&["node.kubernetes.io/not-ready"]), Present),
    field("value", 2, Text(&["v"]), OmitEmpty),
    field("effect", 3, Text(&["NoSchedule", "NoExecute"]), Present),
    field("timeAdded", 4, Time, Pointer),
];

const NODE_STATUS: &[Field] = &[
    field("phase", 3, Text(&["Running"]), OmitEmpty),
    field("conditions", 4, Message(CONDITION), List),
];
