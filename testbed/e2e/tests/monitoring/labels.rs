//! Computes the labels in the result of a `PromQL` query, and checks that all series and labels in the query exist.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail, ensure};
use promql_parser::{
    label::{Labels, MatchOp},
    parser::{
        self, AggregateExpr, BinaryExpr, Call, Expr, LabelModifier, MatrixSelector, ParenExpr, SubqueryExpr,
        UnaryExpr, VectorMatchCardinality, VectorSelector, token,
    },
};

use crate::documented::Documented;

/// The labels of a result; a number has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Number,
    Vector(BTreeSet<String>),
}

impl Answer {
    pub(crate) fn has(&self, label: &str) -> bool {
        matches!(self, Self::Vector(labels) if labels.contains(label))
    }
}

/// Parses and checks a query.
pub(crate) fn check(question: &str, documented: &Documented) -> Result<Answer> {
    let expression = parser::parse(question).map_err(anyhow::Error::msg);
    expression
        .and_then(|expression| answer(&expression, documented))
        .with_context(|| format!("in {question}"))
}

fn answer(expression: &Expr, documented: &Documented) -> Result<Answer> {
    match expression {
        Expr::NumberLiteral(_) | Expr::StringLiteral(_) => Ok(Answer::Number),
        Expr::VectorSelector(selector) => selected(selector, documented).map(Answer::Vector),
        Expr::MatrixSelector(MatrixSelector { vs, .. }) => selected(vs, documented).map(Answer::Vector),
        Expr::Paren(ParenExpr { expr })
        | Expr::Unary(UnaryExpr { expr })
        | Expr::Subquery(SubqueryExpr { expr, .. }) => answer(expr, documented),
        Expr::Aggregate(aggregate) => aggregated(aggregate, documented).map(Answer::Vector),
        Expr::Call(call) => called(call, documented),
        Expr::Binary(binary) => combined(binary, documented),
        Expr::Extension(_) => bail!("what is this? {expression:?}"),
    }
}

fn selected(selector: &VectorSelector, documented: &Documented) -> Result<BTreeSet<String>> {
    let name = selector.name.as_deref().context("a selector without a name")?;
    let matchers = &selector.matchers.matchers;
    let job = matchers.iter().find(|matcher| matcher.name == "job");
    let jobs = job.map_or(Vec::new(), |job| job.value.split('|').collect());
    let is_pattern = |op: &MatchOp| matches!(op, MatchOp::Re(_));
    ensure!(
        jobs.len() < 2 || job.is_some_and(|job| is_pattern(&job.op)),
        "{name}: several jobs need =~"
    );
    let labels = documented.labels(name, &jobs)?;
    for matcher in matchers {
        ensure!(
            labels.contains(&matcher.name),
            "{name} has no label {}",
            matcher.name
        );
    }
    Ok(labels)
}

fn aggregated(aggregate: &AggregateExpr, documented: &Documented) -> Result<BTreeSet<String>> {
    let Answer::Vector(inner) = answer(&aggregate.expr, documented)? else {
        bail!("a number cannot be aggregated");
    };
    match &aggregate.modifier {
        None => Ok(BTreeSet::new()),
        Some(LabelModifier::Include(by)) => chosen(by, &inner),
        Some(LabelModifier::Exclude(without)) => {
            let without = chosen(without, &inner)?;
            Ok(&inner - &without)
        }
    }
}

fn called(call: &Call, documented: &Documented) -> Result<Answer> {
    let arguments = call.args.args.iter();
    let arguments = arguments
        .map(|argument| answer(argument, documented))
        .collect::<Result<Vec<_>>>()?;
    match call.func.name {
        "vector" => return Ok(Answer::Vector(BTreeSet::new())),
        "histogram_quantile" => {
            let Some(Answer::Vector(buckets)) = arguments.get(1) else {
                bail!("a quantile needs buckets");
            };
            let mut labels = buckets.clone();
            ensure!(labels.remove("le"), "a quantile needs label le");
            return Ok(Answer::Vector(labels));
        }
        _ => {}
    }
    let vector = arguments.into_iter().find(|argument| *argument != Answer::Number);
    Ok(vector.unwrap_or(Answer::Number))
}

fn combined(binary: &BinaryExpr, documented: &Documented) -> Result<Answer> {
    let left = answer(&binary.lhs, documented)?;
    let right = answer(&binary.rhs, documented)?;
    let (left, right) = match (left, right) {
        (Answer::Number, other) | (other, Answer::Number) => return Ok(other),
        (Answer::Vector(left), Answer::Vector(right)) => (left, right),
    };
    let modifier = binary.modifier.as_ref();
    let on = match modifier.and_then(|modifier| modifier.matching.as_ref()) {
        Some(LabelModifier::Include(on)) => {
            chosen(on, &right)?;
            Some(chosen(on, &left)?)
        }
        Some(LabelModifier::Exclude(_)) => bail!("ignoring is not used: say on which labels"),
        None => {
            ensure!(
                left == right || binary.op.id() == token::T_LOR,
                "the sides have the labels {left:?} and {right:?}, and never meet"
            );
            None
        }
    };
    Ok(Answer::Vector(match binary.op.id() {
        token::T_LAND | token::T_LUNLESS => left,
        token::T_LOR => &left & &right,
        _ => match modifier.map(|modifier| &modifier.card) {
            Some(VectorMatchCardinality::ManyToOne(_)) => left,
            Some(VectorMatchCardinality::OneToMany(_)) => right,
            _ => on.unwrap_or(left),
        },
    }))
}

/// The labels in a list, each of which must exist.
fn chosen(named: &Labels, there: &BTreeSet<String>) -> Result<BTreeSet<String>> {
    for label in &named.labels {
        ensure!(there.contains(label), "label {label} is not among {there:?}");
    }
    Ok(named.labels.iter().cloned().collect())
}

/// Mistakes are found; otherwise the other tests would prove nothing.
#[test]
fn missing_series_and_labels_are_found() -> Result<()> {
    let documented = Documented::read()?;
    for (question, found) in [
        ("nodewise_nothing", "no series nodewise_nothing"),
        ("nodewise_plans", "no series nodewise_plans"),
        (
            r#"nodewise_planning{job="nodewise-executor"}"#,
            "nodewise-executor has no series",
        ),
        (
            r#"nodewise_planning{job="nodewise"}"#,
            "no job is called nodewise",
        ),
        (r#"nodewise_plans_total{code="OK"}"#, "no label code"),
        ("sum by (node) (nodewise_plans_total)", "label node is not among"),
        (
            "histogram_quantile(0.5, nodewise_plan_actions_count)",
            "needs label le",
        ),
        ("nodewise_plans_total / nodewise_plan_errors_total", "never meet"),
        (
            "up unless on (namespace) nodewise_replicas",
            "label namespace is not among",
        ),
        ("sum(", "in sum("),
    ] {
        let error = check(question, &documented).err().context(question)?;
        ensure!(format!("{error:#}").contains(found), "{question}: {error:#}");
    }
    let fine =
        "histogram_quantile(0.9, sum by (le, verb) (rate(nodewise_api_call_duration_seconds_bucket[5m])))";
    let labels = BTreeSet::from(["verb".to_owned()]);
    assert_eq!(check(fine, &documented)?, Answer::Vector(labels));
    Ok(())
}
