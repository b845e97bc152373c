//! Calls that the API refuses.

use super::cluster::Cluster;
use super::odds::Odds;
use super::revision;
use crate::case::{Fault, HASH};

/// How an API refuses: status, reason.
type Refusal = (u16, &'static str);

const BROKEN: Refusal = (500, "InternalError");
const MISSING: Refusal = (404, "NotFound");
const CONFLICT: Refusal = (409, "Conflict");
const TAKEN: Refusal = (409, "AlreadyExists");
const INVALID: Refusal = (422, "Invalid");
const FORBIDDEN: Refusal = (403, "Forbidden");
const TIMEOUT: Refusal = (504, "Timeout");

/// Calls, how often they are refused, and how.
const OPS: &[(u32, (&str, &[Refusal]))] = &[
    (8, ("create-pod", &[BROKEN, FORBIDDEN, INVALID, TIMEOUT, TAKEN])),
    (7, ("delete-pod", &[BROKEN, MISSING, CONFLICT, FORBIDDEN])),
    (3, ("adopt-pod", &[BROKEN, MISSING, CONFLICT, INVALID])),
    (3, ("release-pod", &[BROKEN, MISSING, CONFLICT, INVALID])),
    (3, ("relabel-pod", &[BROKEN, MISSING, CONFLICT])),
    (1, ("get-pod", &[BROKEN, MISSING])),
    (3, ("create-revision", &[BROKEN, TAKEN, INVALID, FORBIDDEN])),
    (2, ("adopt-revision", &[BROKEN, MISSING, INVALID])),
    (2, ("release-revision", &[BROKEN, MISSING, INVALID])),
    (3, ("delete-revision", &[BROKEN, MISSING])),
    (1, ("get-revision", &[BROKEN, MISSING])),
    (3, ("update-revision", &[BROKEN, MISSING, CONFLICT])),
    (3, ("get-daemonset", &[BROKEN, MISSING, TIMEOUT])),
    (5, ("update-status", &[BROKEN, CONFLICT, CONFLICT, MISSING])),
];

/// The cause by which an API says that the namespace is going.
const TERMINATING: &str = "NamespaceTerminating";

/// None, most of the time.
pub(super) fn draw(odds: &mut Odds, cluster: &Cluster) -> Vec<Fault> {
    if !odds.in_hundred(12) {
        return Vec::new();
    }
    let count = odds.weighted(&[(7, 1), (2, 2), (1, 3)]);
    (0..count).map(|_| fault(odds, cluster)).collect()
}

fn fault(odds: &mut Odds, cluster: &Cluster) -> Fault {
    let (op, refusals) = odds.weighted(OPS);
    let (mut code, mut reason) = odds.pick(refusals);
    let mut cause = "";
    if op == "create-pod" && odds.in_hundred(25) {
        (code, reason) = FORBIDDEN;
        cause = TERMINATING;
    }
    let name = if odds.in_hundred(60) {
        name(odds, cluster, op)
    } else {
        None
    };
    Fault {
        op: op.to_owned(),
        name: name.unwrap_or_default(),
        code,
        reason: reason.to_owned(),
        cause: cause.to_owned(),
        // Other calls upstream makes anew at every step, and Nodewise once per plan: a passing fault hits other ones.
        times: if op == "update-status" {
            odds.weighted(&[(6, 0), (3, 1), (1, 2)])
        } else {
            0
        },
    }
}

/// An object to which a call can be about.
fn name(odds: &mut Odds, cluster: &Cluster, op: &str) -> Option<String> {
    match op {
        "create-pod" => cluster.node(odds),
        "get-daemonset" | "update-status" => Some(cluster.set.names.name.clone()),
        "create-revision" => Some(revision::name(cluster, HASH)),
        _ if op.ends_with("revision") => {
            let revision = odds.maybe(&cluster.revisions);
            revision.map(|revision| revision.name.clone())
        }
        _ => odds.maybe(&cluster.pods).map(|pod| pod.name.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Case;
    use crate::generate::census::{self, Situation};

    fn refuses(case: &Case, op: &str) -> bool {
        case.faults.iter().any(|fault| fault.op == op)
    }

    const SITUATIONS: &[Situation] = &[
        ("create-pod", |case| refuses(case, "create-pod")),
        ("delete-pod", |case| refuses(case, "delete-pod")),
        ("adopt-pod", |case| refuses(case, "adopt-pod")),
        ("release-pod", |case| refuses(case, "release-pod")),
        ("relabel-pod", |case| refuses(case, "relabel-pod")),
        ("get-pod", |case| refuses(case, "get-pod")),
        ("create-revision", |case| refuses(case, "create-revision")),
        ("adopt-revision", |case| refuses(case, "adopt-revision")),
        ("release-revision", |case| refuses(case, "release-revision")),
        ("delete-revision", |case| refuses(case, "delete-revision")),
        ("get-revision", |case| refuses(case, "get-revision")),
        ("update-revision", |case| refuses(case, "update-revision")),
        ("get-daemonset", |case| refuses(case, "get-daemonset")),
        ("update-status", |case| refuses(case, "update-status")),
        ("a namespace that goes", |case| {
            case.faults.iter().any(|fault| fault.cause == TERMINATING)
        }),
        ("a name taken, and yet not there", |case| {
            case.faults
                .iter()
                .any(|fault| fault.op == "create-revision" && fault.reason == "AlreadyExists")
        }),
        ("some creates fail in a large cluster", |case| {
            refuses(case, "create-pod") && case.nodes.len() > 7
        }),
        ("creates and deletes fail", |case| {
            refuses(case, "create-pod") && refuses(case, "delete-pod")
        }),
        ("the status is refused once", |case| {
            case.faults
                .iter()
                .any(|fault| fault.op == "update-status" && fault.times == 1)
        }),
        ("three refusals", |case| case.faults.len() == 3),
    ];

    #[test]
    fn every_situation_occurs() {
        census::assert_all_occur(SITUATIONS);
    }

    #[test]
    fn every_kind_of_call_is_refused() {
        let mut tested: Vec<_> = SITUATIONS
            .iter()
            .map(|(name, _)| *name)
            .filter(|name| name.contains('-'))
            .collect();
        let mut known: Vec<_> = OPS.iter().map(|(_, (op, _))| *op).collect();
        tested.sort_unstable();
        known.sort_unstable();
        assert_eq!(tested, known);
    }

    #[test]
    fn one_case_in_eight_has_refusals() {
        const SEEDS: usize = 4000;
        let refused = (0..SEEDS as u64)
            .filter(|seed| !crate::generate::case(*seed).faults.is_empty())
            .count();
        assert!(
            (SEEDS * 10..=SEEDS * 14).contains(&(refused * 100)),
            "{refused} of {SEEDS}"
        );
    }
}
