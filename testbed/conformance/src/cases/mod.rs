//! The cases, one module for each topic.

mod apiserver;
mod claims;
mod crashes;
mod failures;
mod faults;
mod kills;
mod names;
mod placement;
mod process;
mod revisions;
mod rollout;
mod selection;
mod service;
mod sizes;
mod takeover;
mod tls;
mod traces;
mod wrong_service;

use crate::case::Case;

/// The cases of each topic.
const TOPICS: &[&[Case]] = &[
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
    TOPICS.iter().copied().flatten().copied().collect()
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
