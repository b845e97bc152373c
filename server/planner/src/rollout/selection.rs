//! Which stages of a policy select a node by its labels. That depends on nothing else, so it is cached from plan to plan.

use std::collections::BTreeSet;

use crate::{
    core::{selector::Selector, snapshot::LabelView},
    rollout::policy::{MOST_STAGES, Spec, Stage},
};

/// The stages of a policy. None if there is no rollout.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stages<'a>(&'a [Stage]);

/// The stages whose selector selects a node: bit `n` is for the stage with index `n`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct StageSet(u32);

const _: () = assert!(MOST_STAGES <= u32::BITS as usize);

impl<'a> Stages<'a> {
    pub(crate) fn of(spec: &'a Spec) -> Self {
        Self(&spec.stages)
    }

    /// The selectors of the stages: all that [`Self::select`] depends on.
    pub(crate) fn selectors(self) -> Vec<Option<&'a Selector>> {
        self.0.iter().map(|stage| stage.selector.as_ref()).collect()
    }

    pub(crate) fn has_selectors(self) -> bool {
        self.0.iter().any(|stage| stage.selector.is_some())
    }

    /// The keys of the labels that the selectors read.
    pub(crate) fn keys(self) -> BTreeSet<&'a str> {
        let selectors = self.0.iter().filter_map(|stage| stage.selector.as_ref());
        selectors.flat_map(Selector::keys).collect()
    }

    /// The stages whose selector selects a node with these labels.
    pub(crate) fn select(self, labels: LabelView<'_>) -> StageSet {
        let stages = self.0.iter().take(MOST_STAGES).enumerate();
        let selected = stages.filter(|(_, stage)| {
            let selector = stage.selector.as_ref();
            selector.is_some_and(|selector| selector.selects(labels))
        });
        StageSet(selected.fold(0, |set, (index, _)| set | 1 << index))
    }
}

impl StageSet {
    /// Whether the stage with this index is one of them.
    pub(crate) fn has(self, stage: usize) -> bool {
        stage < MOST_STAGES && self.0 >> stage & 1 == 1
    }
}
