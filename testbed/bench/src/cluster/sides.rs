//! The measurements of both owners side by side: rows of the table, bars of the charts, and goals.

use anyhow::Result;

use super::owner::OwnerKind;
use crate::figure::figure;
use crate::measure::Spread;
use crate::report::{Bar, Target};

/// A quantity that is measured in each round.
pub(super) struct Quantity<T> {
    name: &'static str,
    of: fn(&T) -> f64,
}

impl<T> Quantity<T> {
    pub(super) const fn new(name: &'static str, of: fn(&T) -> f64) -> Self {
        Self { name, of }
    }

    /// A bar for these values.
    pub(super) fn bar(&self, who: &str, values: Spread) -> Bar {
        Bar {
            group: self.name.to_owned(),
            who: who.to_owned(),
            values,
        }
    }
}

/// All rounds of both owners.
pub(super) struct Sides<T> {
    upstream: Vec<T>,
    pub(super) nodewise: Vec<T>,
}

impl<T> Default for Sides<T> {
    fn default() -> Self {
        Self {
            upstream: Vec::new(),
            nodewise: Vec::new(),
        }
    }
}

impl<T> Sides<T> {
    /// Adds a round of an owner.
    pub(super) fn push(&mut self, who: OwnerKind, round: T) {
        match who {
            OwnerKind::Upstream => self.upstream.push(round),
            OwnerKind::Nodewise => self.nodewise.push(round),
        }
    }

    pub(super) fn theirs(&self, quantity: &Quantity<T>) -> Result<Spread> {
        Spread::of(self.upstream.iter().map(quantity.of))
    }

    pub(super) fn ours(&self, quantity: &Quantity<T>) -> Result<Spread> {
        Spread::of(self.nodewise.iter().map(quantity.of))
    }

    /// The median of kube-controller-manager divided by that of Nodewise.
    fn ratio(&self, quantity: &Quantity<T>) -> Result<f64> {
        Ok(self.theirs(quantity)?.median() / self.ours(quantity)?.median())
    }

    /// The name, both values, and their ratio.
    pub(super) fn row(&self, quantity: &Quantity<T>) -> Result<Vec<String>> {
        Ok(vec![
            quantity.name.to_owned(),
            self.theirs(quantity)?.to_string(),
            self.ours(quantity)?.to_string(),
            figure(self.ratio(quantity)?),
        ])
    }

    /// A bar for each owner.
    pub(super) fn bars(&self, quantity: &Quantity<T>) -> Result<Vec<Bar>> {
        Ok(vec![
            quantity.bar(OwnerKind::Upstream.name(), self.theirs(quantity)?),
            quantity.bar(OwnerKind::Nodewise.name(), self.ours(quantity)?),
        ])
    }

    /// The goal that Nodewise is at least `goal` times as fast.
    pub(super) fn faster(&self, what: &str, goal: f64, quantity: &Quantity<T>) -> Result<Target> {
        let ratio = self.ratio(quantity)?;
        Ok(Target::at_least(what, goal, ratio, "times as fast"))
    }

    /// The goal that Nodewise takes at most `goal` times what kube-controller-manager takes.
    pub(super) fn less(&self, what: &str, goal: f64, quantity: &Quantity<T>) -> Result<Target> {
        let ratio = 1.0 / self.ratio(quantity)?;
        Ok(Target::at_most(what, goal, ratio, "times theirs"))
    }
}
