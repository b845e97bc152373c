//! ControllerRevisions.
//!
//! Their data is any JSON that a client wrote: the apiserver keeps its bytes and takes what cannot be read here, such as
//! half of a surrogate pair, or a thousand objects within each other. A template holds
//! nothing of that kind, since the apiserver wrote it; so such data is that of another template, and no reason to refuse
//! the whole request.

use std::collections::HashSet;

use nodewise_planner::{HASH_LABEL, json::Json, snapshot::Revision};
use nodewise_proto::v1;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    Context,
    json::{self, Meta},
    problems::{Path, Problems},
};
use crate::{limits::Limits, refusal::Refusal};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Object<'a> {
    api_version: Option<String>,
    kind: Option<String>,
    #[serde(default)]
    metadata: Meta,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
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
    let mut object: Object<'_> = json::read(&message.object, &at, problems)?;
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
        data: object.data.map(data).unwrap_or_default(),
        read_after_name_collision: message.read_after_name_collision,
    })
}

/// What the data says decides whether the revision is the current one (D-53). What cannot be read is `null`, which no
/// template is.
fn data(text: &RawValue) -> Json {
    serde_json::from_str(text.get()).unwrap_or_default()
}
