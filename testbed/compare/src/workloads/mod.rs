//! One sync of a ReplicaSet or a Deployment by Nodewise: the planner, and an executor in small that applies its plans to
//! a fake API.
//!
//! The plans are applied as `proto/nodewise/v1/plan.proto` says. The real executor has tests of its own for that; this
//! comparison is about what the planner decides.

mod api;
mod apply;
mod deployment;
mod options;
mod read;
mod replicaset;

use anyhow::Result;

use crate::case::{Case, Kind};
use crate::profile::{Deviations, Synced};

pub(crate) use api::stripped;
pub(crate) use deployment::hash;

/// Syncs the first workload of a case once. The placeholders of the case are replaced.
///
/// # Errors
/// The case has invalid times or numbers.
pub(crate) fn sync(case: &Case, deviations: &Deviations) -> Result<Synced> {
    match case.kind {
        Kind::Deployment => deployment::sync(case, deviations),
        _ => replicaset::sync(case, deviations),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::outcome::{Outcome, Outstanding};

    fn outcome(case: &serde_json::Value) -> Outcome {
        let case: Case = serde_json::from_value(case.clone()).expect("a case");
        sync(&case, &Deviations::strict()).expect("a sync").outcome
    }

    fn ops(outcome: &Outcome) -> Vec<(&str, &str, u16)> {
        let calls = outcome.calls.iter();
        calls
            .map(|call| (call.op.as_str(), call.name.as_str(), call.code))
            .collect()
    }

    fn template() -> serde_json::Value {
        json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    }

    // the third create of ten fails.
    #[test]
    fn slow_start_ends_at_a_failure() {
        let outcome = outcome(&json!({
            "kind": "replicaset",
            "now": "2026-01-01T00:00:00Z",
            "replicaSets": [{
                "metadata": {"namespace": "ns", "name": "web", "uid": "u", "generation": 1, "resourceVersion": "5"},
                "spec": {"replicas": 10, "selector": {"matchLabels": {"app": "web"}}, "template": template()},
                "status": {"replicas": 0},
            }],
            "burst": 500,
            "echo": false,
            "faults": [{"op": "create-pod", "name": "3", "code": 403, "reason": "Forbidden"}],
        }));
        assert_eq!(
            ops(&outcome),
            [
                ("create-pod", "1", 201),
                ("create-pod", "2", 201),
                ("create-pod", "3", 403),
                ("update-status", "web", 200),
            ]
        );
        assert_eq!(outcome.expectations, Some(Outstanding { adds: 2, dels: 0 }));
        assert_eq!(outcome.queue, ["rate limited"]);
        let condition = &outcome.stored[0].changes["status"]["conditions"][0];
        assert_eq!(condition["message"], "Forbidden (403)");
    }

    // P-28: the new set cannot be created.
    #[test]
    fn refused_create_is_an_error_and_an_event() {
        let outcome = outcome(&json!({
            "kind": "deployment",
            "now": "2026-01-01T00:00:00Z",
            "deployments": [{
                "metadata": {"namespace": "ns", "name": "web", "uid": "u", "generation": 1, "resourceVersion": "5"},
                "spec": {
                    "replicas": 3,
                    "selector": {"matchLabels": {"app": "web"}},
                    "strategy": {"type": "Recreate"},
                    "template": template(),
                },
                "status": {},
            }],
            "burst": 500,
            "echo": false,
            "faults": [{"op": "create-replicaset", "code": 500, "reason": "InternalError"}],
        }));
        let created = &outcome.calls[0];
        assert_eq!((created.op.as_str(), created.code), ("create-replicaset", 500));
        assert_eq!(outcome.error.as_deref(), Some("InternalError (500)"));
        assert_eq!(outcome.events[0].reason, "ReplicaSetCreateError");
    }
}
