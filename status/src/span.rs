//! Spans of time for people.

/// A number of seconds as kubectl shows ages: `42s`, `5m`, `3h`, `2d`. Negative ones are 0.
#[must_use]
pub fn span(seconds: i64) -> String {
    match seconds.max(0) {
        seconds @ 0..120 => format!("{seconds}s"),
        seconds @ 120..7_200 => format!("{}m", seconds / 60),
        seconds @ 7_200..172_800 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}
