//! Checks of the traces of an executor, as a Collector received them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::{Context as _, Result, bail, ensure};
use nodewise_testbed::{Collector, Span, SpanKind, SpanStatus, eventually};

use crate::deadline::DEADLINE;

/// The service name in the spans of the server.
const SERVER: &str = "nodewise-server";
const APISERVER: &str = "apiserver";
const ETCD: &str = "etcd";

/// The span name of a request that creates a pod.
pub const CREATE: &str = "POST /api/v1/namespaces/{namespace}/pods";
/// The span name of a request that deletes a pod.
pub const DELETE: &str = "DELETE /api/v1/namespaces/{namespace}/pods/{name}";

const PLAN: &str = "nodewise.v1.ReconcileService/Plan";
const ROOT: &str = "reconcile";

/// The most triggers that a reconcile span lists.
const MOST_TRIGGERS: usize = 8;

/// The spans of this service with this name.
pub fn of<'a>(spans: &'a [Span], service: &'a str, name: &'a str) -> impl Iterator<Item = &'a Span> {
    spans
        .iter()
        .filter(move |span| span.service == service && span.name == name)
}

/// Fails unless every trace is one tree whose root is a reconcile of `service`. Returns the number of traces.
pub fn every_trace_is_one_tree(spans: &[Span], service: &str) -> Result<usize> {
    let mut traces = BTreeMap::<_, Vec<&Span>>::new();
    for span in spans {
        traces.entry(&span.trace_id).or_default().push(span);
    }
    for (trace, spans) in &traces {
        let ids: HashMap<_, _> = spans.iter().map(|span| (&span.span_id, span)).collect();
        let roots: Vec<_> = spans.iter().filter(|span| span.parent_id.is_none()).collect();
        let [root] = roots[..] else {
            let names: Vec<_> = spans.iter().map(|span| &span.name).collect();
            bail!("trace {trace} has {} roots among {names:?}", roots.len());
        };
        ensure!(
            (root.service.as_str(), root.name.as_str()) == (service, ROOT),
            "{root:?} is a root"
        );
        for span in spans {
            let mut above = span;
            while let Some(parent) = &above.parent_id {
                above = ids
                    .get(parent)
                    .with_context(|| format!("nobody sent the parent of {above:?}"))?;
            }
        }
    }
    Ok(traces.len())
}

/// All spans of an executor, and the spans below them.
#[derive(Debug)]
pub struct Traces {
    spans: Vec<Span>,
    executor: String,
}

impl Traces {
    /// Waits until the Collector has the apiserver's span of each request, which arrives a little later. The executor
    /// and the server must have ended.
    pub async fn of(collector: &Collector, executor: &str) -> Result<Self> {
        eventually(DEADLINE, "whole traces", async || {
            let traces = Self {
                spans: collector.spans(),
                executor: executor.to_owned(),
            };
            for call in traces.own(CREATE).chain(traces.own(DELETE)) {
                let mut below = traces.spans.iter().filter(|span| span.is_child_of(call));
                let served = below.any(|span| span.service == APISERVER);
                ensure!(served, "the apiserver sent nothing below {call:?}");
            }
            every_trace_is_one_tree(&traces.spans, executor)?;
            Ok(traces)
        })
        .await
    }

    /// Fails unless the traces are those of a rollout that replaced the pods `before` by the pods `after`. Returns the
    /// number of reconciles.
    pub fn expect_rollout(
        &self,
        daemon_set: &str,
        before: &BTreeSet<String>,
        after: &BTreeSet<String>,
    ) -> Result<usize> {
        ensure!(before.is_disjoint(after), "every pod was replaced");
        let created = self.pods_of(CREATE)?;
        let expected = before.union(after).cloned().collect();
        ensure!(
            sorted(created) == sorted(expected),
            "the creates are not all there"
        );
        let deleted = self.pods_of(DELETE)?;
        let expected = before.iter().cloned().collect();
        ensure!(
            sorted(deleted) == sorted(expected),
            "the deletes are not all there"
        );
        let in_batches = [
            self.actions("nodewise.batch.create_pod"),
            self.actions("nodewise.batch.delete_pod"),
        ];
        let expected = [before.len() + after.len(), before.len()];
        ensure!(
            in_batches == expected,
            "creates and deletes of batches: {in_batches:?}"
        );
        self.expect_calls_in_their_places()?;
        self.expect_reasons(daemon_set)?;
        Ok(self.own(ROOT).count())
    }

    fn own(&self, name: &str) -> impl Iterator<Item = &Span> {
        let (executor, name) = (self.executor.clone(), name.to_owned());
        let mine = move |span: &&Span| span.service == executor && span.name == name;
        self.spans.iter().filter(mine)
    }

    /// The names of the pods in requests with this span name. Fails if a request failed.
    fn pods_of(&self, name: &str) -> Result<Vec<String>> {
        self.own(name)
            .map(|span| {
                ensure!(span.status == SpanStatus::Unset, "{name} failed: {span:?}");
                let pod = span.attribute("k8s.pod.name").as_str();
                Ok(pod.with_context(|| format!("no pod in {span:?}"))?.to_owned())
            })
            .collect()
    }

    /// The sum of the actions of this kind over all batches.
    fn actions(&self, kind: &str) -> usize {
        let counts = self
            .own("batch")
            .filter_map(|batch| batch.attribute(kind).as_u64());
        usize::try_from(counts.sum::<u64>()).unwrap_or(usize::MAX)
    }

    /// The parent of a span.
    fn parent(&self, span: &Span) -> Result<&Span> {
        self.spans
            .iter()
            .find(|parent| span.is_child_of(parent))
            .with_context(|| format!("nobody is the parent of {span:?}"))
    }

    /// Fails unless each span has the right parent and attributes, for calls to the service and for requests to the
    /// apiserver.
    fn expect_calls_in_their_places(&self) -> Result<()> {
        let is_served = |span: &&Span| span.service == SERVER && span.kind == SpanKind::Server;
        let served: Vec<_> = self.spans.iter().filter(is_served).collect();
        ensure!(served.iter().any(|span| span.name == PLAN), "plans were served");
        for span in served {
            let caller = self.parent(span)?;
            ensure!(
                caller.service == self.executor
                    && caller.kind == SpanKind::Client
                    && caller.name == span.name,
                "{span:?} is below {caller:?}"
            );
            for side in [span, caller] {
                ensure!(side.attribute("rpc.system.name") == "grpc", "{side:?}");
                ensure!(side.attribute("rpc.method") == side.name.as_str(), "{side:?}");
                // After SIGTERM the executor cancels its call for a plan.
                let code = side.attribute("rpc.response.status_code");
                ensure!(code == "OK" || code == "CANCELLED", "{side:?}");
            }
        }
        for call in self.own(CREATE).chain(self.own(DELETE)) {
            ensure!(call.kind == SpanKind::Client, "{call:?}");
            ensure!(call.attribute("http.response.status_code").is_u64(), "{call:?}");
            ensure!(call.attribute("url.template").is_string(), "{call:?}");
            let batch = self.parent(call)?;
            ensure!(
                batch.name == "batch" && batch.attribute("nodewise.phase").is_string(),
                "{batch:?}"
            );
            let apply = self.parent(batch)?;
            ensure!(
                apply.name == "apply" && self.parent(apply)?.name == ROOT,
                "{apply:?}"
            );
        }
        let in_etcd = |span: &&Span| span.service == ETCD && span.kind == SpanKind::Server;
        ensure!(
            self.spans.iter().any(|span| in_etcd(&span)),
            "a pod's way ends in etcd"
        );
        for span in self.spans.iter().filter(in_etcd) {
            ensure!(self.parent(span)?.service == APISERVER, "{span:?}");
        }
        Ok(())
    }

    /// Fails unless each root names its workload, its outcome, its triggers and the reconcile before it.
    fn expect_reasons(&self, daemon_set: &str) -> Result<()> {
        let roots: Vec<_> = self.own(ROOT).collect();
        let (mut links, mut by_pods, mut ended, mut timed) = (0, 0, 0, 0);
        for root in &roots {
            ensure!(root.attribute("k8s.daemonset.name") == daemon_set, "{root:?}");
            ended += usize::from(root.attribute("nodewise.reconcile.outcome").is_string());
            timed += usize::from(root.attribute("nodewise.queue.duration").is_number());
            let triggers = root.events.iter().filter(|event| event.name == "trigger");
            ensure!(triggers.clone().count() <= MOST_TRIGGERS, "{root:?}");
            let resources = triggers.filter_map(|event| event.attributes.get("nodewise.trigger.resource"));
            by_pods += usize::from(resources.into_iter().any(|resource| resource == "pods"));
            for link in &root.links {
                ensure!(link.attributes["nodewise.link"] == "previous", "{link:?}");
                let is_it = |span: &Span| span.span_id == link.span_id && span.trace_id == link.trace_id;
                ensure!(roots.iter().any(|span| is_it(span)), "{link:?} leads nowhere");
                links += 1;
            }
        }
        // SIGTERM may interrupt one reconcile.
        ensure!(ended + 1 >= roots.len(), "{ended} of {} ended", roots.len());
        // Some work queues of client libraries do not report the waiting time.
        ensure!(
            2 * timed >= roots.len(),
            "of {timed} of {} is known how long they waited",
            roots.len()
        );
        // Without a link: the first reconcile of each generation, and reconciles after a plan that found nothing to do.
        ensure!(
            links + 5 > roots.len(),
            "{links} links of {} reconciles",
            roots.len()
        );
        ensure!(
            2 * by_pods >= roots.len() / 2,
            "{by_pods} of {} woken by pods",
            roots.len()
        );
        Ok(())
    }

    /// The first reconcile that deleted a pod.
    pub fn first_that_deletes(&self) -> Result<Span> {
        let deletes = self.own(DELETE).min_by_key(|span| span.start);
        let trace = &deletes.context("none deletes")?.trace_id;
        let root = self.own(ROOT).find(|root| root.trace_id == *trace);
        root.cloned().context("it has a root")
    }

    /// A reconcile as text, one line per span: start after the root, duration, name and service.
    #[must_use]
    pub fn outline(&self, root: &Span) -> String {
        self.outline_of(root, root, 0)
    }

    fn outline_of(&self, root: &Span, span: &Span, depth: usize) -> String {
        let ms = |from: &Span, to: jiff::Timestamp| {
            let span = (to - from.start).total(jiff::Unit::Millisecond);
            span.unwrap_or_default()
        };
        let mut text = format!(
            "{:7.1} {:6.1} ms {}{} ({})\n",
            ms(root, span.start),
            ms(span, span.end),
            "  ".repeat(depth),
            span.name,
            span.service,
        );
        let mut below: Vec<_> = self
            .spans
            .iter()
            .filter(|child| child.is_child_of(span))
            .collect();
        below.sort_by_key(|child| child.start);
        for child in below {
            text.push_str(&self.outline_of(root, child, depth + 1));
        }
        text
    }
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}
