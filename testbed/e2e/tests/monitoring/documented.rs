//! The tables of metrics in `docs/operations.md`.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};

/// The labels that Prometheus adds to the series of a target.
const TARGET: [&str; 2] = ["job", "instance"];
/// Prometheus' own series.
const PROMETHEUS: [(&str, &[&str]); 2] = [("up", &[]), ("ALERTS", &["alertname", "alertstate", "severity"])];
const PROGRAMS: [&str; 2] = ["nodewise-executor", "nodewise-server"];

/// The series of each program, with the names of their labels.
#[derive(Debug)]
pub(crate) struct Documented(BTreeMap<&'static str, BTreeMap<String, BTreeSet<String>>>);

impl Documented {
    pub(crate) fn read() -> Result<Self> {
        let document = crate::text("docs/operations.md")?;
        let mut programs = BTreeMap::new();
        for program in PROGRAMS {
            let (_, rest) = document
                .split_once(&format!("<!-- metrics of {program} -->"))
                .context("the place of a table")?;
            let (table, _) = rest.split_once("<!-- end of metrics -->").context("its end")?;
            let rows = table.lines().filter(|line| line.starts_with("| `"));
            let series: BTreeMap<_, _> = rows.flat_map(series).collect();
            ensure!(!series.is_empty(), "no metrics of {program}");
            programs.insert(program, series);
        }
        Ok(Self(programs))
    }

    /// The labels that the series of this name have in all of these jobs.
    pub(crate) fn labels(&self, name: &str, jobs: &[&str]) -> Result<BTreeSet<String>> {
        let target = TARGET.map(str::to_owned);
        if let Some((_, labels)) = PROMETHEUS.iter().find(|(own, _)| *own == name) {
            return Ok(target
                .into_iter()
                .chain(labels.iter().map(ToString::to_string))
                .collect());
        }
        let mut labels = None;
        for job in jobs {
            let series = self
                .0
                .get(job)
                .with_context(|| format!("no job is called {job}"))?;
            let found = series
                .get(name)
                .with_context(|| format!("{job} has no series {name}, as far as docs/operations.md says"))?;
            labels = Some(found);
        }
        // Without a job, any program that has the series.
        let labels = labels.or_else(|| self.0.values().find_map(|series| series.get(name)));
        let labels = labels.with_context(|| format!("docs/operations.md knows no series {name}"))?;
        Ok(labels.iter().cloned().chain(target).collect())
    }
}

/// The series of a metric, from its table row: | `name` | type | unit | `label`, … | meaning |.
fn series(row: &str) -> Vec<(String, BTreeSet<String>)> {
    let cells: Vec<&str> = row.split('|').map(str::trim).collect();
    let (name, kind) = (cells[1].trim_matches('`'), cells[2]);
    let labels: BTreeSet<String> = cells[4]
        .split(", ")
        .map(|label| label.trim_matches('`').to_owned())
        .filter(|label| !label.is_empty())
        .collect();
    if kind != "histogram" {
        return vec![(name.to_owned(), labels)];
    }
    let mut of_bucket = labels.clone();
    of_bucket.insert("le".to_owned());
    vec![
        (format!("{name}_bucket"), of_bucket),
        (format!("{name}_sum"), labels.clone()),
        (format!("{name}_count"), labels),
    ]
}
