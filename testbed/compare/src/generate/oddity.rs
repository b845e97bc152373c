//! Oddities of pods, strewn into whatever story a cluster lives through.

use serde_json::{Map, Value, json};

use super::cluster::{Cluster, Story};
use super::odds::Odds;
use super::owner::{self, Owner};
use super::pod::{GENERATION_LABEL, HASH_LABEL, Pod, Ready, Target};

/// Changes a pod, or adds one.
type Oddity = fn(&mut Odds, &mut Cluster);

const ODDITIES: &[(u32, Oddity)] = &[
    (12, duplicate),
    (8, terminate),
    (6, |odds, cluster| end(odds, cluster, "Failed")),
    (4, |odds, cluster| end(odds, cluster, "Succeeded")),
    (5, end_and_terminate),
    (5, |odds, cluster| change(odds, cluster, |_, pod| pod.unbind())),
    (6, aim_oddly),
    (12, lose),
    (9, orphan),
    (7, disown),
    (4, foreign),
    (6, confuse),
    (7, relabel),
    (2, |odds, cluster| {
        change(odds, cluster, |odds, pod| {
            pod.phase = odds.pick(&["Unknown", "", "Pending"]);
        });
    }),
    (1, |odds, cluster| {
        change(odds, cluster, |_, pod| pod.labels = Map::new());
    }),
    (1, distant),
];

/// Adds a few, to most clusters none or one.
pub(super) fn sprinkle(odds: &mut Odds, cluster: &mut Cluster) {
    let count = match cluster.story {
        Story::Fresh => odds.weighted(&[(7, 0), (2, 1), (1, 2)]),
        _ => odds.weighted(&[(38, 0), (32, 1), (18, 2), (9, 3), (3, 5)]),
    };
    for _ in 0..count {
        let add = odds.weighted(ODDITIES);
        add(odds, cluster);
    }
}

/// Changes one of the pods, if there is one.
fn change(odds: &mut Odds, cluster: &mut Cluster, how: impl FnOnce(&mut Odds, &mut Pod)) {
    if !cluster.pods.is_empty() {
        let index = odds.below(cluster.pods.len());
        how(odds, &mut cluster.pods[index]);
    }
}

/// A pod of any version somewhere, added to the others.
fn another(odds: &mut Odds, cluster: &Cluster, node: &str) -> Pod {
    let version = if odds.in_hundred(55) {
        cluster.present()
    } else {
        cluster.former(odds)
    };
    let pod = Pod::draw(odds, cluster, version, node);
    if odds.in_hundred(30) {
        pod.unavailable(odds, cluster)
    } else {
        pod
    }
}

/// One pod more where one is; sometimes of the very same age.
fn duplicate(odds: &mut Odds, cluster: &mut Cluster) {
    let Some(first) = odds.maybe(&cluster.pods).cloned() else {
        return;
    };
    let Some(node) = first.node().map(str::to_owned) else {
        return;
    };
    for _ in 0..odds.weighted(&[(6, 1), (2, 2), (1, 4)]) {
        let mut pod = if odds.in_hundred(50) {
            Pod {
                name: cluster.pod_name(odds),
                ..first.clone()
            }
        } else {
            another(odds, cluster, &node)
        };
        match odds.below(3) {
            0 => pod.age = first.age,
            1 => pod.age = first.age + odds.between(-5..=5),
            _ => {}
        }
        if odds.in_hundred(20) {
            pod.unbind();
        }
        cluster.pods.push(pod);
    }
}

fn terminate(odds: &mut Odds, cluster: &mut Cluster) {
    change(odds, cluster, |odds, pod| {
        pod.deleting = true;
        pod.finalizers = odds.in_hundred(40);
    });
}

fn end(odds: &mut Odds, cluster: &mut Cluster, phase: &'static str) {
    change(odds, cluster, |_, pod| pod.end(phase));
}

fn end_and_terminate(odds: &mut Odds, cluster: &mut Cluster) {
    change(odds, cluster, |odds, pod| {
        pod.end(odds.pick(&["Failed", "Succeeded"]));
        pod.deleting = true;
        pod.finalizers = odds.in_hundred(80);
    });
}

/// Affinity that is not of the usual form, of a pod that no scheduler has seen.
fn aim_oddly(odds: &mut Odds, cluster: &mut Cluster) {
    let node = cluster.place(odds);
    let mut pod = another(odds, cluster, &node);
    let aim = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    let two = json!({"key": "metadata.name", "operator": "In", "values": [node, "other"]});
    let linux = json!({"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]});
    let terms = match odds.below(9) {
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

/// Pods on a node that is gone.
fn lose(odds: &mut Odds, cluster: &mut Cluster) {
    let node = odds.pick(&cluster.lost);
    for _ in 0..odds.weighted(&[(7, 1), (2, 2), (1, 3)]) {
        let mut pod = another(odds, cluster, &node);
        if odds.in_hundred(45) {
            pod.unbind();
        }
        if odds.in_hundred(15) {
            pod.deleting = true;
            pod.finalizers = odds.in_hundred(50);
        }
        if odds.in_hundred(12) {
            pod.end(odds.pick(&["Failed", "Succeeded"]));
        }
        cluster.pods.push(pod);
    }
}

/// A pod that nobody controls: one of those that are there, or one more.
fn orphan(odds: &mut Odds, cluster: &mut Cluster) {
    let node = cluster.place(odds);
    if odds.in_hundred(50) {
        let pod = another(odds, cluster, &node);
        cluster.pods.push(pod);
    } else if cluster.pods.is_empty() {
        return;
    } else {
        let index = odds.below(cluster.pods.len());
        let pod = cluster.pods.remove(index);
        cluster.pods.push(pod);
    }
    if let Some(pod) = cluster.pods.last_mut() {
        pod.owner = odds.pick(&[Owner::Nobody, Owner::Nobody, Owner::Mentioned]);
        if odds.in_hundred(20) {
            pod.deleting = true;
        }
        if odds.in_hundred(15) {
            pod.disguise();
        }
        if odds.in_hundred(30) {
            pod.labels.remove(HASH_LABEL);
        }
    }
}

/// A pod of ours whose labels no longer say so.
fn disown(odds: &mut Odds, cluster: &mut Cluster) {
    if cluster.pods.is_empty() || odds.in_hundred(30) {
        let node = cluster.place(odds);
        let pod = another(odds, cluster, &node);
        cluster.pods.push(pod);
    }
    let index = odds.below(cluster.pods.len());
    let pod = &mut cluster.pods[index];
    pod.disguise();
    pod.deleting |= odds.in_hundred(15);
}

fn foreign(odds: &mut Odds, cluster: &mut Cluster) {
    let node = cluster.place(odds);
    let mut pod = another(odds, cluster, &node);
    pod.owner = owner::foreigner(odds);
    cluster.pods.push(pod);
}

/// Says odd things about being ready.
fn confuse(odds: &mut Odds, cluster: &mut Cluster) {
    change(odds, cluster, |odds, pod| {
        pod.ready = odds.pick(&[
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

/// Changes the labels by which a pod counts as updated.
fn relabel(odds: &mut Odds, cluster: &mut Cluster) {
    let present = cluster.set.template_generation.unwrap_or(1).to_string();
    let hash = cluster.versions[cluster.present()].hash.clone();
    change(odds, cluster, |odds, pod| match odds.below(8) {
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
            // What a change of the serialization leaves behind (D-65).
            pod.labels.insert(HASH_LABEL.into(), "former".into());
            pod.labels.insert(GENERATION_LABEL.into(), present.into());
        }
    });
}

/// An orphan that would match, in another namespace.
fn distant(odds: &mut Odds, cluster: &mut Cluster) {
    let node = cluster.place(odds);
    let mut pod = another(odds, cluster, &node);
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
