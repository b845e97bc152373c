//! `nodewise simulate`.

pub(crate) mod args;
mod change;
mod chart;
mod preview;
mod readiness;
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
};

use anyhow::{Context as _, bail, ensure};
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
pub(crate) use preview::Preview;
use report::Played;

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
    let readiness = readiness::of(args.ready_after, cluster, workload);
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
