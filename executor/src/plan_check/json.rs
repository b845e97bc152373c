//! Parses the JSON in a plan. The executor sends that JSON to the apiserver unchanged, so all parsers must read it the
//! same way.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// Parses JSON; the error says what is wrong with it. Repeated keys are refused: parsers differ in which of the values
/// they use, so the checked value could differ from the stored one.
pub(super) fn parse(text: &[u8], what: &str) -> Result<Value, String> {
    let value = serde_json::from_slice(text).map_err(|_| format!("{what} is not JSON"))?;
    match repeated_key(text) {
        Some(key) => Err(format!("{what} has the key {key:?} twice in one object")),
        None => Ok(value),
    }
}

/// JSON that is parsed when it is first read.
pub(super) struct Lazy<'a> {
    text: &'a [u8],
    what: &'static str,
    parsed: OnceCell<Result<Value, String>>,
}

impl<'a> Lazy<'a> {
    pub(super) fn new(text: &'a [u8], what: &'static str) -> Self {
        Self {
            text,
            what,
            parsed: OnceCell::new(),
        }
    }

    pub(super) fn read(&self) -> Result<&Value, String> {
        let parsed = self.parsed.get_or_init(|| parse(self.text, self.what));
        parsed.as_ref().map_err(Clone::clone)
    }
}

/// Maximum bytes of an object or a patch that a plan writes: the limit of an apiserver. The executor may make a whole
/// burst of pods from one manifest.
const MAX_WRITTEN: usize = 3 << 20;

/// Parses JSON that will be written to the cluster.
pub(super) fn parse_written(text: &[u8], what: &str) -> Result<Value, String> {
    if text.len() > MAX_WRITTEN {
        let length = text.len();
        return Err(format!(
            "{what} has {length} bytes, and {MAX_WRITTEN} are the most"
        ));
    }
    parse(text, what)
}

/// The first repeated key of an object, at any depth.
fn repeated_key(text: &[u8]) -> Option<String> {
    let mut repeated = None;
    let walked = KeyVisitor(&mut repeated).deserialize(&mut serde_json::Deserializer::from_slice(text));
    debug_assert!(walked.is_ok(), "it was read before");
    repeated
}

/// Visits a value and records the first repeated key of an object.
struct KeyVisitor<'a>(&'a mut Option<String>);

impl<'de> DeserializeSeed<'de> for KeyVisitor<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for KeyVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = members.next_key::<String>()? {
            if self.0.is_none() && keys.contains(&key) {
                *self.0 = Some(key.clone());
            }
            keys.insert(key);
            members.next_value_seed(KeyVisitor(self.0))?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(KeyVisitor(self.0))?.is_some() {}
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_json_is_limited_in_size() {
        let text = |length: usize| format!("\"{}\"", "x".repeat(length - 2));
        assert!(parse_written(text(MAX_WRITTEN).as_bytes(), "its patch").is_ok());
        assert_eq!(
            parse_written(text(MAX_WRITTEN + 1).as_bytes(), "its patch"),
            Err("its patch has 3145729 bytes, and 3145728 are the most".to_owned())
        );
    }
}
