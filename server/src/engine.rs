//! The answers, in this process: parse, plan, render. The service calls this for every request, and a program that links this
//! crate gets the same answers without a network.

use std::sync::Arc;

use nodewise_planner::report;
use nodewise_proto::v1;
use tracing::debug_span;

use crate::{
    cache::Cache,
    limits::Limits,
    parse::{self, Context},
    refusal::Refusal,
    render,
    size::ByteSize,
};

/// Answers requests. It keeps decoded buckets and nothing else; the answers depend on the request alone.
#[derive(Debug)]
pub struct Engine {
    cache: Cache,
    limits: Limits,
}

impl Engine {
    /// An engine that takes requests within `limits` and keeps decoded buckets of at most `cache_size` bytes.
    #[must_use]
    pub fn new(limits: Limits, cache_size: ByteSize) -> Self {
        Self {
            cache: Cache::new(cache_size),
            limits,
        }
    }

    /// The decoded buckets.
    #[must_use]
    pub fn cache(&self) -> &Cache {
        &self.cache
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
        let snapshot = debug_span!("parse").in_scope(|| parse::request::plan(request, self.context(stop)))?;
        let (nodes, pods) = (count(&snapshot.nodes), count(&snapshot.pods));
        let plan = debug_span!("decide", nodes, pods)
            .in_scope(|| nodewise_planner::plan_until(&snapshot, stop))
            .ok_or(Refusal::Stopped)?;
        let plan = debug_span!("render").in_scope(|| render::plan(plan, &snapshot.daemon_set));
        Ok(v1::PlanResponse { plan: Some(plan) })
    }

    /// Why the workload runs, or does not run, on its nodes. `stop` as for [`Engine::plan`].
    pub fn explain(
        &self,
        request: v1::ExplainRequest,
        stop: &dyn Fn() -> bool,
    ) -> Result<v1::ExplainResponse, Refusal> {
        let (snapshot, node) = parse::request::explain(request, self.context(stop))?;
        let nodes =
            nodewise_planner::explain_until(&snapshot, node.as_deref(), stop).ok_or(Refusal::Stopped)?;
        Ok(render::explanations(nodes))
    }

    /// What follows from what an executor did. `stop` as for [`Engine::plan`].
    pub fn report(
        &self,
        request: v1::ReportRequest,
        stop: &dyn Fn() -> bool,
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

fn count<T>(buckets: &[Arc<[T]>]) -> usize {
    buckets.iter().map(|bucket| bucket.len()).sum()
}

/// For callers that wait however long it takes.
#[must_use]
pub fn never() -> bool {
    false
}
