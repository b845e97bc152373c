//! Taints and tolerations (D-17 to D-20).

use super::{Fit, syntax::canonical_int64};
use crate::snapshot::{Taint, TaintEffect, Toleration};

/// Keys and effects of the tolerations that every daemon pod has, in the order in which they are added (D-18). All have the
/// operator `Exists`, no value and no seconds.
const AUTOMATIC: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];
/// The one that only pods on the host's network have: they need no pod network.
const HOST_NETWORK: (&str, &str) = ("node.kubernetes.io/network-unavailable", "NoSchedule");

/// Keys and effects of the automatic tolerations, in order.
pub(crate) fn automatic(host_network: bool) -> impl Iterator<Item = (&'static str, &'static str)> {
    AUTOMATIC.into_iter().chain(host_network.then_some(HOST_NETWORK))
}

/// The tolerations of a daemon pod, the automatic ones included.
#[derive(Debug)]
pub(super) struct Tolerations(Vec<Compiled>);

#[derive(Debug)]
struct Compiled {
    /// Empty: every key.
    key: String,
    test: Test,
    /// `None`: every effect.
    effect: Option<TaintEffect>,
}

#[derive(Debug)]
enum Test {
    Any,
    Equal(String),
    Greater(i64),
    Smaller(i64),
}

impl Tolerations {
    /// Leaves out what tolerates nothing that matters.
    pub(super) fn compile(template: &[Toleration], host_network: bool, comparison_operators: bool) -> Self {
        // Whether an automatic one replaces an equal one or is added (D-19) makes no difference here: seconds do not count.
        let automatic = automatic(host_network).filter_map(|(key, effect)| {
            Some(Compiled {
                key: key.to_owned(),
                test: Test::Any,
                effect: Some(effect_of(effect)?),
            })
        });
        let own = template
            .iter()
            .filter_map(|toleration| Compiled::new(toleration, comparison_operators));
        Self(own.chain(automatic).collect())
    }

    /// What the taints leave of a node that meets all other constraints (D-8.3).
    pub(super) fn fit(&self, taints: &[Taint]) -> Fit {
        let mut fit = Fit::RUN;
        for taint in taints {
            match taint.effect {
                TaintEffect::NoExecute if !self.tolerate(taint) => return Fit::NEITHER,
                TaintEffect::NoSchedule if fit.run && !self.tolerate(taint) => fit = Fit::KEEP,
                _ => {}
            }
        }
        fit
    }

    /// Whether one of them tolerates the taint.
    pub(super) fn tolerate(&self, taint: &Taint) -> bool {
        self.0.iter().any(|toleration| toleration.tolerates(taint))
    }
}

impl Compiled {
    fn new(toleration: &Toleration, comparison_operators: bool) -> Option<Self> {
        let value = &toleration.value;
        let test = match toleration.operator.as_str() {
            "Exists" => Test::Any,
            "" | "Equal" => Test::Equal(value.clone()),
            "Gt" if comparison_operators => Test::Greater(canonical_int64(value)?),
            "Lt" if comparison_operators => Test::Smaller(canonical_int64(value)?),
            _ => return None,
        };
        let effect = match toleration.effect.as_str() {
            "" => None,
            effect => Some(effect_of(effect)?),
        };
        Some(Self {
            key: toleration.key.clone(),
            test,
            effect,
        })
    }

    fn tolerates(&self, taint: &Taint) -> bool {
        self.effect.is_none_or(|effect| effect == taint.effect)
            && (self.key.is_empty() || self.key == taint.key)
            && match &self.test {
                Test::Any => true,
                Test::Equal(value) => *value == taint.value,
                Test::Greater(bound) => canonical_int64(&taint.value).is_some_and(|value| value > *bound),
                Test::Smaller(bound) => canonical_int64(&taint.value).is_some_and(|value| value < *bound),
            }
    }
}

/// The effects that matter; `PreferNoSchedule` does not.
fn effect_of(text: &str) -> Option<TaintEffect> {
    match text {
        "NoSchedule" => Some(TaintEffect::NoSchedule),
        "NoExecute" => Some(TaintEffect::NoExecute),
        _ => None,
    }
}
