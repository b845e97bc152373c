//! The verdict on one case.
//!
//! Upstream decides some things at random, by the order in which Go hands out a map: which of several candidates goes first. The
//! set of its possible outcomes is found by letting it decide again and again. Nodewise is right when one of these
//! outcomes is its own, to the letter. In clusters so large that this is hopeless, it is right when every field in which the
//! outcomes agree is the same, and every other field has as many entries as upstream's, all of which upstream is seen to
//! choose at times, and among which are all that upstream always chooses.

use std::fmt::{self, Write as _};

use anyhow::{Context as _, Result};
use nodewise_proto::v1::Deviation;
use serde_json::Value;

use crate::case::{Case, Revision};
use crate::deviations;
use crate::effects::{Bag, Effects, Field};
use crate::nodewise::{Deviations, Nodewise, Ready, subject};
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
#[derive(Clone, Debug)]
pub struct Agreement {
    /// How many syncs of upstream it took until one did exactly the same; absent when counts and eligibility decided.
    pub runs: Option<u32>,
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
        let strict = self.nodewise.sync(&ready, &Deviations::strict())?;
        let strict = Effects::of(case, &strict.outcome)?;
        let sought = self.without_vanished(case, &strict)?;
        let runs = match self.search(case, sought.as_ref().unwrap_or(&strict))? {
            Ok(runs) => runs,
            Err(difference) => return Ok(Verdict::Differs(difference)),
        };
        Ok(match self.explain(case, &ready, &strict)? {
            Ok(deviations) => Verdict::Equal(Agreement { runs, deviations }),
            Err(difference) => Verdict::Differs(difference),
        })
    }

    /// Ends upstream's program.
    ///
    /// # Errors
    /// It ends with an error.
    pub fn stop(self) -> Result<()> {
        self.upstream.stop()
    }

    /// An orphan that is gone when it is to be adopted is left out by upstream from then on; a plan knows no better than to go
    /// on with it. What Nodewise does must then be what it does when the caches do not show that orphan, besides trying.
    fn without_vanished(&self, case: &Case, ours: &Effects) -> Result<Option<Effects>> {
        let claims = ours.bag(Field::Claims);
        let vanished: Vec<_> = claims.keys().filter_map(|claim| vanished(claim)).collect();
        if vanished.is_empty() {
            return Ok(None);
        }
        let stays = |op: &str, object: &Value| {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            !vanished.contains(&(op, name))
        };
        let mut without = case.clone();
        without.pods.retain(|pod| stays("adopt-pod", pod));
        let (kept, gone) = std::mem::take(&mut without.revisions)
            .into_iter()
            .partition(|revision| stays("adopt-revision", &revision.object));
        without.revisions = kept;
        // One that only its adoption does not find is still in the way of a name.
        let is_gone = |revision: &Revision| {
            let name = revision.object["metadata"]["name"].as_str().unwrap_or_default();
            without.live.gone.contains(&format!("controllerrevisions/{name}"))
        };
        let hidden: Vec<Revision> = gone;
        let hidden: Vec<_> = hidden.into_iter().filter(|revision| !is_gone(revision)).collect();
        without.live.revisions.extend(hidden);
        let ready = self.nodewise.ready(&without)?;
        let outcome = self.nodewise.sync(&ready, &Deviations::strict())?.outcome;
        let mut effects = Effects::of(&without, &outcome)?;
        for claim in claims.keys().filter(|claim| self::vanished(claim).is_some()) {
            effects.add(Field::Claims, claim);
        }
        Ok(Some(effects))
    }

    /// Looks for `ours` among upstream's outcomes.
    fn search(&mut self, case: &Case, ours: &Effects) -> Result<Result<Option<u32>, Difference>> {
        let mut theirs = self.outcomes(case, 1, Order::Shuffled)?;
        let mut runs = 1;
        for (more, order) in SEARCH {
            if theirs.contains(ours) {
                return Ok(Ok(Some(runs)));
            }
            if is_mended_crash(case, &theirs) {
                return Ok(Ok(None));
            }
            theirs.extend(self.outcomes(case, more, order)?);
            runs += more;
            dedup(&mut theirs);
            if order == Order::Shuffled && theirs.len() == 1 && !theirs.contains(ours) {
                // It does not depend on chance.
                break;
            }
        }
        if theirs.contains(ours) {
            return Ok(Ok(Some(runs)));
        }
        if theirs.len() > 1 && is_possible(ours, &theirs) {
            return Ok(Ok(None));
        }
        if theirs.iter().any(|outcome| went_on(case, outcome, ours)) {
            return Ok(Ok(None));
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
            .map(|outcome| Effects::of(case, outcome))
            .collect()
    }

    /// Holds the default profile against the strict one: whatever differs is explained by the deviations that the plan names.
    fn explain(
        &self,
        case: &Case,
        ready: &Ready,
        strict: &Effects,
    ) -> Result<Result<Vec<Deviation>, Difference>> {
        let usual = self.nodewise.sync(ready, &Deviations::default())?;
        let effects = Effects::of(case, &usual.outcome)?;
        let fields = strict.differing(&effects);
        if fields.is_empty() {
            return Ok(Ok(Vec::new()));
        }
        let (mut named, undone) = self.undo(case, ready, usual.deviations, strict)?;
        if undone != *strict {
            let sides = [
                "nodewise, upstream_strict",
                "nodewise, without the deviations it names",
            ];
            return Ok(Err(difference(sides, strict, &undone)));
        }
        let unexplained = |field: &Field| {
            !named
                .iter()
                .any(|&deviation| deviations::may_change(deviation).contains(field))
        };
        if fields.iter().any(unexplained) {
            let sides = ["nodewise, upstream_strict", "nodewise, default"];
            return Ok(Err(difference(sides, strict, &effects)));
        }
        named.retain(|&deviation| {
            deviations::may_change(deviation)
                .iter()
                .any(|field| fields.contains(field))
        });
        Ok(Ok(named))
    }

    /// The default profile without the deviations that it names, and without those that it names then, since one may hide
    /// another; at last also without those that no plan names.
    fn undo(
        &self,
        case: &Case,
        ready: &Ready,
        mut named: Vec<Deviation>,
        strict: &Effects,
    ) -> Result<(Vec<Deviation>, Effects)> {
        loop {
            let without = Deviations {
                without: named.clone(),
                ..Deviations::default()
            };
            let synced = self.nodewise.sync(ready, &without)?;
            let effects = Effects::of(case, &synced.outcome)?;
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

/// The case with every list in the order in which Nodewise decides, so that upstream, when it takes the lists as they
/// come, is likely to choose the same.
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
    case.revisions.sort_by_cached_key(|revision| {
        let object = &revision.object;
        (object["revision"].as_i64(), created(object), name(object))
    });
    case
}

/// Upstream crashes where Nodewise has a defined outcome: on a DaemonSet without history limit, and on a revision without
/// labels that a purely negative selector selects.
fn is_mended_crash(case: &Case, theirs: &[Effects]) -> bool {
    let crashed = theirs.iter().any(|outcome| !outcome.bag(Field::Panic).is_empty());
    let unlimited = subject(case).is_ok_and(|ds| ds["spec"]["revisionHistoryLimit"].is_null());
    let unlabelled = |revision: &Revision| revision.object["metadata"]["labels"].is_null();
    crashed && (unlimited || case.revisions.iter().any(unlabelled))
}

/// The kind and the object of an adoption that found nothing.
fn vanished(claim: &str) -> Option<(&str, &str)> {
    let (op, rest) = claim.split_once(' ')?;
    let (name, rest) = rest.split_once(' ')?;
    (op.starts_with("adopt-") && rest.starts_with("(404)")).then_some((op, name))
}

/// Whether upstream did all that Nodewise does and went on with the rollout in the same sync, because every pod that it
/// deleted before was gone already, so that it awaits nothing (D-74). Nodewise goes on in the next sync.
fn went_on(case: &Case, theirs: &Effects, ours: &Effects) -> bool {
    let rolls = subject(case).is_ok_and(|ds| ds["spec"]["updateStrategy"]["type"] == "RollingUpdate");
    let deletes = ours.bag(Field::PodDeletes);
    let gone = |sentence: &String| sentence.ends_with("(404)");
    let later = [
        Field::Error,
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

/// Counts and eligibility.
fn is_possible(ours: &Effects, theirs: &[Effects]) -> bool {
    let mut fields: Vec<_> = theirs
        .iter()
        .flat_map(|outcome| outcome.differing(ours))
        .collect();
    fields.sort_unstable();
    fields.dedup();
    fields.into_iter().all(|field| {
        let own = ours.bag(field);
        let bags: Vec<_> = theirs.iter().map(|outcome| outcome.bag(field)).collect();
        let size = |bag: &Bag| bag.values().sum::<usize>();
        bags.iter().any(|bag| size(bag) == size(&own))
            && own
                .keys()
                .all(|sentence| bags.iter().any(|bag| bag.contains_key(sentence)))
            && bags[0]
                .keys()
                .filter(|sentence| bags.iter().all(|bag| bag.contains_key(*sentence)))
                .all(|sentence| own.contains_key(sentence))
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
            body: String::new(),
            code: 200,
        };
        let outcome = Outcome {
            calls: pods.iter().map(call).collect(),
            ..Outcome::default()
        };
        Effects::of(&case, &outcome).expect("effects")
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
