//! The rules of the election: which candidate may take the lease, what it writes, and how long it may act as leader. Pure:
//! the time is passed in.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// The durations of the election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Other candidates respect a lease for this long after the last change that they saw.
    pub lease_duration: Duration,
    /// The leader keeps leading for this long without a successful renewal.
    pub renew_deadline: Duration,
    /// The pause between two tries.
    pub retry_period: Duration,
}

impl Default for Timing {
    /// 15 s, 10 s and 2 s: the defaults of client-go.
    fn default() -> Self {
        Self {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

/// A try to acquire waits for the retry period plus at most this many retry periods.
const JITTER: f64 = 1.2;

/// Durations that would let two leaders write at the same time, or leave the cluster without a leader for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimingError {
    /// The lease could expire while its holder still leads.
    #[error("the lease duration ({0:?}) must be longer than the renew deadline ({1:?})")]
    LeaseTooShort(Duration, Duration),
    /// A single failed try could lose the lease.
    #[error("the renew deadline ({0:?}) must be longer than 1.2 times the retry period ({1:?})")]
    DeadlineTooShort(Duration, Duration),
    /// The duration in a Lease is in whole seconds.
    #[error("the lease duration ({0:?}) must be at least one second")]
    LeaseUnderOneSecond(Duration),
    /// With a retry period of zero, tries would not pause.
    #[error("the retry period must be longer than zero")]
    NoRetryPeriod,
}

impl Timing {
    /// Checks the durations against each other.
    pub fn validate(self) -> Result<Self, TimingError> {
        if self.lease_duration < Duration::from_secs(1) {
            return Err(TimingError::LeaseUnderOneSecond(self.lease_duration));
        }
        if self.lease_duration <= self.renew_deadline {
            return Err(TimingError::LeaseTooShort(
                self.lease_duration,
                self.renew_deadline,
            ));
        }
        if self.renew_deadline <= self.retry_period.mul_f64(JITTER) {
            return Err(TimingError::DeadlineTooShort(
                self.renew_deadline,
                self.retry_period,
            ));
        }
        if self.retry_period.is_zero() {
            return Err(TimingError::NoRetryPeriod);
        }
        Ok(self)
    }

    /// Returns the wait before the next try to acquire. `random` is in [0, 1).
    #[must_use]
    pub fn acquire_pause(&self, random: f64) -> Duration {
        self.retry_period + self.retry_period.mul_f64(JITTER * random)
    }

    /// How long after the last renewal the leader may still write: the renew deadline plus half of the rest of the lease
    /// duration. The first half lets calls in flight finish. The second half is a safety margin between two leaders.
    #[must_use]
    pub fn write_limit(&self) -> Duration {
        self.renew_deadline + self.lease_duration.saturating_sub(self.renew_deadline) / 2
    }

    /// Timeout of one call about the lease, so that one call that hangs does not lose the lease.
    #[must_use]
    pub fn call_timeout(&self) -> Duration {
        (self.renew_deadline / 2).max(Duration::from_secs(1))
    }
}

/// The content of a Lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Identity of the holder; empty if there is none.
    pub holder: String,
    /// The lease duration in seconds. It counts from when the reader saw the record change.
    pub duration_seconds: u32,
    /// When the holder acquired the lease. Never compared with a clock.
    pub acquired: Option<Timestamp>,
    /// When the holder last renewed the lease. Never compared with a clock.
    pub renewed: Option<Timestamp>,
    /// How often the holder changed.
    pub transitions: u32,
}

/// One candidate's view of the election.
#[derive(Clone, Debug)]
pub struct Election {
    identity: String,
    timing: Timing,
    /// The last record that was read, and when it was first read.
    observed: Option<(Record, Instant)>,
}

impl Election {
    /// Creates a candidate that has read nothing yet.
    #[must_use]
    pub fn new(identity: String, timing: Timing) -> Self {
        Self {
            identity,
            timing,
            observed: None,
        }
    }

    /// Records the content of the lease. Only a change restarts the lease duration.
    pub fn observe(&mut self, record: Option<Record>, now: Instant) {
        match record {
            None => self.observed = None,
            Some(record) => {
                if self.observed.as_ref().is_none_or(|(seen, _)| *seen != record) {
                    self.observed = Some((record, now));
                }
            }
        }
    }

    /// Whether the lease, as last seen, is held by this candidate.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.observed
            .as_ref()
            .is_some_and(|(record, _)| record.holder == self.identity)
    }

    /// The holder of the lease, as last seen; empty if there is none.
    #[must_use]
    pub fn holder(&self) -> &str {
        self.observed.as_ref().map_or("", |(record, _)| &record.holder)
    }

    /// Whether another candidate holds the lease, as last seen, expired or not.
    #[must_use]
    pub fn is_held_by_another(&self) -> bool {
        !self.holds() && !self.holder().is_empty()
    }

    /// Whether this candidate holds the lease and the lease has not expired. Then it may renew without reading first.
    #[must_use]
    pub fn may_renew_without_reading(&self, now: Instant) -> bool {
        self.holds() && self.is_fresh(now)
    }

    /// Whether this candidate may write itself into the lease as the holder.
    #[must_use]
    pub fn may_take(&self, now: Instant) -> bool {
        self.holds() || self.holder().is_empty() || !self.is_fresh(now)
    }

    fn is_fresh(&self, now: Instant) -> bool {
        self.observed
            .as_ref()
            .is_some_and(|(record, seen)| *seen + Duration::from_secs(record.duration_seconds.into()) > now)
    }

    /// Returns the record that makes this candidate the holder, or renews it.
    #[must_use]
    pub fn claim(&self, clock: Timestamp) -> Record {
        // Rounded up: other candidates must respect the lease for at least as long as this process leads.
        let duration = self.timing.lease_duration;
        let seconds = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
        let duration_seconds = u32::try_from(seconds).unwrap_or(u32::MAX);
        let (acquired, transitions) = match &self.observed {
            Some((record, _)) if record.holder == self.identity => (record.acquired, record.transitions),
            Some((record, _)) => (Some(clock), record.transitions.saturating_add(1)),
            None => (Some(clock), 0),
        };
        Record {
            holder: self.identity.clone(),
            duration_seconds,
            acquired,
            renewed: Some(clock),
            transitions,
        }
    }

    /// Returns the record that releases the lease, so that the next leader can start at once.
    #[must_use]
    pub fn release(&self, clock: Timestamp) -> Record {
        let transitions = self.observed.as_ref().map_or(0, |(record, _)| record.transitions);
        Record {
            holder: String::new(),
            duration_seconds: 1,
            acquired: Some(clock),
            renewed: Some(clock),
            transitions,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(lease: u64, deadline: u64, retry: u64) -> Timing {
        Timing {
            lease_duration: Duration::from_secs(lease),
            renew_deadline: Duration::from_secs(deadline),
            retry_period: Duration::from_secs(retry),
        }
    }

    fn candidate(identity: &str) -> Election {
        Election::new(identity.to_owned(), Timing::default())
    }

    fn held_by(holder: &str, renewed: i64) -> Record {
        let clock = Timestamp::from_second(renewed).expect("a time");
        Record {
            holder: holder.to_owned(),
            duration_seconds: 15,
            acquired: Some(clock),
            renewed: Some(clock),
            transitions: 4,
        }
    }

    // Lease > renew deadline > 1.2 × retry period.
    #[test]
    fn timing_is_validated() {
        for (name, timing, valid) in [
            ("defaults", Timing::default(), true),
            ("lease = deadline", timing(10, 10, 2), false),
            ("deadline = 1.2 retry", timing(15, 12, 10), false),
            ("deadline a little over 1.2 retry", timing(15, 13, 10), true),
            ("no pause", timing(15, 10, 0), false),
            ("no lease", timing(0, 0, 0), false),
        ] {
            assert_eq!(timing.validate().is_ok(), valid, "{name}");
        }
    }

    // The wait is the retry period plus up to 1.2 times the retry period. A call gets half of the renew deadline, at least 1
    // s.
    #[test]
    fn acquire_pause_and_call_timeout() {
        assert_eq!(Timing::default().acquire_pause(0.0), Duration::from_secs(2));
        assert_eq!(Timing::default().acquire_pause(0.5), Duration::from_millis(3_200));
        assert_eq!(Timing::default().call_timeout(), Duration::from_secs(5));
        assert_eq!(timing(3, 1, 0).call_timeout(), Duration::from_secs(1));
    }

    // Only the local time since the last observed change counts, not the times in the record.
    #[test]
    fn expiry_counts_from_the_last_observed_change() {
        let (mut me, start) = (candidate("me"), Instant::now());
        me.observe(Some(held_by("other", 0)), start);
        assert!(
            !me.may_take(start + Duration::from_millis(14_999)),
            "a record of long ago, but seen just now"
        );
        assert!(me.may_take(start + Duration::from_secs(15)));
        me.observe(Some(held_by("other", 0)), start + Duration::from_secs(10));
        assert!(
            me.may_take(start + Duration::from_secs(15)),
            "seeing the same again is no sign of life"
        );
        me.observe(Some(held_by("other", 1)), start + Duration::from_secs(10));
        assert!(!me.may_take(start + Duration::from_secs(24)));
        assert!(me.may_take(start + Duration::from_secs(25)));
    }

    // A lease without a holder can be taken at once. So can a lease that does not exist.
    #[test]
    fn a_lease_without_a_holder_can_be_taken() {
        let (mut me, now) = (candidate("me"), Instant::now());
        assert!(me.may_take(now));
        me.observe(Some(held_by("", 0)), now);
        assert!(me.may_take(now) && !me.holds());
    }

    // Taking over increments the transitions and sets the acquire time. Renewing keeps both.
    #[test]
    fn taking_over_counts_a_transition() {
        let (mut me, now) = (candidate("me"), Instant::now());
        let clock = Timestamp::from_second(100).expect("a time");
        assert_eq!(me.claim(clock).transitions, 0);
        me.observe(Some(held_by("other", 7)), now);
        let taken = me.claim(clock);
        assert_eq!(
            (taken.transitions, taken.acquired, taken.renewed),
            (5, Some(clock), Some(clock))
        );
        me.observe(Some(taken), now);
        assert!(
            me.may_renew_without_reading(now) && !me.may_renew_without_reading(now + Duration::from_secs(15))
        );
        let later = Timestamp::from_second(102).expect("a time");
        let renewed = me.claim(later);
        assert_eq!(
            (renewed.transitions, renewed.acquired, renewed.renewed),
            (5, Some(clock), Some(later))
        );
    }

    // A Lease is in whole seconds, and other candidates must not see a shorter duration than the leader uses.
    #[test]
    fn a_lease_is_rounded_up() {
        let timing = Timing {
            lease_duration: Duration::from_millis(10_600),
            ..Timing::default()
        };
        let timing = timing.validate().expect("longer than the renew deadline");
        let claimed = Election::new("me".to_owned(), timing).claim(Timestamp::UNIX_EPOCH);
        assert_eq!(claimed.duration_seconds, 11);
        assert_eq!(timing.write_limit(), Duration::from_millis(10_300));
    }

    #[test]
    fn a_released_lease_has_no_holder() {
        let (mut me, now) = (candidate("me"), Instant::now());
        me.observe(Some(held_by("me", 7)), now);
        let released = me.release(Timestamp::from_second(9).expect("a time"));
        assert_eq!(
            (
                released.holder.as_str(),
                released.duration_seconds,
                released.transitions
            ),
            ("", 1, 4)
        );
    }
}
