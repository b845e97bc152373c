//! The annotations that a Deployment and its ReplicaSets exchange (P-19, P-41, P-44).

/// The revision of a ReplicaSet, and of the Deployment.
pub(crate) const REVISION: &str = "deployment.kubernetes.io/revision";
/// The earlier revisions of a ReplicaSet, separated by commas.
pub(crate) const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// spec.replicas of the Deployment when the ReplicaSet was last resized.
pub(crate) const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
/// spec.replicas plus maxSurge of the Deployment when the ReplicaSet was last resized.
pub(crate) const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";
/// On the Deployment: the revision to return to.
pub(crate) const ROLLBACK_TO: &str = "deprecated.deployment.rollback.to";
/// What kubectl applied last.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Whether an annotation is copied from the Deployment to its new ReplicaSet, and back in a rollback.
pub(crate) fn is_copied(key: &str) -> bool {
    ![
        REVISION,
        REVISION_HISTORY,
        DESIRED_REPLICAS,
        MAX_REPLICAS,
        ROLLBACK_TO,
        LAST_APPLIED,
    ]
    .contains(&key)
}

/// A number of replicas in an annotation: decimal digits, at most 2147483647. Any other value counts as absent (P-41).
pub(crate) fn replicas(value: Option<&str>) -> Option<i32> {
    let value = value?;
    // `parse` accepts a sign, which is invalid here.
    value
        .bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| value.parse().ok())?
}

/// The revision that asks for a rollback (P-48). An empty or invalid value asks for nothing.
pub(crate) fn rollback_to(value: Option<&str>) -> Option<i64> {
    value?.parse().ok()
}
