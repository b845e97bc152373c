//! The cost of tracing: the same plans from two servers in turns, one of which exports its spans to a real Collector.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use nodewise_proto::v1::{self, reconcile_service_client::ReconcileServiceClient};
use nodewise_testbed::{Collector, Span, SpanKind, eventually};
use tonic::Request;
use tonic::transport::Channel;

use crate::calls::percentile;
use crate::figure::figure;
use crate::measure::Spread;
use crate::programs;
use crate::questions::{Kind, Question, Questions};
use crate::replica::Replica;
use crate::report::{Bar, Chart, Finding, Shape, Target};

const NODES: usize = 5_000;
/// The number of calls of each kind to each server in a round.
const INLINE_CALLS: usize = 50;
const CHANGED_CALLS: usize = 1_000;
/// The warm-up calls, as a fraction (one tenth) of the measured calls: they set up connections, threads and memory.
const WARM_UP_DIVISOR: usize = 10;
/// The limit for the added cost, in percent.
const MAX_ADDED: f64 = 3.0;
/// How long to wait for the spans of a batch. Much longer than needed.
const SPANS_DEADLINE: Duration = Duration::from_secs(30);

const ABOUT: &str = "\
The calls of \"A plan over gRPC\", sent to two servers: one has `OTEL_EXPORTER_OTLP_ENDPOINT` set to an OpenTelemetry Collector, \
the other has no endpoint. Every request is sent to both, on a connection each, one right after the other; which server is first \
alternates. The server with tracing gets requests as an executor with tracing sends them: with a sampled `traceparent`, another \
one for each call. A round is a number of calls of one kind. It has new servers and a new Collector, and its first calls do not \
count. The time is that of the client, from sending the request to the decoded plan. CPU time is that of all threads of the \
server, including those that export spans. The cost of tracing is the difference between the medians, or between the CPU times, \
of a round.";

/// Measures the given number of rounds.
///
/// # Errors
/// The server was not built or answers incorrectly, or a span did not arrive.
pub async fn measure(rounds: usize) -> Result<Finding> {
    let program = programs::find("nodewise-server")?;
    let [inline, changed] = costs(&program, NODES, rounds, [INLINE_CALLS, CHANGED_CALLS]).await?;
    finding(&inline, &changed)
}

/// The measurements of calls of one kind, by round.
#[derive(Clone, Debug)]
pub struct Cost {
    /// The number of calls to each server in a round.
    pub calls: usize,
    /// The rounds.
    pub rounds: Vec<Round>,
}

/// The measurements of a round.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// The server without tracing.
    pub without: CallCost,
    /// The server with tracing.
    pub with: CallCost,
    /// The average number of spans per call at the Collector. Steps of a plan have spans only if they took long.
    pub spans: f64,
    /// The number of all spans, including those of the warm-up calls.
    pub all_spans: usize,
}

/// The cost of a call, in ms.
#[derive(Clone, Copy, Debug)]
pub struct CallCost {
    /// The median latency.
    pub p50: f64,
    /// The average CPU time of the server.
    pub cpu: f64,
}

/// Measures the cost of tracing with all buckets inline, and after one pod changed; `counts` are the calls of each kind
/// to each server in a round.
///
/// # Errors
/// As [`measure`].
pub async fn costs(program: &Path, nodes: usize, rounds: usize, counts: [usize; 2]) -> Result<[Cost; 2]> {
    ensure!(
        counts.iter().all(|&count| count > 0),
        "nothing is measured by no call"
    );
    let mut questions = [
        Questions::new(Kind::Inline, nodes)?,
        Questions::new(Kind::Changed, nodes)?,
    ];
    let mut costs = counts.map(|calls| Cost {
        calls,
        rounds: Vec::with_capacity(rounds),
    });
    for number in 0..rounds {
        for ((kind, questions), cost) in Kind::ALL.into_iter().zip(&mut questions).zip(&mut costs) {
            questions.forget_known_buckets();
            let round = round(program, kind, questions, cost.calls, number);
            cost.rounds.push(round.await.context(kind.name())?);
        }
    }
    Ok(costs)
}

/// Makes `calls` calls to each of two new servers.
async fn round(
    program: &Path,
    kind: Kind,
    questions: &mut Questions,
    calls: usize,
    number: usize,
) -> Result<Round> {
    let collector = Collector::start().await?;
    let endpoint = collector.endpoint();
    let mut servers = Vec::with_capacity(2);
    for traced in in_turns(number) {
        servers.push(Server::start(program, kind, traced.then_some(&endpoint)).await?);
    }
    let first = calls.div_ceil(WARM_UP_DIVISOR);
    for call in 0..first {
        ask(&mut servers, questions, call).await?;
    }
    let before = [
        servers[0].replica.thread_times()?,
        servers[1].replica.thread_times()?,
    ];
    for server in &mut servers {
        server.times.clear();
    }
    for call in first..first + calls {
        ask(&mut servers, questions, call).await?;
    }
    let mut taken = BTreeMap::new();
    for (server, before) in servers.iter_mut().zip(before) {
        let cpu = server.replica.thread_times()?.since(&before);
        taken.insert(server.traced, server.taken(cpu));
    }
    let traced = servers.iter().find(|server| server.traced);
    let replica = &traced.context("one server has traces")?.replica;
    let (spans, all_spans) = arrived(replica, &collector, first + calls).await?;
    Ok(Round {
        without: taken[&false],
        with: taken[&true],
        spans,
        all_spans,
    })
}

/// Which server gets a request first; it alternates.
fn in_turns(number: usize) -> [bool; 2] {
    let first = number % 2 == 1;
    [first, !first]
}

/// A server, and the latencies of its calls.
struct Server {
    replica: Replica,
    client: ReconcileServiceClient<Channel>,
    traced: bool,
    /// Latencies in ms.
    times: Vec<f64>,
}

impl Server {
    async fn start(program: &Path, kind: Kind, endpoint: Option<&String>) -> Result<Self> {
        let replica = Replica::start_sending(program, kind.flags(), endpoint.map(String::as_str))?;
        Ok(Self {
            client: replica.client().await?,
            replica,
            traced: endpoint.is_some(),
            times: Vec::new(),
        })
    }

    async fn plan(&mut self, request: v1::PlanRequest, call: usize) -> Result<v1::Plan> {
        let mut request = Request::new(request);
        if self.traced {
            let context = traceparent(call).parse()?;
            request.metadata_mut().insert("traceparent", context);
        }
        let begun = Instant::now();
        let answer = self.client.plan(request).await?;
        self.times.push(begun.elapsed().as_secs_f64() * 1e3);
        answer.into_inner().plan.context("an answer without a plan")
    }

    /// The cost of a call, given the CPU time of all calls.
    fn taken(&mut self, cpu: Duration) -> CallCost {
        self.times.sort_by(f64::total_cmp);
        CallCost {
            p50: percentile(&self.times, 50),
            cpu: cpu.as_secs_f64() * 1e3 / as_figure(self.times.len()),
        }
    }
}

/// Sends both servers the same request, alternating which gets it first.
async fn ask(servers: &mut [Server], questions: &mut Questions, call: usize) -> Result<()> {
    let Question { request, verdict } = questions.next_question()?;
    let requests = [request.clone(), request];
    let mut plans = Vec::with_capacity(2);
    for (second, request) in in_turns(call).into_iter().zip(requests) {
        let plan = servers[usize::from(second)].plan(request, call).await?;
        ensure!(plan.verdict() == verdict, "the plan is {plan:?}");
        plans.push(plan);
    }
    ensure!(plans[0] == plans[1], "{plans:?} answer the same question");
    Ok(())
}

/// The `traceparent` of a call. Each call has its own trace.
fn traceparent(call: usize) -> String {
    format!("00-{}-{:016x}-01", trace_id(call), call + 1)
}

fn trace_id(call: usize) -> String {
    format!("{:032x}", call + 1)
}

/// Waits until the Collector has the spans of `calls` calls. Returns the average number of spans per call and the
/// total.
async fn arrived(replica: &Replica, collector: &Collector, calls: usize) -> Result<(f64, usize)> {
    let (spans, metrics) = eventually(SPANS_DEADLINE, "the spans of all calls", async || {
        let metrics = replica.metrics().await?;
        let waiting = count(&metrics, "nodewise_trace_spans_waiting")?;
        ensure!(waiting == 0, "{waiting} still wait");
        let spans = collector.spans();
        let ended = spans.iter().filter(|span| span.kind == SpanKind::Server).count();
        ensure!(ended == calls, "{ended} of {calls} calls are there");
        Ok((spans, metrics))
    })
    .await?;
    let [exported, dropped] =
        ["exported", "dropped"].map(|what| count(&metrics, &format!("nodewise_trace_spans_{what}_total")));
    let (exported, dropped) = (exported?, dropped?);
    ensure!(dropped == 0, "{dropped} spans were dropped");
    ensure!(
        exported == spans.len(),
        "the server sent {exported} spans, and the Collector has {}",
        spans.len()
    );
    ensure_all_traced(&spans, calls)?;
    Ok((as_figure(spans.len()) / as_figure(calls), spans.len()))
}

/// The value of a series without labels.
fn count(metrics: &str, series: &str) -> Result<usize> {
    let value = metrics
        .lines()
        .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    let value = value.with_context(|| format!("no {series}"))?;
    value.parse().with_context(|| format!("{series} is {value}"))
}

/// Fails unless the spans belong exactly to the callers' traces, one per call.
fn ensure_all_traced(spans: &[Span], calls: usize) -> Result<()> {
    let traces: BTreeSet<_> = spans.iter().map(|span| span.trace_id.as_str()).collect();
    let expected: BTreeSet<_> = (0..calls).map(trace_id).collect();
    ensure!(
        traces.into_iter().eq(expected.iter().map(String::as_str)),
        "the traces are not those of the callers"
    );
    Ok(())
}

impl Cost {
    fn over(&self, value: impl Fn(&Round) -> f64) -> Result<Spread> {
        Spread::of(self.rounds.iter().map(value))
    }
}

impl Round {
    /// The cost that tracing adds, in percent.
    fn added(&self, of: fn(&CallCost) -> f64) -> f64 {
        100.0 * (of(&self.with) / of(&self.without) - 1.0)
    }
}

fn p50(taken: &CallCost) -> f64 {
    taken.p50
}

fn cpu(taken: &CallCost) -> f64 {
    taken.cpu
}

/// The table, the goals and the chart.
fn finding(inline: &Cost, changed: &Cost) -> Result<Finding> {
    let costs = [(Kind::Inline, inline), (Kind::Changed, changed)];
    let mut rows = Vec::new();
    let mut targets = Vec::new();
    for (kind, cost) in costs {
        for (what, of) in [
            ("p50", p50 as fn(&CallCost) -> f64),
            ("CPU time of the server", cpu),
        ] {
            let added = cost.over(|round| round.added(of))?;
            rows.push(vec![
                format!("{}: {what}", kind.name()),
                cost.over(|round| of(&round.without))?.to_string(),
                cost.over(|round| of(&round.with))?.to_string(),
                added.to_string(),
                cost.over(|round| round.spans)?.to_string(),
                format!("{} × {}", cost.rounds.len(), figure(as_figure(cost.calls))),
            ]);
            targets.push(Target::at_most(
                format!("tracing, 5,000 nodes, {}: added to the {what}", kind.name()),
                MAX_ADDED,
                added.median(),
                "%",
            ));
        }
    }
    let all: usize = costs
        .iter()
        .flat_map(|(_, cost)| &cost.rounds)
        .map(|round| round.all_spans)
        .sum();
    Ok(Finding {
        title: "What tracing adds to a plan".to_owned(),
        about: format!(
            "{ABOUT}\n\nThe Collectors have all {} spans that the servers ended, some of each call; none was dropped.",
            figure(as_figure(all))
        ),
        columns: [
            "of a call",
            "without traces, ms",
            "with traces, ms",
            "added, %",
            "spans of a call",
            "rounds × calls",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows,
        targets,
        charts: vec![chart(changed)?],
    })
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn as_figure(count: usize) -> f64 {
    count as f64
}

fn chart(changed: &Cost) -> Result<Chart> {
    let mut bars = Vec::new();
    for (group, of) in [
        ("p50", p50 as fn(&CallCost) -> f64),
        ("CPU time of the server", cpu),
    ] {
        for (who, values) in [
            ("without traces", changed.over(|round| of(&round.without))?),
            ("with traces", changed.over(|round| of(&round.with))?),
        ] {
            bars.push(Bar {
                group: group.to_owned(),
                who: who.to_owned(),
                values,
            });
        }
    }
    Ok(Chart {
        file: "tracing".to_owned(),
        title: "A plan after one pod changed, 5,000 nodes, without and with traces".to_owned(),
        unit: "ms, less is better".to_owned(),
        logarithmic: false,
        shape: Shape::Bars(bars),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(calls: usize, rounds: &[[f64; 4]]) -> Cost {
        let rounds = rounds
            .iter()
            .map(|&[without, with, cpu_without, cpu_with]| Round {
                without: CallCost {
                    p50: without,
                    cpu: cpu_without,
                },
                with: CallCost {
                    p50: with,
                    cpu: cpu_with,
                },
                spans: 4.0,
                all_spans: 4 * (calls + 1),
            });
        Cost {
            calls,
            rounds: rounds.collect(),
        }
    }

    #[test]
    fn finding_has_rows_and_goals() -> Result<()> {
        let inline = cost(
            50,
            &[
                [20.0, 20.5, 20.0, 20.4],
                [20.0, 20.2, 20.0, 21.0],
                [40.0, 39.6, 20.0, 20.0],
            ],
        );
        let changed = cost(1_000, &[[0.5, 0.52, 0.2, 0.3]]);
        let finding = finding(&inline, &changed)?;
        assert!(finding.rows.iter().all(|row| row.len() == finding.columns.len()));
        assert_eq!(
            finding.rows[0],
            [
                "all inline: p50",
                "20 (20–40)",
                "20.5 (20.2–39.6)",
                "1 (-1–2.5)",
                "4",
                "3 × 50"
            ]
        );
        assert_eq!(
            finding.rows[3],
            [
                "one pod changed: CPU time of the server",
                "0.2",
                "0.3",
                "50",
                "4",
                "1 × 1,000"
            ]
        );
        let told: Vec<_> = finding
            .targets
            .iter()
            .map(|target| (target.what.as_str(), target.measured.as_str(), target.reached))
            .collect();
        assert_eq!(
            told,
            [
                ("tracing, 5,000 nodes, all inline: added to the p50", "1 %", true),
                (
                    "tracing, 5,000 nodes, all inline: added to the CPU time of the server",
                    "2 %",
                    true
                ),
                (
                    "tracing, 5,000 nodes, one pod changed: added to the p50",
                    "4 %",
                    false
                ),
                (
                    "tracing, 5,000 nodes, one pod changed: added to the CPU time of the server",
                    "50 %",
                    false
                ),
            ]
        );
        // Three rounds of 51 calls, and one round of 1,001 calls.
        assert!(
            finding.about.contains("have all 4,616 spans"),
            "{}",
            finding.about
        );
        Ok(())
    }

    #[test]
    fn metrics_are_counted() -> Result<()> {
        let metrics = "# TYPE spans counter\nspans_dropped_total 3\nspans_dropped 4\nspans x\n";
        assert_eq!(count(metrics, "spans_dropped_total")?, 3);
        assert_eq!(count(metrics, "spans_dropped")?, 4);
        assert!(count(metrics, "spans").is_err() && count(metrics, "dropped").is_err());
        Ok(())
    }
}
