//! The required node affinity of a template (D-9, D-11 to D-16), compiled.

use std::{cmp::Ordering, collections::BTreeSet};

use super::syntax::{self, word};
use crate::{
    core::snapshot::NodeView,
    daemonset::workload::{NodeSelectorRequirement, NodeSelectorTerm},
};

/// The only field that a term can test.
const NAME_FIELD: &str = "metadata.name";

/// The terms, ORed.
#[derive(Debug)]
pub(super) struct RequiredTerms {
    /// The node names of terms that only ask for a name. There may be one such term per node.
    names: BTreeSet<String>,
    /// All other valid terms.
    others: Vec<Vec<Expression>>,
    /// All terms, in the template's order, for explanations.
    all: Vec<Term>,
}

/// A compiled term: its expressions, or why it never matches.
pub(super) type Term = Result<Vec<Expression>, String>;

/// One expression or field of a term.
#[derive(Debug, Clone)]
pub(super) struct Expression {
    subject: Subject,
    test: Test,
    /// The requirement as served, for explanations.
    requirement: NodeSelectorRequirement,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Subject {
    Label,
    Name,
    /// A field that does not exist reads as the empty string.
    NoField,
}

#[derive(Debug, Clone)]
enum Test {
    /// Sorted.
    In(Vec<String>),
    /// Sorted.
    NotIn(Vec<String>),
    Exists,
    DoesNotExist,
    /// The required ordering of the label's value relative to the operand.
    Number(Ordering, i64),
}

impl RequiredTerms {
    pub(super) fn compile(terms: &[NodeSelectorTerm]) -> Self {
        let all: Vec<Term> = terms.iter().map(compile_term).collect();
        let mut names = BTreeSet::new();
        let mut others = Vec::new();
        for expressions in all.iter().flatten() {
            match expressions.as_slice() {
                [
                    Expression {
                        subject: Subject::Name,
                        test: Test::In(name),
                        ..
                    },
                ] => names.extend(name.iter().cloned()),
                _ => others.push(expressions.clone()),
            }
        }
        Self { names, others, all }
    }

    /// Whether a term only asks for this node's name.
    pub(super) fn name(&self, node: &str) -> bool {
        self.names.contains(node)
    }

    /// Whether a term only asks for a name.
    pub(super) fn has_names(&self) -> bool {
        !self.names.is_empty()
    }

    /// Whether one of the other terms matches.
    pub(super) fn match_otherwise(&self, node: NodeView<'_>) -> bool {
        self.others
            .iter()
            .any(|term| term.iter().all(|expression| expression.holds(node)))
    }

    /// Whether [`Self::match_otherwise`] also depends on the node's name.
    pub(super) fn mix_names_and_labels(&self) -> bool {
        self.others
            .iter()
            .flatten()
            .any(|expression| expression.subject == Subject::Name)
    }

    /// The label keys on which [`Self::match_otherwise`] depends.
    pub(super) fn label_keys(&self) -> impl Iterator<Item = &str> {
        let labels = self
            .others
            .iter()
            .flatten()
            .filter(|expression| expression.subject == Subject::Label);
        labels.map(|expression| expression.requirement.key.as_str())
    }

    /// All terms, in the template's order.
    pub(super) fn all(&self) -> &[Term] {
        &self.all
    }
}

impl Expression {
    pub(super) fn holds(&self, node: NodeView<'_>) -> bool {
        let value = self.value(node);
        match &self.test {
            Test::In(values) => value.is_some_and(|value| contains(values, value)),
            Test::NotIn(values) => value.is_none_or(|value| !contains(values, value)),
            Test::Exists => value.is_some(),
            Test::DoesNotExist => value.is_none(),
            Test::Number(wanted, operand) => {
                // Decimal with an optional sign (D-13), as `str::parse` accepts.
                value
                    .and_then(|value| value.parse::<i64>().ok())
                    .is_some_and(|value| value.cmp(operand) == *wanted)
            }
        }
    }

    /// The node's value that the expression tests; `None` if the node does not have the label.
    pub(super) fn value<'a>(&self, node: NodeView<'a>) -> Option<&'a str> {
        match self.subject {
            Subject::Label => node.labels().get(&self.requirement.key),
            Subject::Name => Some(node.name()),
            Subject::NoField => Some(""),
        }
    }

    /// Whether the expression tests a label, not a field.
    pub(super) fn reads_label(&self) -> bool {
        self.subject == Subject::Label
    }

    /// The requirement, as served.
    pub(super) fn requirement(&self) -> &NodeSelectorRequirement {
        &self.requirement
    }
}

fn contains(sorted: &[String], value: &str) -> bool {
    sorted
        .binary_search_by(|listed| listed.as_str().cmp(value))
        .is_ok()
}

fn compile_term(term: &NodeSelectorTerm) -> Term {
    if term.match_expressions.is_empty() && term.match_fields.is_empty() {
        return Err("it is empty".to_owned());
    }
    let expressions = term.match_expressions.iter().map(compile_expression);
    expressions
        .chain(term.match_fields.iter().map(compile_field))
        .collect()
}

/// Compiles an expression on labels. The error says why it is invalid (D-12, D-14).
fn compile_expression(requirement: &NodeSelectorRequirement) -> Result<Expression, String> {
    let NodeSelectorRequirement {
        key,
        operator,
        values,
    } = requirement;
    if !syntax::is_qualified_name(key) {
        return Err(format!("{:?} is not a label key", word(key)));
    }
    if let Some(value) = values.iter().find(|value| !syntax::is_label_value(value)) {
        return Err(format!("{:?} is not a label value", word(value)));
    }
    let count = |wanted: bool, what: &str| {
        let complaint = || {
            format!(
                "operator {operator} on {} needs {what}, not {}",
                word(key),
                values.len()
            )
        };
        if wanted { Ok(()) } else { Err(complaint()) }
    };
    let test = match operator.as_str() {
        "In" | "NotIn" => {
            count(!values.is_empty(), "at least one value")?;
            listing(operator, values)
        }
        "Exists" | "DoesNotExist" => {
            count(values.is_empty(), "no value")?;
            if operator == "Exists" {
                Test::Exists
            } else {
                Test::DoesNotExist
            }
        }
        "Gt" | "Lt" => {
            count(values.len() == 1, "exactly one value")?;
            let operand = values[0]
                .parse()
                .map_err(|_| format!("{:?} is not a number", word(&values[0])))?;
            Test::Number(
                if operator == "Gt" {
                    Ordering::Greater
                } else {
                    Ordering::Less
                },
                operand,
            )
        }
        _ => return Err(format!("operator {:?} is unknown", word(operator))),
    };
    Ok(Expression {
        subject: Subject::Label,
        test,
        requirement: requirement.clone(),
    })
}

/// Compiles an expression on fields. The error says why it is invalid (D-15).
fn compile_field(requirement: &NodeSelectorRequirement) -> Result<Expression, String> {
    let NodeSelectorRequirement {
        key,
        operator,
        values,
    } = requirement;
    if !matches!(operator.as_str(), "In" | "NotIn") {
        return Err(format!("operator {:?} is not for fields", word(operator)));
    }
    if values.len() != 1 {
        return Err(format!(
            "field {} needs exactly one value, not {}",
            word(key),
            values.len()
        ));
    }
    let subject = if key == NAME_FIELD {
        Subject::Name
    } else {
        Subject::NoField
    };
    Ok(Expression {
        subject,
        test: listing(operator, values),
        requirement: requirement.clone(),
    })
}

fn listing(operator: &str, values: &[String]) -> Test {
    let mut values = values.to_vec();
    values.sort_unstable();
    if operator == "In" {
        Test::In(values)
    } else {
        Test::NotIn(values)
    }
}
