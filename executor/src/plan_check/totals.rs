//! Bounds on the `ReplicaSet`s of a `Deployment` together: no more pods than its size and surge, and no second set of its template.
//! Without them a faulty service could add pods with every plan.

use std::collections::HashMap;

use nodewise_proto::v1::{self, action::Kind};
use serde_json::Value;

use super::json::parse;
use super::kinds::{self, Write};
use super::{Caches, Checked, Known, RequestContext, Violation, named, owned, sizes, templates};

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
    let owned = owned::objects(plan, request, caches);
    let mut released = named::released(plan, request);
    let created = writes.iter().find_map(|write| match &write.action.kind {
        Some(Kind::CreateObject(create)) => Some((write.action, create)),
        _ => None,
    });
    if let Some((action, create)) = created {
        let template = templates::without_hash(&object["spec"]["template"]);
        // The apiserver refuses a set of the same name. The service may not know it: not all sets fit into a request.
        let others = owned
            .iter()
            .filter(|set| !released.contains(&set.known.identity()) && *set.known.name != create.name);
        for set in others.filter(|set| templates::without_hash(&set.object()["spec"]["template"]) == template)
        {
            let name = &set.known.name;
            let changed = caches.changed(request.controls, name);
            let what = format!("{name} of the workload has its template already");
            checked.leave_out(action, request, changed, what)?;
        }
    }
    // A set that is released and resized counts.
    released.retain(|(_, uid)| writes.iter().all(|write| write.uid != *uid));
    let kept = owned
        .iter()
        .filter(|set| !released.contains(&set.known.identity()));
    let sizes = kept.map(|set| (&*set.known.uid, set.known.replicas.unwrap_or_default()));
    let sizes: HashMap<&str, i64> = sizes.collect();
    if let Some(what) = beyond(&writes, &sizes, sizes::most(&object)) {
        let changed = owned::last_change(&owned, request, caches);
        for write in writes.iter().filter(|write| write.growth(&sizes) > 0) {
            checked.leave_out(write.action, request, changed, &what)?;
        }
    }
    Ok(())
}

impl Sized<'_> {
    /// By how much the set grows. `sizes` are the present sizes by uid. A set that the caches do not show may not grow
    /// ([`Checked::read`]).
    fn growth(&self, sizes: &HashMap<&str, i64>) -> i64 {
        match sizes.get(self.uid) {
            Some(size) => self.size - size,
            None if self.uid.is_empty() => self.size,
            None => 0,
        }
    }
}

/// The new sets, and those that get another size.
fn sized<'a>(plan: &'a v1::Plan, request: &RequestContext<'_>) -> impl Iterator<Item = Sized<'a>> {
    kinds::writes(plan, request).filter_map(|(action, kind, write)| {
        let (uid, written) = match (write, kind) {
            (Write::Create, Kind::CreateObject(create)) => ("", &create.manifest),
            (Write::Patch, Kind::PatchObject(patch)) => (&*patch.object.as_ref()?.uid, &patch.patch),
            _ => return None,
        };
        let size = size_in(written)?;
        Some(Sized { action, uid, size })
    })
}

/// The size that a manifest or a patch sets. That it can be read is checked before.
fn size_in(written: &[u8]) -> Option<i64> {
    let written: Value = serde_json::from_slice(written).ok()?;
    written["spec"]["replicas"].as_i64()
}

/// Whether an action makes an object larger than it is.
pub(super) fn grows(action: &v1::Action, known: &Known) -> bool {
    let size = match &action.kind {
        Some(Kind::PatchObject(patch)) => size_in(&patch.patch),
        _ => None,
    };
    size > known.replicas.or(size)
}

/// Says that all sets together get more than `most` pods; or, if they have more, that one of them grows. `None` if they do not.
///
/// A set that the plan makes smaller counts, although that write may fail: while a rollout is scaled, one set may grow by what
/// another one loses. So they have at most twice as many, once: then none may grow.
fn beyond(writes: &[Sized<'_>], sizes: &HashMap<&str, i64>, most: i64) -> Option<String> {
    let before: i64 = sizes.values().sum();
    // A set may be resized more than once; the largest size counts.
    let mut planned: HashMap<&str, i64> = HashMap::new();
    for write in writes {
        let by = write.growth(sizes);
        let largest = planned.entry(write.uid).or_insert(by);
        *largest = by.max(*largest);
    }
    let after = before + planned.values().sum::<i64>();
    let grows = planned.values().any(|by| *by > 0);
    (grows && before.max(after) > most).then(|| {
        format!(
            "the ReplicaSets of the workload have {before} pods, the plan makes that {after}, and {most} is the most"
        )
    })
}
