//! Anomalies of pods, in any scenario.

use serde_json::{Map, Value, json};

use super::cluster::Cluster;
use super::owner::{self, Owner};
use super::pod::{GENERATION_LABEL, HASH_LABEL, Pod, Ready, Target};
use super::rng::CaseRng;
use super::scenario::Scenario;

/// Changes a pod or adds one.
type Anomaly = fn(&mut CaseRng, &mut Cluster);

const ANOMALIES: &[(u32, Anomaly)] = &[
    (12, duplicate),
    (8, terminate),
    (6, |rng, cluster| end(rng, cluster, "Failed")),
    (4, |rng, cluster| end(rng, cluster, "Succeeded")),
    (5, end_and_terminate),
    (5, |rng, cluster| change(rng, cluster, |_, pod| pod.unbind())),
    (6, aim_oddly),
    (12, lose),
    (9, orphan),
    (7, disown),
    (4, foreign),
    (6, confuse),
    (7, relabel),
    (2, |rng, cluster| {
        change(rng, cluster, |rng, pod| {
            pod.phase = rng.pick(&["Unknown", "", "Pending"]);
        });
    }),
    (1, |rng, cluster| {
        change(rng, cluster, |_, pod| pod.labels = Map::new());
    }),
    (1, distant),
];

/// Adds a few anomalies; most clusters get none or one.
pub(super) fn add_anomalies(rng: &mut CaseRng, cluster: &mut Cluster) {
    let count = match cluster.setup.scenario {
        Scenario::Fresh => rng.weighted(&[(7, 0), (2, 1), (1, 2)]),
        _ => rng.weighted(&[(38, 0), (32, 1), (18, 2), (9, 3), (3, 5)]),
    };
    for _ in 0..count {
        let add = rng.weighted(ANOMALIES);
        add(rng, cluster);
    }
}

/// Changes a random pod, if there is any.
fn change(rng: &mut CaseRng, cluster: &mut Cluster, how: impl FnOnce(&mut CaseRng, &mut Pod)) {
    if !cluster.pods.is_empty() {
        let index = rng.below(cluster.pods.len());
        how(rng, &mut cluster.pods[index]);
    }
}

/// One more pod, of any version.
fn another(rng: &mut CaseRng, cluster: &Cluster, node: &str) -> Pod {
    let version = if rng.in_hundred(55) {
        cluster.setup.present()
    } else {
        cluster.setup.former(rng)
    };
    let pod = cluster.pod(rng, version, node);
    if rng.in_hundred(30) {
        pod.unavailable(rng, &cluster.setup)
    } else {
        pod
    }
}

/// Adds a second pod on the node of another, sometimes of the same age.
fn duplicate(rng: &mut CaseRng, cluster: &mut Cluster) {
    let Some(first) = rng.maybe(&cluster.pods).cloned() else {
        return;
    };
    let Some(node) = first.node().map(str::to_owned) else {
        return;
    };
    for _ in 0..rng.weighted(&[(6, 1), (2, 2), (1, 4)]) {
        let mut pod = if rng.in_hundred(50) {
            Pod {
                name: cluster.pod_name(rng),
                ..first.clone()
            }
        } else {
            another(rng, cluster, &node)
        };
        match rng.below(3) {
            0 => pod.age = first.age,
            1 => pod.age = first.age + rng.between(-5..=5),
            _ => {}
        }
        if rng.in_hundred(20) {
            pod.unbind();
        }
        cluster.pods.push(pod);
    }
}

fn terminate(rng: &mut CaseRng, cluster: &mut Cluster) {
    change(rng, cluster, |rng, pod| {
        pod.deleting = true;
        pod.finalizers = rng.in_hundred(40);
    });
}

fn end(rng: &mut CaseRng, cluster: &mut Cluster, phase: &'static str) {
    change(rng, cluster, |_, pod| pod.end(phase));
}

fn end_and_terminate(rng: &mut CaseRng, cluster: &mut Cluster) {
    change(rng, cluster, |rng, pod| {
        pod.end(rng.pick(&["Failed", "Succeeded"]));
        pod.deleting = true;
        pod.finalizers = rng.in_hundred(80);
    });
}

/// An unscheduled pod with an unusual affinity.
fn aim_oddly(rng: &mut CaseRng, cluster: &mut Cluster) {
    let node = cluster.setup.any_node(rng);
    let mut pod = another(rng, cluster, &node);
    let aim = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    let two = json!({"key": "metadata.name", "operator": "In", "values": [node, "other"]});
    let linux = json!({"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]});
    let terms = match rng.below(9) {
        0 => json!([{"matchExpressions": [linux]}, {"matchFields": [aim]}]),
        1 => json!([{"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["x"]}, aim]}]),
        2 => {
            json!([{"matchFields": [{"key": "metadata.uid", "operator": "In", "values": ["x"]}]}, {"matchFields": [aim]}])
        }
        3 => json!([{"matchFields": [two]}]),
        4 => json!([{"matchFields": [two]}, {"matchFields": [aim]}]),
        5 => json!([{"matchExpressions": [linux]}]),
        6 => json!([{"matchFields": [aim]}, {"matchFields": [two]}]),
        7 => json!([{"matchFields": [{"key": "metadata.name", "operator": "In"}]}]),
        _ => Value::Null,
    };
    pod.target = Target::Odd(terms);
    pod.phase = "Pending";
    pod.ready = Ready::Missing;
    cluster.pods.push(pod);
}

/// Pods on a deleted node.
fn lose(rng: &mut CaseRng, cluster: &mut Cluster) {
    let node = rng.pick(&cluster.setup.lost);
    for _ in 0..rng.weighted(&[(7, 1), (2, 2), (1, 3)]) {
        let mut pod = another(rng, cluster, &node);
        if rng.in_hundred(45) {
            pod.unbind();
        }
        if rng.in_hundred(15) {
            pod.deleting = true;
            pod.finalizers = rng.in_hundred(50);
        }
        if rng.in_hundred(12) {
            pod.end(rng.pick(&["Failed", "Succeeded"]));
        }
        cluster.pods.push(pod);
    }
}

/// A pod without a controller: an existing pod or a new one.
fn orphan(rng: &mut CaseRng, cluster: &mut Cluster) {
    let node = cluster.setup.any_node(rng);
    if rng.in_hundred(50) {
        let pod = another(rng, cluster, &node);
        cluster.pods.push(pod);
    } else if cluster.pods.is_empty() {
        return;
    } else {
        let index = rng.below(cluster.pods.len());
        let pod = cluster.pods.remove(index);
        cluster.pods.push(pod);
    }
    if let Some(pod) = cluster.pods.last_mut() {
        pod.owner = rng.pick(&[Owner::Nobody, Owner::Nobody, Owner::Mentioned]);
        if rng.in_hundred(20) {
            pod.deleting = true;
        }
        if rng.in_hundred(15) {
            pod.disguise();
        }
        if rng.in_hundred(30) {
            pod.labels.remove(HASH_LABEL);
        }
    }
}

/// A controlled pod whose labels no longer match.
fn disown(rng: &mut CaseRng, cluster: &mut Cluster) {
    if cluster.pods.is_empty() || rng.in_hundred(30) {
        let node = cluster.setup.any_node(rng);
        let pod = another(rng, cluster, &node);
        cluster.pods.push(pod);
    }
    let index = rng.below(cluster.pods.len());
    let pod = &mut cluster.pods[index];
    pod.disguise();
    pod.deleting |= rng.in_hundred(15);
}

fn foreign(rng: &mut CaseRng, cluster: &mut Cluster) {
    let node = cluster.setup.any_node(rng);
    let mut pod = another(rng, cluster, &node);
    pod.owner = owner::foreigner(rng);
    cluster.pods.push(pod);
}

/// Unusual Ready conditions.
fn confuse(rng: &mut CaseRng, cluster: &mut Cluster) {
    change(rng, cluster, |rng, pod| {
        pod.ready = rng.pick(&[
            Ready::Twice("True", "False"),
            Ready::Twice("False", "True"),
            Ready::Twice("Unknown", "True"),
            Ready::Undated,
            Ready::Missing,
            Ready::Not("Unknown"),
            Ready::Since(-5),
        ]);
    });
}

/// Changes the labels that decide whether a pod counts as updated.
fn relabel(rng: &mut CaseRng, cluster: &mut Cluster) {
    let present = cluster.setup.set.template_generation.unwrap_or(1).to_string();
    let hash = cluster.setup.versions[cluster.setup.present()].hash.clone();
    change(rng, cluster, |rng, pod| match rng.below(8) {
        0 => drop(pod.labels.remove(HASH_LABEL)),
        1 => drop(pod.labels.insert(HASH_LABEL.into(), "".into())),
        2 => drop(pod.labels.insert(HASH_LABEL.into(), "unknown".into())),
        3 => drop(pod.labels.insert(HASH_LABEL.into(), hash.into())),
        4 => drop(pod.labels.remove(GENERATION_LABEL)),
        5 => drop(pod.labels.insert(GENERATION_LABEL.into(), "77".into())),
        6 => drop(
            pod.labels
                .insert(GENERATION_LABEL.into(), format!("0{present}").into()),
        ),
        _ => {
            // The labels after a change of the serialization (D-65).
            pod.labels.insert(HASH_LABEL.into(), "former".into());
            pod.labels.insert(GENERATION_LABEL.into(), present.into());
        }
    });
}

/// A matching orphan in another namespace.
fn distant(rng: &mut CaseRng, cluster: &mut Cluster) {
    let node = cluster.setup.any_node(rng);
    let mut pod = another(rng, cluster, &node);
    pod.owner = Owner::Nobody;
    pod.elsewhere = true;
    cluster.pods.push(pod);
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::case::Case;
    use crate::generate::census::{Situation, is_deleting, is_on_a_node, is_orphan, is_owned, items, set};

    fn any(case: &Case, is: impl Fn(&Value) -> bool) -> bool {
        case.pods.iter().any(is)
    }

    fn bound(pod: &Value) -> bool {
        pod["spec"]["nodeName"].is_string()
    }

    fn finished(pod: &Value) -> bool {
        pod["status"]["phase"] == "Failed" || pod["status"]["phase"] == "Succeeded"
    }

    fn terms(pod: &Value) -> &[Value] {
        let node = &pod["spec"]["affinity"]["nodeAffinity"];
        items(&node["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"])
    }

    fn aims_at(pod: &Value, prefix: &str) -> bool {
        let values = items(&terms(pod).first().unwrap_or(&Value::Null)["matchFields"][0]["values"]);
        !bound(pod) && values.len() == 1 && values[0].as_str().is_some_and(|name| name.starts_with(prefix))
    }

    fn pair(case: &Case, is: impl Fn(&Value, &Value) -> bool) -> bool {
        case.pods.iter().any(|one| {
            case.pods.iter().any(|other| {
                one["metadata"]["name"] != other["metadata"]["name"]
                    && bound(one)
                    && one["spec"]["nodeName"] == other["spec"]["nodeName"]
                    && is(one, other)
            })
        })
    }

    fn app(object: &Value) -> &Value {
        &object["metadata"]["labels"]["app"]
    }

    pub(in crate::generate) const SITUATIONS: &[Situation] = &[
        ("two pods on a node", |case| pair(case, |_, _| true)),
        ("two pods on a node since the same second", |case| {
            pair(case, |one, other| {
                one["metadata"]["creationTimestamp"] == other["metadata"]["creationTimestamp"]
            })
        }),
        ("finished and terminating, held", |case| {
            any(case, |pod| {
                finished(pod) && is_deleting(pod) && pod["metadata"]["finalizers"].is_array()
            })
        }),
        ("finished and terminating, not held", |case| {
            any(case, |pod| {
                finished(pod) && is_deleting(pod) && pod["metadata"]["finalizers"].is_null()
            })
        }),
        ("bound to a lost node", |case| {
            any(case, |pod| bound(pod) && !is_on_a_node(case, pod))
        }),
        ("meant for a lost node", |case| {
            any(case, |pod| aims_at(pod, "gone-"))
        }),
        ("meant for a lost node and terminating", |case| {
            any(case, |pod| aims_at(pod, "gone-") && is_deleting(pod))
        }),
        ("meant for a node", |case| any(case, |pod| aims_at(pod, "node-"))),
        ("several terms", |case| {
            any(case, |pod| !bound(pod) && terms(pod).len() > 1)
        }),
        ("two values", |case| {
            any(case, |pod| {
                !bound(pod)
                    && items(&terms(pod).first().unwrap_or(&Value::Null)["matchFields"][0]["values"]).len()
                        == 2
            })
        }),
        ("no target", |case| {
            any(case, |pod| !bound(pod) && terms(pod).is_empty())
        }),
        ("an orphan to adopt", |case| {
            any(case, |pod| {
                is_orphan(pod) && !is_deleting(pod) && *app(pod) == "agent"
            })
        }),
        ("an orphan that names us", |case| {
            any(case, |pod| {
                is_orphan(pod) && pod["metadata"]["ownerReferences"].is_array()
            })
        }),
        ("an orphan that terminates", |case| {
            any(case, |pod| is_orphan(pod) && is_deleting(pod))
        }),
        ("an orphan of something else", |case| {
            any(case, |pod| is_orphan(pod) && *app(pod) == "other")
        }),
        ("an orphan elsewhere", |case| {
            any(case, |pod| pod["metadata"]["namespace"] == "elsewhere")
        }),
        ("a pod to release", |case| {
            any(case, |pod| is_owned(case, pod) && *app(pod) == "other")
        }),
        ("a pod of another controller", |case| {
            any(case, |pod| !is_orphan(pod) && !is_owned(case, pod))
        }),
        ("a pod of another DaemonSet", |case| {
            case.daemon_sets.len() == 2
                && any(case, |pod| {
                    let uid = &case.daemon_sets[1]["metadata"]["uid"];
                    items(&pod["metadata"]["ownerReferences"])
                        .iter()
                        .any(|owner| owner["uid"] == *uid)
                })
        }),
        ("a pod of a DaemonSet of before", |case| {
            any(case, |pod| {
                items(&pod["metadata"]["ownerReferences"]).iter().any(|owner| {
                    owner["controller"] == true
                        && owner["name"] == set(case)["metadata"]["name"]
                        && owner["uid"] != set(case)["metadata"]["uid"]
                        && owner["kind"] == "DaemonSet"
                })
            })
        }),
        ("a pod without labels", |case| {
            any(case, |pod| pod["metadata"]["labels"].is_null())
        }),
        ("a pod without hash", |case| {
            any(case, |pod| {
                is_owned(case, pod) && pod["metadata"]["labels"][HASH_LABEL].is_null()
            })
        }),
        ("a pod with an empty hash", |case| {
            any(case, |pod| pod["metadata"]["labels"][HASH_LABEL] == "")
        }),
        ("a pod updated by its number alone", |case| {
            any(case, |pod| pod["metadata"]["labels"][HASH_LABEL] == "former")
        }),
    ];
}
