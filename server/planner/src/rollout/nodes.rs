//! What a rollout sees of a node, and what follows from that: whether the node is exempt, updated, available or failed (L-20 to L-25).

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::{
    core::snapshot::LabelView,
    rollout::{
        policy::{InMaintenance, NotReady, Spec},
        selection::StageSet,
        status::Resumed,
    },
};

/// A node that should run a pod.
#[derive(Debug, Clone)]
pub(crate) struct NodeFacts<'a> {
    /// metadata.name.
    pub(crate) name: &'a str,
    /// metadata.labels.
    pub(crate) labels: LabelView<'a>,
    /// Which stages select it.
    pub(crate) selected: StageSet,
    /// Whether the node is ready.
    pub(crate) readiness: Readiness,
    /// Whether the node is cordoned or in maintenance.
    pub(crate) in_maintenance: bool,
    /// The first pod of the update revision that is not being deleted.
    pub(crate) update_pod: Option<UpdatePod<'a>>,
    /// Whether there is a pod of another revision that is not being deleted.
    pub(crate) has_other_pod: bool,
    /// The index of the node's entry in the cluster view.
    pub(crate) entry: usize,
}

/// The Ready condition of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// `True`.
    Ready,
    /// Anything else, since this time.
    NotReady(Option<Timestamp>),
}

/// A pod of the update revision.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UpdatePod<'a> {
    /// metadata.name.
    pub(crate) name: &'a str,
    /// metadata.creationTimestamp.
    pub(crate) created: Option<Timestamp>,
    /// Whether it has been ready for minReadySeconds.
    pub(crate) available: bool,
    /// When the Ready condition changed last.
    pub(crate) ready_since: Option<Timestamp>,
    /// The most restarts of a container.
    pub(crate) restarts: u32,
}

impl UpdatePod<'_> {
    /// Since when the pod has not been available, for its deadline. `None` if nothing says that.
    fn unavailable_since(&self, deadline: SignedDuration, now: Timestamp) -> Option<Timestamp> {
        let created = self.created?;
        // A pod that crashes is ready for a moment, again and again. Then the time counts from its creation, and not from the last
        // change. One restart in a time as long as the deadline, such as that of its node, is no crash loop.
        let crashes = deadline.saturating_mul(i32::try_from(self.restarts).unwrap_or(i32::MAX))
            > now.duration_since(created);
        // The time of another clock may be ahead, and must not put the deadline off.
        let changed = self.ready_since.filter(|changed| !crashes && *changed <= now);
        Some(changed.map_or(created, |changed| created.max(changed)))
    }
}

/// Why a node has failed, or when it will have if nothing changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Health {
    /// It has no pod of the update revision, or an available one, or it is exempt.
    Fine,
    /// Its pod is not available yet. The node fails after this time.
    Waits(Duration),
    /// It failed; the message says why.
    Failed(String),
}

impl NodeFacts<'_> {
    pub(crate) fn is_ready(&self) -> bool {
        self.readiness == Readiness::Ready
    }

    /// Whether the node has a pod of the update revision.
    pub(crate) fn is_updated(&self) -> bool {
        self.update_pod.is_some()
    }

    /// Whether that pod is available.
    pub(crate) fn is_available(&self) -> bool {
        self.update_pod.is_some_and(|pod| pod.available)
    }

    /// Whether the node is neither waited for nor touched: it was not well before it got the update revision (L-20, L-23).
    pub(crate) fn is_exempt(&self, spec: &Spec) -> bool {
        let not_ready = match (self.readiness, self.update_pod) {
            (Readiness::Ready, _) => false,
            (Readiness::NotReady(_), None) => true,
            // Both times have seconds. Within the same second, or if one is missing, nothing shows that the node was not well before.
            (Readiness::NotReady(since), Some(pod)) => since
                .zip(pod.created)
                .is_some_and(|(since, created)| since < created),
        };
        let in_maintenance = self.in_maintenance && self.update_pod.is_none();
        (not_ready && spec.not_ready == NotReady::Exempt)
            || (in_maintenance && spec.in_maintenance == InMaintenance::Exempt)
    }

    /// Why the node is exempt, for people.
    pub(crate) fn why_exempt(&self) -> String {
        match self.readiness {
            Readiness::Ready => "it is cordoned or in maintenance".to_owned(),
            Readiness::NotReady(None) => "it is not ready".to_owned(),
            Readiness::NotReady(Some(since)) => {
                format!("it has not been ready since {}", in_seconds(since))
            }
        }
    }

    /// Whether an exempt node may be without an available pod because the rollout deleted its old pod, before the node became
    /// unwell. Then it uses the budget all the same (L-11). `disrupted` is since when rollouts may have done so.
    pub(crate) fn may_be_ours(&self, disrupted: Option<Timestamp>) -> bool {
        let Some(disrupted) = disrupted.filter(|_| !self.has_other_pod) else {
            return false;
        };
        match self.readiness {
            Readiness::Ready => true,
            Readiness::NotReady(since) => since.is_none_or(|since| since >= disrupted),
        }
    }

    /// Whether the node has a pod that is not being deleted.
    pub(crate) fn has_pod(&self) -> bool {
        self.has_other_pod || self.update_pod.is_some()
    }

    /// Whether the node has failed (L-25). Failures before a person let the revision go on do not count.
    pub(crate) fn health(&self, spec: &Spec, resumed: Option<&Resumed>, now: Timestamp) -> Health {
        let Some(pod) = self.update_pod.filter(|_| !self.is_exempt(spec)) else {
            return Health::Fine;
        };
        let resumed = resumed.and_then(|resumed| resumed.time);
        let is_new = resumed.is_none_or(|resumed| pod.created.is_none_or(|created| created > resumed));
        if let Some(most) = spec.max_restarts.filter(|most| pod.restarts > *most)
            && is_new
        {
            let restarts = pod.restarts;
            return Health::Failed(format!(
                "pod {} restarted {restarts} times, and maxRestarts is {most}",
                pod.name
            ));
        }
        if pod.available {
            return Health::Fine;
        }
        let deadline = SignedDuration::try_from(spec.progress_deadline).unwrap_or(SignedDuration::MAX);
        let Some(since) = pod.unavailable_since(deadline, now) else {
            return Health::Waits(spec.progress_deadline);
        };
        // A person who lets the revision go on gives every node one more deadline.
        let since = resumed.map_or(since, |resumed| since.max(resumed));
        let left = deadline.saturating_sub(now.duration_since(since));
        if left > SignedDuration::ZERO {
            return Health::Waits(left.unsigned_abs());
        }
        let since = in_seconds(since);
        Health::Failed(format!("pod {} has not been available since {since}", pod.name))
    }

    /// Since when the pod of the update revision has been available, if it is.
    pub(crate) fn available_since(&self, min_ready: SignedDuration, now: Timestamp) -> Option<Timestamp> {
        let pod = self.update_pod.filter(|pod| pod.available)?;
        // The clock of a node may be ahead. A time that is still to come would begin a soak anew in each plan.
        let is_past = |time: &Timestamp| *time <= now;
        let since = pod.ready_since.filter(is_past).or(pod.created.filter(is_past))?;
        since.saturating_add(min_ready).ok()
    }
}

/// A time in whole seconds: a message must not change from plan to plan.
pub(crate) fn in_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
