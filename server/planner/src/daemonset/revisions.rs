//! The workload's ControllerRevisions: finds the current one, and plans the writes of revisions (D-51 to D-64).

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use serde_json::json;

use crate::{
    core::{
        batches, canonical,
        claims::{self, Claim},
        json::{Json, Object, append, write_string},
        names,
        plan::{Action, ActionKind, Batch, Collision, ObjectRef, Reason},
        pod_claims::{self, is_adopted},
        pod_template,
        snapshot::{Deviation, PodView, Revision, Snapshot},
    },
    daemonset::{manifest::HASH_LABEL, workload::DaemonSet},
};

/// The number of old revisions that are kept if the workload has no limit (Q-15).
const DEFAULT_HISTORY_LIMIT: usize = 10;

/// The revisions as they are after `batches` are applied.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Resolution<'a> {
    /// The hash label of the current revision. It may be empty if the revision was found under a taken name and is used as it is
    /// (D-62).
    pub(crate) current_hash: String,
    /// The number of the current revision.
    pub(crate) current_number: i64,
    /// The batches of phase Revisions, in order; empty if there is nothing to write or if `halt` is set.
    pub(crate) batches: Vec<Batch>,
    /// The claimed revisions of other templates, ascending by number, creation time and name.
    pub(crate) old: Vec<&'a Revision>,
    /// If there are duplicates, the index among `batches` at which pods are claimed: pods are claimed before they are relabelled,
    /// and all are relabelled before a duplicate is deleted (D-56).
    pub(crate) claims_at: Option<usize>,
    /// Uids of the pods that `batches` relabel. In this plan they count as having `current_hash` (D-57).
    pub(crate) relabelled: BTreeSet<&'a str>,
    /// If set, nothing else is planned.
    pub(crate) halt: Option<Halt>,
    /// The deviations that changed the result.
    pub(crate) deviations: BTreeSet<Deviation>,
}

/// A revision of another template has the name of the revision to create (D-62).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Halt {
    /// The only action of the plan, in phase Status. It raises the collision count.
    pub(crate) action: Action,
    /// The plan's error.
    pub(crate) error: String,
}

/// Resolves the revisions of a snapshot.
pub(crate) fn resolve(snapshot: &Snapshot<DaemonSet>) -> Resolution<'_> {
    let ds = &snapshot.workload;
    let data = canonical::revision_data(&ds.template);
    let mut resolution = Resolution {
        current_hash: String::new(),
        current_number: 0,
        batches: Vec::new(),
        claims_at: None,
        old: Vec::new(),
        relabelled: BTreeSet::new(),
        halt: None,
        deviations: BTreeSet::new(),
    };
    let claimed = resolution.claim(snapshot);
    resolution.add_missing_labels(&claimed);
    // Both sides are in canonical form, so the escapes in the served JSON do not matter (D-59).
    let (current, old): (Vec<_>, Vec<_>) = claimed.into_iter().partition(|revision| revision.data == data);
    let next = old
        .last()
        .map_or(0, |newest| newest.number)
        .max(0)
        .saturating_add(1);
    resolution.old = old;
    match current.split_last() {
        Some((kept, duplicates)) => {
            resolution.current_hash = effective_hash(kept).into_owned();
            resolution.remove_duplicates(snapshot, duplicates);
            resolution.renumber(ds, kept, next);
        }
        None => resolution.create(snapshot, &data, next),
    }
    resolution
}

/// The deletes of phase Cleanup (D-63). A revision that is being deleted counts as deleted and is not deleted again.
/// `live_hashes` are the hashes of all pods, including those that are finished and being deleted. `limit` is
/// spec.revisionHistoryLimit.
pub(crate) fn cleanup(
    resolution: &Resolution<'_>,
    live_hashes: &BTreeSet<&str>,
    limit: Option<i32>,
) -> Vec<Action> {
    let limit = limit.map_or(DEFAULT_HISTORY_LIMIT, |limit| usize::try_from(limit).unwrap_or(0));
    let excess = resolution.old.len().saturating_sub(limit);
    let dead = resolution.old.iter().filter(|revision| {
        let hash = effective_hash(revision);
        hash.is_empty() || !live_hashes.contains(&*hash)
    });
    dead.take(excess)
        .filter(|revision| !revision.deleting)
        .map(|revision| {
            let message = format!(
                "revision {} is old, no pod is of it, and more than {limit} old revisions are there",
                revision.number
            );
            delete(revision, Reason::HistoryLimit, message)
        })
        .collect()
}

impl<'a> Resolution<'a> {
    /// Claims revisions (D-51), and returns those that the workload owns then, in ascending order. Of revisions with the same
    /// template the last one is kept (Q-1).
    fn claim(&mut self, snapshot: &'a Snapshot<DaemonSet>) -> Vec<&'a Revision> {
        let ds = &snapshot.workload;
        let (mut claimed, mut adopt, mut release) = (Vec::new(), Vec::new(), Vec::new());
        // A revision that was read because its name is taken is never claimed. It is used as it is, or not at all.
        let mut revisions: Vec<_> = snapshot
            .revisions
            .iter()
            .filter(|revision| !revision.read_after_name_collision)
            .collect();
        revisions.sort_by_key(|revision| (revision.number, revision.created, &revision.name));
        for revision in revisions {
            match claims::claim_by_uid(
                ds.owner(),
                &revision.labels,
                revision.controller.as_ref(),
                revision.deleting,
            ) {
                Claim::Owned => claimed.push(revision),
                Claim::Adopt => {
                    claimed.push(revision);
                    adopt.push(adoption(ds, revision));
                }
                Claim::Release => release.push(release_of(ds, revision)),
                Claim::Ignore => {}
            }
        }
        // All claims are in one batch, so that a failed claim does not stop the others (D-23).
        let confirm_workload = !adopt.is_empty();
        release.append(&mut adopt);
        if !release.is_empty() {
            self.batches.push(Batch {
                actions: release,
                confirm_workload,
            });
        }
        claimed
    }

    /// Adds a hash label to revisions without one: the revision's name, or its hash if the name is too long for a label (D-52).
    fn add_missing_labels(&mut self, claimed: &[&Revision]) {
        let unlabelled = claimed
            .iter()
            .filter(|revision| revision.labels.get(HASH_LABEL).is_none());
        let actions = unlabelled.map(|revision| {
            let hash = effective_hash(revision);
            Action {
                reason: Reason::HashLabelMissing,
                message: format!(
                    "revision {} has no label {HASH_LABEL}; {hash} serves as hash",
                    revision.name
                ),
                kind: ActionKind::UpdateRevision {
                    revision: reference(revision),
                    patch: label_patch(&revision.uid, &hash),
                    number: None,
                },
            }
        });
        // All updates are in one batch, so that one plan finds all revisions that cannot be changed.
        self.batches.extend(batches::at_once(actions.collect()));
    }

    /// Deletes all revisions of the present template but one, after relabelling their pods (D-56). A duplicate that is being
    /// deleted is not deleted again: that would change nothing and count against the limit of claims.
    fn remove_duplicates(&mut self, snapshot: &'a Snapshot<DaemonSet>, duplicates: &[&Revision]) {
        if duplicates.is_empty() {
            return;
        }
        let hashes: BTreeSet<_> = duplicates
            .iter()
            .map(|duplicate| effective_hash(duplicate))
            .collect();
        let of_duplicate = |pod: PodView<'_>| {
            pod.labels()
                .get(HASH_LABEL)
                .is_some_and(|hash| hashes.contains(hash))
        };
        let only_theirs = snapshot.options.deviates(Deviation::RelabelDuplicatesOnly);
        let mut relabels = Vec::new();
        // Upstream relabels owned pods before adopted ones (Q-1).
        let mut pods = pod_claims::owned(snapshot, snapshot.workload.owner());
        pods.sort_by_key(|pod| is_adopted(*pod));
        for pod in pods
            .into_iter()
            .filter(|pod| pod.labels().get(HASH_LABEL).unwrap_or_default() != self.current_hash)
        {
            if only_theirs && !of_duplicate(pod) {
                // Upstream would relabel this outdated pod as one of the present template (Q-4).
                self.deviations.insert(Deviation::RelabelDuplicatesOnly);
            } else {
                self.relabelled.insert(pod.uid());
                // One more than the limit, to find out whether there are more.
                if relabels.len() <= snapshot.options.claims_per_plan() {
                    relabels.push(self.relabel(pod));
                }
            }
        }
        self.claims_at = Some(self.batches.len());
        self.push(relabels);
        let there = duplicates.iter().filter(|duplicate| !duplicate.deleting);
        let deletes = there.map(|duplicate| {
            let message = format!(
                "revision {} has the same template as the current one",
                duplicate.name
            );
            delete(duplicate, Reason::DuplicateRevision, message)
        });
        self.push(deletes.collect());
    }

    /// Gives the revision of the present template the highest number (D-54).
    ///
    /// This comes after the deletes of duplicates, as in upstream. The apiserver may reject the update because of the form in
    /// which the revision's data is stored. Even then no template is lost: the executor reports the revision, the next plan
    /// ignores it, and creates a new revision of the template. (Upstream compares bytes and would not have found a duplicate.) If
    /// the update came before the deletes, the result would differ from upstream whenever a relabel or a delete is rejected.
    fn renumber(&mut self, ds: &DaemonSet, kept: &Revision, next: i64) {
        self.current_number = kept.number.max(next);
        if kept.number < next {
            let patch = json!({"metadata": {"uid": kept.uid}, "revision": next});
            let message = format!(
                "{} is back at the template of revision {}, which becomes revision {next}",
                ds.name, kept.number
            );
            let kind = ActionKind::UpdateRevision {
                revision: reference(kept),
                patch: canonical::to_bytes(&patch),
                number: Some(next),
            };
            self.push(vec![Action {
                reason: Reason::Rollback,
                message,
                kind,
            }]);
        }
    }

    fn relabel(&self, pod: PodView<'_>) -> Action {
        Action {
            reason: Reason::DuplicateRevision,
            message: format!(
                "pod {} carries the hash of a revision that is not kept",
                pod.name()
            ),
            kind: ActionKind::RelabelPod {
                pod: ObjectRef {
                    name: pod.name().to_owned(),
                    uid: pod.uid().to_owned(),
                },
                patch: label_patch(pod.uid(), &self.current_hash),
            },
        }
    }

    /// Creates a revision of the present template, unless its name is taken (D-60, D-62).
    fn create(&mut self, snapshot: &'a Snapshot<DaemonSet>, data: &Json, number: i64) {
        let ds = &snapshot.workload;
        let hash = names::revision_hash(data.as_str().as_bytes(), ds.collision_count);
        let name = self.revision_name(snapshot, &hash);
        let taken = snapshot
            .revisions
            .iter()
            .find(|other| other.read_after_name_collision && other.name == name);
        match taken {
            Some(same) if same.data == *data => {
                same.labels
                    .get(HASH_LABEL)
                    .unwrap_or_default()
                    .clone_into(&mut self.current_hash);
                self.current_number = same.number;
            }
            Some(other) => {
                self.batches.clear();
                self.halt = Some(halt(snapshot, &other.name));
            }
            None => {
                let manifest = manifest(ds, &name, &hash, data, number);
                let message = format!(
                    "no revision has the present template of {}; it becomes revision {number}",
                    ds.name
                );
                let kind = ActionKind::CreateRevision { name, manifest };
                self.push(vec![Action {
                    reason: Reason::NewTemplate,
                    message,
                    kind,
                }]);
                self.current_hash = hash;
                self.current_number = number;
            }
        }
    }

    fn revision_name(&mut self, snapshot: &Snapshot<DaemonSet>, hash: &str) -> String {
        let ds = &snapshot.workload;
        let upstream = names::revision_name(ds.owner(), hash, false);
        if !snapshot.options.deviates(Deviation::ShortenRevisionNames) {
            return upstream;
        }
        let name = names::revision_name(ds.owner(), hash, true);
        if name != upstream {
            self.deviations.insert(Deviation::ShortenRevisionNames);
        }
        name
    }

    /// Adds writes that the executor makes one after the other, as upstream does.
    fn push(&mut self, actions: Vec<Action>) {
        self.batches.extend(batches::one_by_one(actions));
    }
}

/// The hash label of a claimed revision, or the one that [`Resolution::add_missing_labels`] adds.
pub(crate) fn effective_hash(revision: &Revision) -> Cow<'_, str> {
    let hash = revision.labels.get(HASH_LABEL);
    hash.map_or_else(|| names::label_value(&revision.name), Cow::Borrowed)
}

fn reference(revision: &Revision) -> ObjectRef {
    ObjectRef {
        name: revision.name.clone(),
        uid: revision.uid.clone(),
    }
}

/// A merge patch of the hash label. Because of the uid, the apiserver rejects the patch if another object has the name.
fn label_patch(uid: &str, hash: &str) -> Vec<u8> {
    canonical::to_bytes(&json!({"metadata": {"labels": {HASH_LABEL: hash}, "uid": uid}}))
}

fn adoption(ds: &DaemonSet, revision: &Revision) -> Action {
    Action {
        reason: Reason::SelectorMatches,
        message: format!(
            "revision {} has no controller and the selector matches",
            revision.name
        ),
        kind: ActionKind::AdoptRevision {
            revision: reference(revision),
            patch: claims::adopt_patch(ds.owner(), &revision.uid),
        },
    }
}

fn release_of(ds: &DaemonSet, revision: &Revision) -> Action {
    Action {
        reason: Reason::SelectorDoesNotMatch,
        message: format!("the selector does not match revision {} any more", revision.name),
        kind: ActionKind::ReleaseRevision {
            revision: reference(revision),
            patch: claims::release_patch(ds.owner(), &revision.uid),
        },
    }
}

fn delete(revision: &Revision, reason: Reason, message: String) -> Action {
    let kind = ActionKind::DeleteRevision {
        revision: reference(revision),
        number: revision.number,
    };
    Action {
        reason,
        message,
        kind,
    }
}

/// Raises the collision count, so that the next name differs.
fn halt(snapshot: &Snapshot<DaemonSet>, name: &str) -> Halt {
    let ds = &snapshot.workload;
    let count = ds.collision_count.unwrap_or(0).saturating_add(1);
    let action = Action {
        reason: Reason::RevisionNameCollision,
        message: format!(
            "revision {name} has another template; collision count {count} makes the next name differ"
        ),
        kind: ActionKind::UpdateStatus {
            status: ds.status,
            collision: Some(Collision {
                count,
                expected: ds.collision_count,
            }),
            uid_precondition: snapshot.options.deviates(Deviation::StatusWithUid),
        },
    };
    Halt {
        action,
        error: format!("creating revision {name}: the name is taken by another template"),
    }
}

/// The manifest of a new ControllerRevision (D-60), with the workload's present annotations.
fn manifest(ds: &DaemonSet, name: &str, hash: &str, data: &Json, number: i64) -> Vec<u8> {
    let mut out = String::new();
    let mut revision = Object::begin(&mut out);
    revision.member("apiVersion").push_str(r#""apps/v1""#);
    revision.member("data").push_str(data.as_str());
    revision.member("kind").push_str(r#""ControllerRevision""#);
    let mut metadata = Object::begin(revision.member("metadata"));
    if !ds.annotations.is_empty() {
        let sorted: BTreeMap<_, _> = ds.annotations.iter().map(|(key, value)| (key, value)).collect();
        let mut annotations = Object::begin(metadata.member("annotations"));
        for (key, value) in sorted {
            write_string(annotations.member(key), value);
        }
        annotations.end();
    }
    pod_template::write_labels(
        metadata.member("labels"),
        &ds.template,
        &[(HASH_LABEL, Some(hash))],
    );
    write_string(metadata.member("name"), name);
    write_string(metadata.member("namespace"), &ds.namespace);
    pod_template::write_owner(metadata.member("ownerReferences"), ds.owner());
    metadata.end();
    append(revision.member("revision"), format_args!("{number}"));
    revision.end();
    out.into_bytes()
}

#[cfg(test)]
mod tests;
