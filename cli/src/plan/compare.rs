//! Compares plans with the plans that a file keeps.

mod entry;

use std::{collections::BTreeSet, process::ExitCode};

use nodewise_proto::v1;
use serde::Serialize;

use self::entry::{Entries, Entry, pod_manifest};
use super::kept::{Content, Kept};
use crate::{
    args::Output,
    print,
    simulate::change::differences_at,
    text::{ADD, BOLD, CHANGE, DIM, PLAIN, Page, REMOVE, count, terminal_width},
};

/// The exit code if plans differ.
const DIFFERS: u8 = 2;
/// The most names in one line, and the most fields.
const MOST_NAMES: usize = 5;

/// The result.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Comparison {
    is_equal: bool,
    kept_at: String,
    workloads: Vec<Compared>,
}

/// The result for one workload.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Compared {
    workload: String,
    result: Outcome,
    /// What the plan is computed from and has changed.
    inputs: Vec<String>,
    /// Actions that only the present plan has.
    came: Vec<Entry>,
    /// Actions that only the kept plan has.
    went: Vec<Entry>,
    /// Actions on the same object that write something else.
    changed: Vec<Changed>,
    /// What differs in the pods that both plans create.
    new_pods: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum Outcome {
    Equal,
    Changed,
    /// Only the file has the workload.
    OnlyKept,
    /// The file does not have the workload.
    OnlyNow,
}

/// An action that writes something else than before.
#[derive(Serialize)]
struct Changed {
    before: Entry,
    after: Entry,
    /// The fields that differ, each as `PATH: BEFORE → AFTER`.
    fields: Vec<String>,
}

/// Prints what differs. The exit code is 0 if the plans are equal, and 2 if not.
pub(super) fn print(before: &Content, now: &Content, output: Output) -> anyhow::Result<ExitCode> {
    let compared = compare(before, now);
    if before.version != now.version {
        let (theirs, ours) = (&before.version, &now.version);
        print::note(&format!("the plan was kept by nodewise {theirs}; this is {ours}"));
    }
    if before.profile != now.profile {
        let (theirs, ours) = (&before.profile, &now.profile);
        print::note(&format!(
            "the plan was made with the profile {theirs}; this one with {ours}"
        ));
    }
    match output {
        Output::Json => print::json(&compared)?,
        Output::Text => print::text(&render(&compared))?,
    }
    Ok(if compared.is_equal {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(DIFFERS)
    })
}

fn compare(before: &Content, now: &Content) -> Comparison {
    let mut workloads: Vec<Compared> = Vec::new();
    for one in &now.workloads {
        let kept = before.workloads.iter().find(|kept| kept.is_same_workload(one));
        workloads.push(kept.map_or_else(|| only(one, Outcome::OnlyNow), |kept| both(kept, one)));
    }
    for kept in &before.workloads {
        if !now.workloads.iter().any(|one| one.is_same_workload(kept)) {
            workloads.push(only(kept, Outcome::OnlyKept));
        }
    }
    Comparison {
        is_equal: workloads.iter().all(|one| one.result == Outcome::Equal),
        kept_at: before.time.to_string(),
        workloads,
    }
}

fn only(kept: &Kept, result: Outcome) -> Compared {
    Compared {
        workload: kept.title(),
        result,
        inputs: Vec::new(),
        came: Vec::new(),
        went: Vec::new(),
        changed: Vec::new(),
        new_pods: Vec::new(),
    }
}

fn both(before: &Kept, now: &Kept) -> Compared {
    let (old, new) = (Entries::of(&before.plan), Entries::of(&now.plan));
    let mut went = old.beyond(&new);
    let (mut came, mut changed) = (Vec::new(), Vec::new());
    for after in new.beyond(&old) {
        let Some(at) = went.iter().position(|before| before.differs_in_content(&after)) else {
            came.push(after);
            continue;
        };
        let before = went.remove(at);
        changed.push(Changed {
            fields: differences_at("", old.content(&before), new.content(&after)),
            before,
            after,
        });
    }
    let new_pods = new_pods(&before.plan, &now.plan);
    let is_equal = came.is_empty()
        && went.is_empty()
        && changed.is_empty()
        && new_pods.is_empty()
        && before.uid == now.uid;
    Compared {
        workload: now.title(),
        result: if is_equal {
            Outcome::Equal
        } else {
            Outcome::Changed
        },
        inputs: inputs(before, now),
        came,
        went,
        changed,
        new_pods,
    }
}

/// What differs in the pods that both plans create.
fn new_pods(before: &v1::Plan, now: &v1::Plan) -> Vec<String> {
    match (pod_manifest(before), pod_manifest(now)) {
        (Some(before), Some(now)) => differences_at("", &before, &now),
        _ => Vec::new(),
    }
}

/// What the plan is computed from and has changed.
fn inputs(before: &Kept, now: &Kept) -> Vec<String> {
    let mut found = Vec::new();
    if before.uid != now.uid {
        found.push(format!(
            "the workload is another object of that name: uid {} → {}",
            before.uid, now.uid
        ));
    }
    if before.generation != now.generation || before.resource_version != now.resource_version {
        let generation = if before.generation == now.generation {
            String::new()
        } else {
            format!(", generation {} → {}", before.generation, now.generation)
        };
        found.push(format!(
            "the workload was written: resourceVersion {} → {}{generation}",
            before.resource_version, now.resource_version
        ));
    }
    if before.spec_digest != now.spec_digest {
        found.push("its spec is another one".to_owned());
    }
    let names = |kept: &Kept| kept.nodes.keys().cloned().collect::<BTreeSet<_>>();
    let (old, new) = (names(before), names(now));
    let changed = old
        .intersection(&new)
        .filter(|name| before.nodes[*name] != now.nodes[*name]);
    for (verb, nodes) in [
        ("came", new.difference(&old).collect::<Vec<_>>()),
        ("went", old.difference(&new).collect()),
        ("changed", changed.collect()),
    ] {
        if !nodes.is_empty() {
            found.push(format!(
                "{} {verb}: {}",
                count(nodes.len(), "node"),
                listed(nodes.iter().copied())
            ));
        }
    }
    if before.pods_digest != now.pods_digest {
        found.push("pods have changed".to_owned());
    }
    if found.is_empty() && before.snapshot_digest != now.snapshot_digest {
        found.push("revisions or related objects have changed".to_owned());
    }
    found
}

/// The first of these texts, and the number of the others.
fn listed<'a>(texts: impl IntoIterator<Item = &'a String>) -> String {
    let mut texts = texts.into_iter();
    let mut shown: Vec<String> = texts.by_ref().take(MOST_NAMES).cloned().collect();
    let more = texts.count();
    if more > 0 {
        shown.push(format!("{more} more"));
    }
    shown.join(", ")
}

fn render(compared: &Comparison) -> String {
    let mut page = Page::new(terminal_width());
    for one in &compared.workloads {
        let result = match one.result {
            Outcome::Equal => "the plan is the same",
            Outcome::Changed => "the plan has changed",
            Outcome::OnlyKept => "there is no such workload any more, or it was not named",
            Outcome::OnlyNow => "the kept plans do not have it",
        };
        page.line(0, BOLD, &format!("{}: {result}", one.workload));
        for input in &one.inputs {
            page.marked(2, "~", CHANGE, PLAIN, input);
        }
        for changed in &one.changed {
            page.marked(2, "~", CHANGE, PLAIN, &changed.sentence());
        }
        if !one.new_pods.is_empty() {
            let text = format!("the new pods differ: {}", listed(&one.new_pods));
            page.marked(2, "~", CHANGE, PLAIN, &text);
        }
        for (marker, style, entries, note) in [
            ("+", ADD, &one.came, ""),
            ("-", REMOVE, &one.went, ", no longer planned"),
        ] {
            for entry in entries {
                page.marked(2, marker, style, PLAIN, &format!("{}{note}", entry.sentence()));
            }
        }
    }
    let text = format!(
        "compared with the plan of {}: the next step of each, not the steps to the end",
        compared.kept_at
    );
    page.line(0, DIM, &text);
    page.into_text()
}

impl Changed {
    /// `scale ReplicaSet web-5d4f to 5 → to 50`. If the words are the same, with the fields that differ.
    fn sentence(&self) -> String {
        let (before, after) = (&self.before.change, &self.after.change);
        if before == after {
            return format!("{after}: {}", listed(&self.fields));
        }
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let (old, new) = (words(before), words(after));
        let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
        // The last word that is the same says what the others are: `to 50`.
        format!("{before} → {}", new[same.saturating_sub(1)..].join(" "))
    }
}

#[cfg(test)]
mod tests;
