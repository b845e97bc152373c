//! The set that a plan creates, and what happens if that fails (P-24 to P-28).

use nodewise_planner::{
    deployment::Set,
    plan::{ActionKind, EventType, PhaseKind, Reason, Resource, When},
    snapshot::{Deviation, Labels},
};
use serde_json::json;

use crate::support::{
    DESIRED, HASH_LABEL, MAX, REVISION, World, actions, condition_of, events, json as json_of, phase, phases,
    status, status_patch, template,
};

/// The name of the set that a plan creates.
fn created(world: &World) -> String {
    let plan = world.plan();
    match &actions(&plan, PhaseKind::Creates)
        .first()
        .expect("a set is created")
        .kind
    {
        ActionKind::CreateObject { name, .. } => name.clone(),
        other => panic!("{other:?}"),
    }
}

/// The set that the executor reads after a create failed because of its name.
fn taken(world: &World, change: impl FnOnce(&mut Set)) -> World {
    let name = created(world);
    let mut world = world.clone();
    world.set(&format!("{name} 3/0 rev=1 image=new taken"));
    change(world.web.sets.last_mut().expect("a set"));
    world
}

#[test]
fn p_25_p_26_what_is_created() {
    // PS-55
    let mut world = World::new(3)
        .annotated("test", "a")
        .annotated("kubectl.kubernetes.io/last-applied-configuration", "{}")
        .annotated(DESIRED, "99");
    world.web.min_ready_seconds = 7;
    let plan = world.plan();
    let action = actions(&plan, PhaseKind::Creates)[0];
    let ActionKind::CreateObject {
        resource,
        name,
        events: written,
        ..
    } = &action.kind
    else {
        panic!("{action:?}");
    };
    let hash = name.strip_prefix("web-").expect("the name of the Deployment");
    assert_eq!(
        (*resource, action.reason),
        (Resource::ReplicaSets, Reason::NewTemplate)
    );
    let labels = json!({"app": "web", HASH_LABEL: hash});
    assert_eq!(
        json_of(action),
        json!({
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": name,
                "namespace": "default",
                "labels": labels,
                "annotations": {"test": "a", REVISION: "1", DESIRED: "3", MAX: "4"},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web",
                    "uid": "web-uid", "controller": true, "blockOwnerDeletion": true}],
            },
            "spec": {
                "replicas": 3,
                "minReadySeconds": 7,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "web", "image": "new", "resources": {}}]},
                },
            },
        })
    );
    assert_eq!(
        written.success[0].message,
        format!("Scaled up replica set {name} from 0 to 3")
    );
    let status = status(&plan);
    assert_eq!(status.unavailable_replicas, 3);
    assert_eq!(
        condition_of(&status, "Progressing"),
        "True NewReplicaSetCreated",
        "P-26"
    );
    let patch = status_patch(&plan).expect("the status is written");
    assert_eq!(patch["metadata"]["annotations"], json!({REVISION: "1"}));
    assert_eq!(patch["metadata"]["resourceVersion"], "7");
    // PS-54: a set without replicas is created without an Event, and the rollout is complete.
    let mut world = World::new(0);
    let plan = world.sync();
    assert_eq!(events(&plan), [""; 0], "P-26");
    assert_eq!(
        condition_of(&world.web.status, "Available"),
        "True MinimumReplicasAvailable"
    );
    assert_eq!(
        condition_of(&world.web.status, "Progressing"),
        "True NewReplicaSetAvailable"
    );
}

#[test]
fn p_28_a_create_that_fails() {
    // PS-82
    let plan = World::new(3).with("old 3/3 rev=1").plan();
    let action = actions(&plan, PhaseKind::Creates)[0];
    let ActionKind::CreateObject { name, events, .. } = &action.kind else {
        panic!("{action:?}");
    };
    let failure = events.failure.as_ref().expect("an Event");
    assert_eq!(
        (failure.event_type, failure.reason),
        (EventType::Warning, "ReplicaSetCreateError")
    );
    assert_eq!(
        failure.message,
        format!("Failed to create new replica set \"{name}\"")
    );
    let failed = phase(&plan, PhaseKind::Failure).expect("a status about the failure");
    assert_eq!(failed.when, When::AfterFailure);
    let action = &failed.batches[0].actions[0];
    let ActionKind::PatchObject { failure_pointer, .. } = &action.kind else {
        panic!("{action:?}");
    };
    let patch = json_of(action);
    let message = patch
        .pointer(failure_pointer)
        .expect("the pointer leads to a string");
    assert_eq!(
        *message,
        format!("Failed to create new replica set \"{name}\": "),
        "P-28"
    );
    let condition = &patch["status"]["conditions"][0];
    assert_eq!(
        (&condition["status"], &condition["reason"]),
        (&json!("False"), &json!("ReplicaSetCreateError"))
    );
    // Everything after the create depends on it.
    for phase in plan
        .phases
        .iter()
        .filter(|phase| phase.kind > PhaseKind::Creates && phase.kind != PhaseKind::Failure)
    {
        assert_eq!(phase.when, When::AfterSuccess, "{:?}", phase.kind);
    }
    // Without a deadline, or if the condition says it already, the status stays.
    let mut world = World::new(3);
    world.web.progress_deadline_seconds = None;
    assert!(phase(&world.plan(), PhaseKind::Failure).is_none());
    let world = World::new(3).progressing("False", "ReplicaSetCreateError", 900);
    assert!(phase(&world.plan(), PhaseKind::Failure).is_none(), "P-57");
    // The condition is the last of several, wherever it was before.
    let mut world = World::new(3).progressing("True", "ReplicaSetUpdated", 900);
    world
        .web
        .status
        .conditions
        .push(crate::support::condition("Available", "True", "x", 900));
    let plan = world.plan();
    let action = actions(&plan, PhaseKind::Failure)[0];
    let ActionKind::PatchObject { failure_pointer, .. } = &action.kind else {
        panic!("{action:?}");
    };
    assert_eq!(failure_pointer, "/status/conditions/1/message");
}

#[test]
fn p_27_a_name_that_is_taken() {
    let world = World::new(3).rolling("1", "1").with("old 3/3 rev=1");
    // PS-81: the own set, which the cache did not show yet, is used. It has no Event and no condition.
    let own = taken(&world, |_| ());
    let plan = own.plan();
    assert_eq!(
        phases(&plan),
        [PhaseKind::OldReplicaSets, PhaseKind::Status].map(|kind| kind),
        "{plan:?}"
    );
    assert_eq!(
        status_patch(&plan).expect("a write")["metadata"]["annotations"],
        json!({REVISION: "2"})
    );
    assert_eq!(
        condition_of(&status(&plan), "Progressing"),
        "True ReplicaSetUpdated"
    );
    // PS-79, PS-80: any other set raises the collision count.
    let other_template: fn(&mut Set) = |set| set.template = template("edited").into();
    let orphan: fn(&mut Set) = |set| set.controller = None;
    for change in [other_template, orphan] {
        let mut other = taken(&world, change);
        let name = other.web.sets.last().expect("a set").name.clone();
        let plan = other.sync();
        assert_eq!(
            plan.error,
            Some(format!("replicasets.apps {name:?} already exists"))
        );
        assert_eq!(
            phases(&plan),
            [PhaseKind::Status],
            "nothing else is written, and nothing adopted"
        );
        assert_eq!(
            actions(&plan, PhaseKind::Status)[0].reason,
            Reason::RevisionNameCollision
        );
        assert_eq!(other.web.status.collision_count, Some(1));
        other.web.sets.pop();
        assert_ne!(created(&other), name);
    }
    let mut again = taken(&world, other_template);
    again.web.status.collision_count = Some(i32::MAX);
    assert_ne!(created(&again), created(&world));
    // Once the name is not wanted any more, the set is like any other.
    let mut paused = taken(&world, |_| ());
    paused.web.paused = true;
    assert_eq!(status(&paused.plan()).replicas, 6);
    let found = taken(&world, other_template).with("new 2/2 rev=2");
    assert_eq!(status(&found.plan()).replicas, 8);
}

#[test]
fn p_27_a_set_that_this_plan_releases() {
    // PS-79: the labels of the new set were changed.
    let world = World::new(3).rolling("1", "1").with("old 3/3 rev=1");
    let name = created(&world);
    let mut world = world.with(&format!("{name} 3/3 rev=2 image=new app=other"));
    let plan = world.plan();
    assert_eq!(
        phases(&plan),
        [PhaseKind::Claims, PhaseKind::OldReplicaSets, PhaseKind::Status]
    );
    assert_eq!(
        status(&plan).replicas,
        6,
        "upstream goes on with the released set"
    );
    assert_eq!(plan.error, None);
    // With the deviation its name counts as taken.
    world = world.deviating(&[Deviation::ReleasedSetIsCollision]);
    let plan = world.sync();
    assert_eq!(phases(&plan), [PhaseKind::Claims, PhaseKind::Status]);
    assert!(plan.deviations.contains(&Deviation::ReleasedSetIsCollision));
    assert!(plan.error.is_some());
    assert_eq!(world.web.status.collision_count, Some(1));
    // The next plan creates a set of another name. When the labels come back, the old set is adopted again.
    assert_ne!(created(&world), name);
    let set = world
        .web
        .sets
        .iter_mut()
        .find(|set| set.name == name)
        .expect("it is there");
    set.labels = Labels::new(vec![("app".to_owned(), "web".to_owned())]);
    let plan = world.plan();
    assert!(phase(&plan, PhaseKind::Creates).is_none());
    assert_eq!(
        actions(&plan, PhaseKind::Claims)[0].reason,
        Reason::SelectorMatches
    );
}
