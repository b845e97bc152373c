//! The vectors of `proto/testdata/plans` and `reports`: questions as JSON, and what the service answers, for clients in every language.
//!
//! `NODEWISE_REGENERATE=1 cargo test -p nodewise-server --test vectors` writes them anew.

mod support;

use std::{collections::BTreeSet, fs, path::Path};

use nodewise_proto::v1;
use nodewise_server::{Refusal, never};
use serde::Serialize;
use serde_json::{Value, json};
use support::{engine, reports, requests};
use tonic::Status;
use tonic_types::StatusExt as _;

/// What a client learns of a refusal.
fn told(refusal: Refusal) -> Value {
    let status = Status::from(refusal);
    let violations = status
        .get_details_bad_request()
        .map(|details| details.field_violations);
    let fields: Vec<String> = violations
        .unwrap_or_default()
        .into_iter()
        .map(|violation| violation.field)
        .collect();
    json!({ "code": i32::from(status.code()), "fields": fields })
}

fn vector<Q: Serialize, A: Serialize>(
    name: &str,
    request: Q,
    answer: impl FnOnce(Q) -> Result<A, Refusal>,
) -> Value {
    let question = json(&request);
    let (key, answer) = match answer(request) {
        Ok(response) => ("response", json(&response)),
        Err(refusal) => ("refusal", told(refusal)),
    };
    json!({ "name": name, "request": question, key: answer })
}

fn json(message: &impl Serialize) -> Value {
    serde_json::to_value(message).expect("JSON")
}

/// Holds that a folder has the vectors of these questions and no others, or makes it so.
fn hold<Q: Serialize, A: Serialize>(
    folder: &str,
    questions: Vec<(&str, Q)>,
    answer: impl Fn(Q) -> Result<A, Refusal>,
) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../proto/testdata/{folder}"));
    let regenerate = std::env::var_os("NODEWISE_REGENERATE").is_some();
    let mut names = BTreeSet::new();
    for (name, question) in questions {
        let vector = vector(name, question, &answer);
        let path = folder.join(format!("{name}.json"));
        names.insert(path.clone());
        if regenerate {
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(&path, serde_json::to_string_pretty(&vector).expect("JSON") + "\n").expect("a file");
        }
        let text = fs::read_to_string(&path).expect("a vector of each request");
        assert_eq!(
            serde_json::from_str::<Value>(&text).expect("JSON"),
            vector,
            "{name}"
        );
    }
    let there = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("a file").path());
    assert_eq!(
        there.collect::<BTreeSet<_>>(),
        names,
        "vectors that nobody asks for"
    );
}

#[test]
fn plans_are_as_the_vectors_say() {
    hold("plans", requests(), |request| engine().plan(request, &never));
}

#[test]
fn reports_are_answered_as_the_vectors_say() {
    hold("reports", reports(), |report| engine().report(report, &never));
}

/// The JSON form says all that the binary form says.
#[test]
fn requests_come_back_from_json() {
    for (name, request) in requests() {
        let text = serde_json::to_string(&request).expect("JSON");
        assert_eq!(
            serde_json::from_str::<v1::PlanRequest>(&text).expect("JSON"),
            request,
            "{name}"
        );
    }
}
