//! What plans for each kind of workload may contain.

use nodewise_proto::v1::{self, action::Kind};
use nodewise_proto::workload::{DAEMON_SET, DEFAULT_BURST, DEPLOYMENT, REPLICA_SET, REPLICA_SET_BURST};
use nodewise_runtime::Resource;

use super::{RequestContext, Violation, names};

/// What plans for one kind of workload may contain.
#[derive(Debug)]
pub(crate) struct KindRules {
    kind: &'static str,
    /// The actions, besides those on objects of any resource.
    actions: &'static [&'static str],
    /// The actions on objects of any resource.
    writes: &'static [Write],
    /// The members of metadata in a patch of the workload's status.
    pub(super) status_metadata: &'static [&'static str],
    /// RolloutPolicies may target its workloads.
    pub(super) has_policies: bool,
    /// Each pod is for one node.
    pub(super) has_nodes: bool,
    /// The number of characters of the hash in the names of pods.
    pub(super) pod_hash: usize,
    /// The default of `PlanOptions.burst`.
    pub(super) burst: u32,
}

/// An action on an object of any resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Write {
    /// Create an object that the workload controls.
    Create,
    /// Change, adopt or release an object that the workload controls.
    Patch,
    /// Delete an object that the workload controls.
    Delete,
    /// Patch the workload's own status.
    Status,
    /// Patch the workload itself: restore an earlier template.
    Rollback,
    /// Patch the status of a RolloutPolicy.
    PolicyStatus,
}

static RULES: [KindRules; 3] = [
    KindRules {
        kind: DAEMON_SET,
        actions: &[
            "CreateRevision",
            "UpdateRevision",
            "DeleteRevision",
            "AdoptRevision",
            "ReleaseRevision",
            "AdoptPod",
            "ReleasePod",
            "RelabelPod",
            "CreatePod",
            "DeletePod",
            "EvictPod",
            "UpdateStatus",
            "EmitEvent",
            "Measure",
        ],
        writes: &[Write::PolicyStatus],
        status_metadata: &[],
        has_policies: true,
        has_nodes: true,
        pod_hash: names::LENGTH,
        burst: DEFAULT_BURST,
    },
    KindRules {
        kind: REPLICA_SET,
        actions: &["EmitEvent", "AdoptPod", "ReleasePod", "CreatePod", "DeletePod"],
        writes: &[Write::Status],
        status_metadata: &["uid", "resourceVersion"],
        has_policies: false,
        has_nodes: false,
        pod_hash: 5,
        burst: REPLICA_SET_BURST,
    },
    KindRules {
        kind: DEPLOYMENT,
        actions: &["EmitEvent"],
        writes: &[
            Write::Create,
            Write::Patch,
            Write::Delete,
            Write::Status,
            Write::Rollback,
        ],
        status_metadata: &["uid", "resourceVersion", "annotations"],
        has_policies: false,
        has_nodes: false,
        pod_hash: 0,
        burst: DEFAULT_BURST,
    },
];

/// For a kind that has no rules: its plans may contain nothing.
static NOTHING: KindRules = KindRules {
    kind: "",
    actions: &[],
    writes: &[],
    status_metadata: &[],
    has_policies: false,
    has_nodes: false,
    pod_hash: 0,
    burst: 0,
};

/// The rules of a kind of workload.
pub(crate) fn rules(kind: &str) -> &'static KindRules {
    RULES.iter().find(|rules| rules.kind == kind).unwrap_or(&NOTHING)
}

/// Checks that the plan has only actions that its kind of workload needs. An action of an unknown kind is not carried
/// out, so it is no violation.
pub(super) fn check(plan: &v1::Plan, request: &RequestContext<'_>) -> Result<(), Violation> {
    for action in plan.actions() {
        let Some(kind) = &action.kind else { continue };
        let is_allowed = match write(kind, request).map_err(|what| Violation::of(action, what))? {
            Some(write) => request.rules.writes.contains(&write),
            None => request.rules.actions.contains(&action.kind_name()),
        };
        if !is_allowed {
            let what = format!("a plan for a {} has no such action", request.workload.key.kind);
            return Err(Violation::of(action, what));
        }
    }
    Ok(())
}

/// What an action on an object of any resource does; `None` for other actions. The error says why no plan for the
/// workload can have it.
pub(super) fn write(kind: &Kind, request: &RequestContext<'_>) -> Result<Option<Write>, String> {
    let resource = |name: &Option<v1::GroupVersionResource>| {
        let name = name.as_ref().ok_or("it names no resource")?;
        let policies = request.rules.has_policies.then_some(Resource::ROLLOUT_POLICIES);
        let known = [request.resource, request.controls].into_iter().chain(policies);
        Resource::find(known, name).ok_or_else(|| {
            let v1::GroupVersionResource {
                group,
                version,
                resource,
            } = name;
            format!("it writes {resource:?} of {group}/{version}, which its kind of workload does not")
        })
    };
    let not_owned = |resource| format!("it creates or deletes an object of {resource}");
    let write = match kind {
        Kind::CreateObject(create) if resource(&create.resource)? == request.controls => Write::Create,
        Kind::DeleteObject(delete) if resource(&delete.resource)? == request.controls => Write::Delete,
        Kind::PatchObject(patch) if resource(&patch.resource)? == Resource::ROLLOUT_POLICIES => {
            Write::PolicyStatus
        }
        Kind::PatchObject(patch) => {
            let is_own =
                resource(&patch.resource)? == request.resource && request.is_workload(patch.object.as_ref());
            match &*patch.subresource {
                "" if is_own => Write::Rollback,
                "status" if is_own => Write::Status,
                "" if resource(&patch.resource)? == request.controls => Write::Patch,
                subresource => {
                    let name = patch.object.as_ref().map_or("", |object| &object.name);
                    return Err(format!(
                        "it patches {name:?} with the subresource {subresource:?}"
                    ));
                }
            }
        }
        Kind::CreateObject(create) => return Err(not_owned(resource(&create.resource)?)),
        Kind::DeleteObject(delete) => return Err(not_owned(resource(&delete.resource)?)),
        _ => return Ok(None),
    };
    Ok(Some(write))
}

/// Whether a patch is of a RolloutPolicy.
pub(super) fn is_of_policy(patch: &v1::PatchObject) -> bool {
    let resource = patch.resource.as_ref();
    resource.is_some_and(|name| Resource::find([Resource::ROLLOUT_POLICIES], name).is_some())
}

/// The actions on objects of any resource, and what they do.
pub(super) fn writes<'a>(
    plan: &'a v1::Plan,
    request: &RequestContext<'_>,
) -> impl Iterator<Item = (&'a v1::Action, &'a Kind, Write)> {
    plan.actions().filter_map(|action| {
        let kind = action.kind.as_ref()?;
        // That no error occurs is checked before.
        let write = write(kind, request).ok().flatten()?;
        Some((action, kind, write))
    })
}
