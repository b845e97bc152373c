//! What the process with the caches does: it fills them, and asks a server for plans. Nothing else is in this process, and it has
//! the executor's allocator.

use std::fmt;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::calls::{Asker, Calls, Rounds};
use crate::figure::figure;
use crate::measure::{memory_mb, peak_memory_mb};
use crate::objects::{Filling, LargeSize};
use crate::questions::{Kind, Questions};

/// The measurements of the process. Memory is resident, in MB.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Caches {
    /// Of this process before the first node and pod.
    pub empty_mb: f64,
    /// Of this process with all nodes.
    pub nodes_mb: f64,
    /// Its peak until then.
    pub nodes_peak_mb: f64,
    /// Of this process with all nodes and pods.
    pub pods_mb: f64,
    /// Its peak until then.
    pub pods_peak_mb: f64,
    /// Its peak after all requests for plans.
    pub requests_peak_mb: f64,
    /// The time to read all nodes and pods, in seconds.
    pub reading: f64,
    /// The time to cache them, in seconds.
    pub caching: f64,
    /// Plans with all inline.
    pub inline: Plans,
    /// Plans after one pod changed.
    pub changed: Plans,
}

/// The measurements of calls of one kind.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plans {
    /// The median of the latencies, in ms.
    pub p50: f64,
    /// The size of the largest request, in kB.
    pub sent_kb: f64,
    /// The peak memory of the server that answered these calls.
    pub server_peak_mb: f64,
}

impl fmt::Display for Caches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [nodes, pods, requests] =
            [self.nodes_peak_mb, self.pods_peak_mb, self.requests_peak_mb].map(figure);
        let [inline, changed] = [self.inline.p50, self.changed.p50].map(figure);
        write!(
            f,
            "at most {nodes} MB with nodes, {pods} with pods, {requests} with requests; {inline} ms all inline, {changed} after a change"
        )
    }
}

/// Fills caches and asks a new server of this program for plans, with everything inline and then after changes.
///
/// # Errors
/// The server does not start or answers incorrectly.
pub async fn run(size: LargeSize, server: &Path, calls: [usize; 2]) -> Result<Caches> {
    ensure!(
        calls.iter().all(|&count| count > 0),
        "nothing is measured by no call"
    );
    let this = std::process::id();
    let mut filling = Filling::new(size)?;
    let empty_mb = memory_mb(this)?;
    let nodes = filling.add_nodes()?;
    let (nodes_mb, nodes_peak_mb) = (memory_mb(this)?, peak_memory_mb(this)?);
    let pods = filling.add_pods()?;
    let (pods_mb, pods_peak_mb) = (memory_mb(this)?, peak_memory_mb(this)?);

    let [inline_calls, changed_calls] = calls;
    let questions = Questions::of(Kind::Inline, filling.caches());
    let (inline, questions) = plans(server, questions, inline_calls).await?;
    let (changed, _) = plans(server, questions.into_kind(Kind::Changed), changed_calls).await?;
    Ok(Caches {
        empty_mb,
        nodes_mb,
        nodes_peak_mb,
        pods_mb,
        pods_peak_mb,
        requests_peak_mb: peak_memory_mb(this)?,
        reading: (nodes.reading + pods.reading).as_secs_f64(),
        caching: (nodes.caching + pods.caching).as_secs_f64(),
        inline,
        changed,
    })
}

/// Fills caches with the pods and without a node. Returns the memory of the process with them, in MB.
///
/// # Errors
/// An object is not one that an apiserver would serve.
pub fn pods_alone(size: LargeSize) -> Result<f64> {
    let mut filling = Filling::new(size)?;
    filling.add_pods()?;
    let memory = memory_mb(std::process::id())?;
    // They stay in memory until it is measured.
    drop(filling);
    Ok(memory)
}

async fn plans(server: &Path, questions: Questions, calls: usize) -> Result<(Plans, Questions)> {
    let name = questions.kind().name();
    let mut asker = Asker::new(server, questions).await?;
    // The first request has everything inline, in both kinds, so it does not count.
    asker.call().await.context(name)?;
    let mut round = Vec::with_capacity(calls);
    for _ in 0..calls {
        round.push(asker.call().await.context(name)?);
    }
    let mut rounds = Rounds::default();
    rounds.add(&round);
    let Calls { p50, size, .. } = rounds.calls(calls)?;
    let plans = Plans {
        p50: p50.median(),
        sent_kb: size.max(),
        server_peak_mb: asker.peak_memory_mb()?,
    };
    Ok((plans, asker.into_questions()))
}
