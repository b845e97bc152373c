//! Compares the results of `make mutants` with docs/mutants.md: the document must explain every mutant that no test catches.
//!
//! A mutant is identified by file and mutation, not by line, so that the list stays valid after edits. If a function has two equal
//! mutants, each needs a row.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// The least share of viable mutants that the tests must catch, in percent.
const LEAST_CAUGHT: usize = 95;
/// The list of survivors.
const LIST: &str = "docs/mutants.md";
/// The heading above the list.
const HEADING: &str = "## Survivors\n";
/// Where `make mutants` leaves its results.
const RESULTS: &str = "target/mutants/mutants.out";
/// The sources that are mutated.
const SOURCE: &str = "server/planner/src";

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the workspace exists")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("reading {}: {error}", path.display()))
}

/// A mutant: its file below [`SOURCE`], and what was changed.
type Mutant = (String, String);

/// How often each mutant is named.
fn counted(mutants: impl Iterator<Item = Mutant>) -> BTreeMap<Mutant, usize> {
    mutants.fold(BTreeMap::new(), |mut counts, mutant| {
        *counts.entry(mutant).or_default() += 1;
        counts
    })
}

/// A line of the results: `<path>:<line>:<column>: <mutation>`.
fn survivor(line: &str) -> Mutant {
    let parts = line.split_once(": ").and_then(|(place, mutation)| {
        let file = place.split(':').next()?.strip_prefix(SOURCE)?;
        Some((file.trim_start_matches('/').to_owned(), mutation.to_owned()))
    });
    parts.unwrap_or_else(|| panic!("{line:?} names no mutant of the planner"))
}

/// The rows of the list, after its heading: `` | `file` | `mutation` | reason | ``.
fn listed(document: &str) -> Vec<(Mutant, String)> {
    let (_, document) = document.split_once(HEADING).expect("the list has its heading");
    let cells = document.lines().filter_map(|line| {
        // A bar inside a cell is written with a backslash.
        let line = line.replace("\\|", "\u{0}");
        let cells: Vec<String> = line
            .strip_prefix("| `")?
            .split(" |")
            .map(|cell| cell.trim_start_matches([' ', '|']).replace('\u{0}', "|"))
            .collect();
        let [file, mutation, reason, _] = cells.as_slice() else {
            panic!("{line:?} has another number of cells than the table");
        };
        let bare = |cell: &String| cell.trim_matches('`').to_owned();
        Some(((bare(file), bare(mutation)), reason.clone()))
    });
    cells.collect()
}

/// The problems with the results of a run. `missed` is the text of missed.txt, `list` that of docs/mutants.md.
fn complaints(missed: &str, caught: usize, list: &str) -> Vec<String> {
    let survivors = counted(missed.lines().map(survivor));
    let explained = counted(listed(list).into_iter().map(|(mutant, _)| mutant));
    let unexplained = survivors
        .iter()
        .filter(|(mutant, count)| explained.get(mutant).is_none_or(|rows| rows < count))
        .map(|((file, mutation), _)| {
            format!("no test catches {file}: {mutation}; catch it, or say in {LIST} why nothing can")
        });
    let mut complaints: Vec<_> = unexplained.collect();
    let viable = caught + missed.lines().count();
    if caught * 100 < viable * LEAST_CAUGHT || viable == 0 {
        complaints.push(format!(
            "{caught} of {viable} mutants are caught, less than {LEAST_CAUGHT} %"
        ));
    }
    complaints
}

#[test]
fn rows_of_the_list_name_existing_functions_and_a_reason() {
    let root = workspace();
    let rows = listed(&read(&root.join(LIST)));
    for ((file, mutation), reason) in rows {
        let source = read(&root.join(SOURCE).join(&file));
        // A mutation of a part of a function ends in ` in F::g`; one of a whole function is `replace F::g -> T with …`.
        let part = mutation.rsplit_once(" in ").map(|(_, function)| function);
        let whole = || {
            let mut words = mutation.strip_prefix("replace ")?.split([' ', '(']);
            words
                .clone()
                .find(|word| word.contains("::"))
                .or_else(|| words.next())
        };
        let function = part
            .or_else(whole)
            .unwrap_or_else(|| panic!("{mutation:?} names no function"));
        let name = function.rsplit("::").next().unwrap_or(function);
        assert!(
            source.contains(&format!("fn {name}")),
            "{file} has no function {name} any more: {mutation}"
        );
        assert!(!reason.is_empty(), "{mutation} has a reason");
    }
}

#[test]
fn a_survivor_needs_a_row_and_most_mutants_must_be_caught() {
    let line = |column: u32| format!("{SOURCE}/a/b.rs:7:{column}: replace || with && in F::g\n");
    let row = "| `a/b.rs` | `replace \\|\\| with && in F::g` | equal |\n";
    // (missed, caught, list, how many complaints)
    let table = [
        (String::new(), 1, String::new(), 0),
        (line(1), 99, String::new(), 1),
        (line(1), 99, row.to_owned(), 0),
        (line(1) + &line(2), 99, row.to_owned(), 1),
        (line(1) + &line(2), 99, row.repeat(2), 0),
        (line(1), 19, row.to_owned(), 0),
        (line(1), 18, row.to_owned(), 1),
        (String::new(), 0, String::new(), 1),
    ];
    for (missed, caught, list, expected) in table {
        let list = format!("| `no` | row |\n{HEADING}{list}");
        let found = complaints(&missed, caught, &list);
        assert_eq!(found.len(), expected, "{missed}{caught} {list}: {found:?}");
    }
}

#[test]
#[ignore = "needs the results of a run: `make mutants` calls it"]
fn the_last_run_holds() {
    let results = workspace().join(RESULTS);
    let read = |name: &str| read(&results.join(name));
    // A mutant that never ends counts as caught.
    let caught = read("caught.txt").lines().count() + read("timeout.txt").lines().count();
    let missed = read("missed.txt");
    let (survivors, unviable) = (missed.lines().count(), read("unviable.txt").lines().count());
    println!("{caught} mutants caught, {survivors} survive, {unviable} do not compile");
    let complaints = complaints(&missed, caught, &self::read(&workspace().join(LIST)));
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
