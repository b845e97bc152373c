//! The topics that the comparison must cover, and the situations that cover each.

/// A topic, and its situations as `MODULE: NAME`.
pub(super) const COVERED: &[(&str, &[&str])] = &[
    (
        "taints",
        &[
            "node: a taint against scheduling",
            "node: a taint against running",
            "node: a taint that asks",
            "node: a node with several taints",
        ],
    ),
    (
        "tolerations of all effects",
        &[
            "placement: tolerates scheduling",
            "placement: tolerates running",
            "placement: tolerates what asks",
            "placement: tolerates every effect",
        ],
    ),
    (
        "tolerations of all operators",
        &[
            "placement: a toleration without operator",
            "placement: Equal",
            "placement: a toleration of a key",
            "placement: a toleration of all",
            "placement: Equal without key",
            "placement: a toleration above",
            "placement: a toleration below",
            "placement: an unknown toleration",
        ],
    ),
    (
        "taints × tolerations",
        &[
            "placement: tolerated against scheduling",
            "placement: not tolerated against scheduling",
            "placement: tolerated against running",
            "placement: not tolerated against running",
            "placement: an automatic toleration with seconds",
            "placement: an automatic toleration twice",
        ],
    ),
    (
        "the numeric ones behind their gate",
        &[
            "placement: numbers with their gate",
            "placement: numbers without their gate",
            "placement: below with their gate",
            "node: a taint with a negative number",
            "node: a taint with an odd number",
        ],
    ),
    ("nodeSelector", &["placement: a node selector"]),
    (
        "required affinity with every operator",
        &[
            "placement: In",
            "placement: NotIn",
            "placement: Exists",
            "placement: DoesNotExist",
            "placement: Gt",
            "placement: Lt",
            "placement: an unknown operator",
            "placement: an invalid key",
            "placement: several terms",
            "placement: an empty term",
            "placement: no term",
        ],
    ),
    (
        "matchFields",
        &[
            "placement: a field in",
            "placement: a field not in",
            "placement: an invalid field",
            "placement: a foreign field",
        ],
    ),
    ("spec.nodeName", &["placement: a node name"]),
    (
        "unready nodes",
        &[
            "node: a node that is not ready",
            "node: a node that is unreachable",
        ],
    ),
    (
        "cordoned nodes",
        &["node: a cordoned node", "node: a cordoned node without its taint"],
    ),
    (
        "pods in every phase",
        &[
            "pod: pending",
            "pod: running",
            "pod: failed",
            "pod: succeeded",
            "pod: unknown",
            "pod: no phase",
        ],
    ),
    (
        "pods in every condition",
        &[
            "pod: ready",
            "pod: not ready",
            "pod: not known to be ready",
            "pod: no word about ready",
            "pod: two words about ready",
            "pod: ready since no time",
            "pod: ready in the future",
        ],
    ),
    (
        "terminating pods with finalizers",
        &[
            "pod: terminating with finalizers",
            "anomaly: finished and terminating, held",
        ],
    ),
    (
        "terminating pods without finalizers",
        &[
            "pod: terminating without finalizers",
            "anomaly: finished and terminating, not held",
        ],
    ),
    (
        "pods on vanished nodes",
        &[
            "anomaly: bound to a lost node",
            "anomaly: meant for a lost node",
            "anomaly: meant for a lost node and terminating",
        ],
    ),
    (
        "unscheduled pods",
        &[
            "anomaly: meant for a node",
            "anomaly: several terms",
            "anomaly: two values",
            "anomaly: no target",
        ],
    ),
    (
        "orphans to adopt",
        &[
            "anomaly: an orphan to adopt",
            "anomaly: an orphan that names us",
            "anomaly: an orphan that terminates",
            "anomaly: an orphan elsewhere",
        ],
    ),
    ("owned pods to release", &["anomaly: a pod to release"]),
    (
        "two DaemonSets with overlapping selectors",
        &[
            "daemon_set: two DaemonSets",
            "daemon_set: two DaemonSets with other selectors",
            "anomaly: a pod of another DaemonSet",
        ],
    ),
    (
        "duplicate pods",
        &[
            "anomaly: two pods on a node",
            "anomaly: two pods on a node since the same second",
        ],
    ),
    (
        "pods of several revisions",
        &["cluster: a rollout", "cluster: pods of many revisions"],
    ),
    (
        "missing revisions",
        &[
            "revision: no revision",
            "revision: no revision of the template",
            "cluster: a change that no revision holds",
        ],
    ),
    (
        "duplicate revisions",
        &[
            "revision: two revisions of the template",
            "revision: two of the template with equal numbers",
            "revision: two old ones with equal numbers",
            "revision: two of the template, and pods of both",
            "revision: a second revision of the template that terminates",
        ],
    ),
    (
        "hash collisions",
        &[
            "revision: a name taken in the API by the same",
            "revision: a name taken in the API by the same, of others",
            "revision: a name taken in the API by another",
            "revision: a name taken in the API by another of ours",
            "revision: a name taken in the cache by another",
            "revision: a name taken in the cache by another of ours",
            "state: the next revision gone, of the same data",
            "state: the next revision gone, of other data",
            "state: a newer count of collisions, with a collision",
            "daemon_set: a count of collisions",
        ],
    ),
    (
        "number budgets at their rounding edges",
        &[
            "strategy: both zero",
            "strategy: both",
            "strategy: a number as text",
            "strategy: a surge as text",
            "strategy: a negative number",
            "strategy: a negative surge",
            "strategy: no maxUnavailable",
            "strategy: no maxSurge",
            "strategy: no rollingUpdate",
        ],
    ),
    (
        "percent budgets at their rounding edges",
        &[
            "strategy: no percent",
            "strategy: 1% unavailable",
            "strategy: 33% unavailable",
            "strategy: 34% unavailable",
            "strategy: 99% unavailable",
            "strategy: 100% unavailable",
            "strategy: 1% surge",
            "strategy: 33% surge",
            "strategy: 34% surge",
            "strategy: 100% surge",
            "strategy: more than all",
            "strategy: a negative percentage",
            "strategy: a percentage of no nodes",
        ],
    ),
    (
        "surge",
        &[
            "rollout: surge: both, new not ready",
            "rollout: surge: both, old not ready",
            "rollout: surge: both ready",
            "rollout: surge: sunset",
            "rollout: surge: old not ready on a taint",
            "rollout: surge on a full node",
            "rollout: surge: failed",
        ],
    ),
    (
        "OnDelete",
        &[
            "strategy: OnDelete",
            "strategy: OnDelete with a surge",
            "strategy: an unknown strategy",
        ],
    ),
    (
        "minReadySeconds at its edges",
        &[
            "pod: available exactly now",
            "pod: available in a nanosecond",
            "pod: available since a nanosecond",
            "daemon_set: a time to be ready",
        ],
    ),
    (
        "template generation annotation",
        &[
            "daemon_set: no template generation",
            "daemon_set: an unparsable template generation",
            "daemon_set: a template generation with a sign",
            "daemon_set: a template generation with zeros",
            "daemon_set: a template generation that is too large",
            "daemon_set: a pod of this template generation",
            "daemon_set: a pod of another template generation",
        ],
    ),
    (
        "failed pods inside back-off",
        &[
            "state: back-off before its end",
            "state: back-off that begins",
            "state: the longest back-off",
        ],
    ),
    (
        "failed pods outside back-off",
        &[
            "state: back-off at its end",
            "state: back-off after its end",
            "state: back-off nearly forgotten",
            "state: back-off forgotten",
            "state: back-off of another generation",
        ],
    ),
    (
        "succeeded pods inside and outside back-off",
        &[
            "state: succeeded inside back-off",
            "state: succeeded after back-off",
            "state: succeeded without back-off",
        ],
    ),
    (
        "expectations pending",
        &[
            "state: creates awaited",
            "state: deletes awaited",
            "state: less than no creates, and deletes awaited",
        ],
    ),
    (
        "expectations expired",
        &["state: awaited in vain", "state: deletes awaited in vain"],
    ),
    (
        "deletion in progress",
        &[
            "daemon_set: a deletion",
            "daemon_set: a deletion, and an orphan",
            "state: deleted, with an orphan",
            "state: gone, with an orphan",
            "state: another uid, with an orphan",
        ],
    ),
    (
        "selector selecting everything",
        &["selector: everything", "selector: everything, spelled out"],
    ),
    (
        "history limits",
        &[
            "daemon_set: limit 0",
            "daemon_set: limit 1",
            "daemon_set: limit 2",
            "daemon_set: limit 10",
            "daemon_set: no limit",
            "revision: limit 0 and a live hash",
            "revision: limit 1 and a live hash",
            "revision: limit 2 and a live hash",
            "revision: limit 10 and a live hash",
        ],
    ),
];
