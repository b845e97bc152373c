//! The programs that the testbed runs. Each is built or unpacked once and kept.
//!
//! Each folder under `tools/` is a Go module that pins programs and, through its `go.sum`, all their sources;
//! `tools/otelcol` and `upstream/` contain their own programs. The path of a built program contains a digest of
//! `go.mod`, `go.sum` and the module's own sources, so an unchanged program is never built again.
//!
//! A few programs come from Debian packages; see [`debian`].

mod debian;

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};

/// The environment variable with the folder for built programs, instead of `testbed/bin`.
const BIN: &str = "NODEWISE_TESTBED_BIN";

/// A program that the testbed runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tool {
    /// The data store of the apiserver.
    Etcd,
    /// The Kubernetes API.
    KubeApiserver,
    /// Kubernetes' own controllers.
    KubeControllerManager,
    /// The scheduler.
    KubeScheduler,
    /// The command line client.
    Kubectl,
    /// The fake kubelets.
    Kwok,
    /// The OpenTelemetry Collector.
    Otelcol,
    /// Scrapes metrics and answers queries.
    Prometheus,
    /// Checks and tests Prometheus rules.
    Promtool,
    /// Lints the Protobuf files, and generates the stubs of the Go client.
    Buf,
    /// Lints the Go client.
    GolangciLint,
    /// Renders and lints the Helm chart.
    Helm,
    /// Builds images without a daemon.
    Buildah,
    /// Runs the content of an image in a sandbox.
    Bwrap,
    /// Runs programs for 64-bit ARM.
    QemuAarch64,
    /// Checks GitHub workflows.
    Actionlint,
    /// Finds known vulnerabilities in Go modules.
    Govulncheck,
    /// Runs single syncs of Kubernetes' own workload controllers; see `upstream/README.md`. It writes coverage data to
    /// `$GOCOVERDIR`, and warns on standard error if that is not set.
    Upstream,
    /// The same without coverage, whose counters take time. For measurements.
    UpstreamPlain,
    /// Kubernetes' own end-to-end suite.
    KubernetesE2e,
}

impl Tool {
    /// All tools, in the best order for building.
    pub const ALL: [Self; 20] = [
        Self::Etcd,
        Self::KubeApiserver,
        Self::KubeControllerManager,
        Self::KubeScheduler,
        Self::Kubectl,
        Self::Kwok,
        Self::Otelcol,
        Self::Prometheus,
        Self::Promtool,
        Self::Buf,
        Self::GolangciLint,
        Self::Helm,
        Self::Buildah,
        Self::Bwrap,
        Self::QemuAarch64,
        Self::Actionlint,
        Self::Govulncheck,
        Self::Upstream,
        Self::UpstreamPlain,
        Self::KubernetesE2e,
    ];

    /// The name of the program and of its file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::KubeScheduler => "kube-scheduler",
            Self::Kubectl => "kubectl",
            Self::Kwok => "kwok",
            Self::Otelcol => "otelcol",
            Self::Prometheus => "prometheus",
            Self::Promtool => "promtool",
            Self::Buf => "buf",
            Self::GolangciLint => "golangci-lint",
            Self::Helm => "helm",
            Self::Buildah => "buildah",
            Self::Bwrap => "bwrap",
            Self::QemuAarch64 => "qemu-aarch64-static",
            Self::Actionlint => "actionlint",
            Self::Govulncheck => "govulncheck",
            Self::Upstream => "upstream",
            Self::UpstreamPlain => "upstream-plain",
            Self::KubernetesE2e => "e2e.test",
        }
    }

    /// Whether `testbed build` builds the tool. Kubernetes' end-to-end suite takes minutes to build and only `make
    /// upstream-e2e` uses it, so it is built on first use.
    #[must_use]
    pub fn is_built_ahead(self) -> bool {
        self != Self::KubernetesE2e
    }

    /// The source of the program.
    fn source(self) -> Source {
        match self {
            Self::Etcd => Source::go("tools/kubernetes", "go.etcd.io/etcd/server/v3"),
            Self::KubeApiserver => Source::go("tools/kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"),
            Self::KubeControllerManager => Source::go(
                "tools/kubernetes",
                "k8s.io/kubernetes/cmd/kube-controller-manager",
            ),
            Self::KubeScheduler => Source::go("tools/kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler"),
            Self::Kubectl => Source::go("tools/kubernetes", "k8s.io/kubernetes/cmd/kubectl"),
            Self::Kwok => Source::go("tools/kwok", "sigs.k8s.io/kwok/cmd/kwok"),
            Self::Otelcol => Source::go("tools/otelcol", "."),
            Self::Prometheus | Self::Promtool => Source::debian("prometheus"),
            Self::Buf => Source::go("tools/buf", "github.com/bufbuild/buf/cmd/buf"),
            Self::GolangciLint => Source::go(
                "tools/golangci-lint",
                "github.com/golangci/golangci-lint/v2/cmd/golangci-lint",
            ),
            Self::Helm => Source::go("tools/helm", "helm.sh/helm/v3/cmd/helm"),
            Self::Buildah => Source::go("tools/buildah", "github.com/containers/buildah/cmd/buildah"),
            Self::Bwrap => Source::debian("bubblewrap"),
            Self::QemuAarch64 => Source::debian("qemu-user-static"),
            Self::Actionlint => Source::go("tools/actionlint", "github.com/rhysd/actionlint/cmd/actionlint"),
            Self::Govulncheck => Source::go("tools/govulncheck", "golang.org/x/vuln/cmd/govulncheck"),
            Self::Upstream | Self::UpstreamPlain => Source::go("upstream", "."),
            Self::KubernetesE2e => Source::GoTest {
                folder: "tools/kubernetes-e2e",
                package: "k8s.io/kubernetes/test/e2e",
            },
        }
    }

    /// Additional flags of `go build`.
    fn build_flags(self) -> &'static [&'static str] {
        match self {
            Self::Upstream => &[
                "-cover",
                // `.` is needed: Go writes coverage data only if the `main` package is covered too.
                "-coverpkg=.,k8s.io/kubernetes/pkg/controller,\
                 k8s.io/kubernetes/pkg/controller/daemon,k8s.io/kubernetes/pkg/controller/daemon/util,\
                 k8s.io/kubernetes/pkg/controller/replicaset,\
                 k8s.io/kubernetes/pkg/controller/deployment,k8s.io/kubernetes/pkg/controller/deployment/util",
            ],
            // The excluded parts need C libraries. With `cni`, buildah needs no network program as long as builds run
            // no commands.
            Self::Buildah => &["-tags=cni,containers_image_openpgp,exclude_graphdriver_btrfs"],
            _ => &[],
        }
    }

    /// How long a first build takes on two cores.
    fn build_time(self) -> &'static str {
        match self {
            Self::KubeApiserver => "several minutes the first time",
            Self::KubernetesE2e => "three to eight minutes the first time",
            Self::Etcd
            | Self::KubeScheduler
            | Self::Kubectl
            | Self::Buildah
            | Self::Actionlint
            | Self::Govulncheck => "up to a minute the first time",
            Self::GolangciLint => "some three minutes the first time",
            Self::Prometheus | Self::Promtool | Self::Bwrap | Self::QemuAarch64 => {
                "some seconds the first time"
            }
            Self::KubeControllerManager
            | Self::Kwok
            | Self::Otelcol
            | Self::Buf
            | Self::Helm
            | Self::Upstream
            | Self::UpstreamPlain => "a minute or two the first time",
        }
    }

    /// The path of the program. It is built first if necessary, which can take minutes.
    ///
    /// Any number of processes may call this at the same time: one builds, the others wait. Progress is printed on
    /// standard error.
    ///
    /// # Errors
    /// Go is missing, a module or a package cannot be downloaded, or the build fails.
    pub fn path(self) -> Result<PathBuf> {
        Toolbox::default().get(self)
    }
}

/// The source of a program.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// A program from a Go module that pins it.
    Go {
        /// The folder of the module, below the toolbox's home.
        folder: &'static str,
        /// The `main` package.
        package: &'static str,
    },
    /// The test binary of a package, from a Go module that pins it.
    GoTest {
        /// The folder of the module, below the toolbox's home.
        folder: &'static str,
        /// The package with the tests.
        package: &'static str,
    },
    /// A program in `PATH`, or else from a Debian package.
    Debian {
        /// The name of the package.
        package: &'static str,
    },
}

impl Source {
    const fn go(folder: &'static str, package: &'static str) -> Self {
        Self::Go { folder, package }
    }

    const fn debian(package: &'static str) -> Self {
        Self::Debian { package }
    }
}

/// How and where tools are built.
#[derive(Clone, Debug)]
pub(crate) struct Toolbox {
    /// The `go` command.
    go: PathBuf,
    /// The commands of Debian's package manager.
    apt: debian::Apt,
    /// The search path for installed programs, like `PATH`.
    search: OsString,
    /// The folder that contains the module folders; see [`Source::Go`].
    home: PathBuf,
    /// The folder for built programs.
    bin: PathBuf,
}

impl Default for Toolbox {
    /// Uses commands from `PATH`, the modules of this crate, and `$NODEWISE_TESTBED_BIN` or this crate's `bin/`.
    fn default() -> Self {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let bin = std::env::var_os(BIN).map_or_else(|| here.join("bin"), PathBuf::from);
        Self {
            go: "go".into(),
            apt: debian::Apt::default(),
            search: std::env::var_os("PATH").unwrap_or_default(),
            home: here.to_owned(),
            bin,
        }
    }
}

impl Toolbox {
    /// The path of `tool`, which is built first if necessary. See [`Tool::path`].
    fn get(&self, tool: Tool) -> Result<PathBuf> {
        match tool.source() {
            Source::Go { folder, package } => self.built(tool, folder, package, &["build"]),
            // Tests of another project need no `go vet`.
            Source::GoTest { folder, package } => {
                self.built(tool, folder, package, &["test", "-c", "-vet=off"])
            }
            Source::Debian { package } => self.unpacked(tool, package),
        }
    }

    /// The path of a program from a Go module, which is built with `go COMMAND` first if necessary.
    fn built(&self, tool: Tool, module: &str, package: &str, command: &[&str]) -> Result<PathBuf> {
        let source = self.home.join(module);
        let module = module.trim_start_matches("tools/");
        let folder = self.folder(module, &source)?;
        let path = folder.join(tool.name());
        if path.exists() {
            return Ok(path);
        }
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        let lock = self.lock()?;
        // Another process may have built it in the meantime.
        if !path.exists() {
            self.build(tool, &source, package, command, &path)?;
            self.remove_older(module, &folder);
        }
        drop(lock);
        Ok(path)
    }

    /// The path of a program from PATH or a Debian package, in any version.
    fn unpacked(&self, tool: Tool, package: &str) -> Result<PathBuf> {
        let installed = std::env::split_paths(&self.search).map(|folder| folder.join(tool.name()));
        if let Some(path) = installed.into_iter().find(|path| path.is_file()) {
            return Ok(path);
        }
        let folder = self.bin.join(format!("debian-{package}"));
        let path = folder.join("usr/bin").join(tool.name());
        if path.exists() {
            return Ok(path);
        }
        fs::create_dir_all(&self.bin).with_context(|| format!("making {}", self.bin.display()))?;
        let lock = self.lock()?;
        if !folder.exists() {
            eprintln!("testbed: unpacking {package} ({})", tool.build_time());
            self.apt.unpack(package, &folder).with_context(|| {
                format!("there is no {} in PATH, and no Debian package of it", tool.name())
            })?;
        }
        drop(lock);
        ensure!(
            path.exists(),
            "the Debian package {package} has no {}",
            path.display()
        );
        Ok(path)
    }

    /// The folder for this version of a module, whose files are in `source`.
    fn folder(&self, module: &str, source: &Path) -> Result<PathBuf> {
        let mut digest = Sha256::new();
        for path in sources(source)? {
            digest.update(fs::read(&path).with_context(|| format!("reading {}", path.display()))?);
        }
        let digest: [u8; 32] = digest.finalize().into();
        let short = u64::from_be_bytes([
            0, 0, digest[0], digest[1], digest[2], digest[3], digest[4], digest[5],
        ]);
        Ok(self.bin.join(format!("{module}-{short:012x}")))
    }

    /// Waits until no other process builds. The lock is released when the file is closed, even by a crash.
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

    fn build(&self, tool: Tool, module: &Path, package: &str, command: &[&str], path: &Path) -> Result<()> {
        eprintln!("testbed: building {} ({})", tool.name(), tool.build_time());
        let began = Instant::now();
        // Built under a temporary name, so that a file with the final name is always complete.
        let unfinished = path.with_extension("unfinished");
        let status = Command::new(&self.go)
            .current_dir(module)
            .args(command)
            .args(["-mod=readonly", "-trimpath", "-buildvcs=false"])
            .args(tool.build_flags())
            .arg(format!("-ldflags={}", linker_flags(module)?))
            .arg("-o")
            .arg(&unfinished)
            .arg(package)
            // Without cgo no C compiler is needed. A `go.work` file in a parent folder must not override the pinned
            // versions.
            .envs([("CGO_ENABLED", "0"), ("GOWORK", "off")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .context("running `go`: the testbed builds Kubernetes from source and needs Go in PATH")?;
        if !status.success() {
            bail!(
                "building {} failed ({status}); what `go` said is above",
                tool.name()
            );
        }
        ensure!(
            unfinished.exists(),
            "`go` succeeded and left no {}",
            unfinished.display()
        );
        fs::rename(&unfinished, path).with_context(|| format!("moving {} into place", tool.name()))?;
        eprintln!("testbed: built {} in {:.0?}", tool.name(), began.elapsed());
        Ok(())
    }

    /// Removes the programs of earlier versions of the module, some 400 MB each. Failures are ignored.
    fn remove_older(&self, module: &str, current: &Path) {
        let prefix = format!("{module}-");
        for entry in fs::read_dir(&self.bin).into_iter().flatten().flatten() {
            let name = entry.file_name();
            // The name of a module can be a prefix of another name (kubernetes, kubernetes-e2e); a digest has no
            // hyphen.
            let is_version = |name: &str| {
                name.strip_prefix(&prefix)
                    .is_some_and(|digest| !digest.contains('-'))
            };
            if is_version(&name.to_string_lossy()) && entry.path() != current {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

/// The files that determine a module's programs: `go.mod`, `go.sum` and its own sources.
fn sources(module: &Path) -> Result<Vec<PathBuf>> {
    let mut sources = vec![module.join("go.mod"), module.join("go.sum")];
    for entry in fs::read_dir(module).with_context(|| format!("reading {}", module.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // Tests are not part of a program.
        if name.ends_with(".go") && !name.ends_with("_test.go") {
            sources.push(path);
        }
    }
    sources.sort_unstable();
    Ok(sources)
}

/// Leaves out debug information, and sets Kubernetes' version as its own release build does.
fn linker_flags(module: &Path) -> Result<String> {
    if !["tools/kubernetes", "tools/kubernetes-e2e"]
        .iter()
        .any(|kubernetes| module.ends_with(kubernetes))
    {
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

    /// A toolbox with a fake `go` that logs its calls and creates the output file.
    fn toolbox() -> Result<(TempDir, Toolbox)> {
        let dir = TempDir::new()?;
        let toolbox = Toolbox {
            go: dir.path().join("go"),
            apt: debian::Apt {
                get: dir.path().join("apt-get"),
                unpack: dir.path().join("dpkg-deb"),
            },
            search: dir.path().join("installed").into(),
            home: dir.path().to_owned(),
            bin: dir.path().join("bin"),
        };
        let runs = dir.path().join("runs").display().to_string();
        let build = r#"while [ "$1" != -o ]; do shift; done; echo x > "$2""#;
        script(&toolbox.go, &format!("echo \"$@\" >> {runs}\n{build}"))?;
        for module in [
            "tools/kubernetes",
            "tools/kubernetes-e2e",
            "tools/buf",
            "upstream",
        ] {
            let module = toolbox.home.join(module);
            fs::create_dir_all(&module)?;
            fs::write(module.join("go.mod"), "require k8s.io/kubernetes v1.36.3\n")?;
            fs::write(module.join("go.sum"), "")?;
        }
        Ok((dir, toolbox))
    }

    /// Another process writes the script. If this process had the file open for writing, a child process that another
    /// test starts at that moment would inherit it, and the system does not execute a file that is open for writing.
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

    /// A fake `apt-get` that finds the package only after an `update`, and a fake `dpkg-deb`.
    fn debian(toolbox: &Toolbox, dir: &TempDir) -> Result<()> {
        let runs = dir.path().join("runs").display().to_string();
        let get = format!(
            r#"echo apt-get >> {runs}
case "$*" in
*update) echo update >> {runs}; mkdir -p "$(dirname "$0")/lists" ;;
*) [ -d "$(dirname "$0")/lists" ] && echo x > prometheus_2_all.deb ;;
esac"#
        );
        script(&toolbox.apt.get, &get)?;
        let unpack =
            r#"[ -s "$2" ] && mkdir -p "$3/usr/bin" && touch "$3/usr/bin/prometheus" "$3/usr/bin/promtool""#;
        script(&toolbox.apt.unpack, unpack)
    }

    #[test]
    fn debian_package_is_unpacked_once() -> Result<()> {
        let (dir, toolbox) = toolbox()?;
        debian(&toolbox, &dir)?;
        let prometheus = toolbox.get(Tool::Prometheus)?;
        // download, update, download, and dpkg-deb.
        assert_eq!(runs(&dir), 4);
        let promtool = toolbox.get(Tool::Promtool)?;
        assert_eq!(runs(&dir), 4);
        assert_eq!(prometheus.parent(), promtool.parent());
        let kept: Vec<_> = fs::read_dir(&toolbox.bin)?
            .map(|entry| entry.map(|entry| entry.file_name()))
            .collect::<Result<_, _>>()?;
        assert_eq!(kept.len(), 2, "nothing but the package and the lock: {kept:?}");
        Ok(())
    }

    #[test]
    fn installed_program_is_used() -> Result<()> {
        let (dir, toolbox) = toolbox()?;
        let installed = dir.path().join("installed");
        fs::create_dir(&installed)?;
        fs::write(installed.join("promtool"), "")?;
        assert_eq!(toolbox.get(Tool::Promtool)?, installed.join("promtool"));
        assert!(
            toolbox.get(Tool::Prometheus).is_err(),
            "that one is not installed"
        );
        Ok(())
    }

    #[test]
    fn missing_apt_is_reported() -> Result<()> {
        let (_dir, toolbox) = toolbox()?;
        let error = toolbox.get(Tool::Prometheus).expect_err("there is no apt-get");
        let said = format!("{error:#}");
        assert!(said.contains("no prometheus in PATH"), "{said}");
        assert!(said.contains("install prometheus"), "{said}");
        Ok(())
    }

    fn runs(dir: &TempDir) -> usize {
        fs::read_to_string(dir.path().join("runs")).map_or(0, |runs| runs.lines().count())
    }

    #[test]
    fn concurrent_requests_build_a_tool_once() -> Result<()> {
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
    fn changed_module_is_rebuilt_and_old_version_removed() -> Result<()> {
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
    fn changed_source_causes_a_rebuild_but_changed_tests_do_not() -> Result<()> {
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
    fn measured_program_is_built_without_coverage() -> Result<()> {
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
    fn e2e_suite_is_a_test_binary_and_not_built_ahead() -> Result<()> {
        let (dir, toolbox) = toolbox()?;
        let suite = toolbox.get(Tool::KubernetesE2e)?;
        assert!(suite.ends_with("e2e.test"), "{}", suite.display());
        let built = fs::read_to_string(dir.path().join("runs"))?;
        assert!(built.starts_with("test -c -vet=off "), "{built}");
        assert!(built.ends_with(" k8s.io/kubernetes/test/e2e\n"), "{built}");
        let later: Vec<_> = Tool::ALL
            .into_iter()
            .filter(|tool| !tool.is_built_ahead())
            .collect();
        assert_eq!(later, [Tool::KubernetesE2e]);
        Ok(())
    }

    #[test]
    fn removal_ignores_modules_with_a_common_prefix() -> Result<()> {
        let (_dir, toolbox) = toolbox()?;
        let suite = toolbox.get(Tool::KubernetesE2e)?;
        let old = toolbox.get(Tool::Kubectl)?;
        fs::write(toolbox.home.join("tools/kubernetes/go.sum"), "changed")?;
        toolbox.get(Tool::Kubectl)?;
        assert!(!old.exists(), "{} was replaced", old.display());
        assert!(suite.exists(), "{} is of another module", suite.display());
        Ok(())
    }

    #[test]
    fn failed_build_leaves_no_program() -> Result<()> {
        let (_dir, toolbox) = toolbox()?;
        script(&toolbox.go, "exit 1")?;
        let error = toolbox.get(Tool::Buf).expect_err("go fails");
        assert!(error.to_string().contains("building buf failed"), "{error:#}");
        let folder = toolbox.folder("buf", &toolbox.home.join("tools/buf"))?;
        assert!(!folder.join("buf").exists());
        Ok(())
    }

    #[test]
    fn missing_go_is_reported() -> Result<()> {
        let (_dir, mut toolbox) = toolbox()?;
        toolbox.go = toolbox.bin.join("no-such-go");
        let error = toolbox.get(Tool::Buf).expect_err("there is no go");
        assert!(format!("{error:#}").contains("needs Go in PATH"), "{error:#}");
        Ok(())
    }

    #[test]
    fn all_modules_pin_the_same_kubernetes() -> Result<()> {
        let home = Toolbox::default().home;
        let pinned =
            |module: &str| kubernetes_version(&fs::read_to_string(home.join(module).join("go.mod"))?);
        assert_eq!(pinned("upstream")?, pinned("tools/kubernetes")?);
        assert_eq!(pinned("tools/kubernetes-e2e")?, pinned("tools/kubernetes")?);
        Ok(())
    }

    #[test]
    fn linker_flags_have_the_pinned_kubernetes_version() -> Result<()> {
        for folder in ["tools/kubernetes", "tools/kubernetes-e2e"] {
            let module = Toolbox::default().home.join(folder);
            let version = kubernetes_version(&fs::read_to_string(module.join("go.mod"))?)?;
            let flags = linker_flags(&module)?;
            assert!(
                flags.contains(&format!("version.gitVersion={version}")),
                "{folder}: {flags}"
            );
            let minor = version.split('.').nth(1).context("a version has a minor part")?;
            assert!(
                flags.contains(&format!("version.gitMinor={minor}")),
                "{folder}: {flags}"
            );
        }
        Ok(())
    }
}
