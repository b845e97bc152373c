//! ControllerRevisions.

use std::collections::HashSet;

use nodewise_planner::{HASH_LABEL, json::Json, snapshot::Revision};
use nodewise_proto::v1;
use serde::Deserialize;

use super::{
    Context,
    json::{self, Meta},
    problems::{Path, Problems},
};
use crate::{limits::Limits, refusal::Refusal};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Object {
    api_version: Option<String>,
    kind: Option<String>,
    #[serde(default)]
    metadata: Meta,
    /// What it says decides whether the revision is the current one (D-53).
    #[serde(default)]
    data: Json,
    revision: Option<i64>,
}

/// Reads all revisions; their names and uids must be unique.
pub(super) fn all(
    messages: Vec<v1::ControllerRevision>,
    at: &Path<'_>,
    context: &mut Context<'_>,
) -> Result<Vec<Revision>, Refusal> {
    let mut revisions = Vec::with_capacity(messages.len());
    for (index, message) in messages.into_iter().enumerate() {
        // Each may take milliseconds.
        context.look()?;
        revisions
            .extend(one(&message, &at.index(index), &mut context.problems).map(|revision| (index, revision)));
    }
    let problems = &mut context.problems;
    let (mut names, mut uids) = (HashSet::new(), HashSet::new());
    for (index, revision) in &revisions {
        let at = at.index(*index);
        if !names.insert(&revision.name) {
            problems.add(
                &at.field("object"),
                format!("metadata.name: `{}` is there twice", revision.name),
            );
        }
        if !uids.insert(&revision.uid) {
            problems.add(
                &at.field("object"),
                format!("metadata.uid: `{}` is there twice", revision.uid),
            );
        }
    }
    Ok(revisions.into_iter().map(|(_, revision)| revision).collect())
}

fn one(message: &v1::ControllerRevision, at: &Path<'_>, problems: &mut Problems) -> Option<Revision> {
    let at = at.field("object");
    let mut object: Object = json::read(&message.object, &at, problems)?;
    json::type_meta(
        object.api_version.as_deref(),
        object.kind.as_deref(),
        ("apps/v1", "ControllerRevision"),
        &at,
        problems,
    );
    let (name, uid) = json::identity(&object.metadata, &at, problems)?;
    let labels = object.metadata.labels.take().unwrap_or_default();
    if let Some(hash) = labels.get(HASH_LABEL) {
        let field = format!("metadata.labels.{HASH_LABEL}");
        json::bound(&field, hash, Limits::LABEL_VALUE_BYTES, &at, problems);
    }
    Some(Revision {
        name,
        uid,
        controller: object.metadata.controller(),
        created: object.metadata.creation_timestamp.map(|time| time.0),
        deleting: object.metadata.deletion_timestamp.is_some(),
        labels: labels.into_iter().collect(),
        number: object.revision.unwrap_or_default(),
        data: object.data,
        read_after_name_collision: message.read_after_name_collision,
    })
}
