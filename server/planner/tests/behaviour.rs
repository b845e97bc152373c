//! Every row of docs/behaviour.md is held by a test that carries its number.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// The last requirement: rows D-1 to D-120 must all be there.
const REQUIREMENTS: usize = 120;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the workspace exists")
}

fn rust_files(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("directory is readable") {
        let path = entry.expect("entry is readable").path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if path.is_dir() && !matches!(name, "target" | "generated" | ".git" | "bin") {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The lines of a file that belong to tests: all of a file under `tests/` or named `tests.rs`, else what follows
/// `#[cfg(test)]`. Module documentation does not count, or one sentence could claim a whole chapter.
fn test_lines<'a>(path: &Path, text: &'a str) -> Vec<&'a str> {
    let all_tests = path
        .components()
        .any(|part| part.as_os_str() == "tests" || part.as_os_str() == "tests.rs");
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//!"));
    if all_tests {
        lines.collect()
    } else {
        lines.skip_while(|line| line.trim() != "#[cfg(test)]").collect()
    }
}

/// Numbers such as `D-31`, and `d_31` or `d31` inside an identifier. `D-31..D-34` names only its two ends.
fn numbers(line: &str) -> BTreeSet<usize> {
    let bytes = line.as_bytes();
    let mut found = BTreeSet::new();
    for start in 0..bytes.len() {
        let before = start.checked_sub(1).map(|index| bytes[index]);
        if !matches!(bytes[start], b'D' | b'd') || before.is_some_and(|byte| byte.is_ascii_alphanumeric()) {
            continue;
        }
        let rest = &line[start + 1..];
        let digits = match bytes[start] {
            b'D' => rest.strip_prefix('-'),
            _ => Some(rest.strip_prefix('_').unwrap_or(rest)),
        };
        let digits: String = digits
            .unwrap_or_default()
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        found.extend(digits.parse::<usize>().ok());
    }
    found
}

fn rows(document: &str) -> BTreeSet<usize> {
    let cells = document
        .lines()
        .filter_map(|line| line.strip_prefix("| D-")?.split_once(' '));
    cells.filter_map(|(number, _)| number.parse().ok()).collect()
}

#[test]
fn every_requirement_is_documented_and_held_by_a_test() {
    let root = workspace();
    let document = fs::read_to_string(root.join("docs/behaviour.md")).expect("docs/behaviour.md exists");
    assert_eq!(
        rows(&document),
        (1..=REQUIREMENTS).collect(),
        "docs/behaviour.md lists D-1 to D-{REQUIREMENTS}"
    );

    let mut files = Vec::new();
    rust_files(&root, &mut files);
    let mut held: BTreeMap<usize, PathBuf> = BTreeMap::new();
    let this = Path::new(file!()).file_name().expect("a file has a name");
    for path in files.into_iter().filter(|path| path.file_name() != Some(this)) {
        let text = fs::read_to_string(&path).expect("source is readable");
        for number in test_lines(&path, &text).into_iter().flat_map(numbers) {
            held.entry(number).or_insert_with(|| path.clone());
        }
    }
    let unheld: Vec<String> = (1..=REQUIREMENTS)
        .filter(|number| !held.contains_key(number))
        .map(|number| format!("D-{number}"))
        .collect();
    assert!(
        unheld.is_empty(),
        "no test carries the number of: {}",
        unheld.join(", ")
    );
}

#[test]
fn every_deviation_is_documented() {
    let document =
        fs::read_to_string(workspace().join("docs/behaviour.md")).expect("docs/behaviour.md exists");
    for deviation in nodewise_planner::snapshot::Deviation::ALL {
        // The protocol's name is the variant's in upper case with underscores.
        let name = format!("{deviation:?}")
            .chars()
            .fold(String::new(), |mut name, c| {
                if c.is_ascii_uppercase() && !name.is_empty() {
                    name.push('_');
                }
                name.push(c.to_ascii_uppercase());
                name
            });
        assert!(
            document.contains(&format!("| {name} |")),
            "docs/behaviour.md does not document {name}"
        );
    }
}

#[test]
fn numbers_are_read_from_names_and_comments() {
    assert_eq!(
        numbers("    // D-31 and (D-32), not XD-33 nor d"),
        BTreeSet::from([31, 32])
    );
    assert_eq!(
        numbers("fn d_40_rounds_up() {} fn d41() {} fn add_5()"),
        BTreeSet::from([40, 41])
    );
    assert_eq!(
        test_lines(Path::new("src/x.rs"), "// D-1\n#[cfg(test)]\n// D-2"),
        ["#[cfg(test)]", "// D-2"]
    );
}
