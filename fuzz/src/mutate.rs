//! Mutates the fields of a request, so that the result still decodes and reaches the planner.

mod draw;

use std::mem;

use bytes::Bytes;
use nodewise_proto::{Duration, bucket, nodes, pods, v1};
use prost::Message as _;
use rand::{Rng, RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use serde_json::{Value, json};

use draw::{labels, moment, operator, pick, place, text, value, word};

/// Most changes in one mutation.
const CHANGES: usize = 4;
/// Most buckets of a changed request.
const BUCKETS: u32 = 4;
/// One in this many requests is mutated as bytes instead.
const AS_BYTES: u32 = 4;

/// A decoded request.
struct Parts {
    request: v1::PlanRequest,
    daemon_set: Value,
    revisions: Vec<Value>,
    nodes: Vec<v1::Node>,
    pods: Vec<v1::Pod>,
}

/// Changes some fields of a request. `None` if the bytes are no request, or if libFuzzer should mutate them as bytes.
#[must_use]
pub fn request(bytes: &[u8], seed: u32) -> Option<Vec<u8>> {
    let mut random = StdRng::seed_from_u64(seed.into());
    if random.random_ratio(1, AS_BYTES) {
        return None;
    }
    let mut parts = Parts::of(bytes)?;
    for _ in 0..random.random_range(1..=CHANGES) {
        parts.change(&mut random);
    }
    Some(parts.join(&mut random))
}

impl Parts {
    fn of(bytes: &[u8]) -> Option<Self> {
        let mut request = v1::PlanRequest::decode(bytes).ok()?;
        let snapshot = request.snapshot.as_mut()?;
        let Some(v1::workload::Kind::DaemonSet(daemon_set)) = snapshot.workload.take()?.kind else {
            return None;
        };
        let data = |buckets: &mut Vec<v1::Bucket>| {
            let buckets = mem::take(buckets).into_iter();
            buckets.map(|bucket| {
                let data = bucket.data.or(bucket.data_with_shared_labels);
                data.unwrap_or_default()
            })
        };
        let nodes: Vec<_> = data(&mut snapshot.node_buckets)
            .map(|data| nodes::whole(v1::NodeBucket::decode(data).ok()?))
            .collect::<Option<_>>()?;
        let pods: Vec<_> = data(&mut snapshot.pod_buckets)
            .map(|data| pods::whole(v1::PodBucket::decode(data).ok()?))
            .collect::<Option<_>>()?;
        let (nodes, pods) = (nodes.concat(), pods.concat());
        let revisions = snapshot
            .revisions
            .iter()
            .map(|revision| serde_json::from_slice(&revision.object));
        Some(Self {
            revisions: revisions.collect::<Result<_, _>>().ok()?,
            daemon_set: serde_json::from_slice(&daemon_set.object).ok()?,
            nodes,
            pods,
            request,
        })
    }

    fn join(mut self, random: &mut impl Rng) -> Vec<u8> {
        let count = random.random_range(1..=BUCKETS);
        let (mut nodes, mut pods) = (Vec::new(), Vec::new());
        nodes.resize_with(count as usize, Vec::new);
        pods.resize_with(count as usize, Vec::new);
        for node in self.nodes {
            nodes[bucket::of(&node.name, count) as usize].push(node);
        }
        for pod in self.pods {
            let bucket = bucket::of(pods::target_node(&pod), count);
            pods[bucket as usize].push(pod);
        }
        let shares = random.random();
        let pod_bucket = |pods| {
            if shares {
                return pods::sharing(pods);
            }
            v1::PodBucket {
                pods,
                ..Default::default()
            }
        };
        let inline = |data: Vec<u8>| v1::Bucket {
            data: Some(data.into()),
            ..Default::default()
        };
        let shares_labels = random.random();
        let node_bucket = |nodes| {
            if shares_labels {
                return v1::Bucket {
                    data_with_shared_labels: Some(nodes::sharing(nodes).encode_to_vec().into()),
                    ..Default::default()
                };
            }
            let bucket = v1::NodeBucket {
                nodes,
                ..Default::default()
            };
            inline(bucket.encode_to_vec())
        };
        let snapshot = self.request.snapshot.get_or_insert_default();
        snapshot.bucket_count = count;
        snapshot.node_buckets = nodes.into_iter().map(node_bucket).collect();
        snapshot.pod_buckets = pods
            .into_iter()
            .map(|pods| inline(pod_bucket(pods).encode_to_vec()))
            .collect();
        let json = |value: &Value| Bytes::from(value.to_string());
        let object = json(&self.daemon_set);
        snapshot.workload = Some(v1::Workload {
            kind: Some(v1::workload::Kind::DaemonSet(v1::DaemonSet {
                object,
                ..v1::DaemonSet::default()
            })),
        });
        let taken = snapshot
            .revisions
            .first()
            .is_some_and(|revision| revision.read_after_name_collision);
        let revision = |value| v1::ControllerRevision {
            object: json(value),
            read_after_name_collision: taken,
        };
        snapshot.revisions = self.revisions.iter().map(revision).collect();
        self.request.encode_to_vec()
    }

    fn change(&mut self, random: &mut impl Rng) {
        match random.random_range(0..8) {
            0 => self.change_node(random),
            1 | 2 => self.change_pod(random),
            3 => *place(&mut self.daemon_set, random) = value(random),
            4 => self.change_daemon_set(random),
            5 => self.change_revisions(random),
            6 => self.change_snapshot(random),
            _ => self.change_options(random),
        }
    }

    fn change_node(&mut self, random: &mut impl Rng) {
        let many = self.nodes.len();
        match random.random_range(0..7) {
            0 if many > 0 => drop(self.nodes.remove(random.random_range(0..many))),
            0..=2 => {
                let mut node = self.nodes.choose(random).cloned().unwrap_or_default();
                node.name = format!("{}-{}", node.name, random.random_range(0..100));
                self.nodes.push(node);
            }
            kind if many > 0 => {
                let node = &mut self.nodes[random.random_range(0..many)];
                match kind {
                    3 => node.unschedulable ^= true,
                    4 => node.ready = random.random_range(0..5),
                    5 => node.labels = labels(random),
                    _ => node.taints.push(v1::Taint {
                        key: word(random),
                        value: word(random),
                        effect: text(random, &["NoSchedule", "NoExecute", "PreferNoSchedule", ""]),
                    }),
                }
            }
            _ => {}
        }
    }

    fn change_pod(&mut self, random: &mut impl Rng) {
        let many = self.pods.len();
        let node = self
            .nodes
            .choose(random)
            .map_or_else(|| word(random), |node| node.name.clone());
        if many == 0 || random.random_ratio(1, 4) {
            let mut pod = self.pods.choose(random).cloned().unwrap_or_default();
            pod.name = format!("{}-{}", pod.name, random.random_range(0..1_000));
            pod.uid = format!("{}-{}", pod.uid, random.random_range(0..1_000));
            pod.node_name = node;
            self.pods.push(pod);
            return;
        }
        let at = random.random_range(0..many);
        let pod = &mut self.pods[at];
        match random.random_range(0..11) {
            0 => drop(self.pods.remove(at)),
            1 => pod.phase = random.random_range(0..6),
            2 => pod.ready = random.random_range(0..4),
            3 => pod.deletion_time = moment(random),
            4 => pod.creation_time = moment(random),
            5 => pod.ready_transition_time = moment(random),
            6 => pod.node_name = node,
            7 => (pod.node_name, pod.target_node_name) = (String::new(), node),
            8 => pod.controller = None,
            9 => pod.has_finalizers ^= true,
            _ => pod.labels = labels(random),
        }
    }

    /// Changes a field of the DaemonSet that decisions depend on. A random position seldom hits one.
    fn change_daemon_set(&mut self, random: &mut impl Rng) {
        let limit = |random: &mut _| -> Value {
            pick(
                random,
                &[
                    json!(0),
                    json!(1),
                    json!("30%"),
                    json!("100%"),
                    json!(-1),
                    json!("x%"),
                    json!(1 << 30),
                ],
            )
        };
        let (pointer, value) = match random.random_range(0..9) {
            0 => (
                "/spec/updateStrategy/rollingUpdate",
                json!({"maxUnavailable": limit(random), "maxSurge": limit(random)}),
            ),
            1 => (
                "/spec/updateStrategy/type",
                json!(pick(random, &["RollingUpdate", "OnDelete", "", "Other"])),
            ),
            2 => (
                "/spec/template/spec",
                json!({"tolerations": [{"key": word(random), "operator": operator(random), "value": word(random)}]}),
            ),
            3 => (
                "/spec/template/spec",
                json!({"nodeSelector": {word(random): word(random)}, "hostNetwork": true}),
            ),
            4 => ("/spec/template/metadata/labels", json!({"app": word(random)})),
            5 => (
                "/spec/selector",
                json!({"matchExpressions": [{"key": word(random), "operator": operator(random), "values": [word(random)]}]}),
            ),
            6 => (
                "/spec/template/spec",
                json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                {"nodeSelectorTerms": [{"matchExpressions": [{"key": word(random), "operator": operator(random), "values": [word(random)]}]}]}}}}),
            ),
            7 => ("/metadata/generation", json!(random.random_range(-1..4))),
            _ => (
                "/spec",
                json!({"selector": {"matchLabels": {"app": word(random)}}, "template": {}, "minReadySeconds": random.random_range(-1..4_000)}),
            ),
        };
        if let Some(place) = self.daemon_set.pointer_mut(pointer) {
            *place = value;
        }
    }

    fn change_revisions(&mut self, random: &mut impl Rng) {
        let many = self.revisions.len();
        if many == 0 {
            let number = random.random_range(-1..4);
            self.revisions.push(
                json!({"metadata": {"name": "r", "uid": "u"}, "revision": number, "data": value(random)}),
            );
            return;
        }
        let at = random.random_range(0..many);
        match random.random_range(0..4) {
            0 => drop(self.revisions.remove(at)),
            1 => {
                let mut revision = self.revisions[at].clone();
                for pointer in ["/metadata/name", "/metadata/uid"] {
                    if let Some(place) = revision.pointer_mut(pointer) {
                        *place = json!(format!("r-{}", random.random_range(0..1_000)));
                    }
                }
                self.revisions.push(revision);
            }
            2 => {
                if let Some(revision) = self.revisions[at].as_object_mut() {
                    let number = pick(random, &[json!(0), json!(-5), json!(i64::MAX), json!(3)]);
                    revision.insert("revision".to_owned(), number);
                }
            }
            _ => *place(&mut self.revisions[at], random) = value(random),
        }
    }

    fn change_snapshot(&mut self, random: &mut impl Rng) {
        let node_name = self
            .nodes
            .choose(random)
            .map_or_else(String::new, |node| node.name.clone());
        let uid = self
            .pods
            .choose(random)
            .map_or_else(String::new, |pod| pod.uid.clone());
        let snapshot = self.request.snapshot.get_or_insert_default();
        let state = snapshot.state.get_or_insert_default();
        match random.random_range(0..6) {
            0 => snapshot.now = moment(random),
            1 => state.failed_pod_backoffs.push(v1::FailedPodBackoff {
                observed_generation: random.random_range(0..3),
                node_name,
                delay: Some(Duration {
                    seconds: random.random_range(-1..901),
                    nanos: random.random(),
                }),
                last: moment(random),
            }),
            2 => state.pod_name_collisions.push(v1::PodNameCollision {
                node_name,
                count: random.random(),
                refused_count: random.random(),
            }),
            3 => {
                let expectations = state.expectations.get_or_insert_default();
                expectations.set_at = moment(random);
                expectations.delete_uids.push(uid);
                expectations.creates.push(v1::ExpectedCreate {
                    pod_name: word(random),
                    node_name,
                });
            }
            4 => snapshot.own_writes.push(v1::OwnWrite {
                resource: text(random, &["daemonsets", "pods", "controllerrevisions"]),
                written_resource_version: text(random, &["5", "10", "x", ""]),
                observed_resource_version: text(random, &["5", "9", "", "99999999999999999999999"]),
            }),
            _ => drop(mem::take(state)),
        }
    }

    fn change_options(&mut self, random: &mut impl Rng) {
        let options = self.request.options.get_or_insert_default();
        match random.random_range(0..5) {
            0 => options.profile = random.random_range(0..3),
            1 => options.enabled_deviations = vec![random.random_range(0..17)],
            2 => options.disabled_deviations.push(random.random_range(0..17)),
            3 => options.burst = Some(random.random_range(0..10)),
            _ => options.feature_gates = vec![v1::FeatureGate::TaintTolerationComparisonOperators.into()],
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use nodewise_proto::v1;
    use nodewise_server::{ByteSize, Engine, Limits, never};
    use prost::Message as _;

    use crate::seeds;

    #[test]
    fn a_changed_request_can_be_changed_again() {
        let mut changes = 0;
        for (_, mut bytes) in seeds::of("plan") {
            for seed in 0..200 {
                if let Some(changed) = super::request(&bytes, seed) {
                    bytes = changed;
                    changes += 1;
                }
            }
        }
        assert!(changes > 1_000, "{changes}");
    }

    #[test]
    fn changes_are_repeatable_and_most_changed_requests_are_planned() {
        let seeds = seeds::of("plan");
        let engine = Engine::new(Limits::default(), ByteSize::mib(1));
        let (mut changed, mut planned, mut different) = (0, 0, HashSet::new());
        for seed in 0..300 {
            let (_, bytes) = &seeds[seed as usize % seeds.len()];
            let Some(request) = super::request(bytes, seed) else {
                continue;
            };
            assert_eq!(super::request(bytes, seed), Some(request.clone()));
            changed += 1;
            let decoded = v1::PlanRequest::decode(&request[..]).expect("a request");
            planned += usize::from(engine.plan(decoded, &never).is_ok());
            different.insert(request);
        }
        assert!(2 * planned > changed, "{planned} of {changed} were planned");
        assert!(
            10 * different.len() > 9 * changed,
            "{} of {changed} differ",
            different.len()
        );
    }
}
