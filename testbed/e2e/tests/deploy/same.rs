//! The chart and the overlays say the same.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail, ensure};
use nodewise_testbed::manifests;
use serde_json::{Map, Value};

use crate::render::{self, NAMESPACE};

/// Labels that only Helm sets.
const OF_HELM: [&str; 4] = [
    "helm.sh/chart",
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/version",
];

/// An object as what it means: without Helm's labels and without what is empty. The order of lists is not kept, since none of
/// ours has one that matters.
fn meaning(value: &Value) -> Value {
    let is_empty = |value: &Value| {
        value.is_null()
            || value.as_object().is_some_and(Map::is_empty)
            || value.as_array().is_some_and(Vec::is_empty)
    };
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|(key, _)| !OF_HELM.contains(&key.as_str()))
            .map(|(key, value)| (key.clone(), meaning(value)))
            .filter(|(_, value)| !is_empty(value))
            .collect(),
        Value::Array(items) => {
            let mut items: Vec<_> = items.iter().map(meaning).collect();
            items.sort_by_cached_key(ToString::to_string);
            items.into()
        }
        other => other.clone(),
    }
}

/// Objects by name. The namespace is not the chart's to make.
fn meanings(objects: &[Value]) -> BTreeMap<String, Value> {
    let objects = objects.iter().filter(|object| object["kind"] != "Namespace");
    objects
        .map(|object| (render::name(object), meaning(object)))
        .collect()
}

/// Where two values differ first, and how.
fn difference<'a>(place: &str, left: &'a Value, right: &'a Value) -> Option<(String, &'a Value, &'a Value)> {
    match (left, right) {
        (Value::Object(members), Value::Object(others)) if members.keys().eq(others.keys()) => members
            .iter()
            .find_map(|(key, value)| difference(&format!("{place}/{key}"), value, &others[key])),
        (Value::Array(items), Value::Array(others)) if items.len() == others.len() => {
            let mut pairs = items.iter().zip(others).enumerate();
            pairs.find_map(|(index, (item, other))| difference(&format!("{place}/{index}"), item, other))
        }
        _ => (left != right).then(|| (place.to_owned(), left, right)),
    }
}

#[test]
fn the_chart_says_what_each_overlay_says() -> Result<()> {
    for name in render::overlays()? {
        let (overlay, chart) = (
            meanings(&render::overlay(&name)?),
            meanings(&render::chart(&name)?),
        );
        ensure!(
            overlay.keys().eq(chart.keys()),
            "{name}: the overlay has {:?}, the chart {:?}",
            overlay.keys(),
            chart.keys()
        );
        for (object, said) in &overlay {
            if let Some((place, overlay, chart)) = difference("", said, &chart[object]) {
                bail!("{name}: {object}: {place}: the overlay says {overlay}, the chart {chart}");
            }
        }
    }
    Ok(())
}

#[test]
fn everything_is_in_the_namespace() -> Result<()> {
    for name in render::overlays()? {
        for object in render::overlay(&name)? {
            let namespace = &object["metadata"]["namespace"];
            let is_right = if render::is_in_namespace(&object) {
                namespace == NAMESPACE
            } else {
                namespace.is_null()
            };
            ensure!(is_right, "{name}: {} is in {namespace}", render::name(&object));
        }
    }
    Ok(())
}

/// They are written twice, once as Prometheus itself reads them.
#[test]
fn the_operator_gets_the_same_rules() -> Result<()> {
    const COPY: &str = "deploy/kustomize/components/monitoring/prometheus-rule.yaml";
    let rules = render::text("deploy/prometheus/rules.yaml")?;
    let (_, groups) = rules.split_once("groups:\n").context("groups of rules")?;
    let copy = render::text(COPY)?;
    let (head, _) = copy.split_once("  groups:\n").context("groups of rules")?;
    let indented = groups.lines().map(|line| match line {
        "" => "\n".to_owned(),
        line => format!("  {line}\n"),
    });
    let fresh = format!("{head}  groups:\n{}", indented.collect::<String>());
    if std::env::var_os("NODEWISE_REGENERATE").is_some() {
        std::fs::write(render::file(COPY), &fresh)?;
    } else {
        ensure!(
            fresh == copy,
            "the rules have changed: run NODEWISE_REGENERATE=1 cargo test -p nodewise-e2e --test deploy"
        );
    }
    let (rules, copy) = (manifests::parse(&rules)?, manifests::parse(&fresh)?);
    ensure!(copy[0]["spec"] == rules[0], "they differ as YAML");
    Ok(())
}

#[test]
fn a_difference_is_found() {
    let of = |drop: &str| serde_json::json!({ "labels": { "helm.sh/chart": drop, "a": "b" }, "list": [{ "n": 1 }, { "drop": drop }], "none": {} });
    let (all, none) = (meaning(&of("ALL")), meaning(&of("")));
    assert_eq!(difference("", &all, &all), None);
    let (place, left, right) = difference("", &all, &none).expect("one");
    assert_eq!(
        (place.as_str(), left, right),
        ("/list/0/drop", &"ALL".into(), &"".into())
    );
}
