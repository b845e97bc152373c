//! Explains why the workload may or may not run on a node. The rules are those of [`Eligibility::evaluate`].

use super::{
    Eligibility, Fit,
    affinity::{Expression, RequiredTerms},
    syntax::word,
};
use crate::core::snapshot::{NodeView, Taint, TaintEffect};

/// The most details of a node.
const DETAILS: usize = 16;
/// The most values of an expression that a message names.
const VALUES_IN_A_SENTENCE: usize = 3;
/// The most terms that a message names.
const TERMS_IN_A_SENTENCE: usize = 3;
/// The most taints that a message names. A node may have thousands.
const TAINTS_IN_A_SENTENCE: usize = 8;

/// The constraint that decides about a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Constraint {
    /// No constraint: all are met.
    Eligible,
    /// The template's nodeName.
    NodeName,
    /// The template's nodeSelector.
    NodeSelector,
    /// The template's required node affinity.
    NodeAffinity,
    /// A taint with effect `NoSchedule`, and all `NoExecute` taints are tolerated.
    TaintNoSchedule,
    /// A taint with effect `NoExecute`.
    TaintNoExecute,
}

/// A fit with its explanation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decision {
    /// The result; the same as that of [`Eligibility::evaluate`].
    pub(crate) fit: Fit,
    /// The constraint that decides.
    pub(crate) constraint: Constraint,
    /// One sentence for people that names the constraint.
    pub(crate) message: String,
    /// One sentence for each constraint with its result, at most [`DETAILS`] and one that counts the others.
    pub(crate) details: Vec<String>,
}

/// Collects the results of constraints in the order of D-8. The first constraint that fails decides.
#[derive(Default)]
struct Findings {
    decided: Option<(Constraint, String)>,
    details: Details,
}

impl Findings {
    fn fails(&mut self, constraint: Constraint, message: impl Fn() -> String) {
        self.details.note(false, &message);
        self.decided.get_or_insert_with(|| (constraint, message()));
    }

    fn holds(&mut self, detail: String) {
        self.details.note(true, || detail);
    }
}

/// The results of constraints, in order. Their number is limited: a template may have a thousand constraints, and each node has
/// such a list.
#[derive(Default)]
struct Details {
    /// Whether the constraint is met, and a sentence: at most [`DETAILS`] that are met, and as many that are not.
    kept: Vec<(bool, String)>,
    met: usize,
    failed: usize,
}

impl Details {
    fn note(&mut self, met: bool, sentence: impl FnOnce() -> String) {
        let count = if met { &mut self.met } else { &mut self.failed };
        *count += 1;
        if *count <= DETAILS {
            self.kept.push((met, sentence()));
        }
    }

    /// At most [`DETAILS`] sentences, in order, and one that counts the others. Constraints that are not met have precedence.
    fn into_sentences(self) -> Vec<String> {
        let more = (self.met + self.failed).saturating_sub(DETAILS);
        let mut room = DETAILS.saturating_sub(self.failed);
        let told = self.kept.into_iter().filter(|(met, _)| {
            let told = !met || room > 0;
            room -= usize::from(*met && told);
            told
        });
        let mut sentences: Vec<String> = told.map(|(_, sentence)| sentence).collect();
        if more > 0 {
            sentences.push(format!("and {more} more"));
        }
        sentences
    }
}

impl Eligibility {
    /// Like [`Self::evaluate`], with an explanation.
    pub(crate) fn decide(&self, node: NodeView<'_>) -> Decision {
        let mut findings = Findings::default();
        self.explain_node_name(node, &mut findings);
        self.explain_node_selector(node, &mut findings);
        self.explain_terms(node, &mut findings);
        self.explain_taints(node, &mut findings);
        if node.unschedulable() {
            findings.holds("spec.unschedulable plays no part: a cordon acts through its taint".to_owned());
        }
        if node.ready() == Some(false) {
            findings.holds("the node is not ready, which plays no part: only taints do".to_owned());
        }
        let eligible = || (Constraint::Eligible, "all constraints are met".to_owned());
        let (constraint, message) = findings.decided.unwrap_or_else(eligible);
        let fit = match constraint {
            Constraint::Eligible => Fit::RUN,
            Constraint::TaintNoSchedule => Fit::KEEP,
            _ => Fit::NEITHER,
        };
        Decision {
            fit,
            constraint,
            message,
            details: findings.details.into_sentences(),
        }
    }

    fn explain_node_name(&self, node: NodeView<'_>, findings: &mut Findings) {
        let wanted = &self.node_name;
        if self.is_elsewhere(node) {
            let message = match node.name() {
                "" => format!("the template's nodeName is {wanted}, and the node has no name"),
                name => format!("the template's nodeName is {wanted}, not {name}"),
            };
            findings.fails(Constraint::NodeName, || message.clone());
        } else if !wanted.is_empty() {
            findings.holds(format!("the template's nodeName is {wanted}"));
        }
    }

    fn explain_node_selector(&self, node: NodeView<'_>, findings: &mut Findings) {
        for (key, wanted) in &self.node_selector {
            let value = node.labels().get(key);
            let is_met = value == Some(wanted);
            let (name, wanted) = (word(key), word(wanted));
            if is_met {
                findings
                    .details
                    .note(true, || format!("nodeSelector {name}={wanted} is met"));
            } else {
                findings.fails(Constraint::NodeSelector, || {
                    format!(
                        "nodeSelector asks for {name}={wanted}, and {}",
                        has_label(node, key)
                    )
                });
            }
        }
    }

    fn explain_terms(&self, node: NodeView<'_>, findings: &mut Findings) {
        let Some(terms) = self.required_terms.as_ref().map(RequiredTerms::all) else {
            return;
        };
        if terms.is_empty() {
            let message = "the required node affinity has no terms, so that no node matches".to_owned();
            return findings.fails(Constraint::NodeAffinity, || message.clone());
        }
        let outcomes: Vec<Result<(), String>> = terms
            .iter()
            .map(|term| match term {
                Err(invalid) => Err(format!("it can never match: {invalid}")),
                Ok(expressions) => expressions
                    .iter()
                    .find(|expression| !expression.holds(node))
                    .map_or(Ok(()), |failed| Err(describe_failure(failed, node))),
            })
            .collect();
        for (index, outcome) in outcomes.iter().enumerate() {
            findings.details.note(outcome.is_ok(), || {
                let how = outcome.as_ref().err().map_or("matches", String::as_str);
                format!("required node affinity, term {}: {how}", index + 1)
            });
        }
        if outcomes.iter().all(Result::is_err) {
            let message = describe_terms(outcomes.into_iter().filter_map(Result::err).collect());
            findings
                .decided
                .get_or_insert((Constraint::NodeAffinity, message));
        }
    }

    fn explain_taints(&self, node: NodeView<'_>, findings: &mut Findings) {
        let mut untolerated = [Untolerated::default(), Untolerated::default()];
        for taint in node.taints() {
            let text = describe_taint(taint);
            let [no_execute, no_schedule] = &mut untolerated;
            let list = match taint.effect {
                TaintEffect::NoExecute => no_execute,
                TaintEffect::NoSchedule => no_schedule,
                TaintEffect::Other => {
                    findings.holds(format!(
                        "taint {text} plays no part: its effect is only a preference"
                    ));
                    continue;
                }
            };
            if self.tolerations.tolerate(taint) {
                findings.holds(format!("taint {text} is tolerated"));
            } else {
                findings
                    .details
                    .note(false, || format!("taint {text} is not tolerated"));
                list.add(text);
            }
        }
        // NoExecute first: such a taint also forbids existing pods to stay.
        for (constraint, taints) in [Constraint::TaintNoExecute, Constraint::TaintNoSchedule]
            .into_iter()
            .zip(untolerated)
        {
            if let Some(message) = taints.sentence() {
                findings.decided.get_or_insert((constraint, message));
            }
        }
    }
}

/// The taints of one effect that are not tolerated.
#[derive(Default)]
struct Untolerated {
    /// The first of them, as text.
    named: Vec<String>,
    more: usize,
}

impl Untolerated {
    fn add(&mut self, taint: String) {
        if self.named.len() < TAINTS_IN_A_SENTENCE {
            self.named.push(taint);
        } else {
            self.more += 1;
        }
    }

    fn sentence(&self) -> Option<String> {
        let more = match self.more {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        match self.named.as_slice() {
            [] => None,
            [one] => Some(format!("taint {one} is not tolerated")),
            many => Some(format!("taints {}{more} are not tolerated", many.join(", "))),
        }
    }
}

fn describe_terms(mut failures: Vec<String>) -> String {
    if failures.len() == 1 {
        return format!(
            "the required node affinity does not match: {}",
            failures.remove(0)
        );
    }
    let (count, rest) = (failures.len(), failures.len().saturating_sub(TERMS_IN_A_SENTENCE));
    failures.truncate(TERMS_IN_A_SENTENCE);
    let listed: Vec<_> = failures
        .iter()
        .enumerate()
        .map(|(index, why)| format!("term {}: {why}", index + 1))
        .collect();
    let more = if rest > 0 {
        format!("; and {rest} more")
    } else {
        String::new()
    };
    format!(
        "none of the {count} terms of the required node affinity matches: {}{more}",
        listed.join("; ")
    )
}

fn describe_failure(expression: &Expression, node: NodeView<'_>) -> String {
    let requirement = expression.requirement();
    let (key, operator) = (&requirement.key, &requirement.operator);
    let values = match requirement.values.as_slice() {
        [] => String::new(),
        [one] if matches!(operator.as_str(), "Gt" | "Lt") => format!(" {}", word(one)),
        values => {
            let more = values.len().saturating_sub(VALUES_IN_A_SENTENCE);
            let mut named: Vec<String> = values
                .iter()
                .take(VALUES_IN_A_SENTENCE)
                .map(|value| word(value).to_owned())
                .collect();
            if more > 0 {
                named.push(format!("and {more} more"));
            }
            format!(" [{}]", named.join(", "))
        }
    };
    let key = word(key);
    let found = if expression.reads_label() {
        has_label(node, &requirement.key)
    } else {
        match expression.value(node).unwrap_or_default() {
            "" => "it is empty".to_owned(),
            value => format!("it is {value}"),
        }
    };
    format!("it asks for {key} {operator}{values}, and {found}")
}

fn has_label(node: NodeView<'_>, key: &str) -> String {
    let value = node.labels().get(key);
    let key = word(key);
    match value {
        Some(value) => format!("the node has {key}={}", word(value)),
        None => format!("the node has no label {key}"),
    }
}

fn describe_taint(taint: &Taint) -> String {
    let equals = if taint.value.is_empty() { "" } else { "=" };
    let effect = match taint.effect {
        TaintEffect::NoSchedule => "NoSchedule",
        TaintEffect::NoExecute => "NoExecute",
        TaintEffect::Other => "PreferNoSchedule",
    };
    format!("{}{equals}{}:{effect}", taint.key, taint.value)
}
