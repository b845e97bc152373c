//! Checks of a stage: which ones to make next, and what the measurements say (L-31, L-32).
//!
//! The plan asks for a measurement, the executor makes it, and the next snapshot has the result. The terms are those of Argo
//! Rollouts: a check passes after `count` measurements, of which at most `failureLimit` failed. A measurement that could not be
//! made is no failure.

mod condition;

use std::time::Duration;

use jiff::Timestamp;

pub use condition::Condition;

use crate::{
    core::measurement::{Measurement, MeasurementResult, Provider, Verdict},
    rollout::status::CheckStatus,
};

/// One entry of a stage's analysis.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// name.
    pub name: String,
    /// when.
    pub when: When,
    /// Who is asked.
    pub provider: Provider,
    /// successCondition.
    pub condition: Option<Condition>,
    /// credential: the name of a file that the operator of the executor has mounted; empty for none.
    pub credential: String,
    /// interval.
    pub interval: Duration,
    /// count; at least 1.
    pub count: u32,
    /// failureLimit.
    pub failure_limit: u32,
    /// inconclusiveLimit.
    pub inconclusive_limit: u32,
    /// consecutiveErrorLimit.
    pub consecutive_error_limit: u32,
}

/// When a check is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// While the stage soaks.
    WhileSoaking,
    /// Before the stage begins.
    BeforeStage,
}

/// The state of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A measurement is to be made now.
    Due,
    /// The next measurement is to be made after this time.
    Later(Duration),
    /// It passed.
    Passed,
    /// It failed; the message says why.
    Failed(String),
    /// It neither passes nor fails, and a person has to decide.
    Held(String),
    /// Too many measurements in a row could not be made. It goes on when one can: the next is to be made after this time.
    Errs(String, Duration),
}

/// The longest text of a value or message that is remembered, in bytes.
const MOST_TEXT: usize = 256;

impl Check {
    /// The state of this check. `known` is what is remembered of it.
    pub(crate) fn outcome(&self, known: &CheckStatus, now: Timestamp) -> Outcome {
        if known.failed > self.failure_limit {
            return Outcome::Failed(format!(
                "check {} failed {} times, and failureLimit is {}: {}",
                self.name,
                known.failed,
                self.failure_limit,
                known.said()
            ));
        }
        if known.inconclusive > self.inconclusive_limit {
            return Outcome::Held(format!(
                "check {} was inconclusive {} times, and inconclusiveLimit is {}: {}",
                self.name,
                known.inconclusive,
                self.inconclusive_limit,
                known.said()
            ));
        }
        if known.consecutive_errors > self.consecutive_error_limit {
            let why = format!(
                "check {} could not be made {} times in a row, and consecutiveErrorLimit is {}: {}",
                self.name,
                known.consecutive_errors,
                self.consecutive_error_limit,
                known.said()
            );
            return Outcome::Errs(why, self.due_in(known, now));
        }
        let made = known
            .successful
            .saturating_add(known.failed)
            .saturating_add(known.inconclusive);
        if made >= self.count {
            return Outcome::Passed;
        }
        match self.due_in(known, now) {
            Duration::ZERO => Outcome::Due,
            left => Outcome::Later(left),
        }
    }

    /// How long until the next measurement is to be made.
    fn due_in(&self, known: &CheckStatus, now: Timestamp) -> Duration {
        match known.time.map(|time| now.duration_since(time).unsigned_abs()) {
            // A time in the future, after the clock was set back, is as good as none.
            Some(since) if since < self.interval => self.interval.saturating_sub(since),
            _ => Duration::ZERO,
        }
    }

    /// Adds a measurement to what is remembered.
    pub(crate) fn count(&self, known: &mut CheckStatus, measurement: &Measurement) {
        known.measurements = known.measurements.saturating_add(1);
        known.time = Some(measurement.time);
        known.value.clear();
        let (verdict, message) = match &measurement.result {
            MeasurementResult::Verdict(verdict, message) => (Some(*verdict), message.clone()),
            MeasurementResult::Error(message) => (None, message.clone()),
            MeasurementResult::Value(value) => {
                known.value = short(&value.to_string());
                match &self.condition {
                    // A webhook that answers has nothing against it.
                    None if matches!(self.provider, Provider::Webhook { .. }) => {
                        (Some(Verdict::Pass), String::new())
                    }
                    None => (None, "there is no successCondition for this value".to_owned()),
                    Some(condition) => match condition.holds(value) {
                        Ok(true) => (Some(Verdict::Pass), String::new()),
                        Ok(false) => (Some(Verdict::Fail), format!("{} is false", condition.text())),
                        Err(error) => (None, error),
                    },
                }
            }
        };
        known.message = short(&message);
        known.consecutive_errors = if verdict.is_none() {
            known.consecutive_errors.saturating_add(1)
        } else {
            0
        };
        let counter = match verdict {
            Some(Verdict::Pass) => &mut known.successful,
            Some(Verdict::Fail) => &mut known.failed,
            Some(Verdict::Inconclusive) => &mut known.inconclusive,
            None => &mut known.errors,
        };
        *counter = counter.saturating_add(1);
    }
}

impl CheckStatus {
    /// The last value and message, for people.
    fn said(&self) -> String {
        match (self.value.as_str(), self.message.as_str()) {
            ("", "") => "no reason was given".to_owned(),
            ("", message) => message.to_owned(),
            (value, "") => format!("the last value is {value}"),
            (value, message) => format!("the last value is {value}; {message}"),
        }
    }
}

fn short(text: &str) -> String {
    text[..text.floor_char_boundary(MOST_TEXT)].to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::core::measurement::MeasurementId;

    fn check(count: u32, [failure, inconclusive, error]: [u32; 3]) -> Check {
        Check {
            name: "errors".to_owned(),
            when: When::WhileSoaking,
            provider: Provider::Webhook { url: String::new() },
            condition: Some(Condition::parse("result < 0.01").expect("a condition")),
            credential: String::new(),
            interval: Duration::from_mins(1),
            count,
            failure_limit: failure,
            inconclusive_limit: inconclusive,
            consecutive_error_limit: error,
        }
    }

    /// The state after these measurements, one each minute, at the time of the last.
    fn after(check: &Check, results: &[MeasurementResult]) -> Outcome {
        let mut known = CheckStatus::default();
        let mut now = Timestamp::UNIX_EPOCH;
        for (number, result) in results.iter().enumerate() {
            now += Duration::from_mins(1);
            let id = MeasurementId {
                policy_uid: "p".to_owned(),
                revision_hash: "h".to_owned(),
                stage: "canary".to_owned(),
                check: check.name.clone(),
                number: u32::try_from(number).expect("few"),
            };
            check.count(
                &mut known,
                &Measurement {
                    id,
                    time: now,
                    result: result.clone(),
                },
            );
        }
        check.outcome(&known, now)
    }

    #[test]
    fn l_31_limits_are_those_of_argo_rollouts() {
        let value = |value: f64| MeasurementResult::Value(json!(value));
        let (good, bad) = (value(0.0), value(1.0));
        let said = |verdict| MeasurementResult::Verdict(verdict, "so it is".to_owned());
        let unclear = said(Verdict::Inconclusive);
        let error = MeasurementResult::Error("refused".to_owned());
        let later = Outcome::Later(Duration::from_mins(1));
        let limits = check(3, [1, 1, 2]);
        assert_eq!(after(&limits, &[]), Outcome::Due, "the first at once");
        for (results, expected) in [
            (vec![&good, &good], later.clone()),
            (vec![&good, &good, &good], Outcome::Passed),
            (vec![&good, &bad, &good], Outcome::Passed),
            (vec![&error, &error, &good], later.clone()),
            (
                vec![&error, &error, &good, &error, &error, &good, &good],
                Outcome::Passed,
            ),
        ] {
            let results: Vec<_> = results.into_iter().cloned().collect();
            assert_eq!(after(&limits, &results), expected, "{results:?}");
        }
        let failed = after(&limits, &[bad.clone(), bad.clone()]);
        assert!(
            matches!(&failed, Outcome::Failed(why) if why.contains("failureLimit is 1") && why.contains("1.0")),
            "{failed:?}"
        );
        let held = after(&limits, &[unclear.clone(), unclear.clone()]);
        assert!(
            matches!(&held, Outcome::Held(why) if why.contains("inconclusiveLimit is 1")),
            "{held:?}"
        );
        // Errors never end: as soon as a call succeeds, the check goes on.
        let mut errors = vec![error.clone(); 3];
        let held = after(&limits, &errors);
        assert!(
            matches!(&held, Outcome::Errs(why, left) if why.contains("refused") && *left == limits.interval),
            "{held:?}"
        );
        errors.push(good.clone());
        assert_eq!(after(&limits, &errors), later);
        let failed = after(&limits, &[said(Verdict::Fail), said(Verdict::Fail)]);
        assert!(
            matches!(&failed, Outcome::Failed(why) if why.contains("so it is")),
            "{failed:?}"
        );
    }

    #[test]
    fn an_answer_of_a_webhook_is_good_if_there_is_no_condition() {
        let check = |provider| Check {
            provider,
            condition: None,
            ..check(1, [0, 0, 0])
        };
        let value = [MeasurementResult::Value(json!(null))];
        let webhook = check(Provider::Webhook { url: String::new() });
        assert_eq!(after(&webhook, &value), Outcome::Passed);
        let refused = [MeasurementResult::Error("500".to_owned())];
        assert!(matches!(after(&webhook, &refused), Outcome::Errs(..)));
        let grpc = check(Provider::Grpc {
            address: String::new(),
            tls: true,
        });
        assert!(
            matches!(after(&grpc, &value), Outcome::Errs(..)),
            "it gives verdicts only"
        );
    }

    #[test]
    fn a_value_that_the_condition_cannot_read_is_an_error_and_no_failure() {
        let limits = check(1, [0, 0, 0]);
        let text = MeasurementResult::Value(json!("many"));
        assert!(matches!(after(&limits, &[text]), Outcome::Errs(..)));
    }
}
