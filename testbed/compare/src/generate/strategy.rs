//! Update strategies: budgets near rounding limits, surge, and values that validation would reject.

use serde_json::{Map, Value, json};

use super::rng::CaseRng;

/// The kind of an update strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// RollingUpdate with maxUnavailable.
    Rolling,
    /// RollingUpdate with maxSurge.
    Surge,
    /// RollingUpdate with unusual budgets.
    Odd,
    /// OnDelete.
    OnDelete,
    /// An unknown type.
    Unknown,
}

/// A kind and its strategy.
pub(super) fn draw(rng: &mut CaseRng) -> (Kind, Value) {
    let kind = rng.weighted(&[
        (46, Kind::Rolling),
        (34, Kind::Surge),
        (10, Kind::Odd),
        (8, Kind::OnDelete),
        (2, Kind::Unknown),
    ]);
    let zero = if rng.in_hundred(15) { json!("0%") } else { json!(0) };
    let strategy = match kind {
        Kind::Rolling => rolling(&budget(rng), &zero),
        Kind::Surge => rolling(&zero, &budget(rng)),
        Kind::Odd => odd(rng),
        Kind::OnDelete if rng.in_hundred(80) => json!({"type": "OnDelete"}),
        Kind::OnDelete => {
            let mut strategy = rolling(&json!(1), &json!(1));
            strategy["type"] = "OnDelete".into();
            strategy
        }
        Kind::Unknown => json!({"type": rng.pick(&["Recreate", "rollingUpdate"])}),
    };
    (kind, strategy)
}

fn rolling(unavailable: &Value, surge: &Value) -> Value {
    json!({
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": surge},
    })
}

/// A budget above zero.
fn budget(rng: &mut CaseRng) -> Value {
    if rng.in_hundred(60) {
        return rng.pick(&[1, 1, 1, 1, 2, 2, 3, 5, 100]).into();
    }
    rng.pick(&["1%", "20%", "33%", "34%", "50%", "67%", "99%", "100%"])
        .into()
}

fn odd(rng: &mut CaseRng) -> Value {
    let any = |rng: &mut CaseRng| match rng.below(8) {
        0 => json!(0),
        1 => json!("0%"),
        2 => rng.pick(&["5", "5", "", "abc", "1.5%", "%", " 1%", "+5%"]).into(),
        3 => rng.pick(&[-1, -5]).into(),
        4 => rng.pick(&["-10%", "101%", "250%"]).into(),
        _ => budget(rng),
    };
    match rng.below(10) {
        0 => json!({"type": "RollingUpdate"}),
        1 | 2 => {
            let mut budgets = Map::new();
            let left = rng.pick(&["maxSurge", "maxUnavailable"]);
            if rng.in_hundred(70) {
                budgets.insert(left.into(), any(rng));
            }
            json!({"type": "RollingUpdate", "rollingUpdate": budgets})
        }
        3 | 4 => rolling(&json!(0), &json!(0)),
        5 => rolling(&json!("0%"), &json!("0%")),
        _ => {
            let unavailable = any(rng);
            rolling(&unavailable, &any(rng))
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::case::Case;
    use crate::generate::census::{Situation, set};

    fn unavailable(case: &Case) -> &Value {
        &set(case)["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"]
    }

    fn surge(case: &Case) -> &Value {
        &set(case)["spec"]["updateStrategy"]["rollingUpdate"]["maxSurge"]
    }

    fn strategy(case: &Case) -> &Value {
        &set(case)["spec"]["updateStrategy"]
    }

    pub(in crate::generate) const SITUATIONS: &[Situation] = &[
        ("1% unavailable", |case| *unavailable(case) == "1%"),
        ("33% unavailable", |case| {
            *unavailable(case) == "33%" && case.nodes.len() == 3
        }),
        ("34% unavailable", |case| {
            *unavailable(case) == "34%" && case.nodes.len() == 3
        }),
        ("99% unavailable", |case| *unavailable(case) == "99%"),
        ("100% unavailable", |case| *unavailable(case) == "100%"),
        ("1% surge", |case| *surge(case) == "1%"),
        ("33% surge", |case| *surge(case) == "33%" && case.nodes.len() == 3),
        ("34% surge", |case| *surge(case) == "34%" && case.nodes.len() == 3),
        ("100% surge", |case| *surge(case) == "100%"),
        ("no percent", |case| *unavailable(case) == "0%"),
        ("a number as text", |case| *unavailable(case) == "5"),
        ("a surge as text", |case| *surge(case) == "5"),
        ("a negative number", |case| *unavailable(case) == -1),
        ("a negative surge", |case| *surge(case) == -1),
        ("a negative percentage", |case| *unavailable(case) == "-10%"),
        ("more than all", |case| *surge(case) == "250%"),
        ("both zero", |case| *unavailable(case) == 0 && *surge(case) == 0),
        ("both", |case| {
            unavailable(case).as_i64() > Some(0)
                && surge(case).as_i64() > Some(0)
                && strategy(case)["type"] == "RollingUpdate"
        }),
        ("no maxUnavailable", |case| {
            strategy(case)["rollingUpdate"].is_object() && unavailable(case).is_null()
        }),
        ("no maxSurge", |case| {
            strategy(case)["rollingUpdate"].is_object() && surge(case).is_null()
        }),
        ("no rollingUpdate", |case| {
            strategy(case)["type"] == "RollingUpdate" && strategy(case)["rollingUpdate"].is_null()
        }),
        ("a percentage of no nodes", |case| {
            case.nodes.is_empty() && surge(case).as_str().is_some_and(|text| text.ends_with("0%"))
        }),
        ("OnDelete", |case| strategy(case)["type"] == "OnDelete"),
        ("OnDelete with a surge", |case| {
            strategy(case)["type"] == "OnDelete" && *surge(case) == 1
        }),
        ("an unknown strategy", |case| strategy(case)["type"] == "Recreate"),
    ];
}
