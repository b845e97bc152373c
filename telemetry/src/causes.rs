//! Errors with their causes, for people.

use std::error::Error;

/// A text about an error, and after it the causes of the error that it does not name yet.
#[must_use]
pub fn with_causes(mut text: String, error: &dyn Error) -> String {
    let mut cause = error.source();
    while let Some(error) = cause {
        let reason = error.to_string();
        if !text.contains(&reason) {
            text = format!("{text}: {reason}");
        }
        cause = error.source();
    }
    text
}
