//! Follows one workload with watches, and computes its status again after each change.

use anyhow::Context as _;
use kube::Client;
use nodewise_proto::v1;

use super::args::RolloutStatusArgs;
use crate::{
    engine::Engine,
    input::{Cluster, Follower, Served, connect},
    kind::Kind,
    request::RequestFactory,
    view,
    watches::{AGAIN, Tick, Watches},
};

/// What `Rollout::next` returns.
pub(super) enum News {
    Status(Box<v1::WorkloadStatus>),
    /// A watch failed. It is tried again.
    Problem(String),
    /// The watches work again.
    Recovered,
}

/// One workload, and the watches of what its status is computed from.
pub(super) struct Rollout<'a> {
    args: &'a RolloutStatusArgs,
    pub(super) engine: &'a Engine,
    pub(super) client: Client,
    /// The URL of the apiserver.
    pub(super) url: String,
    watches: Watches,
    kind: Kind,
    namespace: String,
    name: String,
}

impl<'a> Rollout<'a> {
    pub(super) async fn start(
        args: &'a RolloutStatusArgs,
        engine: &'a Engine,
        workload: &Served,
    ) -> anyhow::Result<Self> {
        let source = &args.source;
        let (client, url) = connect(source.kubeconfig.as_deref(), source.context.as_deref()).await?;
        let namespaces = std::slice::from_ref(&workload.namespace);
        let follower = Follower::start(&client, &url, &[workload.kind], namespaces);
        Ok(Self {
            args,
            engine,
            watches: Watches::new(follower),
            client,
            url: url.to_string(),
            kind: workload.kind,
            namespace: workload.namespace.clone(),
            name: workload.name.clone(),
        })
    }

    /// The next status: after events, or after a while without one. May be cancelled: no event is lost.
    ///
    /// # Errors
    /// The workload is gone, or the cluster or the service refuses.
    pub(super) async fn next(&mut self) -> anyhow::Result<News> {
        Ok(match self.watches.next().await? {
            Tick::Due => {
                let status = Box::new(self.status().await?);
                self.watches.computed(AGAIN);
                News::Status(status)
            }
            Tick::Problem(problem) => News::Problem(problem),
            Tick::Recovered => News::Recovered,
        })
    }

    /// The objects, as the watches show them.
    pub(super) fn cluster(&self) -> &Cluster {
        &self.watches.follower.cluster
    }

    /// The workload.
    ///
    /// # Errors
    /// It was deleted.
    pub(super) fn workload(&self) -> anyhow::Result<&Served> {
        let mut found = self.cluster().workloads_in(self.kind, &self.namespace);
        let (kind, namespace, name) = (self.kind.name(), &self.namespace, &self.name);
        found
            .find(|one| one.name == *name)
            .with_context(|| format!("{kind} {namespace}/{name} was deleted"))
    }

    /// Builds the requests to the service.
    pub(super) fn requests(&self) -> RequestFactory<'_> {
        RequestFactory::new(self.cluster(), &self.args.engine)
    }

    async fn status(&self) -> anyhow::Result<v1::WorkloadStatus> {
        let (cluster, workload) = (self.cluster(), self.workload()?);
        let requests = self.requests();
        let source = view::Source {
            cluster,
            engine: self.engine,
            requests: &requests,
        };
        source.status_with_events(workload, &self.client).await
    }
}
