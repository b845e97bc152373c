//! Checks that an executor holds the Lease, and that clocks agree.

use jiff::SignedDuration;
use k8s_openapi::api::coordination::v1::Lease;

use super::{
    facts::{Clock, Facts},
    finding::{Finding, Section},
};

const SECTION: Section = Section::Lease;
/// The duration of a Lease that has none, which is the executor's default.
const DURATION: i32 = 15;
/// A difference of clocks that is reported. The header has whole seconds.
const SKEW: SignedDuration = SignedDuration::from_secs(5);

pub(crate) fn check(facts: &Facts) -> Vec<Finding> {
    let one = |(namespace, seen): (&String, &Result<Option<Lease>, _>)| {
        let what = format!("Lease {namespace}/nodewise-executor");
        match seen {
            Err(unread) => SECTION.unread(&what, unread),
            Ok(lease) => of_lease(&what, lease.as_ref(), &facts.clock),
        }
    };
    facts.leases.iter().map(one).collect()
}

fn of_lease(what: &str, lease: Option<&Lease>, clock: &Clock) -> Finding {
    let hint = "look at the log of the executor's pods, and at their right to update the Lease";
    let Some(spec) = lease.and_then(|lease| lease.spec.as_ref()) else {
        return SECTION.error(
            format!("{what} does not exist: no executor has ever worked"),
            hint,
        );
    };
    let holder = spec.holder_identity.as_deref().unwrap_or_default();
    let (false, Some(renewed)) = (holder.is_empty(), &spec.renew_time) else {
        return SECTION.error(format!("{what} has no holder: no executor works"), hint);
    };
    let age = clock.now().duration_since(renewed.0);
    let duration = SignedDuration::from_secs(spec.lease_duration_seconds.unwrap_or(DURATION).into());
    let seconds = age.as_secs();
    if age < -SKEW {
        return SECTION.warning(
            format!(
                "{what} was renewed {} s in the future: the clock of {holder} is ahead of the apiserver's",
                -seconds
            ),
            "synchronise the clock of the node that the holder runs on (NTP)",
        );
    }
    if age > duration {
        return SECTION.error(
            format!(
                "{what} has expired: {holder} renewed it {seconds} s ago, and it holds for {} s",
                duration.as_secs()
            ),
            hint,
        );
    }
    SECTION.ok(format!(
        "{what} is held by {holder}, renewed {} s ago",
        seconds.max(0)
    ))
}

/// Compares the clocks here and at the apiserver.
pub(crate) fn clock(clock: &Clock) -> Finding {
    let section = Section::Cluster;
    let Some(there) = clock.apiserver else {
        return section.warning(
            "the apiserver's clock is not known: its answer has no header Date",
            "compare the clocks of the control-plane nodes yourself",
        );
    };
    // The header is rounded down to a whole second.
    let second = SignedDuration::from_secs(1);
    let (ahead, behind) = (
        there.duration_since(clock.after),
        clock.before.duration_since(there) - second,
    );
    let hint = "synchronise the clocks (NTP): ages and deadlines that depend on both clocks are wrong";
    if ahead > SKEW {
        section.warning(
            format!(
                "the apiserver's clock is {} s ahead of this machine's",
                ahead.as_secs()
            ),
            hint,
        )
    } else if behind > SKEW {
        section.warning(
            format!(
                "the apiserver's clock is {} s behind this machine's",
                behind.as_secs()
            ),
            hint,
        )
    } else {
        section.ok("the clocks of the apiserver and of this machine agree")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::check::finding::Outcome;

    fn at(apiserver: Option<&str>) -> Clock {
        let time = |text: &str| text.parse().expect("a time");
        Clock {
            before: time("2026-01-01T00:01:00Z"),
            after: time("2026-01-01T00:01:02Z"),
            apiserver: apiserver.map(time),
        }
    }

    #[test]
    fn a_lease_must_be_held_and_fresh() {
        let spec = |holder: &str, renewed: &str| {
            let spec = json!({"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed});
            json!({ "spec": spec })
        };
        let table = [
            (
                spec("pod-1", "2026-01-01T00:00:50.000000Z"),
                Outcome::Ok,
                "held by pod-1, renewed 10 s ago",
            ),
            (
                spec("pod-1", "2026-01-01T00:00:40.000000Z"),
                Outcome::Error,
                "renewed it 20 s ago, and it holds for 15 s",
            ),
            (
                spec("pod-1", "2026-01-01T00:02:00.000000Z"),
                Outcome::Warning,
                "60 s in the future",
            ),
            (
                spec("", "2026-01-01T00:00:50.000000Z"),
                Outcome::Error,
                "has no holder",
            ),
            (
                json!({"spec": {"holderIdentity": "pod-1"}}),
                Outcome::Error,
                "has no holder",
            ),
            (Value::Null, Outcome::Error, "does not exist"),
        ];
        for (lease, result, part) in table {
            let lease: Option<Lease> = serde_json::from_value(lease).expect("a Lease");
            let found = of_lease("Lease n/l", lease.as_ref(), &at(Some("2026-01-01T00:01:00Z")));
            assert_eq!(found.result, result, "{found:?}");
            assert!(found.message.contains(part), "{found:?}");
        }
    }

    #[test]
    fn clocks_are_compared() {
        let table = [
            (Some("2026-01-01T00:01:01Z"), Outcome::Ok, "agree"),
            (Some("2026-01-01T00:01:07Z"), Outcome::Ok, "agree"),
            (Some("2026-01-01T00:01:12Z"), Outcome::Warning, "10 s ahead"),
            (Some("2026-01-01T00:00:54Z"), Outcome::Ok, "agree"),
            (Some("2026-01-01T00:00:09Z"), Outcome::Warning, "50 s behind"),
            (None, Outcome::Warning, "not known"),
        ];
        for (there, result, part) in table {
            let found = clock(&at(there));
            assert_eq!(found.result, result, "{found:?}");
            assert!(found.message.contains(part), "{found:?}");
        }
    }
}
