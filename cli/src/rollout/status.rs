//! `nodewise rollout status`.

use std::{
    io::{self, IsTerminal as _},
    process::ExitCode,
};

use anyhow::Context as _;

use super::{args::RolloutStatusArgs, exit::exit_code, hints, live, watch};
use crate::{
    engine::Engine,
    gaps,
    input::Cluster,
    output::ViewOutput,
    print,
    refusals::Refusals,
    request::RequestFactory,
    target::Target,
    text::{self, Page},
    view,
    watches::{before, deadline},
};

pub(crate) async fn run(args: &RolloutStatusArgs) -> anyhow::Result<ExitCode> {
    let target = Target::parse_one(&args.target)?;
    let namespace = args.namespace.as_deref();
    let deadline = deadline(args.timeout);
    let read = Cluster::read_with_facts(&args.source, std::slice::from_ref(&target), namespace);
    let cluster = before(deadline, read).await??;
    let found = cluster.find(&target, namespace)?;
    let workload = *found.first().context("no workload is named")?;
    let engine = Engine::new(&args.engine)?;
    if args.watch {
        return if is_live(args) {
            live::run(args, &engine, workload, deadline).await
        } else {
            watch::run(args, &engine, workload, deadline).await
        };
    }
    gaps::refuse(&cluster, workload)?;
    let refusals = Refusals::read(&args.source, std::iter::once(workload)).await;
    let requests = RequestFactory::new(&cluster, &args.engine);
    let source = view::Source {
        cluster: &cluster,
        engine: &engine,
        requests: &requests,
    };
    let mut status = source.status(workload, refusals.of(&workload.uid)).await?;
    refusals.add_owner(&mut status);
    gaps::hint_without_policies(&cluster, std::iter::once(workload));
    match args.output {
        ViewOutput::Json => print::json(&status)?,
        ViewOutput::Yaml => print::yaml(&status)?,
        ViewOutput::Text | ViewOutput::Wide => {
            let mut page = Page::new(text::terminal_width());
            let wide = args.output == ViewOutput::Wide;
            text::status::render_rollout(&mut page, &status, &hints::of(&status), wide);
            print::text(&page.into_text())?;
        }
    }
    Ok(exit_code(&status))
}

/// Whether there is a terminal that can show the live view.
fn is_live(args: &RolloutStatusArgs) -> bool {
    let is_text = matches!(args.output, ViewOutput::Text | ViewOutput::Wide);
    is_text && io::stdout().is_terminal() && io::stdin().is_terminal()
}
