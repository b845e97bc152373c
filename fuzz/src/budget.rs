//! The time and memory that an input may take, and the most that any input took.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use peak_alloc::PeakAlloc;
use rustix::time::{ClockId, clock_gettime};

/// Counts allocated memory. A growing buffer counts twice while it is copied, which is the worst case of an allocator.
#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// Bytes of memory for each byte of an input, besides the input itself. A request may take more if the service holds more memory
/// for it, as it does for small objects of a cluster.
const BYTES_PER_BYTE: usize = 11;
/// Processor time for a megabyte. Other inputs may take a time in proportion.
const TIME: Duration = Duration::from_secs(1);
const MEGABYTE: usize = 1 << 20;
/// Shorter inputs may take as long as an input of this length: at shorter times, page faults would dominate.
const SHORTEST: usize = MEGABYTE / 4;
/// How much slower instrumented and unoptimized builds are. The slowest megabyte takes 0.3 s in a release build, 1.6 s in a fuzzing
/// build, and 1.3 s in `cargo test`. A busy machine doubles these times, since processor caches are shared.
const SLOWER: u32 = if cfg!(feature = "libfuzzer") { 2 } else { 5 };
/// The memory per byte is recorded for inputs from this size on. For shorter ones the allowance dominates.
const RECORDED_BYTES: usize = 256 << 10;

/// The highest costs so far.
#[derive(Debug, Default)]
struct Records {
    slowest: Duration,
    /// Bytes of memory per byte of an input of at least [`RECORDED_BYTES`], in hundredths.
    factor: usize,
    /// Memory as a part of what the input may take, in per cent.
    used: usize,
}

static RECORDS: Mutex<Records> = Mutex::new(Records {
    slowest: Duration::ZERO,
    factor: 0,
    used: 0,
});

/// The processor time of this thread. Other programs on the machine do not count.
fn thread_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(now).unwrap_or_default()
}

/// The origin of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A request from any client. The service holds this many bytes of memory for it.
    Request(usize),
    /// A file that the user gives to the command.
    File,
}

impl Origin {
    /// Bytes of memory that an input may take in addition to those in proportion to its size.
    const fn allowance(self) -> usize {
        match self {
            // The service itself allows 3 MiB (`server/src/size_estimate`): a list of 16,384 node names becomes separate strings,
            // and a growing list counts twice. Another 2 MiB are for the response: each of some thousand adoptions contains the
            // name, namespace and uid of the workload.
            Self::Request(_) => 6 << 20,
            // Lists of short entries, such as nodes of which only the name is given, count twice while they grow: the most expensive
            // megabyte takes 18.4 times its bytes. The aliases of YAML may take 2 MB, however short the file is.
            Self::File => 8 << 20,
        }
    }

    /// Bytes of memory that an input of `bytes` bytes may take.
    fn memory(self, bytes: usize) -> usize {
        let held = match self {
            Self::Request(held) => held,
            Self::File => 0,
        };
        (BYTES_PER_BYTE * bytes).max(held) + self.allowance()
    }
}

/// The time and memory that a piece of work took.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// Processor time.
    pub time: Duration,
    /// Most bytes allocated at once, beyond what was allocated before.
    pub memory: usize,
}

/// Runs `work` and measures its cost. Only one piece of work may run at a time in the process.
fn measure<T>(work: impl FnOnce() -> T) -> (T, Cost) {
    let (before, start) = (ALLOCATED.current_usage(), thread_time());
    ALLOCATED.reset_peak_usage();
    let result = work();
    let time = thread_time().saturating_sub(start);
    let memory = ALLOCATED.peak_usage().saturating_sub(before);
    (result, Cost { time, memory })
}

/// Runs `work` on an input of `bytes` bytes.
///
/// # Panics
/// If the work takes more time or memory than such an input may.
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
    /// The error if the cost is too high for an input of `bytes` bytes.
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
    /// Prints the records to standard error whenever an input sets a new one.
    fn note(&mut self, origin: Origin, bytes: usize, cost: Cost) {
        let used = 100 * cost.memory / origin.memory(bytes);
        let factor = if bytes < RECORDED_BYTES {
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
            RECORDED_BYTES >> 10,
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
            (1_000, time / 4, allowance + 11_000, None),
            (1_000, time / 4, allowance + 11_001, Some("bytes of memory")),
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
