//! Keeps plans in a file, with their digest and what they were computed from.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path};

use anyhow::{Context as _, bail, ensure};
use jiff::Timestamp;
use nodewise_proto::v1;
use prost::Message as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::{
    args::PlanArgs,
    flags::Profile,
    input::{Cluster, Served},
    kind::Kind,
    output_file::OutputFile,
    request::RequestFactory,
};

/// The format of the file. Another one is refused.
const FORMAT: &str = "nodewise.dev/kept-plan/v1";
/// The formats of all versions begin with this.
const FORMATS: &str = "nodewise.dev/kept-plan/";

/// The file.
#[derive(Serialize, Deserialize)]
struct File {
    format: String,
    /// `sha256:` and the digest of `content`, as JSON with sorted keys and without spaces.
    digest: String,
    content: Value,
}

/// What says that a file is of this format.
#[derive(Deserialize)]
struct Head {
    format: String,
}

/// The plans.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Content {
    /// The time for which was planned.
    pub(super) time: Timestamp,
    /// The version of the program.
    pub(super) version: String,
    /// The files, or the URL of the apiserver.
    pub(super) source: String,
    pub(super) profile: String,
    pub(super) workloads: Vec<Kept>,
}

/// A plan, and what it was computed from.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Kept {
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) resource_version: String,
    pub(super) generation: i64,
    /// The digest of the spec that was planned for.
    pub(super) spec_digest: String,
    /// The digest of the snapshot without its time.
    pub(super) snapshot_digest: String,
    /// The digest of each node as the plan sees it. Only a DaemonSet has nodes.
    pub(super) nodes: BTreeMap<String, String>,
    /// The digest of the pods as the plan sees them.
    pub(super) pods_digest: String,
    pub(super) plan: v1::Plan,
}

impl Kept {
    /// `DaemonSet kube-system/agent`.
    pub(super) fn title(&self) -> String {
        format!("{} {}/{}", self.kind, self.namespace, self.name)
    }

    pub(super) fn is_same_workload(&self, other: &Self) -> bool {
        (&self.kind, &self.namespace, &self.name) == (&other.kind, &other.namespace, &other.name)
    }
}

impl Content {
    pub(super) fn of<'a>(
        args: &PlanArgs,
        requests: &RequestFactory<'_>,
        cluster: &'a Cluster,
        planned: impl Iterator<Item = (&'a Served, &'a v1::Plan)>,
    ) -> anyhow::Result<Self> {
        let kept = |(workload, plan)| kept(requests, cluster, workload, plan);
        Ok(Self {
            time: requests.now(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            source: cluster.source(),
            profile: match args.engine.profile {
                Profile::Default => "default",
                Profile::UpstreamStrict => "upstream-strict",
            }
            .to_owned(),
            workloads: planned.map(kept).collect::<Result<_, _>>()?,
        })
    }
}

fn kept(
    requests: &RequestFactory<'_>,
    cluster: &Cluster,
    workload: &Served,
    plan: &v1::Plan,
) -> anyhow::Result<Kept> {
    let object: Value = serde_json::from_str(workload.json.get())
        .with_context(|| format!("{}: cannot be read as JSON", workload.title()))?;
    let mut snapshot = requests.request_for(workload).snapshot(|_| false);
    snapshot.now = None;
    let pods: Vec<Vec<u8>> = snapshot
        .pod_buckets
        .iter()
        .map(prost::Message::encode_to_vec)
        .collect();
    let nodes = if workload.kind == Kind::DaemonSet {
        let nodes = cluster.nodes.iter().map(|node| &node.object);
        nodes
            .map(|node| (node.name.clone(), short(&digest(&node.encode_to_vec()))))
            .collect()
    } else {
        BTreeMap::new()
    };
    Ok(Kept {
        kind: workload.kind.name().to_owned(),
        namespace: workload.namespace.clone(),
        name: workload.name.clone(),
        uid: workload.uid.clone(),
        resource_version: object["metadata"]["resourceVersion"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        generation: object["metadata"]["generation"].as_i64().unwrap_or_default(),
        spec_digest: digest(object["spec"].to_string().as_bytes()),
        snapshot_digest: digest(&snapshot.encode_to_vec()),
        nodes,
        pods_digest: digest(&pods.concat()),
        plan: plan.clone(),
    })
}

/// `sha256:` and the digest in hex.
pub(super) fn digest(bytes: &[u8]) -> String {
    let mut text = "sha256:".to_owned();
    for byte in Sha256::digest(bytes) {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The first 16 digits, which are enough to tell the states of one node apart.
fn short(digest: &str) -> String {
    digest.trim_start_matches("sha256:").chars().take(16).collect()
}

/// The file of `--out`. It replaces only a file of kept plans, of any version.
pub(super) fn output(path: &Path) -> OutputFile<'_> {
    OutputFile {
        path,
        flag: "--out",
        what: "a kept plan",
        is_own: |file| {
            let format = serde_json::from_reader(file).map(|Head { format }| format);
            format.is_ok_and(|format| format.starts_with(FORMATS))
        },
    }
}

/// Writes a file.
pub(super) fn write(file: &Path, content: &Content) -> anyhow::Result<()> {
    let content = serde_json::to_value(content).context("cannot write the plan as JSON")?;
    let kept = File {
        format: FORMAT.to_owned(),
        digest: digest(content.to_string().as_bytes()),
        content,
    };
    let mut text = serde_json::to_string_pretty(&kept).context("cannot write the plan as JSON")?;
    text.push('\n');
    output(file).write(&text)
}

/// Reads a file. One of another format, or whose content does not have the digest, is refused.
pub(super) fn read(file: &Path) -> anyhow::Result<Content> {
    let name = file.display();
    let text = fs::read_to_string(file).with_context(|| format!("{name}: cannot be read"))?;
    let kept: Value = match serde_json::from_str(&text) {
        Ok(kept) => kept,
        Err(error) => {
            bail!("{name}: is not JSON ({error}); expected a file that `nodewise plan --out` wrote")
        }
    };
    let format = kept["format"].as_str().unwrap_or("none");
    ensure!(
        format == FORMAT,
        "{name}: format: found {format}, expected {FORMAT}; make the plan again with this version of nodewise"
    );
    let kept: File = serde_json::from_value(kept).with_context(|| format!("{name}: a field is missing"))?;
    let computed = digest(kept.content.to_string().as_bytes());
    ensure!(
        kept.digest == computed,
        "{name}: digest: found {}, but that of the content is {computed}; the file was changed after it was written",
        kept.digest
    );
    serde_json::from_value(kept.content).with_context(|| format!("{name}: content"))
}
