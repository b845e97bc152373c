//! For the tests of effects: events and expected effects, for workloads of a kind in the namespace `ns`.

use nodewise_projection::{Key, Pod};
use nodewise_runtime::Delta;
use nodewise_runtime::effects::{Author, Effects, Observation, Rules, Wake};
use nodewise_runtime::event::ClusterEvent;
use nodewise_runtime::kind::{Kind, cached_kinds};
use nodewise_runtime::store::Store;
use serde_json::{Value, json};

/// The rules of the default profile.
pub(crate) const MENDED: Rules = Rules {
    clear_replaced_own_writes: true,
    wake_on_node_delete: true,
    count_repeated_deletions: false,
    revisions: Author::Us,
};

/// Empty caches for a kind, with 4 buckets.
pub(crate) fn store_of<K: Kind>() -> Store {
    let mut store = Store::new(&[], 4);
    for kind in cached_kinds::<K>() {
        store.add_kind(kind);
    }
    store
}

pub(crate) fn key_of<K: Kind>(name: &str) -> Key {
    Key::new(K::RESOURCE.kind, "ns", name)
}

/// These workloads are enqueued.
pub(crate) fn enqueue<K: Kind>(names: &[&str]) -> Effects {
    Effects {
        wakes: names.iter().map(|name| Wake::now(key_of::<K>(name))).collect(),
        ..Effects::default()
    }
}

/// This is observed.
pub(crate) fn observed(observations: Vec<Observation>) -> Effects {
    Effects {
        observations,
        ..Effects::default()
    }
}

/// All of these effects, in order.
pub(crate) fn all_of(effects: impl IntoIterator<Item = Effects>) -> Effects {
    let mut all = Effects::default();
    for effects in effects {
        all.wakes.extend(effects.wakes);
        all.wake_all = all.wake_all.max(effects.wake_all);
        all.observations.extend(effects.observations);
    }
    all
}

/// No effects.
pub(crate) fn nothing() -> Effects {
    Effects::default()
}

/// Applies an event, and returns its effects without overlaps, which have tests of their own.
pub(crate) fn take<K: Kind>(store: &mut Store, event: ClusterEvent, rules: Rules) -> Effects {
    let mut all = Vec::new();
    store.apply_each(event, &mut |store, transition| {
        all.push(K::effects(store, &transition, rules));
    });
    let mut effects = all_of(all);
    effects
        .observations
        .retain(|observation| !matches!(observation, Observation::Overlap(_)));
    effects
}

pub(crate) fn apply_pod<K: Kind>(store: &mut Store, object: &Value) -> Effects {
    take::<K>(store, ClusterEvent::Pods(Delta::Applied(pod(object))), MENDED)
}

pub(crate) fn pod(object: &Value) -> Pod {
    Pod::from_json(object).expect("a pod")
}

/// An object; `owner` is `kind/name/uid` or empty.
pub(crate) fn object(name: &str, version: u32, app: &str, owner: &str) -> Value {
    let mut object = json!({"metadata": {
        "namespace": "ns", "name": name, "uid": format!("uid-{name}"), "resourceVersion": version.to_string(),
        "labels": {"app": app},
    }});
    if let [kind, owner, uid] = owner.split('/').collect::<Vec<_>>()[..] {
        object["metadata"]["ownerReferences"] =
            json!([{"kind": kind, "name": owner, "uid": uid, "controller": true}]);
    }
    object
}

/// The object, being deleted.
pub(crate) fn deleting(mut object: Value) -> Value {
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    object
}

/// The pod on a node.
pub(crate) fn on(mut object: Value, node: &str) -> Value {
    object["spec"] = json!({"nodeName": node});
    object
}

/// The pod with this status of its Ready condition.
pub(crate) fn ready(mut object: Value, status: &str) -> Value {
    object["status"] = json!({"conditions": [{"type": "Ready", "status": status}]});
    object
}
