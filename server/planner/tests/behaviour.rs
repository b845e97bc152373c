//! Checks that every number in docs/behaviour.md and docs/upstream-differences.md occurs in a test, and that every number in the
//! planner occurs in one of these documents.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// The requirements: docs/behaviour.md must have the rows D-1 to D-120, and so on.
const REQUIREMENTS: [(char, usize); 4] = [('D', 120), ('L', 45), ('P', 67), ('R', 63)];
/// The document with the deviations.
const DIFFERENCES: &str = "docs/upstream-differences.md";

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the workspace exists")
}

/// The files in a folder that are written by hand and have one of these extensions.
fn source_files(directory: &Path, extensions: &[&str], files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("directory is readable") {
        let path = entry.expect("entry is readable").path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if path.is_dir()
            && !matches!(
                name,
                "target" | "generated" | ".git" | "bin" | "nodewisev1" | "v1"
            )
        {
            source_files(&path, extensions, files);
        } else if path
            .extension()
            .is_some_and(|extension| extensions.iter().any(|known| extension == *known))
        {
            files.push(path);
        }
    }
}

/// The lines of a file that belong to tests: all lines of a file below `tests/` or `cases/` (of the conformance kit) or with the
/// name `tests.rs`, and otherwise the lines after `#[cfg(test)]`. Module documentation does not count: one sentence there could
/// name many numbers.
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

/// The letters of numbers. `Q` is that of differences.
fn is_letter(letter: char) -> bool {
    letter == 'Q' || REQUIREMENTS.iter().any(|(known, _)| *known == letter)
}

/// Whether a line is a row of docs/behaviour.md.
fn is_row(line: &str) -> bool {
    REQUIREMENTS
        .iter()
        .any(|(letter, _)| line.starts_with(&format!("| {letter}-")))
}

/// The numbers in a line, such as `D-31` or `Q-4`, or `d_31` or `q_4` in an identifier. `D-31..D-34` gives only its two ends.
fn numbers(line: &str) -> BTreeSet<String> {
    let bytes = line.as_bytes();
    let starts = (0..bytes.len()).filter(|&start| start == 0 || !bytes[start - 1].is_ascii_alphanumeric());
    let found = starts.filter_map(|start| {
        let (letter, separator) = match char::from(bytes[start]) {
            letter if is_letter(letter) => (letter, '-'),
            letter if is_letter(letter.to_ascii_uppercase()) => (letter.to_ascii_uppercase(), '_'),
            _ => return None,
        };
        let digits = line[start + 1..].strip_prefix(separator)?;
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        (end > 0).then(|| format!("{letter}-{}", &digits[..end]))
    });
    found.collect()
}

#[test]
fn every_number_of_the_documents_occurs_in_a_test() {
    let root = workspace();
    let document = fs::read_to_string(root.join("docs/behaviour.md")).expect("docs/behaviour.md exists");
    let rows = document
        .lines()
        .filter(|line| is_row(line))
        .filter_map(|line| line.strip_prefix("| ")?.split_once(" |"));
    let rows: BTreeSet<&str> = rows.map(|(number, _)| number).collect();
    let expected: Vec<String> = REQUIREMENTS
        .iter()
        .flat_map(|(letter, count)| (1..=*count).map(move |number| format!("{letter}-{number}")))
        .collect();
    assert_eq!(
        rows,
        expected.iter().map(String::as_str).collect(),
        "docs/behaviour.md has a row for each"
    );

    let mut files = Vec::new();
    source_files(&root, &["rs"], &mut files);
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
        documented.len() > expected.len() + 15,
        "deviations have numbers, too: {documented:?}"
    );
    let unheld: Vec<&String> = documented.difference(&held).collect();
    assert!(unheld.is_empty(), "no test carries the number of: {unheld:?}");
}

#[test]
fn every_number_in_the_sources_is_documented() {
    let root = workspace();
    let documents = ["docs/behaviour.md", DIFFERENCES]
        .map(|path| fs::read_to_string(root.join(path)).expect("the document exists"));
    let documented: BTreeSet<String> = documents
        .iter()
        .flat_map(|text| text.lines())
        .flat_map(numbers)
        .collect();
    let mut files = Vec::new();
    source_files(&root, &["rs", "go", "py", "proto"], &mut files);
    let this = Path::new(file!()).file_name().expect("a file has a name");
    for path in files.into_iter().filter(|path| path.file_name() != Some(this)) {
        let text = fs::read_to_string(&path).expect("source is readable");
        let used: BTreeSet<String> = text.lines().flat_map(numbers).collect();
        let unknown: Vec<&String> = used.difference(&documented).collect();
        assert!(
            unknown.is_empty(),
            "{} names numbers without a row in the documents: {unknown:?}",
            path.display()
        );
        let is_defined_nowhere = |line: &&str| {
            let words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
            let mut codes = words.filter_map(|word| word.split_once('-'));
            codes.any(|(letter, number)| {
                matches!(letter, "M" | "S")
                    && !number.is_empty()
                    && number.bytes().all(|b| b.is_ascii_digit())
            })
        };
        let undefined: Vec<&str> = text.lines().filter(is_defined_nowhere).collect();
        assert!(
            undefined.is_empty(),
            "{} names rules that no document has: {undefined:#?}",
            path.display()
        );
    }
}

#[test]
fn every_module_of_the_document_is_there() {
    let root = workspace();
    let document = fs::read_to_string(root.join("docs/behaviour.md")).expect("docs/behaviour.md exists");
    let rows = document.lines().filter(|line| is_row(line));
    for row in rows {
        let places = row.split('|').nth(2).unwrap_or_default().split(',');
        for place in places.map(str::trim).filter(|place| *place != "apiserver") {
            let (part, module) = place.split_once('/').unwrap_or((place, ""));
            let sources = match part {
                "planner" => "server/planner/src",
                "server" => "server/src",
                "executor" => "executor/src",
                "runtime" => "executor/runtime/src",
                "projection" => "executor/projection/src",
                _ => panic!("no part of the project: {row}"),
            };
            let path = root.join(sources).join(module);
            let is_there = path.with_extension("rs").is_file() || path.join("mod.rs").is_file();
            assert!(is_there, "{place} is no module: {row}");
        }
    }
}

#[test]
fn every_deviation_is_documented() {
    let document =
        fs::read_to_string(workspace().join(DIFFERENCES)).expect("there is a document of the differences");
    for deviation in nodewise_planner::snapshot::Deviation::ALL {
        // The protocol's name is the variant's name in upper case with underscores.
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

/// The source file of a module as the column *Where* of docs/behaviour.md names it.
fn module_exists(root: &Path, module: &str) -> bool {
    let Some((part, path)) = module.split_once('/') else {
        return module == "apiserver";
    };
    let sources = match part {
        "planner" => "server/planner/src",
        "server" => "server/src",
        "executor" => "executor/src",
        "runtime" => "executor/runtime/src",
        "projection" => "executor/projection/src",
        _ => return false,
    };
    let module = root.join(sources).join(path);
    module.with_extension("rs").is_file() || module.join("mod.rs").is_file()
}

#[test]
fn every_rule_names_the_modules_that_implement_it() {
    let root = workspace();
    let document = fs::read_to_string(root.join("docs/behaviour.md")).expect("docs/behaviour.md exists");
    let mut rows = 0;
    for line in document.lines().filter(|line| is_row(line)) {
        let mut cells = line.split('|').map(str::trim).skip(1);
        let (number, modules) = (cells.next().unwrap_or_default(), cells.next().unwrap_or_default());
        for module in modules.split(", ") {
            assert!(
                module_exists(&root, module),
                "{number}: there is no module {module:?}"
            );
        }
        rows += 1;
    }
    let requirements: usize = REQUIREMENTS.iter().map(|(_, count)| count).sum();
    assert_eq!(rows, requirements);
    assert!(!module_exists(&root, "planner/daemonset/nothing"));
}
