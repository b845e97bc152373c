//! `nodewise-executor` as a process, without a cluster.

use std::{path::Path, process::Command};

#[test]
fn a_kubeconfig_that_is_not_there_is_named_with_one_cause() {
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
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && told.contains(path.to_str().unwrap()),
            "{told}"
        );
        assert_eq!(told.matches("No such file").count(), 1, "{told}");
    }
}
