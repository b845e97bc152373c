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

/// All cases.
pub(crate) const ALL: &[&[Case]] = &[
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
