//! `nodewise dashboard`: the page, with the user's kubeconfig on loopback, or for callers with bearer tokens.

pub(crate) mod args;
mod callers;
mod commands;
mod divergence;
mod feed;
mod local;
mod objects;
mod plays;
mod questions;
mod redirect;
mod told_cache;
mod views;

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    process::{ExitCode, Stdio},
    sync::Arc,
};

use anyhow::Context as _;
use nodewise_dashboard::{Access, Server, Session, login_path};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::print;
use args::DashboardArgs;
use redirect::Redirect;

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
    let mut tokens = session.tokens();
    let origin = format!("http://{}", server.address());
    let url = format!("{origin}{}", login_path(&tokens.borrow_and_update()));
    print::text(&format!("{url}\n"))?;
    print::note("the URL is for you alone, and signs one browser in; Ctrl-C ends the page");
    tokio::spawn(print_next_urls(origin, tokens));
    // The file goes when the page ends.
    let _redirect = if args.open { open(&url) } else { None };
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

/// Prints the URL for the next browser each time that one is signed in.
async fn print_next_urls(origin: String, mut tokens: watch::Receiver<String>) {
    while tokens.changed().await.is_ok() {
        let path = login_path(&tokens.borrow_and_update());
        print::note(&format!(
            "a browser is signed in; for another one: {origin}{path}"
        ));
    }
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

/// Opens the page in the browser by a file that leads there. The URL is printed anyway, so a failure is only a note.
fn open(url: &str) -> Option<Redirect> {
    let redirect = Redirect::to(url)
        .inspect_err(|error| print::note(&format!("cannot write a file for the browser: {error}")))
        .ok()?;
    open_file(redirect.path());
    Some(redirect)
}

fn open_file(path: &Path) {
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
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Err(error) = command.spawn() {
        print::note(&format!("cannot run {program}: {error}; open the URL yourself"));
    }
}
