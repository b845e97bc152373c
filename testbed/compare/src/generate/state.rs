//! The rest of a case: the controller's memory, and the differences between the API and the caches.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::fault::{self, FaultContext};
use super::node::Health;
use super::owner::Owner;
use super::pod::Pod;
use super::revision::{self, Revision};
use super::rng::CaseRng;
use super::scenario::Scenario;
use super::status;
use crate::case::{Backoff, Case, Expectations, HASH, Live};

/// The age after which back-off entries are forgotten (D-97).
const FORGOTTEN: SignedDuration = SignedDuration::from_mins(30);
const NANOSECOND: SignedDuration = SignedDuration::from_nanos(1);

/// The case for a cluster.
pub(super) fn case(rng: &mut CaseRng, cluster: Cluster, seed: u64) -> Case {
    let present = &cluster.setup.versions[cluster.setup.present()].template;
    let set = cluster.setup.set.object(present, &status::draw(rng, &cluster));
    let mut daemon_sets = vec![set];
    let is_neighbours = |pod: &Pod| pod.owner == Owner::Neighbour;
    if rng.in_hundred(if cluster.pods.iter().any(is_neighbours) {
        70
    } else {
        7
    }) {
        daemon_sets.push(cluster.setup.set.neighbour(rng, present));
    }
    let pods: Vec<_> = cluster
        .pods
        .iter()
        .map(|pod| pod.object(rng, &cluster.setup))
        .collect();
    let revisions = cluster
        .revisions
        .iter()
        .map(|revision| revision.render(rng, &cluster.setup));
    let revisions: Vec<_> = revisions.collect();
    let hidden = cluster
        .hidden
        .iter()
        .map(|revision| revision.render(rng, &cluster.setup));
    let hidden: Vec<_> = hidden.collect();
    let mut live = Live {
        gone: gone(rng, &cluster),
        revisions: hidden,
        ..Live::default()
    };
    change_daemon_set(rng, &cluster, &daemon_sets[0], &mut live);
    let expectations = expectations(rng);
    let pending = expectations.is_some_and(|one| one.age_seconds < 250 && (one.adds > 0 || one.dels > 0));
    let is_leaving = |pod: &Pod| pod.deleting || live.gone.contains(&format!("pods/{}", pod.name));
    let context = FaultContext {
        pending,
        all_there: !cluster.pods.iter().any(is_leaving),
    };
    Case {
        seed,
        now: cluster.setup.clock.now.to_string(),
        expectations,
        backoff: backoff(rng, &cluster),
        burst: burst(rng, &cluster),
        feature_gates: gates(rng, &cluster),
        echo: cluster.setup.echo,
        faults: fault::draw(rng, &cluster, &context),
        daemon_sets,
        pods,
        revisions,
        live,
        nodes: cluster.setup.nodes.into_iter().map(|node| node.object).collect(),
        ..Case::default()
    }
}

/// Small bursts are most frequent when there are many nodes.
fn burst(rng: &mut CaseRng, cluster: &Cluster) -> u32 {
    if cluster.setup.nodes.len() < 8 {
        rng.weighted(&[(86, 250), (4, 1), (4, 2), (4, 3), (2, 5)])
    } else {
        rng.weighted(&[(52, 250), (15, 1), (15, 2), (15, 3), (3, 8)])
    }
}

fn gates(rng: &mut CaseRng, cluster: &Cluster) -> Vec<String> {
    let is_on = rng.in_hundred(if matches!(cluster.setup.health, Health::Numeric) {
        60
    } else {
        2
    });
    let gate = is_on.then(|| "TaintTolerationComparisonOperators".to_owned());
    gate.into_iter().collect()
}

/// Changes the DaemonSet in the API.
fn change_daemon_set(rng: &mut CaseRng, cluster: &Cluster, cached: &Value, live: &mut Live) {
    let is_orphan = |owner| matches!(owner, Owner::Nobody | Owner::Mentioned);
    let adopts = cluster.pods.iter().any(|pod| is_orphan(pod.owner))
        || cluster.revisions.iter().any(|revision| is_orphan(revision.owner));
    let mut changed = cached.clone();
    if rng.in_hundred(if adopts { 22 } else { 2 }) {
        match rng.below(3) {
            0 => {
                live.subject = Some(None);
                return;
            }
            1 => {
                changed["metadata"]["deletionTimestamp"] = cluster.setup.clock.before(1).into();
                changed["metadata"]["deletionGracePeriodSeconds"] = 0.into();
                changed["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
            }
            _ => changed["metadata"]["uid"] = rng.uid().into(),
        }
    } else if rng.in_hundred(5) {
        // Another client has written it.
        if rng.in_hundred(50) {
            changed["metadata"]["annotations"] = json!({"changed": "yes"});
        } else {
            changed["status"]["numberReady"] = rng.between(0..=9).into();
        }
    } else if rng.in_hundred(if cluster.collides { 25 } else { 1 }) {
        changed["status"]["collisionCount"] = (cluster.setup.set.collisions.unwrap_or(0) % 1000 + 1).into();
    } else {
        return;
    }
    changed["metadata"]["resourceVersion"] = rng.version().into();
    live.subject = Some(Some(changed));
}

/// Objects in the cache that no longer exist in the API.
fn gone(rng: &mut CaseRng, cluster: &Cluster) -> Vec<String> {
    let mut gone = Vec::new();
    if rng.in_hundred(7)
        && let Some(pod) = rng.maybe(&cluster.pods)
    {
        gone.push(format!("pods/{}", pod.name));
    }
    let next = revision::name(&cluster.setup, HASH);
    let is_next = |revision: &&Revision| revision.name == next;
    let revision = match rng.below(100) {
        0..=3 => rng.maybe(&cluster.revisions),
        4..=9 => cluster.revisions.iter().find(is_next),
        _ => None,
    };
    if let Some(revision) =
        revision.filter(|revision| revision::may_be_gone(&cluster.setup, &cluster.revisions, revision))
    {
        gone.push(format!("controllerrevisions/{}", revision.name));
    }
    gone
}

/// Never close to five minutes old, when expectations expire, because upstream uses the real clock for this.
fn expectations(rng: &mut CaseRng) -> Option<Expectations> {
    let (adds, dels) = match rng.below(40) {
        0..=27 => return None,
        28..=30 => (0, 0),
        31 => (-1, 0),
        32 => (rng.between(-3..=0), rng.between(-3..=0)),
        33 => (-1, 2),
        34 => (1, -1),
        35 => (rng.between(1..=5), 0),
        36 => (0, rng.between(1..=5)),
        _ => (rng.between(0..=5), rng.between(0..=5)),
    };
    let age = if rng.in_hundred(35) {
        rng.between(351..=4000)
    } else {
        rng.between(0..=249)
    };
    Some(Expectations {
        adds,
        dels,
        age_seconds: age.unsigned_abs(),
    })
}

/// The back-off of nodes with finished pods, and sometimes of other nodes.
fn backoff(rng: &mut CaseRng, cluster: &Cluster) -> Vec<Backoff> {
    let ended = cluster.pods.iter().filter(|pod| pod.is_finished());
    let mut nodes: Vec<_> = ended.filter_map(Pod::node).map(str::to_owned).collect();
    if rng.in_hundred(if cluster.setup.scenario == Scenario::Failing {
        15
    } else {
        2
    }) {
        nodes.push(cluster.setup.any_node(rng));
    }
    nodes.sort_unstable();
    nodes.dedup();
    nodes.retain(|_| rng.in_hundred(65));
    nodes.into_iter().map(|node| entry(rng, cluster, node)).collect()
}

fn entry(rng: &mut CaseRng, cluster: &Cluster, node: String) -> Backoff {
    let delay_seconds = rng.pick(&[1_u32, 1, 2, 4, 8, 64, 512, 900]);
    let delay = SignedDuration::from_secs(delay_seconds.into());
    let ago = match rng.below(10) {
        0 => delay - NANOSECOND,
        1 => delay,
        2 => delay + NANOSECOND,
        3 => FORGOTTEN,
        4 => FORGOTTEN + NANOSECOND,
        5 => FORGOTTEN + SignedDuration::from_secs(rng.between(1..=9000)),
        6 => SignedDuration::ZERO,
        7 => delay + SignedDuration::from_secs(rng.between(1..=60)),
        _ => delay / 2,
    };
    let observed = cluster.setup.set.observed;
    Backoff {
        observed_generation: if rng.in_hundred(88) {
            observed
        } else {
            observed + 1
        },
        node,
        delay_seconds: delay_seconds.into(),
        last: cluster.setup.clock.exactly_before(ago),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::generate::census::{Situation, is_current, is_deleting, is_orphan, items, name, set};

    /// Whether the back-off entry of a node with failed pods is exactly `delays` times its delay plus `more` old.
    fn is_aged(case: &Case, delays: i32, more: SignedDuration) -> bool {
        let now: Timestamp = case.now.parse().expect("a time");
        case.backoff.iter().any(|entry| {
            let last: Timestamp = entry.last.parse().expect("a time");
            let delay = SignedDuration::from_secs(i64::try_from(entry.delay_seconds).expect("a delay"));
            let failed = case.pods.iter().any(|pod| {
                pod["status"]["phase"] == "Failed"
                    && pod["spec"]["nodeName"] == entry.node
                    && !is_deleting(pod)
            });
            failed
                && set(case)["status"]["observedGeneration"] == entry.observed_generation
                && now.duration_since(last) == delay * delays + more
        })
    }

    /// Whether a succeeded pod is on a node with a current (`true`), ended (`false`) or no (`None`) back-off.
    fn succeeded(case: &Case, goes_on: Option<bool>) -> bool {
        let now: Timestamp = case.now.parse().expect("a time");
        let goes = |entry: &Backoff| {
            let last: Timestamp = entry.last.parse().expect("a time");
            let delay = SignedDuration::from_secs(i64::try_from(entry.delay_seconds).expect("a delay"));
            now.duration_since(last) < delay
        };
        case.pods.iter().any(|pod| {
            let mut entries = case.backoff.iter();
            let entry = entries.find(|entry| pod["spec"]["nodeName"] == entry.node);
            pod["status"]["phase"] == "Succeeded" && !is_deleting(pod) && entry.map(goes) == goes_on
        })
    }

    /// Whether the cache has a revision with the name of the next one, and the API does not.
    fn next_is_gone(case: &Case, same: bool) -> bool {
        case.live.gone.iter().any(|gone| gone.ends_with("-@hash"))
            && case.revisions.iter().any(|revision| {
                name(&revision.object).ends_with("-@hash") && is_current(case, revision) == same
            })
    }

    fn has_to_fill(case: &Case, burst: u32) -> bool {
        case.burst == burst && case.nodes.len() >= case.pods.len() + 10
    }

    fn has_to_roll(case: &Case, burst: u32) -> bool {
        let is_old = |pod: &&Value| pod["metadata"]["labels"]["controller-revision-hash"] != "@hash";
        case.burst == burst && case.nodes.len() >= 10 && case.pods.iter().filter(is_old).count() >= 5
    }

    fn has_orphan(case: &Case) -> bool {
        let orphan = |object: &Value| {
            is_orphan(object) && !is_deleting(object) && object["metadata"]["labels"]["app"] == "agent"
        };
        case.pods.iter().any(orphan)
    }

    fn live(case: &Case) -> &Value {
        match &case.live.subject {
            Some(Some(live)) => live,
            _ => &Value::Null,
        }
    }

    fn expects(case: &Case, is: impl Fn(Expectations) -> bool) -> bool {
        case.expectations.is_some_and(is)
    }

    pub(in crate::generate) const SITUATIONS: &[Situation] = &[
        ("nothing remembered", |case| {
            case.expectations.is_none() && case.backoff.is_empty()
        }),
        ("creates awaited", |case| {
            expects(case, |one| one.adds > 0 && one.age_seconds < 250)
        }),
        ("deletes awaited", |case| {
            expects(case, |one| one.dels > 0 && one.age_seconds < 250)
        }),
        ("awaited in vain", |case| {
            expects(case, |one| one.adds > 0 && one.age_seconds > 350)
        }),
        ("deletes awaited in vain", |case| {
            expects(case, |one| one.dels > 0 && one.age_seconds > 350)
        }),
        ("nothing awaited any more", |case| {
            expects(case, |one| one.adds == 0 && one.dels == 0)
        }),
        ("less than nothing awaited", |case| {
            expects(case, |one| one.adds < 0 && one.dels < 0)
        }),
        ("less than no creates, and deletes awaited", |case| {
            expects(case, |one| one.adds < 0 && one.dels > 0 && one.age_seconds < 250)
        }),
        ("back-off before its end", |case| is_aged(case, 1, -NANOSECOND)),
        ("back-off at its end", |case| {
            is_aged(case, 1, SignedDuration::ZERO)
        }),
        ("back-off after its end", |case| is_aged(case, 1, NANOSECOND)),
        ("back-off nearly forgotten", |case| is_aged(case, 0, FORGOTTEN)),
        ("back-off forgotten", |case| {
            is_aged(case, 0, FORGOTTEN + NANOSECOND)
        }),
        ("back-off that begins", |case| {
            is_aged(case, 0, SignedDuration::ZERO)
        }),
        ("the longest back-off", |case| {
            case.backoff.iter().any(|entry| entry.delay_seconds == 900)
        }),
        ("back-off of another generation", |case| {
            case.backoff
                .iter()
                .any(|entry| set(case)["status"]["observedGeneration"] != entry.observed_generation)
        }),
        ("succeeded inside back-off", |case| succeeded(case, Some(true))),
        ("succeeded after back-off", |case| succeeded(case, Some(false))),
        ("succeeded without back-off", |case| succeeded(case, None)),
        ("gone, with an orphan", |case| {
            has_orphan(case) && case.live.subject == Some(None)
        }),
        ("deleted, with an orphan", |case| {
            has_orphan(case) && is_deleting(live(case))
        }),
        ("another uid, with an orphan", |case| {
            has_orphan(case)
                && !live(case).is_null()
                && live(case)["metadata"]["uid"] != set(case)["metadata"]["uid"]
        }),
        ("a newer version", |case| {
            !live(case).is_null() && live(case)["metadata"]["uid"] == set(case)["metadata"]["uid"]
        }),
        ("a newer count of collisions, with a collision", |case| {
            !live(case).is_null()
                && live(case)["status"]["collisionCount"] != set(case)["status"]["collisionCount"]
                && !case.live.revisions.is_empty()
        }),
        ("a pod gone", |case| {
            case.live.gone.iter().any(|gone| gone.starts_with("pods/"))
        }),
        ("a revision gone", |case| {
            case.live
                .gone
                .iter()
                .any(|gone| gone.starts_with("controllerrevisions/"))
        }),
        ("the next revision gone, of the same data", |case| {
            next_is_gone(case, true)
        }),
        ("the next revision gone, of other data", |case| {
            next_is_gone(case, false)
        }),
        ("burst 1 and ten nodes to fill", |case| has_to_fill(case, 1)),
        ("burst 2 and ten nodes to fill", |case| has_to_fill(case, 2)),
        ("burst 3 and ten nodes to fill", |case| has_to_fill(case, 3)),
        ("burst 1 and ten nodes with old pods", |case| has_to_roll(case, 1)),
        ("burst 2 and ten nodes with old pods", |case| has_to_roll(case, 2)),
        ("burst 3 and ten nodes with old pods", |case| has_to_roll(case, 3)),
        ("the smallest burst", |case| {
            case.burst == 1 && case.nodes.len() > 2 && case.pods.len() < 2
        }),
        ("a small burst of deletes", |case| {
            case.burst == 2 && case.pods.len() > case.nodes.len() + 3
        }),
        ("more nodes than the burst", |case| {
            case.nodes.len() > 250 && case.burst == 250
        }),
        ("failed pods and a small burst", |case| {
            case.burst < 3
                && case
                    .pods
                    .iter()
                    .filter(|pod| pod["status"]["phase"] == "Failed")
                    .count()
                    > 3
        }),
    ];

    #[test]
    fn expectations_are_far_from_expiring() {
        for seed in 0..800 {
            let case = crate::generate::case(seed);
            assert!(
                case.expectations
                    .is_none_or(|one| !(250..=350).contains(&one.age_seconds))
            );
        }
    }

    #[test]
    fn only_cached_objects_can_be_gone() {
        for seed in 0..800 {
            let case = crate::generate::case(seed);
            for gone in &case.live.gone {
                let (kind, gone) = gone.split_once('/').expect("kind and name");
                let mut pods = case.pods.iter();
                let mut revisions = case.revisions.iter();
                let is_cached = match kind {
                    "pods" => pods.any(|pod| name(pod) == gone),
                    _ => revisions.any(|revision| name(&revision.object) == gone),
                };
                assert!(is_cached, "seed {seed}: {kind}/{gone}");
            }
            assert!(items(&json!(case.live.gone)).len() <= 2);
        }
    }
}
