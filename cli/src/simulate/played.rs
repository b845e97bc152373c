//! The end of a play.

use nodewise_forecast::Forecast;
use nodewise_proto::v1;

/// The end of a play.
#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) forecast: Forecast,
    /// Warnings about objects of the cluster.
    pub(crate) warnings: Vec<v1::Warning>,
    pub(crate) more_warnings: u32,
}
