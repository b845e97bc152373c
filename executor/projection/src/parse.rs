//! Deserializes the partial types of this crate from JSON text or from a JSON value. An error names the field.

use serde::Deserialize;
use serde::de::Deserializer;
use serde_json::Value;

use crate::error::ProjectError;

/// Deserializes a partial type from a JSON value. The error names the field that cannot be read.
pub(crate) fn parse<'a, T: Deserialize<'a>>(object: &'a Value) -> Result<T, ProjectError> {
    parse_from(object)
}

/// Deserializes a partial type from JSON text. The error names the field that cannot be read.
pub fn parse_text<'a, T: Deserialize<'a>>(object: &'a str) -> Result<T, ProjectError> {
    // Tracking the path takes time and errors are rare. So the path is tracked only in a second pass after an error.
    serde_json::from_str(object).or_else(|_| parse_from(&mut serde_json::Deserializer::from_str(object)))
}

pub(crate) fn parse_from<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    object: D,
) -> Result<T, ProjectError> {
    serde_path_to_error::deserialize(object).map_err(|error| ProjectError {
        path: error.path().to_string(),
        message: error.into_inner().to_string(),
    })
}
