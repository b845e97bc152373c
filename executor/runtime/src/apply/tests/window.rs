//! Creates and deletes that are a window, and what their failures mean.

use super::*;

fn creates(sizes: &[usize]) -> v1::Phase {
    let mut names = (0..).map(|number| create_pod(&number.to_string()));
    let batches = sizes
        .iter()
        .map(|size| names.by_ref().take(*size).collect())
        .collect();
    phase(P::Creates, batches)
}

fn deletes(count: usize) -> v1::Phase {
    let pods = (0..count).map(|number| delete_pod(&number.to_string())).collect();
    phase(P::Deletes, vec![pods])
}

fn window(concurrency: usize) -> Options {
    Options {
        concurrency,
        is_window: true,
        ..Options::default()
    }
}

async fn run_with(script: &Script, plan: &v1::Plan, options: &Options) -> Applied {
    apply(script, plan, (DAEMON_SETS, &cached()), &LeftOut::new(), options).await
}

/// How many results there are of each kind: succeeded, failed, skipped.
fn counts(applied: &Applied) -> [usize; 3] {
    [R::Succeeded, R::Failed, R::Skipped].map(|result| applied.count(result))
}

// A slow start that has reached its ceiling does not wait for the end of a batch.
#[tokio::test(start_paused = true)]
async fn as_many_writes_as_the_limit_are_under_way_until_the_last_ones() {
    // The calls differ in their length, so that a batch has a last one.
    let script = Script {
        is_uneven: true,
        ..Script::default()
    };
    let plan = plan(vec![creates(&[1, 2, 4, 4, 4, 3])]);
    let applied = run_with(&script, &plan, &window(4)).await;
    assert_eq!(counts(&applied), [18, 0, 0]);
    assert_eq!(applied.batches, 6);
    let ids: Vec<_> = applied.outcomes.iter().map(|outcome| outcome.action_id).collect();
    assert_eq!(ids, (1..=18).collect::<Vec<_>>(), "in the order of the plan");
    // What is under way when each write begins, that write included.
    let beginnings = script.beginnings.lock().expect("lock").clone();
    assert_eq!(beginnings[..3], [1, 1, 2], "the slow start waits");
    assert_eq!(beginnings[3..7], [1, 2, 3, 4]);
    assert_eq!(
        beginnings[7..],
        [4; 11],
        "the next one begins as soon as one ends"
    );

    // As upstream, each batch waits.
    let script = Script {
        is_uneven: true,
        ..Script::default()
    };
    let exact = Options {
        is_window: false,
        ..window(4)
    };
    let applied = run_with(&script, &plan, &exact).await;
    assert_eq!((counts(&applied), applied.batches), ([18, 0, 0], 6));
    let beginnings = script.beginnings.lock().expect("lock").clone();
    assert_eq!(beginnings, [1, 1, 2, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3]);
}

// D-78: the state after a failure is that after a failed batch: what was under way is done, and the rest is skipped.
#[tokio::test(start_paused = true)]
async fn after_a_failure_no_further_write_begins() {
    let quota = error(Refusal::Other, 403);
    // The fifth create and those after it are refused.
    let refusing = || {
        Script::default().refuse(
            "create",
            &[&vec![none(); 4][..], std::slice::from_ref(&quota)].concat(),
        )
    };
    let of = |sizes: &[usize]| plan(vec![creates(sizes), deletes(2)]);
    for (sizes, batches) in [(&[4, 4, 4, 4][..], 2), (&[16], 1)] {
        let script = refusing();
        let applied = run_with(&script, &of(sizes), &window(4)).await;
        // Four succeed, and the four that take their places fail. The deletes do not depend on the creates.
        assert_eq!(counts(&applied), [4 + 2, 4, 8], "{sizes:?}");
        assert_eq!(
            (applied.batches, applied.failed),
            (batches + 1, true),
            "{sizes:?}"
        );
        assert!(!applied.aborted);
        assert_eq!(script.calls().len(), 8 + 2);
        let skipped = &applied.outcomes[15];
        assert!(
            matches!(&skipped.subject, Some(v1::outcome::Subject::CreatedPod(pod)) if pod.node_name == "node-15"),
            "its expectation is settled"
        );
    }
    // An executor that walks the batches says the same.
    let script = refusing();
    let exact = Options {
        is_window: false,
        ..window(4)
    };
    let walked = run_with(&script, &of(&[4, 4, 4, 4]), &exact).await;
    let in_window = run_with(&refusing(), &of(&[4, 4, 4, 4]), &window(4)).await;
    assert_eq!(walked, in_window);
    // One batch is one batch there.
    let applied = run_with(&refusing(), &of(&[16]), &exact).await;
    assert_eq!(counts(&applied), [4 + 2, 12, 0]);
}

#[tokio::test(start_paused = true)]
async fn deletes_are_a_window_as_well() {
    let refused = || Script::default().refuse("delete", &[none(), error(Refusal::Other, 403)]);
    let plan = plan(vec![deletes(10)]);
    // D-81: one that fails does not stop the others.
    let script = refused();
    let applied = run_with(&script, &plan, &window(3)).await;
    assert_eq!(counts(&applied), [1, 9, 0]);
    let exact = Options {
        is_window: false,
        ..window(3)
    };
    let applied = run_with(&refused(), &plan, &exact).await;
    assert_eq!(counts(&applied), [1, 9, 0]);
}

// all claims are one batch, so that one that fails does not stop the others.
#[tokio::test(start_paused = true)]
async fn other_phases_are_no_window() {
    let adopt = |name: usize| {
        Kind::ReleasePod(v1::ReleasePod {
            pod: Some(reference(&name.to_string())),
            patch: "{}".into(),
        })
    };
    let plan = plan(vec![phase(P::Claims, vec![(0..10).map(adopt).collect()])]);
    let script = Script::default().refuse("patch", &[error(Refusal::Other, 403), none()]);
    let applied = run_with(&script, &plan, &window(3)).await;
    assert_eq!(counts(&applied), [9, 1, 0]);
}

// A batch that is not full is a step of the slow start, and the workload is confirmed before a batch that asks for it.
#[tokio::test(start_paused = true)]
async fn what_a_batch_waits_for() {
    let under_way = async |phase: v1::Phase| {
        let script = Script {
            is_uneven: true,
            live: HashMap::from([("agent".to_owned(), live_workload(None))]),
            ..Script::default()
        };
        run_with(&script, &plan(vec![phase]), &window(4)).await;
        let beginnings = script.beginnings.lock().expect("lock").clone();
        beginnings[3..5].to_vec()
    };
    assert_eq!(under_way(creates(&[3, 4])).await, [1, 2]);
    let mut confirmed = creates(&[4, 4]);
    confirmed.batches[1].confirm_workload = true;
    assert_eq!(under_way(confirmed).await, [4, 1], "the read is alone");
}

// W14: what is under way is finished, and the report says that the rest was not.
#[tokio::test(start_paused = true)]
async fn after_a_stop_no_further_write_begins() {
    let options = window(4);
    options.stop.cancel();
    let plan = plan(vec![creates(&[16]), deletes(3)]);
    let applied = run_with(&Script::default(), &plan, &options).await;
    assert_eq!(counts(&applied), [0, 0, 19]);
    // What is under way when the stop comes.
    for is_window in [true, false] {
        let options = Options {
            is_window,
            ..window(4)
        };
        let stop = options.stop.clone();
        let script = Script::default();
        let (applied, ()) = tokio::join!(run_with(&script, &plan, &options), async {
            tokio::time::sleep(Duration::from_millis(7)).await;
            stop.cancel();
        });
        assert_eq!(counts(&applied), [8, 0, 11], "{is_window}");
    }
}

#[tokio::test(start_paused = true)]
async fn it_is_told_when_the_last_write_begins() {
    use futures::FutureExt as _;
    for (refused, expected) in [(false, true), (true, false)] {
        let script = if refused {
            Script::default().refuse("create", &[error(Refusal::Other, 403)])
        } else {
            Script::default()
        };
        let options = window(4);
        run_with(&script, &plan(vec![creates(&[16])]), &options).await;
        let is_told = options.last_begins.notified().now_or_never().is_some();
        assert_eq!(is_told, expected);
    }
}
