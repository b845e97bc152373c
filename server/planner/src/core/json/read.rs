//! Parses any JSON into the canonical text, without building a tree.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::Number;

use super::{
    Json, append,
    part::{length, plain},
    write_string,
};

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut out = String::new();
        Writer(&mut out).deserialize(deserializer)?;
        Ok(Self::written(out))
    }
}

/// Appends a value to a text.
struct Writer<'a>(&'a mut String);

impl<'de> DeserializeSeed<'de> for Writer<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Writer<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON has")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        append(self.0, format_args!("{value}"));
        Ok(())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        append(self.0, format_args!("{value}"));
        Ok(())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        append(self.0, format_args!("{value}"));
        Ok(())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("a number that JSON has not"))?;
        append(self.0, format_args!("{number}"));
        Ok(())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        write_string(self.0, value);
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.0.push_str("null");
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        self.0.push('[');
        let begin = self.0.len();
        loop {
            let end = separate(self.0, begin);
            if list.next_element_seed(Writer(self.0))?.is_none() {
                self.0.truncate(end);
                break;
            }
        }
        self.0.push(']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        self.0.push('{');
        let begin = self.0.len();
        let mut begins = Vec::new();
        loop {
            let end = separate(self.0, begin);
            let at = u32::try_from(self.0.len() - begin).map_err(A::Error::custom)?;
            if members.next_key_seed(Key(self.0))?.is_none() {
                self.0.truncate(end);
                break;
            }
            begins.push(at);
            self.0.push(':');
            members.next_value_seed(Writer(self.0))?;
        }
        sort(self.0, begin, &begins);
        self.0.push('}');
        Ok(())
    }
}

/// Appends a comma if anything was written since `begin`. Returns the length before the comma, so that the caller can remove it.
fn separate(out: &mut String, begin: usize) -> usize {
    let end = out.len();
    if end > begin {
        out.push(',');
    }
    end
}

/// Appends a key to a text.
struct Key<'a>(&'a mut String);

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<(), E> {
        write_string(self.0, key);
        Ok(())
    }
}

/// Sorts the members written since `begin`. `begins` are their offsets from `begin`. Of members with the same key the last one
/// stays, as in JSON parsers that build a map.
fn sort(out: &mut String, begin: usize, begins: &[u32]) {
    let members = &out[begin..];
    let end = |index: usize| {
        begins
            .get(index + 1)
            .map_or(members.len(), |next| *next as usize - 1)
    };
    let member = |index: usize| &members[begins[index] as usize..end(index)];
    let key = |index: usize| plain(&member(index)[..length(member(index))]);
    if (0..begins.len()).is_sorted_by(|a, b| key(*a) < key(*b)) {
        return;
    }
    let mut order: Vec<usize> = (0..begins.len()).collect();
    order.sort_by(|a, b| key(*a).cmp(&key(*b)));
    let mut sorted = String::with_capacity(members.len());
    for (at, index) in order.iter().enumerate() {
        if order.get(at + 1).is_some_and(|next| key(*next) == key(*index)) {
            continue;
        }
        separate(&mut sorted, 0);
        sorted.push_str(member(*index));
    }
    out.truncate(begin);
    out.push_str(&sorted);
}

#[cfg(test)]
mod tests {
    use serde::de::value::{BytesDeserializer, Error, MapDeserializer};

    use super::*;

    // Deserializers of other formats may produce such values.
    #[test]
    fn values_and_keys_that_json_cannot_express_are_rejected() {
        let bytes = Json::deserialize(BytesDeserializer::<Error>::new(b"x"));
        assert_eq!(
            bytes.map_err(|error| error.to_string()).err().as_deref(),
            Some("invalid type: byte array, expected a value that JSON has")
        );
        let numbered = MapDeserializer::<_, Error>::new([(1_u8, true)].into_iter());
        assert_eq!(
            Json::deserialize(numbered)
                .map_err(|error| error.to_string())
                .err()
                .as_deref(),
            Some("invalid type: integer `1`, expected a key")
        );
    }
}
