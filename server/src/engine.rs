//! The answers, in this process: parse, plan, render. The service calls this for every request, and a program that links this
//! crate gets the same answers without a network.

use std::{
    cell::RefCell,
    sync::{Mutex, PoisonError},
};

use nodewise_planner::{
    memory::{Memory, Tally},
    report,
    snapshot::Snapshot,
};
use nodewise_proto::v1;
use nodewise_telemetry::traces::{count, step};

use crate::{
    answer::{self, Caller, Explanations, Needs},
    cache::Cache,
    limits::Limits,
    parse::{self, Context, Parsed},
    refusal::Refusal,
    render,
    size::ByteSize,
    warnings::{OddKind, OddReason, Warnings},
};

/// Answers requests. It keeps decoded buckets, and what plans found out in them, and nothing else; the answers depend on the
/// request alone.
#[derive(Debug)]
pub struct Engine {
    cache: Cache,
    limits: Limits,
    tally: Mutex<Tally>,
    odd: Mutex<[[u64; OddReason::ALL.len()]; OddKind::ALL.len()]>,
}

impl Engine {
    /// An engine that takes requests within `limits` and keeps decoded buckets of at most `cache_size` bytes.
    #[must_use]
    pub fn new(limits: Limits, cache_size: ByteSize) -> Self {
        Self {
            cache: Cache::new(cache_size),
            limits,
            tally: Mutex::default(),
            odd: Mutex::default(),
        }
    }

    /// The decoded buckets.
    #[must_use]
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// How much of all plans since the start was remembered from earlier ones.
    #[must_use]
    pub fn tally(&self) -> Tally {
        *self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many warnings of a kind and reason plans have told or counted since the start.
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

    /// What a request may hold.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What must happen next. `stop` is asked now and then; once it says yes the answer is [`Refusal::Stopped`].
    pub fn plan(
        &self,
        request: v1::PlanRequest,
        stop: &dyn Fn() -> bool,
    ) -> Result<v1::PlanResponse, Refusal> {
        self.plan_for(request, Caller::unbounded(stop))
    }

    /// As [`Engine::plan`], for a caller who may not have any amount of memory.
    pub(crate) fn plan_for(
        &self,
        request: v1::PlanRequest,
        caller: Caller<'_>,
    ) -> Result<v1::PlanResponse, Refusal> {
        let stop = caller.stop;
        let by_digest = request.snapshot.as_ref().is_some_and(has_digests);
        let needs = Needs::of(request.snapshot.as_ref().is_some_and(is_by_digest));
        let recall = |uid: &str| {
            if by_digest {
                self.cache.recall(uid)
            } else {
                Memory::default()
            }
        };
        let Parsed {
            snapshot,
            mut memory,
            warnings,
        } = step("parse", || {
            parse::request::plan(request, self.context(stop), recall)
        })?;
        self.count_warnings(&warnings);
        if let Err(refusal) = (caller.hold)(needs(answer::most_of_plan(&snapshot))) {
            if by_digest {
                self.cache.remember(&snapshot.daemon_set.uid, memory);
            }
            return Err(refusal);
        }
        let buckets = &snapshot.buckets;
        count(
            "nodewise.nodes",
            buckets.iter().map(|bucket| bucket.nodes.len()).sum(),
        );
        count(
            "nodewise.pods",
            buckets.iter().map(|bucket| bucket.pods.len()).sum(),
        );
        let plan = step("decide", || {
            nodewise_planner::plan_until(&snapshot, &mut memory, stop)
        })
        .ok_or(Refusal::Stopped)?;
        *self.tally.lock().unwrap_or_else(PoisonError::into_inner) += memory.take_tally();
        if by_digest {
            self.cache.let_go(memory.superseded_pods());
            self.cache.remember(&snapshot.daemon_set.uid, memory);
        }
        let plan = step("render", || {
            render::plan(plan, &snapshot.daemon_set, snapshot.options.scope, &warnings)
        });
        drop(snapshot);
        (caller.hold)(Needs::Alone(answer::plan(&plan)))?;
        Ok(v1::PlanResponse { plan: Some(plan) })
    }

    /// What the planner is asked for a request, where the caller plans himself: a bench does. `stop` as for [`Engine::plan`].
    pub fn snapshot(&self, request: v1::PlanRequest, stop: &dyn Fn() -> bool) -> Result<Snapshot, Refusal> {
        let parsed = parse::request::plan(request, self.context(stop), |_| Memory::default())?;
        Ok(parsed.snapshot)
    }

    /// Why the workload runs, or does not run, on its nodes. `stop` as for [`Engine::plan`].
    pub fn explain(
        &self,
        request: v1::ExplainRequest,
        stop: &dyn Fn() -> bool,
    ) -> Result<v1::ExplainResponse, Refusal> {
        self.explain_for(request, Caller::unbounded(stop))
    }

    /// As [`Engine::explain`], for a caller who may not have any amount of memory.
    pub(crate) fn explain_for(
        &self,
        request: v1::ExplainRequest,
        caller: Caller<'_>,
    ) -> Result<v1::ExplainResponse, Refusal> {
        let needs = Needs::of(request.snapshot.as_ref().is_some_and(is_by_digest));
        let (snapshot, node) = parse::request::explain(request, self.context(caller.stop))?;
        let explanations = Explanations::new(caller, needs, answer::work_of_explanation(&snapshot));
        let explanations = RefCell::new(explanations);
        let stop = || (caller.stop)() || explanations.borrow().is_refused();
        let complete = nodewise_planner::explain_each(&snapshot, node.as_deref(), &stop, &mut |node| {
            explanations.borrow_mut().add(render::explanation(node));
        });
        drop(snapshot);
        explanations.into_inner().finish(complete)
    }

    /// What follows from what an executor did. `stop` as for [`Engine::plan`].
    pub fn report(
        &self,
        request: v1::ReportRequest,
        stop: &dyn Fn() -> bool,
    ) -> Result<v1::ReportResponse, Refusal> {
        self.report_for(request, Caller::unbounded(stop))
    }

    /// As [`Engine::report`]. The answer has no more than the request.
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

    fn context<'a>(&'a self, stop: &'a dyn Fn() -> bool) -> Context<'a> {
        Context::new(&self.cache, &self.limits, stop)
    }
}

/// Whether what is found out in the buckets may be of use to a later call: without a digest no bucket is known again.
fn has_digests(snapshot: &v1::Snapshot) -> bool {
    snapshot
        .pod_buckets
        .iter()
        .all(|bucket| !bucket.digest.is_empty())
}

/// Whether a bucket is given by digest alone, so that the request says little of what is planned for.
fn is_by_digest(snapshot: &v1::Snapshot) -> bool {
    let mut buckets = snapshot.node_buckets.iter().chain(&snapshot.pod_buckets);
    buckets.any(|bucket| bucket.data.is_none())
}

/// For callers that wait however long it takes.
#[must_use]
pub fn never() -> bool {
    false
}
