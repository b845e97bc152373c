//! Grafana's dashboard.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::Value;

use crate::{documented::Documented, labels, rules::ensure_labels};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Dashboard {
    id: Option<u64>,
    uid: String,
    schema_version: u32,
    templating: Templating,
    annotations: Templating,
    panels: Vec<Panel>,
}

#[derive(Debug, Deserialize)]
struct Templating {
    list: Vec<Variable>,
}

/// A variable or an annotation.
#[derive(Debug, Deserialize)]
struct Variable {
    name: String,
    definition: Option<String>,
    expr: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Panel {
    id: u64,
    #[serde(rename = "type")]
    kind: String,
    pub(crate) title: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    field_config: Value,
    grid_pos: AuditPosition,
    #[serde(default)]
    pub(crate) targets: Vec<Target>,
}

#[derive(Debug, Deserialize)]
struct AuditPosition {
    x: u32,
    y: u32,
    w: u32,
    h: u32,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Target {
    expr: String,
    legend_format: String,
    #[serde(default)]
    exemplar: bool,
    datasource: BTreeMap<String, String>,
}

impl Target {
    /// The query with all variables set to match everything, and with this rate window.
    pub(crate) fn question(&self, window: &str) -> String {
        with_variables(&self.expr, window)
    }
}

fn with_variables(text: &str, window: &str) -> String {
    let text = text.replace("$__rate_interval", window);
    ["$namespace", "$kind", "$workload", "$instance"]
        .iter()
        .fold(text, |text, variable| text.replace(variable, ".*"))
}

impl Dashboard {
    pub(crate) fn read() -> Result<Self> {
        serde_json::from_str(&crate::text("deploy/grafana/nodewise.json")?).context("the dashboard")
    }

    /// The panels that are not rows.
    pub(crate) fn charts(&self) -> impl Iterator<Item = &Panel> {
        self.panels.iter().filter(|panel| panel.kind != "row")
    }

    /// The panels of one row.
    pub(crate) fn charts_of(&self, row: &str) -> impl Iterator<Item = &Panel> {
        let from = self.panels.iter().skip_while(move |panel| panel.title != row);
        from.skip(1).take_while(|panel| panel.kind != "row")
    }
}

#[test]
fn it_can_be_imported() -> Result<()> {
    let dashboard = Dashboard::read()?;
    assert_eq!((dashboard.id, dashboard.uid.as_str()), (None, "nodewise"));
    assert_eq!(dashboard.schema_version, 39, "of Grafana 10.4");
    let variables = dashboard.templating.list.iter().map(|variable| &*variable.name);
    let variables: Vec<_> = variables.collect();
    assert_eq!(
        variables,
        ["datasource", "namespace", "kind", "workload", "instance"]
    );
    let rows = dashboard.panels.iter().filter(|panel| panel.kind == "row");
    let rows: Vec<_> = rows.map(|panel| &*panel.title).collect();
    assert_eq!(rows, ["Rollouts", "Service", "Executor"]);
    Ok(())
}

#[test]
fn panels_have_descriptions_and_do_not_overlap() -> Result<()> {
    let dashboard = Dashboard::read()?;
    let (mut ids, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for panel in &dashboard.panels {
        let title = &panel.title;
        ensure!(ids.insert(panel.id), "{title}: another panel has id {}", panel.id);
        let AuditPosition { x, y, w, h } = panel.grid_pos;
        ensure!(x + w <= 24, "{title} is too wide");
        for place in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
            ensure!(taken.insert(place), "{title} lies on another panel");
        }
    }
    for panel in dashboard.charts() {
        let title = &panel.title;
        ensure!(panel.description.ends_with('.'), "{title} has no description");
        let unit = panel.field_config["defaults"]["unit"].as_str();
        ensure!(unit.is_some_and(|unit| !unit.is_empty()), "{title} has no unit");
        ensure!(!panel.targets.is_empty(), "{title} shows nothing");
    }
    Ok(())
}

#[test]
fn panels_use_existing_series() -> Result<()> {
    let documented = Documented::read()?;
    let dashboard = Dashboard::read()?;
    for panel in dashboard.charts() {
        for target in &panel.targets {
            let title = &panel.title;
            ensure!(
                target.datasource["uid"] == "${datasource}",
                "{title} has a data source of its own"
            );
            ensure!(
                target.expr.contains(r#"instance=~"$instance""#),
                "{title} shows every instance"
            );
            let answer = labels::check(&target.question("5m"), &documented).with_context(|| title.clone())?;
            ensure_labels(&target.legend_format.replace("{{", "{{."), ".", &answer)?;
        }
    }
    Ok(())
}

/// The queries of variables and annotations use existing series.
#[test]
fn variables_and_annotations_use_existing_series() -> Result<()> {
    let documented = Documented::read()?;
    let dashboard = Dashboard::read()?;
    for variable in &dashboard.templating.list {
        let Some(definition) = &variable.definition else {
            continue;
        };
        let asked = definition
            .strip_prefix("label_values(")
            .and_then(|rest| rest.strip_suffix(')'))
            .and_then(|rest| rest.rsplit_once(", "));
        let (series, label) = asked.with_context(|| format!("what does {definition} ask for?"))?;
        let answer = labels::check(&with_variables(series, "5m"), &documented)?;
        ensure!(
            answer.has(label),
            "{definition} asks for a label that is not there"
        );
    }
    for annotation in &dashboard.annotations.list {
        let asked = annotation
            .expr
            .as_deref()
            .context("an annotation without a question")?;
        labels::check(asked, &documented)?;
    }
    Ok(())
}

/// Panels of durations have exemplars, which link to traces.
#[test]
fn duration_panels_have_exemplars() -> Result<()> {
    for panel in Dashboard::read()?.charts() {
        let of_durations = |target: &&Target| target.expr.contains("duration_seconds_bucket");
        let mut durations = panel.targets.iter().filter(of_durations).peekable();
        let any = durations.peek().is_none() || durations.any(|target| target.exemplar);
        ensure!(any, "{} has no exemplars", panel.title);
    }
    Ok(())
}
