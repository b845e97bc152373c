//! Cases with a ReplicaSet.

use serde_json::{Map, Value, json};

use super::clock::Clock;
use super::rng::CaseRng;
use super::template;
use super::workload::{
    self, BROKEN, CONFLICT, FORBIDDEN, INVALID, Identity, MISSING, NAMESPACE, fault, name, set,
};
use crate::case::{Case, Expectations, Fault, Kind, Live, OwnWrite};

/// The feature gates that change a plan, and are on by default.
const GATES: [&str; 2] = ["DeploymentReplicaSetTerminatingReplicas", "PodDeletionCost"];

/// The case for a seed.
pub(super) fn case(seed: u64) -> Case {
    let mut rng = CaseRng::new(seed);
    let rng = &mut rng;
    let clock = Clock::draw(rng);
    let draft = Draft::draw(rng);
    let pods = draft.pods(rng, &clock);
    let mut replica_sets = vec![draft.object(rng, &clock, &pods)];
    replica_sets.extend(draft.neighbours(rng, &clock));
    let live = live(rng, &clock, &replica_sets[0], &pods);
    let mut faults = faults(rng, &pods);
    if live.subject.is_some() {
        // After such a refusal upstream has not got the version that it needs to write the status. Nodewise needs none.
        faults.retain(|fault| fault.op != "get-replicaset");
    }
    Case {
        kind: Kind::ReplicaSet,
        seed,
        now: clock.now.to_string(),
        replica_sets,
        pods,
        live,
        expectations: expectations(rng),
        own_writes: own_writes(rng),
        burst: rng.weighted(&[(80, 500), (5, 1), (5, 2), (5, 3), (5, 5)]),
        feature_gates_off: GATES
            .iter()
            .filter(|_| rng.in_hundred(6))
            .map(|gate| (*gate).to_owned())
            .collect(),
        faults,
        ..Case::default()
    }
}

/// What is decided first.
struct Draft {
    us: Identity,
    owner: Option<Identity>,
    selector: Value,
    labels: Map<String, Value>,
    template: Value,
    replicas: i64,
    min_ready: i64,
    pods: usize,
}

impl Draft {
    fn draw(rng: &mut CaseRng) -> Self {
        let name = match rng.below(40) {
            // A dash after it would make the name of a pod too long.
            0 => "w".repeat(253),
            1 => "web.example.com".to_owned(),
            _ => "web".to_owned(),
        };
        let us = Identity {
            kind: "ReplicaSet",
            name,
            uid: rng.uid(),
        };
        let owner = rng.in_hundred(60).then(|| Identity {
            kind: "Deployment",
            name: "web".to_owned(),
            uid: rng.uid(),
        });
        let drawn = workload::selector(rng);
        let labels = drawn.labels.clone();
        let mut labelled = labels.clone();
        if rng.in_hundred(15) {
            labelled.insert("extra".into(), "yes".into());
        }
        let min_ready = rng.weighted(&[(6, 0), (2, 10), (2, 60), (1, 3_600)]);
        let pods = if rng.in_hundred(4) {
            usize::try_from(rng.between(13..=18)).unwrap_or_default()
        } else {
            rng.below(9)
        };
        let wanted = i64::try_from(pods).unwrap_or_default() * 6 / 10;
        let replicas = match rng.below(20) {
            0 => 0,
            1 if rng.in_hundred(12) => rng.pick(&[1_200, 2_147_483_647]),
            2 => rng.between(12..=25),
            3..=8 => wanted + rng.between(1..=8),
            9..=14 => (wanted - rng.between(1..=4)).max(0),
            _ => (wanted + rng.between(-1..=1)).max(0),
        };
        Self {
            us,
            owner,
            selector: drawn.object,
            labels,
            template: template::draw(rng, &labelled, &["n1".to_owned(), "n2".to_owned()], false),
            replicas,
            min_ready,
            pods,
        }
    }

    /// The pods, of which most are the ReplicaSet's.
    fn pods(&self, rng: &mut CaseRng, clock: &Clock) -> Vec<Value> {
        // Each case has anomalies of its own.
        let anomalies = rng.pick(&[0, 10, 30, 60]);
        (0..self.pods)
            .map(|number| self.pod(rng, clock, &format!("p{number}"), anomalies))
            .collect()
    }

    fn pod(&self, rng: &mut CaseRng, clock: &Clock, name: &str, anomalies: u32) -> Value {
        let mut pod = workload::pod(rng, clock, name, self.min_ready);
        let mut labels = self.labels.clone();
        if let Value::Object(template) = &self.template["metadata"]["labels"]
            && rng.in_hundred(85)
        {
            labels.clone_from(template);
        }
        let mut owners = json!([self.us.controls()]);
        if rng.in_hundred(anomalies) {
            if rng.in_hundred(60) {
                owners = workload::owners(rng, &self.us);
            }
            if rng.in_hundred(15) {
                labels.insert("app".into(), "other".into());
                labels.insert("left-out".into(), "".into());
            }
            if rng.in_hundred(15) {
                pod["status"]["phase"] = rng.pick(&["Failed", "Succeeded"]).into();
            }
            if rng.in_hundred(15) {
                pod["metadata"]["deletionTimestamp"] = clock.before(rng.between(-30..=60)).into();
                pod["metadata"]["deletionGracePeriodSeconds"] = 30.into();
            }
            if rng.in_hundred(4) {
                pod["metadata"]["namespace"] = "elsewhere".into();
            }
        }
        set(&mut pod["metadata"], "labels", labels.into());
        set(&mut pod["metadata"], "ownerReferences", owners);
        pod
    }

    fn object(&self, rng: &mut CaseRng, clock: &Clock, pods: &[Value]) -> Value {
        let mut metadata = workload::metadata(rng, clock, &self.us.name, 100_000);
        metadata["uid"] = self.us.uid.clone().into();
        let generation = rng.between(1..=3);
        metadata["generation"] = generation.into();
        set(&mut metadata, "labels", self.labels.clone().into());
        if let Some(owner) = &self.owner {
            metadata["ownerReferences"] = json!([owner.controls()]);
        }
        if rng.in_hundred(6) {
            metadata["deletionTimestamp"] = clock.before(rng.between(0..=60)).into();
        }
        let mut spec = json!({
            "replicas": self.replicas,
            "selector": self.selector,
            "template": self.template,
        });
        set(
            &mut spec,
            "minReadySeconds",
            if self.min_ready == 0 {
                Value::Null
            } else {
                self.min_ready.into()
            },
        );
        json!({
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": metadata,
            "spec": spec,
            "status": self.status(rng, clock, pods, generation),
        })
    }

    /// A status that is right for most ReplicaSets in peace, or random.
    fn status(&self, rng: &mut CaseRng, clock: &Clock, pods: &[Value], generation: i64) -> Value {
        let is_ours = |pod: &&Value| {
            pod["metadata"]["ownerReferences"][0]["uid"] == self.us.uid.as_str()
                && pod["metadata"]["ownerReferences"][0]["controller"] == true
                && pod["metadata"]["labels"]["app"] != "other"
        };
        let ended = |pod: &&Value| {
            ["Failed", "Succeeded"]
                .iter()
                .any(|phase| pod["status"]["phase"] == *phase)
        };
        let deleting = |pod: &&Value| !pod["metadata"]["deletionTimestamp"].is_null();
        let own: Vec<&Value> = pods.iter().filter(is_ours).filter(|pod| !ended(pod)).collect();
        let active: Vec<&&Value> = own.iter().filter(|pod| !deleting(pod)).collect();
        let ready = active
            .iter()
            .filter(|pod| pod["status"]["conditions"][0]["status"] == "True")
            .count();
        let mut status = json!({"replicas": active.len(), "observedGeneration": generation});
        let mut labelled = active.len();
        let mut available = if self.min_ready == 0 { ready } else { 0 };
        if rng.in_hundred(25) {
            available = rng.below(4);
            labelled = rng.below(4);
        }
        for (member, count) in [
            ("fullyLabeledReplicas", labelled),
            ("readyReplicas", ready),
            ("availableReplicas", available),
        ] {
            if count > 0 {
                status[member] = count.into();
            }
        }
        match rng.below(10) {
            0 => {}
            1 => status["terminatingReplicas"] = 7.into(),
            _ => status["terminatingReplicas"] = (own.len() - active.len()).into(),
        }
        match rng.below(10) {
            0 => status["observedGeneration"] = (generation - 1).into(),
            1 => status = json!({"replicas": rng.below(5)}),
            _ => {}
        }
        let failed = |message: &str| {
            json!({
                "type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message,
                "lastTransitionTime": clock.before(500),
            })
        };
        let foreign = json!({"type": "Custom", "status": "Unknown", "lastTransitionTime": clock.before(5)});
        match rng.below(12) {
            0 => status["conditions"] = json!([failed("quota")]),
            1 => status["conditions"] = json!([foreign, failed("")]),
            2 => status["conditions"] = json!([foreign]),
            _ => {}
        }
        status
    }

    /// Other ReplicaSets in the cache, whose pods may be related.
    fn neighbours(&self, rng: &mut CaseRng, clock: &Clock) -> Vec<Value> {
        let count = if rng.in_hundred(40) { rng.below(3) } else { 0 };
        (0..count)
            .map(|number| {
                let name = if number == 0 { "neighbour" } else { "another" };
                let mut metadata = workload::metadata(rng, clock, name, 200_000);
                if number == 0 {
                    metadata["uid"] = "neighbour".into();
                }
                metadata["generation"] = 1.into();
                match (&self.owner, rng.below(4)) {
                    (Some(owner), 0..=2) => metadata["ownerReferences"] = json!([owner.controls()]),
                    (_, 3) => metadata["ownerReferences"] = workload::foreign(rng, &self.us),
                    _ => {}
                }
                let chosen = match rng.below(3) {
                    0 => json!({"matchLabels": {"app": "other"}}),
                    1 => json!({"matchLabels": {"app": "agent"}}),
                    _ => self.selector.clone(),
                };
                json!({
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "metadata": metadata,
                    "spec": {"replicas": 1, "selector": chosen, "template": self.template},
                    "status": {"replicas": 0},
                })
            })
            .collect()
    }
}

/// The calls that the API refuses.
fn faults(rng: &mut CaseRng, pods: &[Value]) -> Vec<Fault> {
    let mut faults = Vec::new();
    if !rng.in_hundred(30) {
        return faults;
    }
    for _ in 0..=rng.below(3) {
        let times = rng.weighted(&[(5, 0), (3, 1), (1, 2)]);
        let usual = rng.pick(&[BROKEN, FORBIDDEN, CONFLICT]);
        let any = rng.pick(&[BROKEN, FORBIDDEN, CONFLICT, MISSING, INVALID]);
        let pod = rng.maybe(pods).map(name).unwrap_or_default();
        let number = rng.between(1..=8).to_string();
        faults.push(match rng.below(12) {
            0 | 1 => fault("create-pod", "", usual, times),
            2 | 3 => fault("create-pod", &number, usual, 0),
            4 => workload::terminating("create-pod", "", times),
            5 => workload::terminating("create-pod", &number, 0),
            6 => fault("delete-pod", &pod, any, 0),
            7 => fault("delete-pod", "", any, 0),
            8 => fault("adopt-pod", &pod, any, times),
            9 => fault("release-pod", &pod, any, times),
            10 => fault("get-replicaset", "", rng.pick(&[BROKEN, MISSING]), 0),
            _ => fault("update-status", "", any, times),
        });
    }
    faults
}

/// The differences between the API and the caches.
fn live(rng: &mut CaseRng, clock: &Clock, cached: &Value, pods: &[Value]) -> Live {
    let mut live = Live::default();
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut changed = cached.clone();
        changed["metadata"]["resourceVersion"] = "4111111111".into();
        change(&mut changed);
        Some(Some(changed))
    };
    match rng.below(40) {
        0 => live.subject = Some(None),
        1 => live.subject = changed(&|set| set["metadata"]["deletionTimestamp"] = clock.before(1).into()),
        2 => live.subject = changed(&|set| set["metadata"]["uid"] = "successor".into()),
        3 => live.subject = changed(&|set| set["metadata"]["generation"] = 9.into()),
        _ => {}
    }
    for pod in pods {
        match rng.below(60) {
            0 => live.gone.push(format!("pods/{}", name(pod))),
            1 => {
                // Nodewise deletes by uid, so what it does with such a pod of its own would differ.
                let owners = &pod["metadata"]["ownerReferences"];
                if pod["metadata"]["namespace"] == NAMESPACE && owners[0]["controller"] != true {
                    let mut other = pod.clone();
                    other["metadata"]["uid"] = rng.uid().into();
                    live.pods.push(other);
                }
            }
            _ => {}
        }
    }
    live
}

fn expectations(rng: &mut CaseRng) -> Option<Expectations> {
    let (adds, dels) = match rng.below(20) {
        0 => (0, 0),
        1 => (rng.between(1..=5), 0),
        2 => (0, rng.between(1..=5)),
        3 => (rng.between(1..=3), rng.between(1..=3)),
        _ => return None,
    };
    // They expire when they are older than five minutes.
    let age_seconds = rng.pick(&[0, 10, 299, 300, 301, 3_600]);
    Some(Expectations {
        adds,
        dels,
        age_seconds,
    })
}

fn own_writes(rng: &mut CaseRng) -> Vec<OwnWrite> {
    if !rng.in_hundred(8) {
        return Vec::new();
    }
    let resource = rng.pick(&["pods", "replicasets"]).to_owned();
    // Versions are compared as numbers.
    let (written, observed) = rng.pick(&[
        ("90", "80"),
        ("90", "90"),
        ("90", "100"),
        ("100", "90"),
        ("7", "1000"),
    ]);
    vec![OwnWrite {
        resource,
        written: written.to_owned(),
        observed: observed.to_owned(),
    }]
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::generate::census::{Situation, is_deleting, is_orphan, is_owned, items};

    fn set(case: &Case) -> &Value {
        &case.replica_sets[0]
    }

    fn pods(case: &Case, test: impl Fn(&Value) -> bool) -> usize {
        let here = |pod: &&Value| pod["metadata"]["namespace"] == NAMESPACE;
        case.pods.iter().filter(here).filter(|pod| test(pod)).count()
    }

    fn has(case: &Case, test: impl Fn(&Value) -> bool) -> bool {
        pods(case, test) > 0
    }

    fn is_active(pod: &Value) -> bool {
        !is_deleting(pod) && !is_ended(pod)
    }

    fn is_ended(pod: &Value) -> bool {
        ["Failed", "Succeeded"]
            .iter()
            .any(|phase| pod["status"]["phase"] == *phase)
    }

    fn is_other(pod: &Value) -> bool {
        pod["metadata"]["labels"]["app"] == "other"
    }

    fn owned(case: &Case) -> usize {
        pods(case, |pod| {
            is_owned(case, pod) && is_active(pod) && !is_other(pod)
        })
    }

    fn wanted(case: &Case) -> usize {
        usize::try_from(set(case)["spec"]["replicas"].as_u64().unwrap_or_default()).unwrap_or_default()
    }

    fn refuses(case: &Case, op: &str) -> bool {
        case.faults.iter().any(|fault| fault.op == op)
    }

    fn costs(case: &Case, cost: &str) -> bool {
        has(case, |pod| pod["metadata"]["annotations"][workload::COST] == cost)
    }

    fn has_condition(case: &Case, name: &str) -> bool {
        items(&set(case)["status"]["conditions"])
            .iter()
            .any(|condition| condition["type"] == name)
    }

    pub(in crate::generate) const SITUATIONS: &[Situation] = &[
        ("as many pods as wanted", |case| owned(case) == wanted(case)),
        ("pods are missing", |case| owned(case) < wanted(case)),
        ("too many pods", |case| owned(case) > wanted(case)),
        ("more pods are missing than the burst", |case| {
            owned(case) + (case.burst as usize) < wanted(case)
        }),
        ("more pods are too many than the burst", |case| {
            owned(case) > wanted(case) + case.burst as usize
        }),
        ("more than twelve pods, of which some are too many", |case| {
            owned(case) > 12 && wanted(case) < owned(case) && wanted(case) > 0
        }),
        ("all pods are too many", |case| {
            wanted(case) == 0 && owned(case) > 1
        }),
        ("an orphan to adopt", |case| {
            has(case, |pod| is_orphan(pod) && is_active(pod) && !is_other(pod))
        }),
        ("an orphan that mentions us", |case| {
            has(case, |pod| {
                is_orphan(pod) && pod["metadata"]["ownerReferences"].is_array()
            })
        }),
        ("an orphan that is being deleted", |case| {
            has(case, |pod| is_orphan(pod) && is_deleting(pod))
        }),
        ("an orphan of other labels", |case| {
            has(case, |pod| is_orphan(pod) && is_other(pod))
        }),
        ("a pod to release", |case| {
            has(case, |pod| is_owned(case, pod) && is_other(pod) && is_active(pod))
        }),
        ("a pod of another controller", |case| {
            has(case, |pod| !is_orphan(pod) && !is_owned(case, pod))
        }),
        ("a pod in another namespace", |case| {
            case.pods
                .iter()
                .any(|pod| pod["metadata"]["namespace"] != NAMESPACE)
        }),
        ("a pod that ended", |case| {
            has(case, |pod| is_owned(case, pod) && is_ended(pod))
        }),
        ("a pod that is being deleted", |case| {
            has(case, |pod| {
                is_owned(case, pod) && is_deleting(pod) && !is_ended(pod)
            })
        }),
        ("a pod that ended and is being deleted", |case| {
            has(case, |pod| {
                is_owned(case, pod) && is_deleting(pod) && is_ended(pod)
            })
        }),
        ("a valid cost", |case| costs(case, "-5")),
        ("a cost with a plus", |case| costs(case, "+3")),
        ("a cost with zeros", |case| costs(case, "008")),
        ("a cost that is no number", |case| costs(case, "abc")),
        ("a cost that is too large", |case| costs(case, "2147483648")),
        ("a negative cost with zeros", |case| costs(case, "-007")),
        ("an empty cost", |case| costs(case, "")),
        ("restarts", |case| {
            has(case, |pod| {
                pod["status"]["containerStatuses"][0]["restartCount"] == 9001
            })
        }),
        ("restarts of a sidecar", |case| {
            has(case, |pod| {
                pod["status"]["initContainerStatuses"][0]["restartCount"] == 3
            })
        }),
        ("a pod without a node", |case| {
            has(case, |pod| pod["spec"]["nodeName"].is_null())
        }),
        ("a pod without a time of creation", |case| {
            has(case, |pod| pod["metadata"]["creationTimestamp"].is_null())
        }),
        ("ready, without a time", |case| {
            has(case, |pod| {
                let ready = &pod["status"]["conditions"][0];
                ready["status"] == "True" && ready["lastTransitionTime"].is_null()
            })
        }),
        ("related pods", |case| {
            let owner = &set(case)["metadata"]["ownerReferences"][0]["uid"];
            case.replica_sets[1..]
                .iter()
                .any(|other| !owner.is_null() && other["metadata"]["ownerReferences"][0]["uid"] == *owner)
        }),
        ("no controller", |case| {
            set(case)["metadata"]["ownerReferences"].is_null()
        }),
        ("it is being deleted", |case| is_deleting(set(case))),
        ("a time to be ready", |case| {
            !set(case)["spec"]["minReadySeconds"].is_null()
        }),
        ("an unobserved generation", |case| {
            set(case)["status"]["observedGeneration"] != set(case)["metadata"]["generation"]
        }),
        ("an old failure", |case| has_condition(case, "ReplicaFailure")),
        ("a foreign condition", |case| has_condition(case, "Custom")),
        ("no labels in the template", |case| {
            set(case)["spec"]["template"]["metadata"]["labels"].is_null() && owned(case) < wanted(case)
        }),
        ("a label that only the template has", |case| {
            set(case)["spec"]["template"]["metadata"]["labels"]["extra"] == "yes"
        }),
        ("a long name", |case| name(set(case)).len() == 253),
        ("expectations that just expired", |case| {
            case.expectations
                .is_some_and(|all| all.age_seconds == 301 && all.adds > 0)
        }),
        ("expectations that expire next", |case| {
            case.expectations
                .is_some_and(|all| all.age_seconds == 300 && all.adds > 0)
        }),
        ("deletes are awaited", |case| {
            case.expectations.is_some_and(|all| all.dels > 0)
        }),
        ("the caches are behind", |case| {
            case.own_writes
                .iter()
                .any(|own| own.written == "100" && own.observed == "90")
        }),
        ("no deletion cost", |case| {
            case.feature_gates_off.iter().any(|gate| gate == GATES[1])
        }),
        ("no count of pods being deleted", |case| {
            case.feature_gates_off.iter().any(|gate| gate == GATES[0])
        }),
        ("create-pod", |case| refuses(case, "create-pod")),
        ("delete-pod", |case| refuses(case, "delete-pod")),
        ("adopt-pod", |case| refuses(case, "adopt-pod")),
        ("release-pod", |case| refuses(case, "release-pod")),
        ("get-replicaset", |case| refuses(case, "get-replicaset")),
        ("update-status", |case| refuses(case, "update-status")),
        ("a namespace that goes", |case| {
            case.faults.iter().any(|fault| !fault.cause.is_empty())
        }),
        ("it is gone from the API", |case| case.live.subject == Some(None)),
        ("it is being deleted in the API only", |case| {
            let live = case.live.subject.iter().flatten();
            live.into_iter().any(is_deleting) && !is_deleting(set(case))
        }),
        ("it was replaced", |case| {
            let mut live = case.live.subject.iter().flatten();
            live.any(|live| live["metadata"]["uid"] == "successor")
        }),
        ("a pod is gone from the API", |case| !case.live.gone.is_empty()),
        ("a pod was replaced", |case| !case.live.pods.is_empty()),
    ];
}
