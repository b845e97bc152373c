//! Upstream's own controller finds nothing to do in the benchmark's clusters.

use std::process::{Command, Stdio};
use std::{fs, io::Write as _};

use nodewise_bench::objects::Cluster;
use nodewise_bench::plan::times;
use nodewise_compare::case::Case;
use nodewise_testbed::{Tool, Workdir};
use serde_json::json;

#[test]
fn both_sides_are_measured() {
    let times = times(&[(20, true), (30, false)], 2).expect("times");
    let upstream = times[0].upstream.as_ref().expect("upstream's times");
    assert_eq!(
        (
            upstream.rounds(),
            times[0].scratch.rounds(),
            times[0].changed.rounds()
        ),
        (2, 2, 2)
    );
    assert!(upstream.min() > 0.0);
    assert!(times[1].upstream.is_none());
}

/// What upstream's program prints for a case.
fn said(case: &Case) -> (bool, String) {
    let workdir = Workdir::new().expect("a folder");
    let path = workdir.path().join("case.json");
    fs::write(&path, serde_json::to_vec(case).expect("JSON")).expect("a file");
    let mut process = Command::new(Tool::UpstreamPlain.path().expect("upstream's program"))
        .arg("bench")
        .arg(&path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    // The process may already have ended.
    let _ = process.stdin.take().expect("a pipe").write_all(b"1\n");
    let output = process.wait_with_output().expect("it ends");
    (
        output.status.success(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[test]
fn unsettled_cluster_is_rejected() {
    let case = Cluster::settled(3, 2)
        .and_then(|cluster| cluster.case())
        .expect("a case");
    assert_eq!(said(&case), (true, String::new()));
    let mut fewer = case.clone();
    fewer.pods.remove(0);
    let (done, error) = said(&fewer);
    assert!(!done && error.contains("create-pod ip-10-0-0-0"), "{error}");
    let mut other = case;
    other.daemon_sets[0]["spec"]["template"]["spec"]["hostNetwork"] = json!(true);
    let (done, error) = said(&other);
    assert!(!done && error.contains("create-revision"), "{error}");
}
