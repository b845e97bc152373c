//! Answers requests without a network: parse, plan, render. The gRPC service calls the engine for every request; other programs
//! may call it directly.

use std::{
    cell::RefCell,
    sync::{Mutex, PoisonError},
};

use nodewise_planner::{
    daemonset::{self, DaemonSet},
    deployment,
    plan_cache::CacheCounts,
    replicaset, report,
    snapshot::Snapshot,
};
use nodewise_proto::v1;
use nodewise_telemetry::traces::{count, step};
use prost::Message as _;

use crate::{
    cache::Cache,
    limits::Limits,
    parse::{self, Context, Parsed},
    refusal::Refusal,
    render,
    response_memory::{self, Caller, Explanations, Needs},
    size::ByteSize,
    steps,
    warnings::{OddKind, OddReason, Warnings},
    workload::AnySnapshot,
};

/// Answers requests. The engine caches decoded buckets and results of earlier plans. Responses depend on the request alone.
#[derive(Debug)]
pub struct Engine {
    cache: Cache,
    limits: Limits,
    tally: Mutex<CacheCounts>,
    odd: Mutex<[[u64; OddReason::ALL.len()]; OddKind::ALL.len()]>,
}

impl Engine {
    /// An engine that accepts requests within `limits` and has a cache of at most `cache_size` bytes.
    #[must_use]
    pub fn new(limits: Limits, cache_size: ByteSize) -> Self {
        Self {
            cache: Cache::new(cache_size),
            limits,
            tally: Mutex::default(),
            odd: Mutex::default(),
        }
    }

    /// The cache of decoded buckets and of results of earlier plans.
    #[must_use]
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// How many bucket results plans have computed, and how many they have reused, since the start.
    #[must_use]
    pub fn tally(&self) -> CacheCounts {
        *self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many warnings of a kind and reason there were in all plans since the start.
    #[must_use]
    pub fn warnings(&self, kind: OddKind, reason: OddReason) -> u64 {
        self.odd.lock().unwrap_or_else(PoisonError::into_inner)[kind as usize][reason as usize]
    }

    fn count_warnings(&self, warnings: &Warnings) {
        let Some(counts) = warnings.counts() else { return };
        let mut odd = self.odd.lock().unwrap_or_else(PoisonError::into_inner);
        for (total, count) in odd.as_flattened_mut().iter_mut().zip(counts.as_flattened()) {
            *total += count;
        }
    }

    /// The limits of a request.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Plans what must happen next. The engine polls `stop` now and then, and returns [`Refusal::Stopped`] once it is true.
    pub fn plan(
        &self,
        request: v1::PlanRequest,
        stop: &dyn Fn() -> bool,
    ) -> Result<v1::PlanResponse, Refusal> {
        self.plan_for(request, Caller::unbounded(stop))
    }

    /// Like [`Engine::plan`], for a caller whose memory is bounded.
    pub(crate) fn plan_for(
        &self,
        request: v1::PlanRequest,
        caller: Caller<'_>,
    ) -> Result<v1::PlanResponse, Refusal> {
        let stop = caller.stop;
        let by_digest = request.snapshot.as_ref().is_some_and(has_digests);
        let needs = Needs::of(request.snapshot.as_ref().is_some_and(is_by_digest));
        let recall = |uid: &str| by_digest.then(|| self.cache.recall(uid)).flatten();
        let Parsed {
            snapshot,
            mut memory,
            warnings,
        } = step(steps::PARSE, || {
            parse::request::plan(request, self.context(stop), recall)
        })?;
        self.count_warnings(&warnings);
        if let Err(refusal) = (caller.hold)(needs(response_memory::plan_bound(&snapshot))) {
            if by_digest {
                self.cache.remember(snapshot.uid(), memory);
            }
            return Err(refusal);
        }
        let buckets = snapshot.buckets();
        count(
            "nodewise.nodes",
            buckets.iter().map(|bucket| bucket.nodes.len()).sum(),
        );
        count(
            "nodewise.pods",
            buckets.iter().map(|bucket| bucket.pods.len()).sum(),
        );
        let plan = step(steps::DECIDE, || snapshot.plan(&mut memory, stop)).ok_or(Refusal::Stopped)?;
        *self.tally.lock().unwrap_or_else(PoisonError::into_inner) += memory.take_counts();
        if by_digest {
            self.cache.remove_superseded(&mut memory);
            self.cache.remember(snapshot.uid(), memory);
        }
        let plan = step(steps::RENDER, || {
            render::plan(plan, snapshot.reference(), snapshot.options().scope, &warnings)
        });
        drop(snapshot);
        (caller.hold)(Needs::Alone(response_memory::plan(&plan)))?;
        Ok(v1::PlanResponse { plan: Some(plan) })
    }

    /// The snapshot that the planner gets for a request, for a caller that runs the planner itself, such as a benchmark. `stop` as
    /// for [`Engine::plan`].
    pub fn snapshot(
        &self,
        request: v1::PlanRequest,
        stop: &dyn Fn() -> bool,
    ) -> Result<Snapshot<DaemonSet>, Refusal> {
        let parsed = parse::request::plan(request, self.context(stop), |_| None)?;
        parsed.snapshot.into_daemon_set()
    }

    /// Explains the state of a workload: node by node for a DaemonSet. `stop` as for [`Engine::plan`].
    pub fn explain(
        &self,
        request: v1::ExplainRequest,
        stop: &dyn Fn() -> bool,
    ) -> Result<v1::ExplainResponse, Refusal> {
        self.explain_for(request, Caller::unbounded(stop))
    }

    /// Like [`Engine::explain`], for a caller whose memory is bounded.
    pub(crate) fn explain_for(
        &self,
        request: v1::ExplainRequest,
        caller: Caller<'_>,
    ) -> Result<v1::ExplainResponse, Refusal> {
        let needs = Needs::of(request.snapshot.as_ref().is_some_and(is_by_digest));
        let (snapshot, node) = parse::request::explain(request, self.context(caller.stop))?;
        let work = response_memory::explanation_work(&snapshot);
        let workload = match snapshot {
            AnySnapshot::DaemonSet(snapshot) => {
                let explanations = Explanations::new(caller, needs, work);
                return explain_nodes(snapshot, node.as_deref(), caller, explanations);
            }
            AnySnapshot::ReplicaSet(snapshot) => {
                (caller.hold)(needs(work))?;
                replicaset::explain_until(&snapshot, caller.stop).map(render::replica_set_explanation)
            }
            AnySnapshot::Deployment(snapshot) => {
                (caller.hold)(needs(work))?;
                deployment::explain_until(&snapshot, caller.stop).map(render::deployment_explanation)
            }
        };
        let response = v1::ExplainResponse {
            nodes: Vec::new(),
            workload: Some(workload.ok_or(Refusal::Stopped)?),
        };
        (caller.hold)(Needs::Alone(2 * response.encoded_len()))?;
        Ok(response)
    }

    /// Folds the outcomes of a plan's actions into the state, and says when to reconcile again. `stop` as for [`Engine::plan`].
    pub fn report(
        &self,
        request: v1::ReportRequest,
        stop: &dyn Fn() -> bool,
    ) -> Result<v1::ReportResponse, Refusal> {
        self.report_for(request, Caller::unbounded(stop))
    }

    /// Like [`Engine::report`]. The response is no larger than the request, so no further memory is held for it.
    pub(crate) fn report_for(
        &self,
        request: v1::ReportRequest,
        Caller { stop, .. }: Caller<'_>,
    ) -> Result<v1::ReportResponse, Refusal> {
        let report = parse::request::report(request, self.context(stop))?;
        let state = report::fold_until(report.state, &report.outcomes, &report.options, stop)
            .ok_or(Refusal::Stopped)?;
        let come_back = report::come_back(&report.outcomes, report.requeue_after, Some(&report.plan_error));
        Ok(render::report(state, come_back))
    }

    pub(crate) fn context<'a>(&'a self, stop: &'a dyn Fn() -> bool) -> Context<'a> {
        Context::new(&self.cache, &self.limits, stop)
    }
}

/// Explains a DaemonSet on one node, or on all.
fn explain_nodes(
    snapshot: Snapshot<DaemonSet>,
    node: Option<&str>,
    caller: Caller<'_>,
    explanations: Explanations<'_>,
) -> Result<v1::ExplainResponse, Refusal> {
    let explanations = RefCell::new(explanations);
    let stop = || (caller.stop)() || explanations.borrow().is_refused();
    let complete = daemonset::explain_each(&snapshot, node, &stop, &mut |node| {
        explanations.borrow_mut().add(render::explanation(node));
    });
    drop(snapshot);
    explanations.into_inner().finish(complete)
}

/// Whether every pod bucket has a digest. Without digests a later call cannot reuse the results of this one.
fn has_digests(snapshot: &v1::Snapshot) -> bool {
    snapshot
        .pod_buckets
        .iter()
        .all(|bucket| !bucket.digest.is_empty())
}

/// Whether any bucket is given by digest only, so that the request is much smaller than its snapshot.
pub(crate) fn is_by_digest(snapshot: &v1::Snapshot) -> bool {
    let mut buckets = snapshot.node_buckets.iter().chain(&snapshot.pod_buckets);
    buckets.any(|bucket| bucket.inline().is_none())
}

/// A `stop` function for callers without a deadline.
#[must_use]
pub fn never() -> bool {
    false
}
