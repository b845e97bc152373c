//! Third-party CustomResourceDefinitions whose objects `deploy/` contains. They are read from the Go modules that their
//! projects publish, so that this repository needs no copy.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use nodewise_testbed::manifests;
use serde_json::Value;

/// A Go module with CustomResourceDefinitions.
struct Module {
    /// The module path with version.
    path: &'static str,
    /// The checksum as in a `go.sum`.
    sum: &'static str,
    /// The files with definitions.
    files: &'static [&'static str],
}

const MODULES: [Module; 2] = [
    Module {
        path: "github.com/cert-manager/cert-manager@v1.19.1",
        sum: "h1:Txh8L/nLWTDcb7ZnXuXbTe15BxQnLbLirXmbNk0fGgY=",
        files: &[
            "deploy/crds/cert-manager.io_certificates.yaml",
            "deploy/crds/cert-manager.io_issuers.yaml",
        ],
    },
    Module {
        path: "github.com/prometheus-operator/prometheus-operator@v0.85.0",
        sum: "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
        files: &[
            "example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
            "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
        ],
    },
];

/// All definitions.
pub(crate) fn all() -> Result<Vec<Value>> {
    let mut definitions = Vec::new();
    for module in MODULES {
        let folder = module.folder()?;
        for name in module.files {
            let text = fs::read_to_string(folder.join(name)).with_context(|| format!("reading {name}"))?;
            definitions.extend(manifests::parse(&text).with_context(|| (*name).to_owned())?);
        }
    }
    Ok(definitions)
}

impl Module {
    /// Downloads the module, verifies its checksum and returns its folder.
    fn folder(&self) -> Result<PathBuf> {
        let outside = tempfile::tempdir().context("making a folder outside of any module")?;
        let output = Command::new("go")
            .args(["mod", "download", "-json", self.path])
            .current_dir(outside.path())
            .stdin(Stdio::null())
            .output()
            .context("running go")?;
        let answer: Value = serde_json::from_slice(&output.stdout)
            .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
        ensure!(
            answer["Error"].is_null(),
            "downloading {}: {}",
            self.path,
            answer["Error"]
        );
        ensure!(
            answer["Sum"] == self.sum,
            "{} has the digest {}",
            self.path,
            answer["Sum"]
        );
        Ok(answer["Dir"]
            .as_str()
            .context("a module without a folder")?
            .into())
    }
}
