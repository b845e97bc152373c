//! Writes of the status of a workload.

use super::*;

// D-91: at most two PUTs with one GET between them.
#[tokio::test(start_paused = true)]
async fn status_is_written_twice_at_most() {
    let conflict = error(Refusal::Conflict, 409);
    for (refusals, live, result, calls) in [
        (vec![none()], true, R::Succeeded, vec!["status agent"]),
        (
            vec![conflict.clone(), none()],
            true,
            R::Succeeded,
            vec!["status agent", "read agent", "status agent"],
        ),
        (
            vec![conflict.clone()],
            true,
            R::Failed,
            vec!["status agent", "read agent", "status agent"],
        ),
        (
            vec![conflict.clone()],
            false,
            R::Failed,
            vec!["status agent", "read agent"],
        ),
    ] {
        let mut script = Script::default().refuse("status", &refusals);
        if live {
            script = script.live("agent", live_workload(None));
        }
        let plan = plan(vec![phase(
            P::Status,
            vec![vec![Kind::UpdateStatus(new_status())]],
        )]);
        let applied = run(&script, &plan).await;
        assert_eq!(
            (results(&applied), script.calls()),
            (vec![result], calls.iter().map(ToString::to_string).collect())
        );
        // D-109
        assert_eq!(applied.writes.len(), usize::from(result == R::Succeeded));
    }
}

// A workload that was replaced under its name gets neither the status nor the collision count of its predecessor,
// whatever the plan says.
#[tokio::test(start_paused = true)]
async fn status_of_a_replaced_workload() {
    let mut replaced = live_workload(None);
    replaced["metadata"]["uid"] = json!("uid-of-another");
    let counted = v1::UpdateStatus {
        collision_count: Some(1),
        ..Default::default()
    };
    for (update, calls) in [
        (new_status(), &["status agent", "read agent"][..]),
        (counted, &["read agent"]),
    ] {
        for uid_precondition in [true, false] {
            let script = Script::default()
                .refuse("status", &[error(Refusal::Conflict, 409), none()])
                .live("agent", replaced.clone());
            let update = Kind::UpdateStatus(v1::UpdateStatus {
                uid_precondition,
                ..update
            });
            let applied = run(&script, &plan(vec![phase(P::Status, vec![vec![update]])])).await;
            assert_eq!(results(&applied), [R::Failed]);
            assert_eq!(script.calls(), calls);
        }
    }

    // As in upstream, if the deviation is disabled.
    let script = Script::default()
        .refuse("status", &[error(Refusal::Conflict, 409), none()])
        .live("agent", replaced);
    let options = Options {
        status_with_uid: false,
        ..Options::default()
    };
    let plan = plan(vec![phase(
        P::Status,
        vec![vec![Kind::UpdateStatus(new_status())]],
    )]);
    let applied = apply(
        &script,
        &plan,
        (DAEMON_SETS, &cached()),
        &LeftOut::new(),
        &options,
    )
    .await;
    assert_eq!(results(&applied), [R::Succeeded]);
    assert_eq!(script.calls(), ["status agent", "read agent", "status agent"]);
}

// D-88: only the named fields change: first those of the cached object with its resourceVersion, then those of the live
// one.
#[tokio::test(start_paused = true)]
async fn status_leaves_other_fields() {
    let script = Script::default()
        .refuse("status", &[error(Refusal::Conflict, 409), none()])
        .live("agent", live_workload(Some(2)));
    run(
        &script,
        &plan(vec![phase(
            P::Status,
            vec![vec![Kind::UpdateStatus(new_status())]],
        )]),
    )
    .await;
    let bodies = script.bodies.lock().expect("lock").clone();
    for (body, version, condition) in [(&bodies[0], "5", "Theirs"), (&bodies[1], "9", "Newer")] {
        assert_eq!(body["metadata"]["resourceVersion"], version);
        let status = &body["status"];
        assert_eq!(
            (&status["numberReady"], &status["observedGeneration"]),
            (&json!(4), &json!(3))
        );
        assert_eq!(
            (&status["conditions"][0]["type"], &status["collisionCount"]),
            (&json!(condition), &json!(2))
        );
    }
    assert_eq!(bodies[0]["spec"]["unknownToUs"], json!([1.5]));
}

// D-62: the collision count is raised on the live object, unless it was raised already. D-109: the gate does not wait
// for this write.
#[tokio::test(start_paused = true)]
async fn collision_count() {
    for (live, expected, result, count) in [
        (Some(2), Some(2), R::Succeeded, Some(3)),
        (None, None, R::Succeeded, Some(1)),
        (Some(3), Some(2), R::Failed, None),
    ] {
        let script = Script::default().live("agent", live_workload(live));
        let update = v1::UpdateStatus {
            status: None,
            collision_count: count.or(Some(3)),
            expected_collision_count: expected,
            uid_precondition: true,
        };
        let applied = run(
            &script,
            &plan(vec![phase(P::Status, vec![vec![Kind::UpdateStatus(update)]])]),
        )
        .await;
        assert_eq!((results(&applied), applied.writes.len()), (vec![result], 0));
        let bodies = script.bodies.lock().expect("lock").clone();
        assert_eq!(
            bodies
                .first()
                .map(|body| body["status"]["collisionCount"].clone()),
            count.map(|count| json!(count))
        );
    }
    let script = Script::default()
        .refuse("status", &[error(Refusal::Conflict, 409)])
        .live("agent", live_workload(Some(2)));
    let update = v1::UpdateStatus {
        status: None,
        collision_count: Some(3),
        expected_collision_count: Some(2),
        uid_precondition: true,
    };
    run(
        &script,
        &plan(vec![phase(P::Status, vec![vec![Kind::UpdateStatus(update)]])]),
    )
    .await;
    assert_eq!(
        script.calls(),
        ["read agent", "status agent"],
        "not written again"
    );
}
