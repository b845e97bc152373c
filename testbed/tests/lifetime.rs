//! Everything that the testbed starts ends with its owner, however the owner ends.

use std::fs;
use std::io;
use std::net::TcpStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use nodewise_testbed::{ControlPlane, Process, Workdir, eventually};

const DEADLINE: Duration = Duration::from_mins(1);

/// The processes whose command line contains `folder`. Every process of a control plane does.
fn processes_of(folder: &Path) -> Result<Vec<String>> {
    let folder = folder.to_str().context("a folder with a strange name")?;
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").context("this test looks for processes in /proc")? {
        let command = entry?.path().join("cmdline");
        // Other entries of /proc have no such file, nor does a process that has just ended.
        let Ok(line) = fs::read(&command) else { continue };
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(folder) {
            found.push(line);
        }
    }
    Ok(found)
}

fn address(server: &str) -> &str {
    server.trim_start_matches("https://")
}

/// Fails while any process, file or listener of a control plane exists.
fn check_gone(folder: &Path, server: &str) -> Result<()> {
    let processes = processes_of(folder)?;
    ensure!(processes.is_empty(), "these still run: {processes:#?}");
    ensure!(!folder.exists(), "{} still exists", folder.display());
    ensure!(
        TcpStream::connect(address(server)).is_err(),
        "something still listens at {server}"
    );
    Ok(())
}

const PARTS: [&str; 5] = [
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kwok",
];

/// Waits until the whole control plane runs; otherwise its end would prove nothing. (The command line of a process that
/// has just started can be empty for a moment.)
async fn wait_until_there(folder: &Path, server: &str) -> Result<()> {
    eventually(DEADLINE, "all parts run", async || {
        let processes = processes_of(folder)?;
        for part in PARTS {
            ensure!(
                processes.iter().any(|line| line.contains(part)),
                "no {part} among {processes:#?}"
            );
        }
        TcpStream::connect(address(server)).context("connecting to the apiserver")?;
        Ok(())
    })
    .await
}

async fn start() -> Result<(ControlPlane, PathBuf, String)> {
    let control_plane = ControlPlane::builder().whole_cluster().start().await?;
    let folder = control_plane.workdir().path().to_owned();
    let server = control_plane.server();
    wait_until_there(&folder, &server).await?;
    Ok((control_plane, folder, server))
}

#[tokio::test]
async fn everything_ends_on_drop() -> Result<()> {
    let (control_plane, folder, server) = start().await?;
    drop(control_plane);
    check_gone(&folder, &server)
}

#[test]
fn everything_ends_after_a_panic() -> Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    let (control_plane, folder, server) = runtime.block_on(start())?;
    let result = catch_unwind(AssertUnwindSafe(move || {
        let _owned = control_plane;
        panic!("this panic is part of the test");
    }));
    assert!(result.is_err());
    check_gone(&folder, &server)
}

/// Starts `nodewise-testbed up`. Returns the process with the folder and the server of the kubeconfig that it prints.
async fn up() -> Result<(Process, PathBuf, String)> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nodewise-testbed"));
    command.args(["up", "--nodes", "2"]);
    let owner = Process::spawn("owner", command)?;
    let line = owner.wait_for_log_line("export KUBECONFIG=", DEADLINE).await?;
    let kubeconfig = PathBuf::from(line.trim_start_matches("export KUBECONFIG="));
    let folder = kubeconfig
        .parent()
        .and_then(Path::parent)
        .context("a kubeconfig in no folder")?
        .to_owned();
    let text = fs::read_to_string(&kubeconfig)?;
    let start = text.find("https://").context("a kubeconfig without server")?;
    let server = text[start..].split('"').next().unwrap_or_default().to_owned();
    wait_until_there(&folder, &server).await?;
    Ok((owner, folder, server))
}

#[tokio::test]
async fn everything_ends_after_sigkill_of_the_owner() -> Result<()> {
    let (owner, folder, server) = up().await?;
    owner.kill9()?;
    eventually(DEADLINE, "nothing is left", async || check_gone(&folder, &server)).await
}

#[tokio::test]
async fn everything_ends_after_sigterm() -> Result<()> {
    let (owner, folder, server) = up().await?;
    let status = owner.terminate(DEADLINE).await?;
    ensure!(status.success(), "{status}: {}", owner.log());
    check_gone(&folder, &server)
}

fn sh(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

#[tokio::test]
async fn process_has_a_log_and_obeys_signals() -> Result<()> {
    let script = "trap 'echo bye; exit 3' TERM; echo first; echo 'listening on 127.0.0.1:7' >&2; while :; do sleep 0.01; done";
    let process = Process::spawn("polite", sh(script))?;
    let line = process.wait_for_log_line("listening on", DEADLINE).await?;
    assert_eq!(line, "listening on 127.0.0.1:7");
    process.check_running()?;
    process.pause()?;
    process.resume()?;
    assert_eq!(process.terminate(DEADLINE).await?.code(), Some(3));
    assert_eq!(process.log(), "first\nlistening on 127.0.0.1:7\nbye\n");
    process.pause().expect_err("it has ended");
    Ok(())
}

#[tokio::test]
async fn waiting_stops_when_the_process_ends() -> Result<()> {
    let process = Process::spawn("short", sh("printf 'no newline at the end'; exit 4"))?;
    // The incomplete line counts, because the process has ended.
    assert_eq!(
        process.wait_for_log_line("no newline", DEADLINE).await?,
        "no newline at the end"
    );
    let error = process
        .wait_for_log_line("never printed", DEADLINE)
        .await
        .expect_err("it is not printed");
    assert!(
        format!("{error:#}").contains("short has ended (exit status: 4)"),
        "{error:#}"
    );
    Ok(())
}

/// The line was read before the process ended. Only the end of the process completes it.
#[tokio::test]
async fn incomplete_line_is_found_when_the_process_ends() -> Result<()> {
    let workdir = Workdir::new()?;
    let may_end = workdir.path().join("may-end");
    let script = format!(
        "printf 'no newline at the end'; until test -e {}; do sleep 0.01; done",
        may_end.display()
    );
    let process = Process::spawn_in(&workdir, "slow", sh(&script))?;
    eventually(DEADLINE, "its text", async || {
        ensure!(!process.log().is_empty());
        Ok(())
    })
    .await?;
    let (line, ()) = tokio::try_join!(
        biased;
        process.wait_for_log_line("no newline", DEADLINE),
        async { Ok(fs::write(&may_end, "")?) }
    )?;
    assert_eq!(line, "no newline at the end");
    Ok(())
}

#[tokio::test]
async fn grandchildren_end_too() -> Result<()> {
    let workdir = Workdir::new()?;
    let folder = workdir.path().to_owned();
    // The shell ends at once and leaves a child process with the folder in its command line.
    let script = format!(
        "sh -c 'while :; do sleep 0.01; done' {}/orphan & echo started",
        folder.display()
    );
    let process = Process::spawn_in(&workdir, "parent", sh(&script))?;
    process.wait_for_exit(DEADLINE).await?;
    ensure!(
        processes_of(&folder)?.iter().any(|line| line.contains("orphan")),
        "there is no orphan"
    );
    drop((process, workdir));
    // The init process reaps it, not this process.
    eventually(DEADLINE, "the orphan is gone", async || {
        match processes_of(&folder)? {
            left if left.is_empty() => Ok(()),
            left => bail!("{left:?}"),
        }
    })
    .await?;
    assert_eq!(
        fs::metadata(&folder).expect_err("the folder is gone").kind(),
        io::ErrorKind::NotFound
    );
    Ok(())
}
