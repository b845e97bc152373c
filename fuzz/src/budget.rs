//! What one input may cost, and what the costliest did.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use peak_alloc::PeakAlloc;
use rustix::time::{ClockId, clock_gettime};

/// Counts what is allocated. A buffer that grows counts twice while it is copied, the worst that an allocator may do.
#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// Bytes of memory for each byte of an input, the input itself left out. A request may take more if the service holds more for it:
/// that of small objects of a cluster takes what these take.
const BYTES_PER_BYTE: usize = 10;
/// Time for a megabyte; longer inputs may take longer in proportion, shorter ones shall be done sooner.
const TIME: Duration = Duration::from_secs(1);
const MEGABYTE: usize = 1 << 20;
/// What the shortest input is timed as: in less, a page that is touched for the first time would count.
const SHORTEST: usize = MEGABYTE / 4;
/// How much longer code takes that counts its edges and checks its arithmetic (the dearest megabyte, which takes 0.3 s in a
/// release build, takes 1.6 s), or that is not even optimized, as in `cargo test` (1.3 s). A busy machine doubles that: what
/// counts is processor time, but caches are shared.
const SLOWER: u32 = if cfg!(feature = "libfuzzer") { 2 } else { 5 };
/// Inputs from this size on tell something about memory in proportion: below it the allowance decides.
const TELLING_BYTES: usize = 256 << 10;

/// The costliest inputs so far.
#[derive(Debug, Default)]
struct Records {
    slowest: Duration,
    /// Of the inputs that are large enough to tell, in hundredths.
    factor: usize,
    /// The largest part of what an input may take, in per cent.
    used: usize,
}

static RECORDS: Mutex<Records> = Mutex::new(Records {
    slowest: Duration::ZERO,
    factor: 0,
    used: 0,
});

/// Time that this thread has had a processor: other programs on the machine do not count.
fn thread_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(now).unwrap_or_default()
}

/// Where an input comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// From the network, from anyone who may reach the service, which holds so many bytes of memory while it works on it.
    Request(usize),
    /// From whoever runs the command, who can wait and has memory.
    File,
}

impl Origin {
    /// What an input may take besides what its bytes allow it.
    const fn allowance(self) -> usize {
        match self {
            // Of which the service itself gives 3 MiB away (`server/src/size_estimate`): a list of 16,384 node names is read into
            // strings of their own, and a list that grows counts twice. Another 2 MiB are for the answer: each orphan that a plan
            // adopts, of which there are some thousands at most here, is told the workload's name, namespace and uid.
            Self::Request(_) => 6 << 20,
            // Lists of short entries that are kept, such as taints without a key, count twice while they grow: the dearest
            // megabyte takes sixteen and a half times its bytes. YAML has 2 MB for aliases, however short it is.
            Self::File => 8 << 20,
        }
    }

    /// Bytes of memory that an input of so many bytes may take.
    fn memory(self, bytes: usize) -> usize {
        let held = match self {
            Self::Request(held) => held,
            Self::File => 0,
        };
        (BYTES_PER_BYTE * bytes).max(held) + self.allowance()
    }
}

/// What a piece of work took.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// Processor time.
    pub time: Duration,
    /// Most bytes allocated at once, beyond what was allocated before.
    pub memory: usize,
}

/// Runs `work` and tells what it took. One piece of work at a time is measured in a process.
fn measure<T>(work: impl FnOnce() -> T) -> (T, Cost) {
    let (before, start) = (ALLOCATED.current_usage(), thread_time());
    ALLOCATED.reset_peak_usage();
    let result = work();
    let time = thread_time().saturating_sub(start);
    let memory = ALLOCATED.peak_usage().saturating_sub(before);
    (result, Cost { time, memory })
}

/// Runs `work` on an input of so many bytes.
///
/// # Panics
/// When the work takes more time or memory than such an input may.
pub fn hold<T>(origin: Origin, bytes: usize, work: impl FnOnce() -> T) -> T {
    let mut records = RECORDS.lock().unwrap_or_else(PoisonError::into_inner);
    let (result, cost) = measure(work);
    records.note(origin, bytes, cost);
    drop(records);
    if let Some(excess) = cost.excess(origin, bytes) {
        panic!("{excess}");
    }
    result
}

impl Cost {
    /// What is too much for an input of so many bytes.
    fn excess(self, origin: Origin, bytes: usize) -> Option<String> {
        let memory = origin.memory(bytes);
        let quarters = u32::try_from(bytes.div_ceil(SHORTEST).max(1)).unwrap_or(u32::MAX);
        let time = TIME * SLOWER * quarters / 4;
        if self.memory > memory {
            let took = self.memory;
            return Some(format!(
                "an input of {bytes} bytes took {took} bytes of memory; it may take {memory}"
            ));
        }
        let took = self.time;
        (took > time).then(|| format!("an input of {bytes} bytes took {took:?}; it may take {time:?}"))
    }
}

impl Records {
    /// Tells on standard error whenever an input costs more than all before.
    fn note(&mut self, origin: Origin, bytes: usize, cost: Cost) {
        let used = 100 * cost.memory / origin.memory(bytes);
        let factor = if bytes < TELLING_BYTES {
            0
        } else {
            100 * cost.memory / bytes
        };
        if cost.time <= self.slowest && used <= self.used && factor <= self.factor {
            return;
        }
        self.slowest = self.slowest.max(cost.time);
        self.used = self.used.max(used);
        self.factor = self.factor.max(factor);
        eprintln!(
            "COSTS slowest {:.1} ms, memory {}.{:02} times an input of {} KiB or more, {} % of what an input may take \
             (now: {bytes} bytes, {:.1} ms, {} bytes of memory)",
            self.slowest.as_secs_f64() * 1e3,
            self.factor / 100,
            self.factor % 100,
            TELLING_BYTES >> 10,
            self.used,
            cost.time.as_secs_f64() * 1e3,
            cost.memory,
        );
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Cost, MEGABYTE, Origin, SHORTEST, SLOWER, TIME};

    #[test]
    fn what_an_input_may_take() {
        let allowance = Origin::Request(0).allowance();
        assert!(allowance < Origin::File.allowance());
        let time = TIME * SLOWER;
        let little = Duration::from_nanos(1);
        let table = [
            (0, time / 4, allowance, None),
            (0, time / 4, allowance + 1, Some("bytes of memory")),
            (0, time / 4 + little, 0, Some("it may take")),
            (1_000, time / 4, allowance + 10_000, None),
            (1_000, time / 4, allowance + 10_001, Some("bytes of memory")),
            (SHORTEST + 1, time / 2, 0, None),
            (SHORTEST + 1, time / 2 + little, 0, Some("it may take")),
            (MEGABYTE, time, 0, None),
            (MEGABYTE, time + little, 0, Some("it may take")),
            (2 * MEGABYTE, 2 * time, 0, None),
            (2 * MEGABYTE, 2 * time + little, 0, Some("it may take")),
        ];
        for (bytes, time, memory, expected) in table {
            let excess = Cost { time, memory }.excess(Origin::Request(0), bytes);
            match expected {
                None => assert_eq!(excess, None),
                Some(part) => assert!(
                    excess.clone().is_some_and(|text| text.contains(part)),
                    "{excess:?}"
                ),
            }
        }
        let held = Cost {
            time: little,
            memory: allowance + 1_000,
        };
        assert_eq!(held.excess(Origin::Request(1_000), 10), None);
        assert!(held.excess(Origin::Request(999), 10).is_some());
    }
}
