//! Which sets belong to the Deployment, and which of them is the new one (P-10 to P-17).

use nodewise_planner::{
    plan::{ActionKind, ObjectClaim, PatchType, PhaseKind, Reason, Resource},
    snapshot::Deviation,
};
use serde_json::{Value, json};

use crate::support::{
    DESIRED, HASH_LABEL, REVISION, World, annotation, condition_of, edit, json as json_of, phase, phases,
    set_patch, status, template,
};

#[test]
fn p_15_p_16_the_oldest_set_with_the_template_is_the_new_one() {
    // PS-65
    let mut world = World::new(4)
        .with("new-b 4/4 t=5; new-a 4/4 t=6; new-c 0/0 t=7")
        .rolling("1", "1");
    world.sync();
    assert_eq!(world.sizes(), "new-a 0, new-b 4, new-c 0");
    // Equal times: the smaller name.
    let mut world = World::new(4)
        .with("new-b 4/4 t=5; new-a 4/4 t=5")
        .rolling("1", "1");
    world.sync();
    assert_eq!(world.sizes(), "new-a 4, new-b 0");
    // P-17: even if it is being deleted.
    let mut world = World::new(4).with("new 4/4 deleting; old 1/1").rolling("1", "1");
    world.sync();
    assert_eq!(world.sizes(), "new 4, old 0");
}

#[test]
fn p_16_what_makes_two_templates_equal() {
    let change = |pointer: &str, value: Value| {
        let mut template = template("new");
        *template.pointer_mut(pointer).expect("it is there") = value;
        template
    };
    let mut without = template("new");
    without["spec"]["containers"][0]["resources"] = Value::Null;
    // PS-66, PS-67: (what, template of the set, whether it is the new set)
    let table = [
        ("PS-66 without a hash label", template("new"), true),
        ("PS-66 without resources", without, true),
        (
            "PS-67 another image",
            change("/spec/containers/0/image", json!("x")),
            false,
        ),
        (
            "PS-67 another label",
            change("/metadata/labels/app", json!("x")),
            false,
        ),
        (
            "PS-67 another field",
            change("/spec", json!({"containers": []})),
            false,
        ),
    ];
    for (what, template, is_new) in table {
        let mut world = World::new(3).with("new 3/3 rev=1");
        world.web.sets[0].template = template.into();
        let creates = phase(&world.plan(), PhaseKind::Creates).is_some();
        assert_eq!(creates, !is_new, "{what}");
    }
}

#[test]
fn p_12_p_13_sets_are_adopted_and_released() {
    // PS-75
    let world = World::new(3).with("orphan 1/1 orphan; gone 1/1 app=other; stranger 1/1 foreign; going 1/1 orphan deleting; unrelated 1/1 orphan app=other; new 3/3 rev=1");
    let plan = world.plan();
    let claims = phase(&plan, PhaseKind::Claims).expect("claims");
    assert!(claims.kind.aborts_on_failure(), "P-13");
    assert_eq!(claims.batches.len(), 1);
    assert!(
        claims.batches[0].confirm_workload,
        "PS-76: the Deployment is read before the adoption"
    );
    let expected = [
        ("orphan", ObjectClaim::Adopt, Reason::SelectorMatches),
        ("gone", ObjectClaim::Release, Reason::SelectorDoesNotMatch),
    ];
    for (action, (name, claim, reason)) in claims.batches[0].actions.iter().zip(expected) {
        let ActionKind::PatchObject {
            resource,
            object,
            patch_type,
            claim: found,
            ..
        } = &action.kind
        else {
            panic!("{action:?}");
        };
        assert_eq!(
            (object.name.as_str(), *found, action.reason),
            (name, Some(claim), reason)
        );
        assert_eq!(
            (*resource, *patch_type),
            (Resource::ReplicaSets, PatchType::StrategicMerge)
        );
        assert_eq!(json_of(action)["metadata"]["uid"], format!("{name}-uid"), "P-13");
    }
    assert_eq!(claims.batches[0].actions.len(), 2);
    let adoption = json_of(&claims.batches[0].actions[0]);
    // PS-77: a strategic merge adds one reference by uid, so any other reference stays.
    assert_eq!(
        adoption["metadata"]["ownerReferences"],
        json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "web-uid",
                "controller": true, "blockOwnerDeletion": true}])
    );
    // The adopted set counts, the released one does not (PS-78, P-66: nor do sets of another Deployment).
    assert_eq!(status(&plan).replicas, 4);
    // Without adoptions nothing must be confirmed.
    let plan = World::new(3).with("gone 1/1 app=other; new 3/3 rev=1").plan();
    assert!(!phase(&plan, PhaseKind::Claims).expect("a release").batches[0].confirm_workload);
}

#[test]
fn a_create_for_a_lost_set_is_confirmed() {
    for (observed, confirmed) in [(6, false), (7, true)] {
        let mut world = World::new(3)
            .with("old 3/3 rev=1")
            .deviating(&[Deviation::ConfirmBeforeCreates]);
        world.web.generation = 7;
        world.web.status.observed_generation = observed;
        let is_confirmed = |world: &World| {
            phase(&world.plan(), PhaseKind::Creates)
                .expect("a create")
                .batches[0]
                .confirm_workload
        };
        assert_eq!(is_confirmed(&world), confirmed);
        world.options.deviations.remove(&Deviation::ConfirmBeforeCreates);
        assert!(!is_confirmed(&world));
    }
}

#[test]
fn p_14_an_adopted_set_keeps_its_labels_and_is_written_once() {
    // PS-72: its revision is written, the Deployment's with the next plan. Its sizes are not noted.
    let mut world = World::new(3).with("new 3/3 orphan");
    let plan = world.sync();
    let patch = set_patch(&plan, "new").expect("the revision is written");
    assert_eq!(patch["metadata"]["annotations"], json!({REVISION: "1"}));
    assert!(
        patch["metadata"].get("resourceVersion").is_none(),
        "the adoption changes it"
    );
    assert!(
        patch["metadata"].get("labels").is_none() && patch.get("spec").is_none(),
        "P-14"
    );
    assert_eq!(world.web.annotations, [], "P-22");
    let plan = world.sync();
    assert_eq!(
        world.web.annotations,
        [(REVISION.to_owned(), "1".to_owned())],
        "P-23"
    );
    assert_eq!(phases(&plan), [PhaseKind::Status]);
    assert_eq!(annotation(world.find("new"), DESIRED), "");
}

#[test]
fn p_10_p_58_a_deployment_that_is_being_deleted_only_has_a_status() {
    // PS-86
    let mut world =
        World::new(9).with("orphan 1/1 orphan; gone 1/1 app=other; old 2/2; new 3/3 rev=1 seen=1");
    world.web.deleting = true;
    let plan = world.sync();
    assert_eq!(world.sizes(), "gone 1, new 3, old 2, orphan 1");
    assert!(phase(&plan, PhaseKind::Claims).is_none(), "P-12");
    assert_eq!(status(&plan).replicas, 5);
    assert_eq!(
        condition_of(&status(&plan), "Progressing"),
        "True FoundNewReplicaSet",
        "P-11"
    );
}

#[test]
fn p_10_a_selector_that_selects_everything() {
    // PS-85
    for selector in [None, Some(nodewise_planner::snapshot::Selector::default())] {
        let mut world = World::new(3).with("old 3/3");
        world.web.selector = selector;
        world.web.generation = 4;
        let plan = world.sync();
        assert_eq!(phases(&plan), [PhaseKind::Events, PhaseKind::Status]);
        assert!(phase(&plan, PhaseKind::Status).expect("a write").ignores_failure);
        assert_eq!(world.web.status.observed_generation, 4);
        assert_eq!(status(&plan).observed_generation, 4);
        assert!(world.events[0].starts_with("SelectingAll: This deployment is selecting all pods."));
        assert_eq!(phases(&world.plan()), [PhaseKind::Events]);
    }
    // A selector of empty maps is literally not empty.
    let mut world = World::new(3);
    world.web.selector = Some(nodewise_planner::snapshot::Selector {
        match_labels: Some(vec![]),
        match_expressions: None,
    });
    assert!(phase(&world.plan(), PhaseKind::Creates).is_some());
    let plan = world.deviating(&[Deviation::EmptySelectorByMeaning]).plan();
    assert_eq!(phases(&plan), [PhaseKind::Events]);
    assert!(plan.deviations.contains(&Deviation::EmptySelectorByMeaning));
}

#[test]
fn p_10_an_unknown_strategy_is_an_error() {
    let mut world = World::new(3)
        .with("old 3/3; new 0/0 rev=1")
        .annotated("test", "a");
    world.web.strategy = nodewise_planner::deployment::Strategy::Unknown("Odd".to_owned());
    let plan = world.sync();
    assert_eq!(
        plan.error.as_deref(),
        Some("unexpected deployment strategy type: Odd")
    );
    assert_eq!(
        phases(&plan),
        [PhaseKind::ReplicaSets],
        "P-11: the lookup still writes"
    );
    let plan = world.sync();
    assert_eq!(phases(&plan), [PhaseKind::Status]);
    assert_eq!(
        condition_of(&world.web.status, "Progressing"),
        "True FoundNewReplicaSet"
    );
    assert_eq!(world.web.status.replicas, 0, "no status was counted");
}

#[test]
fn p_16_the_hash_label_of_the_deployment_itself_does_not_matter() {
    let mut world = World::new(3).with("new 3/3 rev=1");
    edit(&mut world.web.template, |template| {
        template["metadata"]["labels"][HASH_LABEL] = "x".into();
    });
    assert!(phase(&world.plan(), PhaseKind::Creates).is_none(), "PS-66");
}
