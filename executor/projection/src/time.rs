//! Conversion between the times of the apiserver and of the protocol.

use nodewise_proto::Timestamp;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use crate::protobuf::object;

/// A time as the API writes it (RFC 3339), clamped to the years that the protocol supports.
///
/// The apiserver accepts any year with any time zone and serves the time in UTC. The result may be the last day of 9999, a
/// year of five digits, or `-0001-12-31T00:01:00Z`; Protobuf clients can write even more distant times. If such a time were
/// an error, a client that may write the status of one node or pod could block the whole controller. So it is clamped to the
/// first or last supported time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Time(jiff::Timestamp);

/// 0001-01-01T00:00:00Z.
pub(crate) const FIRST_SECOND: i64 = -62_135_596_800;
/// 9999-12-30T00:00:00Z, the last time that the service accepts.
pub(crate) const LAST_SECOND: i64 = 253_402_128_000;

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse()
            .ok()
            .or_else(|| parse_out_of_range(&text))
            .map(|time: jiff::Timestamp| Self(clamp(time)))
            .ok_or_else(|| D::Error::custom(format!("not a time: {text:?}")))
    }
}

impl Time {
    /// Converts a time of Protobuf, which has no seconds if it is zero. JSON has null for that, and no fractions of a second.
    pub(crate) fn of(time: Option<object::Time>) -> Option<Self> {
        let seconds = time?.seconds.filter(|seconds| *seconds != FIRST_SECOND)?;
        let time = jiff::Timestamp::from_second(seconds.clamp(FIRST_SECOND, LAST_SECOND));
        time.ok().map(Self)
    }
}

/// Parses a time that [`jiff::Timestamp`] rejects: one whose year has a sign or more than four digits, or one so late in 9999
/// that its date differs between time zones.
fn parse_out_of_range(text: &str) -> Option<jiff::Timestamp> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (year, rest) = digits.split_at_checked(digits.find('-')?)?;
    let is_out_of_range = year.len() > 4 || year.len() == 4 && (negative || year == "9999");
    if !is_out_of_range || !year.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    // The rest must be valid in a leap year.
    format!("2000{rest}").parse::<jiff::Timestamp>().ok()?;
    Some(if negative {
        jiff::Timestamp::MIN
    } else {
        jiff::Timestamp::MAX
    })
}

fn clamp(time: jiff::Timestamp) -> jiff::Timestamp {
    let at = |second| jiff::Timestamp::from_second(second).unwrap_or(time);
    time.clamp(at(FIRST_SECOND), at(LAST_SECOND))
}

impl From<Time> for Timestamp {
    fn from(time: Time) -> Self {
        timestamp(time.0)
    }
}

/// Converts a time of the protocol. Returns `None` if it is out of range.
#[must_use]
pub fn moment(time: Timestamp) -> Option<jiff::Timestamp> {
    jiff::Timestamp::new(time.seconds, time.nanos).ok()
}

/// Converts a time to the protocol.
#[must_use]
pub fn timestamp(time: jiff::Timestamp) -> Timestamp {
    // Before 1970, jiff counts nanoseconds backward. Protobuf always counts them forward.
    let (seconds, nanos) = (time.as_second(), time.subsec_nanosecond());
    if nanos < 0 {
        Timestamp {
            seconds: seconds - 1,
            nanos: nanos + 1_000_000_000,
        }
    } else {
        Timestamp { seconds, nanos }
    }
}
