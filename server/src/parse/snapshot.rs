//! Parses a snapshot.

use nodewise_planner::{
    daemonset::{DaemonSet, plan_cache::PlanCache},
    identities::{DuplicateIdentity, Identity},
    snapshot::{Bucket, Digest, Node, Options, Pod, Snapshot},
};
use nodewise_proto::v1;

use super::{Context, Path, Problems, bucket, bucket::Buckets, revision, state, time, workload};
use crate::{refusal::Refusal, warnings::Warnings};

/// Most digests in an error. Errors travel in a header, and some clients accept no more than 8 KiB of headers.
const MOST_DIGESTS: usize = 32;

/// A parsed snapshot.
pub(crate) struct Parsed {
    pub(crate) snapshot: Snapshot<DaemonSet>,
    /// The results of earlier plans for the workload.
    pub(crate) memory: PlanCache,
    /// The warnings about objects of the snapshot.
    pub(crate) warnings: Warnings,
}

/// Reads a snapshot. `recall` gives the results of earlier plans for a workload's uid.
pub(crate) fn snapshot(
    message: Option<v1::Snapshot>,
    options: Options,
    mut context: Context<'_>,
    recall: impl FnOnce(&str) -> PlanCache,
) -> Result<Parsed, Refusal> {
    let at = Path::root("snapshot");
    let Some(message) = message else {
        context.problems.add(&at, "is required");
        return Err(context.problems.into_result().expect_err("a problem was noted"));
    };
    check_limits(&message, &at, &context)?;
    check_digest_function(&message, &at, &mut context);
    let problems = &mut context.problems;
    let now = time::required(message.now, &at.field("now"), problems);
    let daemon_set = workload::daemon_set(message.workload, &at.field("workload"), problems);
    let revisions = match &daemon_set {
        Some(workload) => revision::all(&message.revisions, workload, &at.field("revisions"), &mut context)?,
        // A problem was added. Without the workload its revisions are unknown.
        None => Vec::new(),
    };
    drop(message.revisions);
    let state = state::state(message.state, &at.field("state"), &mut context)?;
    let own_writes = state::own_writes(message.own_writes, &at.field("own_writes"), &mut context)?;
    if message.bucket_count == 0 {
        context
            .problems
            .add(&at.field("bucket_count"), "is required; 1 is always valid");
        return Err(context.problems.into_result().expect_err("a problem was noted"));
    }
    let (count, limits) = (message.bucket_count, context.limits);
    let at_nodes = at.field("node_buckets");
    let nodes: Buckets<Node> =
        bucket::all(message.node_buckets, count, limits.nodes, &at_nodes, &mut context)?;
    let at_pods = at.field("pod_buckets");
    let pods: Buckets<Pod> = bucket::all(message.pod_buckets, count, limits.pods, &at_pods, &mut context)?;
    let complete = nodes.missing.is_empty() && pods.missing.is_empty();
    if complete && !message.caches_synced {
        for (list, empty) in [("nodes", nodes.len() == 0), ("pods", pods.len() == 0)] {
            if empty {
                let description =
                    format!("is false, and there are no {list}: a cache may not have filled yet");
                context.problems.add(&at.field("caches_synced"), description);
            }
        }
    }
    let Context {
        stop, mut warnings, ..
    } = context;
    context.problems.into_result()?;
    warnings.merge(&nodes.warnings);
    warnings.merge(&pods.warnings);
    if !complete {
        return Err(missing(&nodes.missing, &pods.missing));
    }
    let (Some(now), Some(workload)) = (now, daemon_set) else {
        unreachable!("whatever is absent was noted as a problem");
    };
    let lists = nodes.lists.into_iter().zip(pods.lists);
    let buckets: Vec<_> = lists.map(|(nodes, pods)| Bucket { nodes, pods }).collect();
    let mut memory = recall(&workload.uid);
    unique_pods(&buckets, &mut memory, &at_pods)?;
    if stop() {
        return Err(Refusal::Stopped);
    }
    let snapshot = Snapshot {
        now,
        workload,
        revisions,
        buckets,
        state,
        own_writes,
        options,
    };
    Ok(Parsed {
        snapshot,
        memory,
        warnings,
    })
}

/// Checks the limits that can be checked before anything is decoded.
fn check_limits(message: &v1::Snapshot, at: &Path<'_>, context: &Context<'_>) -> Result<(), Refusal> {
    let limits = context.limits;
    let counts = [
        ("bucket_count", message.bucket_count as usize, limits.buckets),
        ("node_buckets", message.node_buckets.len(), limits.buckets),
        ("pod_buckets", message.pod_buckets.len(), limits.buckets),
    ];
    for (field, count, most) in counts {
        Context::bound(&at.field(field), count, most as usize)?;
    }
    Ok(())
}

fn check_digest_function(message: &v1::Snapshot, at: &Path<'_>, context: &mut Context<'_>) {
    let at = at.field("digest_function");
    match v1::DigestFunction::try_from(message.digest_function) {
        Ok(v1::DigestFunction::Sha256) => {}
        Ok(v1::DigestFunction::Unspecified) => {
            let mut buckets = message.node_buckets.iter().chain(&message.pod_buckets);
            if buckets.any(|bucket| !bucket.digest.is_empty()) {
                context
                    .problems
                    .add(&at, "is required, since a bucket has a digest");
            }
        }
        Err(_) => {
            let value = message.digest_function;
            context.problems.add(
                &at,
                format!("{value} is no DigestFunction that this server knows"),
            );
        }
    }
}

/// Refuses a snapshot in which two pods have the same name or uid.
fn unique_pods(buckets: &[Bucket], memory: &mut PlanCache, at: &Path<'_>) -> Result<(), Refusal> {
    let Err(twice) = memory.identify(buckets) else {
        return Ok(());
    };
    let mut problems = Problems::default();
    for DuplicateIdentity { bucket, pod, what } in twice {
        let pod = &buckets[bucket].pods[pod];
        let (field, value) = match what {
            Identity::Name => ("name", &pod.name),
            Identity::Uid => ("uid", &pod.uid),
        };
        let at = at.index(bucket);
        let at = at.field("data");
        let at = at.field("pods");
        problems.add(&at.field(field), format!("`{value}` is there twice"));
    }
    problems.into_result()
}

fn missing(nodes: &[(u32, Digest)], pods: &[(u32, Digest)]) -> Refusal {
    let indices = |list: &[(u32, Digest)]| list.iter().map(|(index, _)| *index).collect();
    let digests = if nodes.len() + pods.len() <= MOST_DIGESTS {
        nodes
            .iter()
            .chain(pods)
            .map(|(_, digest)| bytes::Bytes::copy_from_slice(digest))
            .collect()
    } else {
        Vec::new()
    };
    Refusal::MissingBuckets(v1::MissingBuckets {
        node_bucket_indices: indices(nodes),
        pod_bucket_indices: indices(pods),
        digests,
    })
}
