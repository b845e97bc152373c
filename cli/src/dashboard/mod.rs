//! `nodewise dashboard`: the page, with the user's kubeconfig on loopback, or for callers with bearer tokens.

pub(crate) mod args;
mod callers;
mod commands;
mod divergence;
mod feed;
mod local;
mod objects;
mod questions;

use std::{
    net::{Ipv4Addr, SocketAddr},
    process::{ExitCode, Stdio},
    sync::Arc,
};

use anyhow::Context as _;
use nodewise_dashboard::{Access, Server, Session};
use tokio_util::sync::CancellationToken;

use crate::print;
use args::DashboardArgs;

pub(crate) async fn run(args: &DashboardArgs) -> anyhow::Result<ExitCode> {
    let end = CancellationToken::new();
    tokio::spawn(cancel_when_asked(end.clone()));
    match args.listen {
        Some(address) => for_callers(args, address, end).await?,
        None => for_one(args, end).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The page of the person who runs the command.
async fn for_one(args: &DashboardArgs, end: CancellationToken) -> anyhow::Result<()> {
    let (feed, source) = local::start(args).await?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
    let server = bind(address).await?;
    let session = Session::new(server.address());
    let url = format!("http://{}{}", server.address(), session.login_path());
    print::text(&format!("{url}\n"))?;
    print::note("the URL is for you alone; Ctrl-C ends the page");
    if args.open {
        open(&url);
    }
    let hosts = server.loopback_hosts();
    let access = Access::Session(session, Arc::new(source));
    // The page ends with its data: without a right to list a kind there is nothing to show.
    let data = async {
        let ended = feed.run(end.clone()).await;
        end.cancel();
        ended
    };
    let (data, page) = tokio::join!(data, server.serve(access, hosts, end.clone()));
    data?;
    page.context("the page cannot be served")
}

/// The page for callers with tokens.
async fn for_callers(
    args: &DashboardArgs,
    address: SocketAddr,
    end: CancellationToken,
) -> anyhow::Result<()> {
    let callers = callers::TokenCallers::start(args, end.clone()).await?;
    let server = bind(address).await?;
    print::text(&format!("http://{}\n", server.address()))?;
    let access = Access::Bearer(Arc::new(callers));
    let page = server.serve(access, args.hosts.clone(), end).await;
    page.context("the page cannot be served")
}

async fn bind(address: SocketAddr) -> anyhow::Result<Server> {
    Server::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address}"))
}

/// Cancels on Ctrl-C and on SIGTERM.
async fn cancel_when_asked(end: CancellationToken) {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            end.cancel();
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
    end.cancel();
}

/// Opens the page in the browser. The URL is printed anyway, so a failure is only a note.
fn open(url: &str) {
    let (program, first): (_, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(windows) {
        ("cmd", &["/C", "start", ""])
    } else {
        ("xdg-open", &[])
    };
    let mut command = std::process::Command::new(program);
    command
        .args(first)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Err(error) = command.spawn() {
        print::note(&format!("cannot run {program}: {error}; open the URL yourself"));
    }
}
