//! How a proposal about a RolloutPolicy begins, and how kubectl calls the policy.

use nodewise_proto::v1;

use super::quote::word;
use crate::{
    input::Served,
    text::{CHANGE, PLAIN, Page},
};

/// The page of a proposal: a title, and what people should know about the policy.
pub(super) fn page(workload: &Served, policy: &v1::PolicyRollout, what: &str) -> Page {
    let mut page = Page::new(None);
    page.line(
        0,
        PLAIN,
        &format!("{}: RolloutPolicy {} {what}", workload.title(), policy.name),
    );
    if !policy.others.is_empty() {
        let others = policy.others.join(", ");
        let text = format!(
            "{others} targets it as well and does not count: {} is older, or comes before by name",
            policy.name
        );
        page.marked(2, "!", CHANGE, PLAIN, &text);
    }
    if !policy.not_accepted.is_empty() {
        page.marked(2, "!", CHANGE, PLAIN, &policy.not_accepted);
    }
    page
}

/// `rolloutpolicy agents -n logging`.
pub(super) fn named(workload: &Served, policy: &v1::PolicyRollout) -> String {
    format!(
        "rolloutpolicy {} -n {}",
        word(&policy.name),
        word(&workload.namespace)
    )
}
