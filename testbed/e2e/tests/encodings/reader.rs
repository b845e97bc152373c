//! Watches pods and nodes as the executor does, and notes in which encoding the apiserver answers.

use std::sync::{Arc, Mutex};

use anyhow::{Context as _, Result};
use futures::StreamExt as _;
use http::{Request, Response, header};
use kube::client::{Body, ClientBuilder, DynBody};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use nodewise_projection::{Node, Pod};
use nodewise_runtime::event::ClusterEvent;
use nodewise_runtime::watch::{Builder, Watches};
use nodewise_runtime::{Delta, Metrics, Resource};
use nodewise_telemetry::http::Checks;
use nodewise_testbed::ControlPlane;
use tokio::time::timeout;
use tower::ServiceBuilder;

use crate::DEADLINE;

const DAEMON_SETS: Resource = Resource {
    group: "apps",
    version: "v1",
    plural: "daemonsets",
    kind: "DaemonSet",
    is_namespaced: true,
    is_kept_as_served: true,
    page_size: 50,
};

/// What the apiserver answers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Served {
    AsAsked,
    /// A proxy in between drops what clients accept.
    JsonOnly,
}

pub(crate) struct Reader {
    watches: Watches,
    answers: Arc<Mutex<Vec<String>>>,
}

impl Reader {
    pub(crate) async fn start(cluster: &ControlPlane, served: Served) -> Result<Self> {
        let answers = Arc::default();
        let client = client(cluster, served, Arc::clone(&answers)).await?;
        let (checks, metrics) = (Checks::new(), Metrics::new("nodewise-executor"));
        let mut builder = Builder::new(&client, None, &[DAEMON_SETS], &checks, &metrics);
        builder.watch::<Pod>();
        builder.watch::<Node>();
        let watches = builder.finish();
        Ok(Self { watches, answers })
    }

    /// The objects of the first lists, sorted: the order of the two watches is random.
    pub(crate) async fn until_listed(&mut self) -> Result<Vec<String>> {
        let (mut objects, mut lists) = (Vec::new(), 0);
        while lists < 2 {
            match self.next().await? {
                ClusterEvent::PodPage { pods, .. } => objects.extend(pods.iter().map(shown)),
                ClusterEvent::Pods(Delta::Listed { objects: pods, .. }) => {
                    objects.extend(pods.iter().map(shown));
                    lists += 1;
                }
                ClusterEvent::Nodes(Delta::Listed { objects: nodes, .. }) => {
                    objects.extend(nodes.iter().map(shown));
                    lists += 1;
                }
                other => anyhow::bail!("not a list: {other:?}"),
            }
        }
        objects.sort();
        Ok(objects)
    }

    /// The events until each of these objects was seen: first those of pods, then those of nodes.
    pub(crate) async fn until(&mut self, last: &[&str]) -> Result<Vec<String>> {
        let (mut pods, mut nodes, mut missing) = (Vec::new(), Vec::new(), last.to_vec());
        while !missing.is_empty() {
            let event = self.next().await?;
            let text = format!("{event:#?}");
            missing.retain(|name| !text.contains(&format!("name: \"{name}\"")));
            match event {
                ClusterEvent::Pods(_) => pods.push(text),
                ClusterEvent::Nodes(_) => nodes.push(text),
                // The apiserver sends them when it likes.
                ClusterEvent::Bookmark(..) => {}
                other => anyhow::bail!("not a change: {other:?}"),
            }
        }
        pods.extend(nodes);
        Ok(pods)
    }

    async fn next(&mut self) -> Result<ClusterEvent> {
        let event = timeout(DEADLINE, self.watches.next()).await.context("no event")?;
        event.context("the watches have ended")
    }

    /// The Content-Types of all responses so far.
    pub(crate) fn answers(&self) -> Result<Vec<String>> {
        Ok(self.answers.lock().ok().context("a panic")?.clone())
    }
}

fn shown(object: &impl std::fmt::Debug) -> String {
    format!("{object:#?}")
}

async fn client(cluster: &ControlPlane, served: Served, answers: Arc<Mutex<Vec<String>>>) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(cluster.kubeconfig())?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let layers = ServiceBuilder::new()
        .map_request(move |mut request: Request<Body>| {
            if served == Served::JsonOnly {
                request.headers_mut().remove(header::ACCEPT);
            }
            request
        })
        .map_response(move |response: Response<Box<DynBody>>| {
            let content_type = response.headers().get(header::CONTENT_TYPE);
            let content_type = content_type.and_then(|value| value.to_str().ok());
            if let Ok(mut answers) = answers.lock() {
                answers.push(content_type.unwrap_or_default().to_owned());
            }
            response
        });
    Ok(ClientBuilder::try_from(config)?
        .with_layer(&layers.into_inner())
        .build())
}
