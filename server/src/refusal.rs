//! Why the server refuses a request, as a type and as a gRPC status.

use std::{fmt, time::Duration};

use nodewise_proto::v1;
use prost::Message as _;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, FieldViolation, StatusExt as _};

/// A field that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The field, as a path from the request message: `snapshot.pod_buckets[0].data.pods[3].uid`.
    pub field: String,
    /// What is wrong with it. Where the field holds JSON, this begins with the path inside it.
    pub description: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.description)
    }
}

/// Why the server refuses a request. After a refusal the executor must not write to the cluster.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// The request is wrong (INVALID_ARGUMENT).
    #[error("{}", Summary(.violations, *.more))]
    Invalid {
        /// The wrong fields, in the order of discovery; never empty.
        violations: Vec<Violation>,
        /// The number of further violations that are not listed.
        more: usize,
    },
    /// The request exceeds a limit of this server (RESOURCE_EXHAUSTED without RetryInfo).
    #[error("{0}")]
    TooLarge(Violation),
    /// Buckets that were given by digest are not in the cache (FAILED_PRECONDITION).
    #[error(
        "{} node buckets and {} pod buckets that were given by digest are not in the cache: send them inline",
        .0.node_bucket_indices.len(),
        .0.pod_bucket_indices.len()
    )]
    MissingBuckets(v1::MissingBuckets),
    /// There is no memory for the response now (RESOURCE_EXHAUSTED with RetryInfo).
    #[error("running requests and their responses use all the memory that this replica has for them")]
    NoMemory,
    /// The caller has stopped waiting (DEADLINE_EXCEEDED).
    #[error("planning was abandoned: the deadline passed or the call was cancelled")]
    Stopped,
}

/// The first violation and the number of others, as one line: a status message travels in a header.
struct Summary<'a>(&'a [Violation], usize);

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(violations, more) = self;
        let Some(first) = violations.first() else {
            return f.write_str("the request is wrong");
        };
        write!(f, "{first}")?;
        match violations.len() - 1 + more {
            0 => Ok(()),
            1 => f.write_str(" (and one more field is wrong)"),
            others => write!(f, " (and {others} more fields are wrong)"),
        }
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        let message = refusal.to_string();
        let bad_request = |violations: Vec<Violation>| {
            let violations: Vec<_> = violations
                .into_iter()
                .map(|violation| FieldViolation::new(violation.field, violation.description))
                .collect();
            ErrorDetails::with_bad_request(violations)
        };
        match refusal {
            Refusal::Invalid { violations, .. } => {
                Self::with_error_details(Code::InvalidArgument, message, bad_request(violations))
            }
            Refusal::TooLarge(violation) => {
                Self::with_error_details(Code::ResourceExhausted, message, bad_request(vec![violation]))
            }
            Refusal::MissingBuckets(missing) => missing_buckets(message, &missing),
            Refusal::NoMemory => Self::with_error_details(
                Code::ResourceExhausted,
                message,
                ErrorDetails::with_retry_info(Some(RETRY_AFTER)),
            ),
            Refusal::Stopped => Self::deadline_exceeded(message),
        }
    }
}

/// The type URL of [`v1::MissingBuckets`] in the details of a status.
pub const MISSING_BUCKETS_TYPE_URL: &str = "type.googleapis.com/nodewise.v1.MissingBuckets";

fn missing_buckets(message: String, missing: &v1::MissingBuckets) -> Status {
    let details = tonic_types::pb::Status {
        code: Code::FailedPrecondition as i32,
        message: message.clone(),
        details: vec![prost_types::Any {
            type_url: MISSING_BUCKETS_TYPE_URL.to_owned(),
            value: missing.encode_to_vec(),
        }],
    };
    Status::with_details(Code::FailedPrecondition, message, details.encode_to_vec().into())
}

/// The retry delay for a client that was shed: a few times the duration of a plan.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// The status of a saturated server. The client retries after the delay, or calls another replica.
pub(crate) fn saturated() -> Status {
    Status::with_error_details(
        Code::ResourceExhausted,
        "this client uses all planning slots and queue positions that it may have",
        ErrorDetails::with_retry_info(Some(RETRY_AFTER)),
    )
}

/// The status of a request for which there is no memory now.
pub(crate) fn out_of_memory() -> Status {
    Refusal::NoMemory.into()
}

/// The refusal of a request whose response would take more memory than the server has for all requests.
pub(crate) fn answer_too_large(needed: usize, capacity: usize) -> Refusal {
    Refusal::TooLarge(Violation {
        field: "snapshot".to_owned(),
        description: format!(
            "the answer may take {needed} bytes of memory, and there are {capacity} for all requests: ask about one node, or with a \
             smaller burst, or raise --max-request-memory"
        ),
    })
}

/// The status of a new stream when too many are open.
pub(crate) fn too_many_streams() -> Status {
    Status::with_error_details(
        Code::ResourceExhausted,
        "this client has as many open streams as this replica allows",
        ErrorDetails::with_retry_info(Some(RETRY_AFTER)),
    )
}

/// The final status of an idle stream that is evicted for another one.
pub(crate) fn idle_stream(idle: Duration) -> Status {
    Status::with_error_details(
        Code::ResourceExhausted,
        format!(
            "this stream had no request for {} s, and another stream needs its slot: open a new stream for the next request",
            idle.as_secs()
        ),
        ErrorDetails::with_retry_info(Some(RETRY_AFTER)),
    )
}

/// The status of calls while the server drains.
pub(crate) fn draining() -> Status {
    Status::unavailable("this replica is draining: call another one")
}

/// The status of a message that is over the limit. `found` is a lower bound: a compressed message is not inflated to its end.
pub(crate) fn too_long(found: usize, most: usize) -> Status {
    Status::resource_exhausted(format!(
        "a message is too large: {found} bytes or more, and at most {most} are taken"
    ))
}

/// The status of a call whose message did not arrive in time.
pub(crate) fn not_received(within: Duration) -> Status {
    Status::deadline_exceeded(format!("the message did not arrive within {within:?}"))
}

/// The status of a call whose deadline has passed.
pub(crate) fn deadline_exceeded() -> Status {
    Status::deadline_exceeded("the call's deadline passed; planning was abandoned")
}
