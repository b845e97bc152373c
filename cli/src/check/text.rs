//! The results as text.

use super::finding::{Finding, Outcome, Section};
use crate::text::{ADD, BOLD, CHANGE, PLAIN, Page, REMOVE};

/// One line for each check, in sections, with what to do below those that are not ok.
pub(crate) fn render(findings: &[Finding], width: Option<usize>) -> String {
    let mut page = Page::new(width);
    for section in Section::ALL {
        let of_section: Vec<_> = findings
            .iter()
            .filter(|finding| finding.section == section)
            .collect();
        if of_section.is_empty() {
            continue;
        }
        page.line(0, BOLD, section.title());
        for finding in of_section {
            let (mark, style) = match finding.result {
                Outcome::Ok => ("✓", ADD),
                Outcome::Warning => ("‼", CHANGE),
                Outcome::Error => ("×", REMOVE),
            };
            page.marked(0, mark, style, PLAIN, &finding.message);
            if let Some(hint) = &finding.hint {
                page.marked(2, "→", style, PLAIN, hint);
            }
        }
        page.blank();
    }
    let count = |result| findings.iter().filter(|finding| finding.result == result).count();
    let (errors, warnings) = (count(Outcome::Error), count(Outcome::Warning));
    let (mark, style) = match (errors, warnings) {
        (0, 0) => ("✓", ADD),
        (0, _) => ("‼", CHANGE),
        _ => ("×", REMOVE),
    };
    let numbers = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let summary = format!(
        "{}, {}, {} ok",
        numbers(errors, "error"),
        numbers(warnings, "warning"),
        count(Outcome::Ok)
    );
    page.marked(0, mark, style, BOLD, &summary);
    page.into_text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_grouped_with_what_to_do() {
        let findings = [
            Section::Cluster.ok("the apiserver's version is v1.36.1"),
            Section::Lease.error(
                "Lease nodewise-system/nodewise-executor has no holder: no executor works",
                "look at the log of the executor's pods",
            ),
            Section::Admission.ok("no ResourceQuota of namespace nodewise-system is used up"),
            Section::Owners.warning(
                "which controllers kube-controller-manager runs is not known",
                "ask",
            ),
        ];
        let text = anstream::adapter::strip_str(&render(&findings, Some(60))).to_string();
        insta::assert_snapshot!(text);
    }
}
