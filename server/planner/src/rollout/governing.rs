//! Which of several policies counts for a workload (L-1 to L-3).

use crate::{
    core::snapshot::Labels,
    rollout::policy::{Policy, Spec, Targets},
};

/// The policy of a workload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Governing<'a> {
    /// The policy.
    pub(crate) policy: &'a Policy,
    /// Its spec, or why it cannot be used: then nothing that runs is replaced (L-2).
    pub(crate) spec: Result<&'a Spec, &'a str>,
}

/// The policies of a workload.
#[derive(Debug, Clone, Default)]
pub(crate) struct Policies<'a> {
    /// The one that counts.
    pub(crate) governing: Option<Governing<'a>>,
    /// The others that target the workload.
    pub(crate) conflicting: Vec<&'a Policy>,
}

impl<'a> Policies<'a> {
    /// Finds the policies of a workload with this name and these labels. The oldest counts, then the first by name. A policy that is
    /// being deleted still counts: its finalizers may take long, and it is in force until it is gone.
    pub(crate) fn of(policies: &'a [Policy], name: &str, labels: &Labels) -> Self {
        let mut matching: Vec<&Policy> = policies
            .iter()
            .filter(|policy| targets(policy, name, labels))
            .collect();
        // One whose targets cannot be read comes last: it must not take a workload from a policy that can be used.
        matching.sort_by_key(|policy| (policy.targets.is_none(), policy.created, &policy.name));
        let mut matching = matching.into_iter();
        let governing = matching.next().map(|policy| Governing {
            policy,
            spec: policy.spec.as_ref().map_err(String::as_str),
        });
        Self {
            governing,
            conflicting: matching.collect(),
        }
    }
}

/// Whether a policy targets a workload.
fn targets(policy: &Policy, name: &str, labels: &Labels) -> bool {
    match &policy.targets {
        Some(Targets::Names(names)) => names.iter().any(|target| target == name),
        Some(Targets::Selector(selector)) => selector.selects(labels),
        None => true,
    }
}
