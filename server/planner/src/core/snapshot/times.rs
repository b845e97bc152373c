//! A column of times. Those of Kubernetes have whole seconds, so most columns need no other part.

use jiff::Timestamp;

/// The times, by index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Times {
    /// Empty if no object has a time.
    seconds: Box<[i64]>,
    /// Empty if all times are whole seconds.
    nanoseconds: Box<[i32]>,
}

/// Stands for no time. It is before the first time that there is.
const NONE: i64 = i64::MIN;

impl Times {
    /// The time with this index, if the object has one.
    pub(crate) fn get(&self, index: usize) -> Option<Timestamp> {
        let seconds = self.seconds.get(index).filter(|seconds| **seconds != NONE)?;
        let nanoseconds = self.nanoseconds.get(index).copied().unwrap_or_default();
        Timestamp::new(*seconds, nanoseconds).ok()
    }

    /// Memory of the times, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.seconds) + size_of_val(&*self.nanoseconds)
    }
}

impl FromIterator<Option<Timestamp>> for Times {
    fn from_iter<I: IntoIterator<Item = Option<Timestamp>>>(times: I) -> Self {
        let parts = times.into_iter().map(|time| match time {
            Some(time) => (time.as_second(), time.subsec_nanosecond()),
            None => (NONE, 0),
        });
        let (mut seconds, mut nanoseconds): (Vec<i64>, Vec<i32>) = parts.unzip();
        if seconds.iter().all(|seconds| *seconds == NONE) {
            seconds.clear();
        }
        if nanoseconds.iter().all(|nanoseconds| *nanoseconds == 0) {
            nanoseconds.clear();
        }
        Self {
            seconds: seconds.into(),
            nanoseconds: nanoseconds.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_kept() {
        let time = |seconds, nanoseconds| Some(Timestamp::new(seconds, nanoseconds).expect("a time"));
        let all = [
            None,
            time(0, 0),
            time(-5, -7),
            time(1_700_000_000, 999_999_999),
            Some(Timestamp::MIN),
            Some(Timestamp::MAX),
        ];
        for (times, bytes) in [
            (&all[..], 6 * 12),
            (&all[..2], 2 * 8),
            (&[None, None], 0),
            (&[], 0),
        ] {
            let column: Times = times.iter().copied().collect();
            let found: Vec<_> = (0..times.len()).map(|index| column.get(index)).collect();
            assert_eq!(found, times);
            assert_eq!(column.bytes(), bytes);
        }
    }
}
