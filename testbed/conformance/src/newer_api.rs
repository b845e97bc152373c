//! An apiserver of a later version, as far as an executor can tell: a proxy, over real HTTP, before the real apiserver. The
//! templates of the DaemonSets that it serves have fields that today's API types do not know, and so has the data of the
//! revisions that a controller of that version would have written. A test may have it serve something else that is not
//! what today's apiserver makes.
//!
//! A real one would be better and cannot be had: k8s-openapi knows every field of the newest apiserver, alpha ones included.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context as _, Result};
use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{Method, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use futures::{AsyncBufReadExt as _, StreamExt as _, TryStreamExt as _};
use kube::Client;
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

use crate::cluster::{Cluster, EXECUTOR_USER};

/// The most bytes of a request's body, and of an answer that is no watch.
const LIMIT: usize = 64 << 20;

/// A running proxy, which asks the apiserver as the executor; ends when dropped.
#[derive(Debug)]
pub struct NewerApi {
    kubeconfig: PathBuf,
    asked: Arc<Mutex<Vec<Value>>>,
    task: JoinHandle<()>,
}

#[derive(Clone)]
struct Proxy {
    client: Client,
    /// What it makes of each DaemonSet and revision that it serves.
    change: fn(&mut Value),
    /// The bodies of all requests to create pods.
    asked: Arc<Mutex<Vec<Value>>>,
}

/// What a later version might add to a pod template: to the pod, and to each container.
#[must_use]
pub fn later_fields() -> [(&'static str, Value); 2] {
    [
        (
            "laterPlacement",
            json!({ "weight": "1.50Gi", "note": "<&>\u{2028}", "none": {}, "all": [], "off": false }),
        ),
        ("laterProbes", json!([{ "every": 0, "at": "10%" }, { "at": 10 }])),
    ]
}

/// Adds the later fields to a pod template where they are missing.
pub fn add_later_fields(template: &mut Value) {
    let [pod, container] = later_fields();
    let Some(spec) = template.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    spec.entry(pod.0).or_insert(pod.1);
    let containers = spec.get_mut("containers").and_then(Value::as_array_mut);
    for each in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
        each.entry(container.0).or_insert_with(|| container.1.clone());
    }
}

impl NewerApi {
    /// Starts it before a cluster's apiserver.
    pub async fn start(cluster: &Cluster) -> Result<Self> {
        Self::serving(cluster, modernize).await
    }

    /// Starts one that serves each DaemonSet and revision with this change.
    pub async fn serving(cluster: &Cluster, change: fn(&mut Value)) -> Result<Self> {
        let asked = Arc::default();
        let proxy = Proxy {
            client: cluster.plane().client_for(EXECUTOR_USER).await?,
            change,
            asked: Arc::clone(&asked),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let kubeconfig = cluster
            .plane()
            .workdir()
            .path()
            .join(format!("newer-api-{}.kubeconfig", address.port()));
        write_kubeconfig(&kubeconfig, address)?;
        let router = Router::new().fallback(forward).with_state(proxy);
        let task = tokio::spawn(async move {
            // It ends with the task only.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self {
            kubeconfig,
            asked,
            task,
        })
    }

    /// The kubeconfig file with which a client comes here.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The manifests of all pods that somebody asked to be created.
    #[must_use]
    pub fn asked_pods(&self) -> Vec<Value> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for NewerApi {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn write_kubeconfig(path: &Path, server: SocketAddr) -> Result<()> {
    // JSON is YAML, too.
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "newer", "cluster": { "server": format!("http://{server}") } }],
        "users": [{ "name": "anybody", "user": {} }],
        "contexts": [{ "name": "newer", "context": { "cluster": "newer", "user": "anybody" } }],
        "current-context": "newer",
    });
    std::fs::write(path, config.to_string()).with_context(|| format!("writing {}", path.display()))
}

async fn forward(State(proxy): State<Proxy>, request: Request) -> Response {
    match proxy.forward(request).await {
        Ok(response) => response,
        Err(error) => (StatusCode::BAD_GATEWAY, format!("{error:#}")).into_response(),
    }
}

impl Proxy {
    async fn forward(&self, request: Request) -> Result<Response> {
        let (asked, body) = request.into_parts();
        let body = to_bytes(body, LIMIT).await?;
        let path = asked.uri.path();
        if asked.method == Method::POST && path.ends_with("/pods") {
            // Of a pod that is no JSON, such as one as Protobuf, nothing is known; least of all that it has later fields.
            let pod = serde_json::from_slice(&body).unwrap_or_default();
            self.asked
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(pod);
        }
        let newer = ["daemonsets", "controllerrevisions"]
            .iter()
            .any(|plural| path.split('/').any(|part| part == *plural));
        let watch = asked.uri.query().is_some_and(|query| query.contains("watch="));

        let target = asked.uri.path_and_query().context("a path")?.as_str();
        let mut onward = axum::http::Request::builder()
            .method(asked.method.clone())
            .uri(target);
        // Not the others: the client that asks has an identity and a connection of its own.
        if let Some(value) = asked.headers.get(header::CONTENT_TYPE) {
            onward = onward.header(header::CONTENT_TYPE, value);
        }
        match asked.headers.get(header::ACCEPT) {
            // What is changed is read as JSON, which every client takes.
            _ if newer => onward = onward.header(header::ACCEPT, "application/json"),
            Some(value) => onward = onward.header(header::ACCEPT, value),
            None => {}
        }
        let answer = self
            .client
            .send(onward.body(kube::client::Body::from(body))?)
            .await?;
        let (mut parts, body) = answer.into_parts();
        // The length changes, and the connection is another one.
        parts.headers.remove(header::CONTENT_LENGTH);
        parts.headers.remove(header::TRANSFER_ENCODING);
        let body = match (newer, watch) {
            (false, _) => Body::new(body),
            (true, true) => Body::from_stream(changes(Body::new(body), self.change)),
            (true, false) => Body::from(whole(Body::new(body), self.change).await?),
        };
        Ok(Response::from_parts(parts, body))
    }
}

/// A watch: one change per line, each with an object.
fn changes(body: Body, make: fn(&mut Value)) -> impl futures::Stream<Item = std::io::Result<String>> {
    let lines = body
        .into_data_stream()
        .map_err(std::io::Error::other)
        .into_async_read()
        .lines();
    lines.map(move |line| {
        let mut change: Value = serde_json::from_str(&line?)?;
        make(&mut change["object"]);
        Ok(format!("{change}\n"))
    })
}

/// An object or a list of them.
async fn whole(body: Body, change: fn(&mut Value)) -> Result<String> {
    let mut answer: Value = serde_json::from_slice(&to_bytes(body, LIMIT).await?)?;
    match answer.get_mut("items").and_then(Value::as_array_mut) {
        Some(items) => items.iter_mut().for_each(change),
        None => change(&mut answer),
    }
    Ok(answer.to_string())
}

/// Gives a DaemonSet or a revision the later fields.
fn modernize(object: &mut Value) {
    for pointer in ["/spec/template", "/data/spec/template"] {
        if let Some(template) = object.pointer_mut(pointer) {
            add_later_fields(template);
        }
    }
}
