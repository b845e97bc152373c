//! Selects the DaemonSets that the executor owns, by a label selector in the syntax of `kubectl get --selector`, such as
//! `app=agent,tier in (a,b),!legacy`.
//!
//! It accepts and rejects the same texts as `labels.Parse` of Kubernetes.

use std::{fmt, str::FromStr};

use crate::selector::{Operator, Requirement, Selector};
use crate::workload::Workload;

/// The DaemonSets that the executor owns, by their labels. The default is all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnershipSelector {
    text: String,
    selector: Selector,
}

/// A label selector that cannot be parsed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "the label selector cannot be read: {0}. Write it as for kubectl --selector, for example 'app=agent,tier in (a,b),!legacy'"
)]
pub struct OwnershipSelectorError(String);

impl OwnershipSelector {
    /// Whether the executor owns this DaemonSet, by its current labels.
    #[must_use]
    pub fn owns(&self, workload: &Workload) -> bool {
        self.selector.selects(&workload.labels)
    }
}

impl Default for OwnershipSelector {
    fn default() -> Self {
        Self {
            text: String::new(),
            selector: Selector::new(Vec::new()),
        }
    }
}

/// The original text.
impl fmt::Display for OwnershipSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for OwnershipSelector {
    type Err = OwnershipSelectorError;

    /// Parses a selector. The empty text selects everything.
    fn from_str(text: &str) -> Result<Self, OwnershipSelectorError> {
        let requirements = Parser(text).requirements().map_err(OwnershipSelectorError)?;
        Ok(Self {
            text: text.to_owned(),
            selector: Selector::new(requirements),
        })
    }
}

/// A parser over the rest of the text. A token is an operator, a comma, a parenthesis or a word; the empty token is the end.
struct Parser<'a>(&'a str);

impl<'a> Parser<'a> {
    fn peek(&self) -> &'a str {
        let rest = self.0.trim_start();
        let length = match rest.find(|c: char| c.is_whitespace() || is_special(c)) {
            Some(0) if rest.starts_with("==") || rest.starts_with("!=") => 2,
            Some(0) => 1,
            Some(length) => length,
            None => rest.len(),
        };
        &rest[..length]
    }

    fn next(&mut self) -> &'a str {
        let token = self.peek();
        self.0 = &self.0.trim_start()[token.len()..];
        token
    }

    fn take(&mut self, token: &str) -> bool {
        let is_next = self.peek() == token;
        if is_next {
            self.next();
        }
        is_next
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        if self.take(token) {
            return Ok(());
        }
        Err(format!(
            "{} stands where {token:?} is expected",
            quoted(self.peek())
        ))
    }

    fn requirements(&mut self) -> Result<Vec<Requirement>, String> {
        let mut found = Vec::new();
        while !self.peek().is_empty() {
            found.push(self.requirement()?);
            if !self.peek().is_empty() {
                self.expect(",")?;
                if self.peek().is_empty() {
                    return Err("it ends with a comma".to_owned());
                }
            }
        }
        Ok(found)
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let is_absent = self.take("!");
        let key = self.key()?;
        if is_absent {
            return Ok(Requirement::new(key, Operator::DoesNotExist));
        }
        if ["", ","].contains(&self.peek()) {
            return Ok(Requirement::new(key, Operator::Exists));
        }
        let operator = match self.next() {
            "=" | "==" => Operator::In(vec![self.value()?]),
            "!=" => Operator::NotIn(vec![self.value()?]),
            "in" => Operator::In(self.values()?),
            "notin" => Operator::NotIn(self.values()?),
            ">" => Operator::GreaterThan(self.number()?),
            "<" => Operator::LessThan(self.number()?),
            other => {
                return Err(format!(
                    "{other:?} stands where an operator is expected: =, ==, !=, in, notin, > or <"
                ));
            }
        };
        Ok(Requirement::new(key, operator))
    }

    /// Reads a label key.
    fn key(&mut self) -> Result<String, String> {
        let key = self.word("the key of a label")?;
        let (prefix, name) = key
            .rsplit_once('/')
            .map_or((None, key), |(prefix, name)| (Some(prefix), name));
        if is_name(name) && prefix.is_none_or(is_subdomain) {
            return Ok(key.to_owned());
        }
        Err(format!(
            "{key:?} cannot be the key of a label: that is NAME or DNS-SUBDOMAIN/NAME"
        ))
    }

    /// Reads the values in parentheses. As in Kubernetes, an empty value is allowed between two commas or in `()`.
    fn values(&mut self) -> Result<Vec<String>, String> {
        self.expect("(")?;
        let mut values = vec![self.value()?];
        while self.take(",") {
            values.push(self.value()?);
        }
        self.expect(")")?;
        Ok(values)
    }

    /// Reads the next value, which may be empty.
    fn value(&mut self) -> Result<String, String> {
        if ["", ",", ")"].contains(&self.peek()) {
            return Ok(String::new());
        }
        let value = self.word("a value")?;
        if is_name(value) {
            return Ok(value.to_owned());
        }
        Err(format!(
            "{value:?} cannot be the value of a label: that has at most 63 letters, digits, '-', '_' and '.', and begins and \
             ends with a letter or a digit"
        ))
    }

    fn number(&mut self) -> Result<i64, String> {
        let value = self.value()?;
        value
            .parse()
            .map_err(|_| format!("> and < compare with a whole number, and {value:?} is none"))
    }

    fn word(&mut self, what: &str) -> Result<&'a str, String> {
        let token = self.next();
        if token.is_empty() {
            return Err(format!("it ends where {what} is expected"));
        }
        if token.starts_with(is_special) {
            return Err(format!("{token:?} stands where {what} is expected"));
        }
        Ok(token)
    }
}

fn is_special(c: char) -> bool {
    "=!<>(),".contains(c)
}

fn quoted(token: &str) -> String {
    if token.is_empty() {
        "the end".to_owned()
    } else {
        format!("{token:?}")
    }
}

/// Whether the text is a valid label value, or a label key without a prefix.
fn is_name(text: &str) -> bool {
    let is_end = |end: Option<char>| end.is_some_and(|c| c.is_ascii_alphanumeric());
    let is_inner = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    text.len() <= 63
        && text.chars().all(is_inner)
        && is_end(text.chars().next())
        && is_end(text.chars().next_back())
}

fn is_subdomain(text: &str) -> bool {
    let is_label = |label: &str| {
        let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !label.is_empty() && label.chars().all(is_inner) && !label.starts_with('-') && !label.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn labelled(labels: &[(&str, &str)]) -> Workload {
        let labels: serde_json::Map<_, _> = labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), json!(value)))
            .collect();
        let metadata = json!({"namespace": "ns", "name": "foo", "labels": labels});
        Workload::daemon_set_from_json(&json!({ "metadata": metadata })).expect("a DaemonSet")
    }

    #[test]
    fn accepts_the_syntax_of_kubectl() {
        let agent = labelled(&[("app", "agent"), ("tier", "a"), ("size", "12"), ("e.x/y", "")]);
        for (text, expected) in [
            ("", true),
            ("  ", true),
            ("app=agent", true),
            ("app == agent", true),
            ("app=other", false),
            ("app!=other", true),
            ("app!=agent", false),
            ("other!=agent", true),
            ("app in (x, agent)", true),
            ("app in (x)", false),
            ("app notin (x,y)", true),
            ("app notin (agent)", false),
            ("app", true),
            ("legacy", false),
            ("!legacy", true),
            ("! app", false),
            ("size>11", true),
            ("size > 12", false),
            ("size<13", true),
            ("tier<13", false),
            ("app=agent,tier in (a,b),!legacy", true),
            ("app=agent,tier in (b),!legacy", false),
            ("e.x/y=", true),
            ("e.x/y in ()", true),
            ("app in (,agent)", true),
            ("in=x", false),
        ] {
            let selection: OwnershipSelector = text.parse().expect(text);
            assert_eq!(selection.owns(&agent), expected, "{text}");
            assert_eq!(selection.to_string(), text);
        }
        assert!(OwnershipSelector::default().owns(&labelled(&[])));
    }

    #[test]
    fn errors_name_the_problem() {
        let long = "a".repeat(64);
        for (text, reason) in [
            ("app=agent,", "it ends with a comma"),
            (",app", "\",\" stands where the key of a label is expected"),
            ("!", "it ends where the key of a label is expected"),
            ("app agent", "\"agent\" stands where an operator is expected"),
            ("app=a b", "\"b\" stands where \",\" is expected"),
            ("app in a", "\"a\" stands where \"(\" is expected"),
            ("app in (a", "the end stands where \")\" is expected"),
            ("app=(a)", "\"(\" stands where a value is expected"),
            ("size>big", "\"big\" is none"),
            ("size>", "\"\" is none"),
            ("-app", "\"-app\" cannot be the key of a label"),
            ("UPPER/app", "cannot be the key of a label"),
            ("/app", "cannot be the key of a label"),
            ("app=a_", "\"a_\" cannot be the value of a label"),
            (&format!("app={long}"), "at most 63 letters"),
        ] {
            let error = text.parse::<OwnershipSelector>().expect_err(text).to_string();
            assert!(error.contains(reason), "{text}: {error}");
            assert!(error.contains("kubectl --selector"), "{error}");
        }
    }
}
