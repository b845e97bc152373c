//! Calls that the API rejects.

use super::cluster::Cluster;
use super::owner::Owner;
use super::pod::Pod;
use super::revision;
use super::rng::CaseRng;
use crate::case::{Fault, HASH};

/// The status code and reason of an error.
type Refusal = (u16, &'static str);

const BROKEN: Refusal = (500, "InternalError");
const MISSING: Refusal = (404, "NotFound");
const CONFLICT: Refusal = (409, "Conflict");
const TAKEN: Refusal = (409, "AlreadyExists");
const INVALID: Refusal = (422, "Invalid");
const FORBIDDEN: Refusal = (403, "Forbidden");
const TIMEOUT: Refusal = (504, "Timeout");

/// The kinds of calls, with weights and possible errors.
const OPS: &[(u32, (&str, &[Refusal]))] = &[
    (8, ("create-pod", &[BROKEN, FORBIDDEN, INVALID, TIMEOUT, TAKEN])),
    (7, ("delete-pod", &[BROKEN, MISSING, CONFLICT, FORBIDDEN])),
    (3, ("adopt-pod", &[BROKEN, MISSING, CONFLICT, INVALID])),
    (3, ("release-pod", &[BROKEN, MISSING, CONFLICT, INVALID])),
    (3, ("relabel-pod", &[BROKEN, MISSING, CONFLICT])),
    // Upstream does not read a pod after a failed delete, so Nodewise's read must not return a pod either.
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

/// The calls that claim pods.
const CLAIMS: &[(u32, (&str, &[Refusal]))] = &[
    (1, ("adopt-pod", &[BROKEN, MISSING, CONFLICT, INVALID])),
    (1, ("release-pod", &[BROKEN, MISSING, CONFLICT, INVALID])),
];

/// The cause by which the API says that the namespace is terminating.
const TERMINATING: &str = "NamespaceTerminating";

/// Upstream's hash has up to ten letters, Nodewise's always has ten (D-61).
const HASH_LENGTH: usize = 10;
/// The longest object name.
const MAX_NAME: usize = 253;

/// Facts about the case that faults depend on.
pub(super) struct FaultContext {
    /// Whether creates or deletes are expected, so that a sync only updates the status.
    pub(super) pending: bool,
    /// Whether no pod is missing from the API or terminating.
    pub(super) all_there: bool,
}

/// Generates faults; most cases have none.
pub(super) fn draw(rng: &mut CaseRng, cluster: &Cluster, context: &FaultContext) -> Vec<Fault> {
    let mut faults = Vec::new();
    if rng.in_hundred(11) {
        let count = rng.weighted(&[(7, 1), (2, 2), (1, 3)]);
        faults.extend((0..count).map(|_| fault(rng, cluster, context)));
        // A temporary fault is meant for the first create. With several faults, the first create could meet another
        // one.
        let is_create = |fault: &&mut Fault| fault.op == "create-pod";
        if faults.iter_mut().filter(is_create).count() > 1 {
            faults
                .iter_mut()
                .filter(is_create)
                .for_each(|fault| fault.times = 0);
        }
    } else if rng.in_hundred(1) {
        faults = deletes(rng, cluster, context);
    }
    faults.extend(too_long(cluster));
    faults
}

fn fault(rng: &mut CaseRng, cluster: &Cluster, context: &FaultContext) -> Fault {
    let claims = context.pending && rng.in_hundred(30);
    let (op, refusals) = rng.weighted(if claims { CLAIMS } else { OPS });
    let (code, reason) = rng.pick(refusals);
    let name = if rng.in_hundred(60) {
        name(rng, cluster, op)
    } else {
        None
    };
    let mut fault = Fault {
        op: op.to_owned(),
        name: name.unwrap_or_default(),
        code,
        reason: reason.to_owned(),
        cause: String::new(),
        times: rng.weighted(&[(6, 0), (3, 1), (1, 2)]),
    };
    if op == "create-pod" && rng.in_hundred(25) {
        (fault.code, fault.reason) = (FORBIDDEN.0, FORBIDDEN.1.to_owned());
        TERMINATING.clone_into(&mut fault.cause);
    }
    if !may_be_temporary(cluster, context, &fault) {
        fault.times = 0;
    }
    fault
}

/// Whether a fault may end after a few calls: only if both controllers meet it in the same calls.
fn may_be_temporary(cluster: &Cluster, context: &FaultContext, fault: &Fault) -> bool {
    let is_orphan = |pod: &Pod| matches!(pod.owner, Owner::Nobody | Owner::Mentioned);
    match fault.op.as_str() {
        // Upstream claims pods up to four times per sync (placement, rollout, clean-up, status), a plan only once.
        // After a temporary fault upstream repeats the claim in the same sync, Nodewise in the next one. In a sync that
        // only updates the status, upstream claims once too.
        "adopt-pod" | "release-pod" => {
            may_change(fault)
                && context.pending
                && !revision::has_duplicates(&cluster.setup, &cluster.revisions)
        }
        "adopt-revision" | "release-revision" => may_change(fault),
        // It is read before an adoption.
        "get-daemonset" => !cluster.pods.iter().any(is_orphan),
        // Which call of a batch comes first is up to each controller's scheduler, with different probabilities. The
        // first create is a batch of its own.
        "create-pod" => !fault.name.is_empty() || fault.times < 2,
        "delete-pod" => !fault.name.is_empty() && (!is_read_back(fault) || context.all_there),
        _ => true,
    }
}

/// Whether a repeated claim can get another response. An object that does not exist does not come back, so it makes no
/// difference if Nodewise claims again in a second plan of the same sync.
fn may_change(fault: &Fault) -> bool {
    ![MISSING.0, INVALID.0].contains(&fault.code)
}

/// Whether Nodewise reads the pod after such a response to a delete. Upstream does not (docs/upstream-differences.md,
/// "On either profile"), so the read may only show that the pod still exists.
fn is_read_back(fault: &Fault) -> bool {
    ![MISSING.0, FORBIDDEN.0].contains(&fault.code)
}

/// Faults of deletes, a different one for each pod.
fn deletes(rng: &mut CaseRng, cluster: &Cluster, context: &FaultContext) -> Vec<Fault> {
    let mut refusals = [BROKEN, MISSING, CONFLICT, FORBIDDEN];
    rng.shuffle(&mut refusals);
    let mut pods: Vec<_> = cluster.pods.iter().collect();
    rng.shuffle(&mut pods);
    // The pods that are most likely to be deleted come first.
    pods.sort_by_key(|pod| !pod.is_finished() && pod.version == cluster.setup.present());
    let times = rng.weighted(&[(6, 0), (3, 1), (1, 2)]);
    let refused = pods.into_iter().zip(refusals).map(|(pod, (code, reason))| {
        let mut fault = Fault {
            op: "delete-pod".to_owned(),
            name: pod.name.clone(),
            code,
            reason: reason.to_owned(),
            cause: String::new(),
            times,
        };
        if !may_be_temporary(cluster, context, &fault) {
            fault.times = 0;
        }
        fault
    });
    refused.collect()
}

/// Rejects the create of a revision whose name is too long with a hash of ten letters, whatever the length of the
/// actual hash.
fn too_long(cluster: &Cluster) -> Option<Fault> {
    let name = format!("{}-{HASH}", cluster.setup.set.names.name);
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

/// The name of an object for a kind of call.
fn name(rng: &mut CaseRng, cluster: &Cluster, op: &str) -> Option<String> {
    match op {
        "create-pod" => cluster.setup.node(rng),
        "get-daemonset" | "update-status" => Some(cluster.setup.set.names.name.clone()),
        "create-revision" => Some(revision::name(&cluster.setup, HASH)),
        _ if op.ends_with("revision") => {
            let revision = rng.maybe(&cluster.revisions);
            revision.map(|revision| revision.name.clone())
        }
        _ => rng.maybe(&cluster.pods).map(|pod| pod.name.clone()),
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

    /// Whether at least `least` deletes are rejected, each on a different node and with a different error.
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
