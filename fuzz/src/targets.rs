//! The entries for what arrives from outside.

use nodewise_proto::v1;
use nodewise_server::{ByteSize, Engine, Limits, Refusal, Request, never};
use prost::Message as _;

use crate::budget::{self, Origin};

/// A target: the name of its corpus, and what is done with an input.
pub struct Target {
    /// Also the name of the folders of its inputs.
    pub name: &'static str,
    /// Panics when something does not hold.
    pub run: fn(&[u8]),
}

/// All targets.
pub const ALL: [Target; 4] = [
    Target {
        name: "parse",
        run: parse,
    },
    Target {
        name: "plan",
        run: plan,
    },
    Target {
        name: "report",
        run: report,
    },
    Target {
        name: "file",
        run: file,
    },
];

/// Each input meets an engine that knows nothing yet, so that an answer depends on the input alone.
fn engine() -> Engine {
    Engine::new(Limits::default(), ByteSize::mib(256))
}

/// As the service decodes what comes over the network.
fn decode<M: Request>(bytes: &[u8]) -> Option<M> {
    nodewise_server::decode(bytes.to_vec().into()).ok()
}

/// Where a request comes from, and the memory that the service holds for it: itself, and what it is decoded to.
fn request<M: Request>(bytes: &[u8]) -> Origin {
    Origin::Request(nodewise_server::estimate::<M>(bytes).map_or(0, |weight| bytes.len() + weight))
}

/// A refusal that names no field helps nobody.
fn check<T>(answer: Result<T, Refusal>) -> Option<T> {
    let violations = match answer {
        Ok(answer) => return Some(answer),
        Err(Refusal::Invalid { violations, .. }) => violations,
        Err(Refusal::TooLarge(violation)) => vec![violation],
        Err(Refusal::MissingBuckets(_)) => return None,
        Err(Refusal::Stopped) => panic!("nothing asked to stop"),
        Err(Refusal::NoMemory) => panic!("no memory was counted"),
    };
    assert!(!violations.is_empty(), "a refusal says why");
    for violation in violations {
        assert!(
            !violation.field.is_empty(),
            "a refusal names the field: {violation}"
        );
    }
    None
}

/// The request parser, by way of Explain and of Plan.
///
/// # Panics
/// When something does not hold.
pub fn parse(bytes: &[u8]) {
    budget::hold(request::<v1::ExplainRequest>(bytes), bytes.len(), || {
        if let Some(request) = decode::<v1::ExplainRequest>(bytes) {
            check(engine().explain(request, &never));
        }
    });
    budget::hold(request::<v1::PlanRequest>(bytes), bytes.len(), || {
        if let Some(request) = decode::<v1::PlanRequest>(bytes) {
            check(engine().plan(request, &never));
        }
    });
}

/// Plan, which gives the same bytes again for the same question, whatever the engine has seen before.
///
/// # Panics
/// When something does not hold.
pub fn plan(bytes: &[u8]) {
    let engine = engine();
    let answer = || {
        let request = decode::<v1::PlanRequest>(bytes)?;
        Some(check(engine.plan(request, &never))?.encode_to_vec())
    };
    let Some(first) = budget::hold(request::<v1::PlanRequest>(bytes), bytes.len(), answer) else {
        return;
    };
    assert_eq!(Some(first), answer(), "the same question, another answer");
}

/// Report.
///
/// # Panics
/// When something does not hold.
pub fn report(bytes: &[u8]) {
    budget::hold(request::<v1::ReportRequest>(bytes), bytes.len(), || {
        if let Some(request) = decode::<v1::ReportRequest>(bytes) {
            check(engine().report(request, &never));
        }
    });
}

/// The reader of the command's files.
///
/// # Panics
/// When something does not hold.
pub fn file(bytes: &[u8]) {
    budget::hold(Origin::File, bytes.len(), || {
        if let Err(error) = nodewise_cli::read_text(bytes.to_vec()) {
            let error = error.to_string();
            assert!(error.starts_with("input: "), "an error names the place: {error}");
        }
    });
}
