//! Checks that documents name only cases that exist.

use std::collections::BTreeSet;
use std::path::Path;

use nodewise_conformance::all_cases;

#[test]
fn contract_cites_only_existing_cases() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/writing-an-executor.md");
    let text = std::fs::read_to_string(path).expect("the contract");
    let ids: BTreeSet<&str> = all_cases().iter().map(|case| case.id).collect();
    let rules: Vec<&str> = text.lines().filter(|line| line.starts_with("| W")).collect();
    assert!(rules.len() > 10, "{rules:?}");
    for rule in rules {
        let cited = rule.rsplit('|').nth(1).expect("a column").trim();
        if cited == "–" {
            continue;
        }
        for id in cited.split(", ") {
            assert!(ids.contains(id.trim_matches('`')), "{id} in {rule}");
        }
    }
}
