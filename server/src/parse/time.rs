//! Parses timestamps and durations.

use std::time::Duration;

use jiff::Timestamp;

use super::{
    labels::Odd,
    problems::{Path, Problems},
};
use crate::warnings::OddReason;

/// 0001-01-01T00:00:00Z, the first valid timestamp of Protobuf.
const FIRST_SECOND: i64 = -62_135_596_800;
/// 9999-12-30T00:00:00Z. Protobuf allows almost two days more, but `jiff::Timestamp` ends 22 hours later.
const LAST_SECOND: i64 = 253_402_128_000;
/// The last nanosecond of a second.
const LAST_NANO: i32 = 999_999_999;

/// Reads a timestamp. One outside the years 1 to 9999 is a problem.
pub(super) fn timestamp(
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
        Ok(timestamp) => Some(timestamp),
        Err(error) => {
            problems.add(at, error.to_string());
            None
        }
    }
}

/// Reads a required timestamp.
pub(super) fn required(
    value: Option<nodewise_proto::Timestamp>,
    at: &Path<'_>,
    problems: &mut Problems,
) -> Option<Timestamp> {
    if value.is_none() {
        problems.add(at, "is required");
    }
    timestamp(value?, at, problems)
}

/// Reads a timestamp of an object that the caller does not write. A value outside the years 1 to 9999 becomes the nearest valid
/// one, with a warning.
pub(super) fn clamped(value: nodewise_proto::Timestamp, field: &str, odd: &mut Odd) -> Option<Timestamp> {
    let nodewise_proto::Timestamp { seconds, nanos } = value;
    let clamped = (
        seconds.clamp(FIRST_SECOND, LAST_SECOND),
        nanos.clamp(0, LAST_NANO),
    );
    let timestamp = Timestamp::new(clamped.0, clamped.1).ok()?;
    if clamped != (seconds, nanos) {
        let sentence = format!(
            "{field}: {seconds} s and {nanos} ns after 1970 is not in the years 1 to 9999; {timestamp} is used instead"
        );
        odd.push((OddReason::Time, sentence));
    }
    Some(timestamp)
}

/// Reads a required duration from zero to `most`.
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
