//! Measures the time of a Plan call at the client and the peak memory of the server, with the real binary in its own process.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use nodewise_fixtures::{Cluster, Form};
use nodewise_proto::v1::{self, reconcile_service_client::ReconcileServiceClient};
use prost::Message as _;
use tonic::transport::Channel;

/// Nodes of the timed calls.
const NODES: usize = 5_000;
/// Timed calls of each kind, and calls before them that are not timed.
const CALLS: usize = 200;
const WARM_UP: usize = 20;
/// Nodes of the request whose memory is measured, and how many servers are measured.
const MANY_NODES: usize = 100_000;
const SERVERS: usize = 5;
/// The targets.
const LONGEST_CALL: Duration = Duration::from_millis(15);
const MOST_MEMORY_MB: f64 = 500.0;

fn main() -> anyhow::Result<()> {
    // `cargo test --all-targets` runs this program too, without the flag.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        times().await?;
        memory().await
    })
}

/// A server process, killed on drop.
struct Server {
    child: Child,
    client: ReconcileServiceClient<Channel>,
}

impl Server {
    async fn start() -> anyhow::Result<Self> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_nodewise-server"))
            .args(["--listen", "127.0.0.1:0", "--max-message-size", "256MiB"])
            .stderr(Stdio::piped())
            .spawn()
            .context("starting the server")?;
        let mut line = String::new();
        BufReader::new(child.stderr.take().expect("piped")).read_line(&mut line)?;
        let address = line
            .split("listening on ")
            .nth(1)
            .and_then(|rest| rest.split_whitespace().next());
        let address = address.with_context(|| format!("no address in `{line}`"))?;
        let client = ReconcileServiceClient::connect(format!("http://{address}")).await?;
        Ok(Self {
            child,
            client: client.max_decoding_message_size(usize::MAX),
        })
    }

    /// The peak resident memory of the process, in MB (10^6 bytes).
    fn peak_memory_mb(&self) -> anyhow::Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .context("no VmHWM")?;
        let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kib * 1.024 / 1_000.0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn times() -> anyhow::Result<()> {
    let settled = Cluster::settled(NODES);
    let mut rollout = settled.clone();
    rollout.daemon_set["spec"]["template"]["spec"]["containers"][0]["image"] =
        "registry.example/agent:2".into();
    let empty = Cluster::empty(NODES);
    println!(
        "Plan call at the client, {NODES} nodes, ms of {CALLS} calls (p50 of the first row: at most {LONGEST_CALL:?})"
    );
    println!(
        "{:<44} {:>8} {:>7} {:>7} {:>7} {:>7} {:>7}",
        "request", "KiB", "min", "p50", "p90", "p99", "max"
    );
    let inline = [
        (
            "all in place, all inline, 1 bucket",
            settled.request(1, Form::Inline),
        ),
        (
            "template changed, all inline, 1 bucket",
            rollout.request(1, Form::Inline),
        ),
        (
            "no pods yet, all inline, 1 bucket",
            empty.request(1, Form::Inline),
        ),
        (
            "all in place, all inline, 64 buckets, digests",
            settled.request(64, Form::InlineWithDigest),
        ),
        (
            "all in place, 64 buckets by digest",
            settled.request(64, Form::DigestOnly),
        ),
    ];
    let mut server = Server::start().await?;
    let mut first_p50 = None;
    for (name, request) in inline {
        let size = request.encoded_len();
        let mut times = Vec::with_capacity(CALLS);
        for call in 0..WARM_UP + CALLS {
            // Buckets are reference-counted bytes, so this clone is cheap.
            let request = request.clone();
            let start = Instant::now();
            let answer = server.client.plan(request).await?;
            let took = start.elapsed();
            ensure!(answer.into_inner().plan.is_some());
            if call >= WARM_UP {
                times.push(took);
            }
        }
        times.sort_unstable();
        let ms = |per_mille: usize| times[per_mille * (times.len() - 1) / 1_000].as_secs_f64() * 1_000.0;
        println!(
            "{name:<44} {:>8} {:>7.2} {:>7.2} {:>7.2} {:>7.2} {:>7.2}",
            size >> 10,
            ms(0),
            ms(500),
            ms(900),
            ms(990),
            ms(1_000)
        );
        first_p50.get_or_insert(ms(500));
    }
    verdict(
        "Plan call",
        first_p50.unwrap_or_default(),
        LONGEST_CALL.as_secs_f64() * 1_000.0,
        "ms",
    );
    Ok(())
}

async fn memory() -> anyhow::Result<()> {
    println!("\nPeak memory of the server, MB, {SERVERS} servers (at most {MOST_MEMORY_MB})");
    println!(
        "{:<44} {:>8} {:>7} {:>7} {:>7}",
        "after", "MiB", "min", "median", "max"
    );
    let nodes = Cluster::settled(MANY_NODES);
    let rows: [(&str, Option<v1::PlanRequest>); 3] = [
        ("nothing", None),
        (
            "100,000 nodes and pods, all inline, 1 bucket",
            Some(nodes.request(1, Form::Inline)),
        ),
        (
            "the same, 64 buckets with digests, cached",
            Some(nodes.request(64, Form::InlineWithDigest)),
        ),
    ];
    drop(nodes);
    let mut worst: f64 = 0.0;
    for (name, request) in rows {
        let mut peaks = Vec::with_capacity(SERVERS);
        for _ in 0..SERVERS {
            let mut server = Server::start().await?;
            if let Some(request) = request.clone() {
                server.client.plan(request).await?;
            }
            peaks.push(server.peak_memory_mb()?);
        }
        peaks.sort_by(f64::total_cmp);
        let (least, most) = (peaks[0], peaks[peaks.len() - 1]);
        let size = request.map_or(0, |request| request.encoded_len() >> 20);
        println!(
            "{name:<44} {size:>8} {least:>7.0} {:>7.0} {most:>7.0}",
            peaks[peaks.len() / 2]
        );
        worst = worst.max(most);
    }
    verdict("peak memory", worst, MOST_MEMORY_MB, "MB");
    Ok(())
}

fn verdict(what: &str, reached: f64, bound: f64, unit: &str) {
    let word = if reached <= bound { "reached" } else { "MISSED" };
    println!("{what}: {reached:.1} {unit}, target {bound:.0} {unit}: {word}");
}
