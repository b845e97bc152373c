//! Calls that the API refuses.

use super::cluster::Cluster;
use super::odds::Odds;
use super::owner::Owner;
use super::pod::Pod;
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
    // Upstream does not look for a pod after a delete that went wrong: Nodewise may find out nothing there.
    (1, ("get-pod", &[BROKEN, TIMEOUT])),
    (3, ("create-revision", &[BROKEN, TAKEN, INVALID, FORBIDDEN])),
    (2, ("adopt-revision", &[BROKEN, MISSING, INVALID])),
    (2, ("release-revision", &[BROKEN, MISSING, INVALID])),
    (3, ("delete-revision", &[BROKEN, MISSING])),
    (1, ("get-revision", &[BROKEN, MISSING])),
    (3, ("update-revision", &[BROKEN, MISSING, CONFLICT])),
    (3, ("get-daemonset", &[BROKEN, MISSING, TIMEOUT])),
    (5, ("update-status", &[BROKEN, CONFLICT, CONFLICT, MISSING])),
];

/// Those of them that claim pods.
const CLAIMS: &[(u32, (&str, &[Refusal]))] = &[
    (1, ("adopt-pod", &[BROKEN, MISSING, CONFLICT, INVALID])),
    (1, ("release-pod", &[BROKEN, MISSING, CONFLICT, INVALID])),
];

/// The cause by which an API says that the namespace is going.
const TERMINATING: &str = "NamespaceTerminating";

/// Upstream's hash has up to ten letters, Nodewise's always ten (D-61).
const HASH_LENGTH: usize = 10;
/// The longest name of an object.
const MAX_NAME: usize = 253;

/// What refusals depend on besides the cluster.
pub(super) struct Around {
    /// Creates or deletes are awaited, so that a sync looks after the status only.
    pub(super) pending: bool,
    /// No pod is gone or terminating.
    pub(super) all_there: bool,
}

/// None, most of the time.
pub(super) fn draw(odds: &mut Odds, cluster: &Cluster, around: &Around) -> Vec<Fault> {
    let mut faults = Vec::new();
    if odds.in_hundred(11) {
        let count = odds.weighted(&[(7, 1), (2, 2), (1, 3)]);
        faults.extend((0..count).map(|_| fault(odds, cluster, around)));
        // One that passes is for the first create; were that refused otherwise, it would meet one of several.
        let is_create = |fault: &&mut Fault| fault.op == "create-pod";
        if faults.iter_mut().filter(is_create).count() > 1 {
            faults
                .iter_mut()
                .filter(is_create)
                .for_each(|fault| fault.times = 0);
        }
    } else if odds.in_hundred(1) {
        faults = deletes(odds, cluster, around);
    }
    faults.extend(too_long(cluster));
    faults
}

fn fault(odds: &mut Odds, cluster: &Cluster, around: &Around) -> Fault {
    let claims = around.pending && odds.in_hundred(30);
    let (op, refusals) = odds.weighted(if claims { CLAIMS } else { OPS });
    let (code, reason) = odds.pick(refusals);
    let name = if odds.in_hundred(60) {
        name(odds, cluster, op)
    } else {
        None
    };
    let mut fault = Fault {
        op: op.to_owned(),
        name: name.unwrap_or_default(),
        code,
        reason: reason.to_owned(),
        cause: String::new(),
        times: odds.weighted(&[(6, 0), (3, 1), (1, 2)]),
    };
    if op == "create-pod" && odds.in_hundred(25) {
        (fault.code, fault.reason) = (FORBIDDEN.0, FORBIDDEN.1.to_owned());
        TERMINATING.clone_into(&mut fault.cause);
    }
    if !may_pass(cluster, around, &fault) {
        fault.times = 0;
    }
    fault
}

/// Whether a refusal may pass after a few calls, so that both sides meet it at the same ones.
fn may_pass(cluster: &Cluster, around: &Around, fault: &Fault) -> bool {
    let is_orphan = |pod: &Pod| matches!(pod.owner, Owner::Nobody | Owner::Mentioned);
    match fault.op.as_str() {
        // Upstream claims pods up to four times in one sync (for placement, the rollout, the clean-up and the status), and a
        // plan once: a claim that is refused once is made in the same sync by upstream, and in the next one by Nodewise.
        // Upstream claims once as well where it looks after the status only.
        "adopt-pod" | "release-pod" => {
            may_change(fault) && around.pending && !revision::has_duplicates(cluster)
        }
        "adopt-revision" | "release-revision" => may_change(fault),
        // It is asked for before an adoption.
        "get-daemonset" => !cluster.pods.iter().any(is_orphan),
        // Which of the calls of a batch comes first is up to the scheduler, on either side and not evenly. The first create
        // has a batch of its own.
        "create-pod" => !fault.name.is_empty() || fault.times < 2,
        "delete-pod" => !fault.name.is_empty() && (!is_looked_after(fault) || around.all_there),
        _ => true,
    }
}

/// Whether the answer to a claim may be another one a moment later. What is gone stays gone: it makes no difference that Nodewise
/// claims again when it plans again in the same sync.
fn may_change(fault: &Fault) -> bool {
    ![MISSING.0, INVALID.0].contains(&fault.code)
}

/// Whether Nodewise looks for the pod after such an answer to its deletion, and upstream does not (docs/upstream-differences.md,
/// "On either profile"): it must not find out more than that the pod is there.
fn is_looked_after(fault: &Fault) -> bool {
    ![MISSING.0, FORBIDDEN.0].contains(&fault.code)
}

/// Deletes that are refused, for each pod in another way.
fn deletes(odds: &mut Odds, cluster: &Cluster, around: &Around) -> Vec<Fault> {
    let mut refusals = [BROKEN, MISSING, CONFLICT, FORBIDDEN];
    odds.shuffle(&mut refusals);
    let mut pods: Vec<_> = cluster.pods.iter().collect();
    odds.shuffle(&mut pods);
    // Those that are most likely to be deleted.
    pods.sort_by_key(|pod| !pod.is_finished() && pod.version == cluster.present());
    let times = odds.weighted(&[(6, 0), (3, 1), (1, 2)]);
    let refused = pods.into_iter().zip(refusals).map(|(pod, (code, reason))| {
        let mut fault = Fault {
            op: "delete-pod".to_owned(),
            name: pod.name.clone(),
            code,
            reason: reason.to_owned(),
            cause: String::new(),
            times,
        };
        if !may_pass(cluster, around, &fault) {
            fault.times = 0;
        }
        fault
    });
    refused.collect()
}

/// Refuses a revision's name that is too long with a hash of ten letters, whatever hash a side has.
fn too_long(cluster: &Cluster) -> Option<Fault> {
    let name = format!("{}-{HASH}", cluster.set.names.name);
    let length = name.len() - HASH.len() + HASH_LENGTH;
    let (code, reason) = INVALID;
    (length > MAX_NAME).then(|| Fault {
        op: "create-revision".to_owned(),
        name,
        code,
        reason: reason.to_owned(),
        cause: String::new(),
        times: 0,
    })
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
pub(super) mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::case::Case;
    use crate::generate::census::{self, Situation};

    fn refuses(case: &Case, op: &str) -> bool {
        case.faults.iter().any(|fault| fault.op == op)
    }

    fn passes(case: &Case, op: &str) -> bool {
        case.faults.iter().any(|fault| fault.op == op && fault.times > 0)
    }

    /// Whether so many deletes are refused, each on a node of its own and in a way of its own.
    fn refused_deletes(case: &Case, least: usize) -> bool {
        let refused = || case.faults.iter().filter(|fault| fault.op == "delete-pod");
        let node = |fault: &Fault| {
            let mut pods = case.pods.iter();
            let pod = pods.find(|pod| census::name(pod) == fault.name)?;
            pod["spec"]["nodeName"].as_str()
        };
        let nodes: BTreeSet<_> = refused().filter_map(node).collect();
        let codes: BTreeSet<_> = refused().map(|fault| fault.code).collect();
        nodes.len() >= least && codes.len() >= least
    }

    pub(in crate::generate) const SITUATIONS: &[Situation] = &[
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
        ("create-pod for a time", |case| passes(case, "create-pod")),
        ("delete-pod for a time", |case| passes(case, "delete-pod")),
        ("adopt-pod for a time", |case| passes(case, "adopt-pod")),
        ("release-pod for a time", |case| passes(case, "release-pod")),
        ("relabel-pod for a time", |case| passes(case, "relabel-pod")),
        ("get-pod for a time", |case| passes(case, "get-pod")),
        ("create-revision for a time", |case| {
            passes(case, "create-revision")
        }),
        ("adopt-revision for a time", |case| passes(case, "adopt-revision")),
        ("release-revision for a time", |case| {
            passes(case, "release-revision")
        }),
        ("delete-revision for a time", |case| {
            passes(case, "delete-revision")
        }),
        ("get-revision for a time", |case| passes(case, "get-revision")),
        ("update-revision for a time", |case| {
            passes(case, "update-revision")
        }),
        ("get-daemonset for a time", |case| passes(case, "get-daemonset")),
        ("update-status for a time", |case| passes(case, "update-status")),
        ("deletes on several nodes meet different refusals", |case| {
            refused_deletes(case, 3)
        }),
        ("several deletes are refused, in a small burst", |case| {
            refused_deletes(case, 2) && case.burst < 4
        }),
        ("a name too long for a hash", |case| {
            case.faults.iter().any(|fault| fault.name.len() > 240)
        }),
        ("three refusals", |case| case.faults.len() == 3),
    ];

    #[test]
    fn every_kind_of_call_is_refused() {
        let mut tested: Vec<_> = SITUATIONS
            .iter()
            .map(|(name, _)| *name)
            .filter(|name| name.contains('-'))
            .map(str::to_owned)
            .collect();
        let known = OPS.iter().map(|(_, (op, _))| *op);
        let mut known: Vec<_> = known
            .flat_map(|op| [op.to_owned(), format!("{op} for a time")])
            .collect();
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
