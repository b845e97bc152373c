//! Compares plans with the plans that a file keeps.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::ExitCode,
};

use nodewise_proto::v1::{self, action::Kind};
use serde::Serialize;

use super::kept::{Content, Kept};
use crate::{
    args::Output,
    print,
    text::{ADD, BOLD, CHANGE, DIM, PLAIN, Page, REMOVE, count, terminal_width},
};

/// The exit code if plans differ.
const DIFFERS: u8 = 2;
/// The most names in one line.
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

/// What an action does, and why. Two actions with equal entries are the same for a reader of the plan.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Entry {
    action: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    node: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    reason: String,
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
    }
}

fn both(before: &Kept, now: &Kept) -> Compared {
    let (old, new) = (entries(&before.plan), entries(&now.plan));
    let came = more(&new, &old);
    let went = more(&old, &new);
    let is_equal = came.is_empty() && went.is_empty() && before.uid == now.uid;
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
    }
}

/// The entries of a plan that another one does not have, or has less often.
fn more(entries: &BTreeMap<Entry, usize>, than: &BTreeMap<Entry, usize>) -> Vec<Entry> {
    let missing = |(entry, count): (&Entry, &usize)| {
        let more = count.saturating_sub(than.get(entry).copied().unwrap_or_default());
        std::iter::repeat_n(entry.clone(), more)
    };
    entries.iter().flat_map(missing).collect()
}

/// The actions of a plan, without Events and writes of statuses.
fn entries(plan: &v1::Plan) -> BTreeMap<Entry, usize> {
    let mut entries = BTreeMap::new();
    for entry in plan.actions().filter_map(entry) {
        *entries.entry(entry).or_default() += 1;
    }
    entries
}

fn entry(action: &v1::Action) -> Option<Entry> {
    let of = |object: &Option<v1::ObjectReference>| {
        object
            .as_ref()
            .map(|object| object.name.clone())
            .unwrap_or_default()
    };
    let (node, name) = match action.kind.as_ref()? {
        // The name of a new pod has a number, which may differ.
        Kind::CreatePod(create) if create.node_name.is_empty() => Default::default(),
        Kind::CreatePod(create) => (create.node_name.clone(), String::new()),
        Kind::DeletePod(delete) => (delete.node_name.clone(), of(&delete.pod)),
        Kind::CreateRevision(create) => (String::new(), create.name.clone()),
        Kind::UpdateRevision(update) => (String::new(), of(&update.revision)),
        Kind::DeleteRevision(delete) => (String::new(), of(&delete.revision)),
        Kind::AdoptRevision(adopt) => (String::new(), of(&adopt.revision)),
        Kind::ReleaseRevision(release) => (String::new(), of(&release.revision)),
        Kind::AdoptPod(adopt) => (String::new(), of(&adopt.pod)),
        Kind::ReleasePod(release) => (String::new(), of(&release.pod)),
        Kind::RelabelPod(relabel) => (String::new(), of(&relabel.pod)),
        Kind::CreateObject(create) => (String::new(), create.name.clone()),
        Kind::PatchObject(patch) if patch.subresource.is_empty() => (String::new(), of(&patch.object)),
        Kind::DeleteObject(delete) => (String::new(), of(&delete.object)),
        Kind::PatchObject(_) | Kind::UpdateStatus(_) | Kind::EmitEvent(_) => return None,
    };
    let reason = action.reason().as_str_name();
    Some(Entry {
        action: action.kind_name().to_owned(),
        node,
        name,
        reason: reason
            .trim_start_matches("REASON_")
            .replace('_', " ")
            .to_lowercase(),
    })
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
        found.push(format!(
            "the workload was written: resourceVersion {} → {}, generation {} → {}",
            before.resource_version, now.resource_version, before.generation, now.generation
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
                listed(&nodes)
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

fn listed(names: &[&String]) -> String {
    let mut shown: Vec<String> = names
        .iter()
        .take(MOST_NAMES)
        .map(|name| (*name).clone())
        .collect();
    if names.len() > MOST_NAMES {
        shown.push(format!("{} more", names.len() - MOST_NAMES));
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
        for (marker, style, entries, note) in [
            ("+", ADD, &one.came, ""),
            ("-", REMOVE, &one.went, ", no longer planned"),
        ] {
            for entry in entries {
                page.marked(2, marker, style, PLAIN, &format!("{}{note}", entry.sentence()));
            }
        }
    }
    page.line(0, DIM, &format!("compared with the plan of {}", compared.kept_at));
    page.into_text()
}

impl Entry {
    /// `CreatePod on node-1: node without pod`.
    fn sentence(&self) -> String {
        let Self {
            action,
            node,
            name,
            reason,
        } = self;
        let name = if name.is_empty() {
            String::new()
        } else {
            format!(" {name}")
        };
        let node = if node.is_empty() {
            String::new()
        } else {
            format!(" on {node}")
        };
        format!("{action}{name}{node}: {reason}")
    }
}
