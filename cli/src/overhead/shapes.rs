//! The nodes that a command line asks about.

use std::{collections::BTreeMap, path::Path};

use anyhow::{anyhow, bail};
use nodewise_proto::v1;
use serde::Deserialize;

use super::args::OverheadArgs;
use crate::input::{Cluster, read_text_file};

/// A node of a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Shape {
    #[serde(default)]
    name: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    taints: Vec<Taint>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Taint {
    key: String,
    #[serde(default)]
    value: String,
    effect: String,
}

/// The nodes that the command line asks about, in order.
pub(super) fn of(args: &OverheadArgs, cluster: &Cluster) -> anyhow::Result<Vec<v1::NodeShape>> {
    if let Some(file) = &args.shapes {
        return from_file(file);
    }
    let mut shape = match &args.like {
        Some(name) => like(name, cluster)?,
        None => v1::NodeShape::default(),
    };
    for label in &args.labels {
        shape.labels.retain(|own| own.key != label.key);
        shape.labels.push(label.clone());
    }
    shape.taints.extend_from_slice(&args.taints);
    Ok(vec![shape])
}

fn like(name: &str, cluster: &Cluster) -> anyhow::Result<v1::NodeShape> {
    let mut nodes = cluster.nodes.iter().map(|node| &node.object);
    let Some(node) = nodes.find(|node| node.name == name) else {
        bail!(
            "{}: no Node {name}; there are {} nodes",
            cluster.source(),
            cluster.nodes.len()
        );
    };
    Ok(v1::NodeShape {
        name: node.name.clone(),
        labels: node.labels.clone(),
        taints: node.taints.clone(),
    })
}

fn from_file(file: &Path) -> anyhow::Result<Vec<v1::NodeShape>> {
    let text = read_text_file(file)?;
    let name = file.display();
    let options = serde_saphyr::options! { with_snippet: false };
    let shapes: Vec<Shape> = serde_saphyr::from_str_with_options(&text, options).map_err(|error| {
        anyhow!("{name}: is not a YAML list of nodes with name, labels and taints: {error}")
    })?;
    Ok(shapes.into_iter().map(message).collect())
}

fn message(shape: Shape) -> v1::NodeShape {
    let labels = shape.labels.into_iter();
    let taints = shape.taints.into_iter();
    v1::NodeShape {
        name: shape.name,
        labels: labels.map(|(key, value)| v1::Label { key, value }).collect(),
        taints: taints
            .map(|Taint { key, value, effect }| v1::Taint { key, value, effect })
            .collect(),
    }
}
