//! Measures the time of a plan for a ReplicaSet: `cargo bench -p nodewise-planner --bench replicaset`.
//!
//! Items are pods, so the throughput is in pods per second.

use divan::{Bencher, counter::ItemsCount};
use jiff::{SignedDuration, Timestamp};
use nodewise_planner::{
    plan::{Plan, ReplicaSetStatus, Status, Verdict},
    replicaset::{self, ReplicaSet, plan_cache::PlanCache},
    snapshot::{
        Bucket, ControllerRef, Labels, List, Options, Pod, PodPhase, Selector, Snapshot, State, Target,
    },
};
use serde_json::json;

const PODS: [usize; 2] = [1_000, 50_000];
const BUCKETS: usize = 64;

fn main() {
    divan::main();
}

/// Nothing to do, and nothing is cached.
#[divan::bench(args = PODS)]
fn at_rest(bencher: Bencher, pods: usize) {
    measure(bencher, &settled(pods), pods);
}

/// One pod has changed since the last plan.
#[divan::bench(args = PODS)]
fn one_pod_changed(bencher: Bencher, pods: usize) {
    alternate(bencher, settled(pods), pods, |pod| pod.ready = false);
}

/// One pod fails, and is replaced.
#[divan::bench(args = PODS)]
fn one_pod_failed(bencher: Bencher, pods: usize) {
    alternate(bencher, settled(pods), pods, |pod| pod.phase = PodPhase::Failed);
}

/// A burst of the first pods.
#[divan::bench]
fn first_burst(bencher: Bencher) {
    let mut snapshot = settled(0);
    snapshot.workload.replicas = 50_000;
    measure(bencher, &snapshot, snapshot.options.burst);
}

/// A burst of deletes: all pods are ranked.
#[divan::bench(args = PODS)]
fn scale_down(bencher: Bencher, pods: usize) {
    let mut snapshot = settled(pods);
    snapshot.workload.replicas /= 2;
    measure(bencher, &snapshot, pods);
}

/// The same, of pods that are not ready and restart all the time.
#[divan::bench(args = PODS)]
fn scale_down_of_crashing_pods(bencher: Bencher, pods: usize) {
    let mut snapshot = settled(pods);
    snapshot.workload.replicas /= 2;
    change_all(&mut snapshot, |index, pod| {
        pod.ready = false;
        pod.restarts = u32::try_from(index * 7_919 % 1_009).expect("it is small");
    });
    measure(bencher, &snapshot, pods);
}

/// The same, of pods that all became ready in one of two seconds and restart all the time.
#[divan::bench(args = PODS)]
fn scale_down_of_pods_that_are_hard_to_rank(bencher: Bencher, pods: usize) {
    let mut snapshot = settled(pods);
    snapshot.workload.replicas /= 2;
    let now = snapshot.now;
    change_all(&mut snapshot, |index, pod| {
        pod.ready_since = Some(now - SignedDuration::from_secs(20_000 + i64::from(index == pods / 2)));
        pod.restarts = u32::try_from(index * 7_919 % 1_009).expect("it is small");
    });
    measure(bencher, &snapshot, pods);
}

fn measure(bencher: Bencher, snapshot: &Snapshot<ReplicaSet>, pods: usize) {
    bencher
        .counter(ItemsCount::new(pods))
        .bench(|| replicaset::plan(divan::black_box(snapshot)));
}

/// Plans with a cache, by turns for the snapshot and for the one in which a pod has changed.
fn alternate(bencher: Bencher, before: Snapshot<ReplicaSet>, pods: usize, change: fn(&mut Pod)) {
    let mut after = before.clone();
    let mut changed = before.buckets[0].pods.to_vec();
    change(&mut changed[0]);
    after.buckets[0].pods = List::with_digest(changed, [1; 32]);
    let snapshots = [before, after];
    let mut cache = PlanCache::default();
    let mut turn = 0;
    bencher.counter(ItemsCount::new(pods)).bench_local(|| {
        turn = 1 - turn;
        let snapshot = divan::black_box(&snapshots[turn]);
        cache.identify(&snapshot.buckets).expect("names are unique");
        replicaset::plan_until(snapshot, &mut cache, &|| false)
    });
}

fn change_all(snapshot: &mut Snapshot<ReplicaSet>, change: impl Fn(usize, &mut Pod)) {
    for (number, bucket) in snapshot.buckets.iter_mut().enumerate() {
        let mut pods = bucket.pods.to_vec();
        for (index, pod) in pods.iter_mut().enumerate() {
            change(index * BUCKETS + number, pod);
        }
        bucket.pods = List::new(pods);
    }
}

/// A ReplicaSet with so many pods, and nothing to do.
fn settled(pods: usize) -> Snapshot<ReplicaSet> {
    let mut snapshot = Snapshot {
        now: Timestamp::UNIX_EPOCH + SignedDuration::from_hours(1_000),
        workload: replica_set(pods),
        revisions: vec![],
        buckets: buckets(pods),
        state: State::default(),
        own_writes: vec![],
        options: Options {
            burst: Options::REPLICA_SET_BURST,
            ..Options::default()
        },
    };
    snapshot.workload.status = status(replicaset::plan(&snapshot));
    assert_eq!(
        replicaset::plan(&snapshot).verdict,
        Verdict::Noop,
        "the set has settled"
    );
    snapshot
}

fn status(plan: Plan) -> ReplicaSetStatus {
    match plan.status {
        Some(Status::ReplicaSet(status)) => status,
        other => panic!("{other:?}"),
    }
}

fn buckets(pods: usize) -> Vec<Bucket> {
    let controller = std::sync::Arc::new(ControllerRef {
        kind: "ReplicaSet".to_owned(),
        name: "web-5d9c7b".to_owned(),
        uid: "5f6d1c3a-web".to_owned(),
    });
    let labels = Labels::new(labels());
    let pod = |index: usize| Pod {
        name: format!("web-5d9c7b-{}", suffix(index)),
        uid: format!("{:08x}-0123-4567-89ab-cdef", index * 2_654_435_761 % (1 << 32)),
        labels: labels.clone(),
        controller: Some(controller.clone()),
        target: Target::Bound(format!("node-{}", index % 5_000)),
        phase: PodPhase::Running,
        ready: true,
        ready_since: Some(
            Timestamp::UNIX_EPOCH
                + SignedDuration::from_secs(i64::try_from(index % 3_600).expect("it is small")),
        ),
        created: Some(Timestamp::UNIX_EPOCH),
        deleting: false,
        has_finalizers: false,
        deletion_cost: 0,
        restarts: 0,
        sidecar_restarts: 0,
    };
    let mut divided = vec![vec![]; BUCKETS];
    for index in 0..pods {
        divided[index % BUCKETS].push(pod(index));
    }
    let numbered = divided.into_iter().enumerate();
    numbered
        .map(|(index, pods)| {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&index.to_be_bytes());
            Bucket {
                pods: List::with_digest(pods, digest),
                ..Bucket::default()
            }
        })
        .collect()
}

/// Five characters, as names of pods end in.
fn suffix(mut index: usize) -> String {
    let alphabet = b"bcdfghjklmnpqrstvwxz2456789";
    let characters = std::iter::repeat_with(|| {
        let character = alphabet[index % alphabet.len()];
        index /= alphabet.len();
        char::from(character)
    });
    characters.take(5).collect()
}

fn labels() -> Vec<(String, String)> {
    [("app", "web"), ("pod-template-hash", "5d9c7b")]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .to_vec()
}

fn replica_set(pods: usize) -> ReplicaSet {
    ReplicaSet {
        name: "web-5d9c7b".to_owned(),
        namespace: "default".to_owned(),
        uid: "5f6d1c3a-web".to_owned(),
        resource_version: "1".to_owned(),
        generation: 1,
        deleting: false,
        selector: Some(Selector {
            match_labels: Some(labels()),
            match_expressions: None,
        }),
        replicas: i32::try_from(pods).expect("few pods"),
        min_ready_seconds: 0,
        template: json!({
            "metadata": {"labels": {"app": "web", "pod-template-hash": "5d9c7b"}},
            "spec": {"containers": [{"name": "c", "image": "img:1"}]},
        })
        .into(),
        template_labels: Labels::new(labels()),
        status: ReplicaSetStatus::default(),
        related_pods: vec![],
    }
}
