//! JSON as upstream writes it (chapter 9, D-58): the bytes decide whether upstream knows a revision again.
//!
//! Values are written here and not by serde_json because its member order depends on a feature that any crate of the
//! build may switch on, and because Go escapes more characters.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// Compact JSON with members sorted by the bytes of their keys and strings escaped as Go's encoder does.
pub(crate) fn to_bytes(value: &Value) -> Vec<u8> {
    let mut out = String::new();
    write_value(&mut out, value);
    out.into_bytes()
}

/// What a ControllerRevision of this template holds as `data`.
///
/// The template is taken as served, so that no field is lost. Only what the served shape is known to vary in is brought to
/// the shape that upstream writes: no `creationTimestamp: null`, and `metadata` and each container's `resources` are
/// objects even when empty.
pub(crate) fn revision_data(template: &Value) -> Value {
    let mut template = template.as_object().cloned().unwrap_or_default();
    match template.entry("metadata").or_insert(Value::Null) {
        Value::Object(metadata) if metadata.get("creationTimestamp").is_some_and(Value::is_null) => {
            metadata.remove("creationTimestamp");
        }
        Value::Object(_) => {}
        absent => *absent = Value::Object(Map::new()),
    }
    if let Some(Value::Object(spec)) = template.get_mut("spec") {
        complete_containers(spec);
    }
    template.insert("$patch".to_owned(), "replace".into());
    object("spec", object("template", Value::Object(template)))
}

fn complete_containers(spec: &mut Map<String, Value>) {
    for list in ["containers", "initContainers"] {
        let containers = spec
            .get_mut(list)
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten();
        for container in containers.filter_map(Value::as_object_mut) {
            container
                .entry("resources")
                .or_insert_with(|| Value::Object(Map::new()));
        }
    }
}

fn object(key: &str, value: Value) -> Value {
    Value::Object(Map::from_iter([(key.to_owned(), value)]))
}

fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => append(out, format_args!("{number}")),
        Value::String(string) => write_string(out, string),
        Value::Array(items) => write_list(out, ['[', ']'], items, write_value),
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by(|a, b| a.0.cmp(b.0));
            write_list(out, ['{', '}'], members, |out, (key, value)| {
                write_string(out, key);
                out.push(':');
                write_value(out, value);
            });
        }
    }
}

fn write_list<I: IntoIterator>(
    out: &mut String,
    [open, close]: [char; 2],
    items: I,
    write: impl Fn(&mut String, I::Item),
) {
    out.push(open);
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(out, item);
    }
    out.push(close);
}

fn write_string(out: &mut String, string: &str) {
    out.push('"');
    for character in string.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // The three that would matter inside HTML, and the two line ends of JavaScript.
            '\0'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                append(out, format_args!("\\u{:04x}", u32::from(character)));
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}

fn append(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = out.write_fmt(arguments);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn text(value: &Value) -> String {
        String::from_utf8(to_bytes(value)).unwrap()
    }

    #[test]
    fn d_58_the_example_of_the_serialization_is_reproduced_to_the_byte() {
        // Members deliberately out of order; the null timestamp is what an apiserver up to 1.33 serves.
        let template: Value = serde_json::from_str(
            r#"{"spec":{"terminationGracePeriodSeconds":30,"securityContext":{},"schedulerName":"default-scheduler",
                "restartPolicy":"Always","dnsPolicy":"ClusterFirst","containers":[{"name":"c","image":"img:1",
                "terminationMessagePolicy":"File","terminationMessagePath":"/dev/termination-log",
                "imagePullPolicy":"IfNotPresent"}]},
                "metadata":{"creationTimestamp":null,"labels":{"app":"x"},"annotations":{"html":"<a>&b"}}}"#,
        )
        .unwrap();
        let expected = r#"{"spec":{"template":{"$patch":"replace","metadata":{"annotations":{"html":"\u003ca\u003e\u0026b"},"labels":{"app":"x"}},"spec":{"containers":[{"image":"img:1","imagePullPolicy":"IfNotPresent","name":"c","resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst","restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},"terminationGracePeriodSeconds":30}}}}"#;
        assert_eq!(text(&revision_data(&template)), expected);
    }

    #[test]
    fn d_58_shapes_that_may_be_missing_are_completed_and_nothing_else_changes() {
        // (template, the data's template)
        let table = [
            (json!({}), r#"{"$patch":"replace","metadata":{}}"#),
            (json!(null), r#"{"$patch":"replace","metadata":{}}"#),
            (json!({"metadata": null}), r#"{"$patch":"replace","metadata":{}}"#),
            (
                json!({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}}),
                r#"{"$patch":"replace","metadata":{"creationTimestamp":"2026-01-01T00:00:00Z"}}"#,
            ),
            (
                json!({"spec": {"initContainers": [{"name": "i"}], "volumes": [{"emptyDir": {}, "name": "v"}]}}),
                r#"{"$patch":"replace","metadata":{},"spec":{"initContainers":[{"name":"i","resources":{}}],"volumes":[{"emptyDir":{},"name":"v"}]}}"#,
            ),
            (
                json!({"spec": {"containers": [{"resources": {"limits": {"cpu": "500m"}}}, "odd"], "newField": [3, 1]}}),
                r#"{"$patch":"replace","metadata":{},"spec":{"containers":[{"resources":{"limits":{"cpu":"500m"}}},"odd"],"newField":[3,1]}}"#,
            ),
        ];
        for (template, expected) in table {
            let expected = format!(r#"{{"spec":{{"template":{expected}}}}}"#);
            assert_eq!(text(&revision_data(&template)), expected, "{template}");
        }
    }

    #[test]
    fn d_58_strings_are_escaped_as_go_does() {
        let table = [
            ("\"\\/\u{7f}", "\"\\\"\\\\/\u{7f}\""),
            ("\u{8}\u{c}\n\r\t", r#""\b\f\n\r\t""#),
            ("\0\u{1}\u{1f}\u{b}", r#""\u0000\u0001\u001f\u000b""#),
            ("<>&", r#""\u003c\u003e\u0026""#),
            (
                "\u{2027}\u{2028}\u{2029}\u{202a}",
                "\"\u{2027}\\u2028\\u2029\u{202a}\"",
            ),
            ("é 日本 😀", "\"é 日本 😀\""),
        ];
        for (string, expected) in table {
            assert_eq!(text(&json!(string)), expected);
            assert_eq!(
                text(&json!({ string: 1 })),
                format!("{{{expected}:1}}"),
                "keys are strings too"
            );
        }
    }

    #[test]
    fn d_58_members_are_sorted_by_bytes_and_numbers_are_plain() {
        let value = json!({"b": [true, false, null], "B": i64::MIN, "a": u64::MAX, "$patch": -1, "é": 0, "": {}, "ab": []});
        assert_eq!(
            text(&value),
            r#"{"":{},"$patch":-1,"B":-9223372036854775808,"a":18446744073709551615,"ab":[],"b":[true,false,null],"é":0}"#
        );
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::vec((any::<String>(), inner), 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        // D-58: any reader gets the same value back, and no raw character is left that Go would have escaped.
        #[test]
        fn d_58_written_values_read_back_equal(value in any_json()) {
            let bytes = to_bytes(&value);
            prop_assert_eq!(serde_json::from_slice::<Value>(&bytes).unwrap(), value);
            let text = String::from_utf8(bytes).unwrap();
            let raw = text.contains(|c: char| c < ' ' || "<>&\u{2028}\u{2029}".contains(c));
            prop_assert!(!raw, "{}", text);
        }

        // D-58: members that arrive in another order give the same bytes.
        #[test]
        fn d_58_member_order_does_not_matter(members in proptest::collection::btree_map(any::<String>(), any::<i64>(), 0..8)) {
            let ascending: Map<String, Value> = members.iter().map(|(k, v)| (k.clone(), (*v).into())).collect();
            let descending: Map<String, Value> = members.iter().rev().map(|(k, v)| (k.clone(), (*v).into())).collect();
            prop_assert_eq!(to_bytes(&Value::Object(ascending)), to_bytes(&Value::Object(descending)));
        }
    }
}
