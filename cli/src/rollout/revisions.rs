//! The revisions of a DaemonSet or Deployment, with their templates.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use jiff::Timestamp;
use nodewise_proto::workload::TEMPLATE_HASH_LABEL;
use serde::Serialize;
use serde_json::Value;

use super::args::WorkloadArgs;
use crate::{
    input::{Cluster, Served},
    kind::Kind,
    target::Target,
};

/// The annotation with the number of a Deployment's revision.
const REVISION: &str = "/metadata/annotations/deployment.kubernetes.io~1revision";
/// The annotation with the reason of a change, which people write.
const CHANGE_CAUSE: &str = "/metadata/annotations/kubernetes.io~1change-cause";

/// One revision.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Revision {
    pub(crate) number: i64,
    /// The ControllerRevision or ReplicaSet.
    pub(crate) name: String,
    pub(crate) created: Option<Timestamp>,
    /// Whether the workload has this template now.
    pub(crate) is_current: bool,
    /// Each as `CONTAINER=IMAGE`.
    pub(crate) images: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) change_cause: String,
    #[serde(skip)]
    pub(crate) template: Value,
    /// metadata.annotations of the ControllerRevision or ReplicaSet.
    #[serde(skip)]
    pub(crate) annotations: BTreeMap<String, String>,
}

/// A workload, its JSON, and its revisions, from the oldest to the newest.
pub(crate) struct History<'a> {
    pub(crate) workload: &'a Served,
    pub(crate) object: Value,
    pub(crate) revisions: Vec<Revision>,
}

/// The cluster and the target that a command names. A ReplicaSet has one template, so it has no revisions.
pub(super) async fn read(args: &WorkloadArgs) -> anyhow::Result<(Cluster, Target)> {
    let target = Target::parse_one(&args.target)?;
    let cluster = Cluster::read_with_facts(
        &args.source,
        std::slice::from_ref(&target),
        args.namespace.as_deref(),
    );
    Ok((cluster.await?, target))
}

/// The only workload of a target.
pub(super) fn workload<'a>(
    cluster: &'a Cluster,
    target: &Target,
    args: &WorkloadArgs,
) -> anyhow::Result<&'a Served> {
    let found = cluster.find(target, args.namespace.as_deref())?;
    found.first().copied().context("no workload is named")
}

impl<'a> History<'a> {
    /// Reads the revisions of a workload.
    pub(crate) fn of(cluster: &'a Cluster, workload: &'a Served) -> anyhow::Result<Self> {
        let object = json(workload)?;
        let is_own = |one: &&Served| one.controller.as_deref() == Some(&workload.uid);
        let present = normal(&object["spec"]["template"]);
        let mut revisions = Vec::new();
        match workload.kind {
            Kind::DaemonSet => {
                for one in cluster.revisions_in(&workload.namespace).iter().filter(is_own) {
                    let read = json(one)?;
                    let number = read["revision"].as_i64().unwrap_or_default();
                    let template = normal(&read["data"]["spec"]["template"]);
                    revisions.push(revision(one, &read, number, template, &present));
                }
            }
            Kind::Deployment => {
                let sets = cluster.workloads_in(Kind::ReplicaSet, &workload.namespace);
                for one in sets.filter(is_own) {
                    let read = json(one)?;
                    let number = read.pointer(REVISION).and_then(Value::as_str);
                    let number = number.and_then(|number| number.parse().ok()).unwrap_or_default();
                    let template = normal(&read["spec"]["template"]);
                    revisions.push(revision(one, &read, number, template, &present));
                }
            }
            _ => bail!(
                "{}: a ReplicaSet has one template and no revisions; expected a DaemonSet or Deployment",
                workload.title()
            ),
        }
        revisions.sort_by_key(|revision| revision.number);
        Ok(Self {
            workload,
            object,
            revisions,
        })
    }

    /// The revision with a number or, without one, the newest that the workload does not have now.
    pub(crate) fn find(&self, number: Option<i64>) -> anyhow::Result<&Revision> {
        let mut newest_first = self.revisions.iter().rev();
        let found = match number {
            Some(number) => newest_first.find(|revision| revision.number == number),
            None => newest_first.find(|revision| !revision.is_current),
        };
        let title = self.workload.title();
        let numbers: Vec<String> = self
            .revisions
            .iter()
            .map(|revision| revision.number.to_string())
            .collect();
        let there = if numbers.is_empty() {
            "it has no revisions".to_owned()
        } else {
            format!("it has {}", numbers.join(", "))
        };
        found.with_context(|| match number {
            Some(number) => format!("{title}: no revision {number}; {there}"),
            None => format!("{title}: no revision other than the present one; {there}"),
        })
    }

    /// The template that the workload has now.
    pub(crate) fn present(&self) -> Value {
        normal(&self.object["spec"]["template"])
    }
}

fn json(served: &Served) -> anyhow::Result<Value> {
    serde_json::from_str(served.json.get()).with_context(|| format!("{} is not valid JSON", served.title()))
}

fn revision(served: &Served, object: &Value, number: i64, template: Value, present: &Value) -> Revision {
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let containers = template["spec"]["containers"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let image = |container: &Value| {
        let field = |name: &str| container[name].as_str().unwrap_or_default().to_owned();
        format!("{}={}", field("name"), field("image"))
    };
    Revision {
        number,
        name: served.name.clone(),
        created: text("/metadata/creationTimestamp").parse().ok(),
        is_current: template == *present,
        images: containers.iter().map(image).collect(),
        change_cause: text(CHANGE_CAUSE).to_owned(),
        template,
        annotations: annotations(object),
    }
}

/// metadata.annotations of an object.
pub(super) fn annotations(object: &Value) -> BTreeMap<String, String> {
    let all = object["metadata"]["annotations"].as_object();
    let all = all.into_iter().flatten();
    all.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// The template without what the controllers add to it.
fn normal(template: &Value) -> Value {
    let mut template = template.clone();
    let Some(fields) = template.as_object_mut() else {
        return template;
    };
    fields.remove("$patch");
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("creationTimestamp");
        if let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut) {
            labels.remove(TEMPLATE_HASH_LABEL);
        }
    }
    template
}
