//! What the explanation of a Deployment says.

use nodewise_planner::deployment::{self, explain::Explanation};

use crate::support::{ROLLBACK, World};

fn explain(world: &World) -> Explanation {
    deployment::explain(&world.snapshot())
}

#[test]
fn one_sentence_on_the_state() {
    let rollout = |sets: &str| World::new(10).rolling("3", "2").with(sets);
    let mut deleting = rollout("new 10/10 rev=1");
    deleting.web.deleting = true;
    let mut paused = rollout("old 10/10");
    paused.web.paused = true;
    let mut everything = rollout("");
    everything.web.selector = None;
    let stuck = "old 8/8 rev=1 desired=10 max=13; new 5/2 rev=2 desired=10 max=13";
    // (world, sentence)
    let table = [
        (
            rollout("new 10/10 rev=1 desired=10 max=13"),
            "Complete: all 10 replicas have the present template and are available.",
        ),
        (
            World::new(1).with("new 1/1 rev=1 desired=1 max=2"),
            "Complete: the replica has the present template and is available.",
        ),
        (
            World::new(0).with("new 0/0 rev=1 desired=0 max=0"),
            "Complete: no replicas are wanted, and there are none.",
        ),
        (
            rollout(stuck),
            "Not complete: the rollout waits until 3 pods of new are available.",
        ),
        (
            rollout(stuck).progressing("False", "ProgressDeadlineExceeded", 900),
            "No progress: the deadline was exceeded at 1970-01-01T00:15:00Z. The rollout still waits until 3 pods of new are available.",
        ),
        (
            rollout("old 8/8 rev=1 desired=10 max=13; new 5/5 rev=2 desired=10 max=13"),
            "Not complete: the rollout goes on: new has 5 of 10 replicas, and there are 8 old replicas.",
        ),
        (
            rollout("old 0/0 has=2 rev=1; new 10/10 rev=2 desired=10 max=13"),
            "Not complete: the rollout waits until 2 old pods are gone.",
        ),
        (
            rollout("old 7/7 rev=1 desired=7 max=9; new 3/3 rev=2 desired=7 max=9"),
            "spec.replicas is now 10: the ReplicaSets follow before the rollout goes on.",
        ),
        (
            paused,
            "Paused: nothing is rolled out while spec.paused is true. 0 of 10 replicas have the present template.",
        ),
        (
            deleting,
            "The Deployment is being deleted: only its status is kept up to date.",
        ),
        (everything, "Nothing is planned: the selector is empty."),
        (
            rollout("new 10/10 rev=1").annotated(ROLLBACK, "3"),
            "A rollback to revision 3 is requested.",
        ),
        (
            rollout("").rolling("x", "1"),
            "The plan ends with an error: spec.strategy.rollingUpdate.maxSurge is \"x\", neither a number nor a percentage.",
        ),
        (
            rollout(stuck).progressing("True", "ReplicaSetUpdated", 900),
            "Not complete: the rollout waits until 3 pods of new are available.",
        ),
        (
            rollout(stuck).progressing("False", "ReplicaSetCreateError", 900),
            "Not complete: the rollout waits until 3 pods of new are available.",
        ),
        (
            World::new(3).recreate().with("old 0/0 pods=1").progressing(
                "False",
                "ReplicaSetCreateError",
                900,
            ),
            "The new ReplicaSet could not be created: served.",
        ),
        (
            World::new(3)
                .recreate()
                .with("old 0/0 pods=1")
                .progressing("True", "ReplicaSetUpdated", 900),
            "Not complete: the rollout waits until 1 pod of older templates is gone.",
        ),
        (
            rollout("new 5/5 rev=1 desired=10 max=13"),
            "Not complete: the rollout goes on: new has 5 of 10 replicas.",
        ),
        (
            World::new(3).recreate().with("old 0/0 pods=1"),
            "Not complete: the rollout waits until 1 pod of older templates is gone.",
        ),
    ];
    for (world, sentence) in table {
        assert_eq!(explain(&world).message, sentence);
    }
}

// Perhaps no controller runs.
#[test]
fn what_no_controller_has_done_yet() {
    let mut world = World::new(10)
        .rolling("3", "2")
        .with("old 10/10 rev=1 desired=10 max=13");
    assert!(
        !explain(&world)
            .details
            .iter()
            .any(|detail| detail.contains("no controller"))
    );
    world.web.generation = 4;
    world.web.status.observed_generation = 3;
    let Explanation { message, details, .. } = explain(&world);
    assert!(
        message.starts_with("Not complete: the rollout waits until its new ReplicaSet web-")
            && message.ends_with(" is created."),
        "{message}"
    );
    assert_eq!(
        details[2],
        "no controller has acted on the last change yet: metadata.generation is 4, and status.observedGeneration is 3"
    );
}

#[test]
fn each_set_says_what_it_waits_for() {
    // (sets, sentence for each, the new one first)
    let table: [(&str, &[&str]); 11] = [
        (
            "old 10/8; new 3/3 rev=2 desired=10 max=13",
            &[
                "has 3 of 10 replicas: maxSurge is used up by old",
                "old has 2 replicas that are not available: they go first; old shrinks from 8 to 5: 11 pods are available, and 8 must be",
            ],
        ),
        (
            "a 2/2; b 2/2; c 4/4; new 5/0 rev=2 desired=10 max=13",
            &[
                "has 5 of 10 replicas: maxSurge is used up by a, b, c; 5 pods of new are not available",
                "cannot shrink: maxUnavailable requires 8 available pods, and 5 pods of new are not available",
                "cannot shrink: maxUnavailable requires 8 available pods, and 5 pods of new are not available",
                "cannot shrink: maxUnavailable requires 8 available pods, and 5 pods of new are not available",
            ],
        ),
        (
            "old 8/7; new 3/3 rev=2 desired=10 max=13",
            &[
                "new grows from 3 to 5: with maxSurge there may be 13 replicas, and there are 11",
                "cannot shrink now: maxUnavailable requires 8 available pods, and there are 10",
            ],
        ),
        (
            "old 8/9; new 3/3 rev=2 desired=10 max=13",
            &[
                "new grows from 3 to 5: with maxSurge there may be 13 replicas, and there are 11",
                "cannot shrink: its status shows more available pods than it has replicas",
            ],
        ),
        (
            "old 0/0 pods=2; new 10/12 rev=2 desired=10 max=13",
            &["waits until 2 pods are gone", "waits until 2 pods are gone"],
        ),
        (
            "old 6/6; new 7/2 rev=2 desired=10 max=13",
            &[
                "has 7 of 10 replicas: maxSurge is used up by old; 5 pods of new are not available",
                "cannot shrink: maxUnavailable requires 8 available pods, and 5 pods of new are not available",
            ],
        ),
        (
            "old 8/8 rev=1 desired=10 max=13; new 5/0 rev=2 desired=10 max=13",
            &[
                "has 5 of 10 replicas: maxSurge is used up by old; 5 pods of new are not available",
                "cannot shrink: maxUnavailable requires 8 available pods, and 5 pods of new are not available",
            ],
        ),
        (
            "old 8/7 rev=1 desired=10 max=13; new 5/3 rev=2 desired=10 max=13",
            &[
                "has 5 of 10 replicas: maxSurge is used up by old; 2 pods of new are not available",
                "old has 1 replica that is not available: they go first; old shrinks from 7 to 5: 10 pods are available, and 8 must be",
            ],
        ),
        (
            "old 8/8 rev=1 desired=10 max=13; new 3/3 rev=2 desired=10 max=13",
            &[
                "new grows from 3 to 5: with maxSurge there may be 13 replicas, and there are 11",
                "cannot shrink now: maxUnavailable requires 8 available pods, and there are 11",
            ],
        ),
        (
            "a 0/0 rev=1; b 0/0 has=1 rev=2; new 10/10 rev=3 desired=10 max=13",
            &[
                "has 10 replicas, all available",
                "waits until 1 pod is gone",
                "is kept for a rollback",
            ],
        ),
        (
            "new 10/9 rev=3 desired=10 max=13 orphan",
            &["waits until 1 pod is available; the Deployment adopts it"],
        ),
    ];
    for (sets, sentences) in table {
        let explanation = explain(&World::new(10).rolling("3", "2").with(sets));
        let found: Vec<_> = explanation.sets.iter().map(|set| set.message.as_str()).collect();
        assert_eq!(found, sentences, "{sets}");
        assert!(explanation.sets[0].is_new);
    }
}

#[test]
fn details_have_the_limits_and_the_deadline() {
    let world = World::new(10)
        .rolling("3", "2")
        .with("old 8/8 rev=1 desired=10 max=13; new 5/2 rev=2 desired=10 max=13 failing=Quota")
        .progressing("True", "ReplicaSetUpdated", 900);
    let explanation = explain(&world);
    assert_eq!(
        explanation.details,
        [
            "10 replicas wanted; 13 pods, of which 5 updated, 10 ready and 10 available",
            "RollingUpdate: maxSurge allows 13 replicas, and maxUnavailable requires 8 available",
            "without progress the deadline of 600 s passes at 1970-01-01T00:25:00Z",
            "new: served",
        ]
    );
    let set = &explanation.sets[0];
    assert_eq!(
        (
            set.name.as_str(),
            set.revision,
            set.replicas,
            set.pods,
            set.ready,
            set.available
        ),
        ("new", Some(2), 5, 5, 2, 2)
    );
}

#[test]
fn a_set_whose_size_no_step_changes_keeps_it() {
    let mut paused = World::new(10)
        .rolling("3", "2")
        .with("old 8/8 desired=10 max=13; new 5/5 rev=2 desired=10 max=13");
    paused.web.paused = true;
    let found: Vec<_> = explain(&paused).sets.into_iter().map(|set| set.message).collect();
    assert_eq!(found, ["has 5 replicas, all available", "keeps its size"]);
}

#[test]
fn only_a_few_sets_are_named() {
    // (old sets, how they are named)
    for (old, named) in [
        ("a 2/2; b 2/2; c 4/4", "a, b, c"),
        ("a 2/2; b 2/2; c 2/2; d 2/2", "a, b, c, 1 more"),
    ] {
        let world = World::new(10)
            .rolling("3", "2")
            .with(&format!("{old}; new 5/0 rev=2 desired=10 max=13"));
        let message = &explain(&world).sets[0].message;
        let expected =
            format!("has 5 of 10 replicas: maxSurge is used up by {named}; 5 pods of new are not available");
        assert_eq!(*message, expected);
    }
}

#[test]
fn the_deadline_passes_or_has_passed() {
    // (last progress, whether the Deployment is paused, reason, what is said); the deadline is 600 s, and the time is 1,000 s.
    for (since, paused, reason, said) in [
        (
            399,
            false,
            "ReplicaSetUpdated",
            Some("passed at 1970-01-01T00:16:39Z"),
        ),
        (
            400,
            false,
            "ReplicaSetUpdated",
            Some("passes at 1970-01-01T00:16:40Z"),
        ),
        (
            401,
            false,
            "ReplicaSetUpdated",
            Some("passes at 1970-01-01T00:16:41Z"),
        ),
        (401, true, "ReplicaSetUpdated", None),
        (399, false, "ProgressDeadlineExceeded", None),
        (399, false, "NewReplicaSetAvailable", None),
    ] {
        let mut world = World::new(10)
            .rolling("3", "2")
            .with("old 8/8; new 5/0 rev=2 desired=10 max=13")
            .progressing("True", reason, since);
        world.web.paused = paused;
        let details = explain(&world).details;
        let found = details
            .iter()
            .find_map(|detail| detail.strip_prefix("without progress the deadline of 600 s "));
        assert_eq!(found, said, "{reason} at {since}, paused: {paused}");
    }
}

#[test]
fn a_set_beyond_the_history_says_that_it_is_deleted() {
    let mut world = World::new(1)
        .with("a 0/0 rev=1; b 0/0 rev=2; new 1/1 rev=3 desired=1 max=2")
        .settled("NewReplicaSetAvailable", 900);
    world.web.revision_history_limit = Some(1);
    let messages: Vec<_> = explain(&world).sets.into_iter().map(|set| set.message).collect();
    assert!(messages[2].ends_with(", so it is deleted"), "{messages:?}");
    assert_eq!(messages[1], "is kept for a rollback");
}

// P-27: only a released set of the same name can be in the way of the new one.
#[test]
fn a_released_set_of_another_name_is_not_the_new_one() {
    let message = explain(&World::new(3).with("new 3/3 rev=1 app=other")).message;
    assert!(
        message.starts_with("Not complete: the rollout waits until its new ReplicaSet web-")
            && message.ends_with(" is created."),
        "{message}"
    );
}
