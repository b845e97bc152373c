//! A time of the day such as `09:00`.

use std::{borrow::Cow, fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::schema;

/// A time of the day, to the minute, written as `HH:MM` from `00:00` to `23:59`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeOfDay {
    hour: u8,
    minute: u8,
}

/// Why a text is not a [`TimeOfDay`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{found}` is not a time of the day: write hours and minutes with two digits each, from `00:00` to `23:59`, such as `09:30`"
)]
pub struct ParseTimeOfDayError {
    found: String,
}

impl TimeOfDay {
    /// The hour, from 0 to 23.
    #[must_use]
    pub const fn hour(self) -> u8 {
        self.hour
    }

    /// The minute, from 0 to 59.
    #[must_use]
    pub const fn minute(self) -> u8 {
        self.minute
    }
}

impl FromStr for TimeOfDay {
    type Err = ParseTimeOfDayError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let two_digits = |part: &str, limit: u8| {
            let is_number = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
            part.parse().ok().filter(|number| is_number && *number < limit)
        };
        text.split_once(':')
            .and_then(|(hour, minute)| {
                let (hour, minute) = (two_digits(hour, 24)?, two_digits(minute, 60)?);
                Some(Self { hour, minute })
            })
            .ok_or_else(|| ParseTimeOfDayError {
                found: text.to_owned(),
            })
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:02}:{:02}", self.hour, self.minute)
    }
}

impl Serialize for TimeOfDay {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TimeOfDay {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

impl JsonSchema for TimeOfDay {
    fn schema_name() -> Cow<'static, str> {
        "TimeOfDay".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema::time_of_day()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written() {
        for (text, hour, minute) in [("00:00", 0, 0), ("09:05", 9, 5), ("23:59", 23, 59)] {
            let time: TimeOfDay = text.parse().expect(text);
            assert_eq!((time.hour(), time.minute()), (hour, minute));
            assert_eq!(time.to_string(), text);
        }
    }

    #[test]
    fn other_texts_are_refused_and_quoted() {
        for text in [
            "", ":", "9:00", "09:0", "24:00", "12:60", "0900", "09:00:00", "+9:00", "noon", "09:00 ",
        ] {
            let error = text.parse::<TimeOfDay>().expect_err(text).to_string();
            assert!(
                error.contains(&format!("`{text}`")) && error.contains("`23:59`"),
                "{error}"
            );
        }
    }
}
