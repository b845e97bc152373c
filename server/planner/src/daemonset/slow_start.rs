//! Creates while earlier creates are outstanding (deviation `SLOW_START_ACROSS_PLANS`). What does not depend on nodes is in
//! [`crate::core::slow_start`].

use std::collections::BTreeSet;

use crate::{
    core::{
        plan::Reason,
        slow_start,
        snapshot::{Expectations, Options},
    },
    daemonset::{cluster_view::ClusterView, pod_changes::PodChanges},
};

/// Whether the executor plans again at once after so many creates, because the burst may have cut further ones.
pub(crate) fn plan_again_at_once(creates: usize, options: &Options) -> bool {
    creates >= options.burst && slow_start::may_plan_again_at_once(options)
}

/// The nodes of outstanding creates, if creates on other nodes may be planned meanwhile. `None` otherwise.
pub(crate) fn unseen<'a>(expected: &'a Expectations, options: &Options) -> Option<BTreeSet<&'a str>> {
    slow_start::may_create_meanwhile(expected, options).then(|| {
        let nodes = expected.creates.iter().map(|create| create.node_name.as_str());
        nodes.collect()
    })
}

/// The changes of placement that may be made while creates for the nodes in `unseen` are outstanding: creates on other nodes that
/// have no pod. All other changes depend on pods that the cache does not show yet.
pub(crate) fn creates_on_other_nodes<'a>(
    mut changes: PodChanges<'a>,
    view: &ClusterView<'a>,
    unseen: &BTreeSet<&str>,
) -> PodChanges<'a> {
    changes.deletes.clear();
    changes.creates.retain(|create| {
        create.reason == Reason::NodeWithoutPod && !unseen.contains(view.entries[create.entry].name)
    });
    changes
}
