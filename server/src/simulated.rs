//! The end of a play.

use nodewise_forecast::Forecast;
use nodewise_proto::v1;

/// A play that has ended.
#[derive(Debug)]
pub struct Simulated {
    /// How it ended.
    pub forecast: Forecast,
    /// Warnings about odd objects of the snapshot.
    pub warnings: Vec<v1::Warning>,
    /// The number of further warnings.
    pub more_warnings: u32,
}
