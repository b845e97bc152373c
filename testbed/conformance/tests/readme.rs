//! Checks that the README lists all cases.

use std::{fs, path::Path};

use nodewise_conformance::{all_cases, report::markdown_list};

const BEGIN: &str = "<!-- cases: made from the kit itself; its test says what to do when they differ -->\n";
const END: &str = "<!-- end of cases -->\n";

#[test]
fn readme_lists_all_cases() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let text = fs::read_to_string(&path).expect("the README");
    let (before, rest) = text.split_once(BEGIN).expect("the beginning of the cases");
    let (_, after) = rest.split_once(END).expect("the end of the cases");
    let fresh = format!("{before}{BEGIN}\n{}\n{END}{after}", markdown_list(&all_cases()));
    if std::env::var_os("NODEWISE_REGENERATE").is_some() {
        fs::write(&path, &fresh).expect("writing the README");
        return;
    }
    assert!(
        fresh == text,
        "the cases have changed: run NODEWISE_REGENERATE=1 cargo test -p nodewise-conformance --test readme"
    );
}
