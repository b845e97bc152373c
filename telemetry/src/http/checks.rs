//! Named health checks, and the text of a probe's response.

use std::{
    collections::BTreeMap,
    fmt,
    fmt::Write as _,
    sync::{Arc, PoisonError, RwLock},
};

use axum::http::StatusCode;

type Check = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// Named health checks. A check returns Ok, or the reason why it fails. Clones share the checks.
#[derive(Clone, Default)]
pub struct Checks(Arc<RwLock<BTreeMap<String, Check>>>);

impl Checks {
    /// Without checks: every probe succeeds.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces the check with this name. The check runs at every probe and must not block.
    pub fn add(&self, name: &str, check: impl Fn() -> Result<(), String> + Send + Sync + 'static) {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(name.to_owned(), Arc::new(check));
    }

    /// Adds or replaces the check with this name by a fixed result.
    pub fn set(&self, name: &str, state: Result<(), String>) {
        self.add(name, move || state.clone());
    }

    /// Removes a check.
    pub fn remove(&self, name: &str) {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(name);
    }

    /// The names and reasons of all failing checks, sorted by name.
    #[must_use]
    pub fn failing(&self) -> Vec<(String, String)> {
        self.run()
            .into_iter()
            .filter_map(|(name, result)| result.err().map(|reason| (name, reason)))
            .collect()
    }

    /// The names and results of all checks, sorted by name.
    pub(super) fn run(&self) -> Vec<(String, Result<(), String>)> {
        // Run the checks without the lock, because a check may use these checks.
        let checks = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        checks.into_iter().map(|(name, check)| (name, check())).collect()
    }

    /// The result of the check with this name; `None` if there is none.
    pub(super) fn run_one(&self, name: &str) -> Option<Result<(), String>> {
        let checks = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let check = checks.get(name).cloned();
        drop(checks);
        check.map(|check| check())
    }
}

/// The response to a probe of all checks: `ok`, or one line per check if any check fails or `verbose` is set.
pub(super) fn answer(
    endpoint: &str,
    results: &[(String, Result<(), String>)],
    verbose: bool,
) -> (StatusCode, String) {
    let passed = results.iter().all(|(_, result)| result.is_ok());
    if passed && !verbose {
        return (StatusCode::OK, "ok".to_owned());
    }
    let mut text = String::new();
    if results.is_empty() {
        text.push_str("[+]ping ok\n");
    }
    for (name, result) in results {
        let _ = match result {
            Ok(()) => writeln!(text, "[+]{name} ok"),
            Err(reason) => writeln!(text, "[-]{name} failed: {reason}"),
        };
    }
    let (status, outcome) = if passed {
        (StatusCode::OK, "passed")
    } else {
        (StatusCode::INTERNAL_SERVER_ERROR, "failed")
    };
    let _ = writeln!(text, "{endpoint} check {outcome}");
    (status, text)
}

/// The response to a probe of one check.
pub(super) fn answer_one(name: &str, result: Option<Result<(), String>>) -> (StatusCode, String) {
    match result {
        Some(Ok(())) => (StatusCode::OK, "ok".to_owned()),
        Some(Err(reason)) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("{name} failed: {reason}\n"),
        ),
        None => (StatusCode::NOT_FOUND, format!("there is no check {name}\n")),
    }
}

impl fmt::Debug for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let checks = self.0.read().unwrap_or_else(PoisonError::into_inner);
        f.debug_list().entries(checks.keys()).finish()
    }
}
