//! Counts in how many generated cases each required situation occurs.

use std::collections::BTreeSet;

use serde_json::Value;

use super::covered::COVERED;
use super::{
    anomaly, case_of, clock, cluster, daemon_set, deployment, fault, node, placement, pod, replicaset,
    revision, rollout, selector, serialization, state, status, strategy, template,
};
use crate::case::{Case, Kind, Revision};

/// The number of cases in which each situation must occur. The seeds are fixed.
const SEEDS: u64 = 20_000;

/// The least number of occurrences. A situation with one occurrence would be lost with the next change of the
/// generator.
const LEAST: usize = 3;

/// The name of a situation, and whether a case has it.
pub(super) type Situation = (&'static str, fn(&Case) -> bool);

/// The situations of all modules.
const ROWS: &[(&str, &[Situation])] = &[
    ("clock", clock::tests::SITUATIONS),
    ("cluster", cluster::tests::SITUATIONS),
    ("daemon_set", daemon_set::tests::SITUATIONS),
    ("fault", fault::tests::SITUATIONS),
    ("node", node::tests::SITUATIONS),
    ("anomaly", anomaly::tests::SITUATIONS),
    ("placement", placement::tests::SITUATIONS),
    ("pod", pod::tests::SITUATIONS),
    ("revision", revision::tests::SITUATIONS),
    ("rollout", rollout::tests::SITUATIONS),
    ("selector", selector::tests::SITUATIONS),
    ("serialization", serialization::tests::SITUATIONS),
    ("state", state::tests::SITUATIONS),
    ("status", status::tests::SITUATIONS),
    ("strategy", strategy::tests::SITUATIONS),
    ("template", template::tests::SITUATIONS),
];

fn all_rows() -> impl Iterator<Item = Row> {
    ROWS.iter().flat_map(|(module, rows)| {
        rows.iter()
            .map(move |&(name, occurs)| (format!("{module}: {name}"), occurs))
    })
}

/// A situation with the name of its module.
type Row = (String, fn(&Case) -> bool);

/// Generates cases of a kind until each situation has occurred often enough.
fn expect(kind: Kind, rows: &[Row]) {
    let mut counts = vec![0; rows.len()];
    let mut rare: Vec<_> = (0..rows.len()).collect();
    for seed in 0..SEEDS {
        let case = case_of(kind, seed);
        rare.retain(|&row| {
            counts[row] += usize::from(rows[row].1(&case));
            counts[row] < LEAST
        });
        if rare.is_empty() {
            return;
        }
    }
    let rare: Vec<_> = rare.iter().map(|&row| (&rows[row].0, counts[row])).collect();
    panic!("fewer than {LEAST} times in {SEEDS} cases: {rare:?}");
}

#[test]
fn every_situation_occurs() {
    expect(Kind::DaemonSet, &all_rows().collect::<Vec<_>>());
}

#[test]
fn every_situation_of_other_kinds_occurs() {
    for (kind, situations) in [
        (Kind::ReplicaSet, replicaset::tests::SITUATIONS),
        (Kind::Deployment, deployment::tests::SITUATIONS),
    ] {
        let rows = situations.iter().map(|&(name, occurs)| (name.to_owned(), occurs));
        expect(kind, &rows.collect::<Vec<_>>());
    }
}

#[test]
fn names_of_situations_are_unique() {
    let names: BTreeSet<_> = all_rows().map(|(name, _)| name).collect();
    assert_eq!(names.len(), all_rows().count(), "a name stands twice");
}

#[test]
fn every_topic_is_covered() {
    let names: BTreeSet<_> = all_rows().map(|(name, _)| name).collect();
    for (phrase, rows) in COVERED {
        assert!(!rows.is_empty(), "{phrase}: nothing shows it");
        for row in *rows {
            assert!(names.contains(*row), "{phrase}: there is no situation {row:?}");
        }
    }
}

/// The DaemonSet that is synced.
pub(super) fn set(case: &Case) -> &Value {
    &case.daemon_sets[0]
}

pub(super) fn template(case: &Case) -> &Value {
    &set(case)["spec"]["template"]
}

/// The items of an array; empty if there is no array.
pub(super) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// Whether the synced workload controls an object.
pub(super) fn is_owned(case: &Case, object: &Value) -> bool {
    let uid = &case.subject().expect("there is one")["metadata"]["uid"];
    let owners = items(&object["metadata"]["ownerReferences"]);
    owners
        .iter()
        .any(|owner| owner["uid"] == *uid && owner["controller"] == true)
}

/// Whether an object has no controller.
pub(super) fn is_orphan(object: &Value) -> bool {
    let owners = items(&object["metadata"]["ownerReferences"]);
    !owners.iter().any(|owner| owner["controller"] == true)
}

pub(super) fn is_deleting(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// Whether the node of a bound pod exists.
pub(super) fn is_on_a_node(case: &Case, pod: &Value) -> bool {
    let node = &pod["spec"]["nodeName"];
    case.nodes.iter().any(|other| other["metadata"]["name"] == *node)
}

/// The cached revisions whose data equals the template's data as JSON values.
pub(super) fn current(case: &Case) -> impl Iterator<Item = &Revision> {
    case.revisions
        .iter()
        .filter(|revision| is_current(case, revision))
}

/// Whether a revision is in the DaemonSet's namespace and has its template.
pub(super) fn is_current(case: &Case, revision: &Revision) -> bool {
    let data: Value = serde_json::from_str(&revision.data).expect("data is JSON");
    let mut template = template(case).clone();
    template["$patch"] = "replace".into();
    let namespace = |object: &Value| object["metadata"]["namespace"].clone();
    namespace(&revision.object) == namespace(set(case)) && data["spec"]["template"] == template
}
