//! The cases, one module for each topic.

mod apiserver;
mod claims;
mod crashes;
mod deployment;
mod failures;
mod faults;
mod kills;
mod names;
mod placement;
mod policy;
mod process;
mod replica_set;
mod revisions;
mod rollout;
mod selection;
mod service;
mod sizes;
mod takeover;
mod tls;
mod traces;
mod wrong_service;

use crate::{case::Case, controllers::Controllers};

/// The cases of DaemonSets, by topic.
const DAEMON_SETS: &[&[Case]] = &[
    placement::CASES,
    claims::CASES,
    sizes::CASES,
    rollout::CASES,
    revisions::CASES,
    failures::CASES,
    names::CASES,
    takeover::CASES,
    service::CASES,
    faults::CASES,
    apiserver::CASES,
    crashes::CASES,
    kills::CASES,
    process::CASES,
    selection::CASES,
    tls::CASES,
    traces::CASES,
    wrong_service::CASES,
];

/// All cases, in the order of the report.
#[must_use]
pub fn all() -> Vec<Case> {
    let topics = |controllers| match controllers {
        Controllers::DaemonSets => DAEMON_SETS,
        Controllers::DaemonSetsWithPolicies => policy::TOPICS,
        Controllers::ReplicaSets => replica_set::TOPICS,
        Controllers::Deployments => deployment::TOPICS,
    };
    let cases = Controllers::ALL.into_iter().flat_map(|controllers| {
        let cases = topics(controllers).iter().copied().flatten();
        cases.map(move |case| Case { controllers, ..*case })
    });
    cases.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_kebab_case_and_unique() {
        let cases = all();
        let ids: BTreeSet<_> = cases.iter().map(|case| case.id).collect();
        assert_eq!(ids.len(), cases.len());
        for case in &cases {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            // Ids are names of namespaces and values of labels.
            assert!(case.id.len() <= 63 && case.id.chars().all(plain), "{}", case.id);
            assert!(case.checks.ends_with('.'), "{}: {}", case.id, case.checks);
        }
    }
}
