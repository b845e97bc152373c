//! Which pods to delete when there are too many.
//!
//! Upstream's comparison is not consistent: of three pods, each may come before the next, in a circle. So the order has two steps. The
//! first sorts by what can be compared consistently. The second sorts each run of equal pods by insertion, as upstream sorts few
//! pods, from a fixed order.

use std::cmp::{Ordering, Reverse};

use jiff::Timestamp;

use crate::{
    core::{
        cancellation::Cancellation,
        pod_claims::is_adopted,
        snapshot::{PodPhase, PodView, Snapshot, Target},
    },
    replicaset::workload::ReplicaSet,
};

/// A pod to delete.
#[derive(Debug)]
pub(crate) struct Victim<'a> {
    /// The pod.
    pub(crate) pod: PodView<'a>,
    /// Why it goes before the first pod that stays; `None` if no pod stays.
    why: Option<Difference>,
}

impl Victim<'_> {
    /// Why the pod is deleted, for people. The ReplicaSet has `has` pods and wants `wants`.
    pub(crate) fn message(&self, has: usize, wants: i32) -> String {
        match self.why {
            Some(why) => format!("there are {has} pods, and {wants} are wanted; {}", why.sentence()),
            None => format!("there are {has} pods, and {wants} are wanted"),
        }
    }
}

/// The first rule by which one pod goes before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Difference {
    /// It is not bound to a node.
    Unassigned,
    /// Its phase.
    Phase(PodPhase),
    /// It is not ready.
    NotReady,
    /// It has this deletion cost, which is lower.
    Cost(i32),
    /// Its node has so many related pods, which are more.
    Related(u32),
    /// It became ready more recently, or nobody knows when.
    ReadyTime,
    /// A container restarted so often, which is more.
    Restarts(u32),
    /// A sidecar restarted so often, which is more.
    SidecarRestarts(u32),
    /// It is younger.
    Younger,
    /// Only the uid, or nothing.
    Uid,
}

impl Difference {
    /// The rule as a part of a sentence about the pod that goes first.
    pub(crate) fn sentence(self) -> String {
        match self {
            Self::Unassigned => "it is not bound to a node".to_owned(),
            Self::Phase(PodPhase::Pending) => "it is pending".to_owned(),
            Self::Phase(_) => "its phase is unknown".to_owned(),
            Self::NotReady => "it is not ready".to_owned(),
            Self::Cost(cost) => format!("its deletion cost is lower ({cost})"),
            Self::Related(pods) => format!("its node has more related pods ({pods})"),
            Self::ReadyTime => "it became ready more recently".to_owned(),
            Self::Restarts(restarts) => format!("its containers restarted more often ({restarts} times)"),
            Self::SidecarRestarts(restarts) => {
                format!("its sidecars restarted more often ({restarts} times)")
            }
            Self::Younger => "it is younger".to_owned(),
            Self::Uid => "the others are alike, and the uids decide".to_owned(),
        }
    }
}

/// Chooses `count` of these active pods, in the order in which they are deleted. `None` if cancelled.
pub(crate) fn choose<'a>(
    snapshot: &Snapshot<ReplicaSet>,
    mut active: Vec<PodView<'a>>,
    count: usize,
    cancellation: Cancellation<'_>,
) -> Option<Vec<Victim<'a>>> {
    if count >= active.len() {
        //
        active.sort_by_key(|pod| pod.name());
        let all = active.into_iter();
        return Some(all.map(|pod| Victim { pod, why: None }).collect());
    }
    let ranked = rank(snapshot, active, cancellation)?;
    let (victims, kept) = ranked.split_at(count);
    let victim = |victim: &Candidate<'a>| Victim {
        pod: victim.pod,
        why: kept.first().map(|kept| victim.difference(kept)),
    };
    Some(victims.iter().map(victim).collect())
}

/// A pod with all that its rank depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate<'a> {
    /// The pod.
    pub(crate) pod: PodView<'a>,
    first: FirstKey,
    second: SecondKey,
    /// The first bytes of the uid, which decide most comparisons of uids.
    uid_start: u64,
}

/// The rules 1 to 5 and the consistent part of rule 6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FirstKey {
    is_assigned: bool,
    phase: u8,
    is_ready: bool,
    cost: i32,
    related: Reverse<u32>,
    ready: Age,
}

/// Rule 7 and the consistent part of rule 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SecondKey {
    restarts: Reverse<u32>,
    sidecar_restarts: Reverse<u32>,
    created: Age,
}

/// How long ago something was, as a power of two in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Age {
    /// Nobody knows.
    Unknown,
    /// Now, or in the future.
    None,
    /// This power of two.
    Power(u32),
}

impl Age {
    fn of(time: Option<Timestamp>, now: Timestamp) -> Self {
        let Some(time) = time else {
            return Self::Unknown;
        };
        // Upstream counts in 64 bits, too.
        let nanoseconds = now.duration_since(time).as_nanos().min(i64::MAX.into());
        if nanoseconds <= 0 {
            Self::None
        } else {
            Self::Power(nanoseconds.ilog2())
        }
    }
}

impl<'a> Candidate<'a> {
    fn new(pod: PodView<'a>, snapshot: &Snapshot<ReplicaSet>) -> Self {
        let (now, node) = (snapshot.now, bound_node(pod));
        let related = &snapshot.workload.related_pods;
        let found = related.binary_search_by(|(name, _)| name.as_str().cmp(node));
        Self {
            pod,
            first: FirstKey {
                is_assigned: !node.is_empty(),
                phase: match pod.phase() {
                    PodPhase::Unknown => 1,
                    PodPhase::Running => 2,
                    _ => 0,
                },
                is_ready: pod.ready(),
                cost: if snapshot.options.pod_deletion_cost {
                    pod.deletion_cost()
                } else {
                    0
                },
                related: Reverse(found.map_or(0, |index| related[index].1)),
                ready: if pod.ready() {
                    Age::of(pod.ready_since(), now)
                } else {
                    Age::Unknown
                },
            },
            second: SecondKey {
                restarts: Reverse(pod.restarts()),
                sidecar_restarts: Reverse(pod.sidecar_restarts()),
                created: Age::of(pod.created(), now),
            },
            uid_start: {
                let bytes = pod.uid().bytes().chain(std::iter::repeat(0)).take(8);
                bytes.fold(0, |start, byte| start << 8 | u64::from(byte))
            },
        }
    }

    /// The order of pods with equal first keys from which the second step starts: adopted pods come after those that were owned
    /// before, and otherwise the uids decide.
    fn start(&self, other: &Self) -> Ordering {
        is_adopted(self.pod)
            .cmp(&is_adopted(other.pod))
            .then_with(|| self.uid_start.cmp(&other.uid_start))
            .then_with(|| self.pod.uid().cmp(other.pod.uid()))
    }

    /// Whether both are ready, but not since the same time.
    fn differs_in_ready_time(&self, other: &Self) -> bool {
        self.pod.ready() && other.pod.ready() && self.pod.ready_since() != other.pod.ready_since()
    }

    /// Whether this pod comes strictly before another one with an equal first key, by the rules 6 to 8 as they stand.
    fn is_before(&self, other: &Self) -> bool {
        let by_uid = self.pod.uid() < other.pod.uid();
        if self.differs_in_ready_time(other) {
            return by_uid;
        }
        if self.second != other.second {
            return self.second < other.second;
        }
        self.pod.created() != other.pod.created() && by_uid
    }

    /// The first rule by which this pod goes before another one.
    pub(crate) fn difference(&self, other: &Self) -> Difference {
        let (one, two) = (&self.first, &other.first);
        let (later, sooner) = (&other.second, &self.second);
        if one.is_assigned != two.is_assigned {
            Difference::Unassigned
        } else if one.phase != two.phase {
            Difference::Phase(self.pod.phase())
        } else if one.is_ready != two.is_ready {
            Difference::NotReady
        } else if one.cost != two.cost {
            Difference::Cost(one.cost)
        } else if one.related != two.related {
            Difference::Related(one.related.0)
        } else if one.ready != two.ready {
            Difference::ReadyTime
        } else if self.differs_in_ready_time(other) {
            Difference::Uid
        } else if sooner.restarts != later.restarts {
            Difference::Restarts(sooner.restarts.0)
        } else if sooner.sidecar_restarts != later.sidecar_restarts {
            Difference::SidecarRestarts(sooner.sidecar_restarts.0)
        } else if sooner.created != later.created {
            Difference::Younger
        } else {
            Difference::Uid
        }
    }
}

/// spec.nodeName; empty if the pod is not bound.
fn bound_node(pod: PodView<'_>) -> &str {
    match pod.target() {
        Target::Bound(node) => node,
        Target::Meant(_) | Target::Nowhere => "",
    }
}

/// All these active pods in the order in which they would be deleted. `None` if cancelled.
pub(crate) fn rank<'a>(
    snapshot: &Snapshot<ReplicaSet>,
    active: Vec<PodView<'a>>,
    cancellation: Cancellation<'_>,
) -> Option<Vec<Candidate<'a>>> {
    let mut all: Vec<_> = active
        .into_iter()
        .map(|pod| Candidate::new(pod, snapshot))
        .collect();
    cancellation.check()?;
    all.sort_by(|a, b| a.first.cmp(&b.first).then_with(|| a.start(b)));
    for run in all.chunk_by_mut(|a, b| a.first == b.first) {
        sort_run(run, cancellation)?;
    }
    Some(all)
}

/// Sorts pods with equal first keys by the rules 6 to 8, from the order that they are in. `None` if cancelled.
///
/// The result is that of [`insertion_sort`] alone, which would take too long for many pods.
fn sort_run(run: &mut [Candidate<'_>], cancellation: Cancellation<'_>) -> Option<()> {
    let is_same_time = |a: &Candidate<'_>, b: &Candidate<'_>| !a.differs_in_ready_time(b);
    if run.is_sorted_by(is_same_time) {
        // Rule 6 decides nothing.
        run.sort_by_key(|candidate| candidate.second);
        return insertion_sort(run, 1, cancellation);
    }
    // Pods that were owned before are in the order of their uids, by which rule 6 decides. So no pod moves past one that is ready
    // since another time, and within a group of one time only the second keys matter.
    let owned = run.partition_point(|candidate| !is_adopted(candidate.pod));
    for group in run[..owned].chunk_by_mut(is_same_time) {
        group.sort_by_key(|candidate| candidate.second);
    }
    insertion_sort(run, owned.max(1), cancellation)
}

/// Sorts by insertion: a pod moves left only while it comes strictly before its neighbour. The pods before `from` are sorted.
/// `None` if cancelled.
fn insertion_sort(run: &mut [Candidate<'_>], from: usize, cancellation: Cancellation<'_>) -> Option<()> {
    for index in from..run.len() {
        cancellation.tick(index)?;
        let (sorted, rest) = run.split_at(index);
        let steps = sorted
            .iter()
            .rev()
            .take_while(|neighbour| rest[0].is_before(neighbour))
            .count();
        run[index - steps..=index].rotate_right(1);
    }
    Some(())
}
