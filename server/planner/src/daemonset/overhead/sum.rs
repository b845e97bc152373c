//! The sums of the requests of the pods that would run on a node.

use std::collections::BTreeSet;

use super::decision::Decision;
use crate::core::{pod_requests::PodRequests, quantity::Quantity};

/// The resource of which each pod takes one.
const PODS: &str = "pods";

/// Sums up requests. The resources of all candidates are numbered once, so that each sum is a walk over numbers.
#[derive(Debug)]
pub struct Sums {
    /// All resources, sorted by name; one of them is `pods`.
    names: Vec<String>,
    /// The number of `pods`.
    pods: usize,
    /// For each candidate: its requests by the number of the resource; `None` if they are not known.
    requests: Vec<Option<Vec<(usize, Quantity)>>>,
}

/// What the pods on a node request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sum {
    /// Each resource with its amount in the canonical form in which Kubernetes prints it, sorted by name. `pods` is always there.
    pub requests: Vec<(String, String)>,
    /// Whether the sum is too small: a decision or some requests are not known, or a sum is too large for a number.
    pub is_incomplete: bool,
}

impl Sums {
    /// `requests` has those of each candidate; `None` if they are not known.
    #[must_use]
    pub fn new(requests: &[Option<PodRequests>]) -> Self {
        let requested = requests.iter().flatten().flat_map(|requests| requests.0.keys());
        let sorted: BTreeSet<&str> = requested.map(String::as_str).chain([PODS]).collect();
        let names: Vec<String> = sorted.into_iter().map(ToOwned::to_owned).collect();
        let number = |name: &str| names.partition_point(|known| known.as_str() < name);
        let numbered = |requests: &PodRequests| {
            let amounts = requests.0.iter().filter(|(name, _)| *name != PODS);
            amounts.map(|(name, amount)| (number(name), *amount)).collect()
        };
        let requests = requests
            .iter()
            .map(|requests| requests.as_ref().map(numbered))
            .collect();
        Self {
            pods: number(PODS),
            names,
            requests,
        }
    }

    /// The sum for a node about which these decisions were made.
    pub fn of<'a>(&self, decisions: impl Iterator<Item = &'a Decision>) -> Sum {
        let mut totals: Vec<Option<Quantity>> = vec![None; self.names.len()];
        let (mut pods, mut is_incomplete) = (0_u32, false);
        for decision in decisions {
            let requests = match decision.runs {
                Some(false) => continue,
                Some(true) => {
                    pods = pods.saturating_add(1);
                    self.requests.get(decision.candidate).and_then(Option::as_ref)
                }
                None => None,
            };
            let Some(requests) = requests else {
                is_incomplete = true;
                continue;
            };
            for (number, amount) in requests {
                let total = totals[*number].unwrap_or(Quantity::ZERO);
                match total.checked_add(*amount) {
                    Some(sum) => totals[*number] = Some(sum),
                    None => is_incomplete = true,
                }
            }
        }
        totals[self.pods] = Some(Quantity::of(pods));
        let named = self.names.iter().zip(totals);
        Sum {
            requests: named
                .filter_map(|(name, total)| Some((name.clone(), total?.to_string())))
                .collect(),
            is_incomplete,
        }
    }
}
