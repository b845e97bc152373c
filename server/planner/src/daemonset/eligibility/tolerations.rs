//! Taints and tolerations (D-17 to D-20).

use std::collections::{BTreeMap, BTreeSet};

use super::{Fit, syntax::canonical_int64};
use crate::{
    core::snapshot::{Taint, TaintEffect},
    daemonset::workload::Toleration,
};

/// Keys and effects of the tolerations that every daemon pod gets, in the order in which they are added (D-18). All have the
/// operator `Exists`, no value and no tolerationSeconds.
const AUTOMATIC: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];
/// The toleration that only pods on the host network get, since they do not need the pod network.
const HOST_NETWORK: (&str, &str) = ("node.kubernetes.io/network-unavailable", "NoSchedule");

/// Keys and effects of the automatic tolerations, in order.
pub(crate) fn automatic(host_network: bool) -> impl Iterator<Item = (&'static str, &'static str)> {
    AUTOMATIC.into_iter().chain(host_network.then_some(HOST_NETWORK))
}

/// The tolerations of a daemon pod, including the automatic ones, indexed by key and effect. A node may have thousands of taints
/// and a template thousands of tolerations, so not every pair may be compared.
#[derive(Debug, Default)]
pub(super) struct Tolerations {
    /// Tolerations without a key, which match every key.
    of_any_key: Tests,
    /// Tolerations by key.
    of_key: BTreeMap<String, Tests>,
}

/// The tolerations of one key, by effect.
#[derive(Debug, Default)]
struct Tests {
    no_schedule: Test,
    no_execute: Test,
}

/// The tolerations of one key and one effect. Of several `Gt` tolerations, the one with the smallest bound covers the others, so
/// only that bound is kept. Of several `Lt` tolerations, the one with the largest bound does.
#[derive(Debug, Default)]
struct Test {
    any: bool,
    equal: BTreeSet<String>,
    greater_than: Option<i64>,
    smaller_than: Option<i64>,
}

impl Tolerations {
    /// Compiles the tolerations of a template and the automatic ones. Those with other effects are dropped.
    pub(super) fn compile(template: &[Toleration], host_network: bool, comparison_operators: bool) -> Self {
        let mut compiled = Self::default();
        for toleration in template {
            let Toleration { key, effect, .. } = toleration;
            compiled.add(key, effect, |test| test.add(toleration, comparison_operators));
        }
        // Whether an automatic toleration replaces an equal one or is added (D-19) makes no difference here, since
        // tolerationSeconds are ignored.
        for (key, effect) in automatic(host_network) {
            compiled.add(key, effect, |test| test.any = true);
        }
        compiled
    }

    /// Adds a toleration. An empty key means every key, an empty effect every effect.
    fn add(&mut self, key: &str, effect: &str, add: impl Fn(&mut Test)) {
        let effects = match (effect, effect_of(effect)) {
            ("", _) => [TaintEffect::NoSchedule, TaintEffect::NoExecute].as_slice(),
            (_, Some(TaintEffect::NoSchedule)) => &[TaintEffect::NoSchedule],
            (_, Some(TaintEffect::NoExecute)) => &[TaintEffect::NoExecute],
            _ => return,
        };
        let tests = if key.is_empty() {
            &mut self.of_any_key
        } else {
            self.of_key.entry(key.to_owned()).or_default()
        };
        for effect in effects {
            if let Some(test) = tests.of_mut(*effect) {
                add(test);
            }
        }
    }

    /// What the workload may do on a node with these taints that meets all other constraints (D-8).
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

    /// Whether one of the tolerations tolerates the taint.
    pub(super) fn tolerate(&self, taint: &Taint) -> bool {
        self.of_any_key.hold(taint) || self.of_key.get(&taint.key).is_some_and(|tests| tests.hold(taint))
    }
}

impl Tests {
    fn of_mut(&mut self, effect: TaintEffect) -> Option<&mut Test> {
        match effect {
            TaintEffect::NoSchedule => Some(&mut self.no_schedule),
            TaintEffect::NoExecute => Some(&mut self.no_execute),
            TaintEffect::Other => None,
        }
    }

    fn hold(&self, taint: &Taint) -> bool {
        match taint.effect {
            TaintEffect::NoSchedule => self.no_schedule.holds(&taint.value),
            TaintEffect::NoExecute => self.no_execute.holds(&taint.value),
            TaintEffect::Other => false,
        }
    }
}

impl Test {
    /// Adds a toleration. One that no value can match is ignored.
    fn add(&mut self, toleration: &Toleration, comparison_operators: bool) {
        let value = &toleration.value;
        match toleration.operator.as_str() {
            "Exists" => self.any = true,
            "" | "Equal" => {
                self.equal.insert(value.clone());
            }
            "Gt" if comparison_operators => {
                let bounds = self.greater_than.into_iter().chain(canonical_int64(value));
                self.greater_than = bounds.min();
            }
            "Lt" if comparison_operators => {
                let bounds = self.smaller_than.into_iter().chain(canonical_int64(value));
                self.smaller_than = bounds.max();
            }
            _ => {}
        }
    }

    fn holds(&self, value: &str) -> bool {
        let number = |holds: &dyn Fn(i64) -> bool| canonical_int64(value).is_some_and(holds);
        self.any
            || self.equal.contains(value)
            || self
                .greater_than
                .is_some_and(|bound| number(&|value| value > bound))
            || self
                .smaller_than
                .is_some_and(|bound| number(&|value| value < bound))
    }
}

/// The effect with this name; `None` for effects that are ignored, such as `PreferNoSchedule`.
fn effect_of(text: &str) -> Option<TaintEffect> {
    match text {
        "NoSchedule" => Some(TaintEffect::NoSchedule),
        "NoExecute" => Some(TaintEffect::NoExecute),
        _ => None,
    }
}
