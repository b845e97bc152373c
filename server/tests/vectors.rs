//! The test vectors in `proto/testdata/plans` and `reports`, for clients in every language: requests as JSON with the response or
//! refusal of the service.
//!
//! `NODEWISE_REGENERATE=1 cargo test -p nodewise-server --test vectors` writes them again.

mod support;

use std::{collections::BTreeSet, fs, path::Path};

use nodewise_proto::v1;
use nodewise_server::{Refusal, never};
use serde::Serialize;
use serde_json::{Value, json};
use support::{engine, reports, requests};
use tonic::Status;
use tonic_types::StatusExt as _;

/// A refusal as in the vectors: its code and fields.
fn refusal_json(refusal: Refusal) -> Value {
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
        Err(refusal) => ("refusal", refusal_json(refusal)),
    };
    json!({ "name": name, "request": question, key: answer })
}

fn json(message: &impl Serialize) -> Value {
    serde_json::to_value(message).expect("JSON")
}

/// Checks that a folder has exactly the vectors of these requests, or writes them.
fn check<Q: Serialize, A: Serialize>(
    folder: &str,
    requests: Vec<(&str, Q)>,
    answer: impl Fn(Q) -> Result<A, Refusal>,
) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../proto/testdata/{folder}"));
    let regenerate = std::env::var_os("NODEWISE_REGENERATE").is_some();
    let mut names = BTreeSet::new();
    for (name, request) in requests {
        let vector = vector(name, request, &answer);
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
        "every vector belongs to a request"
    );
}

#[test]
fn plans_are_as_the_vectors_say() {
    check("plans", requests(), |request| engine().plan(request, &never));
}

#[test]
fn reports_are_answered_as_the_vectors_say() {
    check("reports", reports(), |report| engine().report(report, &never));
}

#[test]
fn requests_survive_a_round_trip_through_json() {
    for (name, request) in requests() {
        let text = serde_json::to_string(&request).expect("JSON");
        assert_eq!(
            serde_json::from_str::<v1::PlanRequest>(&text).expect("JSON"),
            request,
            "{name}"
        );
    }
}
