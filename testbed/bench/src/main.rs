//! `nodewise-bench`: measures, and writes `docs/benchmarks.md`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{Parser, ValueEnum};
use nodewise_bench::cluster::{self, Programs, deployments, storm};
use nodewise_bench::document::{self, FOLDER};
use nodewise_bench::machine::Machine;
use nodewise_bench::objects::LargeSize;
use nodewise_bench::record::{Measured, Record};
use nodewise_bench::report::Finding;
use nodewise_bench::{calls, chart, decode, overhead, plan, policies, replicas, scale, tracing};

/// Benchmarks Nodewise and upstream's controllers, and writes DOCS/benchmarks.md with charts.
#[derive(Debug, Parser)]
#[command(name = "nodewise-bench", version)]
struct Args {
    /// The sections to measure; the others keep their results
    #[arg(value_enum, default_values_t = Section::value_variants().to_vec())]
    sections: Vec<Section>,

    /// The folder to write to
    #[arg(long, default_value = "docs", value_name = "DOCS")]
    docs: PathBuf,

    /// The number of rounds, except on the cluster
    #[arg(long, default_value_t = 9, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,

    /// The number of rounds on the cluster, and of those with the very large one
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    cluster_rounds: u16,

    /// The number of nodes of the cluster
    #[arg(long, default_value_t = 5_000, value_name = "N")]
    nodes: usize,

    /// The number of pods in the cluster that belong to no DaemonSet
    #[arg(long, default_value_t = 50_000, value_name = "N")]
    foreign_pods: usize,

    /// The number of pods of the large Deployment
    #[arg(long, default_value_t = 5_000, value_name = "N")]
    deployment_pods: u32,

    /// The number of small Deployments
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    small_deployments: usize,

    /// The number of Deployments at rest
    #[arg(long, default_value_t = 5_000, value_name = "N")]
    deployments_at_rest: usize,

    /// How long the nodes flap in the storm, in seconds
    #[arg(long, default_value_t = 60, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    storm_seconds: u64,

    /// How often each node flaps in the storm
    #[arg(long, default_value_t = 2, value_name = "N")]
    storm_flaps: usize,

    /// The number of nodes of the very large cluster
    #[arg(long, default_value_t = 130_000, value_name = "N")]
    scale_nodes: usize,

    /// The number of pods of the very large cluster
    #[arg(long, default_value_t = 1_000_000, value_name = "N")]
    scale_pods: usize,

    /// The number of DaemonSets of the very large cluster, each with a pod on every node
    #[arg(long, default_value_t = 7, value_name = "N")]
    scale_daemon_sets: usize,
}

impl Args {
    fn scale_size(&self) -> scale::Size {
        scale::Size {
            cluster: LargeSize {
                nodes: self.scale_nodes,
                pods: self.scale_pods,
                daemon_sets: self.scale_daemon_sets,
            },
            calls: [10, 100],
            rounds: self.cluster_rounds.into(),
        }
    }

    fn storm_size(&self) -> storm::Size {
        storm::Size {
            nodes: self.nodes,
            foreign_pods: self.foreign_pods,
            lasts: Duration::from_secs(self.storm_seconds),
            flaps: self.storm_flaps,
            rounds: self.cluster_rounds.into(),
        }
    }

    fn cluster_size(&self) -> cluster::Size {
        cluster::Size {
            nodes: self.nodes,
            foreign_pods: self.foreign_pods,
            rounds: self.cluster_rounds.into(),
        }
    }
}

/// A section, in the order of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Section {
    /// The planner alone, compared with upstream's sync
    Plan,
    /// The latency of a plan over gRPC
    Calls,
    /// The cost of tracing for a plan over gRPC
    Tracing,
    /// Plans per CPU second, and the effect of a second replica
    Replicas,
    /// The cost of RolloutPolicies for a plan over gRPC
    Policies,
    /// Reading pods and nodes from the JSON and the Protobuf of the apiserver
    Decode,
    /// The executor's caches of a very large cluster, and a plan made from them
    Scale,
    /// Rollouts of a DaemonSet on a real apiserver
    Cluster,
    /// Rollouts of a DaemonSet with and without a RolloutPolicy on a real apiserver
    Stages,
    /// A storm of node events beside a rollout on a real apiserver
    Storm,
    /// Rollouts of Deployments on a real apiserver
    Deployments,
    /// The effect of the number of concurrent writes
    Writes,
    /// Which DaemonSets would run on many nodes that need not exist
    Overhead,
}

impl Section {
    fn name(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Calls => "calls",
            Self::Tracing => "tracing",
            Self::Replicas => "replicas",
            Self::Policies => "policies",
            Self::Decode => "decode",
            Self::Scale => "scale",
            Self::Cluster => "cluster",
            Self::Stages => "stages",
            Self::Storm => "storm",
            Self::Deployments => "deployments",
            Self::Writes => "writes",
            Self::Overhead => "overhead",
        }
    }

    async fn measure(self, args: &Args) -> Result<Finding> {
        let rounds = args.rounds.into();
        match self {
            Self::Plan => tokio::task::spawn_blocking(move || plan::measure(rounds)).await?,
            Self::Calls => calls::measure(rounds).await,
            Self::Tracing => tracing::measure(rounds).await,
            Self::Replicas => replicas::measure(rounds).await,
            Self::Policies => policies::measure(rounds).await,
            Self::Decode => tokio::task::spawn_blocking(move || decode::measure(rounds)).await?,
            Self::Scale => scale::measure(args.scale_size(), &scale::Programs::find()?).await,
            Self::Stages => cluster::stages::measure(args.cluster_size(), &Programs::find()?).await,
            Self::Cluster => cluster::measure(args.cluster_size(), &Programs::find()?).await,
            Self::Storm => storm::measure(args.storm_size(), &Programs::find()?).await,
            Self::Deployments => {
                let size = deployments::Size {
                    pods: args.deployment_pods,
                    small: args.small_deployments,
                    at_rest: args.deployments_at_rest,
                    rounds: args.cluster_rounds.into(),
                };
                deployments::measure(size, &Programs::find()?).await
            }
            Self::Writes => cluster::writes::measure(args.cluster_size(), &Programs::find()?).await,
            Self::Overhead => tokio::task::spawn_blocking(move || overhead::measure(rounds)).await?,
        }
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let folder = args.docs.join(FOLDER);
    std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    for &section in &args.sections {
        eprintln!("==> {}", section.name());
        let finding = section
            .measure(&args)
            .await
            .with_context(|| format!("measuring {}", section.name()))?;
        keep(section, finding, &args.docs)?;
    }
    Ok(())
}

/// Writes a result at once, because a later section may fail.
fn keep(section: Section, finding: Finding, docs: &Path) -> Result<()> {
    let folder = docs.join(FOLDER);
    for one in &finding.charts {
        chart::draw(one, &folder)?;
    }
    for target in &finding.targets {
        let verdict = if target.reached { "reached" } else { "MISSED" };
        println!(
            "{}: {}, {} ({verdict})",
            target.what, target.measured, target.goal
        );
    }
    let path = folder.join("results.json");
    let mut record = Record::read(&path)?;
    let measured = Measured {
        machine: Machine::here()?,
        finding,
    };
    record.0.insert(section.name().to_owned(), measured);
    record.write(&path)?;
    let sections: Vec<_> = Section::value_variants()
        .iter()
        .map(|section| section.name())
        .collect();
    let document = docs.join("benchmarks.md");
    std::fs::write(&document, document::render(&record, &sections)?)
        .with_context(|| format!("writing {}", document.display()))
}
