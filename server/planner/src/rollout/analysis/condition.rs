//! A successCondition: an expression in CEL over `result`.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use cel::{
    Context, IdedExpr, Program, Value,
    common::ast::{EntryExpr, Expr},
};

/// The longest expression, in bytes.
const MOST_BYTES: usize = 1_024;
/// How deep brackets may be nested, and how many operators an expression may have. The library works through both by recursion, so
/// this bounds the stack that it takes.
const MOST_BRACKETS: usize = 16;
const MOST_OPERATORS: usize = 64;
/// How deep loops may be nested (`all`, `exists`, `map`, `filter`). Together with [`MOST_VALUES`] this bounds the time that an
/// expression takes: whoever writes the policy chooses it.
const MOST_LOOPS: usize = 2;
/// The most values in a result, counted through its lists and maps, and in one for two loops in each other.
const MOST_VALUES: usize = 1_000;
const MOST_VALUES_OF_TWO_LOOPS: usize = 100;

/// A successCondition that was parsed.
#[derive(Debug, Clone)]
pub struct Condition {
    text: Arc<str>,
    program: Arc<Program>,
    /// The most values in a result.
    most_values: usize,
}

impl PartialEq for Condition {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Condition {
    /// Parses an expression.
    ///
    /// # Errors
    /// What is wrong with the expression.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MOST_BYTES {
            return Err(format!(
                "has {} bytes; at most {MOST_BYTES} are taken",
                text.len()
            ));
        }
        check_shape(text)?;
        let parse = || Program::compile(text);
        let program = match catch_unwind(AssertUnwindSafe(parse)) {
            Ok(Ok(program)) => program,
            Ok(Err(errors)) => return Err(format!("is {text:?}, which is no CEL expression: {errors}")),
            Err(_) => return Err(format!("is {text:?}, which is no CEL expression")),
        };
        check_values(program.expression())?;
        let loops = loops(program.expression());
        if loops > MOST_LOOPS {
            return Err(format!(
                "has {loops} loops in each other; at most {MOST_LOOPS} are taken"
            ));
        }
        if loops > 0 && text.contains('+') {
            return Err(
                "adds with + in an expression with a loop, which may take any memory; compare without"
                    .to_owned(),
            );
        }
        Ok(Self {
            text: text.into(),
            program: Arc::new(program),
            most_values: if loops > 1 {
                MOST_VALUES_OF_TWO_LOOPS
            } else {
                MOST_VALUES
            },
        })
    }

    /// The expression.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether the condition holds for a result.
    ///
    /// # Errors
    /// Why it cannot be decided.
    pub(crate) fn holds(&self, result: &serde_json::Value) -> Result<bool, String> {
        let values = size(result);
        if values > self.most_values {
            return Err(format!(
                "the result has {values} values; at most {} are taken",
                self.most_values
            ));
        }
        let evaluate = || {
            let mut context = Context::default();
            context
                .add_variable("result", result)
                .map_err(|error| error.to_string())?;
            self.program.execute(&context).map_err(|error| error.to_string())
        };
        // The library must not end the server, whatever the expression is.
        let evaluated = catch_unwind(AssertUnwindSafe(evaluate))
            .unwrap_or_else(|_| Err("it cannot be evaluated".to_owned()));
        match evaluated {
            Ok(Value::Bool(holds)) => Ok(holds),
            Ok(other) => Err(format!("{} gives {other:?} and not true or false", self.text)),
            Err(error) => Err(format!("{}: {error}", self.text)),
        }
    }
}

/// Refuses an expression that is nested too deeply. Texts in it count as well, which does no harm.
fn check_shape(text: &str) -> Result<(), String> {
    let (mut depth, mut deepest) = (0_usize, 0);
    for letter in text.chars() {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    if deepest > MOST_BRACKETS {
        return Err(format!(
            "has {deepest} brackets in each other; at most {MOST_BRACKETS} are taken"
        ));
    }
    let operators = text
        .chars()
        .filter(|letter| "+-*/%&|?:!<>=.".contains(*letter))
        .count();
    if operators > MOST_OPERATORS {
        return Err(format!(
            "has {operators} operators; at most {MOST_OPERATORS} are taken"
        ));
    }
    Ok(())
}

/// How many values there are, through lists and maps.
fn size(value: &serde_json::Value) -> usize {
    match value {
        serde_json::Value::Array(items) => items.iter().map(size).sum::<usize>() + 1,
        serde_json::Value::Object(members) => members.values().map(size).sum::<usize>() + 1,
        _ => 1,
    }
}

/// Refuses lists and maps of computed values. With a loop they could double the memory that a value takes, again and again.
fn check_values(expression: &IdedExpr) -> Result<(), String> {
    let is_simple = |part: &IdedExpr| matches!(part.expr, Expr::Literal(_) | Expr::Ident(_));
    match &expression.expr {
        Expr::List(list) if list.elements.iter().all(is_simple) => Ok(()),
        Expr::List(_) => Err(
            "makes a list of computed values (as map does); at most constants may be in a list".to_owned(),
        ),
        Expr::Map(_) | Expr::Struct(_) => {
            Err("makes a map; only results and constants are compared".to_owned())
        }
        Expr::Call(call) => {
            let mut parts = call.target.as_deref().into_iter().chain(&call.args);
            parts.try_for_each(check_values)
        }
        Expr::Comprehension(inner) => [
            &inner.iter_range,
            &inner.accu_init,
            &inner.loop_cond,
            &inner.loop_step,
            &inner.result,
        ]
        .into_iter()
        .try_for_each(check_values),
        Expr::Select(select) => check_values(&select.operand),
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => Ok(()),
    }
}

/// How deep loops are nested.
fn loops(expression: &IdedExpr) -> usize {
    let deepest = |parts: &mut dyn Iterator<Item = &IdedExpr>| parts.map(loops).max().unwrap_or_default();
    let of_entries = |entries: &[cel::common::ast::IdedEntryExpr]| {
        let parts = entries.iter().flat_map(|entry| match &entry.expr {
            EntryExpr::StructField(field) => vec![&field.value],
            EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
        });
        parts.map(loops).max().unwrap_or_default()
    };
    match &expression.expr {
        Expr::Call(call) => deepest(&mut call.target.as_deref().into_iter().chain(&call.args)),
        Expr::Comprehension(inner) => {
            let body = [
                &inner.accu_init,
                &inner.loop_cond,
                &inner.loop_step,
                &inner.result,
            ];
            loops(&inner.iter_range).max(1 + deepest(&mut body.into_iter()))
        }
        Expr::List(list) => deepest(&mut list.elements.iter()),
        Expr::Map(map) => of_entries(&map.entries),
        Expr::Struct(object) => of_entries(&object.entries),
        Expr::Select(select) => loops(&select.operand),
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn conditions_over_numbers_lists_and_objects() {
        for (text, result, holds) in [
            ("result < 0.01", json!(0.005), true),
            ("result < 0.01", json!(0.01), false),
            ("result < 1", json!(0.5), true),
            ("result <= 1", json!(1), true),
            ("result.all(x, x < 0.5)", json!([0.1, 0.4]), true),
            ("result.all(x, x < 0.5)", json!([0.1, 0.6]), false),
            ("result[0] >= 2.0 && size(result) == 1", json!([2.0]), true),
            (
                "result.ok && result.errors == 0",
                json!({"ok": true, "errors": 0}),
                true,
            ),
            ("result.state == 'good'", json!({"state": "bad"}), false),
        ] {
            let condition = Condition::parse(text).expect(text);
            assert_eq!(condition.holds(&result), Ok(holds), "{text} of {result}");
        }
    }

    #[test]
    fn what_cannot_be_decided_is_an_error() {
        for (text, result) in [
            ("result < 0.01", json!("many")),
            ("result.missing > 1", json!({})),
            ("result + 1", json!(1)),
            ("other > 1", json!(1)),
            ("result > 1", json!(vec![0; MOST_VALUES])),
            ("1 / 0 > 1", json!(0)),
        ] {
            let condition = Condition::parse(text).expect(text);
            assert!(condition.holds(&result).is_err(), "{text} of {result}");
        }
    }

    #[test]
    fn an_expression_that_may_take_long_is_refused() {
        let nested = "result.all(a, result.all(b, result.all(c, a > b && b > c)))";
        assert!(
            Condition::parse(nested)
                .expect_err("three loops")
                .contains("3 loops")
        );
        let twice = Condition::parse("result.all(a, result.all(b, a >= b))").expect("two loops");
        assert_eq!(twice.holds(&json!([1, 1])), Ok(true));
        assert!(twice.holds(&json!(vec![0; MOST_VALUES_OF_TWO_LOOPS])).is_err());
        assert!(Condition::parse("result in [1, 2, 3] && result.filter(x, x > 1).size() == 2").is_ok());
        // Each of these doubles what it takes.
        let long = format!("['a']{}.exists(x, x < 'a')", ".map(x, x + x)".repeat(29));
        let lists = format!("[1]{}.exists(x, x < 1)", ".map(x, [x, x])".repeat(29));
        for bomb in [
            long.as_str(),
            &lists,
            "result.all(x, x + x + x > 1)",
            "{'a': result} == {'a': 1}",
        ] {
            assert!(Condition::parse(bomb).is_err(), "{bomb}");
        }
        for wrong in [
            "result <",
            "",
            &"(".repeat(500),
            &format!("result {}", "+ 1 ".repeat(500)),
        ] {
            assert!(Condition::parse(wrong).is_err(), "{wrong}");
        }
    }
}
