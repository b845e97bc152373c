//! The fuzz targets.

use nodewise_proto::v1;
use nodewise_server::{ByteSize, Engine, Limits, Refusal, Request, never};
use prost::Message as _;

use crate::budget::{self, Origin};

/// A fuzz target.
pub struct Target {
    /// The name of the target and of the folders of its inputs.
    pub name: &'static str,
    /// Runs the target on an input. Panics if a check fails.
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

/// A new engine for each input, so that the result depends on the input alone.
fn engine() -> Engine {
    Engine::new(Limits::default(), ByteSize::mib(256))
}

/// Decodes a request as the service does.
fn decode<M: Request>(bytes: &[u8]) -> Option<M> {
    nodewise_server::decode(bytes.to_vec().into()).ok()
}

/// The origin of a request, with the memory that the service holds for the request before and after decoding.
fn request<M: Request>(bytes: &[u8]) -> Origin {
    Origin::Request(nodewise_server::estimate::<M>(bytes).map_or(0, |estimate| bytes.len() + estimate))
}

/// Checks that a refusal names a field.
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

/// The request parser, called by Explain and by Plan.
///
/// # Panics
/// If a check fails.
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

/// Plan, twice with the same engine. Both plans must have the same bytes.
///
/// # Panics
/// If a check fails.
pub fn plan(bytes: &[u8]) {
    let engine = engine();
    let answer = || {
        let request = decode::<v1::PlanRequest>(bytes)?;
        Some(check(engine.plan(request, &never))?.encode_to_vec())
    };
    let Some(first) = budget::hold(request::<v1::PlanRequest>(bytes), bytes.len(), answer) else {
        return;
    };
    assert_eq!(Some(first), answer(), "the same request, another plan");
}

/// Report.
///
/// # Panics
/// If a check fails.
pub fn report(bytes: &[u8]) {
    budget::hold(request::<v1::ReportRequest>(bytes), bytes.len(), || {
        if let Some(request) = decode::<v1::ReportRequest>(bytes) {
            check(engine().report(request, &never));
        }
    });
}

/// The reader of the CLI's files.
///
/// # Panics
/// If a check fails.
pub fn file(bytes: &[u8]) {
    budget::hold(Origin::File, bytes.len(), || {
        if let Err(error) = nodewise_cli::read_text(bytes.to_vec()) {
            let error = error.to_string();
            assert!(error.starts_with("input: "), "an error names the place: {error}");
        }
    });
}
