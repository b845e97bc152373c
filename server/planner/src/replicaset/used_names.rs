//! Names that new pods must not get, though no pod of the snapshot has them, and what of them stays in the state.

use crate::{
    core::{
        names::MOST_REFUSED_NAMES,
        snapshot::{Deviation, Snapshot, State},
    },
    replicaset::{pod_names::PodNames, workload::ReplicaSet},
};

/// As many used names stay in the state as the ReplicaSet wants pods, or this many if that is more. Otherwise the state of a
/// ReplicaSet that never becomes complete would grow for ever.
const USED_OF_SMALL: usize = 1_000;

/// The numbers of used names.
pub(crate) fn used_numbers<'a>(state: &'a State, names: &'a PodNames) -> impl Iterator<Item = u32> + 'a {
    let used = state.used_pod_names.iter();
    used.filter_map(|used| names.number(&used.pod_name))
}

/// Whether the plan derives the names of its pods. After other pods have taken several names, the apiserver chooses: nobody can
/// compute such a name and take it beforehand.
pub(crate) fn are_derived(snapshot: &Snapshot<ReplicaSet>) -> bool {
    let collisions = &snapshot.state.pod_name_collisions;
    snapshot.options.deviates(Deviation::IdempotentCreates)
        && collisions
            .iter()
            .all(|known| !known.node_name.is_empty() || known.refused < MOST_REFUSED_NAMES)
}

/// Keeps names while pods are missing, and drops those that no new pod could get. `is_complete` is whether the ReplicaSet has as
/// many pods as it wants.
pub(crate) fn keep_needed(state: &mut State, snapshot: &Snapshot<ReplicaSet>, is_complete: bool) {
    if is_complete || !snapshot.options.deviates(Deviation::IdempotentCreates) {
        state.used_pod_names.clear();
        state.pod_name_collisions.clear();
        return;
    }
    state
        .pod_name_collisions
        .retain(|known| known.node_name.is_empty());
    if state.used_pod_names.is_empty() {
        return;
    }
    let names = PodNames::of(&snapshot.workload);
    let mut used: Vec<_> = std::mem::take(&mut state.used_pod_names)
        .into_iter()
        .filter(|used| used.node_name.is_empty())
        .filter_map(|used| Some((names.number(&used.pod_name)?, used)))
        .collect();
    // The lowest numbers were given first, so they are unused for the longest time.
    used.sort();
    used.dedup();
    let most = usize::try_from(snapshot.workload.replicas)
        .map_or(USED_OF_SMALL, |replicas| replicas.max(USED_OF_SMALL));
    let excess = used.len().saturating_sub(most);
    state.used_pod_names = used.into_iter().skip(excess).map(|(_, used)| used).collect();
    state.used_pod_names.sort();
}
