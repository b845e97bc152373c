//! Runs `nodewise-executor` as a process, without a cluster.

use std::{path::Path, process::Command};

#[test]
fn a_missing_kubeconfig_is_named_with_one_cause() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("absent");
    for (flags, variable) in [
        (vec!["--kubeconfig".into(), path.clone()], "UNUSED"),
        (vec![], "KUBECONFIG"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_nodewise-executor"))
            .env_clear()
            .env(variable, &path)
            .args(["--mode", "observe", "--server", "http://127.0.0.1:1"])
            .args(flags)
            .output()
            .unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && stderr.contains(path.to_str().unwrap()),
            "{stderr}"
        );
        assert_eq!(stderr.matches("No such file").count(), 1, "{stderr}");
    }
}
