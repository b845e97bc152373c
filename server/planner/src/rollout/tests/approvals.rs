//! Stages that a person approves.

use super::*;

#[test]
fn l_30_a_denied_stage_is_asked_for_anew_after_a_resume() {
    let mut spec = staged();
    spec.stages[0].needs_approval = true;
    spec.on_failure = OnFailure::Pause;
    let mut world = World::new(spec);
    world.decide();
    let pending = world.last.status.pending_approval.clone().expect("it asks");
    world.policy.requests.reject = Some(pending.digest);
    world.run(1);
    assert_eq!(world.state(), State::Rejected);
    let rejection = world.last.status.rejected_revision.clone().expect("a rejection");
    world.policy.requests.resume = Some(rejection.digest);
    world.run(3);
    assert_eq!(world.state(), State::AwaitingApproval);
    // Whoever takes the approval out of the policy is not waited for any more.
    world.spec().stages[0].needs_approval = false;
    world.run(1);
    assert_eq!(world.last.status.pending_approval, None);
    assert_eq!(world.state(), State::Soaking);
}

#[test]
fn l_30_a_stage_waits_for_an_approval_of_what_it_would_do_now() {
    let mut spec = staged();
    spec.stages[1].needs_approval = true;
    spec.stages[0].soak = Duration::ZERO;
    let mut world = World::new(spec);
    world.run(5);
    assert_eq!(
        (world.state(), world.on("new").len()),
        (State::AwaitingApproval, 2)
    );
    let pending = world
        .last
        .status
        .pending_approval
        .clone()
        .expect("a pending approval");
    assert_eq!((pending.stage.as_str(), pending.nodes), ("zones", 8));
    // A node more: the digest is another one, and the approval of the old one does nothing but an Event.
    let mut joined = world.nodes[9].clone();
    joined.name = "joined".to_owned();
    joined.pod = Some("old");
    world.nodes.push(joined);
    world.policy.requests.approve = Some(pending.digest.clone());
    world.run(2);
    let now = world
        .last
        .status
        .pending_approval
        .clone()
        .expect("a pending approval");
    assert_ne!(now.digest, pending.digest);
    assert_eq!((world.on("new").len(), now.nodes), (2, 9));
    assert_eq!(
        world
            .events
            .iter()
            .filter(|event| **event == "RolloutApprovalOutdated")
            .count(),
        1,
        "{:?}",
        world.events
    );
    world.policy.requests.approve = Some(now.digest);
    world.run(20);
    assert_eq!(world.state(), State::Complete);
}

#[test]
fn l_26_a_refused_approval_rejects_the_revision() {
    let mut spec = staged();
    spec.stages[0].needs_approval = true;
    let mut world = World::new(spec);
    world.decide();
    let digest = world
        .last
        .status
        .pending_approval
        .clone()
        .expect("a pending approval")
        .digest;
    world.policy.requests.reject = Some(digest);
    world.run(2);
    let rejected = world.last.status.rejected_revision.clone().expect("a rejection");
    assert_eq!(
        (rejected.reason.as_str(), world.on("new").len()),
        ("ApprovalDenied", 0)
    );
    assert_eq!(world.state(), State::RolledBack, "nobody has it");
}
