//! Parses a snapshot.

use nodewise_planner::{
    identities::{DuplicateIdentity, Identity},
    snapshot::{Bucket, Digest, List, Nodes, Options, Pods, Snapshot},
};
use nodewise_proto::v1;

use super::{
    Context, Path, Problems, bucket,
    bucket::Buckets,
    revision, state, time,
    workload::{self, Workload},
};
use crate::{
    cache::BucketBy,
    refusal::Refusal,
    warnings::Warnings,
    workload::{AnySnapshot, Memory},
};

/// Most digests in an error. Errors travel in a header, and some clients accept no more than 8 KiB of headers.
const MOST_DIGESTS: usize = 32;

/// A parsed snapshot.
pub(crate) struct Parsed {
    pub(crate) snapshot: AnySnapshot,
    /// The results of earlier plans for the workload.
    pub(crate) memory: Memory,
    /// The warnings about objects of the snapshot.
    pub(crate) warnings: Warnings,
}

/// Reads a snapshot. `recall` gives the results of earlier plans for a workload's uid.
pub(crate) fn snapshot(
    message: Option<v1::Snapshot>,
    options: Options,
    mut context: Context<'_>,
    recall: impl FnOnce(&str) -> Option<Memory>,
) -> Result<Parsed, Refusal> {
    let at = Path::root("snapshot");
    let Some(mut message) = message else {
        context.problems.add(&at, "is required");
        return Err(context.problems.into_result().expect_err("a problem was noted"));
    };
    check_limits(&message, &at, &context)?;
    check_digest_function(&message, &at, &mut context);
    let now = time::required(message.now, &at.field("now"), &mut context.problems);
    let workload = workload::read(message.workload.take(), &at.field("workload"), &mut context)?;
    let revisions = match &workload {
        Some(Workload::DaemonSet(daemon_set)) => revision::all(
            &message.revisions,
            daemon_set,
            &at.field("revisions"),
            &mut context,
        )?,
        // Other kinds have no revisions. If the workload is missing, a problem was added, and its revisions are unknown.
        _ => Vec::new(),
    };
    message.revisions = Vec::new();
    let state = state::state(message.state.take(), &at.field("state"), &mut context)?;
    let own_writes = std::mem::take(&mut message.own_writes);
    let own_writes = state::own_writes(own_writes, &at.field("own_writes"), &mut context)?;
    let has_pods_of_sets = context.has_pods_of_sets && message.bucket_count > 0;
    let lists = Lists::of(workload.as_ref(), has_pods_of_sets);
    if message.bucket_count == 0 && lists.pods {
        context
            .problems
            .add(&at.field("bucket_count"), "is required; 1 is always valid");
        return Err(context.problems.into_result().expect_err("a problem was noted"));
    }
    let (nodes, pods) = buckets(&mut message, lists, &at, &mut context)?;
    let Context {
        stop, mut warnings, ..
    } = context;
    context.problems.into_result()?;
    warnings.merge(&nodes.warnings);
    warnings.merge(&pods.warnings);
    if !nodes.missing.is_empty() || !pods.missing.is_empty() {
        return Err(missing(&nodes.missing, &pods.missing));
    }
    let (Some(now), Some(workload)) = (now, workload) else {
        unreachable!("whatever is absent was noted as a problem");
    };
    // Kinds without nodes have empty lists of nodes.
    let node_lists = nodes
        .lists
        .into_iter()
        .chain(std::iter::repeat_with(List::default));
    let buckets = node_lists.zip(pods.lists);
    let snapshot = Snapshot {
        now,
        workload: (),
        revisions,
        buckets: buckets.map(|(nodes, pods)| Bucket { nodes, pods }).collect(),
        state,
        own_writes,
        options,
    };
    let snapshot = match workload {
        Workload::DaemonSet(workload) => AnySnapshot::DaemonSet(snapshot.with(workload)),
        Workload::ReplicaSet(workload) => AnySnapshot::ReplicaSet(snapshot.with(workload)),
        Workload::Deployment(workload) => AnySnapshot::Deployment(snapshot.with(workload)),
    };
    let mut memory = snapshot.memory(recall(snapshot.uid()));
    unique_pods(snapshot.buckets(), &mut memory, &at.field("pod_buckets"))?;
    if stop() {
        return Err(Refusal::Stopped);
    }
    Ok(Parsed {
        snapshot,
        memory,
        warnings,
    })
}

/// Which lists a kind's snapshot has.
#[derive(Clone, Copy)]
struct Lists {
    nodes: bool,
    pods: bool,
    /// What decides to which bucket a pod belongs.
    by: BucketBy,
}

impl Lists {
    fn of(workload: Option<&Workload>, has_pods_of_sets: bool) -> Self {
        let (nodes, pods, by) = match workload {
            // If the workload is missing, its lists are checked as those of a DaemonSet.
            Some(Workload::DaemonSet(_)) | None => (true, true, BucketBy::Node),
            Some(Workload::ReplicaSet(_)) => (false, true, BucketBy::Name),
            Some(Workload::Deployment(_)) => (false, has_pods_of_sets, BucketBy::Name),
        };
        Self { nodes, pods, by }
    }
}

/// Reads the buckets of nodes and pods.
fn buckets(
    message: &mut v1::Snapshot,
    lists: Lists,
    at: &Path<'_>,
    context: &mut Context<'_>,
) -> Result<(Buckets<Nodes>, Buckets<Pods>), Refusal> {
    let limits = context.limits;
    let count = |is_read: bool| (if is_read { message.bucket_count } else { 0 }, lists.by);
    let (of_nodes, of_pods) = (count(lists.nodes), count(lists.pods));
    let nodes = std::mem::take(&mut message.node_buckets);
    let nodes: Buckets<Nodes> =
        bucket::all(nodes, of_nodes, limits.nodes, &at.field("node_buckets"), context)?;
    let pods = std::mem::take(&mut message.pod_buckets);
    let pods: Buckets<Pods> = bucket::all(pods, of_pods, limits.pods, &at.field("pod_buckets"), context)?;
    if !message.caches_synced && nodes.missing.is_empty() && pods.missing.is_empty() {
        let empty = [
            ("nodes", lists.nodes && nodes.len() == 0),
            ("pods", lists.pods && pods.len() == 0),
            ("ReplicaSets that are known to be complete", !lists.pods),
        ];
        for (list, _) in empty.into_iter().filter(|(_, is_empty)| *is_empty) {
            let description = format!("is false, and there are no {list}: a cache may not have filled yet");
            context.problems.add(&at.field("caches_synced"), description);
        }
    }
    Ok((nodes, pods))
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
fn unique_pods(buckets: &[Bucket], memory: &mut Memory, at: &Path<'_>) -> Result<(), Refusal> {
    let Err(twice) = memory.identify(buckets) else {
        return Ok(());
    };
    let mut problems = Problems::default();
    for DuplicateIdentity { bucket, pod, what } in twice {
        let pod = buckets[bucket].pods.at(pod);
        let (field, value) = match what {
            Identity::Name => ("name", pod.name()),
            Identity::Uid => ("uid", pod.uid()),
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
