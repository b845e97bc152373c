//! Whether two pod templates are the same (P-16).
//!
//! Upstream compares decoded objects, in which an absent list or map equals an empty one, and an absent struct equals one without
//! content, unless the API has a pointer there. This module compares JSON, and knows where the API has no pointer.

use std::iter::Peekable;

use crate::core::{
    json::{Json, Part},
    quantity,
};

/// The label with the hash of the template, which is different in each ReplicaSet.
pub(crate) const HASH_LABEL: &str = "pod-template-hash";

/// Whether two templates are equal apart from the hash label.
pub(crate) fn equal(a: &Json, b: &Json) -> bool {
    a == b || equal_values(Some(a.part()), Some(b.part()), At::ROOT)
}

/// The place of a value in the template.
#[derive(Debug, Clone, Copy)]
struct At<'a> {
    /// The number of keys that lead to it.
    depth: usize,
    /// The last key; that of the list, for an item of a list.
    key: &'a str,
    /// The key before the last.
    parent: &'a str,
}

impl<'a> At<'a> {
    const ROOT: Self = Self {
        depth: 0,
        key: "",
        parent: "",
    };

    fn member(self, key: &'a str) -> Self {
        Self {
            depth: self.depth + 1,
            key,
            parent: self.key,
        }
    }

    /// Whether absence equals an empty object: the API has a map or a struct here, not a pointer to a struct.
    fn is_value(self) -> bool {
        match self.key {
            // The resources of the whole pod are a pointer; those of a container and of a volume are not.
            "resources" => self.depth != 2,
            "metadata" | "labels" | "annotations" | "spec" | "nodeSelector" | "overhead" | "limits"
            | "requests" | "matchLabels" | "volumeAttributes" | "options" | "preference"
            | "podAffinityTerm" => true,
            _ => self.depth == 0,
        }
    }

    fn is_quantity(self) -> bool {
        matches!(self.parent, "limits" | "requests" | "overhead")
            || (self.parent, self.key) == ("emptyDir", "sizeLimit")
            || self.is_divisor()
    }

    /// The only quantity that is no pointer.
    fn is_divisor(self) -> bool {
        (self.parent, self.key) == ("resourceFieldRef", "divisor")
    }

    fn is_hash_label(self) -> bool {
        self.depth == 3 && self.parent == "labels" && self.key == HASH_LABEL
    }
}

fn equal_values(a: Option<Part<'_>>, b: Option<Part<'_>>, at: At<'_>) -> bool {
    let is_there = |value: &Part<'_>| !value.is_null();
    match (a.filter(is_there), b.filter(is_there)) {
        (None, None) => true,
        (Some(a), Some(b)) => equal_present(a, b, at),
        (Some(value), None) | (None, Some(value)) => is_empty(value, at),
    }
}

/// Whether a value equals its absence.
fn is_empty(value: Part<'_>, at: At<'_>) -> bool {
    if value.is_list() {
        value.items().next().is_none()
    } else if value.is_object() {
        at.is_value() && equal_objects(value, Part::EMPTY, at)
    } else {
        at.is_divisor() && quantity::equal(bare(value), "0")
    }
}

fn equal_present(a: Part<'_>, b: Part<'_>, at: At<'_>) -> bool {
    if a == b {
        true
    } else if a.is_object() && b.is_object() {
        equal_objects(a, b, at)
    } else if a.is_list() && b.is_list() {
        // Items of a list are structs, which the API cannot leave out.
        let (mut a, mut b) = (a.items(), b.items());
        loop {
            match (a.next(), b.next()) {
                (None, None) => break true,
                (Some(a), Some(b)) if equal_values(Some(a), Some(b), at) => {}
                _ => break false,
            }
        }
    } else {
        at.is_quantity() && quantity::equal(bare(a), bare(b))
    }
}

fn equal_objects(a: Part<'_>, b: Part<'_>, at: At<'_>) -> bool {
    let (mut a, mut b) = (a.members().peekable(), b.members().peekable());
    while let Some(key) = least_key(&mut a, &mut b) {
        let (left, right) = (take(&mut a, &key), take(&mut b, &key));
        let at = at.member(&key);
        if !at.is_hash_label() && !equal_values(left, right, at) {
            return false;
        }
    }
    true
}

type Member<'a> = (std::borrow::Cow<'a, str>, Part<'a>);

/// The first key that is left in either object.
fn least_key<'a>(
    a: &mut Peekable<impl Iterator<Item = Member<'a>>>,
    b: &mut Peekable<impl Iterator<Item = Member<'a>>>,
) -> Option<String> {
    let keys = [a.peek(), b.peek()];
    keys.into_iter()
        .flatten()
        .map(|(key, _)| key.as_ref())
        .min()
        .map(str::to_owned)
}

fn take<'a>(members: &mut Peekable<impl Iterator<Item = Member<'a>>>, key: &str) -> Option<Part<'a>> {
    members.next_if(|(found, _)| found == key).map(|(_, value)| value)
}

/// The text of a number, or of a string without its quotes.
fn bare(value: Part<'_>) -> &str {
    value.text().trim_matches('"')
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The template with a change.
    fn with(change: impl FnOnce(&mut Value)) -> Json {
        let mut template = json!({
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "containers": [{"name": "c", "image": "i", "resources": {}}],
                "volumes": [{"name": "v", "emptyDir": {}}],
            },
        });
        change(&mut template);
        template.into()
    }

    fn set(path: &'static str, value: Value) -> Json {
        with(|template| match path.rsplit_once('/') {
            Some((parent, key)) => match template.pointer_mut(parent).expect("the parent is there") {
                Value::Object(members) => {
                    members.insert(key.to_owned(), value);
                }
                other => panic!("{path} is in {other}"),
            },
            None => *template = value,
        })
    }

    #[test]
    fn p_16_absence_equals_emptiness_where_the_api_has_no_pointer() {
        // (path, value, whether it equals absence)
        let table = [
            ("/metadata/labels/pod-template-hash", json!("x"), true),
            ("/metadata/labels/other", json!("x"), false),
            ("/metadata/labels/other", json!(""), false),
            ("/metadata/labels/divisor", json!("0"), false),
            ("/metadata/annotations", json!({}), true),
            ("/metadata/annotations", json!({"pod-template-hash": "x"}), false),
            ("/metadata/creationTimestamp", json!(null), true),
            ("/spec/nodeSelector", json!({}), true),
            ("/spec/nodeSelector", json!({"pod-template-hash": "x"}), false),
            ("/spec/nodeSelector", json!({"divisor": "0"}), false),
            ("/spec/tolerations", json!([]), true),
            ("/spec/tolerations", json!(null), true),
            ("/spec/tolerations", json!([{}]), false),
            ("/spec/securityContext", json!({}), false),
            ("/spec/affinity", json!({}), false),
            ("/spec/hostNetwork", json!(false), false),
            ("/spec/resources", json!({}), false),
            ("/spec/containers/0/resources", json!(null), true),
            (
                "/spec/containers/0/resources",
                json!({"limits": {}, "claims": []}),
                true,
            ),
            (
                "/spec/containers/0/resources",
                json!({"limits": {"cpu": "0"}}),
                false,
            ),
            ("/spec/containers/0/env", json!([]), true),
            ("/spec/containers/0/securityContext", json!({}), false),
            ("/spec/newField", json!([]), true),
            ("/spec/newField", json!({}), false),
            ("/spec/newField", json!(0), false),
        ];
        let plain = with(|_| ());
        for (path, value, expected) in table {
            let other = set(path, value.clone());
            assert_eq!(equal(&plain, &other), expected, "{path} {value}");
            assert_eq!(
                equal(&other, &plain),
                expected,
                "{path} {value}, the other way round"
            );
        }
        let without_volume = set("/spec/volumes", json!([{"name": "v"}]));
        assert!(!equal(&plain, &without_volume), "emptyDir is a pointer");
    }

    #[test]
    fn p_16_quantities_and_lists() {
        let limit = |value: Value| set("/spec/containers/0/resources", json!({"limits": {"cpu": value}}));
        assert!(equal(&limit(json!("1")), &limit(json!("1000m"))));
        assert!(equal(&limit(json!(1)), &limit(json!("1"))));
        assert!(!equal(&limit(json!("1")), &limit(json!("2"))));
        // PS-67: other text is compared as it is, and the order of a list matters.
        let label = |value: &str| set("/metadata/labels/sizeLimit", json!(value));
        assert!(!equal(&label("1"), &label("1000m")));
        let args = |list: Value| set("/spec/containers/0/args", list);
        assert!(!equal(&args(json!(["1"])), &args(json!(["1000m"]))));
        assert!(!equal(&args(json!(["a", "b"])), &args(json!(["b", "a"]))));
        assert!(!equal(&args(json!(["a", "b"])), &args(json!(["a"]))));
        // Values of different kinds differ, even if both have no content.
        let kinds = [json!([]), json!({}), json!("x"), json!(1)];
        for (index, a) in kinds.iter().enumerate() {
            for b in &kinds[index + 1..] {
                let (left, right) = (args(a.clone()), args(b.clone()));
                assert!(!equal(&left, &right), "{a} and {b}");
                assert!(!equal(&right, &left), "{b} and {a}");
            }
        }
        let divisor = |value: Value| {
            set(
                "/spec/containers/0/env",
                json!([{"name": "e", "valueFrom": {"resourceFieldRef": {"resource": "r", "divisor": value}}}]),
            )
        };
        assert!(equal(&divisor(json!("0")), &divisor(Value::Null)));
        assert!(!equal(&divisor(json!("1")), &divisor(Value::Null)));
        // PS-66: only the labels of the template are without the hash.
        let hash = |value: &str| set("/metadata/labels/pod-template-hash", json!(value));
        assert!(equal(&hash("a"), &hash("b")));
        // Anything is compared without a panic.
        let odd = [
            json!(null),
            json!([]),
            json!({}),
            json!("x"),
            json!({"metadata": [], "spec": 1}),
        ];
        for (a, b) in odd.iter().zip(odd.iter().rev()) {
            equal(&a.into(), &b.into());
        }
        assert!(equal(&json!(null).into(), &json!({}).into()));
    }
}
