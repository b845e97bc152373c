//! Parses label selectors. Unlike node selectors, invalid ones are refused (D-22).

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use nodewise_planner::snapshot::{Selector, SelectorOperator, SelectorRequirement};

use crate::limits::Limits;

/// Reads a selector. An error begins with the path of the invalid field inside the selector.
pub(super) fn parse(selector: LabelSelector) -> Result<Selector, String> {
    for (field, count, most) in sizes(&selector) {
        if count > most {
            return Err(format!("{field}: has {count} entries; at most {most} are taken"));
        }
    }
    let match_labels = selector
        .match_labels
        .map(|labels| labels.into_iter().collect::<Vec<_>>());
    for (key, value) in match_labels.iter().flatten() {
        qualified_name(key).map_err(|error| format!("matchLabels: key `{key}` {error}"))?;
        label_value(value).map_err(|error| format!("matchLabels.{key}: `{value}` {error}"))?;
    }
    let match_expressions = selector
        .match_expressions
        .map(|requirements| {
            requirements
                .into_iter()
                .enumerate()
                .map(|(index, entry)| {
                    requirement(entry).map_err(|error| format!("matchExpressions[{index}].{error}"))
                })
                .collect()
        })
        .transpose()?;
    Ok(Selector {
        match_labels,
        match_expressions,
    })
}

/// The parts that the planner walks for every pod: field, size and maximum size.
fn sizes(selector: &LabelSelector) -> [(&'static str, usize, usize); 3] {
    let expressions = selector.match_expressions.as_deref().unwrap_or_default();
    let values = expressions
        .iter()
        .flat_map(|requirement| &requirement.values)
        .map(Vec::len);
    [
        (
            "matchLabels",
            selector.match_labels.as_ref().map_or(0, BTreeMap::len),
            Limits::LIST_ENTRIES,
        ),
        ("matchExpressions", expressions.len(), Limits::LIST_ENTRIES),
        ("matchExpressions", values.sum(), Limits::SELECTOR_VALUES),
    ]
}

fn requirement(requirement: LabelSelectorRequirement) -> Result<SelectorRequirement, String> {
    let LabelSelectorRequirement {
        key,
        operator,
        values,
    } = requirement;
    let values = values.unwrap_or_default();
    qualified_name(&key).map_err(|error| format!("key: `{key}` {error}"))?;
    for (index, value) in values.iter().enumerate() {
        label_value(value).map_err(|error| format!("values[{index}]: `{value}` {error}"))?;
    }
    let operator = match (operator.as_str(), values.is_empty()) {
        ("In", false) => SelectorOperator::In(values.into_iter().collect()),
        ("NotIn", false) => SelectorOperator::NotIn(values.into_iter().collect()),
        ("Exists", true) => SelectorOperator::Exists,
        ("DoesNotExist", true) => SelectorOperator::DoesNotExist,
        ("In" | "NotIn", true) => return Err(format!("values: operator {operator} needs at least one")),
        ("Exists" | "DoesNotExist", false) => return Err(format!("values: operator {operator} takes none")),
        _ => {
            return Err(format!(
                "operator: `{operator}` is none of In, NotIn, Exists and DoesNotExist"
            ));
        }
    };
    Ok(SelectorRequirement { key, operator })
}

/// Most characters of a label's name and of a label's value.
const NAME_LENGTH: usize = 63;
/// Most characters of a label key's prefix.
const PREFIX_LENGTH: usize = 253;

/// The form of a label key: an optional DNS subdomain and `/`, then a name.
fn qualified_name(key: &str) -> Result<(), &'static str> {
    let name = match key.split_once('/') {
        Some((prefix, _)) if !is_subdomain(prefix) => return Err("has a prefix that is no DNS subdomain"),
        Some((_, name)) => name,
        None => key,
    };
    if name.is_empty() || !is_name(name) {
        return Err("is no label key");
    }
    Ok(())
}

fn label_value(value: &str) -> Result<(), &'static str> {
    if value.is_empty() || is_name(value) {
        Ok(())
    } else {
        Err("is no label value")
    }
}

/// At most 63 letters, digits, `-`, `_` and `.`, beginning and ending with a letter or digit.
fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    bytes.len() <= NAME_LENGTH
        && ends(bytes.first())
        && ends(bytes.last())
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

fn is_subdomain(text: &str) -> bool {
    let part = |part: &str| {
        let bytes = part.as_bytes();
        let inner = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        bytes.first().is_some_and(inner)
            && bytes.last().is_some_and(inner)
            && bytes.iter().all(|byte| inner(byte) || *byte == b'-')
    };
    text.len() <= PREFIX_LENGTH && text.split('.').all(part)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(selector: serde_json::Value) -> Result<Selector, String> {
        parse(serde_json::from_value(selector).expect("the shape is right"))
    }

    #[test]
    fn d_22_a_selector_is_read_as_it_is() {
        assert_eq!(read(json!({})).unwrap(), Selector::default());
        // Q-17 depends on whether the field is absent or empty.
        assert_eq!(
            read(json!({"matchLabels": {}})).unwrap().match_labels,
            Some(vec![])
        );
        let selector = read(json!({
            "matchLabels": {"b": "", "a.example/x": "1"},
            "matchExpressions": [
                {"key": "k", "operator": "In", "values": ["v", ""]},
                {"key": "k", "operator": "NotIn", "values": ["v"]},
                {"key": "k", "operator": "Exists"},
                {"key": "k", "operator": "DoesNotExist", "values": []},
            ],
        }))
        .unwrap();
        assert_eq!(
            selector.match_labels,
            Some(vec![
                ("a.example/x".into(), "1".into()),
                ("b".into(), String::new())
            ])
        );
        let operators: Vec<_> = selector
            .match_expressions
            .unwrap()
            .into_iter()
            .map(|r| r.operator)
            .collect();
        assert_eq!(
            operators,
            [
                SelectorOperator::In(["v".into(), String::new()].into()),
                SelectorOperator::NotIn(["v".into()].into()),
                SelectorOperator::Exists,
                SelectorOperator::DoesNotExist
            ]
        );
    }

    #[test]
    fn d_22_the_error_of_an_invalid_selector_names_the_field() {
        let one = |key: &str, operator: &str, values: &[&str]| {
            json!({"matchExpressions": [
                {"key": "ok", "operator": "Exists"},
                {"key": key, "operator": operator, "values": values},
            ]})
        };
        let long = "x".repeat(64);
        let table = [
            (one("k", "Gt", &["1"]), "matchExpressions[1].operator: `Gt`"),
            (one("k", "in", &["1"]), "matchExpressions[1].operator: `in`"),
            (one("k", "", &[]), "matchExpressions[1].operator: ``"),
            (
                one("k", "In", &[]),
                "matchExpressions[1].values: operator In needs",
            ),
            (
                one("k", "Exists", &["v"]),
                "matchExpressions[1].values: operator Exists takes none",
            ),
            (one("", "Exists", &[]), "matchExpressions[1].key: ``"),
            (one("-k", "Exists", &[]), "matchExpressions[1].key: `-k`"),
            (one("a/b/c", "Exists", &[]), "matchExpressions[1].key: `a/b/c`"),
            (
                one("/k", "Exists", &[]),
                "matchExpressions[1].key: `/k` has a prefix",
            ),
            (
                one("A.b/k", "Exists", &[]),
                "matchExpressions[1].key: `A.b/k` has a prefix",
            ),
            (one(&long, "Exists", &[]), "matchExpressions[1].key: `xxx"),
            (
                one("k", "In", &["v", "a b"]),
                "matchExpressions[1].values[1]: `a b`",
            ),
            (json!({"matchLabels": {"k": "v_"}}), "matchLabels.k: `v_`"),
            (json!({"matchLabels": {"k ": "v"}}), "matchLabels: key `k `"),
        ];
        for (selector, error) in table {
            let text = selector.to_string();
            let found = read(selector).expect_err(&text);
            assert!(found.starts_with(error), "{text}: {found}");
        }
    }
}
