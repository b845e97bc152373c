//! The effects of a sync in a form that can be compared for both controllers: a multiset of sentences for each field.
//!
//! Only differences that no user can see are removed: PUT or patch for the same change, explicit zeros, the text of the
//! API's own errors, and claims that upstream repeats because its cache lags.

mod changes;
mod text;
mod workloads;

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context as _, Result};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::Value;

use crate::case::{Backoff, Case, Kind};
use crate::outcome::{Call, Outcome};
use changes::Changes;

/// The age after which a back-off entry has no effect (D-99).
const FORGOTTEN: SignedDuration = SignedDuration::from_mins(30);

/// The kind of an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// The sync panicked.
    Panic,
    /// The sync ended with an error and is retried.
    Error,
    /// The order in which the kinds of writes occurred first.
    Order,
    /// Pods and revisions adopted and released.
    Claims,
    /// Pods that got another hash label.
    Relabels,
    /// Revisions created.
    RevisionCreates,
    /// Revisions that got another number or label.
    RevisionUpdates,
    /// Revisions deleted.
    RevisionDeletes,
    /// Pods created, with node and whole manifest.
    PodCreates,
    /// Pods deleted.
    PodDeletes,
    /// ReplicaSets created, with their whole manifests.
    SetCreates,
    /// Writes of ReplicaSets, or of a Deployment's spec, that were refused.
    SetRefusals,
    /// ReplicaSets deleted.
    SetDeletes,
    /// What changed of ReplicaSets and Deployments.
    Stored,
    /// Statuses written; of a ReplicaSet or Deployment only those that were refused.
    Status,
    /// Events.
    Events,
    /// The requeue delay.
    Requeue,
    /// The creates and deletes that are expected after the sync.
    Expectations,
    /// The back-off of failed pods after the sync.
    Backoff,
}

impl Field {
    /// All fields.
    pub const ALL: [Self; 19] = [
        Self::Panic,
        Self::Error,
        Self::Order,
        Self::Claims,
        Self::Relabels,
        Self::RevisionCreates,
        Self::RevisionUpdates,
        Self::RevisionDeletes,
        Self::PodCreates,
        Self::PodDeletes,
        Self::SetCreates,
        Self::SetRefusals,
        Self::SetDeletes,
        Self::Stored,
        Self::Status,
        Self::Events,
        Self::Requeue,
        Self::Expectations,
        Self::Backoff,
    ];
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Panic => "panic",
            Self::Error => "error",
            Self::Order => "order",
            Self::Claims => "claims",
            Self::Relabels => "pods relabelled",
            Self::RevisionCreates => "revisions created",
            Self::RevisionUpdates => "revisions changed",
            Self::RevisionDeletes => "revisions deleted",
            Self::PodCreates => "pods created",
            Self::PodDeletes => "pods deleted",
            Self::SetCreates => "ReplicaSets created",
            Self::SetRefusals => "writes refused",
            Self::SetDeletes => "ReplicaSets deleted",
            Self::Stored => "content after the sync",
            Self::Status => "status",
            Self::Events => "events",
            Self::Requeue => "requeue",
            Self::Expectations => "expectations",
            Self::Backoff => "back-off",
        })
    }
}

/// How to treat pod names and preconditions that the default profile sends and upstream does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// Keep them.
    AsIs,
    /// Replace them by what upstream would send.
    Normalized,
}

/// Sentences, with the number of their occurrences.
pub type Multiset = BTreeMap<String, usize>;

/// The effects of one sync.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects(BTreeMap<Field, Multiset>);

impl Effects {
    /// The effects of `outcome`, a sync of `case`.
    ///
    /// # Errors
    /// The body of a call is not the expected JSON.
    pub fn of(case: &Case, outcome: &Outcome, sending: Sending) -> Result<Self> {
        let mut effects = Self::default();
        if let Some(panic) = &outcome.panic {
            effects.say(Field::Panic, panic.lines().next().unwrap_or_default());
            // How far the sync got before the panic is not compared.
            return Ok(effects);
        }
        if case.kind != Kind::DaemonSet {
            return workloads::effects(case, outcome, sending);
        }
        if outcome.error.is_some() {
            effects.say(Field::Error, "the sync ends with an error");
        }
        if sending == Sending::AsIs {
            effects.say(Field::Order, text::order(&outcome.sequence).join(", "));
        }
        let mut updates = BTreeMap::new();
        for call in &outcome.calls {
            effects.take_call(case, call, sending, &mut updates)?;
        }
        for (name, changes) in updates {
            effects.say(Field::RevisionUpdates, format!("{name}: {}", changes.changed()));
        }
        let names = match sending {
            Sending::AsIs => BTreeMap::new(),
            Sending::Normalized => text::created_names(case, outcome)?,
        };
        for event in &outcome.events {
            effects.say(Field::Events, text::event_text(event, &names));
        }
        // A failed sync is retried with back-off, whatever the requeue delay.
        if let Some(first) = outcome.requeue.first().filter(|_| outcome.error.is_none()) {
            effects.say(Field::Requeue, format!("after {first:.3} s"));
        }
        effects.take_expectations(case, outcome);
        effects.take_backoff(case, &outcome.backoff)?;
        Ok(effects)
    }

    /// Whether the kinds of writes that both outcomes have are in the same order.
    #[must_use]
    pub fn same_order(one: &Outcome, other: &Outcome) -> bool {
        let (mut one, mut other) = (text::order(&one.sequence), text::order(&other.sequence));
        let all = one.clone();
        one.retain(|kind| other.contains(kind));
        other.retain(|kind| all.contains(kind));
        one == other
    }

    /// The sentences of a field.
    #[must_use]
    pub fn sentences(&self, field: Field) -> Multiset {
        self.0.get(&field).cloned().unwrap_or_default()
    }

    /// The fields in which `self` and `other` differ.
    #[must_use]
    pub fn differing(&self, other: &Self) -> Vec<Field> {
        let mut fields: Vec<_> = self.0.keys().chain(other.0.keys()).copied().collect();
        fields.sort_unstable();
        fields.dedup();
        fields.retain(|field| self.0.get(field) != other.0.get(field));
        fields
    }

    /// Adds a sentence that occurs once.
    pub fn add(&mut self, field: Field, sentence: &str) {
        self.say_once(field, sentence.to_owned());
    }

    fn say(&mut self, field: Field, sentence: impl Into<String>) {
        *self
            .0
            .entry(field)
            .or_default()
            .entry(sentence.into())
            .or_default() += 1;
    }

    /// Adds a sentence once, however often it occurred.
    fn say_once(&mut self, field: Field, sentence: String) {
        self.0.entry(field).or_default().insert(sentence, 1);
    }

    fn take_call(
        &mut self,
        case: &Case,
        call: &Call,
        sending: Sending,
        updates: &mut BTreeMap<String, Changes>,
    ) -> Result<()> {
        let Call { op, name, body, code } = call;
        match op.as_str() {
            "adopt-pod" | "release-pod" | "adopt-revision" | "release-revision" => {
                let body: Value = parse(call)?;
                self.say_once(Field::Claims, format!("{op} {name} ({code}) {body}"));
            }
            "relabel-pod" => {
                self.say_once(
                    Field::Relabels,
                    format!("{name} ({code}) {}", text::patch_text(call)?),
                );
            }
            "create-revision" => {
                self.say(
                    Field::RevisionCreates,
                    format!("{name} ({code}) {}", text::revision_text(case, call)?),
                );
            }
            "update-revision" if *code >= 400 => {
                self.say(Field::RevisionUpdates, format!("{name}: refused ({code})"));
            }
            "update-revision" => updates
                .entry(name.clone())
                .or_insert_with(|| Changes::of(known_revision(case, name)))
                .take(parse(call)?),
            // Nodewise sends the uid precondition of a revision in both profiles.
            "delete-revision" => self.say(Field::RevisionDeletes, format!("{name} ({code})")),
            "create-pod" => {
                let manifest = text::manifest_text(case, sending, parse(call)?)?;
                self.say(Field::PodCreates, format!("on {name:?} ({code}) {manifest}"));
            }
            "delete-pod" => {
                let preconditions = text::preconditions(sending, call)?;
                self.say(Field::PodDeletes, format!("{name} ({code}){preconditions}"));
            }
            "update-status" => {
                let status = text::status_text(case, call)?;
                self.say(Field::Status, format!("({code}) {status}"));
            }
            other => anyhow::bail!("an unknown kind of call: {other} {name}: {body}"),
        }
        Ok(())
    }

    /// The expectations after the sync. Unchanged expectations count as none, because upstream keeps counters and
    /// Nodewise keeps uids.
    fn take_expectations(&mut self, case: &Case, outcome: &Outcome) {
        // Unchanged expectations have expired, and the sync ended before it replaced them.
        let left = outcome.expectations.filter(|left| {
            case.expectations.is_none_or(|before| {
                (before.adds.max(0), before.dels.max(0)) != (left.adds.max(0), left.dels.max(0))
            })
        });
        let (adds, dels) = left.map_or((0, 0), |left| (left.adds.max(0), left.dels.max(0)));
        self.say(Field::Expectations, format!("{adds} creates, {dels} deletes"));
    }

    fn take_backoff(&mut self, case: &Case, entries: &[Backoff]) -> Result<()> {
        let now: Timestamp = case.now.parse().context("now")?;
        for entry in entries {
            let last: Timestamp = entry.last.parse().context("backoff: last")?;
            if now.duration_since(last) > FORGOTTEN {
                continue;
            }
            let Backoff {
                observed_generation,
                node,
                delay_seconds,
                ..
            } = entry;
            self.say(
                Field::Backoff,
                format!("{node} at generation {observed_generation}: {delay_seconds} s from {last}"),
            );
        }
        Ok(())
    }
}

/// A revision before the sync.
fn known_revision(case: &Case, name: &str) -> Value {
    let mut known = case.revisions.iter().chain(&case.live.revisions);
    let known = known.find(|revision| revision.object["metadata"]["name"] == name);
    known
        .and_then(|revision| revision.served().ok())
        .unwrap_or_default()
}

fn parse<'a, T: Deserialize<'a>>(call: &'a Call) -> Result<T> {
    serde_json::from_str(&call.body).with_context(|| format!("the body of {} {}", call.op, call.name))
}
