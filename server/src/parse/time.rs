//! Moments and durations.

use std::time::Duration;

use jiff::Timestamp;

use super::{
    labels::Odd,
    problems::{Path, Problems},
};
use crate::warnings::OddReason;

/// 0001-01-01T00:00:00Z, the first moment that Protobuf knows.
const FIRST_SECOND: i64 = -62_135_596_800;
/// 9999-12-30T00:00:00Z. Protobuf knows one day more; that day is left as room for arithmetic in any time zone.
const LAST_SECOND: i64 = 253_402_128_000;
/// The last nanosecond of a second.
const LAST_NANO: i32 = 999_999_999;

/// A moment that is there.
pub(super) fn moment(
    value: nodewise_proto::Timestamp,
    at: &Path<'_>,
    problems: &mut Problems,
) -> Option<Timestamp> {
    if !(FIRST_SECOND..=LAST_SECOND).contains(&value.seconds) {
        problems.add(
            &at.field("seconds"),
            format!("{} is not in the years 1 to 9999", value.seconds),
        );
        return None;
    }
    if !(0..1_000_000_000).contains(&value.nanos) {
        problems.add(
            &at.field("nanos"),
            format!("{} is not in 0 to 999999999", value.nanos),
        );
        return None;
    }
    match Timestamp::new(value.seconds, value.nanos) {
        Ok(moment) => Some(moment),
        Err(error) => {
            problems.add(at, error.to_string());
            None
        }
    }
}

/// A moment that must be there.
pub(super) fn required(
    value: Option<nodewise_proto::Timestamp>,
    at: &Path<'_>,
    problems: &mut Problems,
) -> Option<Timestamp> {
    if value.is_none() {
        problems.add(at, "is required");
    }
    moment(value?, at, problems)
}

/// A moment of an object that others than the caller write: an object's status may name any moment. What is beyond those that
/// can be counted with is the nearest one of these.
pub(super) fn clamped(value: nodewise_proto::Timestamp, field: &str, odd: &mut Odd) -> Option<Timestamp> {
    let nodewise_proto::Timestamp { seconds, nanos } = value;
    let right = (
        seconds.clamp(FIRST_SECOND, LAST_SECOND),
        nanos.clamp(0, LAST_NANO),
    );
    let moment = Timestamp::new(right.0, right.1).ok()?;
    if right != (seconds, nanos) {
        let sentence = format!(
            "{field}: {seconds} s and {nanos} ns after 1970 is not in the years 1 to 9999; {moment} is used instead"
        );
        odd.push((OddReason::Time, sentence));
    }
    Some(moment)
}

/// A duration from zero to `most`.
pub(super) fn duration(
    value: Option<&nodewise_proto::Duration>,
    most: Duration,
    at: &Path<'_>,
    problems: &mut Problems,
) -> Option<Duration> {
    let Some(value) = value else {
        problems.add(at, "is required");
        return None;
    };
    let parsed = match (u64::try_from(value.seconds), u32::try_from(value.nanos)) {
        (Ok(seconds), Ok(nanos)) if nanos < 1_000_000_000 => Some(Duration::new(seconds, nanos)),
        _ => None,
    };
    match parsed {
        Some(duration) if duration <= most => Some(duration),
        _ => {
            problems.add(at, format!("is not in 0 s to {} s", most.as_secs()));
            None
        }
    }
}
