//! The rolling update with surge (chapter 7): the new pod comes before the old one goes.

use crate::{
    picture::{Picture, Place},
    plan::Reason,
    pods::OwnPod,
    rollout::{Content, Limits, Step},
    snapshot::{Deviation, Options},
};

/// The next step. maxUnavailable plays no part.
pub(crate) fn step<'a>(picture: &Picture<'a>, limits: Limits, options: &Options) -> Step<'a> {
    let mut survey = Survey {
        step: Step {
            limits,
            ..Step::default()
        },
        available: picture.quiet.running + picture.quiet.keeping,
        ..Survey::default()
    };
    for (index, place, pods) in picture.entries() {
        survey.weigh(index, place, Content::of(pods), options);
    }
    survey.finish(picture.desired)
}

#[derive(Default)]
struct Survey<'p, 'a> {
    step: Step<'a>,
    /// Entries with a pod that is available.
    available: usize,
    /// Places that may get a second pod.
    candidates: Vec<usize>,
    /// Available old pods on nodes that may not get a new one.
    sunset: Vec<(&'p Place<'a>, &'p OwnPod<'a>)>,
}

impl<'p, 'a> Survey<'p, 'a> {
    /// Looks at one entry (D-45).
    fn weigh(&mut self, index: usize, place: &'p Place<'a>, content: Content<'p, 'a>, options: &Options) {
        if let Content::Old(pod) | Content::New(pod) | Content::Both { old: pod, .. } = content {
            self.available += usize::from(pod.available);
        }
        self.step.surging += i64::from(content.is_surging());
        match content {
            Content::Both { new, old } if new.available => {
                self.step
                    .moves
                    .delete_beside(place, old, Reason::SurgeNewAvailable, new);
            }
            Content::Old(_) if place.node.is_none() => {
                if options.deviates(Deviation::SurgeIgnoresMissingNodes) {
                    self.step.deviations.insert(Deviation::SurgeIgnoresMissingNodes);
                } else {
                    let error = || {
                        format!(
                            "couldn't get node for nodeName {:?}: it does not exist",
                            place.name
                        )
                    };
                    self.step.error.get_or_insert_with(error);
                }
            }
            Content::Old(old) => match (old.available, place.fit.run) {
                (false, true) => self.step.moves.create(index, Reason::SurgeOldUnavailable),
                (false, false) => self.step.moves.delete(place, old, Reason::RolloutOldUnavailable),
                (true, true) => self.candidates.push(index),
                (true, false) => self.sunset.push((place, old)),
            },
            _ => {}
        }
    }

    /// Spends the budget (D-46, D-47).
    fn finish(mut self, desired: usize) -> Step<'a> {
        let room = self.step.limits.max_surge.saturating_sub(self.step.surging);
        for index in self
            .candidates
            .into_iter()
            .take(usize::try_from(room).unwrap_or(0))
        {
            self.step.moves.create(index, Reason::SurgeWithinBudget);
        }
        for (place, old) in self
            .sunset
            .into_iter()
            .take(self.available.saturating_sub(desired))
        {
            self.step.moves.delete(place, old, Reason::RolloutNodeSunset);
        }
        self.step.moves.budget = Some((self.step.surging, self.step.limits.max_surge));
        if self.step.error.is_some() {
            self.step.moves = crate::moves::Moves::default();
        }
        self.step
    }
}
