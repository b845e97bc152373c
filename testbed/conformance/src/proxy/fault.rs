//! The faults between executor and service.

use std::{fmt, sync::Arc, time::Duration};

use nodewise_proto::v1;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

/// What happens to a call, or to a question on a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The connection is reset before the service gets the call.
    ResetBefore,
    /// The connection is reset after the service has answered, so the response is lost.
    ResetAfter,
    /// The response is delayed.
    Delay(Duration),
    /// The service gets the call twice, and the executor gets the second response. On a stream, the response arrives
    /// twice.
    Twice,
    /// The service does not get the call, and there is no response.
    Hang,
    /// The proxy answers UNAVAILABLE. The service does not get the call.
    Unavailable,
    /// The proxy answers RESOURCE_EXHAUSTED with RetryInfo. The service does not get the call.
    Exhausted,
}

/// The retry delay in the response of a saturated service.
const RETRY_AFTER: Duration = Duration::from_millis(50);

impl Fault {
    /// The status that the proxy returns instead of calling the service, if any.
    pub(super) fn local_response(self) -> Option<Status> {
        match self {
            Self::Unavailable => Some(Status::unavailable("a fault: nobody is there")),
            Self::Exhausted => {
                let details = tonic_types::ErrorDetails::with_retry_info(Some(RETRY_AFTER));
                let message = "a fault: saturated";
                Some(Status::with_error_details(
                    Code::ResourceExhausted,
                    message,
                    details,
                ))
            }
            _ => None,
        }
    }
}

/// A change to each plan, as a wrong service would make it.
#[derive(Clone)]
pub struct Rewrite(Arc<dyn Fn(&mut v1::Plan) + Send + Sync>);

impl Rewrite {
    pub(super) fn new(rewrite: impl Fn(&mut v1::Plan) + Send + Sync + 'static) -> Self {
        Self(Arc::new(rewrite))
    }

    pub(super) fn apply(&self, plan: &mut v1::Plan) {
        (self.0)(plan);
    }
}

impl fmt::Debug for Rewrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rewrite")
    }
}
