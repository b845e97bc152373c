//! One sync of a Deployment.

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use nodewise_planner::deployment::{self, Deployment, RollingUpdate, Set, Strategy};
use nodewise_planner::plan::{ActionKind, DeploymentStatus, Plan};
use nodewise_planner::snapshot::{IntOrString, Options, Snapshot, State};
use serde_json::{Value, json};

use super::api::Api;
use super::apply::{Applied, Workload, apply};
use super::options::{named, options};
use super::read;
use crate::case::{Case, Kind};
use crate::outcome::{Outcome, sequence};
use crate::profile::{Deviations, Synced};

/// The most plans of one sync. A create can find its name taken once, and each further plan leaves out an orphan that is
/// gone.
const MOST_PLANS: usize = 50;

/// Syncs the first Deployment of a case once.
pub(super) fn sync(case: &Case, deviations: &Deviations) -> Result<Synced> {
    let options = options(case, deviations)?;
    let now: Timestamp = case.now.parse().context("now")?;
    let subject = case.subject()?;
    let mut api = Api::new(case)?;
    let mut sets: Vec<Value> = case
        .replica_sets
        .iter()
        .filter(|set| is_of(subject, set))
        .cloned()
        .collect();
    let mut colliding = None;
    let mut names = Vec::new();
    for _ in 0..MOST_PLANS {
        let sets_read = sets.iter().map(|set| read_set(case, set, false));
        let mut workload = workload(subject, sets_read.collect());
        if let Some(live) = &colliding {
            let live = read_set(case, live, true);
            workload.sets.retain(|set| set.name != live.name);
            workload.sets.push(live);
        }
        let plan = deployment::plan(&snapshot(workload, now, options.clone()));
        names.extend(named(&plan));
        let workload = Workload {
            kind: Kind::Deployment,
            object: subject,
        };
        let applied = apply(&plan, &mut api, &workload)?;
        if applied.vanished.is_empty() && applied.colliding.is_none() {
            names.sort_unstable();
            names.dedup();
            return Ok(Synced {
                outcome: outcome(&plan, &applied, api),
                deviations: names,
            });
        }
        // The executor plans again once its cache shows what it wrote.
        sets.retain(|set| {
            let name = read::text(set, "/metadata/name");
            !applied.vanished.iter().any(|(_, gone)| gone == name)
        });
        for (_, written) in &applied.written {
            let mut found = sets
                .iter_mut()
                .filter(|set| set["metadata"]["name"] == written["metadata"]["name"]);
            found.by_ref().for_each(|set| set.clone_from(written));
        }
        sets.retain(|set| is_of(subject, set));
        colliding = applied.colliding.or(colliding);
    }
    anyhow::bail!("more than {MOST_PLANS} plans in a row")
}

/// The hash that the planner gives a new ReplicaSet of the first Deployment, taken from a plan for the Deployment alone.
pub(crate) fn hash(case: &Case) -> Result<String> {
    let cached = case.subject()?;
    let object = json!({
        "metadata": {"namespace": "probe", "name": "probe", "uid": "probe", "generation": 1},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"probe": "probe"}},
            "template": cached["spec"]["template"],
            "strategy": {"type": "Recreate"},
        },
        "status": {"collisionCount": cached["status"]["collisionCount"]},
    });
    let snapshot = snapshot(
        workload(&object, Vec::new()),
        Timestamp::UNIX_EPOCH,
        Options::upstream_strict(),
    );
    let plan = deployment::plan(&snapshot);
    let actions = plan.phases.iter().flat_map(|phase| &phase.batches);
    let mut actions = actions.flat_map(|batch| &batch.actions);
    let name = actions.find_map(|action| match &action.kind {
        ActionKind::CreateObject { name, .. } => name.strip_prefix("probe-"),
        _ => None,
    });
    name.map(str::to_owned)
        .context("a Deployment without ReplicaSets was not given one")
}

fn snapshot(workload: Deployment, now: Timestamp, options: Options) -> Snapshot<Deployment> {
    Snapshot {
        now,
        workload,
        revisions: Vec::new(),
        buckets: Vec::new(),
        state: State::default(),
        own_writes: Vec::new(),
        options,
    }
}

/// Whether a snapshot has the ReplicaSet (P-1).
fn is_of(subject: &Value, set: &Value) -> bool {
    let uid = read::text(subject, "/metadata/uid");
    subject["metadata"]["namespace"] == set["metadata"]["namespace"]
        && read::controller(set).is_none_or(|controller| controller.uid == uid)
}

fn workload(object: &Value, sets: Vec<Set>) -> Deployment {
    let text = |pointer| read::text(object, pointer).to_owned();
    Deployment {
        name: text("/metadata/name"),
        namespace: text("/metadata/namespace"),
        uid: text("/metadata/uid"),
        resource_version: text("/metadata/resourceVersion"),
        generation: read::number(object, "/metadata/generation"),
        deleting: read::is_deleting(object),
        annotations: read::entries(object, "/metadata/annotations"),
        selector: read::selector(object),
        selector_json: (&object["spec"]["selector"]).into(),
        replicas: read::optional(object, "/spec/replicas").unwrap_or(1),
        paused: object["spec"]["paused"] == true,
        strategy: strategy(&object["spec"]["strategy"]),
        min_ready_seconds: read::count(object, "/spec/minReadySeconds"),
        progress_deadline_seconds: read::optional(object, "/spec/progressDeadlineSeconds"),
        revision_history_limit: read::optional(object, "/spec/revisionHistoryLimit"),
        template: (&object["spec"]["template"]).into(),
        status: DeploymentStatus {
            replicas: read::count(object, "/status/replicas"),
            updated_replicas: read::count(object, "/status/updatedReplicas"),
            ready_replicas: read::count(object, "/status/readyReplicas"),
            available_replicas: read::count(object, "/status/availableReplicas"),
            unavailable_replicas: read::count(object, "/status/unavailableReplicas"),
            terminating_replicas: read::optional(object, "/status/terminatingReplicas"),
            collision_count: read::optional(object, "/status/collisionCount"),
            observed_generation: read::number(object, "/status/observedGeneration"),
            conditions: read::conditions(object),
        },
        sets,
    }
}

fn strategy(strategy: &Value) -> Strategy {
    match read::text(strategy, "/type") {
        "RollingUpdate" => {
            let rolling = strategy
                .get("rollingUpdate")
                .filter(|rolling| rolling.is_object());
            Strategy::RollingUpdate(rolling.map(|rolling| RollingUpdate {
                max_unavailable: number_or_text(&rolling["maxUnavailable"]),
                max_surge: number_or_text(&rolling["maxSurge"]),
            }))
        }
        "Recreate" => Strategy::Recreate,
        other => Strategy::Unknown(other.to_owned()),
    }
}

fn number_or_text(value: &Value) -> Option<IntOrString> {
    match value {
        Value::Number(number) => {
            let number = number.as_i64().and_then(|number| i32::try_from(number).ok());
            Some(IntOrString::Int(number.unwrap_or_default()))
        }
        Value::String(text) => Some(IntOrString::String(text.clone())),
        _ => None,
    }
}

fn read_set(case: &Case, object: &Value, read_after_name_collision: bool) -> Set {
    let text = |pointer| read::text(object, pointer).to_owned();
    Set {
        name: text("/metadata/name"),
        uid: text("/metadata/uid"),
        resource_version: text("/metadata/resourceVersion"),
        generation: read::number(object, "/metadata/generation"),
        deleting: read::is_deleting(object),
        labels: read::labels(object, "/metadata/labels"),
        annotations: read::entries(object, "/metadata/annotations"),
        controller: read::controller(object),
        created: read::time(object, "/metadata/creationTimestamp"),
        replicas: read::optional(object, "/spec/replicas").unwrap_or(1),
        min_ready_seconds: read::count(object, "/spec/minReadySeconds"),
        template: (&object["spec"]["template"]).into(),
        status: read::replica_set_status(object),
        unfinished_pods: unfinished(case, object),
        read_after_name_collision,
    }
}

/// The number of pods that a set controls and that have not ended.
fn unfinished(case: &Case, set: &Value) -> u32 {
    let own = case.pods.iter().filter(|pod| {
        pod["metadata"]["namespace"] == set["metadata"]["namespace"]
            && !read::is_terminal(pod)
            && read::controller(pod).is_some_and(|controller| {
                controller.kind == "ReplicaSet"
                    && controller.name == read::text(set, "/metadata/name")
                    && controller.uid == read::text(set, "/metadata/uid")
            })
    });
    u32::try_from(own.count()).unwrap_or(u32::MAX)
}

fn outcome(plan: &Plan, applied: &Applied, api: Api) -> Outcome {
    let error = applied.failure.clone().or_else(|| plan.error.clone());
    let stored = api.stored();
    let sequence = sequence(&api.calls);
    let (mut calls, mut events) = (api.calls, api.events);
    calls.sort_unstable();
    events.sort_unstable();
    Outcome {
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
        ..Outcome::default()
    }
}
