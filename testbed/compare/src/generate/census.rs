//! Looks through many cases for each situation that must be covered, so that the list of them is itself tested.

use std::collections::BTreeSet;

use serde_json::Value;

use super::case;
use crate::case::{Case, Revision};

/// Within how many cases each situation must occur.
const SEEDS: u64 = 20_000;

/// A name, and whether a case is of that kind.
pub(super) type Situation = (&'static str, fn(&Case) -> bool);

/// Holds that each situation occurs. Stops at the first case by which all have occurred.
pub(super) fn assert_all_occur(situations: &[Situation]) {
    let mut missing = situations.to_vec();
    let names: BTreeSet<_> = missing.iter().map(|(name, _)| *name).collect();
    assert_eq!(names.len(), missing.len(), "a name stands twice");
    for seed in 0..SEEDS {
        let case = case(seed);
        missing.retain(|(_, occurs)| !occurs(&case));
        if missing.is_empty() {
            return;
        }
    }
    let names: Vec<_> = missing.iter().map(|(name, _)| name).collect();
    panic!("never in {SEEDS} cases: {names:?}");
}

/// The DaemonSet that is synced.
pub(super) fn set(case: &Case) -> &Value {
    &case.daemon_sets[0]
}

pub(super) fn template(case: &Case) -> &Value {
    &set(case)["spec"]["template"]
}

/// An array of a JSON object; empty when it is not there.
pub(super) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// Whether the DaemonSet that is synced controls an object.
pub(super) fn is_owned(case: &Case, object: &Value) -> bool {
    let uid = &set(case)["metadata"]["uid"];
    let owners = items(&object["metadata"]["ownerReferences"]);
    owners
        .iter()
        .any(|owner| owner["uid"] == *uid && owner["controller"] == true)
}

/// Whether nobody controls an object.
pub(super) fn is_orphan(object: &Value) -> bool {
    let owners = items(&object["metadata"]["ownerReferences"]);
    !owners.iter().any(|owner| owner["controller"] == true)
}

pub(super) fn is_deleting(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// Whether the node that a bound pod runs on exists.
pub(super) fn is_on_a_node(case: &Case, pod: &Value) -> bool {
    let node = &pod["spec"]["nodeName"];
    case.nodes.iter().any(|other| other["metadata"]["name"] == *node)
}

/// The cached revisions whose data equals the template's, as values.
pub(super) fn current(case: &Case) -> impl Iterator<Item = &Revision> {
    case.revisions
        .iter()
        .filter(|revision| is_current(case, revision))
}

/// Whether a revision of the DaemonSet's namespace holds its template.
pub(super) fn is_current(case: &Case, revision: &Revision) -> bool {
    let data: Value = serde_json::from_str(&revision.data).expect("data is JSON");
    let mut template = template(case).clone();
    template["$patch"] = "replace".into();
    let namespace = |object: &Value| object["metadata"]["namespace"].clone();
    namespace(&revision.object) == namespace(set(case)) && data["spec"]["template"] == template
}
