//! Reports with long lists.

use nodewise_proto::v1;
use prost::Message as _;

use super::{
    Make,
    fields::{field, many, words},
    states::{backoff, collision, create, delete, states},
};

/// A valid report with further encoded fields.
fn report_with(more: Vec<u8>) -> Vec<u8> {
    let mut report = v1::ReportRequest {
        workload: Some(v1::WorkloadReference {
            uid: "u".into(),
            ..Default::default()
        }),
        plan_id: "p".into(),
        ..Default::default()
    }
    .encode_to_vec();
    report.extend(more);
    report
}

fn outcomes(bytes: usize, result: v1::Result, subject: fn(String) -> v1::outcome::Subject) -> Vec<u8> {
    let mut data = Vec::new();
    for word in words() {
        let outcome = v1::Outcome {
            action_id: 1,
            result: result.into(),
            subject: Some(subject(word)),
            ..Default::default()
        };
        let next = field(4, &outcome.encode_to_vec());
        if data.len() + next.len() > bytes {
            break;
        }
        data.extend(next);
    }
    data
}

fn made(name: String) -> v1::outcome::Subject {
    v1::outcome::Subject::CreatedPod(v1::ExpectedCreate {
        pod_name: name.clone(),
        node_name: name,
    })
}

const GONE: fn(String) -> v1::outcome::Subject = v1::outcome::Subject::DeletedPodUid;

/// A report with a state of `bytes` bytes and these outcomes.
fn report_on(bytes: usize, state: fn(String) -> v1::ReconcileState, outcomes: Vec<u8>) -> Vec<u8> {
    report_with([field(3, &states(bytes, state)), outcomes].concat())
}

/// The large reports.
pub(super) const REPORTS: &[(&str, Make)] = &[
    ("outcomes", |bytes| report_with(many(4, &[], bytes))),
    ("bare-outcomes", |bytes| {
        report_with(many(4, &[8, 1, 16, 1], bytes))
    }),
    ("failed-outcomes", |bytes| {
        report_with(many(4, &[8, 1, 16, 6], bytes))
    }),
    ("few-outcomes", |bytes| {
        report_with(many(4, &[8, 1, 16, 6], bytes / 6))
    }),
    ("long-outcomes", |bytes| {
        report_with(many(4, &outcome(&"x".repeat(40)), bytes))
    }),
    ("messages", |bytes| {
        report_with(field(4, &field(3, &vec![b'x'; bytes])))
    }),
    ("creates", |bytes| {
        report_with(outcomes(bytes, v1::Result::NameTaken, made))
    }),
    ("deletes", |bytes| {
        report_with(outcomes(bytes, v1::Result::NotFound, GONE))
    }),
    ("expected-creates", |bytes| {
        report_on(
            bytes / 2,
            create,
            outcomes(bytes / 2, v1::Result::NameTaken, made),
        )
    }),
    ("expected-deletes", |bytes| {
        report_on(bytes / 2, delete, outcomes(bytes / 2, v1::Result::Failed, GONE))
    }),
    ("few-expected-creates", |bytes| {
        report_on(
            bytes / 8,
            create,
            outcomes(bytes / 8, v1::Result::NameTaken, made),
        )
    }),
    ("nameless-deletes", |bytes| {
        report_with(field(3, &field(1, &many(3, &[], bytes))))
    }),
    ("backoffs", |bytes| report_on(bytes, backoff, Vec::new())),
    ("collisions", |bytes| report_on(bytes, collision, Vec::new())),
    ("few-collisions", |bytes| {
        report_on(bytes / 8, collision, Vec::new())
    }),
    ("plan-error", |bytes| report_with(field(7, &vec![b'x'; bytes]))),
];

fn outcome(name: &str) -> Vec<u8> {
    v1::Outcome {
        action_id: 1,
        result: v1::Result::NameTaken.into(),
        subject: Some(made(name.to_owned())),
        ..Default::default()
    }
    .encode_to_vec()
}
