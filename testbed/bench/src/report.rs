//! The finding of a section: a table, goals and charts.

use serde::{Deserialize, Serialize};

use crate::{figure::figure, measure::Spread};

/// The finding of one section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// The heading.
    pub title: String,
    /// Markdown: what was measured and how.
    pub about: String,
    /// The column headings.
    pub columns: Vec<String>,
    /// The rows, with one cell per column.
    pub rows: Vec<Vec<String>>,
    /// The goals.
    pub targets: Vec<Target>,
    /// The charts.
    pub charts: Vec<Chart>,
}

/// A goal and its measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The quantity: "5,000 nodes, from scratch, against upstream".
    pub what: String,
    /// The goal: "at least 300 times faster".
    pub goal: String,
    /// The measurement: "940 times".
    pub measured: String,
    /// Whether the goal was reached.
    pub reached: bool,
}

impl Target {
    /// A goal that is a lower bound.
    #[must_use]
    pub fn at_least(what: impl Into<String>, goal: f64, measured: f64, unit: &str) -> Self {
        Self::new(what.into(), "at least", goal, measured, unit, measured >= goal)
    }

    /// A goal that is an upper bound.
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

/// A chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chart {
    /// The file name without extension.
    pub file: String,
    /// The heading.
    pub title: String,
    /// The unit: "µs per plan, less is better".
    pub unit: String,
    /// Whether the scale is logarithmic.
    pub logarithmic: bool,
    /// The data.
    pub shape: Shape,
}

impl Chart {
    /// Bars of a unit of which less is better, on a linear scale.
    #[must_use]
    pub fn of_costs(file: &str, title: impl Into<String>, unit: &str, bars: Vec<Bar>) -> Self {
        Self {
            file: file.to_owned(),
            title: title.into(),
            unit: format!("{unit}, less is better"),
            logarithmic: false,
            shape: Shape::Bars(bars),
        }
    }
}

/// The data of a chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Grouped bars: the length is the median, a line goes from minimum to maximum.
    Bars(Vec<Bar>),
    /// A line for each series of values by size, both logarithmic.
    Lines {
        /// The unit of the sizes: "nodes".
        of: String,
        /// The series.
        series: Vec<Series>,
    },
}

/// A bar.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bar {
    /// The group: "5,000 nodes".
    pub group: String,
    /// The series: "upstream".
    pub who: String,
    /// The values.
    pub values: Spread,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// The name of the series.
    pub who: String,
    /// The sizes and their values.
    pub points: Vec<(f64, Spread)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_reached_or_missed() {
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
