//! Metrics of the process: its version, and resource usage under the names of Prometheus' client libraries.

use std::fmt;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge, info::Info},
};

/// Collects `process_*` and `nodewise_build_info`.
#[derive(Debug)]
pub(crate) struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        encode(
            &mut encoder,
            "nodewise_build",
            "The version of the program",
            &version,
        )?;
        // Without /proc a scrape has only the version.
        let Some(usage) = Usage::now() else {
            return Ok(());
        };
        encode(
            &mut encoder,
            "process_cpu_seconds",
            "CPU time that the process has used, in user and system mode",
            &ConstCounter::new(usage.cpu_seconds),
        )?;
        let gauges = [
            (
                "process_resident_memory_bytes",
                "Memory that the process occupies",
                usage.resident_bytes,
            ),
            (
                "process_virtual_memory_bytes",
                "Address space of the process",
                usage.virtual_bytes,
            ),
            ("process_threads", "Threads of the process", usage.threads),
            (
                "process_open_fds",
                "Files and sockets that the process has open",
                usage.open_files,
            ),
        ];
        for (name, help, value) in gauges {
            encode(&mut encoder, name, help, &ConstGauge::new(value))?;
        }
        if let Some(most) = usage.most_open_files {
            let help = "Most files and sockets that the process may have open";
            encode(&mut encoder, "process_max_fds", help, &ConstGauge::new(most))?;
        }
        let help = "When the process began, as Unix time";
        encode(
            &mut encoder,
            "process_start_time_seconds",
            help,
            &ConstGauge::new(usage.began),
        )
    }
}

fn encode(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    metric: &impl EncodeMetric,
) -> fmt::Result {
    metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
}

/// The resource usage of the process.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux has /proc"))]
struct Usage {
    cpu_seconds: f64,
    resident_bytes: u64,
    virtual_bytes: u64,
    threads: u64,
    open_files: u64,
    /// `None`: there is no limit.
    most_open_files: Option<u64>,
    /// Unix time in seconds.
    began: f64,
}

#[cfg(not(target_os = "linux"))]
impl Usage {
    fn now() -> Option<Self> {
        None
    }
}

#[cfg(target_os = "linux")]
impl Usage {
    fn now() -> Option<Self> {
        Self::read().ok()
    }

    #[expect(clippy::cast_precision_loss, reason = "no process lives for 2^52 ticks")]
    fn read() -> procfs::ProcResult<Self> {
        use procfs::process::LimitValue;

        let process = procfs::process::Process::myself()?;
        let stat = process.stat()?;
        let seconds = |ticks: u64| ticks as f64 / procfs::ticks_per_second() as f64;
        Ok(Self {
            cpu_seconds: seconds(stat.utime + stat.stime),
            resident_bytes: stat.rss * procfs::page_size(),
            virtual_bytes: stat.vsize,
            threads: stat.num_threads.unsigned_abs(),
            open_files: process.fd_count()? as u64,
            most_open_files: match process.limits()?.max_open_files.soft_limit {
                LimitValue::Value(most) => Some(most),
                LimitValue::Unlimited => None,
            },
            began: procfs::boot_time_secs()? as f64 + seconds(stat.starttime),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::{SystemTime, UNIX_EPOCH};

    use prometheus_client::{encoding::text, registry::Registry};

    use super::*;

    #[test]
    fn a_scrape_shows_what_this_process_uses() {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Process));
        let mut scrape = String::new();
        text::encode(&mut scrape, &registry).expect("a String takes everything");
        let value = |name: &str| {
            let line = scrape
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            let line = line.unwrap_or_else(|| panic!("no {name} in {scrape}"));
            line.parse::<f64>().unwrap_or_else(|_| panic!("{name} {line:?}"))
        };
        assert!(scrape.contains(concat!(
            "nodewise_build_info{version=\"",
            env!("CARGO_PKG_VERSION"),
            "\"} 1\n"
        )));
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("after 1970")
            .as_secs_f64();
        let began = value("process_start_time_seconds");
        assert!((now - 3_600.0..now + 2.0).contains(&began), "{began} at {now}");
        assert!(value("process_cpu_seconds_total") >= 0.0);
        assert!(value("process_resident_memory_bytes") >= 100_000.0);
        assert!(value("process_virtual_memory_bytes") >= value("process_resident_memory_bytes"));
        assert!(value("process_threads") >= 1.0);
        assert!((3.0..value("process_max_fds")).contains(&value("process_open_fds")));
    }
}
