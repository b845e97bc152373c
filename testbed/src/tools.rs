//! The Go programs that the testbed runs, built once and kept.
//!
//! Each folder under `tools/` is one Go module that pins programs and, through its `go.sum`, every source they
//! are made of; `upstream/` is one with a program of its own. A program is kept under the digest of those two files
//! and of the module's own sources, so that a new version is a new file and an unchanged one is never built again.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};

/// Names the folder that keeps the built programs, instead of `testbed/bin`.
const BIN: &str = "NODEWISE_TESTBED_BIN";

/// A program built from a Go module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tool {
    /// The store behind the apiserver.
    Etcd,
    /// The Kubernetes API.
    KubeApiserver,
    /// Kubernetes' own controllers.
    KubeControllerManager,
    /// Binds pods to nodes.
    KubeScheduler,
    /// The command line client.
    Kubectl,
    /// Plays the kubelets of fake nodes.
    Kwok,
    /// Lints the Protobuf files, and generates the stubs of the Go client.
    Buf,
    /// Lints the Go client.
    GolangciLint,
    /// Kubernetes' own DaemonSet controller, one sync at a time; see `upstream/README.md`. It is built to leave its
    /// coverage in `$GOCOVERDIR`, and says on standard error when that is not set.
    Upstream,
    /// The same without coverage, whose counters take time: for measuring it.
    UpstreamPlain,
}

impl Tool {
    /// All of them, in the order in which they are best built.
    pub const ALL: [Self; 10] = [
        Self::Etcd,
        Self::KubeApiserver,
        Self::KubeControllerManager,
        Self::KubeScheduler,
        Self::Kubectl,
        Self::Kwok,
        Self::Buf,
        Self::GolangciLint,
        Self::Upstream,
        Self::UpstreamPlain,
    ];

    /// The program's name, also that of its file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::KubeScheduler => "kube-scheduler",
            Self::Kubectl => "kubectl",
            Self::Kwok => "kwok",
            Self::Buf => "buf",
            Self::GolangciLint => "golangci-lint",
            Self::Upstream => "upstream",
            Self::UpstreamPlain => "upstream-plain",
        }
    }

    /// The folder of the module that pins it.
    fn folder(self) -> &'static str {
        match self {
            Self::Kwok => "tools/kwok",
            Self::Buf => "tools/buf",
            Self::GolangciLint => "tools/golangci-lint",
            Self::Upstream | Self::UpstreamPlain => "upstream",
            _ => "tools/kubernetes",
        }
    }

    /// The name of that folder.
    fn module(self) -> &'static str {
        self.folder().trim_start_matches("tools/")
    }

    fn package(self) -> &'static str {
        match self {
            Self::Etcd => "go.etcd.io/etcd/server/v3",
            Self::KubeApiserver => "k8s.io/kubernetes/cmd/kube-apiserver",
            Self::KubeControllerManager => "k8s.io/kubernetes/cmd/kube-controller-manager",
            Self::KubeScheduler => "k8s.io/kubernetes/cmd/kube-scheduler",
            Self::Kubectl => "k8s.io/kubernetes/cmd/kubectl",
            Self::Kwok => "sigs.k8s.io/kwok/cmd/kwok",
            Self::Buf => "github.com/bufbuild/buf/cmd/buf",
            Self::GolangciLint => "github.com/golangci/golangci-lint/v2/cmd/golangci-lint",
            Self::Upstream | Self::UpstreamPlain => ".",
        }
    }

    /// What `go build` is told besides.
    fn build_flags(self) -> &'static [&'static str] {
        match self {
            Self::Upstream => &[
                "-cover",
                // Without `.` nothing would be left behind: what writes it is made part of a covered `main` only.
                "-coverpkg=.,k8s.io/kubernetes/pkg/controller/daemon,k8s.io/kubernetes/pkg/controller/daemon/util",
            ],
            _ => &[],
        }
    }

    /// What a first build takes on two cores.
    fn patience(self) -> &'static str {
        match self {
            Self::KubeApiserver => "several minutes the first time",
            Self::Etcd | Self::KubeScheduler | Self::Kubectl => "up to a minute the first time",
            Self::GolangciLint => "some three minutes the first time",
            Self::KubeControllerManager | Self::Kwok | Self::Buf | Self::Upstream | Self::UpstreamPlain => {
                "a minute or two the first time"
            }
        }
    }

    /// Where the built program is; it is built first if it has to be, which can take minutes.
    ///
    /// Any number of processes may ask at the same time: one builds, the others wait for it. What is being
    /// done is said on standard error.
    ///
    /// # Errors
    /// There is no Go on this machine, a module cannot be downloaded, or the build fails.
    pub fn path(self) -> Result<PathBuf> {
        Toolbox::default().get(self)
    }
}

/// Where tools are built from, by what, and where to.
#[derive(Clone, Debug)]
pub(crate) struct Toolbox {
    /// The `go` command.
    go: PathBuf,
    /// The folder with the modules' folders; see [`Tool::folder`].
    home: PathBuf,
    /// The folder that keeps the built programs.
    bin: PathBuf,
}

impl Default for Toolbox {
    /// `go` from `PATH`, this crate's folder, and `$NODEWISE_TESTBED_BIN` or else this crate's `bin/`.
    fn default() -> Self {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let bin = std::env::var_os(BIN).map_or_else(|| here.join("bin"), PathBuf::from);
        Self {
            go: "go".into(),
            home: here.to_owned(),
            bin,
        }
    }
}

impl Toolbox {
    /// Where `tool` is; it is built first if it has to be. See [`Tool::path`].
    fn get(&self, tool: Tool) -> Result<PathBuf> {
        let folder = self.folder(tool)?;
        let path = folder.join(tool.name());
        if path.exists() {
            return Ok(path);
        }
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        let lock = self.lock()?;
        // Another process may have built it while this one waited.
        if !path.exists() {
            self.build(tool, &path)?;
            self.remove_older(tool, &folder);
        }
        drop(lock);
        Ok(path)
    }

    /// The folder for this version of the tool's module.
    fn folder(&self, tool: Tool) -> Result<PathBuf> {
        let mut digest = Sha256::new();
        for path in sources(&self.home.join(tool.folder()))? {
            digest.update(fs::read(&path).with_context(|| format!("reading {}", path.display()))?);
        }
        let digest: [u8; 32] = digest.finalize().into();
        let short = u64::from_be_bytes([
            0, 0, digest[0], digest[1], digest[2], digest[3], digest[4], digest[5],
        ]);
        Ok(self.bin.join(format!("{}-{short:012x}", tool.module())))
    }

    /// Waits until no other process builds. The lock ends with the file, whichever way its owner ends.
    fn lock(&self) -> Result<File> {
        let path = self.bin.join(".lock");
        let lock = File::create(&path).with_context(|| format!("making {}", path.display()))?;
        if lock.try_lock().is_err() {
            eprintln!("testbed: another process is building; waiting for it");
            lock.lock()
                .with_context(|| format!("locking {}", path.display()))?;
        }
        Ok(lock)
    }

    fn build(&self, tool: Tool, path: &Path) -> Result<()> {
        eprintln!("testbed: building {} ({})", tool.name(), tool.patience());
        let began = Instant::now();
        // A file under its final name is always a whole one.
        let unfinished = path.with_extension("unfinished");
        let module = self.home.join(tool.folder());
        let status = Command::new(&self.go)
            .current_dir(&module)
            .args(["build", "-mod=readonly", "-trimpath", "-buildvcs=false"])
            .args(tool.build_flags())
            .arg(format!("-ldflags={}", linker_flags(tool, &module)?))
            .arg("-o")
            .arg(&unfinished)
            .arg(tool.package())
            // Pure Go: no C compiler is needed. A workspace file above must not replace what is pinned here.
            .envs([("CGO_ENABLED", "0"), ("GOWORK", "off")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .context("running `go`: the testbed builds Kubernetes from source and needs Go in PATH")?;
        if !status.success() {
            bail!(
                "building {} failed ({status}); what `go build` said is above",
                tool.name()
            );
        }
        ensure!(
            unfinished.exists(),
            "`go build` succeeded and left no {}",
            unfinished.display()
        );
        fs::rename(&unfinished, path).with_context(|| format!("moving {} into place", tool.name()))?;
        eprintln!("testbed: built {} in {:.0?}", tool.name(), began.elapsed());
        Ok(())
    }

    /// Removes what earlier versions of the module left: some 400 MB each. A leftover harms nobody.
    fn remove_older(&self, tool: Tool, current: &Path) {
        let prefix = format!("{}-", tool.module());
        for entry in fs::read_dir(&self.bin).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(&prefix) && entry.path() != current {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

/// What a module's programs depend on: what it pins, and its own sources.
fn sources(module: &Path) -> Result<Vec<PathBuf>> {
    let mut sources = vec![module.join("go.mod"), module.join("go.sum")];
    for entry in fs::read_dir(module).with_context(|| format!("reading {}", module.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // Tests are no part of a program.
        if name.ends_with(".go") && !name.ends_with("_test.go") {
            sources.push(path);
        }
    }
    sources.sort_unstable();
    Ok(sources)
}

/// Leaves out debug information, and tells Kubernetes its version, which its own release build does the same way.
fn linker_flags(tool: Tool, module: &Path) -> Result<String> {
    if tool.module() != "kubernetes" {
        return Ok("-s -w".to_owned());
    }
    let version = kubernetes_version(&fs::read_to_string(module.join("go.mod"))?)?;
    let mut numbers = version.trim_start_matches('v').split('.');
    let (major, minor) = (
        numbers.next().unwrap_or_default(),
        numbers.next().unwrap_or_default(),
    );
    let package = "k8s.io/component-base/version";
    Ok(format!(
        "-s -w -X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor} \
         -X {package}.gitCommit="
    ))
}

fn kubernetes_version(go_mod: &str) -> Result<String> {
    go_mod
        .lines()
        .filter_map(|line| {
            line.trim()
                .trim_start_matches("require ")
                .strip_prefix("k8s.io/kubernetes ")
        })
        .filter_map(|rest| rest.split_whitespace().next())
        .map(str::to_owned)
        .next()
        .context("the go.mod of the kubernetes tools requires no k8s.io/kubernetes")
}

#[cfg(test)]
mod tests {
    use std::thread;

    use tempfile::TempDir;

    use super::*;

    /// A toolbox whose `go` notes that it ran, and builds by making the file it was asked for.
    fn toolbox() -> Result<(TempDir, Toolbox)> {
        let dir = TempDir::new()?;
        let toolbox = Toolbox {
            go: dir.path().join("go"),
            home: dir.path().to_owned(),
            bin: dir.path().join("bin"),
        };
        let runs = dir.path().join("runs").display().to_string();
        let build = r#"while [ "$1" != -o ]; do shift; done; echo x > "$2""#;
        script(&toolbox.go, &format!("echo \"$@\" >> {runs}\n{build}"))?;
        for module in ["tools/kubernetes", "tools/buf", "upstream"] {
            let module = toolbox.home.join(module);
            fs::create_dir_all(&module)?;
            fs::write(module.join("go.mod"), "require k8s.io/kubernetes v1.36.3\n")?;
            fs::write(module.join("go.sum"), "")?;
        }
        Ok((dir, toolbox))
    }

    /// Another process writes the script: while a thread of ours had it open, a child that some other test is
    /// just starting would hold it open too, and the system does not run a file that is being written.
    fn script(path: &Path, text: &str) -> Result<()> {
        let write = r#"printf '#!/bin/sh\n%s\n' "$2" > "$1" && chmod +x "$1""#;
        let status = Command::new("sh")
            .args(["-c", write, "sh"])
            .arg(path)
            .arg(text)
            .status()?;
        ensure!(status.success(), "writing {}", path.display());
        Ok(())
    }

    fn runs(dir: &TempDir) -> usize {
        fs::read_to_string(dir.path().join("runs")).map_or(0, |runs| runs.lines().count())
    }

    #[test]
    fn a_tool_is_built_once_however_many_ask_for_it() -> Result<()> {
        let (dir, toolbox) = toolbox()?;
        let paths = thread::scope(|scope| {
            let asking: Vec<_> = (0..8).map(|_| scope.spawn(|| toolbox.get(Tool::Buf))).collect();
            asking
                .into_iter()
                .map(|thread| thread.join().expect("no panic"))
                .collect::<Result<Vec<_>>>()
        })?;
        assert_eq!(runs(&dir), 1);
        assert!(paths.iter().all(|path| path == &paths[0]));
        assert_eq!(fs::read_to_string(&paths[0])?, "x\n");
        Ok(())
    }

    #[test]
    fn a_changed_module_is_built_anew_and_the_old_one_removed() -> Result<()> {
        let (dir, toolbox) = toolbox()?;
        let kubectl = toolbox.get(Tool::Kubectl)?;
        let old = toolbox.get(Tool::Buf)?;
        fs::write(toolbox.home.join("tools/buf/go.sum"), "changed")?;
        let new = toolbox.get(Tool::Buf)?;
        assert_eq!(runs(&dir), 3);
        assert!(
            new.exists() && !old.exists(),
            "{} replaces {}",
            new.display(),
            old.display()
        );
        assert!(kubectl.exists(), "another module's tools stay");
        Ok(())
    }

    #[test]
    fn a_program_is_built_anew_when_its_own_source_changes_but_not_its_tests() -> Result<()> {
        let (dir, toolbox) = toolbox()?;
        let module = toolbox.home.join("upstream");
        fs::write(module.join("main.go"), "package main")?;
        let old = toolbox.get(Tool::Upstream)?;
        fs::write(module.join("main_test.go"), "package main")?;
        assert_eq!(toolbox.get(Tool::Upstream)?, old);
        fs::write(module.join("main.go"), "package main // changed")?;
        assert_ne!(toolbox.get(Tool::Upstream)?, old);
        assert_eq!(runs(&dir), 2);
        let built = fs::read_to_string(dir.path().join("runs"))?;
        assert!(built.lines().all(|run| run.contains("-cover ")), "{built}");
        Ok(())
    }

    #[test]
    fn what_is_measured_counts_no_coverage() -> Result<()> {
        let (dir, toolbox) = toolbox()?;
        let covered = toolbox.get(Tool::Upstream)?;
        let plain = toolbox.get(Tool::UpstreamPlain)?;
        assert!(
            covered.exists() && plain.exists(),
            "one does not replace the other"
        );
        let built = fs::read_to_string(dir.path().join("runs"))?;
        let covers: Vec<_> = built.lines().map(|run| run.contains("-cover")).collect();
        assert_eq!(covers, [true, false], "{built}");
        Ok(())
    }

    #[test]
    fn a_failed_build_leaves_nothing_that_looks_built() -> Result<()> {
        let (_dir, toolbox) = toolbox()?;
        script(&toolbox.go, "exit 1")?;
        let error = toolbox.get(Tool::Buf).expect_err("go fails");
        assert!(error.to_string().contains("building buf failed"), "{error:#}");
        assert!(!toolbox.folder(Tool::Buf)?.join("buf").exists());
        Ok(())
    }

    #[test]
    fn a_machine_without_go_is_told_so() -> Result<()> {
        let (_dir, mut toolbox) = toolbox()?;
        toolbox.go = toolbox.bin.join("no-such-go");
        let error = toolbox.get(Tool::Buf).expect_err("there is no go");
        assert!(format!("{error:#}").contains("needs Go in PATH"), "{error:#}");
        Ok(())
    }

    #[test]
    fn upstream_is_the_kubernetes_that_the_control_plane_runs() -> Result<()> {
        let home = Toolbox::default().home;
        let pinned =
            |tool: Tool| kubernetes_version(&fs::read_to_string(home.join(tool.folder()).join("go.mod"))?);
        assert_eq!(pinned(Tool::Upstream)?, pinned(Tool::KubeApiserver)?);
        Ok(())
    }

    #[test]
    fn kubernetes_is_told_the_version_that_its_module_pins() -> Result<()> {
        let module = Toolbox::default().home.join("tools/kubernetes");
        let version = kubernetes_version(&fs::read_to_string(module.join("go.mod"))?)?;
        let flags = linker_flags(Tool::Kubectl, &module)?;
        assert!(
            flags.contains(&format!("version.gitVersion={version}")),
            "{flags}"
        );
        let minor = version.split('.').nth(1).context("a version has a minor part")?;
        assert!(flags.contains(&format!("version.gitMinor={minor}")), "{flags}");
        Ok(())
    }
}
