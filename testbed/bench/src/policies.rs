//! The cost of RolloutPolicies for a plan over gRPC, after one pod changed.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};

use crate::calls::{Asker, Calls, Rounds};
use crate::objects::{CANARIES, Caches, Cluster};
use crate::programs;
use crate::questions::{Kind, Questions};
use crate::report::{Bar, Chart, Finding, Shape, Target};

const SIZE: Size = Size {
    nodes: 5_000,
    calls: 200,
};
/// The policies of the namespace, where there are any.
const POLICIES: usize = 50;
/// The goals for what policies add to the median, in percent: one that applies, and those that do not.
const APPLIES: f64 = 20.0;
const APPLIES_NOT: f64 = 5.0;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// The number of nodes.
    pub nodes: usize,
    /// The number of calls of each kind in a round.
    pub calls: usize,
}

/// A cluster with or without policies.
#[derive(Clone, Copy, Debug)]
struct Setting {
    /// What the table calls it.
    name: &'static str,
    policies: usize,
    applies: bool,
    rolls_out: bool,
}

const SETTINGS: [Setting; 5] = [
    Setting::at_rest("at rest, no policy", 0, false),
    Setting::at_rest("at rest, 50 policies, none applies", POLICIES, false),
    Setting::at_rest("at rest, 50 policies, one applies", POLICIES, true),
    Setting::rolling_out("rolling out, no policy", 0),
    Setting::rolling_out("rolling out, 50 policies, one applies", POLICIES),
];

impl Setting {
    const fn at_rest(name: &'static str, policies: usize, applies: bool) -> Self {
        Self {
            name,
            policies,
            applies,
            rolls_out: false,
        }
    }

    const fn rolling_out(name: &'static str, policies: usize) -> Self {
        Self {
            name,
            policies,
            applies: policies > 0,
            rolls_out: true,
        }
    }

    fn questions(self, nodes: usize) -> Result<Questions> {
        let mut caches = Caches::of(&Arc::new(Cluster::settled(nodes, 1)?))?;
        caches.add_policies(self.policies, self.applies)?;
        if self.rolls_out {
            caches.roll_out()?;
        }
        Ok(Questions::of(Kind::Changed, caches))
    }
}

/// Measures the given number of rounds.
///
/// # Errors
/// The server was not built, or answers incorrectly.
pub async fn measure(rounds: usize) -> Result<Finding> {
    let program = programs::find("nodewise-server")?;
    Ok(finding(&costs(&program, SIZE, rounds).await?))
}

/// Measures each setting in turns: at rest without a policy, with policies of which none applies, and with one that does; and in a
/// rollout without and with a policy.
///
/// # Errors
/// As [`measure`].
pub async fn costs(program: &Path, size: Size, rounds: usize) -> Result<Vec<Calls>> {
    ensure!(size.calls > 0, "nothing is measured by no call");
    let mut askers = Vec::new();
    for setting in SETTINGS {
        let mut asker = Asker::new(program, setting.questions(size.nodes)?).await?;
        // The first calls also set up connections, threads and memory, so they do not count.
        for _ in 0..10.min(size.calls) {
            asker.call().await.context(setting.name)?;
        }
        askers.push((setting, asker, Rounds::default()));
    }
    for _ in 0..rounds {
        for (setting, asker, all) in &mut askers {
            let mut round = Vec::with_capacity(size.calls);
            for _ in 0..size.calls {
                round.push(asker.call().await.context(setting.name)?);
            }
            all.add(&round);
        }
    }
    let all = askers.into_iter();
    all.map(|(_, _, rounds)| rounds.calls(size.calls)).collect()
}

/// The table, the goals and the chart.
fn finding(all: &[Calls]) -> Finding {
    let added = |index: usize, base: usize| (all[index].p50.median() / all[base].p50.median() - 1.0) * 100.0;
    let row = |(setting, calls): (&Setting, &Calls)| {
        vec![
            setting.name.to_owned(),
            calls.size.to_string(),
            calls.p50.to_string(),
            calls.p99.to_string(),
            format!("{} × {}", calls.p50.rounds(), calls.of),
        ]
    };
    let bar = |(setting, calls): (&Setting, &Calls)| Bar {
        group: setting.name.to_owned(),
        who: "p50".to_owned(),
        values: calls.p50.clone(),
    };
    let target = |what: &str, goal, index, base| {
        Target::at_most(format!("{what}: added to the p50"), goal, added(index, base), "%")
    };
    Finding {
        title: "RolloutPolicies, and a plan over gRPC".to_owned(),
        about: about(),
        columns: ["setting", "kB sent", "p50, ms", "p99, ms", "rounds × calls"]
            .map(str::to_owned)
            .into(),
        rows: SETTINGS.iter().zip(all).map(row).collect(),
        targets: vec![
            target("50 policies, none applies, at rest", APPLIES_NOT, 1, 0),
            target("50 policies, one applies, at rest", APPLIES, 2, 0),
            target("50 policies, one applies, rolling out", APPLIES, 4, 3),
        ],
        charts: vec![Chart {
            file: "policies".to_owned(),
            title: "Plan over gRPC, 5,000 nodes, one pod changed, with and without RolloutPolicies: p50"
                .to_owned(),
            unit: "ms, less is better".to_owned(),
            logarithmic: false,
            shape: Shape::Bars(SETTINGS.iter().zip(all).map(bar).collect()),
        }],
    }
}

fn about() -> String {
    format!(
        "One DaemonSet on 5,000 nodes, as in the section about a plan over gRPC: one pod becomes unready or ready before each call, \
         and only its bucket is sent. {POLICIES} RolloutPolicies with ten stages each stand in the namespace. The executor sends \
         only those that target the DaemonSet, so policies of others add nothing; their goal of {APPLIES_NOT} % is the noise of \
         the measurement.\n\n\
         - *at rest*: all pods are of the current revision.\n\
         - *rolling out*: the template has just changed, and the first stage of {CANARIES} nodes is complete. Every plan replaces \
         pods of the next stage, or without a policy of any node."
    )
}
