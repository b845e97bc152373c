//! Parses ControllerRevisions.
//!
//! The data of a revision is any JSON that a client wrote. The apiserver accepts data that cannot be read here, such as half of a
//! surrogate pair, or a thousand nested objects. The apiserver writes no such template, so the data is treated as another template
//! and the request is not refused.
//!
//! Anyone with access to the namespace may write revisions, as many and as large as the apiserver accepts. So revisions that no
//! rule reads are skipped unread. If there are still too many, the least important ones are left out.

use std::{cmp::Reverse, collections::HashSet};

use nodewise_planner::{HASH_LABEL, daemonset::DaemonSet, json::Json, snapshot::Revision};
use nodewise_proto::v1;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    Context,
    json::{self, Meta, Ownership},
    problems::Path,
};
use crate::{
    limits::Limits,
    refusal::Refusal,
    warnings::{OddKind, OddReason, Warnings},
};

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

/// Reads the revisions that matter for this workload. Their names and uids must be unique.
pub(super) fn all(
    messages: &[v1::ControllerRevision],
    workload: &DaemonSet,
    at: &Path<'_>,
    context: &mut Context<'_>,
) -> Result<Vec<Revision>, Refusal> {
    let mut revisions = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        // A revision may take milliseconds.
        context.check_stop()?;
        let revision = one(message, workload, &at.index(index), context);
        revisions.extend(revision.map(|revision| (index, revision)));
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
    let mut revisions = revisions.into_iter().map(|(_, revision)| revision).collect();
    leave_out(
        &mut revisions,
        context.limits.revisions as usize,
        &mut context.warnings,
    );
    Ok(revisions)
}

/// Leaves out revisions beyond `most`: orphans first, then the oldest.
///
/// A plan writes nothing to a revision that is left out. If the revision of the current template is left out, the plan creates one
/// whose name is taken; the executor then reads the existing revision from the apiserver, and the next plan uses it. Plans delete
/// revisions over the history limit, so in the end none is left out.
fn leave_out(revisions: &mut Vec<Revision>, most: usize, warnings: &mut Warnings) {
    if revisions.len() <= most {
        return;
    }
    let there = revisions.len();
    revisions.sort_by(|a, b| {
        let key = |revision: &Revision| {
            let Revision {
                controller,
                number,
                created,
                ..
            } = revision;
            (
                revision.read_after_name_collision,
                controller.is_some(),
                *number,
                *created,
            )
        };
        Reverse(key(a))
            .cmp(&Reverse(key(b)))
            .then_with(|| b.name.cmp(&a.name))
    });
    for revision in revisions.drain(most..) {
        warnings.add(OddKind::ControllerRevision, &revision.name, OddReason::LeftOut, || {
            format!("the revision is left out: there are {there} for the workload, and the newest {most} are read")
        });
    }
}

/// The fields of a revision that decide whether it matters for a workload.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Head {
    metadata: Ownership,
}

/// Whether a plan for the workload reads a revision. True also if that cannot be told: reading the revision then reports the error.
fn is_read(message: &v1::ControllerRevision, workload: &DaemonSet) -> bool {
    let Ok(head) = serde_json::from_slice::<Head>(&message.object) else {
        return true;
    };
    let (labels, controller) = head.metadata.parts();
    message.read_after_name_collision
        || workload.reads_revision(&json::labels_of(&labels), controller.as_ref())
}

/// Reads a revision; `None` if no rule reads it or if it has errors.
fn one(
    message: &v1::ControllerRevision,
    workload: &DaemonSet,
    at: &Path<'_>,
    context: &mut Context<'_>,
) -> Option<Revision> {
    if !is_read(message, workload) {
        return None;
    }
    let at = at.field("object");
    let Context {
        problems, warnings, ..
    } = context;
    let object: Object<'_> = json::read(&message.object, &at, problems)?;
    let mut meta = object.metadata;
    let labels = meta.labels.take().unwrap_or_default();
    let labels = json::labels_of(&labels);
    let controller = meta.controller();
    json::type_meta(
        object.api_version.as_deref(),
        object.kind.as_deref(),
        ("apps/v1", "ControllerRevision"),
        &at,
        problems,
    );
    let (name, uid) = json::identity(&meta, &at, problems)?;
    if let Some(hash) = labels.get(HASH_LABEL) {
        let field = format!("metadata.labels.{HASH_LABEL}");
        json::bound(&field, hash, Limits::LABEL_VALUE_BYTES, &at, problems);
    }
    Some(Revision {
        controller,
        created: meta.created(),
        deleting: meta.is_deleting(),
        labels,
        number: object.revision.unwrap_or_default(),
        data: object
            .data
            .map(|text| data(text, &name, warnings))
            .unwrap_or_default(),
        read_after_name_collision: message.read_after_name_collision,
        name,
        uid,
    })
}

/// The data, which decides whether the revision is the current one (D-53). Data that cannot be read becomes `null`, which equals no
/// template.
fn data(text: &RawValue, name: &str, warnings: &mut Warnings) -> Json {
    serde_json::from_str(text.get()).unwrap_or_else(|error| {
        warnings.add(OddKind::ControllerRevision, name, OddReason::Data, || {
            format!("data: it cannot be read ({error}); it is used as the data of another template")
        });
        Json::default()
    })
}
