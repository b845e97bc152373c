//! Renders `docs/benchmarks.md`: the goals, and a table and charts for each section.

use std::fmt::Write as _;

use anyhow::Result;

use crate::machine::Machine;
use crate::record::{Measured, Record};
use crate::report::Target;

/// The folder of the charts and the record, next to the document.
pub const FOLDER: &str = "benchmarks";

const INTRODUCTION: &str = "# Benchmarks

`make bench` measures Nodewise and upstream in one run, and writes this document; it takes more than an hour on two cores.
`cargo run --release -p nodewise-bench -- SECTION` measures one section again; the last line of each section has its name. Figures are
medians, with the minimum and the maximum of all rounds in brackets. The machine should have nothing else to do.
For missed goals, [profiles](profiles.md) say where the time goes.
";

/// Renders the findings of these sections, in this order.
///
/// # Errors
/// A write to the text fails.
pub fn render(record: &Record, sections: &[&str]) -> Result<String> {
    let mut text = String::from(INTRODUCTION);
    let found = || {
        sections
            .iter()
            .filter_map(|name| Some((*name, record.0.get(*name)?)))
    };
    text.push_str("\n## Goals\n\n| what | goal | measured | |\n|---|---|---|---|\n");
    for (_, measured) in found() {
        for Target {
            what,
            goal,
            measured,
            reached,
        } in &measured.finding.targets
        {
            let verdict = if *reached { "reached" } else { "**missed**" };
            writeln!(text, "| {what} | {goal} | {measured} | {verdict} |")?;
        }
    }
    let missing = sections.iter().filter(|name| !record.0.contains_key(**name));
    let missing: Vec<_> = missing.map(|name| format!("`{name}`")).collect();
    if !missing.is_empty() {
        writeln!(text, "\nNot measured yet: {}.", missing.join(", "))?;
    }
    for (name, measured) in found() {
        section(&mut text, name, measured)?;
    }
    Ok(text)
}

fn section(text: &mut String, name: &str, measured: &Measured) -> Result<()> {
    let Measured { machine, finding } = measured;
    let Machine {
        processor,
        processors,
        memory_gb,
        kernel,
        commit,
        date,
    } = machine;
    writeln!(text, "\n## {}\n\n{}\n", finding.title, finding.about)?;
    writeln!(text, "| {} |", finding.columns.join(" | "))?;
    writeln!(
        text,
        "|---{}|",
        "|--:".repeat(finding.columns.len().saturating_sub(1))
    )?;
    for row in &finding.rows {
        writeln!(text, "| {} |", row.join(" | "))?;
    }
    text.push('\n');
    for chart in &finding.charts {
        writeln!(text, "![{}]({FOLDER}/{}.svg)", chart.title, chart.file)?;
    }
    writeln!(
        text,
        "\n`nodewise-bench {name}` at {commit} on {date}: {processors} cores ({processor}), {memory_gb} GB, Linux {kernel}."
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Finding;

    #[test]
    fn document_has_measured_sections() -> Result<()> {
        let finding = Finding {
            title: "Plans".to_owned(),
            about: "One thread.".to_owned(),
            columns: vec!["nodes".to_owned(), "µs".to_owned()],
            rows: vec![vec!["5,000".to_owned(), "184 (180–190)".to_owned()]],
            targets: vec![
                Target::at_least("plans", 300.0, 940.0, "times"),
                Target::at_most("calls", 1.0, 2.0, "ms"),
            ],
            charts: Vec::new(),
        };
        let machine = Machine {
            processor: "some".to_owned(),
            processors: 2,
            memory_gb: 24,
            kernel: "6.1.0".to_owned(),
            commit: "abcdef1".to_owned(),
            date: "2026-01-01".to_owned(),
        };
        let record = Record([("plan".to_owned(), Measured { machine, finding })].into());
        let text = render(&record, &["calls", "plan"])?;
        for line in [
            "| plans | at least 300 times | 940 times | reached |",
            "| calls | at most 1 ms | 2 ms | **missed** |",
            "Not measured yet: `calls`.",
            "## Plans",
            "| nodes | µs |",
            "|---|--:|",
            "| 5,000 | 184 (180–190) |",
            "`nodewise-bench plan` at abcdef1 on 2026-01-01: 2 cores (some), 24 GB, Linux 6.1.0.",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}: {text}");
        }
        assert!(!render(&record, &["plan"])?.contains("Not measured yet"));
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("results.json");
        assert_eq!(Record::read(&path)?, Record::default());
        record.write(&path)?;
        assert_eq!(Record::read(&path)?, record);
        Ok(())
    }
}
