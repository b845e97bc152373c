//! The progress bar of a phase. It is written to standard error, if that is a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use nodewise_executor::{metrics::Metrics, sim::WorkloadCounts};

/// The number of redraws per second.
const RATE: u8 = 15;

/// The progress bar of a phase.
pub(super) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// `shown` is false for JSON output. `pods` is the end of the bar.
    pub(super) fn new(shown: bool, title: &str, pods: usize) -> Self {
        let target = if shown {
            ProgressDrawTarget::stderr_with_hz(RATE)
        } else {
            ProgressDrawTarget::hidden()
        };
        let style =
            ProgressStyle::with_template("· {prefix}\n  {bar:30.green/dim} {pos}/{len} updated; {msg}")
                .expect("the template is constant")
                .progress_chars("━╸─");
        let bar = ProgressBar::with_draw_target(Some(pods as u64), target)
            .with_style(style)
            .with_prefix(title.to_owned());
        Self { bar }
    }

    /// Shows the present numbers.
    pub(super) fn show(&self, counts: &WorkloadCounts, metrics: &Metrics) {
        self.bar.set_position(counts.updated as u64);
        self.bar.set_message(format!(
            "{} unavailable; {} plans",
            counts.nodes.saturating_sub(counts.available),
            metrics.plans()
        ));
    }

    /// Removes the bar.
    pub(super) fn finish(self) {
        self.bar.finish_and_clear();
    }
}
