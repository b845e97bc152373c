//! A number of nodes, or a percentage of them.

use std::{borrow::Cow, fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::schema;

/// A number such as `5`, or a percentage from `0%` to `100%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntOrPercent {
    /// A number of nodes.
    Number(u32),
    /// A percentage, at most 100.
    Percent(u8),
}

/// Why a value is not an [`IntOrPercent`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{found} is neither a number nor a percentage: write a whole number of nodes such as `5`, or a percentage from `\"0%\"` to `\"100%\"`"
)]
pub struct ParseIntOrPercentError {
    found: String,
}

impl IntOrPercent {
    /// The number of nodes out of `total`. A part of a node counts as a whole one.
    #[must_use]
    pub fn rounded_up(self, total: u32) -> u32 {
        self.scaled(total, 99)
    }

    /// The number of nodes out of `total`. A part of a node does not count.
    #[must_use]
    pub fn rounded_down(self, total: u32) -> u32 {
        self.scaled(total, 0)
    }

    fn scaled(self, total: u32, add: u64) -> u32 {
        match self {
            Self::Number(number) => number,
            Self::Percent(percent) => {
                let scaled = (u64::from(total) * u64::from(percent) + add) / 100;
                u32::try_from(scaled).unwrap_or(u32::MAX)
            }
        }
    }
}

/// Reads a percentage. A number in quotes is refused, as Kubernetes does.
impl FromStr for IntOrPercent {
    type Err = ParseIntOrPercentError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let percent = text.strip_suffix('%').and_then(|digits| digits.parse().ok());
        percent
            .filter(|percent| *percent <= 100)
            .map(Self::Percent)
            // A sign or a leading zero would be lost.
            .filter(|read| read.to_string() == text)
            .ok_or_else(|| ParseIntOrPercentError {
                found: format!("`\"{text}\"`"),
            })
    }
}

impl fmt::Display for IntOrPercent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(formatter, "{number}"),
            Self::Percent(percent) => write!(formatter, "{percent}%"),
        }
    }
}

impl Serialize for IntOrPercent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_u32(*number),
            Self::Percent(_) => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for IntOrPercent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Visitor)
    }
}

struct Visitor;

fn not_a_count<E: de::Error>(found: impl fmt::Display) -> E {
    E::custom(ParseIntOrPercentError {
        found: format!("`{found}`"),
    })
}

impl de::Visitor<'_> for Visitor {
    type Value = IntOrPercent;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .write_str("a whole number of nodes such as `5`, or a percentage from `\"0%\"` to `\"100%\"`")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<IntOrPercent, E> {
        let number = i32::try_from(number).map_err(|_| not_a_count(number))?;
        Ok(IntOrPercent::Number(number.unsigned_abs()))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<IntOrPercent, E> {
        let positive = u64::try_from(number).map_err(|_| not_a_count(number))?;
        self.visit_u64(positive)
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<IntOrPercent, E> {
        Err(not_a_count(number))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<IntOrPercent, E> {
        text.parse().map_err(E::custom)
    }
}

impl JsonSchema for IntOrPercent {
    fn schema_name() -> Cow<'static, str> {
        "IntOrPercent".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema::int_or_percent(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_percentages_are_read_and_written() {
        for (json, expected) in [
            ("0", IntOrPercent::Number(0)),
            ("5", IntOrPercent::Number(5)),
            ("2147483647", IntOrPercent::Number(2_147_483_647)),
            ("\"0%\"", IntOrPercent::Percent(0)),
            ("\"10%\"", IntOrPercent::Percent(10)),
            ("\"100%\"", IntOrPercent::Percent(100)),
        ] {
            let read: IntOrPercent = serde_json::from_str(json).expect(json);
            assert_eq!(read, expected, "{json}");
            assert_eq!(serde_json::to_string(&read).expect(json), json);
        }
    }

    #[test]
    fn other_values_are_refused_and_quoted() {
        for (json, found) in [
            ("-1", "`-1`"),
            ("2147483648", "`2147483648`"),
            ("1.5", "`1.5`"),
            ("\"5\"", "`\"5\"`"),
            ("\"101%\"", "`\"101%\"`"),
            ("\"1000%\"", "`\"1000%\"`"),
            ("\"-1%\"", "`\"-1%\"`"),
            ("\"+1%\"", "`\"+1%\"`"),
            ("\"05%\"", "`\"05%\"`"),
            ("\"1.5%\"", "`\"1.5%\"`"),
            ("\"%\"", "`\"%\"`"),
            ("\"\"", "`\"\"`"),
            ("\"many\"", "`\"many\"`"),
            ("true", "`true`"),
        ] {
            let error = serde_json::from_str::<IntOrPercent>(json)
                .expect_err(json)
                .to_string();
            assert!(
                error.contains(found) && error.contains("`\"100%\"`"),
                "{json}: {error}"
            );
        }
    }

    #[test]
    fn percentages_are_rounded() {
        for (count, total, up, down) in [
            (IntOrPercent::Number(5), 3, 5, 5),
            (IntOrPercent::Percent(10), 100, 10, 10),
            (IntOrPercent::Percent(10), 101, 11, 10),
            (IntOrPercent::Percent(1), 3, 1, 0),
            (IntOrPercent::Percent(0), 50, 0, 0),
            (IntOrPercent::Percent(100), u32::MAX, u32::MAX, u32::MAX),
        ] {
            assert_eq!(
                (count.rounded_up(total), count.rounded_down(total)),
                (up, down),
                "{count} of {total}"
            );
        }
    }
}
