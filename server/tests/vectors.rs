//! The vectors of `proto/testdata/plans`: questions as JSON, and what the service answers, for clients in every language.
//!
//! `NODEWISE_REGENERATE=1 cargo test -p nodewise-server --test vectors` writes them anew.

mod support;

use std::{collections::BTreeSet, fs, path::Path};

use nodewise_proto::v1;
use nodewise_server::{Refusal, never};
use serde_json::{Value, json};
use support::{engine, requests};
use tonic::Status;
use tonic_types::StatusExt as _;

fn answer(request: v1::PlanRequest) -> (&'static str, Value) {
    match engine().plan(request, &never) {
        Ok(response) => ("response", serde_json::to_value(response).expect("JSON")),
        Err(refusal) => ("refusal", told(refusal)),
    }
}

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

#[test]
fn the_service_answers_as_the_vectors_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../proto/testdata/plans");
    let regenerate = std::env::var_os("NODEWISE_REGENERATE").is_some();
    let mut names = BTreeSet::new();
    for (name, request) in requests() {
        let path = folder.join(format!("{name}.json"));
        names.insert(path.clone());
        let question = serde_json::to_value(&request).expect("JSON");
        let (key, answer) = answer(request);
        let vector = json!({ "name": name, "request": question, key: answer });
        if regenerate {
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
