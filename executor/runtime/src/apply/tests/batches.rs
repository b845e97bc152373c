//! How the batches of a plan run, and what their failures mean.

use super::*;

// D-66, D-68: each pod gets its name and its node, and nothing else changes. R-31: each create causes an event.
#[tokio::test(start_paused = true)]
async fn manifests_are_rendered_per_pod() {
    let script = Script::default();
    let plan = plan(vec![phase(
        P::Creates,
        vec![vec![create_pod("a")], vec![create_pod("b")], vec![create_pod("")]],
    )]);
    let applied = run(&script, &plan).await;
    assert_eq!(results(&applied), [R::Succeeded; 3]);
    let bodies = script.bodies.lock().expect("lock").clone();
    for (body, (name, node)) in bodies.iter().zip([
        (json!("a"), "node-a"),
        (json!("b"), "node-b"),
        (Value::Null, "node-"),
    ]) {
        assert_eq!(
            (&body["metadata"]["name"], &body["spec"]["affinity"]["values"][0]),
            (&name, &json!(node))
        );
        assert_eq!(
            (&body["metadata"]["generateName"], &body["spec"]["note"]),
            (&json!("agent-"), &json!("{node}"))
        );
    }
    assert_eq!(
        script.events()[2],
        (
            "Normal SuccessfulCreate".to_owned(),
            "Created pod: generated".to_owned()
        )
    );
}

// D-77: a batch runs concurrently, the next one waits for all of it; D-76: creates end before deletes begin.
#[tokio::test(start_paused = true)]
async fn batches_run_one_after_the_other() {
    let script = Script::default();
    let creates = [1, 2, 4]
        .map(|size| (0..size).map(|i| create_pod(&format!("p{size}{i}"))).collect())
        .to_vec();
    let plan = plan(vec![
        phase(P::Creates, creates),
        phase(P::Deletes, vec![vec![delete_pod("x"), delete_pod("y")]]),
    ]);
    let applied = run(&script, &plan).await;
    assert_eq!(applied.batches, 4);
    assert_eq!(script.most_under_way.load(Ordering::SeqCst), 4);
    let calls = script.calls();
    let batch_of = |call: &String| {
        call.chars()
            .nth("create p".len())
            .filter(|_| call.starts_with("create"))
    };
    let order: Vec<_> = calls.iter().map(batch_of).collect();
    assert!(order.is_sorted_by_key(|size| size.unwrap_or('9')), "{calls:?}");
    assert!(!applied.failed);
    assert_eq!(
        applied
            .outcomes
            .iter()
            .map(|outcome| outcome.action_id)
            .collect::<Vec<_>>(),
        (1..=9).collect::<Vec<_>>()
    );
}

#[tokio::test(start_paused = true)]
async fn concurrency_is_bounded() {
    let script = Script::default();
    let plan = plan(vec![phase(
        P::Creates,
        vec![(0..20).map(|i| create_pod(&i.to_string())).collect()],
    )]);
    let options = Options {
        concurrency: 3,
        ..Options::default()
    };
    apply(
        &script,
        &plan,
        (DAEMON_SETS, &cached()),
        &LeftOut::new(),
        &options,
    )
    .await;
    assert_eq!(script.most_under_way.load(Ordering::SeqCst), 3);
    assert_eq!(script.calls().len(), 20);
}

// D-78, D-79: 100 creates, and the quota admits 10: 15 calls, 85 skipped. The deletes still run.
#[tokio::test(start_paused = true)]
async fn slow_start_stops_after_a_failed_batch() {
    let quota = error(Refusal::Other, 403);
    let script = Script::default().refuse("create", &[&vec![none(); 10][..], &[quota]].concat());
    let sizes = [1_usize, 2, 4, 8, 16, 32, 37];
    let mut names = (0..100).map(|i| create_pod(&i.to_string()));
    let batches = sizes
        .iter()
        .map(|size| names.by_ref().take(*size).collect())
        .collect();
    let plan = plan(vec![
        phase(P::Creates, batches),
        phase(P::Deletes, vec![vec![delete_pod("x")]]),
    ]);
    let applied = run(&script, &plan).await;
    let count = |result| applied.count(result);
    assert_eq!(
        (count(R::Succeeded), count(R::Failed), count(R::Skipped)),
        (11, 5, 85)
    );
    assert!(applied.failed);
    assert_eq!((applied.batches, script.calls().len()), (5, 16));
    let skipped = &applied.outcomes[99];
    assert!(
        matches!(&skipped.subject, Some(v1::outcome::Subject::CreatedPod(pod)) if pod.node_name == "node-99")
    );
}

// D-71: phases after a failed one: an aborting phase ends the plan, clean-up needs success, status always runs.
#[tokio::test(start_paused = true)]
async fn phases_after_a_failure() {
    let cleanup = || v1::Phase {
        requires_success: true,
        ..phase(
            P::Cleanup,
            vec![vec![Kind::DeleteRevision(v1::DeleteRevision {
                revision: Some(reference("r")),
                revision_number: 1,
            })]],
        )
    };
    let status = || {
        phase(
            P::Status,
            vec![vec![Kind::UpdateStatus(v1::UpdateStatus::default())]],
        )
    };
    for (aborts, expected) in [
        (false, [R::Failed, R::Skipped, R::Succeeded]),
        (true, [R::Failed, R::Skipped, R::Skipped]),
    ] {
        let script = Script::default().refuse("create", &[error(Refusal::Other, 500)]);
        let creates = v1::Phase {
            aborts_on_failure: aborts,
            ..phase(P::Creates, vec![vec![create_pod("a")]])
        };
        let applied = run(&script, &plan(vec![creates, cleanup(), status()])).await;
        assert_eq!(results(&applied), expected);
    }
    let applied = run(&Script::default(), &plan(vec![cleanup(), status()])).await;
    assert_eq!(results(&applied), [R::Succeeded; 2]);
    // D-63: a missing old revision shows that the snapshot is behind.
    let script = Script::default().refuse("delete", &[error(Refusal::NotFound, 404)]);
    let applied = run(&script, &plan(vec![cleanup(), status()])).await;
    assert_eq!(results(&applied), [R::Failed, R::Succeeded]);
    assert!(applied.failed && !applied.aborted);
}

// D-109: the gate waits for pod creates, adoptions and status writes, but not for deletes, relabels and writes of
// revisions.
#[tokio::test(start_paused = true)]
async fn own_writes() {
    let relabel = Kind::RelabelPod(v1::RelabelPod {
        pod: Some(reference("p")),
        patch: "{}".into(),
    });
    let renumber = Kind::UpdateRevision(v1::UpdateRevision {
        revision: Some(reference("r")),
        patch: "{}".into(),
        revision_number: None,
    });
    let script = Script::default();
    let kinds = vec![
        create_pod("a"),
        delete_pod("p"),
        relabel,
        renumber,
        Kind::UpdateStatus(new_status()),
    ];
    let applied = run(&script, &plan(vec![phase(P::Creates, vec![kinds])])).await;
    let version = || "7".to_owned();
    assert_eq!(
        applied.writes,
        [
            OwnWrite {
                resource: Resource::PODS,
                resource_version: version(),
                created_pod: Some("a".to_owned()),
            },
            OwnWrite {
                resource: DAEMON_SETS,
                resource_version: version(),
                created_pod: None,
            },
        ]
    );
    assert!(script.calls().contains(&"patch r merge".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_understood_fails_alone() {
    let script = Script::default();
    let mut strange = plan(vec![phase(
        P::Creates,
        vec![vec![create_pod("a"), delete_pod("p"), create_pod("b")]],
    )]);
    strange.phases[0].batches[0].actions[2].kind = None;
    strange.pod_manifest = "not JSON".into();
    let applied = run(&script, &strange).await;
    assert_eq!(results(&applied), [R::Failed, R::Succeeded, R::Failed]);
    strange.pod_manifest = json!({"metadata": {}}).to_string().into();
    let applied = run(&script, &strange).await;
    assert!(
        applied.outcomes[0].message.contains("/spec/affinity/values/0"),
        "{}",
        applied.outcomes[0].message
    );
}

// An apiserver quotes the whole object that it refuses. The cause at the end of such a message is recognised.
#[tokio::test]
async fn a_refusal_is_truncated() {
    let quoted = "x".repeat(3_000_000);
    let message =
        format!("ControllerRevision \"a\" is invalid: [metadata: Invalid value: {quoted}, data: changed]");
    let error = ActuatorError {
        refusal: Refusal::Invalid,
        http_status: 422,
        message,
    };
    let told = error.to_string();
    assert_eq!(told.len(), 1_000 + "…".len());
    let script = Script::default().refuse("create", std::slice::from_ref(&error));
    let creates = phase(P::Creates, vec![vec![create_pod("a")]]);
    let applied = run(&script, &plan(vec![creates])).await;
    assert_eq!(applied.outcomes[0].message, told);
    assert!(patching::Seal::of(Resource::REVISIONS, None, &error).is_some());
}
