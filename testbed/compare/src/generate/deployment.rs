//! Cases with a Deployment: a scenario with consistent ReplicaSets, and a few independent anomalies.

use serde_json::{Map, Value, json};

use super::clock::Clock;
use super::rng::CaseRng;
use super::template;
use super::workload::{self, BROKEN, CONFLICT, FORBIDDEN, INVALID, Identity, MISSING, fault, name, set};
use crate::case::{Case, Fault, HASH, Kind, Live};

const HASH_LABEL: &str = "pod-template-hash";
const REVISION: &str = "deployment.kubernetes.io/revision";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const MAX: &str = "deployment.kubernetes.io/max-replicas";
const ROLLBACK: &str = "deprecated.deployment.rollback.to";
const APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A number that means that there is no limit.
const NO_LIMIT: i64 = 2_147_483_647;

/// The case for a seed.
pub(super) fn case(seed: u64) -> Case {
    let mut rng = CaseRng::new(seed);
    let rng = &mut rng;
    let clock = Clock::draw(rng);
    let draft = Draft::draw(rng);
    let sets = draft.sets(rng, &clock);
    let pods = draft.pods(rng, &clock, &sets);
    let deployment = draft.object(rng, &clock, &sets);
    let (live, unseen) = draft.live(rng, &clock, &deployment, &sets);
    let mut faults = draft.faults(rng, &sets);
    let taken = format!("web-{HASH}");
    let has_taken = |set: &Value| name(set) == taken && set["metadata"]["ownerReferences"].is_array();
    if sets.iter().any(has_taken) {
        // Only a set that was just released is created again. Nodewise knows that the name is taken, and does not try.
        faults.retain(|fault| fault.op != "create-replicaset");
    }
    let mut replica_sets = sets;
    replica_sets.retain(|set| !unseen.contains(&name(set)));
    rng.shuffle(&mut replica_sets);
    Case {
        kind: Kind::Deployment,
        seed,
        now: clock.now.to_string(),
        deployments: vec![deployment],
        replica_sets,
        pods,
        live,
        burst: 500,
        feature_gates_off: rng
            .in_hundred(5)
            .then(|| "DeploymentReplicaSetTerminatingReplicas".to_owned())
            .into_iter()
            .collect(),
        faults,
        ..Case::default()
    }
}

/// Where a rollout is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scenario {
    /// There is no ReplicaSet yet.
    Fresh,
    /// The new ReplicaSet has all pods.
    Settled,
    /// The template has changed, and no ReplicaSet has the present one.
    Changed,
    /// The new ReplicaSet has some of the pods.
    Rolling,
    /// The number of replicas has changed in one of the other scenarios.
    Scaled,
}

/// What is decided first.
struct Draft {
    us: Identity,
    scenario: Scenario,
    selector: Value,
    labels: Map<String, Value>,
    /// The versions of the template. The present one is the last.
    versions: Vec<Value>,
    replicas: i64,
    /// The number of replicas for which the ReplicaSets were sized.
    before: i64,
    surge: i64,
    strategy: Value,
    min_ready: i64,
    deadline: Option<i64>,
    /// How many of a hundred ReplicaSets have an anomaly.
    anomalies: u32,
    /// The Deployment's own annotations.
    notes: Map<String, Value>,
}

impl Draft {
    fn draw(rng: &mut CaseRng) -> Self {
        let us = Identity {
            kind: "Deployment",
            name: "web".to_owned(),
            uid: rng.uid(),
        };
        let scenario = rng.weighted(&[
            (1, Scenario::Fresh),
            (3, Scenario::Settled),
            (2, Scenario::Changed),
            (5, Scenario::Rolling),
            (4, Scenario::Scaled),
        ]);
        let drawn = workload::selector(rng);
        let mut versions = vec![template::draw(rng, &drawn.labels, &["n1".to_owned()], false)];
        for number in 0..rng.below(4) {
            let former = template::former(rng, &versions[0], number);
            versions.insert(0, former);
        }
        let before = rng.weighted(&[(1, 0), (2, 1), (2, 2), (4, 3), (3, 5), (6, 10), (1, 100)]);
        let replicas = match (scenario, rng.below(60)) {
            (_, 0) => rng.pick(&[NO_LIMIT, 2_000_000_000, 60_000, -1]),
            (Scenario::Scaled, _) => rng.pick(&[
                0,
                1,
                2,
                before + 1,
                before + 2,
                before * 2,
                before / 2,
                3 * before,
            ]),
            _ => before,
        };
        let (strategy, surge) = strategy(rng);
        let deadline = rng.weighted(&[
            (10, Some(600)),
            (4, Some(60)),
            (3, None),
            (1, Some(NO_LIMIT)),
            (1, Some(1)),
        ]);
        let mut notes = Map::new();
        if rng.in_hundred(30) {
            notes.insert("note".into(), rng.pick(template::TRICKY_STRINGS).into());
        }
        if rng.in_hundred(10) {
            notes.insert("example.com/team".into(), "blue".into());
        }
        Self {
            us,
            scenario,
            selector: drawn.object,
            labels: drawn.labels,
            versions,
            replicas,
            before,
            surge,
            strategy,
            min_ready: rng.weighted(&[(8, 0), (2, 10)]),
            deadline,
            anomalies: rng.pick(&[0, 0, 10, 40]),
            notes,
        }
    }

    /// The ReplicaSets, by age.
    fn sets(&self, rng: &mut CaseRng, clock: &Clock) -> Vec<Value> {
        let mut sets = Vec::new();
        if self.scenario == Scenario::Fresh {
            return sets;
        }
        let last = self.versions.len() - 1;
        let has_new = match self.scenario {
            Scenario::Changed => false,
            Scenario::Scaled => rng.in_hundred(85),
            _ => true,
        };
        let rolls = match self.scenario {
            Scenario::Settled => false,
            Scenario::Scaled => rng.in_hundred(70),
            _ => true,
        };
        let total = self.before
            + if rolls {
                rng.between(-1..=self.surge.min(5))
            } else {
                0
            };
        let mut left = total.max(0);
        for version in 0..=last {
            if version == last && !has_new {
                continue;
            }
            let is_new = version == last;
            let size = match (rolls, is_new) {
                (false, true) => self.before,
                (false, false) => 0,
                (true, true) => left,
                (true, false) if version + 1 == last && !has_new => left,
                (true, false) => rng.between(0..=left),
            };
            left -= size;
            let number = i64::try_from(version).unwrap_or_default() + 1;
            sets.push(self.set(rng, clock, version, number, size));
        }
        if has_new && (1..1_000).contains(&self.replicas) && rng.in_hundred(6) {
            self.saturate(sets.last_mut());
        }
        if has_new && rng.in_hundred(6) {
            undo(rng, sets.last_mut());
        }
        if rng.in_hundred(3) {
            for set in &mut sets {
                set["metadata"]["annotations"]
                    .as_object_mut()
                    .map(|all| all.remove(MAX));
            }
        }
        if has_new && rng.in_hundred(5) {
            // A second set with the present template.
            let size = rng.pick(&[0, 2]);
            sets.push(self.set(rng, clock, last, 9, size));
        }
        if rng.in_hundred(6) {
            for number in 0..rng.between(1..=14) {
                sets.push(self.set(rng, clock, 0, -number, 0));
            }
        }
        sets
    }

    /// Gives the new ReplicaSet all replicas that are wanted now.
    fn saturate(&self, new: Option<&mut Value>) {
        let Some(new) = new else {
            return;
        };
        new["spec"]["replicas"] = self.replicas.into();
        new["metadata"]["annotations"][DESIRED] = self.replicas.to_string().into();
        for member in ["replicas", "readyReplicas", "availableReplicas"] {
            new["status"][member] = self.replicas.into();
        }
    }

    /// A ReplicaSet of a version of the template, which was the `number`-th.
    fn set(&self, rng: &mut CaseRng, clock: &Clock, version: usize, number: i64, size: i64) -> Value {
        let is_new = version + 1 == self.versions.len();
        let hash = if is_new && rng.in_hundred(50) && (1..9).contains(&number) {
            HASH.to_owned()
        } else {
            rng.letters(9)
        };
        let age = if rng.in_hundred(10) {
            5_000
        } else {
            10_000 - 1_000 * number
        };
        let mut metadata = workload::metadata(rng, clock, &format!("web-{hash}"), age);
        let mut template = self.versions[version].clone();
        template["metadata"]["labels"][HASH_LABEL] = hash.clone().into();
        let mut labels = self.labels.clone();
        labels.insert(HASH_LABEL.into(), hash.clone().into());
        let mut owners = json!([self.us.controls()]);
        let mut annotations = self.notes.clone();
        annotations.insert(REVISION.into(), number.max(1).to_string().into());
        annotations.insert(DESIRED.into(), self.before.to_string().into());
        annotations.insert(MAX.into(), (self.before + self.surge).to_string().into());
        let mut status = set_status(rng, clock, size);
        let mut min_ready = self.min_ready;
        let generation = rng.between(1..=3);
        status["observedGeneration"] = generation.into();
        metadata["generation"] = generation.into();
        for _ in 0..if rng.in_hundred(self.anomalies) {
            1 + rng.below(2)
        } else {
            0
        } {
            match rng.below(16) {
                0 | 1 => owners = workload::owners(rng, &self.us),
                2 => owners = workload::orphan(rng, &self.us),
                3 => {
                    labels.insert("app".into(), "other".into());
                    labels.insert("left-out".into(), "".into());
                }
                4 | 5 => odd(
                    rng,
                    &mut annotations,
                    &[DESIRED, MAX],
                    &["ten", "-1", "", "2147483648", "+5", "0", "7", "007"],
                ),
                6 | 7 => odd(
                    rng,
                    &mut annotations,
                    &[REVISION],
                    &[
                        "abc",
                        "",
                        "-3",
                        "9223372036854775807",
                        "9223372036854775808",
                        "3546343826724305832",
                        "2",
                    ],
                ),
                8 => {
                    annotations.insert(HISTORY.into(), rng.pick(&["1,3", "", ",1", "5"]).into());
                    if rng.in_hundred(30) {
                        annotations.insert(
                            HISTORY.into(),
                            "123456789,".repeat(200).trim_end_matches(',').into(),
                        );
                    }
                }
                9 => annotations.clear(),
                10 => {
                    annotations.insert("note".into(), "of another time".into());
                    annotations.insert("example.com/left".into(), "over".into());
                }
                11 => metadata["deletionTimestamp"] = clock.before(5).into(),
                12 => metadata["generation"] = (generation + 1).into(),
                13 => min_ready = 33,
                14 => reshape(rng, &mut template),
                _ => status["availableReplicas"] = (size + 2).into(),
            }
        }
        set(&mut metadata, "labels", labels.clone().into());
        set(&mut metadata, "annotations", annotations.into());
        set(&mut metadata, "ownerReferences", owners);
        let mut chosen = self.selector.clone();
        chosen["matchLabels"][HASH_LABEL] = hash.into();
        let mut spec = json!({"replicas": size, "selector": chosen, "template": template});
        set(
            &mut spec,
            "minReadySeconds",
            if min_ready == 0 {
                Value::Null
            } else {
                min_ready.into()
            },
        );
        json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec, "status": status})
    }

    /// Pods of the ReplicaSets, which matter for strategy Recreate.
    fn pods(&self, rng: &mut CaseRng, clock: &Clock, sets: &[Value]) -> Vec<Value> {
        let mut pods = Vec::new();
        if !rng.in_hundred(40) {
            return pods;
        }
        for number in 0..rng.below(4) {
            let Some(owner) = rng.maybe(sets).cloned() else {
                break;
            };
            let mut pod = workload::pod(rng, clock, &format!("p{number}"), self.min_ready);
            let owner = Identity {
                kind: "ReplicaSet",
                name: name(&owner),
                uid: owner["metadata"]["uid"].as_str().unwrap_or_default().to_owned(),
            };
            pod["metadata"]["ownerReferences"] = json!([owner.controls()]);
            if rng.in_hundred(10) {
                pod["metadata"]["ownerReferences"] = workload::foreign(rng, &owner);
            }
            if rng.in_hundred(50) {
                pod["status"]["phase"] = rng.pick(&["Failed", "Succeeded", "Running"]).into();
            }
            if rng.in_hundred(20) {
                pod["metadata"]["deletionTimestamp"] = clock.before(5).into();
            }
            pods.push(pod);
        }
        pods
    }

    fn object(&self, rng: &mut CaseRng, clock: &Clock, sets: &[Value]) -> Value {
        let mut metadata = workload::metadata(rng, clock, &self.us.name, 100_000);
        metadata["uid"] = self.us.uid.clone().into();
        let generation = rng.between(1..=4);
        metadata["generation"] = generation.into();
        let mut annotations = self.notes.clone();
        if !sets.is_empty() && rng.in_hundred(85) {
            let newest = sets.iter().filter_map(|set| {
                let revision = set["metadata"]["annotations"][REVISION].as_str()?;
                revision.parse::<i64>().ok()
            });
            annotations.insert(REVISION.into(), newest.max().unwrap_or(1).to_string().into());
        }
        if rng.in_hundred(10) {
            annotations.insert(APPLIED.into(), "{}".into());
        }
        if rng.in_hundred(5) {
            let to = ["0", "0", "1", "1", "2", "7", "-1", "x", "", "9223372036854775808"];
            annotations.insert(ROLLBACK.into(), rng.pick(&to).into());
        }
        if rng.in_hundred(5) {
            metadata["deletionTimestamp"] = clock.before(5).into();
        }
        set(&mut metadata, "annotations", annotations.into());
        let mut spec = json!({
            "replicas": self.replicas,
            "selector": self.selector,
            "strategy": self.strategy,
            "template": self.versions.last(),
        });
        if rng.in_hundred(1) {
            spec["selector"] = json!({});
        }
        if rng.in_hundred(12) {
            spec["paused"] = true.into();
        }
        set(
            &mut spec,
            "minReadySeconds",
            if self.min_ready == 0 {
                Value::Null
            } else {
                self.min_ready.into()
            },
        );
        set(
            &mut spec,
            "progressDeadlineSeconds",
            self.deadline.map_or(Value::Null, Value::from),
        );
        let limit = rng.weighted(&[
            (8, Some(10)),
            (3, Some(0)),
            (3, Some(1)),
            (2, Some(2)),
            (2, None),
            (1, Some(NO_LIMIT)),
        ]);
        set(
            &mut spec,
            "revisionHistoryLimit",
            limit.map_or(Value::Null, Value::from),
        );
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": spec,
            "status": self.status(rng, clock, sets, generation),
        })
    }

    /// A status that is right for most Deployments, or lags behind.
    fn status(&self, rng: &mut CaseRng, clock: &Clock, sets: &[Value], generation: i64) -> Value {
        let mut status = json!({});
        let knows_sizes = sets
            .iter()
            .any(|set| set["metadata"]["annotations"][MAX].is_string());
        if self.scenario != Scenario::Fresh && (knows_sizes || rng.in_hundred(50)) || rng.in_hundred(20) {
            let sum = |member: &str| {
                sets.iter()
                    .filter_map(|set| set["status"][member].as_i64())
                    .sum::<i64>()
            };
            let sizes: i64 = sets
                .iter()
                .filter_map(|set| set["spec"]["replicas"].as_i64())
                .sum();
            let present = sets.iter().find(|set| {
                set["spec"]["template"]["spec"] == self.versions[self.versions.len() - 1]["spec"]
            });
            let updated = present
                .and_then(|set| set["status"]["replicas"].as_i64())
                .unwrap_or_default();
            let available = sum("availableReplicas");
            let mut counts = [
                ("replicas", sum("replicas")),
                ("updatedReplicas", updated),
                ("readyReplicas", sum("readyReplicas")),
                ("availableReplicas", available),
                ("unavailableReplicas", (sizes - available).max(0)),
            ];
            if rng.in_hundred(35) {
                let lag = rng.below(counts.len());
                counts[lag].1 = (counts[lag].1 + rng.between(-2..=2)).max(0);
            }
            for (member, count) in counts {
                if count > 0 {
                    status[member] = count.into();
                }
            }
            match rng.below(12) {
                0 => {}
                1 => status["terminatingReplicas"] = 5.into(),
                _ => status["terminatingReplicas"] = sum("terminatingReplicas").into(),
            }
            status["observedGeneration"] = (generation - i64::from(rng.in_hundred(15))).into();
        }
        if rng.in_hundred(8) {
            status["collisionCount"] = rng.pick(&[0, 1, 5, NO_LIMIT]).into();
        }
        set(&mut status, "conditions", self.conditions(rng, clock));
        status
    }

    fn conditions(&self, rng: &mut CaseRng, clock: &Clock) -> Value {
        let condition = |kind: &str, status: &str, reason: &str, updated: i64| {
            json!({
                "type": kind, "status": status, "reason": reason, "message": format!("{kind} {reason}"),
                "lastUpdateTime": clock.before(updated), "lastTransitionTime": clock.before(updated + 50),
            })
        };
        let mut conditions = Vec::new();
        if !rng.in_hundred(12) {
            let is_available = rng.in_hundred(70);
            conditions.push(if is_available {
                condition("Available", "True", "MinimumReplicasAvailable", 900)
            } else {
                condition("Available", "False", "MinimumReplicasUnavailable", 900)
            });
        }
        if !rng.in_hundred(12) {
            let (status, reason) = rng.weighted(&[
                (5, ("True", "ReplicaSetUpdated")),
                (5, ("True", "NewReplicaSetAvailable")),
                (2, ("True", "NewReplicaSetCreated")),
                (1, ("True", "FoundNewReplicaSet")),
                (2, ("False", "ProgressDeadlineExceeded")),
                (1, ("False", "ReplicaSetCreateError")),
                (2, ("Unknown", "DeploymentPaused")),
                (1, ("Unknown", "DeploymentResumed")),
            ]);
            let deadline = self.deadline.unwrap_or(600);
            // The seconds around the deadline, and around one second before it.
            let updated = match rng.below(4) {
                0 => rng.pick(&[0, 5, 100]),
                1 if deadline != NO_LIMIT => deadline + rng.between(-2..=2),
                2 if deadline != NO_LIMIT => deadline + rng.pick(&[-30, 30, 5_000]),
                _ => 20,
            };
            let mut progressing = condition("Progressing", status, reason, updated);
            if rng.in_hundred(3) {
                progressing["lastUpdateTime"] = Value::Null;
            }
            conditions.push(progressing);
        }
        if rng.in_hundred(10) {
            conditions.push(condition("ReplicaFailure", "True", "FailedCreate", 70));
        }
        if rng.in_hundred(5) {
            conditions.push(condition("Custom", "True", "Whatever", 70));
        }
        if rng.in_hundred(15) {
            rng.shuffle(&mut conditions);
        }
        conditions.into()
    }

    /// Where the API differs from the caches, and the names of the sets that are not in the cache.
    fn live(&self, rng: &mut CaseRng, clock: &Clock, cached: &Value, sets: &[Value]) -> (Live, Vec<String>) {
        let mut live = Live::default();
        let mut unseen = Vec::new();
        let changed = |change: &dyn Fn(&mut Value)| {
            let mut changed = cached.clone();
            changed["metadata"]["resourceVersion"] = "4111111111".into();
            change(&mut changed);
            Some(Some(changed))
        };
        match rng.below(60) {
            0 => live.subject = Some(None),
            1 => live.subject = changed(&|one| one["metadata"]["deletionTimestamp"] = clock.before(1).into()),
            2 => live.subject = changed(&|one| one["metadata"]["uid"] = "successor".into()),
            3 => live.subject = changed(&|one| one["metadata"]["generation"] = 9.into()),
            _ => {}
        }
        for set in sets {
            match rng.below(80) {
                // Nodewise does not create a set again that it has just released.
                0 if !name(set).ends_with(HASH) => live.gone.push(format!("replicasets/{}", name(set))),
                // Nodewise's write of a set that it has just adopted has no version.
                1 if set["metadata"]["ownerReferences"][0]["controller"] == true => {
                    let mut changed = set.clone();
                    changed["metadata"]["resourceVersion"] = "4111111111".into();
                    live.replica_sets.push(changed);
                }
                // Only a create can find it.
                2 if name(set).ends_with(HASH) => {
                    live.replica_sets.push(set.clone());
                    unseen.push(name(set));
                }
                _ => {}
            }
        }
        let taken = format!("web-{HASH}");
        if sets.iter().all(|set| name(set) != taken) && rng.in_hundred(5) {
            // Another object has the name of the new set.
            let mut other = self.set(rng, clock, 0, 1, 1);
            other["metadata"]["name"] = taken.into();
            live.replica_sets.push(other);
        }
        (live, unseen)
    }

    fn faults(&self, rng: &mut CaseRng, sets: &[Value]) -> Vec<Fault> {
        let mut faults = Vec::new();
        if !rng.in_hundred(15) {
            return faults;
        }
        for _ in 0..=rng.below(2) {
            let times = rng.weighted(&[(6, 0), (3, 1)]);
            let any = rng.pick(&[BROKEN, FORBIDDEN, CONFLICT, MISSING, INVALID]);
            let one = rng.maybe(sets).map(name).unwrap_or_default();
            let claimed = if rng.in_hundred(60) {
                String::new()
            } else {
                one.clone()
            };
            faults.push(match rng.below(20) {
                0..=2 => fault(
                    "create-replicaset",
                    "",
                    rng.pick(&[BROKEN, FORBIDDEN, INVALID]),
                    times,
                ),
                3 => workload::terminating("create-replicaset", "", 0),
                4 => fault("create-replicaset", "", (409, "AlreadyExists"), 0),
                5..=9 => fault("update-replicaset", &one, any, 0),
                10 => fault("update-replicaset", "", any, times),
                11 => fault("delete-replicaset", &one, any, 0),
                12 => fault("delete-replicaset", "", any, 0),
                13 | 14 => fault("adopt-replicaset", &claimed, any, times),
                15 | 16 => fault("release-replicaset", &claimed, any, times),
                17 => fault("get-deployment", "", any, 0),
                18 => fault("update-deployment", "", any, 0),
                _ => fault("update-status", "", any, times),
            });
        }
        if rng.in_hundred(if self.strategy["type"] == "Recreate" {
            30
        } else {
            12
        }) {
            faults.push(fault("delete-replicaset", "", BROKEN, 0));
        }
        faults
    }
}

/// A strategy, and its maxSurge as a number of about ten replicas.
fn strategy(rng: &mut CaseRng) -> (Value, i64) {
    match rng.below(50) {
        0 => return (json!({"type": "Sideways"}), 0),
        1..=10 => return (json!({"type": "Recreate"}), 0),
        _ => {}
    }
    let odd = ["39%", "0%", "100%", "200%", "oops", "-5%", "5", "%", "1.5%", ""];
    let mut draw = |usual: i64| -> (Value, i64) {
        match rng.below(20) {
            0..=8 => ("25%".into(), 3),
            9..=14 => {
                let number = rng.between(0..=3);
                (number.into(), number)
            }
            15 => (10.into(), 10),
            16 => (Value::Null, 0),
            17 => (rng.pick(&[-1, 1_000_000]).into(), 0),
            _ => (rng.pick(&odd).into(), usual),
        }
    };
    let (surge, number) = draw(4);
    let (unavailable, _) = draw(0);
    let mut rolling = json!({});
    set(&mut rolling, "maxSurge", surge);
    set(&mut rolling, "maxUnavailable", unavailable);
    (json!({"type": "RollingUpdate", "rollingUpdate": rolling}), number)
}

/// The status of a ReplicaSet of this size.
fn set_status(rng: &mut CaseRng, clock: &Clock, size: i64) -> Value {
    let mut pods = size;
    if rng.in_hundred(12) {
        pods = (size + rng.between(-2..=2)).max(0);
    }
    let ready = match rng.below(10) {
        0 => 0,
        1 | 2 => rng.between(0..=pods),
        _ => pods,
    };
    let available = match rng.below(10) {
        0 => 0,
        1 => rng.between(0..=ready),
        _ => ready,
    };
    let mut status = json!({"replicas": pods});
    for (member, count) in [
        ("fullyLabeledReplicas", pods),
        ("readyReplicas", ready),
        ("availableReplicas", available),
    ] {
        if count > 0 {
            status[member] = count.into();
        }
    }
    match rng.below(10) {
        0 => {}
        1 | 2 => status["terminatingReplicas"] = rng.between(1..=3).into(),
        _ => status["terminatingReplicas"] = 0.into(),
    }
    if rng.in_hundred(7) {
        status["conditions"] = json!([{
            "type": "ReplicaFailure", "status": "True", "reason": rng.pick(&["FailedCreate", "FailedDelete"]),
            "message": "quota", "lastTransitionTime": clock.before(rng.pick(&[40, 70])),
        }]);
    } else if rng.in_hundred(4) {
        status["conditions"] =
            json!([{"type": "Custom", "status": "True", "lastTransitionTime": clock.before(7)}]);
    }
    status
}

/// Makes the new ReplicaSet one of an earlier revision, to which the Deployment returned.
fn undo(rng: &mut CaseRng, new: Option<&mut Value>) {
    let Some(new) = new else {
        return;
    };
    let annotations = &mut new["metadata"]["annotations"];
    annotations[REVISION] = rng.pick(&["1", "0", "1", ""]).into();
    match rng.below(4) {
        0 => annotations[HISTORY] = "1,3".into(),
        // With one more revision the list is too long.
        1 => annotations[HISTORY] = "123456789,".repeat(200).trim_end_matches(',').into(),
        2 => annotations[HISTORY] = "".into(),
        _ => {}
    }
}

/// Removes one of these annotations, or gives it one of these values.
fn odd(rng: &mut CaseRng, annotations: &mut Map<String, Value>, keys: &[&str], values: &[&str]) {
    let key = rng.pick(keys);
    if rng.in_hundred(20) {
        annotations.remove(key);
    } else {
        annotations.insert(key.to_owned(), rng.pick(values).into());
    }
}

/// Writes a template in another way, which may or may not mean the same.
fn reshape(rng: &mut CaseRng, template: &mut Value) {
    match rng.below(6) {
        0 => {
            template["spec"]["containers"][0]
                .as_object_mut()
                .map(|container| container.remove("resources"));
        }
        1 => {
            template["spec"]
                .as_object_mut()
                .map(|spec| spec.remove("securityContext"));
        }
        2 => {
            template["metadata"]
                .as_object_mut()
                .map(|metadata| metadata.remove("annotations"));
        }
        3 => template["metadata"]["annotations"]["note"] = "".into(),
        4 => template["spec"]["automountServiceAccountToken"] = false.into(),
        _ => {
            template["metadata"]["labels"]
                .as_object_mut()
                .map(|labels| labels.remove(HASH_LABEL));
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::generate::census::{Situation, is_deleting, is_orphan, is_owned, items};

    fn us(case: &Case) -> &Value {
        &case.deployments[0]
    }

    fn spec<'a>(case: &'a Case, member: &str) -> &'a Value {
        &us(case)["spec"][member]
    }

    fn any(case: &Case, test: impl Fn(&Value) -> bool) -> bool {
        case.replica_sets.iter().any(test)
    }

    fn annotated(case: &Case, key: &str, value: &str) -> bool {
        any(case, |set| {
            is_owned(case, set) && set["metadata"]["annotations"][key] == value
        })
    }

    fn rolls_back(case: &Case, to: &str) -> bool {
        us(case)["metadata"]["annotations"][ROLLBACK] == to
    }

    fn surge(case: &Case) -> &Value {
        &spec(case, "strategy")["rollingUpdate"]["maxSurge"]
    }

    fn unavailable(case: &Case) -> &Value {
        &spec(case, "strategy")["rollingUpdate"]["maxUnavailable"]
    }

    fn is_recreate(case: &Case) -> bool {
        spec(case, "strategy")["type"] == "Recreate"
    }

    fn reason(case: &Case, reason: &str) -> bool {
        items(&us(case)["status"]["conditions"])
            .iter()
            .any(|condition| condition["reason"] == reason)
    }

    fn refuses(case: &Case, op: &str) -> bool {
        case.faults.iter().any(|fault| fault.op == op)
    }

    fn active(case: &Case) -> usize {
        let sets = case.replica_sets.iter();
        sets.filter(|set| is_owned(case, set) && set["spec"]["replicas"] != 0)
            .count()
    }

    pub(in crate::generate) const SITUATIONS: &[Situation] = &[
        ("no ReplicaSets", |case| case.replica_sets.is_empty()),
        ("one active ReplicaSet", |case| active(case) == 1),
        ("three active ReplicaSets", |case| active(case) == 3),
        ("more than twelve ReplicaSets", |case| {
            case.replica_sets.len() > 12
        }),
        ("the number of replicas has changed", |case| {
            let replicas = spec(case, "replicas").to_string();
            any(case, |set| {
                let desired = &set["metadata"]["annotations"][DESIRED];
                desired.is_string() && *desired != replicas.as_str() && set["spec"]["replicas"] != 0
            })
        }),
        ("no replicas", |case| *spec(case, "replicas") == 0),
        ("negative replicas", |case| *spec(case, "replicas") == -1),
        ("as many replicas as there can be", |case| {
            *spec(case, "replicas") == NO_LIMIT
        }),
        ("Recreate", is_recreate),
        ("Recreate with a running pod of an old set", |case| {
            is_recreate(case) && case.pods.iter().any(|pod| pod["status"]["phase"] == "Running")
        }),
        ("Recreate with pods that have ended", |case| {
            is_recreate(case) && case.pods.iter().any(|pod| pod["status"]["phase"] == "Failed")
        }),
        ("Recreate with a pod that is being deleted", |case| {
            is_recreate(case) && case.pods.iter().any(is_deleting)
        }),
        ("an unknown strategy", |case| {
            spec(case, "strategy")["type"] == "Sideways"
        }),
        ("no maxSurge", |case| !is_recreate(case) && surge(case).is_null()),
        ("no maxUnavailable", |case| {
            !is_recreate(case) && unavailable(case).is_null()
        }),
        ("a percentage that is none", |case| {
            *surge(case) == "oops" || *surge(case) == "1.5%"
        }),
        ("a negative percentage", |case| *surge(case) == "-5%"),
        ("an odd percentage", |case| *surge(case) == "39%"),
        ("both are 0", |case| *surge(case) == 0 && *unavailable(case) == 0),
        ("a percentage above 100", |case| *unavailable(case) == "200%"),
        ("paused", |case| *spec(case, "paused") == true),
        ("resumed", |case| {
            spec(case, "paused").is_null() && reason(case, "DeploymentPaused")
        }),
        ("paused, with a rollback", |case| {
            *spec(case, "paused") == true && (rolls_back(case, "0") || rolls_back(case, "1"))
        }),
        ("a rollback to the last revision", |case| rolls_back(case, "0")),
        ("a rollback to a revision", |case| rolls_back(case, "1")),
        ("a rollback to nowhere", |case| rolls_back(case, "7")),
        ("a rollback to a negative revision", |case| rolls_back(case, "-1")),
        ("a rollback to no number", |case| rolls_back(case, "x")),
        ("an empty revision", |case| annotated(case, REVISION, "")),
        ("a revision that is no number", |case| {
            annotated(case, REVISION, "abc")
        }),
        ("a huge revision", |case| {
            annotated(case, REVISION, "9223372036854775807")
        }),
        ("a revision that is too large", |case| {
            annotated(case, REVISION, "9223372036854775808")
        }),
        ("desired replicas that are no number", |case| {
            annotated(case, DESIRED, "ten")
        }),
        ("negative desired replicas", |case| annotated(case, DESIRED, "-1")),
        ("desired replicas that are too many", |case| {
            annotated(case, DESIRED, "2147483648")
        }),
        ("desired replicas with a sign", |case| {
            annotated(case, DESIRED, "+5")
        }),
        ("most replicas 0", |case| annotated(case, MAX, "0")),
        ("a history of revisions", |case| annotated(case, HISTORY, "1,3")),
        ("an empty history", |case| annotated(case, HISTORY, "")),
        ("a long history", |case| {
            any(case, |set| {
                set["metadata"]["annotations"][HISTORY]
                    .as_str()
                    .is_some_and(|list| list.len() > 1_900)
            })
        }),
        ("history limit 0", |case| *spec(case, "revisionHistoryLimit") == 0),
        ("no history limit", |case| {
            spec(case, "revisionHistoryLimit").is_null()
        }),
        ("history without limit", |case| {
            *spec(case, "revisionHistoryLimit") == NO_LIMIT
        }),
        ("no deadline", |case| {
            spec(case, "progressDeadlineSeconds").is_null()
        }),
        ("an infinite deadline", |case| {
            *spec(case, "progressDeadlineSeconds") == NO_LIMIT
        }),
        ("timed out", |case| reason(case, "ProgressDeadlineExceeded")),
        ("progress", |case| reason(case, "ReplicaSetUpdated")),
        ("complete", |case| reason(case, "NewReplicaSetAvailable")),
        ("a create failed", |case| reason(case, "ReplicaSetCreateError")),
        ("no Progressing", |case| {
            !items(&us(case)["status"]["conditions"])
                .iter()
                .any(|condition| condition["type"] == "Progressing")
        }),
        ("a set to adopt", |case| {
            any(case, |set| {
                is_orphan(set) && set["metadata"]["labels"]["app"] == "agent"
            })
        }),
        ("a set to release", |case| {
            any(case, |set| {
                is_owned(case, set) && set["metadata"]["labels"]["app"] == "other"
            })
        }),
        ("a set of another Deployment", |case| {
            any(case, |set| !is_orphan(set) && !is_owned(case, set))
        }),
        ("a set that is being deleted", |case| any(case, is_deleting)),
        ("a set whose status lags behind", |case| {
            any(case, |set| {
                set["metadata"]["generation"] != set["status"]["observedGeneration"]
            })
        }),
        ("more available pods than the size", |case| {
            any(case, |set| {
                set["status"]["availableReplicas"].as_i64() > set["spec"]["replicas"].as_i64()
            })
        }),
        ("a set with a failure", |case| {
            any(case, |set| set["status"]["conditions"].is_array())
        }),
        ("a set with a foreign condition", |case| {
            any(case, |set| set["status"]["conditions"][0]["type"] == "Custom")
        }),
        ("the new set has all replicas, and an old one some", |case| {
            let replicas = spec(case, "replicas");
            active(case) > 1
                && any(case, |set| {
                    set["status"]["availableReplicas"] == *replicas
                        && set["metadata"]["annotations"][DESIRED] == replicas.to_string().as_str()
                })
        }),
        ("a set without a count of pods being deleted", |case| {
            any(case, |set| set["status"]["terminatingReplicas"].is_null())
        }),
        ("another minReadySeconds", |case| {
            any(case, |set| set["spec"]["minReadySeconds"] == 33)
        }),
        ("collisions", |case| us(case)["status"]["collisionCount"] == 5),
        ("it is being deleted", |case| is_deleting(us(case))),
        ("an empty selector", |case| {
            items(&Value::Null).is_empty() && *spec(case, "selector") == json!({})
        }),
        ("no count of pods being deleted", |case| {
            !case.feature_gates_off.is_empty()
        }),
        ("create-replicaset", |case| refuses(case, "create-replicaset")),
        ("update-replicaset", |case| refuses(case, "update-replicaset")),
        ("delete-replicaset", |case| refuses(case, "delete-replicaset")),
        ("adopt-replicaset", |case| refuses(case, "adopt-replicaset")),
        ("release-replicaset", |case| refuses(case, "release-replicaset")),
        ("get-deployment", |case| refuses(case, "get-deployment")),
        ("update-deployment", |case| refuses(case, "update-deployment")),
        ("update-status", |case| refuses(case, "update-status")),
        ("a namespace that goes", |case| {
            case.faults.iter().any(|fault| !fault.cause.is_empty())
        }),
        ("the name of the new set is taken", |case| {
            let taken = format!("web-{HASH}");
            case.live.replica_sets.iter().any(|set| name(set) == taken)
        }),
        ("a set is gone from the API", |case| !case.live.gone.is_empty()),
        ("a set has changed in the API", |case| {
            case.live
                .replica_sets
                .iter()
                .any(|live| any(case, |set| name(set) == name(live)))
        }),
        ("it is gone from the API", |case| case.live.subject == Some(None)),
        ("it was replaced", |case| {
            let mut live = case.live.subject.iter().flatten();
            live.any(|live| live["metadata"]["uid"] == "successor")
        }),
    ];
}
