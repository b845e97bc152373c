//! What a section found: a table, what was to be reached, and what to draw.

use serde::{Deserialize, Serialize};

use crate::measure::Spread;

/// What one section found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// Heading.
    pub title: String,
    /// Markdown: what was measured, how, and over what.
    pub about: String,
    /// Heads of the columns.
    pub columns: Vec<String>,
    /// Rows, with a cell for each column.
    pub rows: Vec<Vec<String>>,
    /// What was to be reached.
    pub targets: Vec<Target>,
    /// What to draw.
    pub charts: Vec<Chart>,
}

/// Something that was to be reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// What: "5,000 nodes, from scratch, against upstream".
    pub what: String,
    /// How much: "at least 300 times faster".
    pub goal: String,
    /// What was measured: "940 times".
    pub measured: String,
    /// Whether that is enough.
    pub reached: bool,
}

impl Target {
    /// At least so much is to be reached.
    #[must_use]
    pub fn at_least(what: impl Into<String>, goal: f64, measured: f64, unit: &str) -> Self {
        Self::new(what.into(), "at least", goal, measured, unit, measured >= goal)
    }

    /// At most so much is to be taken.
    #[must_use]
    pub fn at_most(what: impl Into<String>, goal: f64, measured: f64, unit: &str) -> Self {
        Self::new(what.into(), "at most", goal, measured, unit, measured <= goal)
    }

    fn new(what: String, bound: &str, goal: f64, measured: f64, unit: &str, reached: bool) -> Self {
        let (goal, measured) = (figure(goal), figure(measured));
        Self {
            what,
            goal: format!("{bound} {goal} {unit}").trim_end().to_owned(),
            measured: format!("{measured} {unit}").trim_end().to_owned(),
            reached,
        }
    }
}

/// A picture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chart {
    /// Name of the file, without its ending.
    pub file: String,
    /// Heading.
    pub title: String,
    /// What the values are: "µs per plan, less is better".
    pub unit: String,
    /// Whether ten times as much is a step, as where values are of several orders of magnitude.
    pub logarithmic: bool,
    /// What is drawn.
    pub shape: Shape,
}

/// What is drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Bars in groups, each as long as its median, with a line from the least to the most.
    Bars(Vec<Bar>),
    /// A line for each series, of values over sizes, both in orders of magnitude.
    Lines {
        /// What the sizes are: "nodes".
        of: String,
        /// The lines.
        series: Vec<Series>,
    },
}

/// A bar.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bar {
    /// What it is about: "5,000 nodes".
    pub group: String,
    /// Whose it is: "upstream".
    pub who: String,
    /// How long it is.
    pub values: Spread,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// Whose it is.
    pub who: String,
    /// Sizes, and the values there.
    pub points: Vec<(f64, Spread)>,
}

/// A number as people read it: three digits that count, thousands apart.
#[must_use]
pub fn figure(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    #[expect(clippy::cast_possible_truncation, reason = "an exponent is small")]
    let digits = value.abs().log10().floor() as i32;
    let decimals = usize::try_from(2 - digits).unwrap_or_default();
    let text = format!("{value:.decimals$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let fraction = fraction.trim_end_matches('0');
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |whole| ("-", whole));
    let mut grouped = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{grouped}{point}{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_that_count() {
        for (value, expected) in [
            (0.0, "0"),
            (0.012_345, "0.0123"),
            (1.0, "1"),
            (1.25, "1.25"),
            (12.34, "12.3"),
            (999.6, "1,000"),
            (1_234.5, "1,234"),
            (1_234_567.0, "1,234,567"),
            (-5_000.0, "-5,000"),
            (20.0, "20"),
        ] {
            assert_eq!(figure(value), expected);
        }
    }

    #[test]
    fn what_is_reached_is_said() {
        assert!(Target::at_least("plans", 300.0, 300.0, "times").reached);
        assert!(!Target::at_least("plans", 300.0, 299.9, "times").reached);
        assert!(Target::at_most("calls", 10.0, 10.0, "ms").reached);
        let missed = Target::at_most("calls", 10.0, 10.1, "ms");
        assert_eq!(
            (missed.goal.as_str(), missed.measured.as_str(), missed.reached),
            ("at most 10 ms", "10.1 ms", false)
        );
    }
}
