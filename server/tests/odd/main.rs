//! Odd objects do not prevent plans. Others than the caller write the objects of a cluster: a kubelet writes its node, a tenant
//! creates pods and revisions. Only errors of the caller, or of a workload's owner for that workload, are refused.
//! `docs/security.md` has the table of limits and who can reach them.

#[path = "../support/mod.rs"]
mod support;

mod nodes;
mod owners;
mod pods;
mod policies;
mod reduced;
mod revisions;

use nodewise_proto::v1;
use nodewise_server::{ByteSize, Engine, Limits, decode, never};
use prost::Message as _;
use support::Cluster;

/// Decodes a request as the service does, with the size estimate, and plans for it.
fn ask(engine: &Engine, request: &v1::PlanRequest) -> v1::Plan {
    let request = decode::<v1::PlanRequest>(request.encode_to_vec().into())
        .unwrap_or_else(|status| panic!("the request was refused: {status}"));
    let answer = engine
        .plan(request, &never)
        .unwrap_or_else(|refusal| panic!("there is no plan: {refusal}"));
    answer.plan.expect("a plan")
}

fn plan(cluster: &Cluster) -> v1::Plan {
    ask(&engine(), &support::inline(cluster))
}

fn engine() -> Engine {
    Engine::new(Limits::default(), ByteSize::mib(256))
}

/// The plan without its warnings.
fn decided(mut plan: v1::Plan) -> v1::Plan {
    plan.plan_id.clear();
    plan.warnings.clear();
    plan.more_warnings = 0;
    plan
}

/// The warnings of a plan as `kind name: message`.
fn warnings(plan: &v1::Plan) -> Vec<String> {
    let warnings = plan.warnings.iter();
    warnings
        .map(|v1::Warning { kind, name, message }| format!("{kind} {name}: {message}"))
        .collect()
}

/// Checks that a plan has exactly these warnings, each of which begins with the expected text.
#[track_caller]
fn says(plan: &v1::Plan, expected: &[&str]) {
    let found = warnings(plan);
    let begins = found
        .iter()
        .zip(expected)
        .all(|(found, expected)| found.starts_with(expected));
    assert!(
        begins && found.len() == expected.len(),
        "expected {expected:#?}, found {found:#?}"
    );
}

fn label(key: impl Into<String>, value: impl Into<String>) -> v1::Label {
    v1::Label {
        key: key.into(),
        value: value.into(),
    }
}

/// `count` labels that no selector names.
fn junk(count: usize) -> impl Iterator<Item = v1::Label> {
    (0..count).map(|number| label(format!("{number:x}"), ""))
}
