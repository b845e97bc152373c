//! The rolling update (chapter 6), and what it shares with the one with surge.

use std::collections::BTreeSet;

use crate::{
    companion,
    moves::Moves,
    picture::{Picture, Place},
    plan::{NodeCounts, Reason},
    pods::OwnPod,
    snapshot::{DaemonSet, Deviation, IntOrString, Options, RollingUpdate, UpdateStrategy},
    surge,
};

/// How far a rollout may go at once, scaled to the nodes that should run a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Limits {
    /// maxUnavailable.
    pub(crate) max_unavailable: i64,
    /// maxSurge.
    pub(crate) max_surge: i64,
}

/// One step of a rollout: what it would do now, and how it stands.
#[derive(Debug, Default)]
pub(crate) struct Step<'a> {
    /// The limits; zero where there are none or they cannot be read.
    pub(crate) limits: Limits,
    /// Entries that use maxUnavailable; counted without surge only.
    pub(crate) unavailable: i64,
    /// Entries that use maxSurge; counted with surge only.
    pub(crate) surging: i64,
    /// What it asks for. Not cut yet.
    pub(crate) moves: Moves<'a>,
    /// Why it cannot do anything.
    pub(crate) error: Option<String>,
    /// The deviations that made a difference.
    pub(crate) deviations: BTreeSet<Deviation>,
}

/// The next step of the rollout. Nothing with OnDelete (D-50).
pub(crate) fn step<'a>(ds: &DaemonSet, picture: &Picture<'a>, options: &Options) -> Step<'a> {
    let strategy = companion::strategy(ds, options);
    let UpdateStrategy::RollingUpdate(rolling_update) = &*strategy else {
        return Step::default();
    };
    match limits(rolling_update.as_ref(), picture.desired) {
        Err(error) => Step {
            error: Some(error),
            ..Step::default()
        },
        Ok(limits) if limits.max_surge == 0 => without_surge(picture, limits),
        Ok(limits) => surge::step(picture, limits, options),
    }
}

/// Whether a node may have an old and a new pod for a while (D-37).
pub(crate) fn allows_surge(ds: &DaemonSet) -> bool {
    match &ds.strategy {
        UpdateStrategy::RollingUpdate(Some(RollingUpdate {
            max_surge: Some(max_surge),
            ..
        })) => scale("maxSurge", max_surge, 1).is_ok_and(|scaled| scaled > 0),
        _ => false,
    }
}

/// Scales both limits (D-40).
fn limits(rolling_update: Option<&RollingUpdate>, desired: usize) -> Result<Limits, String> {
    let Some(rolling_update) = rolling_update else {
        return Ok(at_least_one(Limits::default(), desired));
    };
    let max_unavailable = rolling_update
        .max_unavailable
        .as_ref()
        .ok_or_else(|| "spec.updateStrategy.rollingUpdate.maxUnavailable is missing".to_owned())?;
    let max_unavailable = scale("maxUnavailable", max_unavailable, desired)?;
    let max_surge = rolling_update
        .max_surge
        .as_ref()
        .map_or(Ok(0), |value| scale("maxSurge", value, desired))?;
    Ok(at_least_one(
        Limits {
            max_unavailable,
            max_surge,
        },
        desired,
    ))
}

/// Both zero would stop every rollout, so one pod at a time is then the rule.
fn at_least_one(limits: Limits, desired: usize) -> Limits {
    match limits {
        Limits {
            max_unavailable: 0,
            max_surge: 0,
        } if desired > 0 => Limits {
            max_unavailable: 1,
            ..limits
        },
        limits => limits,
    }
}

/// A number, or a percentage of `total`, rounded up.
pub(crate) fn scale(field: &str, value: &IntOrString, total: usize) -> Result<i64, String> {
    let text = match value {
        IntOrString::Int(number) => return Ok((*number).into()),
        IntOrString::String(text) => text,
    };
    let percent = text
        .strip_suffix('%')
        .and_then(|digits| digits.parse::<i64>().ok())
        .ok_or_else(|| {
            format!(
                "spec.updateStrategy.rollingUpdate.{field} is {text:?}, neither a number nor a percentage"
            )
        })?;
    // Where this saturates it is still far more than there are nodes.
    let hundredths = percent.saturating_mul(i64::try_from(total).unwrap_or(i64::MAX));
    // Division towards negative infinity of the negated value rounds up.
    Ok(-hundredths.saturating_neg().div_euclid(100))
}

/// What the pods of an entry that are not being deleted amount to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Content<'p, 'a> {
    /// None.
    Nothing,
    /// One of the current template.
    New(&'p OwnPod<'a>),
    /// One of another template.
    Old(&'p OwnPod<'a>),
    /// One of each.
    Both {
        /// Of the current template.
        new: &'p OwnPod<'a>,
        /// Of another.
        old: &'p OwnPod<'a>,
    },
    /// Several of a kind: placement's business.
    Crowd,
}

impl<'p, 'a> Content<'p, 'a> {
    /// Looks at an entry.
    pub(crate) fn of(pods: &'p [OwnPod<'a>]) -> Self {
        let mut content = Self::Nothing;
        for pod in pods.iter().filter(|pod| !pod.pod.deleting) {
            content = match (content, pod.updated()) {
                (Self::Nothing, true) => Self::New(pod),
                (Self::Nothing, false) => Self::Old(pod),
                (Self::Old(old), true) => Self::Both { new: pod, old },
                (Self::New(new), false) => Self::Both { new, old: pod },
                _ => return Self::Crowd,
            };
        }
        content
    }
}

impl Content<'_, '_> {
    /// Whether the entry uses maxUnavailable (D-41).
    pub(crate) fn is_unavailable(&self) -> bool {
        match self {
            Self::Nothing | Self::Both { .. } | Self::Crowd => true,
            Self::New(pod) | Self::Old(pod) => !pod.available,
        }
    }

    /// Whether the entry uses maxSurge (D-45).
    pub(crate) fn is_surging(&self) -> bool {
        match self {
            Self::Crowd => true,
            Self::Both { new, .. } => !new.available,
            Self::Nothing | Self::New(_) | Self::Old(_) => false,
        }
    }
}

/// Takes old pods down within maxUnavailable; placement fills the nodes later (D-41 to D-44).
fn without_surge<'a>(picture: &Picture<'a>, limits: Limits) -> Step<'a> {
    let mut step = Step {
        limits,
        ..Step::default()
    };
    let mut candidates: Vec<(&Place<'a>, &OwnPod<'a>)> = Vec::new();
    for (_, place, pods) in picture.entries() {
        let content = Content::of(pods);
        step.unavailable += i64::from(content.is_unavailable());
        match content {
            Content::Old(old) if old.available => candidates.push((place, old)),
            // It goes even when the budget is exceeded, since it adds nothing to what is unavailable (D-42).
            Content::Old(old) => step.moves.delete(place, old, Reason::RolloutOldUnavailable),
            _ => {}
        }
    }
    let room = limits.max_unavailable.saturating_sub(step.unavailable);
    for (place, old) in candidates.into_iter().take(usize::try_from(room).unwrap_or(0)) {
        step.moves.delete(place, old, Reason::RolloutWithinBudget);
    }
    step.moves.budget = Some((step.unavailable, limits.max_unavailable));
    step
}

/// The nodes that should run a pod by what they have, for people who watch a rollout.
pub(crate) fn count_nodes(picture: &Picture<'_>) -> NodeCounts {
    let mut counts = NodeCounts {
        updated_available: u32::try_from(picture.quiet.running).unwrap_or(u32::MAX),
        ..NodeCounts::default()
    };
    for place in picture.places.iter().filter(|place| place.fit.run) {
        let pods = picture.pods(place);
        let count = if pods.is_empty() {
            &mut counts.without_pod
        } else if !pods.iter().any(OwnPod::updated) {
            &mut counts.outdated
        } else if pods.iter().any(is_updated_and_available) {
            &mut counts.updated_available
        } else {
            &mut counts.updated_unavailable
        };
        *count = count.saturating_add(1);
    }
    counts
}

fn is_updated_and_available(pod: &OwnPod<'_>) -> bool {
    pod.updated() && pod.available && !pod.pod.deleting
}
