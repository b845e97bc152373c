//! The names of new pods (deviation `IDEMPOTENT_CREATES`).

use std::collections::BTreeSet;

use nodewise_planner::{
    plan::PhaseKind,
    report::{OutcomeResult, come_back},
    snapshot::{Deviation, PodNameCollision},
};

use crate::support::{World, actions, creates, expected_create, outstanding, used};

fn names(world: &World) -> Vec<String> {
    creates(&world.plan()).into_iter().map(str::to_owned).collect()
}

#[test]
fn names_look_like_those_of_upstream() {
    let world = World::new(500);
    let all = names(&world);
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 500);
    for name in &all {
        let suffix = name
            .strip_prefix("web-")
            .expect("the name begins with that of the set");
        assert!(
            suffix.len() == 5
                && suffix
                    .bytes()
                    .all(|byte| b"bcdfghjklmnpqrstvwxz2456789".contains(&byte)),
            "{name}"
        );
    }
    // They must be the same on every replica and in every version of Nodewise.
    assert_eq!(all[..3], ["web-mxbrn", "web-5hq9c", "web-l26q2"]);
    let mut other = World::new(500);
    other.rs.uid = "another".to_owned();
    assert_ne!(names(&other)[..3], all[..3]);
    assert!(world.plan().deviations.contains(&Deviation::IdempotentCreates));
    assert!(
        names(&world.strict()).iter().all(String::is_empty),
        "upstream lets the apiserver choose"
    );
}

#[test]
fn long_and_odd_names_of_sets() {
    for (name, prefix) in [
        ("a".repeat(57), format!("{}-", "a".repeat(57))),
        ("a".repeat(58), format!("{}-", "a".repeat(57))),
        ("a".repeat(253), format!("{}-", "a".repeat(57))),
        (format!("{}.b", "a".repeat(56)), format!("{}-", "a".repeat(56))),
        (String::new(), String::new()),
        ("ä".repeat(60), format!("{}-", "ä".repeat(28))),
    ] {
        let mut world = World::new(2);
        world.rs.name.clone_from(&name);
        for pod in names(&world) {
            assert!(
                pod.len() <= 63 && pod.starts_with(&prefix) && pod.len() == prefix.len() + 5,
                "{name}: {pod}"
            );
        }
        // Names are read back, whatever the name of the set: present names are not given again.
        let first = names(&world);
        world.pod(&format!("{}@", first[0]));
        assert_eq!(names(&world), first[1..]);
    }
}

#[test]
fn a_repeated_plan_gives_the_same_names() {
    let world = World::new(5);
    let all = names(&world);
    // Whatever became of the first creates: names that no pod has are given again.
    for landed in 0..5 {
        let mut after = world.clone();
        for name in &all[..landed] {
            after.create(name);
        }
        assert_eq!(names(&after), all[landed..]);
        // In any order.
        let mut after = world.clone();
        for name in &all[5 - landed..] {
            after.create(name);
        }
        assert_eq!(names(&after), all[..5 - landed]);
    }
    // Also after the expectations have expired.
    let mut after = world.clone();
    after.state = world.plan().state;
    after.now += jiff::SignedDuration::from_mins(6);
    assert_eq!(names(&after), all);
}

#[test]
fn a_new_pod_is_not_named_like_any_other() {
    let all = names(&World::new(9));
    let mut world = World::new(3);
    // A pod that is being deleted, one of another owner, a finished one, and one that does not match.
    for (name, words) in [
        (&all[0], "deleting"),
        (&all[1], "foreign"),
        (&all[2], "failed"),
        (&all[4], "orphan stray"),
    ] {
        world.pod(&format!("{name}@n {words}"));
    }
    assert_eq!(names(&world), [&*all[3], &*all[5], &*all[6]]);
    // Pods that are gone keep their names until the set is complete.
    world.state.used_pod_names = vec![used(&all[3]), used(&all[6]), used("other-bbbbb"), used(&all[3])];
    world
        .state
        .used_pod_names
        .push(nodewise_planner::snapshot::UsedPodName {
            node_name: "n".to_owned(),
            pod_name: all[5].clone(),
        });
    let plan = world.plan();
    assert_eq!(creates(&plan), [&*all[7], &*all[8], &*names(&World::new(10))[9]]);
    let mut kept = vec![used(&all[3]), used(&all[6])];
    kept.sort();
    assert_eq!(
        plan.state.used_pod_names, kept,
        "what no new pod could get is dropped"
    );
    // Outstanding creates are not given again while they are outstanding.
    let mut world = World::new(4);
    world.expect(&[&all[0], &all[2]], &[], 0);
    assert_eq!(names(&world), [&*all[1], &*all[3]]);
}

#[test]
fn no_name_is_reused_when_all_pods_of_a_large_set_are_gone() {
    let all = names(&World::new(2_500).burst(2_500));
    let mut world = World::new(2_500);
    world.state.used_pod_names = all.iter().map(|name| used(name)).collect();
    for _ in 0..2 {
        let plan = world.plan();
        let created = creates(&plan);
        assert_eq!(created.len(), 500);
        assert!(!created.iter().any(|name| all.iter().any(|gone| gone == name)));
        world.apply(&plan);
        world.observe();
    }
}

#[test]
fn at_most_a_thousand_used_names_of_a_small_set_are_kept() {
    let all = names(&World::new(1_500).burst(1_500));
    let mut world = World::new(1);
    world.state.used_pod_names = all.iter().rev().map(|name| used(name)).collect();
    let plan = world.plan();
    let kept: BTreeSet<_> = plan
        .state
        .used_pod_names
        .iter()
        .map(|used| &used.pod_name)
        .collect();
    assert_eq!(kept, all[500..].iter().collect(), "those that were given last");
    assert!(!all.contains(&creates(&plan)[0].to_owned()));
}

#[test]
fn names_that_strangers_took() {
    let mut world = World::new(1);
    let all = names(&World::new(5));
    for round in 1..=4 {
        let plan = world.plan();
        let name = creates(&plan)[0].to_owned();
        if round < 4 {
            assert_eq!(name, all[round - 1], "the next name");
        } else {
            assert_eq!(name, "", "after three the apiserver chooses");
            let manifest = plan.pod_manifest.as_ref().expect("a pod is created");
            assert!(String::from_utf8_lossy(&manifest.json).contains(r#""generateName":"web-""#));
        }
        let mut next = world.clone();
        let outcomes = next.apply_with(&plan, &mut |action| match action.kind {
            nodewise_planner::plan::ActionKind::CreatePod { .. } if round < 4 => OutcomeResult::NameTaken,
            _ => OutcomeResult::Succeeded,
        });
        let back = come_back(&outcomes, None, None);
        assert!(!back.backoff, "{back:?}");
        let refused = u32::try_from(round).unwrap();
        if round < 4 {
            assert_eq!(back.after, Some(std::time::Duration::ZERO));
            assert_eq!(outstanding(&next.state), (0, 0));
            let collision = PodNameCollision {
                node_name: String::new(),
                count: refused,
                refused,
            };
            assert_eq!(next.state.pod_name_collisions, [collision]);
            assert_eq!(next.state.used_pod_names.len(), round);
        }
        world = next;
    }
    // The set is complete again: names are derived again.
    world.observe();
    world.all_ready();
    let plan = world.plan();
    assert!(plan.state.pod_name_collisions.is_empty() && plan.state.used_pod_names.is_empty());
    world.apply(&plan);
    world.rs.replicas = 2;
    assert_eq!(names(&world), [&*all[0]]);
}

#[test]
fn creates_without_names_wait_for_each_other() {
    let mut world = World::new(3);
    world.state.pod_name_collisions = vec![PodNameCollision {
        node_name: String::new(),
        count: 3,
        refused: 3,
    }];
    let plan = world.plan();
    assert_eq!(creates(&plan), ["", "", ""]);
    world.state = plan.state;
    world.rs.replicas = 9;
    assert!(actions(&world.plan(), PhaseKind::Creates).is_empty());
    // A burst without names does not go on at once.
    let mut world = World::new(3).burst(2);
    world.state.pod_name_collisions = vec![PodNameCollision {
        node_name: String::new(),
        count: 3,
        refused: 3,
    }];
    assert!(world.plan().requeue.is_none());
}

#[test]
fn r_43_expected_creates_have_the_names_of_the_plan() {
    let plan = World::new(2).plan();
    let expected = plan.state.expectations.as_ref().expect("two are expected");
    let of_plan: Vec<_> = creates(&plan).into_iter().map(expected_create).collect();
    assert_eq!(expected.creates, of_plan);
}

// A name must encode the same number for ever: otherwise a new version of the service would repeat creates under other names. These are
// of factors that 3 divides and does not divide.
#[test]
fn names_stay_as_they_are() {
    for (uid, expected) in [
        ("u0", ["web-27mp6", "web-jhqhz"]),
        ("u1", ["web-hglb8", "web-x4bjc"]),
        ("u2", ["web-h6t4t", "web-46b7w"]),
        ("u7", ["web-gbrd6", "web-25s6q"]),
    ] {
        let mut world = World::new(2);
        world.rs.uid = uid.to_owned();
        assert_eq!(creates(&world.plan()), expected, "{uid}");
    }
}
