//! What may go wrong on the way.

use std::{fmt, sync::Arc, time::Duration};

use nodewise_proto::v1;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

/// What happens to a call, or to a question on a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The connection is reset before the service hears of the call.
    ResetBefore,
    /// The connection is reset after the service has answered, and the answer is lost.
    ResetAfter,
    /// The answer comes so much later.
    Delay(Duration),
    /// The service hears the call twice, and the second answer is the one that arrives; on a stream, the answer arrives twice.
    Twice,
    /// The service hears nothing, and there is no answer.
    Hang,
    /// A proxy answers that nobody is there; the service hears nothing.
    Unavailable,
    /// A proxy answers that the service is saturated, and when to come back; the service hears nothing.
    Exhausted,
}

/// When a saturated service wants to be asked again.
const RETRY_AFTER: Duration = Duration::from_millis(50);

impl Fault {
    /// The answer that is given in the service's place.
    pub(super) fn instead(self) -> Option<Status> {
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

/// What a wrong service makes of a plan.
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
