//! Label selectors, for two purposes: to find the workloads that an orphan may belong to, and to find the workloads that
//! the executor owns.
//!
//! The service decides which pods a workload claims. The executor uses selectors to decide which workloads to reconcile for
//! an orphan, which orphans to send, and whether a plan may adopt an orphan.

use std::collections::BTreeMap;

use nodewise_proto::v1::Label;
use serde::Deserialize;
use serde_json::Value;

/// A metav1 LabelSelector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// `None` if the selector is absent or invalid. Then it selects nothing.
    requirements: Option<Vec<Requirement>>,
}

/// A requirement on one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Requirement {
    key: String,
    operator: Operator,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    DoesNotExist,
    /// The label is a number greater than this. Only in selectors that are parsed from text.
    GreaterThan(i64),
    /// The label is a number less than this. Only in selectors that are parsed from text.
    LessThan(i64),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LabelSelector {
    match_labels: Option<BTreeMap<String, String>>,
    match_expressions: Option<Vec<Expression>>,
}

#[derive(Deserialize)]
struct Expression {
    key: String,
    operator: String,
    values: Option<Vec<String>>,
}

impl Selector {
    /// Creates a selector that requires all of these.
    pub(crate) fn new(requirements: Vec<Requirement>) -> Self {
        Self {
            requirements: Some(requirements),
        }
    }

    /// Reads a LabelSelector, such as `spec.selector`. If it is invalid, the result selects nothing.
    #[must_use]
    pub fn from_json(selector: &Value) -> Self {
        let Ok(Some(selector)) = Option::<LabelSelector>::deserialize(selector) else {
            return Self::default();
        };
        let labels = selector.match_labels.into_iter().flatten().map(|(key, value)| {
            Some(Requirement {
                key,
                operator: Operator::In(vec![value]),
            })
        });
        let expressions = selector
            .match_expressions
            .into_iter()
            .flatten()
            .map(Expression::requirement);
        Self {
            requirements: labels.chain(expressions).collect(),
        }
    }

    /// Whether an orphan with these labels triggers a reconcile of the workload (D-104). False for an absent, empty or
    /// invalid selector, and for an orphan without labels.
    #[must_use]
    pub fn matches(&self, labels: &[Label]) -> bool {
        !labels.is_empty() && self.matches_with_other_labels(labels)
    }

    /// Like [`Self::matches`], for an orphan that has other labels besides these.
    #[must_use]
    pub fn matches_with_other_labels(&self, labels: &[Label]) -> bool {
        let names_anything = self.requirements.as_ref().is_some_and(|all| !all.is_empty());
        names_anything && self.selects(labels)
    }

    /// Whether the service would select an object with these labels (D-22). Here the empty selector selects everything.
    #[must_use]
    pub fn selects(&self, labels: &[Label]) -> bool {
        self.requirements
            .as_ref()
            .is_some_and(|all| all.iter().all(|requirement| requirement.holds(labels)))
    }

    /// Whether it is neither absent nor invalid.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.requirements.is_some()
    }

    /// Whether a label can have each key and each value of the selector. The service refuses a selector of which one cannot.
    pub(crate) fn has_label_syntax(&self) -> bool {
        let all = self.requirements.iter().flatten();
        let values = |requirement: &Requirement| match &requirement.operator {
            Operator::In(values) | Operator::NotIn(values) => {
                values.iter().all(|value| is_label_value(value))
            }
            _ => true,
        };
        all.into_iter()
            .all(|requirement| is_label_key(&requirement.key) && values(requirement))
    }

    /// Returns the label keys that the selector reads.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        let all = self.requirements.iter().flatten();
        all.map(|requirement| requirement.key.as_str())
    }
}

/// A name, or a DNS-1123 subdomain, a slash and a name.
fn is_label_key(key: &str) -> bool {
    let (prefix, name) = key.split_once('/').unwrap_or(("a", key));
    let is_part = |part: &str| {
        let is_lower = part
            .bytes()
            .all(|byte| !byte.is_ascii_uppercase() && byte != b'_');
        !part.is_empty() && is_lower && is_label_value(part)
    };
    !name.is_empty() && is_label_value(name) && prefix.len() <= 253 && prefix.split('.').all(is_part)
}

/// Whether a label can have this value, which may also be a part of its key: at most 63 letters, digits, dashes, dots and
/// underscores, with a letter or digit at both ends. A value may be empty.
#[must_use]
pub fn is_label_value(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let ends = [text.bytes().next(), text.bytes().next_back()];
    text.len() <= 63 && text.bytes().all(is_inner) && ends.iter().flatten().all(u8::is_ascii_alphanumeric)
}

impl Expression {
    fn requirement(self) -> Option<Requirement> {
        let values = self.values.unwrap_or_default();
        let operator = match (self.operator.as_str(), values.is_empty()) {
            ("In", false) => Operator::In(values),
            ("NotIn", false) => Operator::NotIn(values),
            ("Exists", true) => Operator::Exists,
            ("DoesNotExist", true) => Operator::DoesNotExist,
            _ => return None,
        };
        Some(Requirement {
            key: self.key,
            operator,
        })
    }
}

impl Requirement {
    pub(crate) fn new(key: String, operator: Operator) -> Self {
        Self { key, operator }
    }

    fn holds(&self, labels: &[Label]) -> bool {
        let value = labels
            .iter()
            .find(|label| label.key == self.key)
            .map(|label| &label.value);
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.operator {
            Operator::In(values) => value.is_some_and(|value| values.contains(value)),
            Operator::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan(than) => number().is_some_and(|number| number > *than),
            Operator::LessThan(than) => number().is_some_and(|number| number < *than),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn labels(pairs: &[(&str, &str)]) -> Vec<Label> {
        pairs
            .iter()
            .map(|(key, value)| Label {
                key: (*key).into(),
                value: (*value).into(),
            })
            .collect()
    }

    // D-104, with the operators of D-22.
    #[test]
    fn matches_triggers_only_for_selected_orphans() {
        let expression = |operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": "tier", "operator": operator, "values": values}]});
        let a = labels(&[("app", "x"), ("tier", "a")]);
        let without = labels(&[("app", "x")]);
        for (selector, labels, expected) in [
            (json!({"matchLabels": {"app": "x"}}), &a, true),
            (json!({"matchLabels": {"app": "y"}}), &a, false),
            (json!({"matchLabels": {"app": "x", "tier": "b"}}), &a, false),
            (expression("In", &["a", "b"]), &a, true),
            (expression("In", &["b"]), &a, false),
            (expression("NotIn", &["a"]), &a, false),
            (expression("NotIn", &["a"]), &without, true),
            (expression("Exists", &[]), &a, true),
            (expression("Exists", &[]), &without, false),
            (expression("DoesNotExist", &[]), &without, true),
            (expression("DoesNotExist", &[]), &a, false),
            // Null, empty and invalid selectors match nothing.
            (json!(null), &a, false),
            (json!({}), &a, false),
            (expression("Exists", &["a"]), &a, false),
            (expression("In", &[]), &a, false),
            (expression("Like", &["a"]), &a, false),
            // Objects without labels match nothing.
            (expression("DoesNotExist", &[]), &Vec::new(), false),
        ] {
            assert_eq!(
                Selector::from_json(&selector).matches(labels),
                expected,
                "{selector}"
            );
        }
    }
    // D-22: the service may claim more than what triggers a reconcile: with the empty selector, and objects without labels.
    #[test]
    fn selects_what_the_service_may_claim() {
        let a = labels(&[("app", "x")]);
        let without_tier = json!({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]});
        for (selector, labels, expected) in [
            (json!({"matchLabels": {"app": "x"}}), &a, true),
            (json!({"matchLabels": {"app": "y"}}), &a, false),
            (without_tier.clone(), &a, true),
            (without_tier, &Vec::new(), true),
            (json!({}), &a, true),
            (json!({"matchLabels": {}}), &Vec::new(), true),
            (json!(null), &a, false),
            (json!(7), &a, false),
            (
                json!({"matchExpressions": [{"key": "app", "operator": "Like"}]}),
                &a,
                false,
            ),
        ] {
            assert_eq!(
                Selector::from_json(&selector).selects(labels),
                expected,
                "{selector}"
            );
        }
    }
}
