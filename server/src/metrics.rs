//! The metrics of the service. Calls are observed when they end; everything else is read at each scrape.

use std::{fmt, sync::Arc, time::Duration};

use nodewise_telemetry::{
    grpc::{OnEnd, code_name},
    metrics::{Histogram, Histograms, encode_gauge, observe, register_process},
};
use nodewise_tls::server::Acceptor;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, text},
    metrics::{counter::ConstCounter, family::Family, gauge::ConstGauge, histogram::exponential_buckets},
    registry::{Registry, Unit},
};

use crate::{
    cache::Kind,
    connection::{Connections, Reason},
    engine::Engine,
    fair_share::FairShare,
    pool::Pool,
    service::Service,
    warnings::{OddKind, OddReason},
};

/// The metrics of a service.
#[derive(Clone)]
pub(crate) struct Metrics {
    registry: Arc<Registry>,
    calls: Histograms<Call>,
}

/// Labels as in OpenTelemetry's conventions for RPC.
#[allow(clippy::struct_field_names)]
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Call {
    rpc_system_name: &'static str,
    rpc_method: &'static str,
    rpc_response_status_code: &'static str,
}

/// From 0.25 ms to 8 s.
fn call_buckets() -> Histogram {
    Histogram::new(exponential_buckets(0.000_25, 2.0, 16))
}

impl Metrics {
    pub(crate) fn new(service: &Service, connections: &Connections, tls: Option<Acceptor>) -> Self {
        let calls: Histograms<Call> = Family::new_with_constructor(call_buckets);
        let mut registry = Registry::default();
        registry.register(
            "rpc_server_call_duration_seconds",
            "Duration of calls of the service, from the request's headers to the last byte of the response",
            calls.clone(),
        );
        registry.register_collector(Box::new(PoolLoad(service.pool().clone())));
        registry.register_collector(Box::new(Resources {
            memory: service.memory().clone(),
            connections: connections.clone(),
        }));
        registry.register_collector(Box::new(EngineMetrics(Arc::clone(service.engine()))));
        if let Some(tls) = tls {
            registry.register_collector(Box::new(Certificates(tls)));
        }
        register_process(&mut registry);
        Self {
            registry: Arc::new(registry),
            calls,
        }
    }

    /// A callback that observes each call when it ends.
    pub(crate) fn on_end(&self) -> OnEnd {
        let calls = self.calls.clone();
        Arc::new(move |method, code, took: Duration| {
            let call = calls.get_or_create(&Call {
                rpc_system_name: "grpc",
                rpc_method: method,
                rpc_response_status_code: code_name(code),
            });
            observe(&call, took.as_secs_f64());
        })
    }

    /// The metrics in the text format of OpenMetrics 1.0.
    pub(crate) fn encode(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = text::encode(&mut text, &self.registry);
        text
    }
}

/// The load of the planning pool.
#[derive(Debug)]
struct PoolLoad(Pool);

impl Collector for PoolLoad {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for (name, help, load) in [
            (
                "nodewise_planning",
                "Requests that are being planned (running) or wait for a planning thread (queued)",
                self.0.load(),
            ),
            (
                "nodewise_planning_capacity",
                "Maximum of nodewise_planning by state; further requests are refused",
                self.0.capacity(),
            ),
        ] {
            let kind = ConstGauge::new(0_i64).metric_type();
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            for (state, count) in [("queued", load.queued), ("running", load.running)] {
                let count = ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX));
                count.encode(family.encode_family(&[("state", state)])?)?;
            }
        }
        Ok(())
    }
}

/// Memory and connections.
#[derive(Debug)]
struct Resources {
    memory: FairShare,
    connections: Connections,
}

impl Collector for Resources {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Self { memory, connections } = self;
        for (name, help, unit, amount) in [
            (
                "nodewise_request_memory",
                "Memory held for requests, from their arrival to the end of their responses",
                Some(&Unit::Bytes),
                memory.taken(),
            ),
            (
                "nodewise_request_memory_capacity",
                "Maximum of nodewise_request_memory_bytes; further requests are refused",
                Some(&Unit::Bytes),
                memory.capacity(),
            ),
            (
                "nodewise_connections",
                "Open connections of clients",
                None,
                connections.open(),
            ),
            (
                "nodewise_connections_capacity",
                "Maximum of nodewise_connections; further connections are closed",
                None,
                connections.capacity(),
            ),
        ] {
            encode_gauge(&mut encoder, name, help, unit, amount as u64)?;
        }
        let refused = Reason::ALL.map(|reason| ([("reason", reason.name())], connections.refused(reason)));
        counters(
            &mut encoder,
            "nodewise_connections_refused",
            "Connections refused before their first request, by reason: limit (too many are open), tls (no TLS, or a certificate that \
             is not accepted), stalled (HTTP/2 did not start in time)",
            &refused,
        )
    }
}

/// The expiry of the TLS certificates.
#[derive(Debug)]
struct Certificates(Acceptor);

impl Collector for Certificates {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let until = u64::try_from(self.0.until().as_second()).unwrap_or(0);
        encode_gauge(
            &mut encoder,
            "nodewise_tls_valid_until_timestamp",
            "Time at which the first certificate in use expires, or another certificate authority becomes valid, as Unix time",
            Some(&Unit::Seconds),
            until,
        )
    }
}

/// The cache, the results that plans reuse, and the warnings.
#[derive(Debug)]
struct EngineMetrics(Arc<Engine>);

impl Collector for EngineMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let cache = self.0.cache();
        let usage = Kind::ALL.map(|kind| (kind.name(), cache.usage(kind)));
        let by_kind = |name, help, count: fn(&crate::cache::Usage) -> u64| {
            let counts = usage
                .iter()
                .map(|(kind, usage)| ([("kind", *kind)], count(usage)));
            (name, help, counts.collect::<Vec<_>>())
        };
        for (name, help, counts) in [
            by_kind(
                "nodewise_cache_hits",
                "Lookups that found an entry in the cache, by kind of entry: buckets of nodes, buckets of pods, results of earlier plans",
                |usage| usage.hits,
            ),
            by_kind(
                "nodewise_cache_misses",
                "Lookups that found no entry in the cache, by kind of entry",
                |usage| usage.misses,
            ),
            by_kind(
                "nodewise_cache_evictions",
                "Entries that were removed from the cache to make room for others, by kind of entry",
                |usage| usage.evictions,
            ),
        ] {
            counters(&mut encoder, name, help, &counts)?;
        }
        let tally = self.0.tally();
        let steps = [
            ([("step", "eligibility"), ("source", "cache")], tally.fits_cached),
            (
                [("step", "eligibility"), ("source", "computed")],
                tally.fits_computed,
            ),
            ([("step", "summary"), ("source", "cache")], tally.summaries_cached),
            (
                [("step", "summary"), ("source", "computed")],
                tally.summaries_computed,
            ),
        ];
        counters(
            &mut encoder,
            "nodewise_planned_buckets",
            "Buckets of planned snapshots, by step (eligibility of the nodes, summary for the workload) and by source: computed, or \
             reused from the cache",
            &steps,
        )?;
        self.warnings(&mut encoder)?;
        let (bytes, help) = (cache.bytes(), "Memory that the cache uses");
        encode_gauge(&mut encoder, "nodewise_cache", help, Some(&Unit::Bytes), bytes)?;
        let help = "Entries in the cache: buckets, and results of earlier plans by workload";
        encode_gauge(
            &mut encoder,
            "nodewise_cache_entries",
            help,
            None,
            cache.entries() as u64,
        )
    }
}

impl EngineMetrics {
    fn warnings(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let all = OddKind::ALL
            .into_iter()
            .flat_map(|kind| OddReason::ALL.map(|reason| (kind, reason)));
        let counts: Vec<_> = all
            .map(|(kind, reason)| {
                let labels = [("kind", kind.name()), ("reason", reason.name())];
                (labels, self.0.warnings(kind, reason))
            })
            .collect();
        counters(
            encoder,
            "nodewise_snapshot_warnings",
            "Objects with unusual data in planned snapshots, counted again by each plan, by reason: labels (very many labels), taints \
             (very many taints), time (outside the years 1 to 9999), data (cannot be read), left_out (there are too many revisions)",
            &counts,
        )
    }
}

fn counters<const N: usize>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    counts: &[([(&'static str, &'static str); N], u64)],
) -> fmt::Result {
    let kind = ConstCounter::new(0_u64).metric_type();
    let mut family = encoder.encode_descriptor(name, help, None, kind)?;
    for (labels, count) in counts {
        ConstCounter::new(*count).encode(family.encode_family(labels)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use nodewise_tls::{server::Files, testing::Authority};
    use tonic::Code;

    use super::*;
    use crate::{config::Config, methods, service::Service};

    fn acceptor(directory: &Path) -> Acceptor {
        let pem = Authority::new("an authority").issue(&["planner"]);
        let [certificate, key] = pem.write(directory, "server");
        let files = Files {
            certificate,
            key,
            clients: None,
        };
        Acceptor::new(files).expect("good files")
    }

    // The documentation lists exactly the metrics that are served.
    #[test]
    fn every_metric_is_documented() {
        let service = Service::new(&Config::default());
        let connections = Connections::new(1, Duration::from_secs(1));
        let directory = tempfile::tempdir().expect("a directory");
        let metrics = Metrics::new(&service, &connections, Some(acceptor(directory.path())));
        metrics.on_end()(methods::TRACED[0].name, Code::Ok, Duration::from_millis(3));
        nodewise_telemetry::testing::assert_documented("nodewise-server", &metrics.encode());
    }
}
