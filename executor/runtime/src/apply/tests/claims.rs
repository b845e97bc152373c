//! Adoptions and releases, and objects that cannot be changed.

use super::*;

// D-23, D-27: the meaning of refused adoptions and releases. D-109: the gate waits for adoptions, not for releases.
#[tokio::test(start_paused = true)]
async fn claims() {
    let adopt = || {
        Kind::AdoptPod(v1::AdoptPod {
            pod: Some(reference("p")),
            patch: "{}".into(),
        })
    };
    let release = || {
        Kind::ReleasePod(v1::ReleasePod {
            pod: Some(reference("p")),
            patch: "{}".into(),
        })
    };
    for (kind, failure, result, writes) in [
        (adopt(), none(), R::Succeeded, 1),
        (adopt(), error(Refusal::NotFound, 404), R::NotFound, 0),
        (adopt(), error(Refusal::Invalid, 422), R::Failed, 0),
        (release(), none(), R::Succeeded, 0),
        (release(), error(Refusal::NotFound, 404), R::NotFound, 0),
        (release(), error(Refusal::Invalid, 422), R::NotFound, 0),
        (release(), error(Refusal::Other, 500), R::Failed, 0),
    ] {
        let script = Script::default().refuse("patch", &[failure]);
        let applied = run(&script, &plan(vec![phase(P::Claims, vec![vec![kind]])])).await;
        assert_eq!((results(&applied), applied.writes.len()), (vec![result], writes));
        assert_eq!(script.calls(), ["patch p strategic"]);
    }
}

// D-23: the plan assumed that the orphan exists, so the rest of the plan is not run.
#[tokio::test(start_paused = true)]
async fn an_orphan_that_is_gone_ends_the_plan_without_a_failure() {
    let object = Some(reference("p"));
    let patch = || Bytes::from_static(b"{}");
    let adopt_pod = || {
        Kind::AdoptPod(v1::AdoptPod {
            pod: object.clone(),
            patch: patch(),
        })
    };
    let adopt_revision = || {
        Kind::AdoptRevision(v1::AdoptRevision {
            revision: object.clone(),
            patch: patch(),
        })
    };
    let release = || {
        Kind::ReleasePod(v1::ReleasePod {
            pod: object.clone(),
            patch: patch(),
        })
    };
    for (kind, vanished) in [
        (adopt_pod(), Some(Resource::PODS)),
        (adopt_revision(), Some(Resource::REVISIONS)),
        (release(), None),
    ] {
        let script = Script::default().refuse("patch", &[error(Refusal::NotFound, 404)]);
        let phases = vec![
            phase(P::Revisions, vec![vec![kind], vec![create_pod("a")]]),
            phase(P::Creates, vec![vec![create_pod("b")]]),
        ];
        let applied = run(&script, &plan(phases)).await;
        let after = if vanished.is_some() {
            R::Skipped
        } else {
            R::Succeeded
        };
        assert_eq!(results(&applied), [R::NotFound, after, after]);
        assert_eq!((applied.failed, applied.aborted), (false, vanished.is_some()));
        let gone: Vec<_> = applied
            .vanished
            .iter()
            .map(|key| (key.resource, &*key.name))
            .collect();
        assert_eq!(gone, Vec::from_iter(vanished.map(|resource| (resource, "p"))));
    }
}

// A revision that a client stored in another form than the apiserver's can never be patched. The next plan works
// without it.
#[tokio::test(start_paused = true)]
async fn a_revision_that_cannot_be_changed_ends_the_plan_and_is_named() {
    let invalid = |field: &str| ActuatorError {
        message: format!(
            "ControllerRevision.apps \"r\" is invalid: {field}: Invalid value: 1: field is immutable"
        ),
        ..error(Refusal::Invalid, 422)
    };
    let update = || {
        Kind::UpdateRevision(v1::UpdateRevision {
            revision: Some(reference("r")),
            patch: "{}".into(),
            ..Default::default()
        })
    };
    let adopt = || {
        Kind::AdoptRevision(v1::AdoptRevision {
            revision: Some(reference("r")),
            patch: "{}".into(),
        })
    };
    let release = || {
        Kind::ReleaseRevision(v1::ReleaseRevision {
            revision: Some(reference("r")),
            patch: "{}".into(),
        })
    };
    let adopt_pod = || {
        Kind::AdoptPod(v1::AdoptPod {
            pod: Some(reference("r")),
            patch: "{}".into(),
        })
    };
    for (kind, field, sealed) in [
        (update(), "data", true),
        (adopt(), "data", true),
        (release(), "data", true),
        (
            update(),
            "[metadata.uid: Invalid value: 2: field is immutable, data",
            true,
        ),
        (update(), "metadata", false),
        (update(), "metadata.uid", false),
        (adopt_pod(), "data", false),
    ] {
        let script = Script::default().refuse("patch", &[invalid(field)]);
        let phases = vec![phase(P::Revisions, vec![vec![kind], vec![create_pod("a")]])];
        let applied = run(&script, &plan(phases)).await;
        let result = if sealed { R::NotFound } else { R::Failed };
        assert_eq!(results(&applied), [result, R::Skipped], "{field}");
        assert_eq!(
            (applied.failed, applied.sealed.len()),
            (!sealed, usize::from(sealed)),
            "{field}"
        );
        let named = |(reason, message): &(String, String)| {
            reason == "Warning SealedRevision" && message.contains("/r,")
        };
        assert_eq!(
            script.events().iter().filter(|event| named(event)).count(),
            usize::from(sealed),
            "{field}"
        );
    }
}

// Anyone who may create pods and revisions may make them too large to be patched. The next plan works without the
// change.
#[tokio::test(start_paused = true)]
async fn oversized_objects_are_named_and_not_changed() {
    let answers = [
        (413, "Request entity too large: limit is 3145728", true),
        (500, "etcdserver: request is too large", true),
        (
            500,
            "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2097153 vs. 2097152)",
            true,
        ),
        (
            422,
            "Pod \"r\" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes",
            true,
        ),
        (
            422,
            "Pod \"r\" is invalid: metadata.uid: Invalid value: \"u\": field is immutable",
            false,
        ),
        (500, "etcdserver: leader changed", false),
    ];
    let (object, patch) = (|| Some(reference("r")), || Bytes::from("{}"));
    let (revision, pod) = (object, object);
    let update = Kind::UpdateRevision(v1::UpdateRevision {
        revision: revision(),
        patch: patch(),
        ..Default::default()
    });
    let adopt = Kind::AdoptRevision(v1::AdoptRevision {
        revision: revision(),
        patch: patch(),
    });
    let adopt_pod = Kind::AdoptPod(v1::AdoptPod {
        pod: pod(),
        patch: patch(),
    });
    let relabel = Kind::RelabelPod(v1::RelabelPod {
        pod: pod(),
        patch: patch(),
    });
    let release = Kind::ReleasePod(v1::ReleasePod {
        pod: pod(),
        patch: patch(),
    });
    // (kind, whether a plan without the change is possible, what the next plan leaves out)
    for (kind, is_spared, resource) in [
        (update, true, Some(Resource::REVISIONS)),
        (adopt, true, Some(Resource::REVISIONS)),
        (adopt_pod, true, Some(Resource::PODS)),
        // The pod is the workload's own: it keeps its label, and the plan continues.
        (relabel, true, None),
        (release, false, None),
    ] {
        for (status, message, too_large) in answers {
            let refusal = if status == 422 {
                Refusal::Invalid
            } else {
                Refusal::Other
            };
            let said = ActuatorError {
                message: message.to_owned(),
                ..error(refusal, status)
            };
            let script = Script::default().refuse("patch", &[said]);
            let phases = vec![phase(P::Claims, vec![vec![kind.clone()], vec![create_pod("a")]])];
            let applied = run(&script, &plan(phases)).await;
            let (is_spared, left_out) = (is_spared && too_large, resource.filter(|_| too_large));
            let result = match (is_spared, left_out) {
                (true, None) => [R::NotFound, R::Succeeded],
                (true, Some(_)) => [R::NotFound, R::Skipped],
                // Another pod has the name now.
                (false, _) if status == 422 && matches!(kind, Kind::ReleasePod(_)) => {
                    [R::NotFound, R::Succeeded]
                }
                (false, _) => [R::Failed, R::Skipped],
            };
            assert_eq!(results(&applied), result, "{kind:?} {message}");
            let sealed = applied.sealed.iter().map(|key| (key.resource, &*key.name));
            assert!(sealed.eq(left_out.map(|resource| (resource, "r"))), "{message}");
            assert_eq!(applied.failed, result[0] == R::Failed, "{message}");
            let told = script.events();
            let told = told.iter().filter(|(reason, text)| {
                reason == "Warning ObjectTooLarge" && text.contains("/r ") && text.contains(message)
            });
            assert_eq!(told.count(), usize::from(is_spared), "{message}");
        }
    }
}

// D-27: before an adoption, the executor checks that the workload exists, has the same uid and is not being deleted.
#[tokio::test(start_paused = true)]
async fn adoption_reads_the_workload_first() {
    let mut deleting = live_workload(None);
    deleting["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut other = live_workload(None);
    other["metadata"]["uid"] = json!("uid-of-another");
    for (live, expected) in [
        (Some(live_workload(None)), R::Succeeded),
        (Some(deleting), R::Failed),
        (Some(other), R::Failed),
        (None, R::Failed),
    ] {
        let mut script = Script::default();
        script.live.extend(live.map(|live| ("agent".to_owned(), live)));
        let adopt = |name: &str| {
            Kind::AdoptPod(v1::AdoptPod {
                pod: Some(reference(name)),
                patch: "{}".into(),
            })
        };
        let release = Kind::ReleasePod(v1::ReleasePod {
            pod: Some(reference("r")),
            patch: "{}".into(),
        });
        let mut claims = phase(P::Claims, vec![vec![release, adopt("p"), adopt("q")]]);
        claims.batches[0].confirm_workload = true;
        claims.aborts_on_failure = true;
        let applied = run(
            &script,
            &plan(vec![claims, phase(P::Creates, vec![vec![create_pod("a")]])]),
        )
        .await;
        let after = if expected == R::Failed {
            R::Skipped
        } else {
            R::Succeeded
        };
        // D-23.4: a release does not need that check.
        assert_eq!(results(&applied), [R::Succeeded, expected, expected, after]);
        let reads = script
            .calls()
            .iter()
            .filter(|call| call.starts_with("read"))
            .count();
        assert_eq!(
            (reads, script.calls().len()),
            (1, if expected == R::Failed { 2 } else { 5 })
        );
    }
}
