//! `nodewise simulate`.

pub(crate) mod args;
mod change;
mod chart;
mod report;
mod text;

use std::{
    fs,
    io::Read as _,
    ops::ControlFlow,
    path::Path,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use jiff::Timestamp;
use nodewise_forecast::{Assumptions, Bounds, End};
use nodewise_proto::v1;
use serde_json::Value;

use crate::{
    args::SourceArgs,
    engine::{NO_CACHE, UNLIMITED, refused},
    input::{Cluster, Served},
    kind::Kind,
    print,
    request::RequestFactory,
    target::Target,
    text::terminal_width,
};

use args::{Format, SimulateArgs};
use report::{Played, Readiness};

/// The exit code if a bound was reached before the end.
const BOUND: u8 = 2;
/// The exit code if the rollout gets stuck.
const STUCK: u8 = 3;

pub(crate) async fn run(args: &SimulateArgs) -> anyhow::Result<ExitCode> {
    let target = Target::parse_one(&args.target)?;
    ensure!(
        target.kind == Kind::DaemonSet,
        "{}: not a kind that can be simulated; daemonset is",
        target.kind.name().to_ascii_lowercase()
    );
    let namespace = args.namespace.as_deref();
    let source = SourceArgs {
        files: args.dumps.clone(),
        kubeconfig: args.kubeconfig.clone(),
        context: args.context.clone(),
    };
    let cluster = Cluster::read(&source, std::slice::from_ref(&target), namespace).await?;
    let found = cluster.find(&target, namespace)?;
    let [workload] = found.as_slice() else {
        bail!("expected one workload, found {}", found.len());
    };
    let before: Value = serde_json::from_str(workload.json.get()).context("cannot read the workload")?;
    let after = changed(args, workload, &before)?;
    let changed = change::served(workload, &after)?;
    let played = play(
        args,
        &cluster,
        &changed,
        &change::differences(&before["spec"], &after["spec"]),
    )?;
    output(args, &played)?;
    Ok(match played.forecast.end {
        End::Done => ExitCode::SUCCESS,
        End::Stuck { .. } => ExitCode::from(STUCK),
        End::Bound(_) => ExitCode::from(BOUND),
        End::Cancelled => ExitCode::FAILURE,
    })
}

/// The workload with the changes that the command line asks for.
fn changed(args: &SimulateArgs, workload: &Served, before: &Value) -> anyhow::Result<Value> {
    let mut after = before.clone();
    if let Some(file) = &args.manifest {
        let manifest = read_manifest(file, workload)?;
        change::apply(&mut after, &manifest).with_context(|| file.display().to_string())?;
    }
    change::set_images(&mut after, &args.images, &workload.title())?;
    change::raise_generations(workload.kind, before, &mut after);
    Ok(after)
}

/// Reads the manifest of the workload: a file with one object.
fn read_manifest(file: &Path, workload: &Served) -> anyhow::Result<Value> {
    let name = file.display();
    let text = if file.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().lock().read_to_string(&mut text).map(|_| text)
    } else {
        fs::read_to_string(file)
    };
    let text = text.with_context(|| format!("{name}: cannot be read"))?;
    let manifest: Value =
        serde_saphyr::from_str(&text).map_err(|error| anyhow::anyhow!("{name}: is not YAML: {error}"))?;
    let of = |field: &str| manifest["metadata"][field].as_str();
    ensure!(
        manifest["kind"] == workload.kind.name()
            && of("name") == Some(&workload.name)
            && of("namespace").is_none_or(|namespace| namespace == workload.namespace),
        "{name}: is {} {}; expected {}",
        manifest["kind"].as_str().unwrap_or("an object without kind"),
        of("name").unwrap_or("without a name"),
        workload.title()
    );
    Ok(manifest)
}

fn play(
    args: &SimulateArgs,
    cluster: &Cluster,
    workload: &Served,
    differences: &[String],
) -> anyhow::Result<Played> {
    let readiness = readiness(args, cluster, workload);
    let assumptions = Assumptions {
        ready_after: readiness.after,
        gone_after: args.gone_after,
        failing: args.failing,
        seed: args.seed,
    };
    let bounds = Bounds {
        time: args.max_time,
        steps: args.max_steps,
        nodes: usize::MAX,
    };
    let requests = RequestFactory::at(cluster, args.now, args.profile.into());
    let request = requests.request_for(workload);
    let message = v1::PlanRequest {
        snapshot: Some(request.snapshot(|_| false)),
        options: Some(request.options.clone()),
        undelivered_reports: Vec::new(),
    };
    let engine = nodewise_server::Engine::new(UNLIMITED, NO_CACHE);
    let stop = cancelled_by_ctrl_c();
    let mut steps = Vec::new();
    let forecast = engine
        .simulate(
            message,
            &assumptions,
            &bounds,
            &|| stop.load(Ordering::Relaxed),
            &mut |step| {
                steps.push(step);
                ControlFlow::Continue(())
            },
        )
        .map_err(|refusal| refused(&request, refusal))?;
    Ok(Played {
        title: workload.title(),
        kind: workload.kind,
        namespace: workload.namespace.clone(),
        name: workload.name.clone(),
        differences: differences.to_vec(),
        readiness,
        assumptions,
        steps,
        forecast,
    })
}

/// Becomes true when the user presses Ctrl-C. Then the play ends, and what was played is printed.
fn cancelled_by_ctrl_c() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let pressed = Arc::clone(&stop);
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            pressed.store(true, Ordering::Relaxed);
        }
    });
    stop
}

/// How long pods take to become ready: as given, else the median of the ready pods, else 10 s.
fn readiness(args: &SimulateArgs, cluster: &Cluster, workload: &Served) -> Readiness {
    if let Some(after) = args.ready_after {
        return Readiness {
            after,
            observed: None,
            is_given: true,
        };
    }
    let pods = cluster.pods_in(&workload.namespace).iter().map(|pod| &pod.object);
    let own = pods.filter(|pod| {
        let owner = pod.controller.as_ref();
        owner.is_some_and(|owner| owner.uid == workload.uid)
    });
    let mut times: Vec<Duration> = own.filter_map(time_until_ready).collect();
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied();
    Readiness {
        after: median.unwrap_or(Assumptions::default().ready_after),
        observed: median.map(|_| times.len()),
        is_given: false,
    }
}

/// The time from a pod's creation until it became ready; `None` if it is not ready.
fn time_until_ready(pod: &v1::Pod) -> Option<Duration> {
    let is_ready = pod.ready() == v1::ConditionStatus::True;
    let time = |time: &Option<_>| {
        let time: &nodewise_proto::Timestamp = time.as_ref()?;
        Timestamp::new(time.seconds, time.nanos).ok()
    };
    let (created, ready) = (time(&pod.creation_time)?, time(&pod.ready_transition_time)?);
    Duration::try_from(ready.duration_since(created))
        .ok()
        .filter(|_| is_ready)
}

fn output(args: &SimulateArgs, played: &Played) -> anyhow::Result<()> {
    if let Some(file) = &args.svg {
        let chart = chart::render(played)?;
        fs::write(file, chart).with_context(|| format!("{}: cannot be written", file.display()))?;
    }
    match args.output {
        Format::Json => print::json(&report::Json::of(played)),
        Format::Svg => print::text(&chart::render(played)?),
        Format::Text => print::text(&text::render(played, args.all_steps, terminal_width())),
    }
}
