//! A length of time such as `10m`.

use std::{borrow::Cow, fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::schema::{self, UNITS};

/// A length of time in whole seconds, written as `10m`, `1h30m` or `45s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(std::time::Duration);

/// Why a text is not a [`Duration`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{found}` is not a duration: write hours, minutes and seconds in this order, such as `10m`, `1h30m` or `45s`"
)]
pub struct ParseDurationError {
    found: String,
}

impl Duration {
    /// A duration of so many seconds.
    #[must_use]
    pub const fn from_secs(seconds: u64) -> Self {
        Self(std::time::Duration::from_secs(seconds))
    }

    /// The duration in seconds.
    #[must_use]
    pub const fn as_secs(self) -> u64 {
        self.0.as_secs()
    }
}

impl From<Duration> for std::time::Duration {
    fn from(duration: Duration) -> Self {
        duration.0
    }
}

impl FromStr for Duration {
    type Err = ParseDurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseDurationError {
            found: text.to_owned(),
        };
        let (mut rest, mut seconds) = (text, 0);
        for (letter, unit, max_digits) in UNITS {
            let Some((digits, after)) = rest.split_once(letter) else {
                continue;
            };
            if digits.len() > max_digits || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(error());
            }
            let number: u64 = digits.parse().map_err(|_| error())?;
            seconds += number * unit;
            rest = after;
        }
        if text.is_empty() || !rest.is_empty() {
            return Err(error());
        }
        Ok(Self::from_secs(seconds))
    }
}

/// Without units that are zero: `1h30m`.
impl fmt::Display for Duration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.as_secs();
        if rest == 0 {
            return formatter.write_str("0s");
        }
        for (letter, unit, _) in UNITS {
            if rest >= unit {
                write!(formatter, "{}{letter}", rest / unit)?;
            }
            rest %= unit;
        }
        Ok(())
    }
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

impl JsonSchema for Duration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema::duration()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written() {
        for (text, seconds, written) in [
            ("0s", 0, "0s"),
            ("0h", 0, "0s"),
            ("45s", 45, "45s"),
            ("90s", 90, "1m30s"),
            ("10m", 600, "10m"),
            ("1h30m", 5400, "1h30m"),
            ("1h5s", 3605, "1h5s"),
            ("48h", 172_800, "48h"),
            ("1h1m1s", 3661, "1h1m1s"),
            ("999999h", 3_599_996_400, "999999h"),
        ] {
            let duration: Duration = text.parse().expect(text);
            assert_eq!(duration, Duration::from_secs(seconds), "{text}");
            assert_eq!(duration.to_string(), written, "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused_and_quoted() {
        for text in [
            "", "10", "m", "10 m", "1.5h", "-5m", "+5m", "5m1h", "1h2h", "1d", "100ms", "1000000h", "10m ",
            "1h30",
        ] {
            let error = text.parse::<Duration>().expect_err(text).to_string();
            assert!(
                error.contains(&format!("`{text}`")) && error.contains("`1h30m`"),
                "{error}"
            );
        }
        let error = serde_json::from_str::<Duration>("10")
            .expect_err("a number")
            .to_string();
        assert!(error.contains("expected a string"), "{error}");
    }
}
