//! Answers questions of the page from the objects that the feed keeps.

use anyhow::Context as _;
use nodewise_dashboard::{Change, Comparison, Key, Line, Problem, Reason, Revision};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::{
    input::{Cluster, Served},
    kind::Kind,
    rollout::{diff, revisions::History},
    simulate::Preview,
};

/// A question, and where its answer goes.
pub(super) enum Question {
    /// The difference of two templates.
    Compare {
        key: Key,
        from: Option<i64>,
        to: Option<i64>,
        answer: oneshot::Sender<Result<Comparison, Problem>>,
    },
    /// What must be known to play a change.
    Prepare {
        change: Change,
        answer: oneshot::Sender<Result<Preview, Problem>>,
    },
}

impl Question {
    /// Answers. Whoever asked may be gone.
    pub(super) fn answer(self, cluster: &Cluster) {
        match self {
            Self::Compare {
                key,
                from,
                to,
                answer,
            } => {
                let _ = answer.send(compare(cluster, &key, from, to));
            }
            Self::Prepare { change, answer } => {
                let _ = answer.send(prepare(cluster, &change));
            }
        }
    }
}

/// An error of the input as a problem of a question.
pub(super) fn invalid(error: &anyhow::Error) -> Problem {
    Problem::new(Reason::Invalid, format!("{error:#}"))
}

fn find<'a>(cluster: &'a Cluster, kind: &str, namespace: &str, name: &str) -> Result<&'a Served, Problem> {
    let known = Kind::parse(kind, None).filter(|kind| kind.is_workload());
    let found = known.and_then(|known| {
        cluster
            .workloads_in(known, namespace)
            .find(|one| one.name == name)
    });
    found.ok_or_else(|| Problem::new(Reason::NotFound, format!("there is no {kind} {namespace}/{name}")))
}

fn compare(cluster: &Cluster, key: &Key, from: Option<i64>, to: Option<i64>) -> Result<Comparison, Problem> {
    let workload = find(cluster, &key.kind, &key.namespace, &key.name)?;
    if workload.kind == Kind::ReplicaSet {
        return Ok(Comparison {
            revisions: Vec::new(),
            from: None,
            to: None,
            lines: Vec::new(),
        });
    }
    let history = History::of(cluster, workload).map_err(|error| invalid(&error))?;
    let revisions = history.revisions.iter().rev().map(|revision| Revision {
        number: revision.number,
        name: revision.name.clone(),
        current: revision.is_current,
        images: revision.images.clone(),
        cause: revision.change_cause.clone(),
        created: revision.created.map(|time| time.to_string()),
    });
    let revisions: Vec<Revision> = revisions.collect();
    let has_other = history.revisions.iter().any(|revision| !revision.is_current);
    if from.is_none() && !has_other {
        return Ok(Comparison {
            revisions,
            from: None,
            to,
            lines: Vec::new(),
        });
    }
    let compared = || {
        let before = history.find(from)?;
        let after = match to {
            Some(_) => history.find(to)?.template.clone(),
            None => history.present(),
        };
        anyhow::Ok((before.number, diff::lines(&before.template, &after)?))
    };
    let (from, lines) = compared().map_err(|error| invalid(&error))?;
    Ok(Comparison {
        revisions,
        from: Some(from),
        to,
        lines: lines
            .into_iter()
            .map(|(sign, text)| Line { sign, text })
            .collect(),
    })
}

fn prepare(cluster: &Cluster, change: &Change) -> Result<Preview, Problem> {
    let manifest: Value = serde_saphyr::from_str(&change.yaml)
        .map_err(|error| Problem::new(Reason::Invalid, format!("this is not YAML: {error}")))?;
    let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str);
    let missing = |field: &str| {
        Problem::new(
            Reason::Invalid,
            format!(
                "{field} is missing; expected the manifest of a DaemonSet, Deployment or ReplicaSet of this cluster"
            ),
        )
    };
    let kind = text("/kind").ok_or_else(|| missing("kind"))?;
    let name = text("/metadata/name").ok_or_else(|| missing("metadata.name"))?;
    let namespace = text("/metadata/namespace").unwrap_or("default");
    let workload = find(cluster, kind, namespace, name)?;
    Preview::new(
        cluster,
        workload,
        &manifest,
        change.ready_after_seconds,
        change.failing_share,
    )
    .context("this change cannot be played")
    .map_err(|error| invalid(&error))
}
