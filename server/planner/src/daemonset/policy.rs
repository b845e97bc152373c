//! The RolloutPolicy of a DaemonSet: asks [`crate::rollout`] what may be updated, and restricts the decisions of this module to that.

use std::{borrow::Cow, collections::BTreeMap};

use jiff::{SignedDuration, Timestamp};

use crate::{
    core::{
        json::{Json, Part, rewrite},
        snapshot::{BlockedEviction, IntOrString, PodView, Scope, Snapshot},
    },
    daemonset::{
        cluster_view::{ClusterView, NodeEntry},
        pod_classifier::OwnPod,
        revisions::{Resolution, effective_hash},
        rollout::limits::Limits,
        workload::{DaemonSet, RollingUpdate, UpdateStrategy},
    },
    rollout::{
        decide::{self, Goal, Recorded, Target},
        decision::{Admitted, Decision, NodeDecision, Observed},
        governing::{Governing, Policies},
        nodes::{NodeFacts, Readiness, UpdatePod},
        policy::{NotReady, OnFailure, Order, Policy, Spec, Unadmitted},
        selection::Stages,
        stages::scaled,
        status::RevisionRef,
        write,
    },
};

/// What is known about the policy before pods are classified.
#[derive(Debug)]
pub(crate) struct Preparation<'a> {
    policies: Policies<'a>,
    governing: Governing<'a>,
    spec: Cow<'a, Spec>,
    target: Target<'a>,
    goal: Goal,
    is_settled: bool,
}

impl<'a> Preparation<'a> {
    /// Finds the policy of a workload; `None` if it has none.
    pub(crate) fn of(snapshot: &'a Snapshot<DaemonSet>, resolution: &Resolution<'a>) -> Option<Self> {
        let ds = &snapshot.workload;
        let policies = Policies::of(&ds.rollout.policies, &ds.name, &ds.rollout.labels);
        let governing = policies.governing?;
        let revision = |hash: Cow<'_, str>, number| RevisionRef {
            hash: hash.into_owned(),
            number,
        };
        let target = Target {
            name: &ds.name,
            uid: &ds.uid,
            update: revision(Cow::Borrowed(&resolution.current_hash), resolution.current_number),
            others: resolution
                .old
                .iter()
                .map(|old| revision(effective_hash(old), old.number))
                .collect(),
            beside: snapshot.options.scope == Scope::Rollouts,
        };
        // A policy that cannot be used holds; its defaults decide what missing pods get.
        let spec = match governing.spec {
            Ok(spec) => Cow::Borrowed(spec),
            Err(_) => Cow::Owned(Spec::default()),
        };
        let recorded = Recorded::of(governing.policy, &spec, &target);
        let (goal, is_settled) = (recorded.goal(), recorded.is_settled());
        let goal = if governing.spec.is_err() {
            Goal::Forward
        } else {
            goal
        };
        Some(Self {
            policies,
            governing,
            spec,
            target,
            goal,
            is_settled,
        })
    }

    /// The hash that pods should have: that of the update revision, or during a rollback that of the stable one.
    pub(crate) fn goal_hash(&self) -> &str {
        match &self.goal {
            Goal::Forward => &self.target.update.hash,
            Goal::Back(stable) => &stable.hash,
        }
    }

    /// Whether the decision needs all nodes, not only those on which something is to be done.
    pub(crate) fn needs_all_nodes(&self) -> bool {
        !self.is_settled
    }

    /// The stages among which the nodes are divided. None if no rollout is going on.
    pub(crate) fn stages(&self) -> Stages<'_> {
        if self.is_settled {
            Stages::default()
        } else {
            Stages::of(&self.spec)
        }
    }

    /// Decides, now that the pods are known.
    pub(crate) fn decide(self, snapshot: &'a Snapshot<DaemonSet>, view: &ClusterView<'a>) -> Governed<'a> {
        let recorded = Recorded::of(self.governing.policy, &self.spec, &self.target);
        let observed = observe(snapshot, view, &recorded);
        let policy = self.governing.policy;
        let mut decision = match self.governing.spec {
            Ok(_) => decide::decide(policy, &recorded, &observed),
            Err(why) => decide::unusable(&recorded, &observed, why),
        };
        let is_unrecorded = write::is_full(policy, &decision.status);
        if is_unrecorded {
            decision = decide::unusable(&recorded, &observed, write::FULL);
        }
        Governed {
            policy,
            is_unrecorded,
            conflicting: self.policies.conflicting,
            limited: limited(&self.spec, &self.target),
            goal: self.goal,
            update_hash: self.target.update.hash,
            decision,
        }
    }
}

/// The policy of a DaemonSet, and its decision.
#[derive(Debug)]
pub(crate) struct Governed<'a> {
    /// The policy that counts.
    pub(crate) policy: &'a Policy,
    /// Whether its status has no place for the workload.
    pub(crate) is_unrecorded: bool,
    /// Others that target the DaemonSet.
    pub(crate) conflicting: Vec<&'a Policy>,
    /// What the policy asks for that this mode cannot do.
    pub(crate) limited: Vec<&'static str>,
    /// The decision.
    pub(crate) decision: Decision,
    goal: Goal,
    update_hash: String,
}

impl Governed<'_> {
    /// The hash of the stable revision.
    pub(crate) fn stable_hash(&self) -> Option<&str> {
        self.decision
            .status
            .stable_revision
            .as_ref()
            .map(|stable| stable.hash.as_str())
    }

    /// Whether nodes go back to the stable revision.
    pub(crate) fn rolls_back(&self) -> bool {
        self.goal != Goal::Forward
    }

    /// Whether a pod that is needed on this node gets the stable revision (L-6).
    pub(crate) fn creates_stable(&self, entry: usize) -> bool {
        match self.goal {
            Goal::Back(_) => true,
            Goal::Forward => self.decision.keeps_stable && !self.decision.admitted.has(entry),
        }
    }

    /// Whether the policy lets this old pod be replaced now.
    pub(crate) fn may_replace(
        &self,
        index: usize,
        entry: &NodeEntry<'_>,
        old: &OwnPod<'_>,
        resolution: &Resolution<'_>,
    ) -> bool {
        if !self.decision.replaces || self.node(index).is_exempt {
            return false;
        }
        match &self.goal {
            // Pods of yet other revisions are left alone.
            Goal::Back(_) => old.hash(resolution) == Some(self.update_hash.as_str()),
            Goal::Forward if entry.fit.run => self.decision.admitted.has(index),
            // A node that may keep its old pod but get no new one loses it at the end of the rollout.
            Goal::Forward => self.decision.admitted == Admitted::All,
        }
    }

    /// The stage or wave of a node; `None` if no rollout is going on.
    pub(crate) fn stage_of(&self, index: usize) -> Option<&str> {
        let wave = self.node(index).wave?;
        self.decision
            .status
            .stages
            .get(wave)
            .map(|stage| stage.name.as_str())
    }

    /// Why an old pod is not replaced, as far as the policy is the reason.
    pub(crate) fn why_held(
        &self,
        index: usize,
        entry: &NodeEntry<'_>,
        old: &OwnPod<'_>,
        resolution: &Resolution<'_>,
    ) -> Option<String> {
        let (name, node, status) = (&self.policy.name, self.node(index), &self.decision.status);
        let stage = self.stage_of(index).unwrap_or_default();
        if self.may_replace(index, entry, old, resolution) {
            return (self.decision.pace_left == Some(0)).then(|| {
                format!("RolloutPolicy {name} lets no further nodes begin until its pace allows it")
            });
        }
        Some(if node.is_exempt {
            format!(
                "RolloutPolicy {name} leaves {} alone: it is not ready or in maintenance",
                entry.name
            )
        } else if node.is_withheld {
            format!("RolloutPolicy {name} keeps it on the stable revision (partition)")
        } else if self.goal != Goal::Forward || self.decision.admitted.has(index) || stage.is_empty() {
            format!("RolloutPolicy {name}: {}", status.message)
        } else {
            format!(
                "RolloutPolicy {name}: its stage {stage} has not begun; {}",
                status.message
            )
        })
    }

    /// What the decision says about a node.
    pub(crate) fn node(&self, index: usize) -> NodeDecision {
        self.decision.nodes.of(index)
    }

    /// The limits of the present stage, within those of the workload (L-17).
    pub(crate) fn limits(&self, own: Limits, desired: usize) -> Limits {
        let stage = &self.decision.limits;
        let within = |own: i64, stage: Option<&IntOrString>| {
            let stage = stage.map(|limit| i64::try_from(scaled(limit, desired)).unwrap_or(i64::MAX));
            stage.map_or(own, |stage| own.min(stage))
        };
        if self.goal != Goal::Forward {
            return own;
        }
        if own.max_surge > 0 {
            Limits {
                max_surge: within(own.max_surge, stage.max_surge.as_ref()),
                ..own
            }
        } else {
            Limits {
                max_unavailable: within(own.max_unavailable, stage.max_unavailable.as_ref()),
                ..own
            }
        }
    }

    /// The strategy by which a DaemonSet with this policy is rolled out: with OnDelete it has no limits of its own, so those of the
    /// stage apply, or one node at a time (L-38).
    pub(crate) fn strategy<'s>(&self, own: Cow<'s, UpdateStrategy>) -> Cow<'s, UpdateStrategy> {
        match &*own {
            UpdateStrategy::RollingUpdate(_) => own,
            UpdateStrategy::OnDelete => {
                let stage = self.decision.limits.max_unavailable.clone();
                Cow::Owned(UpdateStrategy::RollingUpdate(Some(RollingUpdate {
                    max_unavailable: Some(stage.unwrap_or(IntOrString::Int(1))),
                    max_surge: None,
                })))
            }
        }
    }

    /// The key by which nodes are updated: nodes in maintenance first if the policy says so, then by name or by age (L-19).
    pub(crate) fn rank<'n>(
        &self,
        index: usize,
        name: &'n str,
        old: PodView<'_>,
    ) -> (bool, Option<Timestamp>, &'n str) {
        let age = (self.decision.order == Some(Order::OldestPod))
            .then(|| old.created())
            .flatten();
        (!self.node(index).is_first, age, name)
    }
}

/// The cluster, as a rollout sees it.
fn observe<'a>(
    snapshot: &'a Snapshot<DaemonSet>,
    view: &ClusterView<'a>,
    recorded: &Recorded<'_>,
) -> Observed<'a> {
    let not_ready = recorded.spec.not_ready;
    let counts_pods = recorded.stable().is_none();
    let mut nodes = Vec::with_capacity(view.entries.len());
    let mut pods: BTreeMap<&str, usize> = BTreeMap::new();
    let mut updated = view.settled.running;
    for (index, entry) in view.entries.iter().enumerate() {
        let here = view.pods(entry).iter().filter(|pod| !pod.pod.deleting());
        let (mut update_pod, mut has_other_pod) = (None, false);
        for pod in here {
            if counts_pods && let Some(hash) = pod.pod.labels().get(crate::HASH_LABEL) {
                *pods.entry(hash).or_default() += 1;
            }
            if pod.current() {
                update_pod = update_pod.or(Some(UpdatePod {
                    name: pod.pod.name(),
                    created: pod.pod.created(),
                    available: pod.available,
                    ready_since: pod.pod.ready_since(),
                    restarts: pod.pod.restarts(),
                }));
            } else {
                has_other_pod = true;
            }
        }
        let Some(node) = entry.node else { continue };
        // A node that is not ready gets taints that most DaemonSets do not tolerate. It should run no pod then, but keeps the one
        // that it has, and a rollout must not forget it.
        let fell_ill = entry.fit.keep
            && node.ready() != Some(true)
            && (update_pod.is_some() || has_other_pod && not_ready == NotReady::Exempt);
        if !entry.fit.run && !fell_ill {
            continue;
        }
        updated += usize::from(update_pod.is_some() && entry.fit.run);
        nodes.push(NodeFacts {
            name: node.name(),
            labels: node.labels(),
            selected: entry.selected,
            readiness: if node.ready() == Some(true) {
                Readiness::Ready
            } else {
                Readiness::NotReady(node.ready_since())
            },
            in_maintenance: node.unschedulable() || node.in_maintenance(),
            update_pod,
            has_other_pod,
            entry: index,
        });
    }
    Observed {
        now: snapshot.now,
        min_ready: SignedDuration::from_secs(snapshot.workload.min_ready_seconds.into()),
        nodes,
        desired: view.desired,
        updated,
        pods,
        measurements: &snapshot.workload.rollout.measurements,
    }
}

/// What a policy asks for, be it by default, that companion mode cannot do (L-38).
fn limited(spec: &Spec, target: &Target<'_>) -> Vec<&'static str> {
    if !target.beside {
        return Vec::new();
    }
    let surge = spec.stages.iter().any(|stage| stage.max_surge.is_some());
    let asked = [
        (surge, "maxSurge"),
        (spec.unadmitted == Unadmitted::Stable, "unadmitted: Stable"),
        (spec.on_failure == OnFailure::Rollback, "onFailure: Rollback"),
    ];
    asked
        .into_iter()
        .filter(|(is_asked, _)| *is_asked)
        .map(|(_, field)| field)
        .collect()
}

/// The DaemonSet with the template of an earlier revision, for the manifest of its pods. `None` if there is no such revision, or if it
/// has no template.
pub(crate) fn at_revision(ds: &DaemonSet, resolution: &Resolution<'_>, hash: &str) -> Option<DaemonSet> {
    let revision = resolution.old.iter().find(|old| effective_hash(old) == hash)?;
    let template = revision.data.part().get("spec")?.get("template")?;
    template.is_object().then(|| {
        let mut text = String::new();
        // A revision's data says that the template replaces the present one.
        rewrite(&mut text, template, &["$patch"], |_, _, _| {});
        let spec = template.get("spec").unwrap_or(Part::EMPTY);
        let mut ds = ds.clone();
        ds.scheduling.host_network = spec
            .get("hostNetwork")
            .is_some_and(|value| value.text() == "true");
        // The label with the template generation would make these pods count as updated.
        ds.annotations.clear();
        ds.template = Json::written(text);
        ds
    })
}

/// Drops entries of pods that are not old any more, and returns the others with their nodes.
pub(crate) fn keep_blocked<'a>(
    evictions: &mut Vec<BlockedEviction>,
    view: &ClusterView<'a>,
) -> Vec<(BlockedEviction, &'a str)> {
    if evictions.is_empty() {
        return Vec::new();
    }
    let mut old = BTreeMap::new();
    for entry in &view.entries {
        let pods = view
            .pods(entry)
            .iter()
            .filter(|pod| pod.is_live() && !pod.updated());
        old.extend(pods.map(|pod| (pod.pod.uid(), entry.name)));
    }
    evictions.retain(|eviction| old.contains_key(eviction.pod_uid.as_str()));
    let node = |eviction: &BlockedEviction| old.get(eviction.pod_uid.as_str()).copied().unwrap_or_default();
    evictions
        .iter()
        .map(|eviction| (eviction.clone(), node(eviction)))
        .collect()
}
