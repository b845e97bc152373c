//! The time of the sync, and times relative to it as objects store them.

use jiff::{SignedDuration, Timestamp};

use super::rng::CaseRng;

/// The time of the sync.
pub(super) struct Clock {
    /// The exact time.
    pub(super) now: Timestamp,
    /// The time in whole seconds, the resolution of times in objects.
    second: i64,
}

impl Clock {
    pub(super) fn draw(rng: &mut CaseRng) -> Self {
        let second = 1_767_322_805 + rng.between(0..=30_000_000);
        let nanosecond = match rng.below(10) {
            0..=2 => 0,
            3 => 1,
            4 | 5 => 999_999_999,
            _ => rng.between(2..=999_999_998),
        };
        let start = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second);
        Self {
            now: start + SignedDuration::from_nanos(nanosecond),
            second,
        }
    }

    /// The time `seconds` ago (in the future if negative), as objects store it.
    pub(super) fn before(&self, seconds: i64) -> String {
        let time = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(self.second - seconds);
        time.to_string()
    }

    /// The exact time `ago`, as the controller's memory stores it.
    pub(super) fn exactly_before(&self, ago: SignedDuration) -> String {
        (self.now - ago).to_string()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::generate::census::Situation;

    pub(in crate::generate) const SITUATIONS: &[Situation] = &[
        ("on the second", |case| !case.now.contains('.')),
        ("a nanosecond after", |case| case.now.contains(".000000001Z")),
        ("a nanosecond before", |case| case.now.contains(".999999999Z")),
    ];

    #[test]
    fn objects_carry_whole_seconds() {
        let clock = Clock {
            now: "2026-01-02T03:04:05.000000006Z".parse().expect("a time"),
            second: 1_767_323_045,
        };
        assert_eq!(clock.before(5), "2026-01-02T03:04:00Z");
        assert_eq!(
            clock.exactly_before(SignedDuration::from_nanos(7)),
            "2026-01-02T03:04:04.999999999Z"
        );
    }
}
