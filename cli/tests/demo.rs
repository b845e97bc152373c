//! Tests `nodewise demo`: service, executor and simulated cluster in one process.

mod common;

use common::nodewise;
use serde_json::Value;

/// The number of nodes. The limit of the rollouts is 10 %, which is rounded up to 2.
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
    // Name, pods created and deleted, and the limit of nodes without a ready pod. The limit must be used, or nothing was measured.
    let expected = [
        ("create", NODES, 0, NODES),
        ("rolling-update", NODES, NODES, SHARE),
        ("surge", NODES, NODES, 0),
        ("break-and-recover", 0, 0, 1),
        ("create-deployment", NODES, 0, NODES),
        // Of a Deployment, maxUnavailable is rounded down.
        ("roll-out-deployment", NODES, NODES, 1),
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
    let surging = phases[5]["max_surging_seen"].as_u64().expect("a number");
    assert!((1..=SHARE).contains(&surging), "{}", phases[5]);
}

#[test]
fn the_text_has_a_line_for_each_phase_and_a_result() {
    let ran = nodewise(&["demo", "--nodes", "1"]);
    assert_eq!(ran.stderr, "", "no progress where there is no terminal");
    let text = ran.ok();
    assert_eq!(
        text.lines().filter(|line| line.starts_with('✓')).count(),
        6,
        "{text}"
    );
    assert!(
        text.contains("Converged: 1 node, one pod of the DaemonSet's newest version each, and 1 replica of the Deployment's."),
        "{text}"
    );
}

#[test]
fn the_slowest_reconcile_is_a_waterfall() {
    let text = nodewise(&["demo", "--nodes", "3", "--trace"]).ok();
    let (_, waterfall) = text
        .split_once("The slowest reconcile took ")
        .expect("it comes last");
    // The spans of every reconcile, in the executor and in the service. On a busy machine the slowest one may change nothing.
    let spans = [
        "trace ",
        "reconcile: settled",
        "─ snapshot",
        "─ nodewise.v1.ReconcileService/Plan (client): ",
        "─ nodewise.v1.ReconcileService/Plan (server): ",
    ];
    let applies = waterfall.contains("Plan (client): APPLY, ");
    let of_writes: &[&str] = if applies {
        &["─ apply: ", "─ batch: "]
    } else {
        &[]
    };
    let mut rest = waterfall;
    for part in spans.iter().chain(of_writes) {
        let (_, after) = rest
            .split_once(part)
            .unwrap_or_else(|| panic!("{part} in {waterfall}"));
        rest = after;
    }
    let spans = waterfall.lines().filter(|line| line.contains(" ms  ")).count();
    assert!(spans >= 4 && waterfall.contains('█'), "{waterfall}");

    let json = nodewise(&["demo", "--nodes", "3", "--trace", "--output", "json"]).ok();
    let report: Value = serde_json::from_str(&json).expect("JSON");
    let slowest = &report["slowest_reconcile"];
    let root = &slowest["spans"][0];
    assert_eq!((&root["name"], &root["depth"]), (&"reconcile".into(), &0.into()));
    assert_eq!(slowest["id"].as_str().map(str::len), Some(32));
    let took = root["duration_ms"].as_f64().expect("a duration");
    for span in slowest["spans"].as_array().expect("spans").iter().skip(1) {
        let depth = span["depth"].as_u64().expect("a depth");
        // On a busy machine the service may begin with a call that the executor has given up.
        let is_in_time = span["kind"] == "server" || span["start_ms"].as_f64() <= Some(took);
        assert!(depth > 0 && is_in_time, "{span}");
    }
}

#[test]
fn a_collector_that_cannot_be_used_is_a_clear_error() {
    let ran = nodewise(&["demo", "--nodes", "1", "--otlp", "not a url"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("cannot send traces") && ran.stderr.contains("not a url"),
        "{ran:?}"
    );
}

#[test]
fn a_cluster_without_nodes_is_refused() {
    let ran = nodewise(&["demo", "--nodes", "0"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("0 is not in 1..=100000"), "{ran:?}");
}
