//! Where a sync of a ReplicaSet or a Deployment differs from upstream's by design, and what is compared then.

use serde_json::Value;

use crate::case::{Case, Fault, Kind};
use crate::effects::{Effects, Field};

/// The case for upstream: changed so that upstream's own second attempts have the same effect as Nodewise's one attempt.
///
/// The controller of ReplicaSets writes a refused status once more, after it has read the ReplicaSet. Nodewise
/// plans again, with back-off. So upstream's second write is refused too. And it does not notice that the ReplicaSet was
/// replaced: it writes its status to the new one. Nodewise never does.
pub(crate) fn for_upstream(case: &Case) -> Case {
    let mut case = case.clone();
    if case.kind != Kind::ReplicaSet {
        return case;
    }
    for fault in &mut case.faults {
        if fault.op == "update-status" {
            fault.times *= 2;
        }
    }
    if is_replaced(&case) {
        let refused = Fault {
            op: "update-status".to_owned(),
            name: String::new(),
            code: 409,
            reason: "Conflict".to_owned(),
            cause: String::new(),
            times: 0,
        };
        case.faults.push(refused);
    }
    case
}

/// Whether the workload in the API has another uid.
fn is_replaced(case: &Case) -> bool {
    match (&case.live.subject, case.subject()) {
        (Some(Some(live)), Ok(cached)) => live["metadata"]["uid"] != cached["metadata"]["uid"],
        _ => false,
    }
}

/// The rule by which these effects of a Deployment's sync may differ.
pub(crate) fn rule(case: &Case, theirs: &Effects, ours: &Effects) -> Option<&'static str> {
    if case.kind != Kind::Deployment {
        return None;
    }
    if stops_at_a_refused_status(theirs, ours) {
        return Some("upstream stops at the first status that it cannot write");
    }
    if (!case.faults.is_empty() || has_other_live(case)) && stops_in_the_middle(theirs, ours) {
        return Some("upstream wrote a part of an object before a write that was refused");
    }
    if is_negative(case)
        && is_same(
            theirs,
            ours,
            &[Field::Claims, Field::SetCreates, Field::SetDeletes, Field::Stored],
        )
    {
        return Some("negative replicas, which no apiserver accepts");
    }
    if sorts_no_order(case, theirs, ours) {
        return Some("more than twelve ReplicaSets, one without a valid revision, have no order");
    }
    if rolls_back_later(case, theirs, ours) {
        return Some("the rollback follows in the next plan");
    }
    if ignores_what_is_not_cached(case, theirs) {
        return Some("the ReplicaSet that has the name is not in upstream's cache");
    }
    None
}

fn is_negative(case: &Case) -> bool {
    case.subject()
        .is_ok_and(|one| one["spec"]["replicas"].as_i64() < Some(0))
}

/// Whether the API differs from the caches.
fn has_other_live(case: &Case) -> bool {
    let live = &case.live;
    live.subject.is_some() || !live.gone.is_empty() || !live.replica_sets.is_empty()
}

fn is_same(theirs: &Effects, ours: &Effects, fields: &[Field]) -> bool {
    let differs = theirs.differing(ours);
    fields.iter().all(|field| !differs.contains(field))
}

/// Whether the effects in a field are a part of the other's.
fn is_part(part: &Effects, all: &Effects, field: Field) -> bool {
    let (part, all) = (part.sentences(field), all.sentences(field));
    part.keys().all(|sentence| all.contains_key(sentence))
}

fn has(effects: &Effects, field: Field) -> bool {
    !effects.sentences(field).is_empty()
}

/// Whether upstream could not write a status in the middle of the sync, and Nodewise could not write its only one, which
/// comes last, or a ReplicaSet before it. Then upstream did a part of what Nodewise did.
fn stops_at_a_refused_status(theirs: &Effects, ours: &Effects) -> bool {
    has(theirs, Field::Status)
        && (has(ours, Field::Status) || is_refused(ours))
        // A create that a terminating namespace refuses is no error.
        && (is_same(theirs, ours, &[Field::Error]) || is_refused(ours))
        && is_same(theirs, ours, &[Field::Claims])
        && [Field::SetCreates, Field::SetDeletes, Field::Events]
            .iter()
            .all(|field| is_part(theirs, ours, *field))
}

/// Whether a write was refused, and only the content of objects differs, and Nodewise emitted more events. Upstream writes an object
/// several times: the status and the annotations of the new set before sizes, and an old set once for its unhealthy pods
/// and once more. Nodewise writes each object once, with the final content, and the status last.
fn stops_in_the_middle(theirs: &Effects, ours: &Effects) -> bool {
    (has(ours, Field::Error) || is_refused(ours))
        && theirs
            .differing(ours)
            .iter()
            .all(|field| matches!(field, Field::Stored | Field::Events))
        && is_part(theirs, ours, Field::Events)
}

/// Whether a create, write or delete of a ReplicaSet was refused.
fn is_refused(effects: &Effects) -> bool {
    let succeeds = |sentence: &String| sentence.ends_with("(200)") || sentence.ends_with("(404)");
    has(effects, Field::SetRefusals)
        || effects
            .sentences(Field::SetCreates)
            .keys()
            .any(|sentence| !sentence.contains(" (201) "))
        || !effects.sentences(Field::SetDeletes).keys().all(succeeds)
}

/// Whether upstream deletes other old sets: it compares sets without a valid revision by age, which is no order, and sorts
/// more than twelve with an algorithm whose result then depends on its details (P-51).
fn sorts_no_order(case: &Case, theirs: &Effects, ours: &Effects) -> bool {
    let revision = |set: &Value| set["metadata"]["annotations"]["deployment.kubernetes.io/revision"].clone();
    let is_odd = |set: &Value| {
        let revision = revision(set);
        let number = revision.as_str().and_then(|text| text.parse::<i64>().ok());
        revision.is_string() && number.is_none()
    };
    case.replica_sets.len() > 12
        && case.replica_sets.iter().any(is_odd)
        && theirs.differing(ours) == [Field::SetDeletes]
}

/// Whether upstream rolled back after another write of the Deployment or its new set in the same sync. A real apiserver
/// refuses that, and the next sync rolls back, as Nodewise's next plan does.
fn rolls_back_later(case: &Case, theirs: &Effects, ours: &Effects) -> bool {
    let annotation = "deprecated.deployment.rollback.to";
    let requests = case
        .subject()
        .is_ok_and(|one| one["metadata"]["annotations"][annotation].is_string());
    let removes = |effects: &Effects| {
        let stored = effects.sentences(Field::Stored);
        stored.keys().any(|sentence| {
            let is_removed = sentence.contains(annotation) || sentence.contains("\"annotations\":null");
            sentence.starts_with("deployments/") && is_removed
        })
    };
    let tried = removes(theirs) || has(theirs, Field::SetRefusals);
    requests
        && tried
        && !removes(ours)
        && (has(ours, Field::Stored) || has(ours, Field::SetCreates))
        && is_same(
            theirs,
            ours,
            &[Field::Claims, Field::SetCreates, Field::SetDeletes],
        )
        && is_part(ours, theirs, Field::Events)
}

/// Whether upstream fails because the set that has the name of the new one is not in its cache. Nodewise reads it from the
/// API and goes on (P-27).
fn ignores_what_is_not_cached(case: &Case, theirs: &Effects) -> bool {
    let name = |object: &Value| object["metadata"]["name"].clone();
    let unseen = case
        .live
        .replica_sets
        .iter()
        .any(|live| case.replica_sets.iter().all(|cached| name(cached) != name(live)));
    unseen && has(theirs, Field::Error) && !has(theirs, Field::SetCreates)
}
