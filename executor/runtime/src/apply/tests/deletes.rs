//! Deletes of pods.

use super::*;

// D-81: 404 is no error and causes no Event; any other error is and does. Q-16, D-81: the uid is a precondition.
#[tokio::test(start_paused = true)]
async fn deletes() {
    let gone = live_pod("uid-agent", "node", "h1");
    for (failure, result, events) in [
        (
            none(),
            R::Succeeded,
            vec![("Normal SuccessfulDelete".to_owned(), "Deleted pod: p".to_owned())],
        ),
        (error(Refusal::NotFound, 404), R::NotFound, vec![]),
        (error(Refusal::Conflict, 409), R::NotFound, vec![]),
        (
            error(Refusal::Other, 403),
            R::Failed,
            vec![(
                "Warning FailedDelete".to_owned(),
                "Error deleting: Other".to_owned(),
            )],
        ),
    ] {
        let script = Script::default()
            .refuse("delete", &[failure])
            .live("p", gone.clone());
        let applied = run(
            &script,
            &plan(vec![phase(P::Deletes, vec![vec![delete_pod("p")]])]),
        )
        .await;
        assert_eq!((results(&applied), script.events()), (vec![result], events));
        assert_eq!(applied.failed, result == R::Failed);
        assert_eq!(script.calls()[0], "delete p uid-p");
        let subject = v1::outcome::Subject::DeletedPodUid("uid-p".to_owned());
        assert_eq!(applied.outcomes[0].subject, Some(subject));
    }
    // A conflict is a failure if the pod with this uid still exists.
    let mut same = gone;
    same["metadata"]["uid"] = json!("uid-p");
    let script = Script::default()
        .refuse("delete", &[error(Refusal::Conflict, 409)])
        .live("p", same);
    let applied = run(
        &script,
        &plan(vec![phase(P::Deletes, vec![vec![delete_pod("p")]])]),
    )
    .await;
    assert_eq!(results(&applied), [R::Failed]);
    // After a call without an answer, a pod that is being deleted counts as deleted. Otherwise no expectation would
    // wait for it (D-73).
    for (status, deleting, result) in [
        (0, true, R::Succeeded),
        (504, true, R::Succeeded),
        (0, false, R::Failed),
        (429, true, R::Failed),
    ] {
        let mut live = json!({"metadata": {"uid": "uid-p"}});
        if deleting {
            live["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        let script = Script::default()
            .refuse("delete", &[error(Refusal::Other, status)])
            .live("p", with_deep_fields(live));
        let deletes = plan(vec![phase(P::Deletes, vec![vec![delete_pod("p")]])]);
        let applied = run(&script, &deletes).await;
        assert_eq!(results(&applied), [result], "{status} {deleting}");
    }
    // Without the precondition, the delete is by name alone.
    let mut by_name = plan(vec![phase(P::Deletes, vec![vec![delete_pod("p")]])]);
    if let Some(Kind::DeletePod(delete)) = &mut by_name.phases[0].batches[0].actions[0].kind {
        delete.uid_precondition = false;
    }
    let script = Script::default();
    run(&script, &by_name).await;
    assert_eq!(script.calls(), ["delete p -"]);
}
