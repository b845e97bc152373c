//! The verdict on one case.
//!
//! Upstream decides some things at random, by the order in which Go hands out a map: which of several candidates goes first. The
//! set of its possible outcomes is found by letting it decide again and again. Nodewise is right when one of these outcomes
//! is its own, to the letter. Where none is, two rules may still say so ([`How`]); the README tells what they leave open, and
//! a run fails when more than a few clusters need them.

use std::fmt::{self, Write as _};

use anyhow::{Context as _, Result};
use nodewise_planner::json::Json;
use nodewise_proto::v1::Deviation;
use serde_json::Value;

use crate::case::Case;
use crate::deviations;
use crate::effects::{Bag, Effects, Field, Sending};
use crate::nodewise::{Deviations, Nodewise, Ready, subject};
use crate::outcome::Outcome;
use crate::upstream::{Order, Upstream};

/// How often upstream is asked again, step by step, for an outcome that is Nodewise's.
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

/// What comparing a case showed.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// Nodewise does what upstream does.
    Equal(Agreement),
    /// It does not.
    Differs(Difference),
}

/// How equality was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// One of upstream's outcomes was the same to the letter.
    Found {
        /// How many syncs of upstream it took until one was.
        runs: u32,
    },
    /// Upstream crashes; without what crashes it, it does the same.
    CrashMended,
    /// Upstream went on with the rollout, and Nodewise does in its next sync.
    WentOn,
    /// Counts and eligibility decided.
    ByCounts,
}

/// What equality comes with.
#[derive(Clone, Debug)]
pub struct Agreement {
    /// How it was seen.
    pub how: How,
    /// The deviations that changed what the default profile does.
    pub deviations: Vec<Deviation>,
}

/// In what they differ.
#[derive(Clone, Debug)]
pub struct Difference {
    /// What was compared.
    pub sides: [&'static str; 2],
    /// The fields.
    pub fields: Vec<Field>,
    /// Every sentence that only one side says.
    pub report: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [left, right] = self.sides;
        write!(f, "- {left}\n+ {right}\n{}", self.report)
    }
}

impl Comparison {
    /// Of these two.
    #[must_use]
    pub fn new(upstream: Upstream, nodewise: Nodewise) -> Self {
        Self { upstream, nodewise }
    }

    /// Compares one case.
    ///
    /// # Errors
    /// One side cannot read the case, or upstream's program died.
    pub fn check(&mut self, case: &Case) -> Result<Verdict> {
        let case = &in_order(case);
        let ready = self.nodewise.ready(case)?;
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

    /// Ends upstream's program.
    ///
    /// # Errors
    /// It ends with an error.
    pub fn stop(self) -> Result<()> {
        self.upstream.stop()
    }

    /// Looks for `ours` among upstream's outcomes.
    fn search(&mut self, case: &Case, ours: &Effects) -> Result<Result<How, Difference>> {
        let mut theirs = self.outcomes(case, 1, Order::Shuffled)?;
        let mut runs = 1;
        for (more, order) in SEARCH {
            if theirs.contains(ours) {
                return Ok(Ok(How::Found { runs }));
            }
            if theirs.iter().any(has_crashed)
                && let Some(mended) = mended(case)
            {
                return Ok(self.search(&mended, ours)?.map(|_| How::CrashMended));
            }
            theirs.extend(self.outcomes(case, more, order)?);
            runs += more;
            dedup(&mut theirs);
            if order == Order::Shuffled && theirs.len() == 1 {
                // It does not depend on chance.
                break;
            }
        }
        if theirs.contains(ours) {
            return Ok(Ok(How::Found { runs }));
        }
        if theirs.iter().any(|outcome| went_on(case, outcome, ours)) {
            return Ok(Ok(How::WentOn));
        }
        if theirs.len() > 1 && is_possible(ours, &theirs) {
            return Ok(Ok(How::ByCounts));
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

    /// Holds a profile against the strict one: whatever differs is explained by the deviations that the plan names.
    fn explain(
        &self,
        case: &Case,
        ready: &Ready,
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
            of(strict, Sending::Levelled)?,
            of(&usual.outcome, Sending::Levelled)?,
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
        // Those that change names and preconditions only may change no field.
        named.retain(|deviation| {
            let may_change = may_change(deviation);
            may_change.is_empty() || may_change.iter().any(|field| fields.contains(field))
        });
        Ok(Ok(named))
    }

    /// A profile without the deviations that its plans name, and without those that they name then, since one may hide
    /// another; at last also without those that no plan names.
    fn undo(
        &self,
        case: &Case,
        ready: &Ready,
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
                let untold = deviations::UNTOLD.iter().find(|untold| !named.contains(untold));
                named.extend(untold);
            }
            if named.len() == known {
                return Ok((named, effects));
            }
        }
    }
}

/// The default profile, and where it may matter also with the deviation that is off in it.
fn profiles(case: &Case) -> Vec<Deviations> {
    let strategy = subject(case).map(|ds| &ds["spec"]["updateStrategy"]["rollingUpdate"]["maxSurge"]);
    let mut profiles = vec![Deviations::default()];
    if strategy.is_ok_and(|surge| !surge.is_null() && *surge != 0) {
        profiles.push(Deviations {
            with: vec![Deviation::SurgeHonoursBackoff],
            ..Deviations::default()
        });
    }
    profiles
}

/// The case with every list in the order in which Nodewise decides, so that upstream, when it takes the lists as they
/// come, is likely to choose the same; and with the data of revisions as Kubernetes writes them, since Nodewise goes by their
/// meaning and upstream by their bytes.
fn in_order(case: &Case) -> Case {
    let text = |value: &Value, path: &str| {
        let text = value.pointer(path).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let name = |object: &Value| text(object, "/metadata/name");
    let created = |object: &Value| text(object, "/metadata/creationTimestamp");
    let mut case = case.clone();
    case.nodes.sort_by_cached_key(name);
    case.pods
        .sort_by_cached_key(|pod| (text(pod, "/spec/nodeName").is_empty(), created(pod), name(pod)));
    for revision in case.revisions.iter_mut().chain(&mut case.live.revisions) {
        // What is no JSON is for the two sides to refuse.
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
    !outcome.bag(Field::Panic).is_empty()
}

/// The case without what crashes upstream where Nodewise has a defined outcome: a DaemonSet without history limit, and a
/// revision without labels that a purely negative selector selects. `None` when it has nothing of that.
fn mended(case: &Case) -> Option<Case> {
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

/// Whether upstream did all that Nodewise does and went on with the rollout in the same sync, because every pod that it
/// deleted before was gone already, so that it awaits nothing (D-74). Nodewise goes on in the next sync.
fn went_on(case: &Case, theirs: &Effects, ours: &Effects) -> bool {
    let rolls = subject(case).is_ok_and(|ds| ds["spec"]["updateStrategy"]["type"] == "RollingUpdate");
    let deletes = ours.bag(Field::PodDeletes);
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
        && ours.bag(Field::PodCreates).is_empty()
        && theirs.differing(ours).iter().all(|field| later.contains(field))
        && [Field::PodDeletes, Field::Events].into_iter().all(|field| {
            let (all, part) = (theirs.bag(field), ours.bag(field));
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

/// Counts and eligibility: in what all outcomes have in common `ours` is the same, in everything else it has as many
/// entries as one of them, every entry as often as some outcome has it, and all that every outcome has.
fn is_possible(ours: &Effects, theirs: &[Effects]) -> bool {
    let disputed: Vec<Field> = Field::ALL
        .into_iter()
        .filter(|&field| {
            theirs
                .iter()
                .any(|outcome| outcome.bag(field) != theirs[0].bag(field))
        })
        .collect();
    let sizes = |outcome: &Effects| -> Vec<usize> {
        let bags = disputed.iter().map(|&field| outcome.bag(field));
        bags.map(|bag| bag.values().sum()).collect()
    };
    let undisputed = Field::ALL.iter().filter(|field| !disputed.contains(field));
    let mut undisputed = undisputed.map(|&field| ours.bag(field) == theirs[0].bag(field));
    undisputed.all(|same| same)
        && theirs.iter().any(|outcome| sizes(outcome) == sizes(ours))
        && disputed.iter().all(|&field| is_eligible(field, ours, theirs))
}

/// Whether every entry of a field is there as often as outcomes have it.
fn is_eligible(field: Field, ours: &Effects, theirs: &[Effects]) -> bool {
    let bags: Vec<Bag> = theirs.iter().map(|outcome| outcome.bag(field)).collect();
    let own = ours.bag(field);
    let times = |bag: &Bag, sentence: &String| bag.get(sentence).copied().unwrap_or(0);
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
        let (left, right) = (left.bag(field), right.bag(field));
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

    // Any one of b, c and d, and always a.
    #[test]
    fn counts_and_eligibility_decide_what_chance_decides() {
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
    fn a_difference_tells_both_sides() {
        let found = difference(["left", "right"], &deleting(&["a", "b"]), &deleting(&["a", "c"]));
        assert_eq!(found.fields, [Field::PodDeletes]);
        assert_eq!(
            found.to_string(),
            "- left\n+ right\npods deleted:\n  - 1 × b (200)\n  + 1 × c (200)\n"
        );
    }
}
