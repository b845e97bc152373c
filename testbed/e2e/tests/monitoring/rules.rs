//! Prometheus' rules.

use std::{
    collections::BTreeMap,
    io::{Seek as _, Write as _},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use nodewise_testbed::Tool;
use serde::Deserialize;

use crate::{
    documented::Documented,
    labels::{self, Answer},
};

pub(crate) const RULES: &str = "deploy/prometheus/rules.yaml";
const TESTS: &str = "deploy/prometheus/rules.test.yaml";

#[derive(Debug, Deserialize)]
struct RuleFile {
    groups: Vec<Group>,
}

#[derive(Debug, Deserialize)]
struct Group {
    rules: Vec<Rule>,
}

#[derive(Debug, Deserialize)]
struct Rule {
    alert: String,
    expr: String,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
}

fn rules() -> Result<Vec<Rule>> {
    let file: RuleFile = serde_saphyr::from_str(&crate::text(RULES)?)?;
    Ok(file.groups.into_iter().flat_map(|group| group.rules).collect())
}

fn promtool(arguments: &[&str], path: &str) -> Result<()> {
    let mut command = Command::new(Tool::Promtool.path()?);
    command.args(arguments).arg(crate::file(path));
    succeeds(&mut command)
}

/// Runs `promtool check metrics` on a scrape in the text format.
pub(crate) fn promtool_reads(metrics: &str) -> Result<()> {
    let mut scrape = tempfile::tempfile()?;
    scrape.write_all(metrics.as_bytes())?;
    scrape.rewind()?;
    let mut command = Command::new(Tool::Promtool.path()?);
    succeeds(command.args(["check", "metrics"]).stdin(scrape))
}

fn succeeds(command: &mut Command) -> Result<()> {
    let output = command.output()?;
    let (said, complained) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    ensure!(output.status.success(), "{command:?}:\n{said}{complained}");
    Ok(())
}

#[test]
fn promtool_accepts_the_rules() -> Result<()> {
    promtool(&["check", "rules"], RULES)
}

#[test]
fn rule_tests_cover_every_alert() -> Result<()> {
    promtool(&["test", "rules"], TESTS)?;
    let tests = crate::text(TESTS)?;
    for Rule { alert, .. } in rules()? {
        let fires = format!("- alertname: {alert}\n");
        let is_silent = format!("- {{alertname: {alert}, eval_time: ");
        ensure!(
            tests.contains(&fires) && tests.contains(&is_silent),
            "{alert} has no test that it fires, or none that it does not"
        );
    }
    Ok(())
}

#[test]
fn rules_use_existing_series() -> Result<()> {
    let documented = Documented::read()?;
    let rules = rules()?;
    ensure!(rules.len() > 5, "only {} rules", rules.len());
    for Rule {
        alert,
        expr,
        annotations,
        ..
    } in rules
    {
        let answer = labels::check(&expr, &documented).with_context(|| alert.clone())?;
        for text in annotations.values() {
            ensure_labels(text, "$labels.", &answer).with_context(|| alert.clone())?;
        }
    }
    Ok(())
}

#[test]
fn alerts_say_what_to_do() -> Result<()> {
    let operations = crate::text("docs/operations.md")?;
    for Rule {
        alert,
        labels,
        annotations,
        ..
    } in rules()?
    {
        let severity = labels
            .get("severity")
            .with_context(|| format!("{alert} has no severity"))?;
        for name in ["summary", "description"] {
            ensure!(
                annotations.get(name).is_some_and(|text| text.ends_with('.')),
                "{alert} has no {name}"
            );
        }
        let runbook = annotations.get("runbook_url").map_or("", String::as_str);
        let anchor = format!("/docs/operations.md#{}", alert.to_lowercase());
        ensure!(runbook.ends_with(&anchor), "{alert} leads to {runbook}");
        let section = format!("\n### {alert}\n\n**{severity}.** ");
        ensure!(
            operations.contains(&section),
            "docs/operations.md lacks {section}"
        );
    }
    Ok(())
}

/// Fails unless every label after this prefix in a template is among the labels of the result.
pub(crate) fn ensure_labels(template: &str, prefix: &str, answer: &Answer) -> Result<()> {
    for part in template.split("{{").skip(1) {
        let (inside, _) = part.split_once("}}").context("an open template")?;
        for named in inside
            .split_whitespace()
            .filter_map(|word| word.strip_prefix(prefix))
        {
            ensure!(
                answer.has(named),
                "{template:?} names {named}, which is not among {answer:?}"
            );
        }
    }
    Ok(())
}
