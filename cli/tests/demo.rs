//! `nodewise demo`: service, executor and simulated cluster in one process.

mod common;

use common::nodewise;
use serde_json::Value;

/// Nodes; the tenth that the rollouts may take is 2, rounded up.
const NODES: u64 = 12;
const SHARE: u64 = 2;

#[test]
fn the_demo_converges_within_its_budgets() {
    let text = nodewise(&["demo", "--nodes", &NODES.to_string(), "--output", "json"]).ok();
    let report: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(report["nodes"], NODES);
    assert_eq!(report["duplicates"], 0);
    assert_eq!(report["converged"], true);
    assert_eq!(report["budgets_held"], true);
    // Name, pods created and deleted, and how many nodes may be without a ready pod. A budget that was never used
    // would mean that nothing was measured.
    let expected = [
        ("create", NODES, 0, NODES),
        ("rolling-update", NODES, NODES, SHARE),
        ("surge", NODES, NODES, 0),
        ("break-and-recover", 0, 0, 1),
    ];
    let phases = report["phases"].as_array().expect("phases");
    assert_eq!(phases.len(), expected.len());
    for (phase, (name, created, deleted, most)) in phases.iter().zip(expected) {
        assert_eq!(phase["name"], name);
        assert_eq!(
            (&phase["created"], &phase["deleted"]),
            (&created.into(), &deleted.into()),
            "{phase}"
        );
        let seen = phase["max_unavailable_seen"].as_u64().expect("a number");
        assert!(seen <= most && (seen > 0) == (most > 0), "{phase}");
        assert!(phase["plans"].as_u64().is_some_and(|plans| plans > 0), "{phase}");
        assert!(
            phase["batches"].as_u64().is_some_and(|batches| batches > 0),
            "{phase}"
        );
        assert!(
            phase["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0),
            "{phase}"
        );
    }
    let surging = phases[2]["max_surging_seen"].as_u64().expect("a number");
    assert!((1..=SHARE).contains(&surging), "{}", phases[2]);
}

#[test]
fn people_get_a_line_for_each_phase_and_a_verdict() {
    let ran = nodewise(&["demo", "--nodes", "1"]);
    assert_eq!(ran.stderr, "", "no progress where there is no terminal");
    let text = ran.ok();
    assert_eq!(
        text.lines().filter(|line| line.starts_with('✓')).count(),
        4,
        "{text}"
    );
    assert!(
        text.contains("Converged: 1 node, one pod of the newest version each."),
        "{text}"
    );
}

#[test]
fn a_cluster_without_nodes_is_refused() {
    let ran = nodewise(&["demo", "--nodes", "0"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("0 is not in 1..=100000"), "{ran:?}");
}
