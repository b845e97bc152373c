//! The snapshot as a whole.

use std::{collections::HashSet, sync::Arc};

use nodewise_planner::snapshot::{Node, Options, Pod, Snapshot};
use nodewise_proto::v1;

use super::{Context, Path, bucket, bucket::Buckets, repeats, revision, state, time, workload};
use crate::{cache::Digest, refusal::Refusal};

/// Most digests that an error names. Errors travel in a header, and some clients take no more than 8 KiB of headers.
const MOST_DIGESTS: usize = 32;
/// Pods looked at between two looks at the deadline.
const PODS_PER_LOOK: usize = 4_096;

/// Reads a snapshot.
pub(crate) fn snapshot(
    message: Option<v1::Snapshot>,
    options: Options,
    mut context: Context<'_>,
) -> Result<Snapshot, Refusal> {
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
    let revisions = revision::all(message.revisions, &at.field("revisions"), &mut context)?;
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
    unique_nodes(&nodes.buckets, &at_nodes, &mut context)?;
    unique_pods(&pods.buckets, &at_pods, &mut context)?;
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
    context.problems.into_result()?;
    if !complete {
        return Err(missing(&nodes.missing, &pods.missing));
    }
    let (Some(now), Some(daemon_set)) = (now, daemon_set) else {
        unreachable!("whatever is absent was noted as a problem");
    };
    repeats::check(&daemon_set, &pods.buckets, &at.field("workload"))?;
    Ok(Snapshot {
        now,
        daemon_set,
        revisions,
        nodes: nodes.buckets,
        pods: pods.buckets,
        state,
        own_writes,
        options,
    })
}

/// Limits that can be checked before anything is read.
fn check_limits(message: &v1::Snapshot, at: &Path<'_>, context: &Context<'_>) -> Result<(), Refusal> {
    let limits = context.limits;
    let counts = [
        ("bucket_count", message.bucket_count as usize, limits.buckets),
        ("node_buckets", message.node_buckets.len(), limits.buckets),
        ("pod_buckets", message.pod_buckets.len(), limits.buckets),
        ("revisions", message.revisions.len(), limits.revisions),
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

/// Nodes of one name are in one bucket, so it is enough to look at each bucket by itself.
fn unique_nodes(buckets: &[Arc<[Node]>], at: &Path<'_>, context: &mut Context<'_>) -> Result<(), Refusal> {
    for (bucket_index, bucket) in buckets.iter().enumerate() {
        context.look()?;
        if bucket.is_sorted_by(|a, b| a.name < b.name) {
            continue;
        }
        let mut names = HashSet::with_capacity(bucket.len());
        for (index, node) in bucket.iter().enumerate() {
            if !names.insert(&node.name) {
                let at = at.index(bucket_index);
                let at = at.field("data");
                let at = at.field("nodes");
                let at = at.index(index);
                context
                    .problems
                    .add(&at.field("name"), format!("`{}` is there twice", node.name));
            }
        }
    }
    Ok(())
}

fn unique_pods(buckets: &[Arc<[Pod]>], at: &Path<'_>, context: &mut Context<'_>) -> Result<(), Refusal> {
    let count = buckets.iter().map(|bucket| bucket.len()).sum();
    let (mut names, mut uids) = (HashSet::with_capacity(count), HashSet::with_capacity(count));
    let mut seen = 0_usize;
    for (bucket_index, bucket) in buckets.iter().enumerate() {
        for (index, pod) in bucket.iter().enumerate() {
            if seen.is_multiple_of(PODS_PER_LOOK) {
                context.look()?;
            }
            seen += 1;
            let twice_name = !names.insert(pod.name.as_str());
            let twice_uid = !uids.insert(pod.uid.as_str());
            if !twice_name && !twice_uid {
                continue;
            }
            let at = at.index(bucket_index);
            let at = at.field("data");
            let at = at.field("pods");
            let at = at.index(index);
            if twice_name {
                context
                    .problems
                    .add(&at.field("name"), format!("`{}` is there twice", pod.name));
            }
            if twice_uid {
                context
                    .problems
                    .add(&at.field("uid"), format!("`{}` is there twice", pod.uid));
            }
        }
    }
    Ok(())
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
