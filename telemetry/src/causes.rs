//! Formats errors with their causes.

use std::error::Error;

/// Appends the causes of an error to a text, each after a colon. Causes that the text already contains are left out.
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
