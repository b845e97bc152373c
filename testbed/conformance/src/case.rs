//! What a case is, and all of them.

use futures::future::LocalBoxFuture;

use crate::{
    cases,
    scene::{Scene, Solo},
};

/// One thing that is held to the contract.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// Its name, for good: documents cite it.
    pub id: &'static str,
    /// What it checks, in one sentence.
    pub checks: &'static str,
    /// What it does.
    pub(crate) script: Script,
}

/// What a case does, and whether others may be there meanwhile.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Script {
    /// It shares an executor with others.
    Shared(for<'a> fn(&'a Scene) -> LocalBoxFuture<'a, anyhow::Result<()>>),
    /// It has the executor to itself.
    Solo(for<'a> fn(&'a mut Solo) -> LocalBoxFuture<'a, anyhow::Result<()>>),
}

/// A case that shares an executor with others.
macro_rules! shared {
    ($id:literal, $checks:literal, $script:path) => {
        $crate::case::Case {
            id: $id,
            checks: $checks,
            script: $crate::case::Script::Shared(|scene| Box::pin($script(scene))),
        }
    };
}

/// A case that has an executor to itself.
macro_rules! solo {
    ($id:literal, $checks:literal, $script:path) => {
        $crate::case::Case {
            id: $id,
            checks: $checks,
            script: $crate::case::Script::Solo(|solo| Box::pin($script(solo))),
        }
    };
}

pub(crate) use {shared, solo};

/// All cases, in the order in which they are told.
#[must_use]
pub fn all() -> Vec<Case> {
    cases::ALL.iter().copied().flatten().copied().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_kebab_case_and_there_is_one_of_each() {
        let cases = all();
        let ids: BTreeSet<_> = cases.iter().map(|case| case.id).collect();
        assert_eq!(ids.len(), cases.len());
        for case in &cases {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            // They are names of namespaces and values of labels.
            assert!(case.id.len() <= 63 && case.id.chars().all(plain), "{}", case.id);
            assert!(case.checks.ends_with('.'), "{}: {}", case.id, case.checks);
        }
    }
}
