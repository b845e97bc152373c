//! The last line of the output: what all plans do together.

use nodewise_proto::v1::{self, PhaseKind, action::Kind};

use super::{Planned, changes_something};
use crate::text::count;

/// The number of actions of each sort.
#[derive(Default)]
struct Counts {
    pods_created: usize,
    pods_deleted: usize,
    pods_changed: usize,
    sets_created: usize,
    sets_changed: usize,
    sets_deleted: usize,
    deployments: usize,
    revisions: usize,
    statuses: usize,
}

impl Counts {
    fn of(planned: &[Planned<'_>]) -> Self {
        let mut counts = Self::default();
        let phases = planned.iter().flat_map(|one| &one.plan.phases);
        // That phase runs only after a failure.
        let phases = phases.filter(|phase| phase.kind() != PhaseKind::Failure);
        for action in phases
            .flat_map(|phase| &phase.batches)
            .flat_map(|batch| &batch.actions)
        {
            *match &action.kind {
                Some(Kind::CreatePod(_)) => &mut counts.pods_created,
                Some(Kind::DeletePod(_) | Kind::EvictPod(_)) => &mut counts.pods_deleted,
                Some(Kind::AdoptPod(_) | Kind::ReleasePod(_) | Kind::RelabelPod(_)) => {
                    &mut counts.pods_changed
                }
                Some(Kind::UpdateStatus(_)) => &mut counts.statuses,
                Some(Kind::PatchObject(patch)) if patch.subresource == "status" => &mut counts.statuses,
                Some(Kind::PatchObject(patch)) if is_deployment(patch) => &mut counts.deployments,
                Some(Kind::CreateObject(_)) => &mut counts.sets_created,
                Some(Kind::PatchObject(_)) => &mut counts.sets_changed,
                Some(Kind::DeleteObject(_)) => &mut counts.sets_deleted,
                Some(
                    Kind::CreateRevision(_)
                    | Kind::UpdateRevision(_)
                    | Kind::DeleteRevision(_)
                    | Kind::AdoptRevision(_)
                    | Kind::ReleaseRevision(_),
                ) => &mut counts.revisions,
                Some(Kind::EmitEvent(_) | Kind::Measure(_)) | None => continue,
            } += 1;
        }
        counts
    }

    /// `has_pods` is whether plans of these kinds create and delete pods.
    fn parts(&self, has_pods: bool) -> Vec<String> {
        let mut parts = Vec::new();
        if has_pods {
            parts.push(format!("{} to create", count(self.pods_created, "pod")));
            parts.push(format!("{} to delete", self.pods_deleted));
        }
        for (number, noun, verb) in [
            (self.pods_changed, "pod", "change"),
            (self.sets_created, "ReplicaSet", "create"),
            (self.sets_changed, "ReplicaSet", "change"),
            (self.sets_deleted, "ReplicaSet", "delete"),
            (self.deployments, "Deployment", "change"),
            (self.revisions, "revision", "change"),
        ] {
            if number > 0 {
                parts.push(format!("{} to {verb}", count(number, noun)));
            }
        }
        if self.statuses > 0 {
            parts.push(count(self.statuses, "status write"));
        }
        parts
    }
}

fn is_deployment(patch: &v1::PatchObject) -> bool {
    let resource = patch.resource.as_ref();
    resource.is_some_and(|resource| resource.resource == "deployments")
}

/// The summary of all plans, in one line.
pub(super) fn summary(planned: &[Planned<'_>]) -> String {
    let noun = match planned {
        [] => "DaemonSet",
        [first, rest @ ..] if rest.iter().all(|one| one.kind == first.kind) => first.kind,
        _ => "workload",
    };
    let of = count(planned.len(), noun);
    let is_idle = |one: &&Planned<'_>| !changes_something(one.plan);
    let idle = planned.iter().filter(is_idle).count();
    if idle == planned.len() {
        return format!("No changes: nothing to do for {of}.");
    }
    let has_pods = planned.iter().any(|one| one.kind != "Deployment");
    let parts = Counts::of(planned).parts(has_pods);
    let idle = if idle == 0 {
        String::new()
    } else {
        format!(" {} unchanged.", count(idle, noun))
    };
    format!("Plan for {of}: {}.{idle}", parts.join(", "))
}
