//! Pods to create and to delete, and the actions for them.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
};

use crate::{
    core::{
        identities::Identities,
        names,
        plan::{Action, ActionKind, EventType, Reason},
        pod_claims, pod_template,
        snapshot::{Deviation, PodNameCollision, PodView, Snapshot},
    },
    daemonset::{
        cluster_view::{ClusterView, NodeEntry},
        manifest::{self, PodNaming},
        pod_classifier::OwnPod,
        workload::DaemonSet,
    },
};

/// Which part of a rolling update's budget a change takes, counted from 1; the ones before it are in use. Used in messages.
pub(crate) type Slot = NonZeroU32;

/// A pod to create.
#[derive(Debug, Clone)]
pub(crate) struct Create {
    /// Index of the node's entry in the cluster view.
    pub(crate) entry: usize,
    /// Why.
    pub(crate) reason: Reason,
    /// What it takes of the budget.
    pub(crate) slot: Option<Slot>,
}

/// A pod to delete.
#[derive(Debug, Clone)]
pub(crate) struct Delete<'a> {
    /// The pod.
    pub(crate) pod: PodView<'a>,
    /// The node that it is on or meant for.
    pub(crate) node: &'a str,
    /// Why.
    pub(crate) reason: Reason,
    /// The pod that stays on the node instead; used in the message.
    pub(crate) kept: Option<PodView<'a>>,
    /// What it takes of the budget.
    pub(crate) slot: Option<Slot>,
}

/// Creates and deletes, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct PodChanges<'a> {
    /// Creates.
    pub(crate) creates: Vec<Create>,
    /// Deletes.
    pub(crate) deletes: Vec<Delete<'a>>,
    /// The budget of a rolling update: maxUnavailable or maxSurge as a number of nodes. Used in messages.
    pub(crate) budget: i64,
}

impl<'a> PodChanges<'a> {
    /// Whether there are neither creates nor deletes.
    pub(crate) fn is_empty(&self) -> bool {
        self.creates.is_empty() && self.deletes.is_empty()
    }

    /// Adds a create.
    pub(crate) fn create(&mut self, entry: usize, reason: Reason) {
        self.creates.push(Create {
            entry,
            reason,
            slot: None,
        });
    }

    /// Adds a create of a rolling update within its budget.
    pub(crate) fn create_within_budget(&mut self, entry: usize, reason: Reason, slot: Slot) {
        self.creates.push(Create {
            entry,
            reason,
            slot: Some(slot),
        });
    }

    /// Adds a delete.
    pub(crate) fn delete(&mut self, entry: &NodeEntry<'a>, pod: &OwnPod<'a>, reason: Reason) {
        self.deletes.push(Delete {
            pod: pod.pod,
            node: entry.name,
            reason,
            kept: None,
            slot: None,
        });
    }

    /// Adds a delete of a rolling update within its budget.
    pub(crate) fn delete_within_budget(
        &mut self,
        entry: &NodeEntry<'a>,
        pod: &OwnPod<'a>,
        reason: Reason,
        slot: Slot,
    ) {
        self.deletes.push(Delete {
            pod: pod.pod,
            node: entry.name,
            reason,
            kept: None,
            slot: Some(slot),
        });
    }

    /// Adds a delete of a pod that goes because `kept` stays.
    pub(crate) fn delete_beside(
        &mut self,
        entry: &NodeEntry<'a>,
        pod: &OwnPod<'a>,
        reason: Reason,
        kept: &OwnPod<'a>,
    ) {
        self.deletes.push(Delete {
            pod: pod.pod,
            node: entry.name,
            reason,
            kept: Some(kept.pod),
            slot: None,
        });
    }

    /// Drops creates and deletes beyond the burst. Later plans decide them again (D-75).
    pub(crate) fn cut(&mut self, burst: usize) {
        self.creates.truncate(burst);
        self.deletes.truncate(burst);
    }

    /// How many nodes a rollout begins with these changes: those whose old pod is deleted to be replaced, or that get a second pod.
    pub(crate) fn begun(&self) -> usize {
        let deletes = self.deletes.iter().map(|delete| delete.reason);
        let reasons = deletes.chain(self.creates.iter().map(|create| create.reason));
        let begins = |reason: &Reason| {
            matches!(
                reason,
                Reason::RolloutOldUnavailable
                    | Reason::RolloutWithinBudget
                    | Reason::SurgeOldUnavailable
                    | Reason::SurgeWithinBudget
            )
        };
        reasons.filter(begins).count()
    }

    /// The delete actions. If a policy `evicts`, pods that are replaced are evicted.
    pub(crate) fn delete_actions(&self, uid_precondition: bool, evicts: bool) -> Vec<Action> {
        let action = |delete: &Delete<'_>| {
            let (pod, node_name) = (pod_claims::reference(delete.pod), delete.node.to_owned());
            Action {
                reason: delete.reason,
                message: delete_message(delete, self.budget),
                kind: if evicts && is_replacement(delete.reason) {
                    ActionKind::EvictPod { pod, node_name }
                } else {
                    ActionKind::DeletePod {
                        pod,
                        node_name,
                        uid_precondition,
                    }
                },
            }
        };
        self.deletes.iter().map(action).collect()
    }

    /// The create actions.
    pub(crate) fn create_actions<'n>(
        &self,
        view: &'n ClusterView<'_>,
        naming: &mut Naming<'n>,
    ) -> Vec<Action> {
        let action = |create: &Create| {
            let entry = &view.entries[create.entry];
            Action {
                reason: create.reason,
                message: create_message(create, entry, view.pods(entry), self.budget),
                kind: ActionKind::CreatePod {
                    pod_name: naming.name(entry.name),
                    node_name: entry.name.to_owned(),
                },
            }
        };
        self.creates.iter().map(action).collect()
    }
}

/// Whether a pod that runs is deleted because another one is to take its place.
fn is_replacement(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::RolloutOldUnavailable
            | Reason::RolloutWithinBudget
            | Reason::RolloutNodeSunset
            | Reason::SurgeNewAvailable
            | Reason::RevisionRejected
    )
}

/// How the pods of these creates get their names.
pub(crate) fn naming_of(creates: &[Action]) -> PodNaming {
    let is_generated = |action: &Action| matches!(&action.kind, ActionKind::CreatePod { pod_name, .. } if pod_name.is_empty());
    if creates.iter().any(is_generated) {
        PodNaming::SomeGenerated
    } else {
        PodNaming::AllDerived
    }
}

/// The event about the delete of a finished pod (D-95, D-96); `None` for other deletes.
pub(crate) fn finished_event(namespace: &str, delete: &Delete<'_>) -> Option<Action> {
    let (event_type, reason, what, intent) = match delete.reason {
        Reason::PodFailed => (EventType::Warning, "FailedDaemonPod", "failed", "kill"),
        Reason::PodSucceeded => (EventType::Normal, "SucceededDaemonPod", "succeeded", "delete"),
        _ => return None,
    };
    let (pod, node) = (delete.pod.name(), delete.node);
    Some(Action {
        reason: delete.reason,
        message: format!("pod {pod} on {node} {what}"),
        kind: ActionKind::EmitEvent {
            event_type,
            reason,
            message: format!(
                "Found {what} daemon pod {namespace}/{pod} on node {node}, will try to {intent} it"
            ),
        },
    })
}

/// Whether created pods would have no labels. Then none are created (D-66).
pub(crate) fn lack_labels(ds: &DaemonSet, hash: &str) -> bool {
    hash.is_empty() && !pod_template::has_labels(&ds.template) && manifest::template_generation(ds).is_none()
}

/// Derives the names of pods. A repeated decision gives the same name, even if the caches show other changes on the node meanwhile.
/// A new pod never has the name of the pod that it replaces.
pub(crate) struct Naming<'a> {
    snapshot: &'a Snapshot<DaemonSet>,
    hash: &'a str,
    derived: bool,
    /// The index of the snapshot's pods; built when first needed.
    identities: Option<Cow<'a, Identities>>,
    /// By node: how many names were taken, and how many of these the apiserver rejected.
    collisions: BTreeMap<&'a str, (u32, u32)>,
    /// Names of pods that are gone.
    used: BTreeSet<&'a str>,
}

impl<'a> Naming<'a> {
    /// For pods of the revision with this hash. `identities` is the index of the snapshot's pods, if there is one.
    pub(crate) fn new(
        snapshot: &'a Snapshot<DaemonSet>,
        hash: &'a str,
        identities: Option<&'a Identities>,
    ) -> Self {
        let derived = snapshot.options.deviates(Deviation::IdempotentCreates);
        let collisions = snapshot.state.pod_name_collisions.iter();
        let used = snapshot.state.used_pod_names.iter();
        Self {
            snapshot,
            hash,
            derived,
            identities: identities.map(Cow::Borrowed),
            collisions: collisions
                .map(|known| (known.node_name.as_str(), (known.count, known.refused)))
                .collect(),
            used: used.map(|used| used.pod_name.as_str()).collect(),
        }
    }

    /// The name of the next pod on a node; empty if the apiserver chooses it.
    fn name(&mut self, node: &'a str) -> String {
        let (mut salt, refused) = self.collisions.get(node).copied().unwrap_or_default();
        if !self.derived || refused >= names::MOST_REFUSED_NAMES {
            return String::new();
        }
        let snapshot = self.snapshot;
        let identities = self
            .identities
            .get_or_insert_with(|| Cow::Owned(Identities::of(&snapshot.buckets)));
        loop {
            let name = names::pod_name(snapshot.workload.owner(), node, self.hash, salt);
            let is_taken = identities.is_taken(&name, &snapshot.buckets);
            if !is_taken && !self.used.contains(name.as_str()) {
                break name;
            }
            salt = salt.wrapping_add(1);
            if is_taken {
                // Record the taken name. When the other pod is gone, the next plan must not use this name while the pod of this
                // plan may exist without being in the cache. For used names this is not needed: the executor keeps them long
                // enough.
                self.collisions.insert(node, (salt, refused));
            }
        }
    }

    /// The counts of taken names, of this plan and before.
    pub(crate) fn into_collisions(self) -> Vec<PodNameCollision> {
        let collisions = self.collisions.into_iter();
        collisions
            .map(|(node, (count, refused))| PodNameCollision {
                node_name: node.to_owned(),
                count,
                refused,
            })
            .collect()
    }
}

/// Why a pod is created, for people.
pub(crate) fn create_message(
    create: &Create,
    entry: &NodeEntry<'_>,
    pods: &[OwnPod<'_>],
    budget: i64,
) -> String {
    let node = entry.name;
    let pod = pods
        .iter()
        .find(|pod| !pod.pod.deleting())
        .or(pods.first())
        .map_or("its pod", |pod| pod.pod.name());
    match create.reason {
        Reason::NodeWithoutLivePod => {
            format!("{node} has no pod that runs: {pod} is finished or being deleted")
        }
        Reason::SurgeOldUnavailable => format!("{node}: {pod} is outdated and not available"),
        Reason::RevisionRejected => {
            format!(
                "{node}: {pod} has a rejected revision ({})",
                said(create.slot, budget)
            )
        }
        Reason::SurgeWithinBudget => {
            format!("{node}: {pod} is outdated ({})", said(create.slot, budget))
        }
        _ => format!("{node} has no pod of this workload"),
    }
}

/// Why a pod is deleted, for people.
pub(crate) fn delete_message(delete: &Delete<'_>, budget: i64) -> String {
    let (pod, node) = (delete.pod.name(), delete.node);
    // Cut the name: many messages may repeat it. The names of pods that a DaemonSet created are not longer.
    let kept = delete.kept.map_or("another pod", |pod| {
        &pod.name()[..pod.name().floor_char_boundary(names::MAX_POD_NAME)]
    });
    match delete.reason {
        Reason::NodeNotEligible => format!("{pod} is on {node}, which must not run this workload"),
        Reason::PodFailed => format!("{pod} on {node} failed"),
        Reason::PodSucceeded => format!("{pod} on {node} succeeded, but has to run"),
        Reason::SurgeOldNotReady => format!("{pod} on {node} is outdated and not ready; {kept} replaces it"),
        Reason::SurgeNewAvailable => {
            format!("{pod} on {node} is outdated; its replacement {kept} is available")
        }
        Reason::NodeMissing => format!("{pod} waits for {node}, which does not exist"),
        Reason::RolloutOldUnavailable => format!("{pod} on {node} is outdated and not available"),
        Reason::RevisionRejected if delete.slot.is_none() => {
            format!("{pod} on {node} has a rejected revision and is not available")
        }
        Reason::RevisionRejected => {
            format!(
                "{pod} on {node} has a rejected revision ({})",
                said(delete.slot, budget)
            )
        }
        Reason::RolloutWithinBudget => {
            format!("{pod} on {node} is outdated ({})", said(delete.slot, budget))
        }
        Reason::RolloutNodeSunset => {
            format!("{pod} is outdated and {node} may not get a new one; enough others are available")
        }
        _ => format!("{node} has more pods than it should; {kept} stays"),
    }
}

fn said(slot: Option<Slot>, budget: i64) -> String {
    slot.map_or_else(
        || "within the budget".to_owned(),
        |slot| format!("slot {slot} of {budget}"),
    )
}

/// The slots after those that are in use.
pub(crate) fn slots_after(used: i64) -> impl Iterator<Item = Slot> {
    let first = u32::try_from(used.saturating_add(1)).unwrap_or(1);
    (first..).filter_map(Slot::new)
}
