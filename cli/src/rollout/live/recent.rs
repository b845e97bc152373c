//! What has happened lately: the difference of two statuses of one workload, in sentences.

use std::collections::{BTreeMap, VecDeque};

use jiff::{Timestamp, Unit, tz::TimeZone};
use nodewise_projection::moment;
use nodewise_proto::v1::{self, RolloutState};

use crate::{
    text::{names, status::word_of},
    view,
};

/// The most sentences that are kept.
const MAX: usize = 100;

/// The last changes of a workload, the newest first.
#[derive(Default)]
pub(super) struct Recent {
    sentences: VecDeque<(String, String)>,
    /// The number and the hash of the last current revision. Between a change of the template and the new revision, a status
    /// has none.
    revision: Option<(i64, String)>,
}

impl Recent {
    /// Adds what differs between two statuses.
    pub(super) fn add(&mut self, before: &v1::WorkloadStatus, after: &v1::WorkloadStatus) {
        let time = clock(after.observed_at.and_then(moment).unwrap_or_default());
        let change = self.template_change(before, after);
        for sentence in change.into_iter().chain(differences(before, after)) {
            self.sentences.push_front((time.clone(), sentence));
        }
        self.sentences.truncate(MAX);
    }

    fn template_change(&mut self, before: &v1::WorkloadStatus, after: &v1::WorkloadStatus) -> Option<String> {
        let revision = |status: &v1::WorkloadStatus| {
            let current = status.revisions.iter().find(|revision| revision.is_current);
            current.map(|revision| (revision.number, revision.hash.clone()))
        };
        let old = revision(before).or_else(|| self.revision.take());
        self.revision = revision(after).or_else(|| old.clone());
        let ((old, from), (new, to)) = (old?, revision(after)?);
        (from != to).then(|| format!("the template changed: revision {old} → {new}"))
    }

    /// The sentences, each with its time of day.
    pub(super) fn sentences(&self) -> impl Iterator<Item = &(String, String)> {
        self.sentences.iter()
    }
}

/// The time of day in the zone of this machine.
fn clock(time: Timestamp) -> String {
    let time = time.round(Unit::Second).unwrap_or(time);
    time.to_zoned(TimeZone::system()).strftime("%H:%M:%S").to_string()
}

/// One sentence for each group of equal changes.
fn differences(before: &v1::WorkloadStatus, after: &v1::WorkloadStatus) -> Vec<String> {
    let mut sentences = Vec::new();
    if before.nodes.is_empty() && after.nodes.is_empty() {
        sentences.extend(of_revisions(before, after));
    }
    let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (what, unit) in of_pods(before, after) {
        groups.entry(what).or_default().push(unit);
    }
    for (what, units) in groups {
        let (number, noun) = (units.len(), if units.len() == 1 { "pod" } else { "pods" });
        let units = names::shorten(units);
        sentences.push(format!("{number} {noun} {what}: {units}"));
    }
    sentences.extend(of_stages(before, after));
    let ((was, _), (is, _)) = (word_of(before), word_of(after));
    if was != is {
        let unit = if after.state() == RolloutState::Stuck {
            format!(": {}", after.message)
        } else {
            String::new()
        };
        sentences.push(format!("{was} → {is}{unit}"));
    }
    sentences
}

/// What happened to the stages of a policy.
fn of_stages(before: &v1::WorkloadStatus, after: &v1::WorkloadStatus) -> Vec<String> {
    let stages = |status: &v1::WorkloadStatus| {
        let policy = status.policy.clone();
        policy.map(|policy| policy.stages).unwrap_or_default()
    };
    let old = stages(before);
    let was = |name: &str| old.iter().find(|stage| stage.name == name);
    let changed = stages(after).into_iter().filter_map(|stage| {
        let was = was(&stage.name)?;
        (was.state != stage.state).then(|| format!("stage {}: {} → {}", stage.name, was.state, stage.state))
    });
    changed.collect()
}

/// For Deployments and ReplicaSets, whose healthy pods a status does not list.
fn of_revisions(before: &v1::WorkloadStatus, after: &v1::WorkloadStatus) -> Vec<String> {
    let pods = |status: &v1::WorkloadStatus, hash: &str| {
        let found = status.revisions.iter().find(|revision| revision.hash == hash);
        found.map_or(0, |revision| revision.pods)
    };
    let gone = before
        .revisions
        .iter()
        .filter(|old| !after.revisions.iter().any(|new| new.hash == old.hash));
    let all = after.revisions.iter().chain(gone);
    let changed = all.filter_map(|revision| {
        let (was, is) = (pods(before, &revision.hash), pods(after, &revision.hash));
        (was != is).then(|| {
            format!(
                "revision {} ({}): {was} → {is} pods",
                revision.number, revision.name
            )
        })
    });
    let mut sentences: Vec<String> = changed.collect();
    let done = |status: &v1::WorkloadStatus| status.counts.unwrap_or_default().done;
    if done(after) > done(before) {
        let desired = after.counts.unwrap_or_default().desired;
        let more = done(after) - done(before);
        let verb = if more == 1 { "pod is" } else { "pods are" };
        sentences.push(format!("{more} more {verb} done: {} of {desired}", done(after)));
    }
    sentences
}

/// What happened to pods, each with the node or, without one, the pod.
fn of_pods<'a>(before: &'a v1::WorkloadStatus, after: &'a v1::WorkloadStatus) -> Vec<(String, &'a str)> {
    let by_name = |status: &'a v1::WorkloadStatus| -> BTreeMap<&'a str, &'a v1::PodStatus> {
        view::pods(status)
            .map(|pod| (pod.pod_name.as_str(), pod))
            .collect()
    };
    let (old, new) = (by_name(before), by_name(after));
    let lists_all = !after.nodes.is_empty() || !before.nodes.is_empty();
    let mut changes = Vec::new();
    for (name, pod) in &new {
        let was = old.get(name);
        let failing = |pod: &v1::PodStatus| {
            let problem = pod.problem.as_ref().filter(|problem| problem.is_failing);
            problem.map(|problem| problem.reason.clone())
        };
        if was.is_none() && lists_all {
            changes.push(("created".to_owned(), unit(pod)));
        }
        if pod.deleted_at.is_some() && was.is_none_or(|was| was.deleted_at.is_none()) {
            changes.push(("being deleted".to_owned(), unit(pod)));
        }
        if pod.ready && was.is_some_and(|was| !was.ready) {
            changes.push(("became ready".to_owned(), unit(pod)));
        }
        if was.is_some_and(|was| was.ready) && !pod.ready && pod.deleted_at.is_none() {
            changes.push(("no longer ready".to_owned(), unit(pod)));
        }
        if let Some(reason) = failing(pod)
            && was.and_then(|was| failing(was)).as_ref() != Some(&reason)
        {
            changes.push((format!("blocked by {reason}"), unit(pod)));
        }
    }
    if lists_all {
        let gone = old.iter().filter(|(name, _)| !new.contains_key(*name));
        changes.extend(gone.map(|(_, pod)| ("gone".to_owned(), unit(pod))));
    }
    changes
}

fn unit(pod: &v1::PodStatus) -> &str {
    if pod.node_name.is_empty() {
        &pod.pod_name
    } else {
        &pod.node_name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, node: &str, ready: bool) -> v1::PodStatus {
        v1::PodStatus {
            pod_name: name.to_owned(),
            node_name: node.to_owned(),
            ready,
            ..v1::PodStatus::default()
        }
    }

    fn daemon_set(pods: Vec<v1::PodStatus>) -> v1::WorkloadStatus {
        let node = |pod: v1::PodStatus| v1::NodeStatus {
            node_name: pod.node_name.clone(),
            pods: vec![pod],
            ..v1::NodeStatus::default()
        };
        v1::WorkloadStatus {
            nodes: pods.into_iter().map(node).collect(),
            ..v1::WorkloadStatus::default()
        }
    }

    #[test]
    fn equal_changes_are_one_sentence() {
        let mut leaving = pod("a-2", "node-2", true);
        leaving.deleted_at = Some(pbjson_types::Timestamp::default());
        let before = daemon_set(vec![
            pod("a-0", "node-0", false),
            pod("a-1", "node-1", false),
            pod("a-2", "node-2", true),
            pod("a-3", "node-3", true),
        ]);
        let mut pulling = pod("b-3", "node-3", false);
        pulling.problem = Some(v1::PodProblem {
            reason: "ImagePullBackOff".to_owned(),
            is_failing: true,
            ..v1::PodProblem::default()
        });
        let after = daemon_set(vec![
            pod("a-0", "node-0", true),
            pod("a-1", "node-1", true),
            leaving,
            pulling,
        ]);
        assert_eq!(
            differences(&before, &after),
            [
                "2 pods became ready: node-0, node-1",
                "1 pod being deleted: node-2",
                "1 pod blocked by ImagePullBackOff: node-3",
                "1 pod created: node-3",
                "1 pod gone: node-3",
            ]
        );
        assert!(differences(&after, &after).is_empty());
    }

    #[test]
    fn a_status_before_the_new_revision_exists_hides_no_change_of_the_template() {
        let status = |hash: &str| v1::WorkloadStatus {
            revisions: vec![v1::RevisionStatus {
                number: if hash == "a" { 1 } else { 2 },
                hash: hash.to_owned(),
                is_current: true,
                ..v1::RevisionStatus::default()
            }],
            ..v1::WorkloadStatus::default()
        };
        let between = v1::WorkloadStatus::default();
        let mut recent = Recent::default();
        recent.add(&status("a"), &between);
        recent.add(&between, &between);
        recent.add(&between, &status("b"));
        recent.add(&status("b"), &status("b"));
        let sentences: Vec<_> = recent
            .sentences()
            .map(|(_, sentence)| sentence.as_str())
            .collect();
        assert_eq!(sentences, ["the template changed: revision 1 → 2"]);
    }

    #[test]
    fn a_deployment_counts_by_revision() {
        let status = |old: u32, new: u32, done: u32| v1::WorkloadStatus {
            revisions: vec![
                v1::RevisionStatus {
                    name: "web-b".to_owned(),
                    number: 2,
                    hash: "b".to_owned(),
                    is_current: true,
                    pods: new,
                    ..v1::RevisionStatus::default()
                },
                v1::RevisionStatus {
                    name: "web-a".to_owned(),
                    number: 1,
                    hash: "a".to_owned(),
                    pods: old,
                    ..v1::RevisionStatus::default()
                },
            ],
            counts: Some(v1::UnitCounts {
                desired: 10,
                done,
                ..v1::UnitCounts::default()
            }),
            ..v1::WorkloadStatus::default()
        };
        assert_eq!(
            differences(&status(10, 3, 0), &status(8, 5, 2)),
            [
                "revision 2 (web-b): 3 → 5 pods",
                "revision 1 (web-a): 10 → 8 pods",
                "2 more pods are done: 2 of 10"
            ]
        );
    }
}
