//! Tests of actions on objects of any resource.

use super::*;

/// A resource that plans write besides the workload's own.
const WIDGETS: Resource = Resource {
    group: "example.com",
    version: "v2",
    plural: "widgets",
    kind: "Widget",
    ..Resource::REVISIONS
};

fn named(resource: Resource) -> v1::GroupVersionResource {
    v1::GroupVersionResource {
        group: resource.group.into(),
        version: resource.version.into(),
        resource: resource.plural.into(),
    }
}

fn create(name: &str) -> Kind {
    Kind::CreateObject(Box::new(v1::CreateObject {
        resource: Some(named(WIDGETS)),
        name: name.into(),
        manifest: json!({"metadata": {"name": name}}).to_string().into(),
    }))
}

fn merge() -> v1::PatchObject {
    v1::PatchObject {
        resource: Some(named(WIDGETS)),
        object: Some(reference("w")),
        patch_type: v1::PatchType::Merge.into(),
        patch: r#"{"spec":{"size":1}}"#.into(),
        ..v1::PatchObject::default()
    }
}

fn claim(claim: v1::Claim) -> Kind {
    Kind::PatchObject(Box::new(v1::PatchObject {
        patch_type: v1::PatchType::StrategicMerge.into(),
        claim: claim.into(),
        ..merge()
    }))
}

/// A patch of the workload's own status.
fn status(message: &str, failure_pointer: &str) -> v1::PatchObject {
    v1::PatchObject {
        resource: Some(named(DAEMON_SETS)),
        object: Some(reference("agent")),
        subresource: "status".into(),
        patch: json!({"status": {"conditions": [{"message": message}]}})
            .to_string()
            .into(),
        failure_pointer: failure_pointer.into(),
        ..merge()
    }
}

fn delete(version: &str) -> Kind {
    Kind::DeleteObject(Box::new(v1::DeleteObject {
        resource: Some(named(WIDGETS)),
        object: Some(reference("w")),
        resource_version: version.into(),
    }))
}

fn event(kind: &str, reason: &str, message: &str) -> v1::EmitEvent {
    v1::EmitEvent {
        r#type: kind.into(),
        reason: reason.into(),
        message: message.into(),
    }
}

/// The events of one action of a plan.
fn with_events(mut plan: v1::Plan) -> v1::Plan {
    let action = &mut plan.phases[0].batches[0].actions[0];
    action.success_events = vec![event("Normal", "Scaled", "up"), event("Normal", "Scaled", "down")];
    action.failure_event = Some(Box::new(event("Warning", "ScaleError", "Failed to scale")));
    plan
}

async fn run(script: &Script, plan: &v1::Plan) -> Applied {
    let options = Options {
        controlled: Some(WIDGETS),
        ..Options::default()
    };
    let cached = cached();
    apply(script, plan, (DAEMON_SETS, &cached), &LeftOut::new(), &options).await
}

fn one(kind: Kind) -> v1::Plan {
    plan(vec![phase(P::Creates, vec![vec![kind]])])
}

fn written(resource: Resource) -> Vec<OwnWrite> {
    vec![OwnWrite {
        resource,
        resource_version: "7".into(),
        created_pod: None,
    }]
}

// What each write sends, and which caches the gate waits for: those of everything that was created or patched (R-48).
#[tokio::test(start_paused = true)]
async fn writes() {
    let strategic = v1::PatchObject {
        patch_type: v1::PatchType::StrategicMerge.into(),
        ..merge()
    };
    for (kind, call, writes) in [
        (create("w"), "create w", written(WIDGETS)),
        (
            Kind::PatchObject(Box::new(merge())),
            "patch w merge",
            written(WIDGETS),
        ),
        (
            Kind::PatchObject(Box::new(strategic)),
            "patch w strategic",
            written(WIDGETS),
        ),
        (claim(v1::Claim::Adopt), "patch w strategic", written(WIDGETS)),
        (claim(v1::Claim::Release), "patch w strategic", written(WIDGETS)),
        (
            Kind::PatchObject(Box::new(status("", ""))),
            "patch-status agent",
            written(DAEMON_SETS),
        ),
        (delete(""), "delete w uid-w", vec![]),
        (delete("4"), "delete w uid-w at 4", vec![]),
    ] {
        let script = Script::default();
        let applied = run(&script, &one(kind)).await;
        assert_eq!(results(&applied), [R::Succeeded], "{call}");
        assert_eq!((script.calls(), applied.writes), (vec![call.to_owned()], writes));
    }
}

// What each refusal means. A rejected write is never repeated (P-4), and nothing is read to repeat it.
#[tokio::test(start_paused = true)]
async fn refused_writes() {
    let patch = || Kind::PatchObject(Box::new(merge()));
    let adopt = || claim(v1::Claim::Adopt);
    let release = || claim(v1::Claim::Release);
    let (gone, invalid) = (error(Refusal::NotFound, 404), error(Refusal::Invalid, 422));
    let (conflict, other) = (error(Refusal::Conflict, 409), error(Refusal::Other, 403));
    for (kind, failure, result) in [
        (patch(), &conflict, R::Failed),
        (patch(), &gone, R::Failed),
        (patch(), &invalid, R::Failed),
        (adopt(), &gone, R::NotFound),
        (adopt(), &invalid, R::Failed),
        (adopt(), &conflict, R::Failed),
        (release(), &gone, R::NotFound),
        (release(), &invalid, R::NotFound),
        (release(), &other, R::Failed),
        (Kind::PatchObject(Box::new(status("", ""))), &conflict, R::Failed),
        (delete(""), &gone, R::NotFound),
        (delete(""), &other, R::Failed),
        (create("w"), &invalid, R::Failed),
    ] {
        let mut script = Script::default();
        for verb in ["create", "patch", "patch-status", "delete"] {
            script = script.refuse(verb, std::slice::from_ref(failure));
        }
        let applied = run(&script, &one(kind.clone())).await;
        assert_eq!(results(&applied), [result], "{kind:?}");
        assert_eq!(script.calls().len(), 1, "{kind:?}");
        assert_eq!(applied.failed, result == R::Failed, "{kind:?}");
        assert!(applied.writes.is_empty(), "{kind:?}");
    }
}

// The plan assumed that the orphan exists, so the next plan follows at once. A release has no such consequence.
#[tokio::test(start_paused = true)]
async fn an_orphan_that_is_gone_ends_the_plan() {
    for (kind, after) in [(v1::Claim::Adopt, R::Skipped), (v1::Claim::Release, R::Succeeded)] {
        let script = Script::default().refuse("patch", &[error(Refusal::NotFound, 404)]);
        let phases = vec![
            phase(P::Claims, vec![vec![claim(kind)]]),
            phase(P::Creates, vec![vec![create("v")]]),
        ];
        let applied = run(&script, &plan(phases)).await;
        assert_eq!(results(&applied), [R::NotFound, after]);
        let gone = applied.vanished.iter().map(|key| (key.resource, &*key.name));
        assert!(gone.eq((after == R::Skipped).then_some((WIDGETS, "w"))));
        assert!(!applied.failed);
    }
}

// Before an adoption, the executor checks that the workload exists and is not being deleted (P-12).
#[tokio::test(start_paused = true)]
async fn adoption_confirms_the_workload() {
    for (live, expected) in [(Some(live_workload(None)), R::Succeeded), (None, R::Failed)] {
        let mut script = Script::default();
        script.live.extend(live.map(|live| ("agent".to_owned(), live)));
        let claims = vec![claim(v1::Claim::Release), claim(v1::Claim::Adopt)];
        let mut plan = plan(vec![phase(P::Claims, vec![claims])]);
        plan.phases[0].batches[0].confirm_workload = true;
        let applied = run(&script, &plan).await;
        assert_eq!(results(&applied), [R::Succeeded, expected]);
    }
}

// A create of a workload that is gone or replaced fails without a call and without its Event, and ends the plan.
#[tokio::test(start_paused = true)]
async fn creates_confirm_the_workload() {
    let mut other = live_workload(None);
    other["metadata"]["uid"] = json!("other");
    let mut ending = live_workload(None);
    ending["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    for (live, is_there) in [
        (Some(live_workload(None)), true),
        (Some(other), false),
        (Some(ending), false),
        (None, false),
    ] {
        let mut script = Script::default();
        script.live.extend(live.map(|live| ("agent".to_owned(), live)));
        let mut plan = with_events(plan(vec![
            phase(P::Creates, vec![vec![create("w")]]),
            phase(P::Status, vec![vec![Kind::PatchObject(Box::new(status("", "")))]]),
        ]));
        plan.phases[0].batches[0].confirm_workload = true;
        let applied = run(&script, &plan).await;
        let expected = if is_there {
            [R::Succeeded, R::Succeeded]
        } else {
            [R::Failed, R::Skipped]
        };
        assert_eq!(results(&applied), expected);
        assert_eq!(script.calls().len(), if is_there { 3 } else { 1 });
        assert_eq!(
            (applied.failed, script.events().is_empty()),
            (!is_there, !is_there)
        );
    }
}

// A taken name ends the plan without a failure or an Event, and the next plan gets the live object (P-27). If that
// cannot be read, the plan fails.
#[tokio::test(start_paused = true)]
async fn a_taken_name_ends_the_plan() {
    let live = json!({"metadata": {"name": "w", "uid": "other"}});
    for (is_read, result) in [(true, R::NameTaken), (false, R::Failed)] {
        let mut script = Script::default().refuse("create", &[error(Refusal::AlreadyExists, 409)]);
        if is_read {
            script = script.live("w", live.clone());
        }
        let phases = vec![
            phase(P::Creates, vec![vec![create("w")]]),
            phase(P::Deletes, vec![vec![Kind::PatchObject(Box::new(merge()))]]),
            v1::Phase {
                requires_failure: true,
                ..phase(
                    P::Failure,
                    vec![vec![Kind::PatchObject(Box::new(status("", "")))]],
                )
            },
        ];
        let applied = run(&script, &with_events(plan(phases))).await;
        assert_eq!(results(&applied), [result, R::Skipped, R::Skipped]);
        assert_eq!((applied.failed, applied.name_taken), (!is_read, false));
        let colliding = is_read.then(|| Colliding {
            resource: WIDGETS,
            object: live.to_string().into(),
        });
        assert_eq!(applied.colliding, Vec::from_iter(colliding));
        assert!(applied.aborted && script.events().is_empty());
        assert_eq!(script.calls(), ["create w", "read w"]);
    }
}

// P-28: no Event, no condition, and no other write.
#[tokio::test(start_paused = true)]
async fn a_terminating_namespace_ends_the_plan() {
    let script = Script::default().refuse("create", &[error(Refusal::NamespaceTerminating, 403)]);
    let phases = vec![
        phase(P::Creates, vec![vec![create("w")]]),
        phase(P::Status, vec![vec![Kind::PatchObject(Box::new(status("", "")))]]),
    ];
    let applied = run(&script, &with_events(plan(phases))).await;
    assert_eq!(results(&applied), [R::NamespaceTerminating, R::Skipped]);
    assert!(applied.aborted && !applied.failed && script.events().is_empty());
}

// The Events of an action follow its result. The error is appended to the message of a failure.
#[tokio::test(start_paused = true)]
async fn events_follow_the_result() {
    let scaled = |message: &str| ("Normal Scaled".to_owned(), message.to_owned());
    let failed = (
        "Warning ScaleError".to_owned(),
        "Failed to scale: Conflict".to_owned(),
    );
    for (kind, failure, events) in [
        (
            Kind::PatchObject(Box::new(merge())),
            none(),
            vec![scaled("up"), scaled("down")],
        ),
        (
            Kind::PatchObject(Box::new(merge())),
            error(Refusal::Conflict, 409),
            vec![failed],
        ),
        (claim(v1::Claim::Release), error(Refusal::NotFound, 404), vec![]),
    ] {
        let script = Script::default().refuse("patch", &[failure]);
        run(&script, &with_events(one(kind))).await;
        assert_eq!(script.events(), events);
    }
}

// R-34: the error of the failed action with the lowest id is appended; without a failure, nothing is.
#[tokio::test(start_paused = true)]
async fn the_first_failure_is_appended() {
    let pointer = "/status/conditions/0/message";
    let patch = |pointer| vec![vec![Kind::PatchObject(Box::new(status("Failed: ", pointer)))]];
    for (refused, pointer, expected) in [
        (&["a", "b"][..], pointer, Ok("Failed: for a")),
        (&["b"], pointer, Ok("Failed: for b")),
        (&["a", "b"], "", Ok("Failed: ")),
        (&[], pointer, Ok("Failed: ")),
        (&["a"], "/status/conditions/1/message", Err(())),
        (&["a"], "/status/conditions", Err(())),
        (&["a"], "status", Err(())),
    ] {
        let mut script = Script::default();
        for name in refused {
            let said = ActuatorError {
                message: format!("for {name}"),
                ..error(Refusal::Other, 403)
            };
            script = script.refuse(&format!("create {name}"), &[said]);
        }
        let phases = vec![
            phase(P::Creates, vec![vec![create("a"), create("b")]]),
            phase(P::Status, patch(pointer)),
        ];
        let applied = run(&script, &plan(phases)).await;
        let body = script.bodies.lock().expect("lock").pop().unwrap_or_default();
        let sent = &body["status"]["conditions"][0]["message"];
        if let Ok(expected) = expected {
            assert_eq!(*sent, expected, "{refused:?}");
        }
        let result = expected.map_or(R::Failed, |_| R::Succeeded);
        assert_eq!(results(&applied)[2], result, "{pointer}");
    }
}

// An executor writes only the resources of its kind of workload, in ways that it knows.
#[tokio::test(start_paused = true)]
async fn what_is_not_known_is_refused() {
    let with = |change: fn(&mut v1::PatchObject)| {
        let mut patch = merge();
        change(&mut patch);
        Kind::PatchObject(Box::new(patch))
    };
    let mut unnamed = delete("");
    if let Kind::DeleteObject(delete) = &mut unnamed {
        delete.object = None;
    }
    for (kind, expected) in [
        (
            with(|patch| patch.resource = Some(named(Resource::NODES))),
            "does not write the resource \"nodes\"",
        ),
        (
            with(|patch| patch.resource = None),
            "the action names no resource",
        ),
        (
            with(|patch| {
                patch.resource = Some(v1::GroupVersionResource {
                    version: "v1".into(),
                    ..named(WIDGETS)
                });
            }),
            "does not write the resource \"widgets\" of example.com/v1",
        ),
        (
            with(|patch| patch.subresource = "scale".into()),
            "the subresource \"scale\"",
        ),
        (with(|patch| patch.patch_type = 0), "the patch_type 0"),
        (with(|patch| patch.object = None), "the action names no object"),
        (unnamed, "the action names no object"),
    ] {
        let script = Script::default();
        let applied = run(&script, &one(kind)).await;
        let message = &applied.outcomes[0].message;
        assert_eq!(results(&applied), [R::Failed], "{expected}");
        assert!(message.contains(expected), "{message}");
        assert!(script.calls().is_empty(), "{expected}");
    }
}

// R-30: a pod for no node. If the name is taken, any pod of the workload is its own.
#[tokio::test(start_paused = true)]
async fn pods_for_no_node() {
    let create = || {
        Kind::CreatePod(v1::CreatePod {
            pod_name: "p".into(),
            node_name: String::new(),
        })
    };
    let plan = v1::Plan {
        node_name_pointers: Vec::new(),
        ..one(create())
    };
    let script = Script::default();
    let applied = run(&script, &plan).await;
    // An expectation waits for the pod by its name.
    let is_expected = |write: OwnWrite| OwnWrite {
        created_pod: Some("p".to_owned()),
        ..write
    };
    let expected = written(Resource::PODS).into_iter().map(is_expected);
    assert_eq!(applied.writes, expected.collect::<Vec<_>>());
    let bodies = script.bodies.lock().expect("lock").clone();
    assert_eq!(bodies[0]["metadata"]["name"], "p");
    for (live, expected) in [
        (live_pod("uid-agent", "any", "any"), R::AlreadyExists),
        (live_pod("uid-agent", "", ""), R::AlreadyExists),
        (live_pod("uid-other", "", "h1"), R::NameTaken),
    ] {
        let script = Script::default()
            .refuse("create", &[error(Refusal::AlreadyExists, 409)])
            .live("p", live);
        let applied = run(&script, &plan).await;
        assert_eq!(results(&applied), [expected]);
        assert_eq!(applied.name_taken, expected == R::NameTaken);
        assert!(!applied.failed && script.events().is_empty());
    }
}
