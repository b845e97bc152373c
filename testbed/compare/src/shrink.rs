//! Makes a case smaller as long as it still shows the same: delta debugging over the case's JSON, whole objects first, then
//! their parts.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::case::Case;

/// How long to look for a smaller case.
const PATIENCE: Duration = Duration::from_mins(1);

/// Members without which an object is none that an apiserver would serve: what upstream makes of such is of no interest.
const NEEDED: [&str; 17] = [
    "seed",
    "object",
    "metadata",
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "spec",
    "selector",
    "template",
    "containers",
    "resources",
    "updateStrategy",
    "type",
    "revisionHistoryLimit",
];

/// The smallest case found for which `shows` is true, starting from one for which it is.
pub fn shrink(case: &Case, mut shows: impl FnMut(&Case) -> bool) -> Case {
    let Ok(mut smallest) = serde_json::to_value(case) else {
        return case.clone();
    };
    let end = Instant::now() + PATIENCE;
    loop {
        let before = smallest.clone();
        for depth in 1.. {
            // Backwards, so that what is removed does not move what comes after.
            let paths = paths(&smallest, depth);
            if paths.is_empty() || Instant::now() > end {
                break;
            }
            for path in paths.iter().rev() {
                let mut smaller = smallest.clone();
                if Instant::now() < end
                    && !matches!(path.last(), Some(Step::Member(name)) if NEEDED.contains(&name.as_str()))
                    && remove(&mut smaller, path)
                    && serde_json::from_value(smaller.clone()).is_ok_and(|case| shows(&case))
                {
                    smallest = smaller;
                }
            }
        }
        if smallest == before || Instant::now() > end {
            return serde_json::from_value(smallest).unwrap_or_else(|_| case.clone());
        }
    }
}

/// The path of every value so deep in `value`, as the steps that lead there.
fn paths(value: &Value, depth: usize) -> Vec<Vec<Step>> {
    if depth == 0 {
        return vec![Vec::new()];
    }
    let children: Vec<(Step, &Value)> = match value {
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(n, item)| (Step::Item(n), item))
            .collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, member)| (Step::Member(name.clone()), member))
            .collect(),
        _ => Vec::new(),
    };
    children
        .into_iter()
        .flat_map(|(step, child)| {
            paths(child, depth - 1).into_iter().map(move |mut path| {
                path.insert(0, step.clone());
                path
            })
        })
        .collect()
}

#[derive(Clone, Debug)]
enum Step {
    Item(usize),
    Member(String),
}

/// Removes the value at `path`; false when it is not there any more.
fn remove(value: &mut Value, path: &[Step]) -> bool {
    let Some((last, parents)) = path.split_last() else {
        return false;
    };
    let parent = parents.iter().try_fold(value, |value, step| match step {
        Step::Item(n) => value.get_mut(n),
        Step::Member(name) => value.get_mut(name),
    });
    // An apiserver leaves out what is empty, so the last of them goes with its list. The lists of the case itself may be.
    let fewest = if parents.len() > 1 { 2 } else { 1 };
    match (parent, last) {
        (Some(Value::Array(items)), Step::Item(n)) if *n < items.len() && items.len() >= fewest => {
            items.remove(*n);
            true
        }
        (Some(Value::Object(members)), Step::Member(name)) if members.len() >= fewest => {
            members.remove(name).is_some()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keeps_what_shows_it_and_nothing_else() {
        let case: Case = serde_json::from_value(json!({
            "now": "2026-01-01T00:00:00Z",
            "daemonSets": [{"metadata": {"name": "a", "annotations": {"x": "1", "y": "2"}}}],
            "nodes": [{"metadata": {"name": "n1"}}, {"metadata": {"name": "n2"}}, {"metadata": {"name": "n3"}}],
            "burst": 250,
            "echo": true,
        }))
        .expect("a case");
        let small = shrink(&case, |case| {
            case.nodes.iter().any(|node| node["metadata"]["name"] == "n2")
        });
        assert_eq!(small.nodes, [json!({"metadata": {"name": "n2"}})]);
        assert_eq!(small.daemon_sets, [] as [Value; 0]);
        assert_eq!(small.burst, 250, "what a case must have stays");
    }
}
