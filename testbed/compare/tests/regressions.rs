//! Clusters that once showed a difference from upstream's own controller show none.

use std::path::Path;

use nodewise_compare::run::{self, Plan};
use nodewise_testbed::Tool;

#[test]
fn what_differed_once_differs_no_more() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions");
    let mut files: Vec<_> = folder
        .read_dir()
        .expect("there are regressions")
        .map(|entry| entry.expect("the folder is readable").path())
        .collect();
    files.sort();
    let upstream = Tool::Upstream.path().expect("upstream's program");
    let coverage = tempfile::tempdir().expect("a folder");
    let draw = |number: u64| run::read(&files[usize::try_from(number)?]);
    let summary = run::run(&Plan {
        cases: files.len() as u64,
        draw: &draw,
        threads: 1,
        upstream: &upstream,
        coverage: coverage.path(),
    })
    .expect("every cluster is compared");
    assert_eq!(summary.cases, files.len() as u64);
    for (case, difference) in &summary.differing {
        eprintln!("{}\n{difference}", serde_json::to_string(case).expect("JSON"));
    }
    assert!(summary.differing.is_empty(), "see above");
}
