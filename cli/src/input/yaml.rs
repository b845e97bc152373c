//! Converts YAML to JSON while parsing, so that objects have one parser and no tree of values is built in memory.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;
use serde_saphyr::Error;

/// The deepest nesting. Twice as deep as any API object; each level uses stack.
const DEPTH: usize = 64;
/// The number of merge keys (`<<`). Each may add all members of another mapping.
const MERGES: usize = 1_000;
/// The number of members of one mapping. Their keys are kept until its end, to find duplicates.
const MEMBERS: usize = 10_000;
/// The largest size of a text after its aliases are expanded, as a multiple of its own size.
const TIMES: usize = 2;
/// The size that a small text may always have.
const FEW: usize = 10_000;

/// The documents of a text as JSON. The size of the text is not limited; its size after expansion is limited relative to it.
pub(super) fn documents(text: &str) -> Result<Vec<Box<RawValue>>, Error> {
    let bound = TIMES * text.len() + FEW;
    let budget = serde_saphyr::budget! {
        max_events: usize::MAX,
        max_aliases: usize::MAX,
        max_anchors: usize::MAX,
        max_recorded_anchor_events: text.len() / 64 + FEW,
        max_recorded_anchor_bytes: bound,
        max_depth: DEPTH,
        max_documents: text.len() / 16 + FEW,
        max_nodes: bound,
        max_total_scalar_bytes: bound,
        max_merge_keys: MERGES,
        enforce_alias_anchor_ratio: false,
    };
    let options = serde_saphyr::options! { budget: budget, with_snippet: false, emit_comments: false };
    let documents: Vec<Document> = serde_saphyr::from_multiple_with_options(text, options)?;
    Ok(documents.into_iter().map(|document| document.0).collect())
}

/// A document as JSON.
struct Document(Box<RawValue>);

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut json = Vec::new();
        Rewrite(&mut json).deserialize(deserializer)?;
        let json = String::from_utf8(json).map_err(D::Error::custom)?;
        RawValue::from_string(json).map(Self).map_err(D::Error::custom)
    }
}

/// Appends a value as JSON.
struct Rewrite<'a>(&'a mut Vec<u8>);

impl Rewrite<'_> {
    fn write<E: serde::de::Error>(self, value: impl Serialize) -> Result<(), E> {
        serde_json::to_writer(self.0, &value).map_err(E::custom)
    }
}

impl<'de> DeserializeSeed<'de> for Rewrite<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Rewrite<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON has")
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<(), E> {
        self.write(value)
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<(), E> {
        self.write(value)
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<(), E> {
        self.write(value)
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<(), E> {
        self.write(value)
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<(), E> {
        self.write(value)
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.write(())
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<(), E> {
        self.write(())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        self.0.push(b'[');
        let begin = self.0.len();
        loop {
            let end = separate(self.0, begin);
            if list.next_element_seed(Rewrite(self.0))?.is_none() {
                self.0.truncate(end);
                break;
            }
        }
        self.0.push(b']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        self.0.push(b'{');
        let begin = self.0.len();
        for count in 0.. {
            // Keys are strings, also `y` and `1`.
            let Some(key) = members.next_key::<String>()? else {
                break;
            };
            if count == MEMBERS {
                return Err(A::Error::custom(format!(
                    "a mapping has more than {MEMBERS} members"
                )));
            }
            separate(self.0, begin);
            Rewrite(self.0).write(key)?;
            self.0.push(b':');
            members.next_value_seed(Rewrite(self.0))?;
        }
        self.0.push(b'}');
        Ok(())
    }
}

/// Appends a comma if there is an element since `begin`. Returns the length before that, to remove the comma if no element follows.
fn separate(json: &mut Vec<u8>, begin: usize) -> usize {
    let end = json.len();
    if end > begin {
        json.push(b',');
    }
    end
}

#[cfg(test)]
mod tests {
    use super::documents;

    #[test]
    fn yaml_is_rewritten_as_json() {
        let table = [
            ("a: b", r#"{"a":"b"}"#),
            (
                "- 1\n- -1\n- 1.5\n- true\n- ~\n- 'x'\n- \"\\u00e9\\n\"",
                r#"[1,-1,1.5,true,null,"x","é\n"]"#,
            ),
            ("[]", "[]"),
            ("{}", "{}"),
            ("[[], {}, [[1]]]", "[[],{},[[1]]]"),
            ("1: a\ntrue: b\n1.5: c", r#"{"1":"a","true":"b","1.5":"c"}"#),
            (
                "a: &a {x: 1}\nb: *a\nc: {<<: *a, y: 2}",
                r#"{"a":{"x":1},"b":{"x":1},"c":{"y":2,"x":1}}"#,
            ),
            ("a\n---\nb", r#""a" "b""#),
        ];
        for (yaml, json) in table {
            let found = documents(yaml).expect(yaml);
            let found: Vec<_> = found.iter().map(|document| document.get()).collect();
            assert_eq!(found.join(" "), json, "{yaml}");
        }
    }

    #[test]
    fn unbounded_expansion_is_an_error() {
        let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for (level, before) in (1..12).zip(0..) {
            let names = vec![format!("*a{before}"); 9].join(", ");
            laughs += &[
                "a",
                &level.to_string(),
                ": &a",
                &level.to_string(),
                " [",
                &names,
                "]\n",
            ]
            .concat();
        }
        let long = "x".repeat(100_000);
        let deep = "[".repeat(super::DEPTH + 1) + &"]".repeat(super::DEPTH + 1);
        let members: Vec<_> = (0..=super::MEMBERS).map(|key| format!("{key}: 0")).collect();
        let merges = "a: &a {b: c}\nd:\n".to_owned() + &"  <<: *a\n".repeat(super::MERGES + 1);
        let table = [
            ("laughs", laughs),
            ("echoes", format!("a: &a {long}\nb: [*a, *a, *a, *a]")),
            ("deep", deep),
            ("members", members.join("\n")),
            ("merges", merges),
            ("twice", "a: 1\na: 2".to_owned()),
            ("key", "{[a]: 1}".to_owned()),
        ];
        for (name, yaml) in table {
            assert!(documents(&yaml).is_err(), "{name}");
        }
    }
}
