//! Every row of docs/behaviour.md and docs/upstream-differences.md is held by a test that carries its number.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// The last requirement: rows D-1 to D-120 must all be there.
const REQUIREMENTS: usize = 120;
/// The document of the deviations.
const DIFFERENCES: &str = "docs/upstream-differences.md";

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

/// The lines of a file that belong to tests: all of a file under `tests/`, named `tests.rs` or among the conformance kit's
/// `cases/`, else what follows `#[cfg(test)]`. Module documentation does not count, or one sentence could claim a whole chapter.
fn test_lines<'a>(path: &Path, text: &'a str) -> Vec<&'a str> {
    let all_tests = path.components().any(|part| {
        ["tests", "tests.rs", "cases"]
            .into_iter()
            .any(|name| part.as_os_str() == name)
    });
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//!"));
    if all_tests {
        lines.collect()
    } else {
        lines.skip_while(|line| line.trim() != "#[cfg(test)]").collect()
    }
}

/// Numbers such as `D-31` or `Q-4`, and `d_31` or `q_4` inside an identifier. `D-31..D-34` names only its two ends.
fn numbers(line: &str) -> BTreeSet<String> {
    let bytes = line.as_bytes();
    let starts = (0..bytes.len()).filter(|&start| start == 0 || !bytes[start - 1].is_ascii_alphanumeric());
    let found = starts.filter_map(|start| {
        let (letter, separator) = match bytes[start] {
            b'D' | b'Q' => (char::from(bytes[start]), '-'),
            b'd' | b'q' => (char::from(bytes[start].to_ascii_uppercase()), '_'),
            _ => return None,
        };
        let digits = line[start + 1..].strip_prefix(separator)?;
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        (end > 0).then(|| format!("{letter}-{}", &digits[..end]))
    });
    found.collect()
}

#[test]
fn every_number_of_the_document_is_held_by_a_test() {
    let root = workspace();
    let document = fs::read_to_string(root.join("docs/behaviour.md")).expect("docs/behaviour.md exists");
    let rows = document
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split_once(" |"));
    let rows: BTreeSet<&str> = rows
        .map(|(number, _)| number)
        .filter(|cell| cell.starts_with("D-"))
        .collect();
    let expected: Vec<String> = (1..=REQUIREMENTS).map(|number| format!("D-{number}")).collect();
    assert_eq!(
        rows,
        expected.iter().map(String::as_str).collect(),
        "docs/behaviour.md has a row for each"
    );

    let mut files = Vec::new();
    rust_files(&root, &mut files);
    let this = Path::new(file!()).file_name().expect("a file has a name");
    let mut held = BTreeSet::new();
    for path in files.into_iter().filter(|path| path.file_name() != Some(this)) {
        let text = fs::read_to_string(&path).expect("source is readable");
        held.extend(test_lines(&path, &text).into_iter().flat_map(numbers));
    }
    let differences =
        fs::read_to_string(root.join(DIFFERENCES)).expect("there is a document of the differences");
    let documented: BTreeSet<String> = document
        .lines()
        .chain(differences.lines())
        .flat_map(numbers)
        .collect();
    assert!(
        documented.len() > REQUIREMENTS + 15,
        "deviations have numbers, too: {documented:?}"
    );
    let unheld: Vec<&String> = documented.difference(&held).collect();
    assert!(unheld.is_empty(), "no test carries the number of: {unheld:?}");
}

#[test]
fn every_deviation_is_documented() {
    let document =
        fs::read_to_string(workspace().join(DIFFERENCES)).expect("there is a document of the differences");
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
            "{DIFFERENCES} does not document {name}"
        );
    }
}

#[test]
fn numbers_are_read_from_names_and_comments() {
    let numbers = |line| numbers(line).into_iter().collect::<Vec<_>>();
    assert_eq!(
        numbers("    // D-31 and (Q-2), not XD-33 nor d nor D-"),
        ["D-31", "Q-2"]
    );
    assert_eq!(
        numbers("fn d_40_rounds_up() {} fn d41() {} fn add_5() {} let ü_d_6;"),
        ["D-40", "D-6"]
    );
    assert_eq!(
        test_lines(Path::new("src/x.rs"), "// D-1\n#[cfg(test)]\n// D-2"),
        ["#[cfg(test)]", "// D-2"]
    );
}
