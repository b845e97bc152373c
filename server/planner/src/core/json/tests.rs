use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;

fn text(value: &Value) -> String {
    Json::from(value).as_str().to_owned()
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
    // D-58: parsing the text gives the same value, and every character that Go escapes is escaped.
    #[test]
    fn d_58_written_values_read_back_equal(value in any_json()) {
        let json = Json::from(&value);
        prop_assert_eq!(&json.to_value(), &value);
        let text = json.as_str();
        let raw = text.contains(|c: char| c < ' ' || "<>&\u{2028}\u{2029}".contains(c));
        prop_assert!(!raw, "{}", text);
    }

    // D-58: the order of the members does not change the bytes.
    #[test]
    fn d_58_member_order_does_not_matter(members in proptest::collection::btree_map(any::<String>(), any::<i64>(), 0..8)) {
        let ascending: Map<String, Value> = members.iter().map(|(k, v)| (k.clone(), (*v).into())).collect();
        let descending: Map<String, Value> = members.iter().rev().map(|(k, v)| (k.clone(), (*v).into())).collect();
        prop_assert_eq!(text(&Value::Object(ascending)), text(&Value::Object(descending)));
    }
}

/// Whether members and items are those of the tree.
fn same(part: Part<'_>, value: &Value) -> bool {
    let (members, items) = (value.as_object(), value.as_array());
    let members = members
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.as_str(), value));
    let items = items.into_iter().flatten();
    let (found, listed): (Vec<_>, Vec<_>) = (part.members().collect(), part.items().collect());
    (part.is_object(), part.is_list(), part.is_null())
        == (value.is_object(), value.is_array(), value.is_null())
        && (found.len(), listed.len()) == (members.clone().count(), items.clone().count())
        && found
            .iter()
            .zip(members)
            .all(|((key, part), (expected, value))| key == expected && same(*part, value))
        && listed.iter().zip(items).all(|(part, value)| same(*part, value))
        && serde_json::from_str::<Value>(part.text()).unwrap() == *value
}

proptest! {
    // Members and items read from the text are those of the tree.
    #[test]
    fn d_59_members_and_items_of_a_text_are_those_of_the_tree(value in any_json()) {
        prop_assert!(same(Json::from(&value).part(), &value));
    }
}

#[test]
fn texts_are_parsed_into_the_canonical_form() {
    let table = [
        (
            r#"{ "b" : 1 , "a" : [ 1.0 , -0 , 1e3 , "\u00e9\/" , {} ] }"#,
            r#"{"a":[1.0,-0.0,1000.0,"é/",{}],"b":1}"#,
        ),
        // The last member of a name wins.
        (r#"{"b":1,"a":2,"b":3,"\u0062":4}"#, r#"{"a":2,"b":4}"#),
        (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
        (
            r#"{"z":{"y":1,"x":2},"a":"}]\","}"#,
            r#"{"a":"}]\",","z":{"x":2,"y":1}}"#,
        ),
        // Keys are sorted before escaping: a backslash is greater than `<`.
        (r#"{"<":1,"=":2,"@":3}"#, r#"{"\u003c":1,"=":2,"@":3}"#),
        (r#"{"@":3,"=":2,"<":1}"#, r#"{"\u003c":1,"=":2,"@":3}"#),
    ];
    for (served, expected) in table {
        let json: Json = serde_json::from_str(served).unwrap();
        assert_eq!(json.as_str(), expected);
        assert_eq!(json, Json::from(json.to_value()), "{served}");
        assert_eq!(format!("{json:?}"), expected);
    }
    assert!(serde_json::from_str::<Json>(r#"{"a":}"#).is_err());
    let deep = "[".repeat(10_000);
    assert!(
        serde_json::from_str::<Json>(&deep).is_err(),
        "the stack has an end"
    );
    assert_eq!(Json::default().as_str(), "null");
    assert!(Json::from(json!({})).is_object() && !Json::from(json!([])).is_object());
}

#[test]
fn rewritten_objects_keep_the_order_of_keys() {
    let rewritten = |object: Value| {
        let mut out = String::new();
        let object = Json::from(object);
        rewrite(&mut out, object.part(), &["=", "b", "d"], |written, key, old| {
            match old {
                // Dropped.
                Some(old) if old.is_null() => {}
                Some(old) => written.member(key).push_str(&old.text().repeat(2)),
                None => written.member(key).push('0'),
            }
        });
        out
    };
    let table = [
        (json!({}), r#"{"=":0,"b":0,"d":0}"#),
        (json!([1]), r#"{"=":0,"b":0,"d":0}"#),
        (json!({"=": null, "b": null, "d": null}), "{}"),
        (
            json!({"<": 1, "a": 2, "b": 3, "c": 4, "e": 5}),
            r#"{"\u003c":1,"=":0,"a":2,"b":33,"c":4,"d":0,"e":5}"#,
        ),
        (json!({"=": 1, "d": 2}), r#"{"=":11,"b":0,"d":22}"#),
    ];
    for (object, expected) in table {
        assert_eq!(rewritten(object), expected);
    }
}

#[test]
fn members_are_found_by_their_keys() {
    let json = Json::from(json!({"a": {"b": "x<"}, "c\"": [], "n": null}));
    let part = json.part();
    assert_eq!(part.get("c\"").map(Part::text), Some("[]"));
    assert_eq!(part.get("b"), None);
    assert_eq!(
        part.object("a").get("b").map(Part::string_text),
        Some(r#""x\u003c""#)
    );
    assert_eq!((part.object("c\""), part.object("x")), (Part::EMPTY, Part::EMPTY));
    assert_eq!(part.object("n").string_text(), "\"\"");
}
