//! The flags of `nodewise overhead`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use nodewise_proto::v1;

use crate::{
    flags::{ServerArgs, SourceArgs},
    output::ViewOutput,
};

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("node").required(true).multiple(true).args(["labels", "taints", "like", "shapes"]))]
#[command(after_help = "\
Examples:
  nodewise overhead --like node-7
  nodewise overhead --node-labels kubernetes.io/os=linux,pool=gpu --node-taints nvidia.com/gpu=true:NoSchedule
  nodewise overhead ds/kube-proxy ds/agent --like node-7 -o json
  nodewise overhead --shapes shapes.yaml -f daemonsets.yaml

FILE of --shapes is a YAML list:
  - name: gpu-large
    labels: {kubernetes.io/os: linux, pool: gpu}
    taints: [{key: nvidia.com/gpu, value: \"true\", effect: NoSchedule}]

Exit status: 0 when every DaemonSet could be read, else 1.")]
pub(crate) struct OverheadArgs {
    /// The DaemonSets, as for kubectl: `ds/NAME` or `daemonset NAME`. Without it: all
    #[arg(value_name = "ds/NAME")]
    pub(crate) targets: Vec<String>,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Only DaemonSets of this namespace
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// DaemonSets of every namespace; the default
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub(crate) all_namespaces: bool,
    /// Labels of the node. With --like they replace or are added to those of that node
    #[arg(long = "node-labels", value_name = "KEY=VALUE", value_delimiter = ',', value_parser = label)]
    pub(crate) labels: Vec<v1::Label>,
    /// Taints of the node: `KEY=VALUE:EFFECT` or `KEY:EFFECT`. With --like they are added to those of that node
    #[arg(long = "node-taints", value_name = "TAINT", value_delimiter = ',', value_parser = taint)]
    pub(crate) taints: Vec<v1::Taint>,
    /// Ask about a node with the name, the labels and the taints of this one
    #[arg(long, value_name = "NODE")]
    pub(crate) like: Option<String>,
    /// Ask about all nodes of a file; `-` reads standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["labels", "taints", "like"])]
    pub(crate) shapes: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) service: ServerArgs,
    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: ViewOutput,
}

fn label(text: &str) -> Result<v1::Label, String> {
    let (key, value) = text
        .split_once('=')
        .ok_or("not a label such as kubernetes.io/os=linux")?;
    if key.is_empty() {
        return Err("the key before = is missing".to_owned());
    }
    Ok(v1::Label {
        key: key.to_owned(),
        value: value.to_owned(),
    })
}

fn taint(text: &str) -> Result<v1::Taint, String> {
    let (rest, effect) = text
        .rsplit_once(':')
        .ok_or("not a taint such as dedicated=gpu:NoSchedule")?;
    let (key, value) = rest.split_once('=').unwrap_or((rest, ""));
    if key.is_empty() {
        return Err("the key is missing".to_owned());
    }
    if !matches!(effect, "NoSchedule" | "PreferNoSchedule" | "NoExecute") {
        return Err(format!(
            "the effect is {effect:?}; must be NoSchedule, PreferNoSchedule or NoExecute"
        ));
    }
    Ok(v1::Taint {
        key: key.to_owned(),
        value: value.to_owned(),
        effect: effect.to_owned(),
    })
}
