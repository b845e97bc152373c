//! Clusters that once showed a difference from upstream's own controller must not differ again.

use std::path::Path;

use nodewise_compare::problem;
use nodewise_compare::run::{self, Plan};
use nodewise_testbed::Tool;

#[test]
fn regressions_stay_fixed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions");
    let list = |folder: &Path| {
        let entries = folder.read_dir().expect("there are regressions");
        let paths = entries.map(|entry| entry.expect("the folder is readable").path());
        paths.collect::<Vec<_>>()
    };
    // A folder for each kind.
    let mut files: Vec<_> = list(&folder).iter().flat_map(|kind| list(kind)).collect();
    files.sort();
    let upstream = Tool::Upstream.path().expect("upstream's program");
    let coverage = tempfile::tempdir().expect("a folder");
    let file = |number: u64| &files[usize::try_from(number).expect("a small number")];
    let name = |number| file(number).display().to_string();
    let draw = |number| problem::read(file(number));
    let summary = run::run(&Plan {
        cases: files.len() as u64,
        name: &name,
        draw: &draw,
        threads: 1,
        upstream: &upstream,
        coverage: coverage.path(),
        found: None,
    })
    .expect("every cluster is compared");
    assert_eq!(summary.cases, files.len() as u64);
    for found in &summary.found {
        eprintln!("{}", serde_json::to_string(&found.case).expect("JSON"));
    }
    assert!(summary.found.is_empty(), "see above");
}
