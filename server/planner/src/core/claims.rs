//! Decides which objects the workload owns, adopts, releases or ignores (D-23, D-27).
//!
//! Pods and revisions follow the same rules. A plan carries claims out first. The rest of the plan assumes that they succeeded:
//! adopted objects count as owned, released ones as gone (D-28).

use serde_json::{Value, json};

use crate::core::{
    canonical,
    owner::Owner,
    snapshot::{ControllerRef, Labels},
};

/// What to do about an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// The workload owns the object.
    Owned,
    /// An orphan. The workload adopts it.
    Adopt,
    /// The workload owns the object, but its selector no longer matches.
    Release,
    /// Another controller owns the object, or the workload must not adopt or release it.
    Ignore,
}

/// What to do about a pod. A pod belongs to the workload only if kind, name and uid of its controller match (D-3).
pub(crate) fn claim(
    owner: Owner<'_>,
    labels: &Labels,
    controller: Option<&ControllerRef>,
    deleting: bool,
) -> Claim {
    match controller {
        Some(controller) if controller.kind != owner.kind || controller.name != owner.name => Claim::Ignore,
        _ => claim_by_uid(owner, labels, controller, deleting),
    }
}

/// What to do about a revision. Only the uid of its controller must match (D-51).
pub(crate) fn claim_by_uid(
    owner: Owner<'_>,
    labels: &Labels,
    controller: Option<&ControllerRef>,
    deleting: bool,
) -> Claim {
    // An absent selector selects nothing (D-22).
    let selected = || owner.selector.is_some_and(|selector| selector.selects(labels));
    match controller {
        Some(controller) if controller.uid != owner.uid => Claim::Ignore,
        Some(_) if selected() => Claim::Owned,
        Some(_) if owner.deleting => Claim::Ignore,
        Some(_) => Claim::Release,
        None if owner.deleting || deleting || !selected() => Claim::Ignore,
        None => Claim::Adopt,
    }
}

/// The strategic merge patch that makes the workload the controller of the object with this uid.
pub(crate) fn adopt_patch(owner: Owner<'_>, uid: &str) -> Vec<u8> {
    canonical::to_bytes(&json!({"metadata": {"ownerReferences": [owner_reference(owner)], "uid": uid}}))
}

/// The strategic merge patch that removes the workload from the owners of the object with this uid.
pub(crate) fn release_patch(owner: Owner<'_>, uid: &str) -> Vec<u8> {
    canonical::to_bytes(&json!({
        "metadata": {"ownerReferences": [{"$patch": "delete", "uid": owner.uid}], "uid": uid},
    }))
}

/// The owner reference of everything that the workload controls (D-67).
pub(crate) fn owner_reference(owner: Owner<'_>) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemonset::DaemonSet;
    use crate::fixtures::{controller, daemon_set, labels};

    fn other(kind: &str, name: &str, uid: &str) -> ControllerRef {
        ControllerRef {
            kind: kind.to_owned(),
            name: name.to_owned(),
            uid: uid.to_owned(),
        }
    }

    #[test]
    fn d_23_claims() {
        let ds = daemon_set();
        let gone = DaemonSet {
            deleting: true,
            ..daemon_set()
        };
        let (ours, theirs) = (controller(&ds), other("ReplicaSet", "rs", "rs-uid"));
        let (fits, differs) = (labels(&[("app", "foo"), ("x", "y")]), labels(&[("app", "bar")]));
        // (what, workload, labels, controller, object deleting, claim)
        let table = [
            ("D-23 owned", &ds, &fits, Some(&ours), false, Claim::Owned),
            (
                "D-23 owned, pod deleting",
                &ds,
                &fits,
                Some(&ours),
                true,
                Claim::Owned,
            ),
            ("D-23 released", &ds, &differs, Some(&ours), false, Claim::Release),
            (
                "D-23 released, pod deleting",
                &ds,
                &differs,
                Some(&ours),
                true,
                Claim::Release,
            ),
            (
                "D-23 owned, workload deleting",
                &gone,
                &differs,
                Some(&ours),
                false,
                Claim::Ignore,
            ),
            (
                "D-23 owned, workload deleting, labels match",
                &gone,
                &fits,
                Some(&ours),
                false,
                Claim::Owned,
            ),
            (
                "D-23 another controller",
                &ds,
                &fits,
                Some(&theirs),
                false,
                Claim::Ignore,
            ),
            ("D-23 orphan", &ds, &fits, None, false, Claim::Adopt),
            (
                "D-23 orphan, labels differ",
                &ds,
                &differs,
                None,
                false,
                Claim::Ignore,
            ),
            ("D-23 orphan, pod deleting", &ds, &fits, None, true, Claim::Ignore),
            (
                "D-23 orphan, workload deleting",
                &gone,
                &fits,
                None,
                false,
                Claim::Ignore,
            ),
        ];
        for (what, ds, labels, controller, deleting, expected) in table {
            assert_eq!(
                claim(ds.owner(), labels, controller, deleting),
                expected,
                "{what}"
            );
            assert_eq!(
                claim_by_uid(ds.owner(), labels, controller, deleting),
                expected,
                "{what}, by uid"
            );
        }
    }

    #[test]
    fn d_22_without_a_selector_nothing_is_claimed() {
        let ds = DaemonSet {
            selector: None,
            ..daemon_set()
        };
        let fits = labels(&[("app", "foo")]);
        assert_eq!(claim(ds.owner(), &fits, None, false), Claim::Ignore);
        assert_eq!(
            claim(ds.owner(), &fits, Some(&controller(&ds)), false),
            Claim::Release
        );
    }

    #[test]
    fn d_3_pods_are_known_by_kind_name_and_uid_and_revisions_by_uid() {
        let ds = daemon_set();
        let fits = labels(&[("app", "foo")]);
        for stranger in [
            other("ReplicaSet", &ds.name, &ds.uid),
            other("DaemonSet", "bar", &ds.uid),
        ] {
            assert_eq!(
                claim(ds.owner(), &fits, Some(&stranger), false),
                Claim::Ignore,
                "{stranger:?}"
            );
            assert_eq!(
                claim_by_uid(ds.owner(), &fits, Some(&stranger), false),
                Claim::Owned,
                "D-51: {stranger:?}"
            );
        }
        // Same name, other uid: an earlier DaemonSet of that name.
        let former = other("DaemonSet", &ds.name, "former-uid");
        assert_eq!(claim(ds.owner(), &fits, Some(&former), false), Claim::Ignore);
        assert_eq!(
            claim_by_uid(ds.owner(), &fits, Some(&former), false),
            Claim::Ignore
        );
    }

    #[test]
    fn d_27_patches_hold_the_uid_and_the_owner() {
        let ds = daemon_set();
        // D-67: created objects have the same owner reference.
        assert_eq!(
            String::from_utf8(adopt_patch(ds.owner(), "pod-uid")).unwrap(),
            r#"{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","blockOwnerDeletion":true,"controller":true,"kind":"DaemonSet","name":"foo","uid":"foo-uid"}],"uid":"pod-uid"}}"#
        );
        assert_eq!(
            String::from_utf8(release_patch(ds.owner(), "pod-uid")).unwrap(),
            r#"{"metadata":{"ownerReferences":[{"$patch":"delete","uid":"foo-uid"}],"uid":"pod-uid"}}"#
        );
    }
}
