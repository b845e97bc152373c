//! Random values for mutations.

use nodewise_fixtures::NOW;
use nodewise_proto::{Timestamp, v1};
use rand::{Rng, RngExt as _, seq::IndexedRandom as _};
use serde_json::{Value, json};

/// A random position in a JSON value: one of the values inside, or the value itself.
pub(super) fn place<'a>(value: &'a mut Value, random: &mut impl Rng) -> &'a mut Value {
    let inner: usize = match value {
        Value::Array(list) => list.len(),
        Value::Object(map) => map.len(),
        _ => 0,
    };
    if inner == 0 || random.random_ratio(1, 8) {
        return value;
    }
    let at = random.random_range(0..inner);
    let next = match value {
        Value::Array(list) => &mut list[at],
        Value::Object(map) => map.iter_mut().nth(at).expect("counted").1,
        _ => unreachable!("has values inside"),
    };
    place(next, random)
}

/// A random JSON value.
pub(super) fn value(random: &mut impl Rng) -> Value {
    match random.random_range(0..8) {
        0 => Value::Null,
        1 => random.random::<bool>().into(),
        2 => random.random::<i64>().into(),
        3 => random.random::<f64>().into(),
        4 => json!([]),
        5 => json!({word(random): word(random)}),
        6 => json!([{word(random): value(random)}, value(random)]),
        _ => word(random).into(),
    }
}

pub(super) fn labels(random: &mut impl Rng) -> Vec<v1::Label> {
    let count = random.random_range(0..4);
    (0..count)
        .map(|_| v1::Label {
            key: word(random),
            value: word(random),
        })
        .collect()
}

/// A word that requests contain in several fields, so that selectors and labels may match.
pub(super) fn word(random: &mut impl Rng) -> String {
    const WORDS: [&str; 14] = [
        "app",
        "node-agent",
        "a",
        "v",
        "linux",
        "kubernetes.io/os",
        "controller-revision-hash",
        "pod-template-generation",
        "metadata.name",
        "node.kubernetes.io/not-ready",
        "5",
        "-9223372036854775808",
        "é\u{2028}<",
        "",
    ];
    text(random, &WORDS)
}

pub(super) fn operator(random: &mut impl Rng) -> String {
    text(
        random,
        &[
            "In",
            "NotIn",
            "Exists",
            "DoesNotExist",
            "Gt",
            "Lt",
            "Equal",
            "",
            "in",
        ],
    )
}

pub(super) fn pick<T: Clone>(random: &mut impl Rng, from: &[T]) -> T {
    from.choose(random).expect("something to choose from").clone()
}

pub(super) fn text(random: &mut impl Rng, from: &[&str]) -> String {
    pick(random, from).to_owned()
}

/// A timestamp near the time of the request, or an extreme one.
pub(super) fn moment(random: &mut impl Rng) -> Option<Timestamp> {
    let seconds = match random.random_range(0..6) {
        0 => return None,
        1 => i64::MAX,
        2 => -62_135_596_800,
        3 => 253_402_127_999,
        _ => NOW + random.random_range(-4_000..4_000),
    };
    Some(Timestamp {
        seconds,
        nanos: random.random_range(0..1_000_000_000),
    })
}
