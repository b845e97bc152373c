//! Creates of pods and revisions, with names that are taken, and the Events about them.

use super::*;

/// A live pod whose controller has the uid of the workload.
fn controlled_by(kind: &str, name: &str) -> Value {
    let mut pod = live_pod("uid-agent", "node-p", "h1");
    pod["metadata"]["ownerReferences"][0]["kind"] = kind.into();
    pod["metadata"]["ownerReferences"][0]["name"] = name.into();
    pod
}

// D-79, D-82: any error of a create counts as failed and causes an Event.
#[tokio::test(start_paused = true)]
async fn a_failed_create_causes_an_event() {
    for failure in [
        error(Refusal::Invalid, 422),
        error(Refusal::Other, 504),
        ActuatorError::unclear("timed out"),
    ] {
        let script = Script::default().refuse("create", std::slice::from_ref(&failure));
        let applied = run(
            &script,
            &plan(vec![phase(P::Creates, vec![vec![create_pod("a")]])]),
        )
        .await;
        let outcome = &applied.outcomes[0];
        assert_eq!(
            (outcome.result(), &outcome.message),
            (R::Failed, &failure.message)
        );
        assert_eq!(outcome.http_status, u32::from(failure.http_status));
        let expected = (
            "Warning FailedCreate".to_owned(),
            format!("Error creating: {failure}"),
        );
        assert_eq!(script.events(), [expected]);
    }
}

// D-80: a terminating namespace causes no Event, stops no batch and is no failure.
#[tokio::test(start_paused = true)]
async fn a_terminating_namespace_causes_no_event() {
    let script = Script::default().refuse("create", &[error(Refusal::NamespaceTerminating, 403)]);
    let batches = vec![
        vec![create_pod("a")],
        vec![create_pod("b"), create_pod("c")],
        vec![create_pod("d")],
    ];
    let applied = run(&script, &plan(vec![phase(P::Creates, batches)])).await;
    assert_eq!(results(&applied), [R::NamespaceTerminating; 4]);
    assert!(!applied.failed && script.events().is_empty());
}

// Idempotent creates: a taken name counts as done only if the live pod is the one that the create would have made.
#[tokio::test(start_paused = true)]
async fn a_taken_name_is_read_live() {
    for (name, live, expected) in [
        ("ours", live_pod("uid-agent", "node-p", "h1"), R::AlreadyExists),
        ("other owner", live_pod("uid-other", "node-p", "h1"), R::NameTaken),
        ("other kind", controlled_by("StatefulSet", "agent"), R::NameTaken),
        (
            "other name",
            controlled_by(DAEMON_SETS.kind, "other"),
            R::NameTaken,
        ),
        ("other node", live_pod("uid-agent", "node-q", "h1"), R::NameTaken),
        (
            "other revision",
            live_pod("uid-agent", "node-p", "h0"),
            R::NameTaken,
        ),
        (
            "odd managed fields",
            with_deep_fields(live_pod("uid-other", "node-p", "h1")),
            R::NameTaken,
        ),
        (
            "ours with odd managed fields",
            with_deep_fields(live_pod("uid-agent", "node-p", "h1")),
            R::AlreadyExists,
        ),
    ] {
        let script = Script::default()
            .refuse("create", &[error(Refusal::AlreadyExists, 409)])
            .live("p", live);
        let applied = run(
            &script,
            &plan(vec![phase(P::Creates, vec![vec![create_pod("p")]])]),
        )
        .await;
        assert_eq!(results(&applied), [expected], "{name}");
        assert!(
            !applied.failed && script.events().is_empty(),
            "{name}: no failure"
        );
        assert_eq!(applied.name_taken, expected == R::NameTaken, "{name}");
        assert!(applied.writes.is_empty(), "nothing was written");
    }
    let script = Script::default().refuse("create", &[error(Refusal::AlreadyExists, 409)]);
    let applied = run(
        &script,
        &plan(vec![phase(P::Creates, vec![vec![create_pod("p")]])]),
    )
    .await;
    assert_eq!(
        results(&applied),
        [R::Failed],
        "it may be ours, and cannot be read"
    );
    assert_eq!(script.events().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_taken_name_stops_no_batch() {
    let script = Script::default()
        .refuse("create", &[error(Refusal::AlreadyExists, 409)])
        .live("a", live_pod("uid-other", "node-a", "h1"))
        .live("b", live_pod("uid-other", "node-b", "h1"));
    let phases = vec![
        phase(P::Creates, vec![vec![create_pod("a")], vec![create_pod("b")]]),
        phase(
            P::Status,
            vec![vec![Kind::UpdateStatus(v1::UpdateStatus::default())]],
        ),
    ];
    let applied = run(&script, &plan(phases)).await;
    assert_eq!(results(&applied)[..2], [R::NameTaken; 2]);
    assert!(!results(&applied).contains(&R::Skipped), "{applied:?}");
    assert!(applied.name_taken && !applied.aborted);
}

// D-62: the object with the taken name is read and returned. D-59: the manifest is sent unchanged.
#[tokio::test(start_paused = true)]
async fn a_taken_revision_name_is_read() {
    let create = || {
        let manifest = json!({"metadata": {"name": "agent-h1"}, "data": {}})
            .to_string()
            .into();
        Kind::CreateRevision(v1::CreateRevision {
            name: "agent-h1".to_owned(),
            manifest,
        })
    };
    let revisions = || v1::Phase {
        aborts_on_failure: true,
        ..phase(P::Revisions, vec![vec![create()]])
    };
    let live = json!({"metadata": {"name": "agent-h1"}, "revision": 3});
    let script = Script::default()
        .refuse("create", &[error(Refusal::AlreadyExists, 409)])
        .live("agent-h1", live.clone());
    let applied = run(
        &script,
        &plan(vec![revisions(), phase(P::Creates, vec![vec![create_pod("a")]])]),
    )
    .await;
    assert_eq!(results(&applied), [R::Failed, R::Skipped]);
    let colliding = Colliding {
        resource: Resource::REVISIONS,
        object: live.to_string().into(),
    };
    assert_eq!(applied.colliding, [colliding]);
    let applied = run(&Script::default(), &plan(vec![revisions()])).await;
    assert_eq!(
        (results(&applied), applied.colliding.len(), applied.writes.len()),
        (vec![R::Succeeded], 0, 0)
    );
}

// D-101: Events of the plan are emitted unchanged and never stop the plan.
#[tokio::test(start_paused = true)]
async fn events_of_the_plan() {
    let event = v1::EmitEvent {
        r#type: "Warning".into(),
        reason: "FailedDaemonPod".into(),
        message: "Found".into(),
    };
    let script = Script::default();
    let applied = run(
        &script,
        &plan(vec![phase(P::Events, vec![vec![Kind::EmitEvent(event)]])]),
    )
    .await;
    assert_eq!(results(&applied), [R::Succeeded]);
    assert_eq!(
        script.events(),
        [("Warning FailedDaemonPod".to_owned(), "Found".to_owned())]
    );
}
