//! `nodewise simulate`.

pub(crate) mod args;
pub(crate) mod assumed;
pub(crate) mod change;
mod chart;
pub(crate) mod object_writer;
pub(crate) mod play;
pub(crate) mod played;
mod preview;
mod remote;
pub(crate) mod report;
pub(crate) mod text;

use std::{io::Write as _, path::Path, process::ExitCode};

use anyhow::{Context as _, bail};
use nodewise_forecast::{End, Step};

use crate::{
    args::SourceArgs,
    engine::Engine,
    gaps,
    input::{Cluster, Served},
    output_file::OutputFile,
    print,
    target::Target,
    text::{BOLD, Page, terminal_width},
};

use args::{Format, SimulateArgs};
use assumed::Assumed;
use chart::Chart;
use play::When;
use played::Played;
pub(crate) use preview::Preview;
use report::{JsonWriter, Sample, Subject};
use text::Printer;

/// The exit code if a bound was reached before the end.
const BOUND: u8 = 2;
/// The exit code if the rollout gets stuck.
const STUCK: u8 = 3;

pub(crate) async fn run(args: &SimulateArgs) -> anyhow::Result<ExitCode> {
    let target = Target::parse_one(&args.target)?;
    if let Some(file) = &args.svg {
        svg_file(file).check()?;
    }
    let namespace = args.namespace.as_deref();
    let source = SourceArgs {
        files: args.dumps.clone(),
        kubeconfig: args.kubeconfig.clone(),
        context: args.context.clone(),
    };
    let mut cluster = Cluster::read_with_facts(&source, std::slice::from_ref(&target), namespace).await?;
    let found = cluster.find(&target, namespace)?;
    let [workload] = found.as_slice() else {
        bail!("expected one workload, found {}", found.len());
    };
    let asked = change::Asked {
        images: &args.images,
        manifest: args.manifest.as_deref(),
        dry_run: &args.dry_run,
        source: &source,
    };
    let changed = asked.of(workload).await?;
    let differences = change::differences_of(workload, &changed)?;
    let key = cluster.put_workload(changed);
    let workload = cluster
        .workload(&key)
        .context("the workload was put into the cluster")?;
    let assumed = Assumed::about(&args.assumed, &cluster, workload);
    let subject = Subject::new(workload, differences, assumed);
    let when = When {
        now: args.now,
        profile: args.profile.into(),
    };
    let engine = Engine::of(&args.server)?;
    let played = print_play(args, &engine, &cluster, workload, &subject, when).await?;
    gaps::hint_without_policies(&cluster, std::iter::once(workload));
    Ok(exit_code(&played))
}

/// The file of `--svg`. It replaces only an SVG.
fn svg_file(path: &Path) -> OutputFile<'_> {
    OutputFile {
        path,
        flag: "--svg",
        what: "an SVG that begins with <svg",
        is_own: |file| {
            let head = file.fill_buf();
            head.is_ok_and(|head| head.trim_ascii_start().starts_with(b"<svg"))
        },
    }
}

/// The exit code that says how a play ended.
pub(crate) fn exit_code(played: &Played) -> ExitCode {
    match played.forecast.end {
        End::Done => ExitCode::SUCCESS,
        End::Stuck { .. } => ExitCode::from(STUCK),
        End::Bound(_) => ExitCode::from(BOUND),
        End::Cancelled => ExitCode::FAILURE,
    }
}

/// Plays, and prints each step as it comes.
async fn print_play(
    args: &SimulateArgs,
    engine: &Engine,
    cluster: &Cluster,
    workload: &Served,
    subject: &Subject,
    when: When,
) -> anyhow::Result<Played> {
    let mut output = match args.output {
        Format::Text => {
            let mut page = Page::new(terminal_width());
            page.line(0, BOLD, &subject.title);
            let printer = Printer::new(subject, args.assumed.all_steps, terminal_width());
            print::text(&(page.into_text() + &printer.begin(&subject.differences)))?;
            Output::Text(printer)
        }
        Format::Json => Output::Json(JsonWriter::begin(print::Writer, subject)?),
        Format::Svg => Output::Nothing,
    };
    let mut samples: Vec<Sample> = Vec::new();
    let assumed = &subject.assumed;
    let played = play::show(engine, cluster, workload, assumed, when, &mut |step| {
        samples.push(Sample::from(step));
        output.step(step)
    })
    .await?;
    let chart = Chart {
        subject,
        forecast: &played.forecast,
        samples: &samples,
    };
    if let Some(file) = &args.svg {
        svg_file(file).write(&chart::render(&chart)?)?;
    }
    match output {
        Output::Text(printer) => print::text(&printer.end(&played, &samples))?,
        Output::Json(writer) => writer.end(&played)?.write_all(b"\n")?,
        Output::Nothing => print::text(&chart::render(&chart)?)?,
    }
    Ok(played)
}

/// What is printed as the steps come.
enum Output<'a> {
    Text(Printer<'a>),
    Json(JsonWriter<print::Writer>),
    /// A chart has all steps.
    Nothing,
}

impl Output<'_> {
    fn step(&mut self, step: &Step) -> anyhow::Result<()> {
        match self {
            Self::Text(printer) => print::text(&printer.step(step)),
            Self::Json(writer) => writer.step(step),
            Self::Nothing => Ok(()),
        }
    }
}
