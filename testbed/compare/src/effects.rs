//! What a sync did, in a form in which both controllers can be compared: for each field a multiset of sentences.
//!
//! Only what no user can see is levelled here: how a write travels (a PUT or a patch of the same change), zeros that one
//! side spells out, the text of the API's own errors, and claims that upstream sends again because its cache lags.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context as _, Result};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::case::{Backoff, Case};
use crate::nodewise::subject;
use crate::outcome::{Call, Event, Outcome};

/// The label that names a pod's and a revision's hash.
const HASH_LABEL: &str = "controller-revision-hash";
/// Back-off entries that are older mean nothing (D-99).
const FORGOTTEN: SignedDuration = SignedDuration::from_mins(30);
/// Expectations that are older are expired (D-72).
const EXPIRED_SECONDS: u64 = 300;

/// What kind of effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// The sync panicked.
    Panic,
    /// The sync ended with an error and is retried.
    Error,
    /// Pods and revisions adopted and released.
    Claims,
    /// Pods that were given another hash.
    Relabels,
    /// Revisions created.
    RevisionCreates,
    /// Revisions renumbered or labelled.
    RevisionUpdates,
    /// Revisions deleted.
    RevisionDeletes,
    /// Pods created: node and whole manifest.
    PodCreates,
    /// Pods deleted.
    PodDeletes,
    /// Statuses written.
    Status,
    /// Events.
    Events,
    /// When to look again.
    Requeue,
    /// Creates and deletes that are awaited afterwards.
    Expectations,
    /// The back-off of failed pods afterwards.
    Backoff,
}

impl Field {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Panic,
        Self::Error,
        Self::Claims,
        Self::Relabels,
        Self::RevisionCreates,
        Self::RevisionUpdates,
        Self::RevisionDeletes,
        Self::PodCreates,
        Self::PodDeletes,
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
            Self::Claims => "claims",
            Self::Relabels => "pods relabelled",
            Self::RevisionCreates => "revisions created",
            Self::RevisionUpdates => "revisions changed",
            Self::RevisionDeletes => "revisions deleted",
            Self::PodCreates => "pods created",
            Self::PodDeletes => "pods deleted",
            Self::Status => "status",
            Self::Events => "events",
            Self::Requeue => "requeue",
            Self::Expectations => "expectations",
            Self::Backoff => "back-off",
        })
    }
}

/// Sentences, each with how often it is said.
pub type Bag = BTreeMap<String, usize>;

/// The comparable effects of one sync.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects(BTreeMap<Field, Bag>);

impl Effects {
    /// Of what `outcome` says about a sync of `case`.
    ///
    /// # Errors
    /// A body is not the JSON that its call sends.
    pub fn of(case: &Case, outcome: &Outcome) -> Result<Self> {
        let mut effects = Self::default();
        if let Some(panic) = &outcome.panic {
            effects.say(Field::Panic, panic.lines().next().unwrap_or_default());
            // How far it came is not looked at: nobody wants the same.
            return Ok(effects);
        }
        if outcome.error.is_some() {
            effects.say(Field::Error, "the sync ends with an error");
        }
        let mut updates = BTreeMap::new();
        for call in &outcome.calls {
            effects.take_call(case, call, &mut updates)?;
        }
        for (name, update) in updates {
            effects.say(Field::RevisionUpdates, format!("{name}: {update}"));
        }
        let names = created_names(case, outcome)?;
        for event in &outcome.events {
            effects.say(Field::Events, event_text(event, &names));
        }
        // A sync that failed is retried after milliseconds, whatever else was set.
        if let Some(first) = outcome.requeue.first().filter(|_| outcome.error.is_none()) {
            effects.say(Field::Requeue, format!("after {first:.3} s"));
        }
        effects.take_expectations(case, outcome);
        effects.take_backoff(case, &outcome.backoff)?;
        Ok(effects)
    }

    /// The sentences of a field.
    #[must_use]
    pub fn bag(&self, field: Field) -> Bag {
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

    /// Adds a sentence that is said once.
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

    /// Says it once, however often it was done.
    fn say_once(&mut self, field: Field, sentence: String) {
        self.0.entry(field).or_default().insert(sentence, 1);
    }

    fn take_call(&mut self, case: &Case, call: &Call, updates: &mut BTreeMap<String, Update>) -> Result<()> {
        let Call { op, name, body, code } = call;
        match op.as_str() {
            "adopt-pod" | "release-pod" | "adopt-revision" | "release-revision" => {
                let body: Value = parse(call)?;
                self.say_once(Field::Claims, format!("{op} {name} ({code}) {body}"));
            }
            "relabel-pod" => {
                let body: Value = parse(call)?;
                let hash = &body["metadata"]["labels"][HASH_LABEL];
                self.say_once(Field::Relabels, format!("{name} to {hash} ({code})"));
            }
            "create-revision" => {
                self.say(
                    Field::RevisionCreates,
                    format!("{name} ({code}) {}", revision_text(case, call)?),
                );
            }
            "update-revision" if *code >= 400 => {
                self.say(Field::RevisionUpdates, format!("{name}: refused ({code})"));
            }
            "update-revision" => updates
                .entry(name.clone())
                .or_default()
                .take(case, name, &parse(call)?),
            "delete-revision" => self.say(Field::RevisionDeletes, format!("{name} ({code})")),
            "create-pod" => {
                let manifest = manifest_text(case, parse(call)?)?;
                self.say(Field::PodCreates, format!("on {name:?} ({code}) {manifest}"));
            }
            "delete-pod" => self.say(Field::PodDeletes, format!("{name} ({code})")),
            "update-status" => {
                let status = status_text(&parse(call)?);
                self.say(Field::Status, format!("({code}) {status}"));
            }
            other => anyhow::bail!("an unknown kind of call: {other} {name}: {body}"),
        }
        Ok(())
    }

    /// What is awaited afterwards. While something was awaited before, counters and uids go their own ways.
    fn take_expectations(&mut self, case: &Case, outcome: &Outcome) {
        let pending = case.expectations.is_some_and(|expected| {
            expected.age_seconds <= EXPIRED_SECONDS && (expected.adds > 0 || expected.dels > 0)
        });
        if pending {
            return;
        }
        // Expired ones that are still there, since the sync did not come so far, mean nothing.
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

/// How a revision was changed, over all calls.
#[derive(Clone, Debug, Default)]
struct Update {
    number: Option<i64>,
    hash: Option<String>,
}

impl Update {
    /// Takes in a patch or a whole object.
    fn take(&mut self, case: &Case, name: &str, body: &Value) {
        let known = case
            .revisions
            .iter()
            .chain(&case.live.revisions)
            .map(|revision| &revision.object)
            .find(|object| object["metadata"]["name"] == name)
            .unwrap_or(&Value::Null);
        let number = &body["revision"];
        if !number.is_null() && number.as_i64() != Some(known["revision"].as_i64().unwrap_or(0)) {
            self.number = number.as_i64();
        }
        let hash = &body["metadata"]["labels"][HASH_LABEL];
        if !hash.is_null() && *hash != known["metadata"]["labels"][HASH_LABEL] {
            self.hash = hash.as_str().map(str::to_owned);
        }
    }
}

impl fmt::Display for Update {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "number {:?}, hash {:?}", self.number, self.hash)
    }
}

fn parse<'a, T: Deserialize<'a>>(call: &'a Call) -> Result<T> {
    serde_json::from_str(&call.body).with_context(|| format!("the body of {} {}", call.op, call.name))
}

/// Drops what says nothing: an unset creation time, and the namespace that the path names already.
fn level_metadata(case: &Case, object: &mut Value) -> Result<()> {
    let namespace = &subject(case)?["metadata"]["namespace"];
    if let Some(metadata) = object["metadata"].as_object_mut() {
        if metadata.get("creationTimestamp").is_some_and(Value::is_null) {
            metadata.remove("creationTimestamp");
        }
        if metadata.get("namespace") == Some(namespace) {
            metadata.remove("namespace");
        }
    }
    Ok(())
}

/// A new revision with its data as the bytes that were sent.
fn revision_text(case: &Case, call: &Call) -> Result<String> {
    #[derive(Deserialize)]
    struct Raw<'a> {
        #[serde(borrow)]
        data: &'a RawValue,
    }
    let raw: Raw<'_> = parse(call)?;
    let mut object: Value = parse(call)?;
    object["data"] = raw.data.get().into();
    level_metadata(case, &mut object)?;
    Ok(object.to_string())
}

/// A pod's manifest with its name left to the API.
fn manifest_text(case: &Case, mut manifest: Value) -> Result<String> {
    level_metadata(case, &mut manifest)?;
    if manifest["status"]
        .as_object()
        .is_some_and(serde_json::Map::is_empty)
        && let Some(object) = manifest.as_object_mut()
    {
        object.remove("status");
    }
    let prefix = generate_name(case)?;
    if let Some(metadata) = manifest["metadata"].as_object_mut()
        && let Some(name) = metadata.get("name").and_then(Value::as_str)
        && is_derived(name, &prefix)
    {
        metadata.remove("name");
        metadata.insert("generateName".to_owned(), prefix.into());
    }
    Ok(manifest.to_string())
}

fn generate_name(case: &Case) -> Result<String> {
    let name = subject(case)?["metadata"]["name"].as_str().unwrap_or_default();
    Ok(format!("{name}-"))
}

/// Whether a name is what the API, or Nodewise in its place, makes of this prefix: as much of it as fits, and something after it.
fn is_derived(name: &str, prefix: &str) -> bool {
    let common = name
        .bytes()
        .zip(prefix.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    common == prefix.len() || (common > 40 && name.len() <= 253)
}

/// The names that pods were created under, each with the name that the fake API would have generated.
fn created_names(case: &Case, outcome: &Outcome) -> Result<BTreeMap<String, String>> {
    let prefix = generate_name(case)?;
    let mut names = BTreeMap::new();
    for call in outcome.calls.iter().filter(|call| call.op == "create-pod") {
        let manifest: Value = parse(call)?;
        if let Some(name) = manifest["metadata"]["name"].as_str() {
            names.insert(name.to_owned(), format!("{prefix}@{}", call.name));
        }
    }
    Ok(names)
}

/// A status without zeros, which one side spells out and the other leaves out.
fn status_text(object: &Value) -> String {
    let mut status = object["status"].clone();
    if let Some(members) = status.as_object_mut() {
        members.retain(|_, value| !value.is_null() && *value != 0);
    }
    status.to_string()
}

/// An event, with the text of the API's errors cut off and created pods under their generated names.
fn event_text(event: &Event, names: &BTreeMap<String, String>) -> String {
    let Event {
        kind,
        reason,
        message,
    } = event;
    let message = match message.split_once(": ") {
        Some((what @ ("Error creating" | "Error deleting"), _)) => what.to_owned(),
        Some((what @ "Created pod", name)) => {
            format!("{what}: {}", names.get(name).map_or(name, String::as_str))
        }
        _ => message.clone(),
    };
    format!("{kind} {reason}: {message}")
}
