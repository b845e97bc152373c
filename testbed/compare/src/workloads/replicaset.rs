//! One sync of a ReplicaSet.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use jiff::{SignedDuration, Timestamp};
use nodewise_planner::plan::Plan;
use nodewise_planner::replicaset::{self, ReplicaSet};
use nodewise_planner::snapshot::{
    Bucket, Deviation, Expectations, ExpectedCreate, Options, OwnWrite, Selector, Snapshot, State,
};
use serde_json::Value;

use super::api::Api;
use super::apply::{Applied, Workload, apply};
use super::options::{named, options};
use super::read;
use crate::case::{Case, Kind};
use crate::outcome::{Outcome, Outstanding, sequence};
use crate::profile::{Deviations, Synced};

/// Syncs the first ReplicaSet of a case once.
pub(super) fn sync(case: &Case, deviations: &Deviations) -> Result<Synced> {
    let options = options(case, deviations)?;
    let subject = case.subject()?;
    let now: Timestamp = case.now.parse().context("now")?;
    let mut api = Api::new(case)?;
    let mut pods: Vec<Value> = case
        .pods
        .iter()
        .filter(|pod| is_of(subject, pod))
        .cloned()
        .collect();
    let related = related(case);
    let mut names = Vec::new();
    loop {
        let snapshot = Snapshot {
            now,
            workload: workload(subject, related.clone()),
            revisions: Vec::new(),
            buckets: Bucket::divide(Vec::new(), pods.iter().map(read::pod).collect(), 1, |_| 0),
            state: held(case, now)?,
            own_writes: own_writes(case),
            options: options.clone(),
        };
        let plan = replicaset::plan(&snapshot);
        names.extend(named(&plan));
        let workload = Workload {
            kind: Kind::ReplicaSet,
            object: subject,
        };
        let applied = apply(&plan, &mut api, &workload)?;
        if applied.vanished.is_empty() {
            names.sort_unstable();
            names.dedup();
            return Ok(Synced {
                outcome: outcome(&plan, &applied, api, &options)?,
                deviations: names,
            });
        }
        // The executor plans again once its cache shows what it wrote, without the orphans that are gone.
        pods.retain(|pod| {
            let name = read::text(pod, "/metadata/name");
            !applied.vanished.iter().any(|(_, gone)| gone == name)
        });
        for (_, written) in &applied.written {
            let mut found = pods
                .iter_mut()
                .filter(|pod| pod["metadata"]["name"] == written["metadata"]["name"]);
            found.by_ref().for_each(|pod| pod.clone_from(written));
        }
        pods.retain(|pod| is_of(subject, pod));
    }
}

/// Whether a snapshot has the pod.
fn is_of(subject: &Value, pod: &Value) -> bool {
    let same_namespace = subject["metadata"]["namespace"] == pod["metadata"]["namespace"];
    let text = |pointer| read::text(subject, pointer);
    same_namespace
        && read::controller(pod).is_none_or(|controller| {
            controller.kind == "ReplicaSet"
                && controller.name == text("/metadata/name")
                && controller.uid == text("/metadata/uid")
        })
}

fn workload(object: &Value, related_pods: Vec<(String, u32)>) -> ReplicaSet {
    let text = |pointer| read::text(object, pointer).to_owned();
    ReplicaSet {
        name: text("/metadata/name"),
        namespace: text("/metadata/namespace"),
        uid: text("/metadata/uid"),
        resource_version: text("/metadata/resourceVersion"),
        generation: read::number(object, "/metadata/generation"),
        deleting: read::is_deleting(object),
        selector: read::selector(object),
        replicas: read::optional(object, "/spec/replicas").unwrap_or(1),
        min_ready_seconds: read::count(object, "/spec/minReadySeconds"),
        template: (&object["spec"]["template"]).into(),
        template_labels: read::labels(object, "/spec/template/metadata/labels"),
        status: read::replica_set_status(object),
        related_pods,
    }
}

/// The number of related pods on each node.
fn related(case: &Case) -> Vec<(String, u32)> {
    let Some(owner) = case.replica_sets.first().and_then(read::controller) else {
        return Vec::new();
    };
    let sets = case
        .replica_sets
        .iter()
        .filter(|set| read::controller(set).is_some_and(|controller| controller.uid == owner.uid));
    let selectors: Vec<(&Value, Selector)> = sets
        .filter_map(|set| Some((&set["metadata"]["namespace"], read::selector(set)?)))
        .collect();
    let mut nodes: BTreeMap<String, u32> = BTreeMap::new();
    let active = case
        .pods
        .iter()
        .filter(|pod| !read::is_terminal(pod) && !read::is_deleting(pod));
    for pod in active {
        let labels = read::labels(pod, "/metadata/labels");
        let is_related = selectors.iter().any(|(namespace, selector)| {
            **namespace == pod["metadata"]["namespace"] && selector.selects(&labels)
        });
        if is_related {
            let node = read::text(pod, "/spec/nodeName").to_owned();
            *nodes.entry(node).or_default() += 1;
        }
    }
    nodes.into_iter().collect()
}

/// The executor's state before the sync.
fn held(case: &Case, now: Timestamp) -> Result<State> {
    let expectations = case.expectations.map(|expected| -> Result<_> {
        let set_at = now - SignedDuration::from_secs(i64::try_from(expected.age_seconds)?);
        let awaited = |n: i64| format!("awaited-{n}");
        let create = |_| ExpectedCreate {
            pod_name: String::new(),
            node_name: String::new(),
        };
        Ok(Expectations {
            set_at,
            creates: (0..expected.adds).map(create).collect(),
            delete_uids: (0..expected.dels).map(awaited).collect(),
        })
    });
    // Without outstanding creates or deletes an executor holds no expectations.
    let expectations = expectations.transpose()?;
    let outstanding =
        expectations.filter(|expected| !expected.creates.is_empty() || !expected.delete_uids.is_empty());
    Ok(State {
        expectations: outstanding,
        ..State::default()
    })
}

fn own_writes(case: &Case) -> Vec<OwnWrite> {
    let writes = case.own_writes.iter().map(|own| OwnWrite {
        resource: own.resource.clone(),
        written: own.written.clone(),
        observed: own.observed.clone(),
    });
    writes.collect()
}

fn outcome(plan: &Plan, applied: &Applied, api: Api, options: &Options) -> Result<Outcome> {
    let error = applied.failure.clone().or_else(|| plan.error.clone());
    let expected = plan.state.expectations.as_ref();
    let mut adds = expected.map_or(0, |expected| expected.creates.len());
    adds = adds.saturating_sub(applied.creates_left);
    if options.deviates(Deviation::LowerOnNamespaceTerminating) {
        adds = adds.saturating_sub(applied.creates_in_terminating_namespace);
    }
    let deleted = expected.into_iter().flat_map(|expected| &expected.delete_uids);
    let dels = deleted.filter(|uid| !applied.deletes_left.contains(uid)).count();
    let stored = api.stored();
    let sequence = sequence(&api.calls);
    let (mut calls, mut events) = (api.calls, api.events);
    calls.sort_unstable();
    events.sort_unstable();
    Ok(Outcome {
        queue: vec![if error.is_some() { "rate limited" } else { "forget" }.to_owned()],
        error,
        calls,
        sequence,
        events,
        requeue: plan
            .requeue
            .iter()
            .map(|after| after.delay.as_secs_f64())
            .collect(),
        stored,
        expectations: Some(Outstanding {
            adds: i64::try_from(adds)?,
            dels: i64::try_from(dels)?,
        }),
        ..Outcome::default()
    })
}
