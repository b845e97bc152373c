//! Runs the built binary.

#![allow(dead_code, reason = "each test file uses its share")]

use std::{
    io::Write as _,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};

/// The time for the inputs in tests/data.
pub(crate) const NOW: &str = "2026-01-01T02:00:00Z";

/// The path of a file in tests/data.
pub(crate) fn data(name: &str) -> String {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
        .display()
        .to_string()
}

/// The binary without environment variables that could change its behaviour.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nodewise"));
    command.args(args).env_clear().stdin(Stdio::null());
    command
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

impl Ran {
    /// Standard output. Panics if the run failed.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.stdout
    }
}

pub(crate) fn nodewise(args: &[&str]) -> Ran {
    command(args).output().expect("the binary starts").into()
}

pub(crate) fn nodewise_with_input(args: &[&str], input: &str) -> Ran {
    let mut command = command(args);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    // Test inputs fit into the pipe's buffer. It is not an error if the binary does not read them.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    child.wait_with_output().expect("the binary ends").into()
}

/// A DaemonSet without pods, and this number of nodes without taints.
pub(crate) fn new_on(nodes: usize) -> Value {
    let list: Value = serde_json::from_str(&std::fs::read_to_string(data("new.json")).unwrap()).unwrap();
    let daemon_set = list["items"][0].clone();
    let nodes = (1..=nodes).map(|n| {
        let name = format!("node-{n:03}");
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "uid": format!("uid-{n}")}})
    });
    let items: Vec<Value> = std::iter::once(daemon_set).chain(nodes).collect();
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}
