//! Decides what caused a failed call: the replica, the request, or neither.
//!
//! A request that fails at every replica must not evict the replicas, because other workloads need them. An error from another
//! server that listens at a replica's address must not reject the request.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::{FieldViolation, StatusExt as _};

use super::failure;
use super::replica::Replica;
use super::replicas::Replicas;
use crate::observer::{Evicted, Fate, Method, Observer};
use crate::service::{Refusal, ServiceError, violations};

/// The number of replicas at which a request may fail before it is given up, and the number that must find it too large.
const MAX_SUSPECTS: usize = 2;

/// A failed call to one replica.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) reason: String,
    pub(super) fault: Fault,
    /// The fields that the replica rejected.
    pub(super) violations: Vec<FieldViolation>,
    /// The delay after which the replica asks for a retry.
    pub(super) retry_after: Option<Duration>,
}

/// The cause of a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The request is wrong. Every replica would reject it.
    Request,
    /// The request or its response is too large for this replica. Another replica may have higher limits.
    Size,
    /// The replica works, but cannot answer now: it is saturated, or it evicts buckets while they are sent.
    Temporary,
    /// The replica works, but its version does not know this feature, which the request needs. It was not sent the request.
    Outdated(&'static str),
    /// The replica or the connection: nothing listens at the address, or another server does.
    Replica,
    /// The replica, or the request if it fails at other replicas as well.
    Unclear(Evicted),
}

impl Fault {
    fn of(status: &Status, retry_after: Option<Duration>) -> Self {
        match status.code() {
            Code::DeadlineExceeded => Self::Unclear(Evicted::TimedOut),
            // A status with a source is a transport error, not a response.
            _ if status.source().is_some() => Self::Replica,
            Code::InvalidArgument => Self::Request,
            Code::ResourceExhausted if retry_after.is_some() => Self::Temporary,
            Code::ResourceExhausted | Code::OutOfRange => Self::Size,
            Code::FailedPrecondition => Self::Temporary,
            // A replica never returns the last three. Another server or a proxy at its address does (HTTP 404, 403, 401).
            Code::Unavailable | Code::Unimplemented | Code::PermissionDenied | Code::Unauthenticated => {
                Self::Replica
            }
            _ => Self::Unclear(Evicted::Failed),
        }
    }
}

/// Counts a failed call, and evicts the replica if it is certainly the cause.
pub(super) fn note_failure(
    (replicas, observer): (&Replicas, &dyn Observer),
    uid: &str,
    replica: &Replica,
    method: Method,
    status: &Status,
) -> Failed {
    let reason = failure(replica, status);
    let details = status.get_error_details();
    let retry_after = details.retry_info().and_then(|info| info.retry_delay);
    let fault = Fault::of(status, retry_after);
    observer.call(
        method,
        match fault {
            Fault::Request | Fault::Size | Fault::Outdated(_) => Fate::Refused,
            Fault::Temporary if retry_after.is_none() => Fate::LacksBuckets,
            Fault::Temporary => Fate::Saturated,
            Fault::Unclear(Evicted::TimedOut) => Fate::TimedOut,
            Fault::Replica | Fault::Unclear(_) => Fate::Failed,
        },
    );
    match fault {
        // The replica responded. A saturated replica stays: moving its workloads to replicas with cold caches would cause more
        // work.
        Fault::Request | Fault::Size | Fault::Temporary | Fault::Outdated(_) => replicas.answered(replica),
        Fault::Replica => replicas.failed(replica, &reason, Evicted::Failed),
        Fault::Unclear(cause) if replica.has_failed_for_another(uid) => {
            replicas.failed(replica, &reason, cause);
        }
        Fault::Unclear(_) => {}
    }
    Failed {
        violations: violations(&details),
        reason,
        fault,
        retry_after,
    }
}

/// The failures of one request at all replicas so far.
#[derive(Debug)]
pub(super) struct CallFailures<'a> {
    replicas: &'a Replicas,
    /// Replicas that failed with an unclear cause, once each: the reason, and the cause of eviction if the replica is to blame.
    suspects: Vec<(Arc<Replica>, String, Evicted)>,
    too_large: usize,
    last: Option<Failed>,
}

impl<'a> CallFailures<'a> {
    pub(super) fn new(replicas: &'a Replicas) -> Self {
        Self {
            replicas,
            suspects: Vec::new(),
            too_large: 0,
            last: None,
        }
    }

    /// Notes that this replica failed.
    pub(super) fn failed(&mut self, replica: &Arc<Replica>, failed: Failed) {
        tracing::debug!("{}", failed.reason);
        match failed.fault {
            Fault::Size => self.too_large += 1,
            Fault::Unclear(cause)
                if !self
                    .suspects
                    .iter()
                    .any(|(known, ..)| Arc::ptr_eq(known, replica)) =>
            {
                self.suspects
                    .push((Arc::clone(replica), failed.reason.clone(), cause));
            }
            _ => {}
        }
        self.last = Some(failed);
    }

    /// Notes that this replica answered. So the request is good, and the suspects are evicted.
    pub(super) fn answered(&self, by: &Arc<Replica>) {
        for (suspect, reason, cause) in &self.suspects {
            if !Arc::ptr_eq(suspect, by) {
                self.replicas.failed(suspect, reason, *cause);
            }
        }
    }

    /// Returns an error if it is of no use to ask another of the `replicas`.
    pub(super) fn check_retry(&self, replicas: usize) -> Result<(), ServiceError> {
        let Some(last) = &self.last else { return Ok(()) };
        let too_large = self.too_large >= MAX_SUSPECTS.min(replicas.max(1));
        if last.fault == Fault::Request || too_large {
            return Err(refused(last, None));
        }
        if self.suspects.len() >= MAX_SUSPECTS {
            return Err(ServiceError::Unreachable(last.reason.clone()));
        }
        Ok(())
    }

    /// The delay after which the last replica asked for a retry.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        self.last.as_ref()?.retry_after
    }

    /// The error of a call that no replica answered. `None` if no replica was asked.
    pub(super) fn error(self) -> Option<ServiceError> {
        let last = self.last?;
        Some(match last.fault {
            Fault::Outdated(feature) => refused(&last, Some(feature)),
            _ => ServiceError::Unreachable(last.reason),
        })
    }
}

fn refused(failed: &Failed, lacks: Option<&'static str>) -> ServiceError {
    ServiceError::Refused(Refusal {
        reason: failed.reason.clone(),
        violations: failed.violations.clone(),
        lacks,
    })
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_status_has_a_fault() {
        let retry_after = Some(Duration::from_millis(5));
        let broken = Status::from_error(Box::new(io::Error::from(io::ErrorKind::ConnectionReset)));
        for (status, retry_info, fault) in [
            (Status::invalid_argument("wrong"), None, Fault::Request),
            (Status::resource_exhausted("too large"), None, Fault::Size),
            (Status::out_of_range("too large"), None, Fault::Size),
            (
                Status::resource_exhausted("saturated"),
                retry_after,
                Fault::Temporary,
            ),
            (Status::failed_precondition("buckets"), None, Fault::Temporary),
            (Status::unavailable("draining"), None, Fault::Replica),
            (Status::unimplemented("HTTP 404"), None, Fault::Replica),
            (Status::permission_denied("HTTP 403"), None, Fault::Replica),
            (Status::unauthenticated("HTTP 401"), None, Fault::Replica),
            (broken, None, Fault::Replica),
            (
                Status::deadline_exceeded("late"),
                None,
                Fault::Unclear(Evicted::TimedOut),
            ),
            (
                Status::internal("a defect"),
                None,
                Fault::Unclear(Evicted::Failed),
            ),
            (Status::unknown("HTTP 500"), None, Fault::Unclear(Evicted::Failed)),
        ] {
            assert_eq!(Fault::of(&status, retry_info), fault, "{status}");
        }
    }
}
