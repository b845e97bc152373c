//! Who can reach a limit, and what stops? Objects of the cluster are written by others than the caller: a kubelet writes its node,
//! a tenant creates pods and revisions. Whatever they write, plans are made; only the caller, and the owner of a workload for that
//! workload, can be refused. `docs/security.md` has the table.

#[path = "../support/mod.rs"]
mod support;

mod nodes;
mod owners;
mod pods;
mod reduced;
mod revisions;

use nodewise_proto::v1;
use nodewise_server::{ByteSize, Engine, Limits, decode, never};
use prost::Message as _;
use support::Cluster;

/// A request as the service takes it: weighed, decoded, planned for.
fn ask(engine: &Engine, request: &v1::PlanRequest) -> v1::Plan {
    let request = decode::<v1::PlanRequest>(request.encode_to_vec().into())
        .unwrap_or_else(|status| panic!("the request is taken: {status}"));
    let answer = engine
        .plan(request, &never)
        .unwrap_or_else(|refusal| panic!("there is a plan: {refusal}"));
    answer.plan.expect("a plan")
}

fn plan(cluster: &Cluster) -> v1::Plan {
    ask(&engine(), &support::inline(cluster))
}

fn engine() -> Engine {
    Engine::new(Limits::default(), ByteSize::mib(256))
}

/// What is decided, without what is said about odd objects.
fn decided(mut plan: v1::Plan) -> v1::Plan {
    plan.plan_id.clear();
    plan.warnings.clear();
    plan.more_warnings = 0;
    plan
}

/// The warnings of a plan as `kind name: message`.
fn warnings(plan: &v1::Plan) -> Vec<String> {
    let told = plan.warnings.iter();
    told.map(|v1::Warning { kind, name, message }| format!("{kind} {name}: {message}"))
        .collect()
}

/// Holds that a plan says this about odd objects: as many warnings, each of which begins so.
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

/// So many labels that nothing names.
fn junk(count: usize) -> impl Iterator<Item = v1::Label> {
    (0..count).map(|number| label(format!("{number:x}"), ""))
}
