//! The flags of `nodewise dashboard`.

use std::net::SocketAddr;

use clap::Args;

use crate::flags::{EngineArgs, SourceArgs};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nodewise dashboard
  nodewise dashboard -n shop -n payments --open
  nodewise dashboard --port 8090 --context staging
  (kubectl get deployments,replicasets,daemonsets,controllerrevisions,pods,nodes -A -o json; kubectl get rolloutpolicies -A -o json) | \\
    nodewise dashboard -f -

Where the kind RolloutPolicy is not installed, the second kubectl in the last example fails, and what the first one prints is enough.

With --trace-url each workload on a node links to its traces. {kind} is in lower case, as in the names of the attributes; {node} is empty where no
node is meant. For Jaeger: --trace-url
'https://jaeger.example.com/search?service=nodewise-executor&tags={\"k8s.{kind}.name\":\"{name}\",\"k8s.namespace.name\":\"{namespace}\"}'

The page is on 127.0.0.1 and opens with the URL that is printed. That signs one browser in; then the URL for another one is printed. The
page reads with your kubeconfig, and never writes: it shows commands to copy.

With --listen each request needs a bearer token of the cluster in the header Authorization, and is answered with that token's rights. A
caller may name namespaces, of those that -n names. Of the kubeconfig only the cluster is used. The connection is plain HTTP: put a proxy with TLS in front.")]
pub(crate) struct DashboardArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Only workloads of this namespace; may be repeated. Without it: of all namespaces. With --listen: the most that a caller sees
    #[arg(short, long = "namespace", value_name = "NAMESPACE")]
    pub(crate) namespaces: Vec<String>,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
    /// Link each workload to its traces: the URL of a search, with {kind}, {namespace}, {name} and {node}
    #[arg(long, value_name = "URL", value_parser = trace_url)]
    pub(crate) trace_url: Option<String>,
    /// The port on 127.0.0.1; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) port: u16,
    /// Open the page in the browser, by a file in the folder for temporary files
    #[arg(long)]
    pub(crate) open: bool,
    /// Serve many callers on this address, such as 0.0.0.0:8090, each with a bearer token
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["port", "open", "files"], requires = "hosts")]
    pub(crate) listen: Option<SocketAddr>,
    /// With --listen: a value of the header Host to accept, such as nodewise.example.com; may be repeated
    #[arg(long = "allow-host", value_name = "HOST", requires = "listen")]
    pub(crate) hosts: Vec<String>,
}

/// A URL that a browser may open.
fn trace_url(text: &str) -> Result<String, String> {
    if text.starts_with("https://") || text.starts_with("http://") {
        return Ok(text.to_owned());
    }
    Err("expected a URL that begins with https:// or http://".to_owned())
}
