//! Bounds on the `ReplicaSet`s of a `Deployment` together: no more pods than its size and surge, and no second set of its template.
//! Without them a faulty service could add pods with every plan.

use std::collections::HashMap;

use nodewise_proto::v1::{self, Claim, action::Kind};
use serde_json::Value;

use super::json::parse;
use super::kinds::{self, Write};
use super::{Caches, Checked, RequestContext, Violation, owned, sizes, templates};

/// A new set, or a set that gets another size.
struct Sized<'a> {
    action: &'a v1::Action,
    /// Empty for a new set.
    uid: &'a str,
    size: i64,
}

/// Checks the sets that a plan creates and resizes.
pub(super) fn check(
    plan: &v1::Plan,
    request: &RequestContext<'_>,
    caches: &impl Caches,
    checked: &mut Checked<'_>,
) -> Result<(), Violation> {
    let writes: Vec<_> = sized(plan, request).collect();
    if writes.is_empty() {
        return Ok(());
    }
    let object = parse(&request.workload.object, "the workload").map_err(Violation::of_plan)?;
    if let Some(created) = writes.iter().find(|write| write.uid.is_empty()) {
        check_template(created.action, &object, (plan, request, caches), checked)?;
    }
    check_total(&writes, &object, (plan, request, caches), checked)
}

/// The new sets, and those that get another size.
fn sized<'a>(plan: &'a v1::Plan, request: &RequestContext<'_>) -> impl Iterator<Item = Sized<'a>> {
    kinds::writes(plan, request).filter_map(|(action, kind, write)| {
        let (uid, written) = match (write, kind) {
            (Write::Create, Kind::CreateObject(create)) => ("", &create.manifest),
            (Write::Patch, Kind::PatchObject(patch)) => (&*patch.object.as_ref()?.uid, &patch.patch),
            _ => return None,
        };
        let size = parse(written, "").ok()?["spec"]["replicas"].as_i64()?;
        Some(Sized { action, uid, size })
    })
}

/// Checks that no set of the workload has the template of the one that a plan creates. A set that the plan releases does not count.
fn check_template<C: Caches>(
    created: &v1::Action,
    object: &Value,
    (plan, request, caches): (&v1::Plan, &RequestContext<'_>, &C),
    checked: &mut Checked<'_>,
) -> Result<(), Violation> {
    let template = templates::without_hash(&object["spec"]["template"]);
    let is_released = |set: &Value| {
        let mut claims = plan.actions().filter_map(released);
        claims.any(|uid| set["metadata"]["uid"] == *uid)
    };
    for set in owned::objects(plan, request, caches) {
        if templates::without_hash(&set["spec"]["template"]) != template || is_released(&set) {
            continue;
        }
        let name = set["metadata"]["name"].as_str().unwrap_or_default();
        let changed = caches.changed(request.controls, name);
        let what = format!("{name} of the workload has its template already");
        checked.leave_out(created, request, changed, what)?;
    }
    Ok(())
}

/// Checks that all sets together get no more pods than the size and the surge of the workload, or than they have. The size of a set that
/// the caches do not show is not known, so it does not count.
fn check_total<C: Caches>(
    writes: &[Sized<'_>],
    object: &Value,
    (plan, request, caches): (&v1::Plan, &RequestContext<'_>, &C),
    checked: &mut Checked<'_>,
) -> Result<(), Violation> {
    let mut sizes = owned::sizes(plan, request, caches);
    for uid in plan.actions().filter_map(released) {
        if writes.iter().all(|write| write.uid != uid) {
            sizes.remove(uid);
        }
    }
    let before: i64 = sizes.values().sum();
    // A set may be resized more than once; the largest size counts.
    let mut planned: HashMap<&str, i64> = HashMap::new();
    let grows = |write: &Sized<'_>| match sizes.get(write.uid) {
        Some(size) => write.size - size,
        None if write.uid.is_empty() => write.size,
        None => 0,
    };
    for write in writes {
        let by = grows(write);
        let most = planned.entry(write.uid).or_insert(by);
        *most = by.max(*most);
    }
    let (after, most) = (
        before + planned.values().sum::<i64>(),
        sizes::most(object).max(before),
    );
    if after <= most {
        return Ok(());
    }
    let what = format!(
        "the ReplicaSets of the workload have {before} pods, the plan makes that {after}, and {most} is the most"
    );
    let changed = owned::changed(plan, request, caches);
    for write in writes.iter().filter(|write| grows(write) > 0) {
        checked.leave_out(write.action, request, changed, &what)?;
    }
    Ok(())
}

/// The uid of the set that an action releases.
fn released(action: &v1::Action) -> Option<&str> {
    match &action.kind {
        Some(Kind::PatchObject(patch)) if patch.claim() == Claim::Release => {
            patch.object.as_ref().map(|object| &*object.uid)
        }
        _ => None,
    }
}
