//! Compares both controllers on one case.
//!
//! Upstream decides some things at random, because Go iterates over maps in random order: for example, which of several
//! candidate pods is deleted first. The comparison finds the set of upstream's possible outcomes by repeating the sync.
//! Nodewise is right if its outcome equals one of them exactly. If none is equal, two rules may still accept it
//! ([`How`]). The README describes what these rules ignore. A run fails if more than a few clusters need them.

use std::fmt::{self, Write as _};

use anyhow::{Context as _, Result};
use nodewise_planner::json::Json;
use nodewise_proto::v1::Deviation;
use serde_json::Value;

use crate::case::{Case, Kind};
use crate::design;
use crate::deviations;
use crate::effects::{Effects, Field, Multiset, Sending};
use crate::nodewise::{Nodewise, PreparedCase};
use crate::outcome::Outcome;
use crate::profile::Deviations;
use crate::upstream::{Order, Upstream};

/// How many more syncs of upstream each step of the search makes.
const SEARCH: [(u32, Order); 4] = [
    (8, Order::Given),
    (56, Order::Shuffled),
    (192, Order::Given),
    (768, Order::Shuffled),
];

/// Both controllers.
#[derive(Debug)]
pub struct Comparison {
    upstream: Upstream,
    nodewise: Nodewise,
}

/// The result of a comparison.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// Nodewise does what upstream does.
    Equal(Agreement),
    /// Nodewise does something else.
    Differs(Difference),
}

/// How equality was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// One of upstream's outcomes is exactly equal.
    Exact {
        /// The number of upstream syncs until an equal outcome was found.
        runs: u32,
    },
    /// Upstream crashes. Without the cause of the crash, the outcomes are equal.
    WithoutCrash,
    /// Upstream continued the rollout in the same sync; Nodewise continues it in the next sync.
    StepAhead,
    /// The outcome is accepted by counts and eligibility.
    ByCounts,
    /// The outcome differs by design, as this rule says.
    ByDesign(&'static str),
}

/// An equal result.
#[derive(Clone, Debug)]
pub struct Agreement {
    /// How equality was found.
    pub how: How,
    /// The deviations that changed the outcome of the default profile.
    pub deviations: Vec<Deviation>,
}

/// A difference between two outcomes.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The names of the two outcomes.
    pub sides: [&'static str; 2],
    /// The fields that differ.
    pub fields: Vec<Field>,
    /// All sentences that only one side has.
    pub report: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [left, right] = self.sides;
        write!(f, "- {left}\n+ {right}\n{}", self.report)
    }
}

impl Comparison {
    /// A comparison of these two.
    #[must_use]
    pub fn new(upstream: Upstream, nodewise: Nodewise) -> Self {
        Self { upstream, nodewise }
    }

    /// Compares one case.
    ///
    /// # Errors
    /// One side cannot read the case, or upstream's program ended.
    pub fn check(&mut self, case: &Case) -> Result<Verdict> {
        let case = &in_order(case);
        let ready = self.nodewise.prepare(case)?;
        let strict = self.nodewise.sync(&ready, &Deviations::strict())?.outcome;
        let how = match self.search(case, &Effects::of(case, &strict, Sending::AsIs)?)? {
            Ok(how) => how,
            Err(difference) => return Ok(Verdict::Differs(difference)),
        };
        let mut deviations = Vec::new();
        for profile in profiles(case) {
            match self.explain(case, &ready, &strict, &profile)? {
                Ok(named) => deviations.extend(named),
                Err(difference) => return Ok(Verdict::Differs(difference)),
            }
        }
        deviations.sort_unstable();
        deviations.dedup();
        Ok(Verdict::Equal(Agreement { how, deviations }))
    }

    /// Stops upstream's program.
    ///
    /// # Errors
    /// The program ends with an error.
    pub fn stop(self) -> Result<()> {
        self.upstream.stop()
    }

    /// Searches for `ours` among upstream's outcomes.
    fn search(&mut self, case: &Case, ours: &Effects) -> Result<Result<How, Difference>> {
        let case = &design::for_upstream(case);
        let mut theirs = self.outcomes(case, 1, Order::Shuffled)?;
        let mut runs = 1;
        for (more, order) in SEARCH {
            if theirs.contains(ours) {
                return Ok(Ok(How::Exact { runs }));
            }
            if theirs.iter().any(has_crashed)
                && let Some(mended) = without_crash_cause(case)
            {
                return Ok(self.search(&mended, ours)?.map(|_| How::WithoutCrash));
            }
            theirs.extend(self.outcomes(case, more, order)?);
            runs += more;
            dedup(&mut theirs);
            if order == Order::Shuffled && theirs.len() == 1 {
                // The outcome does not depend on the order of the caches.
                break;
            }
        }
        if theirs.contains(ours) {
            return Ok(Ok(How::Exact { runs }));
        }
        if theirs.iter().any(|outcome| is_step_ahead(case, outcome, ours)) {
            return Ok(Ok(How::StepAhead));
        }
        if theirs.len() > 1 && is_possible(ours, &theirs) {
            return Ok(Ok(How::ByCounts));
        }
        let rules = theirs
            .iter()
            .filter_map(|outcome| design::rule(case, outcome, ours));
        if let Some(rule) = rules.min() {
            return Ok(Ok(How::ByDesign(rule)));
        }
        let nearest = theirs
            .iter()
            .min_by_key(|outcome| outcome.differing(ours).len())
            .context("upstream told no outcome")?;
        Ok(Err(difference(
            ["upstream", "nodewise, upstream_strict"],
            nearest,
            ours,
        )))
    }

    fn outcomes(&mut self, case: &Case, runs: u32, order: Order) -> Result<Vec<Effects>> {
        let outcomes = self.upstream.sync(case, runs, order)?;
        outcomes
            .iter()
            .map(|outcome| Effects::of(case, outcome, Sending::AsIs))
            .collect()
    }

    /// Compares a profile with the strict one. Every difference must be explained by a deviation that the plan names.
    fn explain(
        &self,
        case: &Case,
        ready: &PreparedCase,
        strict: &Outcome,
        profile: &Deviations,
    ) -> Result<Result<Vec<Deviation>, Difference>> {
        let of = |outcome: &Outcome, sending| Effects::of(case, outcome, sending);
        let usual = self.nodewise.sync(ready, profile)?;
        let as_sent = of(strict, Sending::AsIs)?;
        if of(&usual.outcome, Sending::AsIs)? == as_sent {
            return Ok(Ok(Vec::new()));
        }
        let (mut named, undone) = self.undo(case, ready, profile, usual.deviations, &as_sent)?;
        if undone != as_sent {
            let sides = [
                "nodewise, upstream_strict",
                "nodewise, without the deviations it names",
            ];
            return Ok(Err(difference(sides, &as_sent, &undone)));
        }
        let same_order = Effects::same_order(strict, &usual.outcome);
        let (strict, usual) = (
            of(strict, Sending::Normalized)?,
            of(&usual.outcome, Sending::Normalized)?,
        );
        let fields = strict.differing(&usual);
        let may_change = |deviation: &Deviation| deviations::may_change(*deviation);
        let explained = |field: &Field| {
            named
                .iter()
                .any(|deviation| may_change(deviation).contains(field))
        };
        if !same_order || !fields.iter().all(explained) {
            let sides = ["nodewise, upstream_strict", "nodewise, default"];
            return Ok(Err(difference(sides, &strict, &usual)));
        }
        // Deviations that change only names and preconditions cannot change a field.
        named.retain(|deviation| {
            let may_change = may_change(deviation);
            may_change.is_empty() || may_change.iter().any(|field| fields.contains(field))
        });
        Ok(Ok(named))
    }

    /// Syncs with the profile without the deviations that its plans name. Repeats this with the deviations that the new
    /// plans name, since one deviation may hide another. Finally also removes the deviations that no plan names.
    fn undo(
        &self,
        case: &Case,
        ready: &PreparedCase,
        profile: &Deviations,
        mut named: Vec<Deviation>,
        strict: &Effects,
    ) -> Result<(Vec<Deviation>, Effects)> {
        loop {
            let mut without = profile.clone();
            without.with.retain(|deviation| !named.contains(deviation));
            without.without.clone_from(&named);
            let synced = self.nodewise.sync(ready, &without)?;
            let effects = Effects::of(case, &synced.outcome, Sending::AsIs)?;
            if effects == *strict {
                return Ok((named, effects));
            }
            let known = named.len();
            named.extend(synced.deviations);
            if named.len() == known {
                let unnamed = deviations::UNNAMED
                    .iter()
                    .find(|unnamed| !named.contains(unnamed));
                named.extend(unnamed);
            }
            if named.len() == known {
                return Ok((named, effects));
            }
        }
    }
}

/// The default profile and, if the DaemonSet surges, the default profile with the deviation that is off by default.
fn profiles(case: &Case) -> Vec<Deviations> {
    if case.kind != Kind::DaemonSet {
        return vec![Deviations::default()];
    }
    let strategy = case
        .subject()
        .map(|ds| &ds["spec"]["updateStrategy"]["rollingUpdate"]["maxSurge"]);
    let mut profiles = vec![Deviations::default()];
    if strategy.is_ok_and(|surge| !surge.is_null() && *surge != 0) {
        profiles.push(Deviations {
            with: vec![Deviation::SurgeHonoursBackoff],
            ..Deviations::default()
        });
    }
    profiles
}

/// The case with every list in the order in which Nodewise decides, so that upstream is likely to make the same
/// choice with lists in the given order. Also rewrites the data of revisions as Kubernetes serializes it, because
/// Nodewise compares the values and upstream the bytes.
fn in_order(case: &Case) -> Case {
    let text = |value: &Value, path: &str| {
        let text = value.pointer(path).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let name = |object: &Value| text(object, "/metadata/name");
    let created = |object: &Value| text(object, "/metadata/creationTimestamp");
    let mut case = case.clone();
    case.nodes.sort_by_cached_key(name);
    if case.kind == Kind::DaemonSet {
        case.pods
            .sort_by_cached_key(|pod| (text(pod, "/spec/nodeName").is_empty(), created(pod), name(pod)));
    } else {
        //
        case.pods.sort_by_cached_key(|pod| text(pod, "/metadata/uid"));
    }
    if case.kind == Kind::Deployment {
        case.replica_sets
            .sort_by_cached_key(|set| (created(set), name(set)));
    }
    for revision in case.revisions.iter_mut().chain(&mut case.live.revisions) {
        // Both controllers reject data that is not JSON.
        if let Ok(data) = serde_json::from_str::<Json>(&revision.data) {
            data.as_str().clone_into(&mut revision.data);
        }
    }
    case.revisions.sort_by_cached_key(|revision| {
        let object = &revision.object;
        (object["revision"].as_i64(), created(object), name(object))
    });
    case
}

fn has_crashed(outcome: &Effects) -> bool {
    !outcome.sentences(Field::Panic).is_empty()
}

/// The case without the causes of upstream crashes for which Nodewise has a defined outcome: a DaemonSet without
/// a history limit, and a revision without labels that a purely negative selector selects. `None` if there is no such
/// cause.
fn without_crash_cause(case: &Case) -> Option<Case> {
    if case.kind != Kind::DaemonSet {
        return None;
    }
    let mut mended = case.clone();
    let limit = &mut mended.daemon_sets.first_mut()?["spec"]["revisionHistoryLimit"];
    if limit.is_null() {
        *limit = 10.into();
    }
    for revision in mended.revisions.iter_mut().chain(&mut mended.live.revisions) {
        let labels = &mut revision.object["metadata"]["labels"];
        if labels.is_null() {
            *labels = Value::Object(serde_json::Map::new());
        }
    }
    (mended != *case).then_some(mended)
}

/// Whether upstream did everything that Nodewise does and continued the rollout in the same sync. Upstream does so when
/// every pod that it deleted was already gone, so that it awaits no deletes (D-74). Nodewise continues in the next
/// sync.
fn is_step_ahead(case: &Case, theirs: &Effects, ours: &Effects) -> bool {
    let rolls = case.kind == Kind::DaemonSet
        && case
            .subject()
            .is_ok_and(|ds| ds["spec"]["updateStrategy"]["type"] == "RollingUpdate");
    let deletes = ours.sentences(Field::PodDeletes);
    let gone = |sentence: &String| sentence.ends_with("(404)");
    let later = [
        Field::Error,
        Field::Order,
        Field::PodCreates,
        Field::PodDeletes,
        Field::RevisionDeletes,
        Field::Events,
        Field::Requeue,
        Field::Expectations,
    ];
    rolls
        && !deletes.is_empty()
        && deletes.keys().all(gone)
        && ours.sentences(Field::PodCreates).is_empty()
        && theirs.differing(ours).iter().all(|field| later.contains(field))
        && [Field::PodDeletes, Field::Events].into_iter().all(|field| {
            let (all, part) = (theirs.sentences(field), ours.sentences(field));
            part.iter()
                .all(|(sentence, times)| all.get(sentence) >= Some(times))
        })
}

fn dedup(outcomes: &mut Vec<Effects>) {
    let mut distinct: Vec<Effects> = Vec::with_capacity(outcomes.len());
    for outcome in outcomes.drain(..) {
        if !distinct.contains(&outcome) {
            distinct.push(outcome);
        }
    }
    *outcomes = distinct;
}

/// Counts and eligibility: fields on which all outcomes agree are equal in `ours`. Every other field has as many
/// entries as in one of the outcomes, each entry as often as in some outcome, and all entries that every outcome has.
fn is_possible(ours: &Effects, theirs: &[Effects]) -> bool {
    let disputed: Vec<Field> = Field::ALL
        .into_iter()
        .filter(|&field| {
            theirs
                .iter()
                .any(|outcome| outcome.sentences(field) != theirs[0].sentences(field))
        })
        .collect();
    let sizes = |outcome: &Effects| -> Vec<usize> {
        let bags = disputed.iter().map(|&field| outcome.sentences(field));
        bags.map(|bag| bag.values().sum()).collect()
    };
    let undisputed = Field::ALL.iter().filter(|field| !disputed.contains(field));
    let mut undisputed = undisputed.map(|&field| ours.sentences(field) == theirs[0].sentences(field));
    undisputed.all(|same| same)
        && theirs.iter().any(|outcome| sizes(outcome) == sizes(ours))
        && disputed.iter().all(|&field| is_eligible(field, ours, theirs))
}

/// Whether each entry of a field occurs as often as in some outcome.
fn is_eligible(field: Field, ours: &Effects, theirs: &[Effects]) -> bool {
    let bags: Vec<Multiset> = theirs.iter().map(|outcome| outcome.sentences(field)).collect();
    let own = ours.sentences(field);
    let times = |bag: &Multiset, sentence: &String| bag.get(sentence).copied().unwrap_or(0);
    own.keys().chain(bags[0].keys()).all(|sentence| {
        let seen = || bags.iter().map(|bag| times(bag, sentence));
        let (least, most) = (seen().min(), seen().max());
        (least..=most).contains(&Some(times(&own, sentence)))
    })
}

fn difference(sides: [&'static str; 2], left: &Effects, right: &Effects) -> Difference {
    let fields = left.differing(right);
    let mut report = String::new();
    for &field in &fields {
        let (left, right) = (left.sentences(field), right.sentences(field));
        let _ = writeln!(report, "{field}:");
        for (sign, bag, other) in [('-', &left, &right), ('+', &right, &left)] {
            for (sentence, times) in bag
                .iter()
                .filter(|(sentence, times)| other.get(*sentence) != Some(times))
            {
                let _ = writeln!(report, "  {sign} {times} × {sentence}");
            }
        }
    }
    Difference {
        sides,
        fields,
        report,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Call, Outcome};
    use serde_json::json;

    fn deleting(pods: &[&str]) -> Effects {
        let case: Case = serde_json::from_value(json!({
            "now": "2026-01-01T00:00:00Z",
            "daemonSets": [{"metadata": {"name": "foo", "namespace": "ns"}}],
            "burst": 1,
            "echo": true,
        }))
        .expect("a case");
        let call = |pod: &&str| Call {
            op: "delete-pod".to_owned(),
            name: (*pod).to_owned(),
            body: "{}".to_owned(),
            code: 200,
        };
        let outcome = Outcome {
            calls: pods.iter().map(call).collect(),
            ..Outcome::default()
        };
        Effects::of(&case, &outcome, Sending::AsIs).expect("effects")
    }

    // Always a, and any one of b, c and d.
    #[test]
    fn counts_and_eligibility() {
        let theirs = [
            deleting(&["a", "b"]),
            deleting(&["a", "c"]),
            deleting(&["d", "a"]),
        ];
        for (ours, possible) in [
            (vec!["a", "c"], true),
            (vec!["a", "d"], true),
            (vec!["a", "e"], false),
            (vec!["b", "c"], false),
            (vec!["a"], false),
            (vec!["a", "b", "c"], false),
        ] {
            assert_eq!(is_possible(&deleting(&ours), &theirs), possible, "{ours:?}");
        }
    }

    #[test]
    fn difference_reports_both_sides() {
        let found = difference(["left", "right"], &deleting(&["a", "b"]), &deleting(&["a", "c"]));
        assert_eq!(found.fields, [Field::PodDeletes]);
        assert_eq!(
            found.to_string(),
            "- left\n+ right\npods deleted:\n  - 1 × b (200)\n  + 1 × c (200)\n"
        );
    }
}
