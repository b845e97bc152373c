//! The versions of the template.

use serde_json::Value;

use super::daemon_set::Set;
use super::rng::CaseRng;
use super::scenario::Scenario;
use super::template;
use crate::case::HASH;

/// A present or former version of the template.
pub(super) struct Version {
    pub(super) template: Value,
    /// The hash in the labels of its revision and pods.
    pub(super) hash: String,
    /// The number of its revision.
    pub(super) number: i64,
    /// The template generation in the labels of its pods.
    pub(super) generation: Option<i64>,
}

/// Generates the versions. The present one is the last.
pub(super) fn draw(
    rng: &mut CaseRng,
    set: &Set,
    scenario: Scenario,
    echo: bool,
    present: Value,
) -> Vec<Version> {
    let formers = match scenario {
        Scenario::Fresh => rng.weighted(&[(9, 0), (1, 1)]),
        Scenario::Changed | Scenario::Rollout | Scenario::RolledBack => {
            rng.weighted(&[(45, 1), (27, 2), (16, 3), (10, 4), (2, 13)])
        }
        Scenario::Settled | Scenario::Failing | Scenario::Chaos => {
            rng.weighted(&[(35, 0), (30, 1), (15, 2), (12, 3), (6, 4), (2, 12)])
        }
    };
    let mut all = Vec::with_capacity(formers + 2);
    let ages = (1..=formers).rev().zip(1_i64..);
    for (age, number) in ages {
        all.push(Version {
            template: template::former(rng, &present, age),
            hash: rng.letters(9),
            number,
            generation: former_generation(rng, set.template_generation, age),
        });
    }
    let mut last = Version {
        number: i64::try_from(formers).unwrap_or(0) + 1,
        hash: if rng.in_hundred(88) {
            HASH.to_owned()
        } else {
            rng.letters(10)
        },
        generation: set.template_generation,
        template: present,
    };
    if scenario == Scenario::RolledBack {
        last.number = rng.between(0..=1);
        if rng.in_hundred(60) {
            last.generation = last.generation.map(|generation| generation - 2);
        }
    }
    // Several revisions with one template need `echo`, because pods are relabelled then.
    if echo && rng.in_hundred(6) {
        all.push(Version {
            template: last.template.clone(),
            hash: rng.letters(9),
            number: (last.number + rng.weighted(&[(4, 0), (3, -1), (3, 1)])).max(0),
            generation: last.generation,
        });
    }
    all.push(last);
    all
}

fn former_generation(rng: &mut CaseRng, present: Option<i64>, age: usize) -> Option<i64> {
    match present {
        // Same generation: not the template changed, but its serialization.
        Some(present) if rng.in_hundred(6) => Some(present),
        Some(present) => Some(present - i64::try_from(age).unwrap_or(1)),
        None => rng.in_hundred(25).then_some(1),
    }
}
