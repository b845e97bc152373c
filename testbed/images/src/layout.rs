//! Reads an image from an OCI layout, as a container engine does.
//!
//! The format: <https://github.com/opencontainers/image-spec>.

use std::{
    collections::BTreeMap,
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, de::DeserializeOwned};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

/// The environment variable with the folder of the layouts, one per image.
const IMAGES: &str = "IMAGES";

/// An unpacked image for one architecture. Its files are deleted when it is dropped.
#[derive(Debug)]
pub struct Image {
    config: Config,
    tag: String,
    files: Vec<String>,
    root: TempDir,
}

/// The configuration of an image.
#[derive(Debug, Deserialize)]
pub struct Config {
    /// The processor architecture, by Go's names.
    pub architecture: String,
    /// The operating system.
    pub os: String,
    /// The settings for running it.
    pub config: Settings,
}

/// How to run an image.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Settings {
    /// The user and group.
    pub user: String,
    /// The program.
    pub entrypoint: Vec<String>,
    /// The default arguments.
    #[serde(default)]
    pub cmd: Vec<String>,
    /// The labels.
    pub labels: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
struct Index {
    manifests: Vec<Descriptor>,
}

#[derive(Debug, Deserialize)]
struct Manifest {
    config: Descriptor,
    layers: Vec<Descriptor>,
}

#[derive(Debug, Deserialize)]
struct Descriptor {
    digest: String,
    platform: Option<Platform>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
struct Platform {
    architecture: String,
}

impl Image {
    /// Unpacks the image with this name for this architecture.
    pub fn open(name: &str, architecture: &str) -> Result<Self> {
        let layout = Layout(folder()?.join(name));
        layout
            .image(architecture)
            .with_context(|| format!("reading {} for {architecture}", layout.0.display()))
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The tag.
    #[must_use]
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// All files and folders, each as `MODE OWNER/GROUP NAME`.
    #[must_use]
    pub fn files(&self) -> &[String] {
        &self.files
    }

    /// The folder with the files.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.root.path()
    }
}

/// The `CycloneDX` bill of materials next to the image.
pub fn bill_of_materials(name: &str) -> Result<serde_json::Value> {
    let path = folder()?.join(format!("{name}.cdx.json"));
    let bytes = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
    serde_json::from_slice(&bytes).with_context(|| format!("reading {}", path.display()))
}

fn folder() -> Result<PathBuf> {
    let images = env::var_os(IMAGES);
    let images =
        images.with_context(|| format!("{IMAGES} does not say where they are: run `make images-test`"))?;
    Ok(images.into())
}

/// The folder of an OCI layout.
struct Layout(PathBuf);

impl Layout {
    fn image(&self, architecture: &str) -> Result<Image> {
        let index = fs::read(self.0.join("index.json")).context("reading index.json")?;
        let index: Index = serde_json::from_slice(&index).context("reading index.json")?;
        let [tagged] = index.manifests.as_slice() else {
            anyhow::bail!("one image, not {}", index.manifests.len());
        };
        let tag = tagged.annotations.get("org.opencontainers.image.ref.name");
        let platforms: Index = self.json(tagged)?;
        let manifest = platforms
            .manifests
            .iter()
            .find(|it| {
                it.platform
                    .as_ref()
                    .is_some_and(|it| it.architecture == architecture)
            })
            .context("there is none")?;
        let manifest: Manifest = self.json(manifest)?;
        let root = TempDir::new().context("making a temporary folder")?;
        let mut files = Vec::new();
        for layer in &manifest.layers {
            let layer = self.blob(layer)?;
            files.extend(
                tar(&["--list", "--verbose", "--numeric-owner"], &layer)?
                    .lines()
                    .map(entry),
            );
            tar(
                &["--extract", "--directory", &root.path().display().to_string()],
                &layer,
            )?;
        }
        Ok(Image {
            config: self.json(&manifest.config)?,
            tag: tag.context("there is no tag")?.clone(),
            files,
            root,
        })
    }

    fn json<T: DeserializeOwned>(&self, descriptor: &Descriptor) -> Result<T> {
        let bytes = fs::read(self.blob(descriptor)?)?;
        serde_json::from_slice(&bytes).with_context(|| format!("reading {}", descriptor.digest))
    }

    /// The path of the blob with this digest. Fails unless its content has the digest.
    fn blob(&self, descriptor: &Descriptor) -> Result<PathBuf> {
        let (_, hex) = descriptor.digest.split_once("sha256:").context("not a SHA-256")?;
        let path = self.0.join("blobs/sha256").join(hex);
        let bytes = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        let found = Sha256::digest(&bytes)
            .iter()
            .fold(String::new(), |mut hex, byte| {
                let _ = write!(hex, "{byte:02x}");
                hex
            });
        ensure!(found == hex, "{} has the digest {found}", path.display());
        Ok(path)
    }
}

fn tar(arguments: &[&str], archive: &Path) -> Result<String> {
    let output = Command::new("tar")
        .args(arguments)
        .arg("--file")
        .arg(archive)
        .output()
        .context("running tar")?;
    ensure!(
        output.status.success(),
        "tar failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).context("what tar says")
}

/// Mode, owner and name in a line such as `-rwxr-xr-x 0/0  8388608 2026-01-01 00:00 nodewise`.
fn entry(line: &str) -> String {
    let words: Vec<_> = line.split_whitespace().collect();
    [0, 1, 5].map(|word| *words.get(word).unwrap_or(&"?")).join(" ")
}
