//! What one bucket of nodes and pods comes to for a workload: a few counts, and the places of note.
//!
//! In a cluster at rest nearly every node either has its one pod, new and available, or may not have one and has none. Of
//! such quiet places nothing is ever decided; they are only counted. So a plan walks the others, and a bucket that came
//! before, under the same circumstances, is not walked again ([`crate::memory`]).

use jiff::Timestamp;

use crate::{
    alike::Alike,
    claims::Claim,
    eligibility::Fit,
    patience::Patience,
    pods::{self, Age, Judge},
    snapshot::{Bucket, DaemonSet, Pod},
};

/// Places of which nothing is decided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Quiet {
    /// Nodes that should run a pod and do: one, which is live, carries the current hash and is available.
    pub(crate) running: usize,
    /// Nodes that should not run a pod and may keep the one, of the same kind, that they have.
    pub(crate) keeping: usize,
}

/// Which places are of note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Those of which something may be decided.
    Notable,
    /// All.
    Everything,
}

/// A bucket, seen by a workload.
#[derive(Debug)]
pub(crate) struct Sketch {
    /// Nodes that should run a pod.
    pub(crate) desired: usize,
    /// Places that are only counted.
    pub(crate) quiet: Quiet,
    /// The others, by name.
    pub(crate) spots: Vec<Spot>,
    /// Pods of the spots.
    pub(crate) pods: Vec<Seen>,
    /// Indices of the orphans that become the workload's.
    pub(crate) adopted: Vec<usize>,
    /// Indices of the pods that are let go.
    pub(crate) released: Vec<usize>,
    /// Since when the last of the quiet pods is ready: they are available as long as this suffices.
    settled: Option<Timestamp>,
    /// Since when the first of the pods is ready that are not available yet: they are not as long as this does not suffice.
    settling: Option<Timestamp>,
}

/// A place of note. Pods are indices into [`Sketch::pods`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spot {
    /// Its index in the bucket; `None`: there is no such node.
    pub(crate) node: Option<usize>,
    /// What the workload may do there.
    pub(crate) fit: Fit,
    /// Its first pod.
    pub(crate) start: usize,
    /// The first of its pods that do not occupy it any more.
    pub(crate) gone: usize,
    /// Behind its last pod.
    pub(crate) end: usize,
}

/// A pod of a place of note.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    /// Its index in the bucket.
    pub(crate) index: usize,
    /// Whether it is of the current template.
    pub(crate) age: Age,
}

impl Sketch {
    /// Looks at a bucket. `fits` are those of its nodes.
    pub(crate) fn of(
        bucket: &Bucket,
        fits: &[Fit],
        ds: &DaemonSet,
        judge: &Judge<'_>,
        detail: Detail,
        patience: Patience<'_>,
    ) -> Option<Self> {
        let mut walk = Walk {
            pods: &bucket.pods,
            next: 0,
            ds,
            judge,
            alike: Alike::default(),
            detail,
            patience,
            sketch: Self {
                desired: 0,
                quiet: Quiet::default(),
                spots: Vec::new(),
                pods: Vec::new(),
                adopted: Vec::new(),
                released: Vec::new(),
                settled: None,
                settling: None,
            },
        };
        // Pods without a target are claimed, and that is all (D-25).
        walk.claim_those_on(None)?;
        walk.sketch.pods.clear();
        for (index, (node, fit)) in bucket.nodes.iter().zip(fits).enumerate() {
            patience.tick(index)?;
            walk.missing_nodes_before(Some(&node.name))?;
            walk.node(index, &node.name, *fit)?;
        }
        walk.missing_nodes_before(None)?;
        Some(walk.sketch)
    }

    /// Whether the passing of time has changed nothing.
    pub(crate) fn holds(&self, judge: &Judge<'_>) -> bool {
        self.settled.is_none_or(|since| judge.suffices(since))
            && self.settling.is_none_or(|since| !judge.suffices(since))
    }

    /// Bytes of memory that it takes, with what its lists have left.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(self)
            + self.spots.capacity() * size_of::<Spot>()
            + self.pods.capacity() * size_of::<Seen>()
            + (self.adopted.capacity() + self.released.capacity()) * size_of::<usize>()
    }
}

/// A sketch in the making: a walk along the nodes and the pods of a bucket, both by name.
struct Walk<'a> {
    pods: &'a [Pod],
    /// Index of the next pod.
    next: usize,
    ds: &'a DaemonSet,
    judge: &'a Judge<'a>,
    /// Whose pods are, and what their labels say of their template.
    alike: Alike<(Claim, Age)>,
    detail: Detail,
    patience: Patience<'a>,
    sketch: Sketch,
}

impl<'a> Walk<'a> {
    /// The target of the next pod. Those without one come first, so that later there is none only at the end.
    fn target(&self) -> Option<&'a str> {
        self.pods.get(self.next).and_then(|pod| pod.target.node())
    }

    /// Claims the pods that come next and have this target; notes the workload's.
    fn claim_those_on(&mut self, target: Option<&str>) -> Option<()> {
        while let Some(pod) = self.pods.get(self.next).filter(|pod| pod.target.node() == target) {
            let index = self.next;
            self.patience.tick(index)?;
            self.next += 1;
            let (ds, judge) = (self.ds, self.judge);
            let find = || (pods::claim(ds, pod), judge.age_by_labels(pod));
            let (claim, age) = self.alike.find(pod, find);
            let owned = match claim {
                Claim::Owned => true,
                Claim::Adopt => {
                    self.sketch.adopted.push(index);
                    true
                }
                Claim::Release => {
                    self.sketch.released.push(index);
                    false
                }
                Claim::Ignore => false,
            };
            if owned {
                let age = judge.age(pod, age);
                self.sketch.pods.push(Seen { index, age });
            }
        }
        Some(())
    }

    /// Notes the places for which there are pods but no node, up to a name.
    fn missing_nodes_before(&mut self, end: Option<&str>) -> Option<()> {
        while let Some(name) = self.target() {
            if end.is_some_and(|end| name >= end) {
                break;
            }
            let start = self.sketch.pods.len();
            self.claim_those_on(Some(name))?;
            if self.sketch.pods.len() > start {
                self.note(None, Fit::NEITHER, start);
            }
        }
        Some(())
    }

    fn node(&mut self, index: usize, name: &str, fit: Fit) -> Option<()> {
        self.sketch.desired += usize::from(fit.run);
        let start = self.sketch.pods.len();
        self.claim_those_on(Some(name))?;
        if self.detail == Detail::Everything || !self.keep_quiet(fit, start) {
            self.note(Some(index), fit, start);
        }
        Some(())
    }

    fn note(&mut self, node: Option<usize>, fit: Fit, start: usize) {
        let sketch = &mut self.sketch;
        let (end, here) = (sketch.pods.len(), &sketch.pods[start..]);
        let gone = here
            .iter()
            .rev()
            .take_while(|seen| pods::is_gone(&self.pods[seen.index]));
        let gone = end - gone.count();
        for Seen { index, .. } in here {
            let pod = &self.pods[*index];
            if pod.ready && !self.judge.is_available(pod) {
                let first = sketch.settling.into_iter().chain(pod.ready_since).min();
                sketch.settling = first;
            }
        }
        sketch.spots.push(Spot {
            node,
            fit,
            start,
            gone,
            end,
        });
    }

    /// Counts a place whose pods begin at `start`, and forgets them, if nothing is to be decided about it.
    fn keep_quiet(&mut self, fit: Fit, start: usize) -> bool {
        let sketch = &mut self.sketch;
        match &sketch.pods[start..] {
            [] => !fit.run,
            [Seen { index, age }] if fit.keep && age.hash_new && age.updated => {
                let pod = &self.pods[*index];
                let quiet = pods::is_live(pod) && self.judge.is_available(pod);
                if quiet {
                    sketch.quiet.running += usize::from(fit.run);
                    sketch.quiet.keeping += usize::from(!fit.run);
                    if self.judge.waits() {
                        sketch.settled = sketch.settled.max(pod.ready_since);
                    }
                    sketch.pods.truncate(start);
                }
                quiet
            }
            _ => false,
        }
    }
}
