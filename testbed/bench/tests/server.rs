//! Runs the measurements of the real server on clusters so small that the figures mean nothing.

use nodewise_bench::calls::Measured;
use nodewise_bench::{calls, cores, generator::Load, policies, replicas, tracing};
use nodewise_conformance::binaries;

#[tokio::test]
async fn calls_are_measured() {
    let program = &binaries().expect("the programs under test").server;
    let size = calls::Size {
        nodes: 30,
        more_nodes: 60,
        replicas: 300,
        calls: [3, 2, 4, 5],
    };
    let Measured {
        inline,
        more_inline,
        changed,
        replica_set,
        cached_bytes,
    } = calls::calls(program, size, 2).await.expect("figures");
    assert_eq!((more_inline.p50.rounds(), more_inline.of), (2, 2));
    assert!(more_inline.size.min() > inline.size.max());
    // In a small cluster, most of it are fixed sizes and the results of the plan.
    assert!(cached_bytes > 53.0 + 184.0, "{cached_bytes}");
    assert_eq!((inline.p50.rounds(), inline.of, inline.size.rounds()), (2, 3, 6));
    assert_eq!(
        (changed.p99.rounds(), changed.of, changed.size.rounds()),
        (2, 4, 8)
    );
    assert_eq!((replica_set.p50.rounds(), replica_set.of), (2, 5));
    assert!(replica_set.largest.buckets > 0.0);
    assert!(
        changed.size.max() < inline.size.min(),
        "one bucket is less than all"
    );
    assert!(changed.largest.buckets > 0.0 && changed.largest.buckets < inline.largest.buckets);
    let digests = 128.0 * 32.0 / 1e3;
    assert!(
        (changed.largest.digests - digests).abs() < 1e-9,
        "{}",
        changed.largest
    );
}

#[tokio::test]
async fn the_cost_of_policies_is_measured() {
    let built = tokio::task::spawn_blocking(binaries).await.expect("no panic");
    let program = &built.expect("the programs under test").server;
    let size = policies::Size { nodes: 60, calls: 4 };
    let settings = policies::costs(program, size, 2).await.expect("figures");
    let sent: Vec<_> = settings.iter().map(|calls| calls.largest.all).collect();
    assert!(
        (sent[0] - sent[1]).abs() < 0.01,
        "policies of others are not sent: {sent:?}"
    );
    assert!(
        sent[2] > sent[1] && sent[4] > sent[3],
        "the one that applies is: {sent:?}"
    );
    assert!(
        settings
            .iter()
            .all(|calls| (calls.p50.rounds(), calls.of) == (2, 4))
    );
}

#[tokio::test]
async fn the_cost_of_traces_is_measured() {
    let built = tokio::task::spawn_blocking(binaries).await.expect("no panic");
    let program = &built.expect("the programs under test").server;
    let [inline, changed] = tracing::costs(program, 30, 2, [3, 20]).await.expect("figures");
    assert_eq!((inline.calls, changed.calls), (3, 20));
    for (cost, all) in [(inline, 4), (changed, 22)] {
        assert_eq!(cost.rounds.len(), 2);
        for round in cost.rounds {
            assert!(round.without.p50 > 0.0 && round.with.p50 > 0.0, "{round:?}");
            assert!(round.without.cpu > 0.0 && round.with.cpu > 0.0, "{round:?}");
            assert!(round.spans >= 1.0, "each call has its span: {round:?}");
            assert!(round.all_spans >= all, "also those of the first calls: {round:?}");
        }
    }
}

#[test]
fn replicas_are_measured() {
    let program = &binaries().expect("the programs under test").server;
    let load = Load::new(30, 4, 5).expect("a load");
    let runs = replicas::runs(program, &load, 2);
    let cores = cores::allowed().expect("cores").len();
    if cores < 2 {
        let error = runs.expect_err("too few cores");
        assert!(
            error.to_string().contains("two replicas need two cores"),
            "{error}"
        );
        return;
    }
    let runs = runs.expect("figures");
    assert_eq!(runs.len(), 2);
    for [one, two] in runs {
        assert_eq!((one.replicas, one.plans, one.shared), (1, 20, false));
        assert_eq!((two.replicas, two.plans, two.shared), (2, 20, cores == 2));
        assert!(!one.wall.is_zero() && !two.wall.is_zero());
    }
}
