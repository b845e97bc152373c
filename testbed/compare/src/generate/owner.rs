//! The owner references of an object.

use serde_json::{Value, json};

use super::rng::CaseRng;

/// The controller of a pod or revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The synced DaemonSet.
    Ours,
    /// No owner.
    Nobody,
    /// No controller: the DaemonSet and another object are owners, but not the controller.
    Mentioned,
    /// A former DaemonSet with the same name.
    Former,
    /// Another DaemonSet.
    Neighbour,
    /// A controller of another kind.
    Other,
}

/// A controller other than the synced DaemonSet.
pub(super) fn foreigner(rng: &mut CaseRng) -> Owner {
    rng.pick(&[Owner::Former, Owner::Neighbour, Owner::Other])
}

/// Names and uids for owner references.
#[derive(Clone, Debug)]
pub(super) struct Names {
    /// The name of the synced DaemonSet.
    pub(super) name: String,
    /// The uid of the synced DaemonSet.
    pub(super) uid: String,
    /// The uid of the former DaemonSet with that name.
    pub(super) former: String,
    /// The name of another DaemonSet.
    pub(super) neighbour: String,
    /// The uid of the other DaemonSet.
    pub(super) neighbour_uid: String,
}

impl Names {
    /// The owner references for this owner; null for none.
    pub(super) fn references(&self, owner: Owner) -> Value {
        match owner {
            Owner::Ours => json!([controller("DaemonSet", &self.name, &self.uid)]),
            Owner::Nobody => Value::Null,
            Owner::Mentioned => json!([
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "config", "uid": self.former},
                {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": self.name, "uid": self.uid},
            ]),
            Owner::Former => json!([controller("DaemonSet", &self.name, &self.former)]),
            Owner::Neighbour => json!([controller("DaemonSet", &self.neighbour, &self.neighbour_uid)]),
            Owner::Other => json!([controller("StatefulSet", &self.name, &self.neighbour_uid)]),
        }
    }
}

fn controller(kind: &str, name: &str, uid: &str) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": kind,
        "name": name,
        "uid": uid,
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_controller_owns() {
        let names = Names {
            name: "a".into(),
            uid: "1".into(),
            former: "0".into(),
            neighbour: "b".into(),
            neighbour_uid: "2".into(),
        };
        let controllers = |owner| {
            let references = names.references(owner);
            let all = references.as_array().cloned().unwrap_or_default();
            all.iter().filter(|one| one["controller"] == true).count()
        };
        for owner in [Owner::Ours, Owner::Former, Owner::Neighbour, Owner::Other] {
            assert_eq!(controllers(owner), 1, "{owner:?}");
        }
        for owner in [Owner::Nobody, Owner::Mentioned] {
            assert_eq!(controllers(owner), 0, "{owner:?}");
        }
    }
}
