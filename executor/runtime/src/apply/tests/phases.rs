//! Tests of which phases run after which failures.

use super::*;

fn creating(name: &str) -> v1::Phase {
    phase(P::Creates, vec![vec![create_pod(name)]])
}

async fn after(first: v1::Phase, second: v1::Phase, third: v1::Phase, refused: &[&str]) -> Applied {
    let mut script = Script::default();
    for name in refused {
        script = script.refuse(&format!("create {name}"), &[error(Refusal::Other, 403)]);
    }
    run(&script, &plan(vec![first, second, third])).await
}

// A phase that requires a failure runs only after one that counts, and never after the end of the plan.
#[tokio::test(start_paused = true)]
async fn a_phase_that_requires_a_failure() {
    let required = || v1::Phase {
        requires_failure: true,
        ..creating("b")
    };
    let ignoring = || v1::Phase {
        ignores_failure: true,
        ..creating("a")
    };
    let aborting = || v1::Phase {
        aborts_on_failure: true,
        ..creating("a")
    };
    let emitting = phase(P::Events, vec![vec![create_pod("a")]]);
    for (first, refused, second, third) in [
        (creating("a"), &[][..], R::Skipped, R::Succeeded),
        (creating("a"), &["a"], R::Succeeded, R::Succeeded),
        (ignoring(), &["a"], R::Skipped, R::Succeeded),
        (emitting, &["a"], R::Skipped, R::Succeeded),
        (aborting(), &["a"], R::Skipped, R::Skipped),
    ] {
        let applied = after(first, required(), creating("c"), refused).await;
        assert_eq!(results(&applied)[1..], [second, third], "{refused:?}");
    }
}

// A failure that is ignored stops its own phase, is reported as ignored, and has no other consequence.
#[tokio::test(start_paused = true)]
async fn a_phase_that_ignores_failures() {
    let ignoring = || v1::Phase {
        ignores_failure: true,
        aborts_on_failure: true,
        ..phase(P::Deletes, vec![vec![create_pod("a")], vec![create_pod("b")]])
    };
    let clean_up = || v1::Phase {
        requires_success: true,
        ..creating("c")
    };
    let applied = after(ignoring(), clean_up(), creating("d"), &["a"]).await;
    assert_eq!(
        results(&applied),
        [R::Failed, R::Skipped, R::Succeeded, R::Succeeded]
    );
    let ignored: Vec<_> = applied.outcomes.iter().map(|outcome| outcome.ignored).collect();
    assert_eq!(ignored, [true, false, false, false]);
    assert_eq!((applied.failed, applied.aborted), (false, false));
    assert_eq!(applied.first_failure(), None);

    // A failure that counts is another matter.
    let applied = after(ignoring(), creating("c"), clean_up(), &["a", "c"]).await;
    assert_eq!(results(&applied)[2..], [R::Failed, R::Skipped]);
    assert_eq!(applied.first_failure().map(|outcome| outcome.action_id), Some(3));
    assert!(applied.failed);
}
