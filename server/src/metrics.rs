//! What Prometheus is told of the service. Everything is read when it is asked for: answering a request does nothing for it.

use std::{fmt, sync::Arc};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, text},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
    registry::{Registry, Unit},
};

use crate::{cache::Kind, engine::Engine};

/// The metrics of an engine, in the text form of OpenMetrics 1.0.
pub(crate) fn encode(engine: &Arc<Engine>) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Reading(Arc::clone(engine))));
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = text::encode(&mut text, &registry);
    text
}

#[derive(Debug)]
struct Reading(Arc<Engine>);

impl Collector for Reading {
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
                "Buckets, by what they hold, and findings of earlier plans that were in the cache",
                |usage| usage.hits,
            ),
            by_kind(
                "nodewise_cache_misses",
                "Buckets, by what they hold, and findings of earlier plans that were not in the cache",
                |usage| usage.misses,
            ),
            by_kind(
                "nodewise_cache_evictions",
                "Buckets, by what they hold, and findings of earlier plans that made room for others",
                |usage| usage.evictions,
            ),
        ] {
            counters(&mut encoder, name, help, &counts)?;
        }
        let tally = self.0.tally();
        let steps = [
            (
                [("step", "eligibility"), ("source", "cache")],
                tally.fits_recalled,
            ),
            ([("step", "eligibility"), ("source", "computed")], tally.fits_made),
            (
                [("step", "summary"), ("source", "cache")],
                tally.sketches_recalled,
            ),
            ([("step", "summary"), ("source", "computed")], tally.sketches_made),
        ];
        counters(
            &mut encoder,
            "nodewise_planned_buckets",
            "Buckets of planned snapshots: whether the eligibility of their nodes, and what they come to for the workload, had \
             to be computed",
            &steps,
        )?;
        let bytes = ConstGauge::new(i64::try_from(cache.bytes()).unwrap_or(i64::MAX));
        let help = "Memory that the cache takes";
        bytes.encode(encoder.encode_descriptor(
            "nodewise_cache",
            help,
            Some(&Unit::Bytes),
            bytes.metric_type(),
        )?)?;
        let entries = ConstGauge::new(i64::try_from(cache.entries()).unwrap_or(i64::MAX));
        let help = "Buckets, and workloads with findings of earlier plans, in the cache";
        entries.encode(encoder.encode_descriptor(
            "nodewise_cache_entries",
            help,
            None,
            entries.metric_type(),
        )?)
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
