//! What a failed call says: of the replica, of the request, or of neither.
//!
//! A request that fails everywhere must not cost the other workloads their replicas, and what listens where a replica was must
//! not pass judgement on a request.

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

/// How many replicas a request may fail at, when it may be the request that fails, and how many have to find it too large.
const OPINIONS: usize = 2;

/// Why a replica did not do as it was asked.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) reason: String,
    pub(super) fault: Fault,
    /// What it finds wrong with the request.
    pub(super) violations: Vec<FieldViolation>,
    /// When it asked to come back.
    pub(super) retry_after: Option<Duration>,
}

/// Where the fault lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The request is wrong, whoever is asked.
    Request,
    /// The request, or its answer, is too large for this replica; another may be set up to take more.
    Size,
    /// The replica is well, and cannot take this now: it is saturated, or loses buckets while they are sent.
    Moment,
    /// The replica, or the way to it: nobody is there, or somebody who is no replica.
    Replica,
    /// The replica, or the request, if it fails at others, too.
    Unclear(Evicted),
}

impl Fault {
    fn of(status: &Status, retry_after: Option<Duration>) -> Self {
        match status.code() {
            Code::DeadlineExceeded => Self::Unclear(Evicted::TimedOut),
            // Not what a server said, but what became of the connection.
            _ if status.source().is_some() => Self::Replica,
            Code::InvalidArgument => Self::Request,
            Code::ResourceExhausted if retry_after.is_some() => Self::Moment,
            Code::ResourceExhausted | Code::OutOfRange => Self::Size,
            Code::FailedPrecondition => Self::Moment,
            // No replica says the last three. A server that has taken over the address of one does, or a proxy: as HTTP's
            // 404, 403 and 401.
            Code::Unavailable | Code::Unimplemented | Code::PermissionDenied | Code::Unauthenticated => {
                Self::Replica
            }
            _ => Self::Unclear(Evicted::Failed),
        }
    }
}

/// Counts a failed call and draws the consequences that are certain by now.
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
            Fault::Request | Fault::Size => Fate::Refused,
            Fault::Moment if retry_after.is_none() => Fate::LacksBuckets,
            Fault::Moment => Fate::Saturated,
            Fault::Unclear(Evicted::TimedOut) => Fate::TimedOut,
            Fault::Replica | Fault::Unclear(_) => Fate::Failed,
        },
    );
    match fault {
        // An answer all the same: it is there. One that has too much to do has not failed, and would not have less to do if
        // all of its workloads went elsewhere with cold caches.
        Fault::Request | Fault::Size | Fault::Moment => replicas.answered(replica),
        Fault::Replica => replicas.failed(replica, &reason, Evicted::Failed),
        Fault::Unclear(cause) if replica.fails_another(uid) => replicas.failed(replica, &reason, cause),
        Fault::Unclear(_) => {}
    }
    Failed {
        violations: violations(&details),
        reason,
        fault,
        retry_after,
    }
}

/// What the replicas that were asked have said to one request.
#[derive(Debug)]
pub(super) struct Opinions<'a> {
    replicas: &'a Replicas,
    /// Each once, why, and as what it counts if it is to blame.
    suspects: Vec<(Arc<Replica>, String, Evicted)>,
    too_large: usize,
    last: Option<Failed>,
}

impl<'a> Opinions<'a> {
    pub(super) fn new(replicas: &'a Replicas) -> Self {
        Self {
            replicas,
            suspects: Vec::new(),
            too_large: 0,
            last: None,
        }
    }

    /// This one failed.
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

    /// This one answered: the fault is not the request's, but of those that failed before.
    pub(super) fn answered(&self, by: &Arc<Replica>) {
        for (suspect, reason, cause) in &self.suspects {
            if !Arc::ptr_eq(suspect, by) {
                self.replicas.failed(suspect, reason, *cause);
            }
        }
    }

    /// Whether it is of use to ask on, when there are so many replicas: an error says why not.
    pub(super) fn so_far(&self, replicas: usize) -> Result<(), ServiceError> {
        let Some(last) = &self.last else { return Ok(()) };
        let too_large = self.too_large >= OPINIONS.min(replicas.max(1));
        if last.fault == Fault::Request || too_large {
            return Err(ServiceError::Refused(Refusal {
                reason: last.reason.clone(),
                violations: last.violations.clone(),
            }));
        }
        if self.suspects.len() >= OPINIONS {
            return Err(ServiceError::Unreachable(last.reason.clone()));
        }
        Ok(())
    }

    /// When the last one that was asked wants to be asked again.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        self.last.as_ref()?.retry_after
    }

    /// Why there is no answer; `None` when nobody was asked.
    pub(super) fn reason(self) -> Option<String> {
        Some(self.last?.reason)
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::time::Duration;

    use super::*;

    #[test]
    fn who_is_at_fault() {
        let moment = Some(Duration::from_millis(5));
        let broken = Status::from_error(Box::new(io::Error::from(io::ErrorKind::ConnectionReset)));
        for (status, retry_after, fault) in [
            (Status::invalid_argument("wrong"), None, Fault::Request),
            (Status::resource_exhausted("too large"), None, Fault::Size),
            (Status::out_of_range("too large"), None, Fault::Size),
            (Status::resource_exhausted("saturated"), moment, Fault::Moment),
            (Status::failed_precondition("buckets"), None, Fault::Moment),
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
            assert_eq!(Fault::of(&status, retry_after), fault, "{status}");
        }
    }
}
