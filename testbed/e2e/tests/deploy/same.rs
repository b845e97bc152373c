//! The chart and the overlays agree.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail, ensure};
use nodewise_testbed::manifests;
use serde_json::{Map, Value};

use crate::render::{self, NAMESPACE};

/// Labels and annotations that only Helm sets.
const OF_HELM: [&str; 5] = [
    "helm.sh/chart",
    "helm.sh/resource-policy",
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/version",
];

/// Normalizes an object: without Helm's labels and without empty values. Lists are sorted, because the order of no list
/// here matters.
fn normalized(value: &Value) -> Value {
    let is_empty = |value: &Value| {
        value.is_null()
            || value.as_object().is_some_and(Map::is_empty)
            || value.as_array().is_some_and(Vec::is_empty)
    };
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|(key, _)| !OF_HELM.contains(&key.as_str()))
            .map(|(key, value)| (key.clone(), normalized(value)))
            .filter(|(_, value)| !is_empty(value))
            .collect(),
        Value::Array(items) => {
            let mut items: Vec<_> = items.iter().map(normalized).collect();
            items.sort_by_cached_key(ToString::to_string);
            items.into()
        }
        other => other.clone(),
    }
}

/// Normalized objects by name. The Namespace is left out, because the chart does not create it.
fn normalized_by_name(objects: &[Value]) -> BTreeMap<String, Value> {
    let objects = objects.iter().filter(|object| object["kind"] != "Namespace");
    objects
        .map(|object| (render::name(object), normalized(object)))
        .collect()
}

/// The path and the values of the first difference.
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
fn chart_and_overlays_agree() -> Result<()> {
    for name in render::overlays()? {
        let (overlay, chart) = (
            normalized_by_name(&render::overlay(&name)?),
            normalized_by_name(&render::chart(&name)?),
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

/// The rules exist twice, once in Prometheus' own format.
#[test]
fn prometheus_rule_has_the_same_rules() -> Result<()> {
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
    let (all, none) = (normalized(&of("ALL")), normalized(&of("")));
    assert_eq!(difference("", &all, &all), None);
    let (place, left, right) = difference("", &all, &none).expect("one");
    assert_eq!(
        (place.as_str(), left, right),
        ("/list/0/drop", &"ALL".into(), &"".into())
    );
}
