//! An HTTP proxy in front of the real apiserver. It makes the apiserver look different to an executor:
//!
//! * **Later version**: served DaemonSet templates, and the revision data that a controller of that version would have
//!   written, have fields that today's API types do not know. No real apiserver can do this, because k8s-openapi knows
//!   every field of the newest apiserver, including alpha fields. A test may also inject any other change into served
//!   objects.
//! * **Late watches**: watch events of some resources arrive late, as from an overloaded apiserver.
//! * **Lost responses**: some writes are carried out, but the executor gets no response.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, Result};
use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{Method, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use futures::{AsyncBufReadExt as _, StreamExt as _, TryStreamExt as _};
use kube::Client;
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle, time::Instant};

use crate::cluster::{Cluster, EXECUTOR_USER};

/// The largest request body, and the largest response body that is not a watch, in bytes.
const LIMIT: usize = 64 << 20;

/// A running proxy. It uses the executor's identity towards the apiserver, and ends when dropped.
#[derive(Debug)]
pub struct ApiProxy {
    kubeconfig: PathBuf,
    asked: Arc<Mutex<Vec<Value>>>,
    lost: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

#[derive(Clone)]
struct Proxy {
    client: Client,
    difference: Difference,
    /// The bodies of all requests that create a pod.
    asked: Arc<Mutex<Vec<Value>>>,
    /// The number of writes, and of writes whose response was lost.
    writes: Arc<AtomicUsize>,
    lost: Arc<AtomicUsize>,
}

/// How the proxied apiserver differs from the real one.
#[derive(Clone, Copy)]
enum Difference {
    /// A change to each served DaemonSet and revision.
    Objects(fn(&mut Value)),
    /// The resources whose watches are late, and the delay.
    LateWatches(&'static [&'static str], Duration),
    /// The response to every n-th write is lost.
    LostAnswers(usize),
}

/// The fields that a later version might add to a pod template: one to the pod spec, one to each container.
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

impl ApiProxy {
    /// Starts a proxy that looks like a later version of the apiserver.
    pub async fn newer(cluster: &Cluster) -> Result<Self> {
        Self::serving(cluster, modernize).await
    }

    /// Starts a proxy that delays watches of these resources by `delay`.
    pub async fn late(
        cluster: &Cluster,
        resources: &'static [&'static str],
        delay: Duration,
    ) -> Result<Self> {
        Self::start(cluster, Difference::LateWatches(resources, delay)).await
    }

    /// Starts a proxy that carries out every write and answers each `every`-th write with a 504.
    pub async fn losing_answers(cluster: &Cluster, every: usize) -> Result<Self> {
        Self::start(cluster, Difference::LostAnswers(every)).await
    }

    /// Starts a proxy that applies `change` to each served DaemonSet and revision.
    pub async fn serving(cluster: &Cluster, change: fn(&mut Value)) -> Result<Self> {
        Self::start(cluster, Difference::Objects(change)).await
    }

    async fn start(cluster: &Cluster, difference: Difference) -> Result<Self> {
        let (asked, lost) = (Arc::default(), Arc::default());
        let proxy = Proxy {
            client: cluster.plane().client_for(EXECUTOR_USER).await?,
            difference,
            asked: Arc::clone(&asked),
            writes: Arc::default(),
            lost: Arc::clone(&lost),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let kubeconfig = cluster
            .plane()
            .workdir()
            .path()
            .join(format!("api-proxy-{}.kubeconfig", address.port()));
        write_kubeconfig(&kubeconfig, address)?;
        let router = Router::new().fallback(forward).with_state(proxy);
        let task = tokio::spawn(async move {
            // The server runs until the task is aborted.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self {
            kubeconfig,
            asked,
            lost,
            task,
        })
    }

    /// The kubeconfig file of a client that connects to the proxy.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The manifests of all pods in create requests so far.
    #[must_use]
    pub fn requested_pods(&self) -> Vec<Value> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ApiProxy {
    /// The number of lost responses to writes.
    #[must_use]
    pub fn lost_answers(&self) -> usize {
        self.lost.load(Ordering::Relaxed)
    }
}

impl Drop for ApiProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn write_kubeconfig(path: &Path, server: SocketAddr) -> Result<()> {
    // JSON is YAML, too.
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "proxy", "cluster": { "server": format!("http://{server}") } }],
        "users": [{ "name": "anybody", "user": {} }],
        "contexts": [{ "name": "proxy", "context": { "cluster": "proxy", "user": "anybody" } }],
        "current-context": "proxy",
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
            // The proxy cannot read a pod that is not JSON, such as one in Protobuf. Null then stands for the pod,
            // without later fields.
            let pod = serde_json::from_slice(&body).unwrap_or_default();
            self.asked
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(pod);
        }
        let is_of = |plural: &str| path.split('/').any(|part| part == plural);
        let change = match self.difference {
            Difference::Objects(change) if is_of("daemonsets") || is_of("controllerrevisions") => {
                Some(change)
            }
            _ => None,
        };
        let watch = asked.uri.query().is_some_and(|query| query.contains("watch="));
        let late = match self.difference {
            Difference::LateWatches(resources, delay) => {
                let is_late = resources.iter().any(|plural| is_of(plural));
                (watch && is_late).then_some(delay)
            }
            _ => None,
        };

        let target = asked.uri.path_and_query().context("a path")?.as_str();
        let mut onward = axum::http::Request::builder()
            .method(asked.method.clone())
            .uri(target);
        // No other headers: the client behind the proxy has its own identity and connection.
        if let Some(value) = asked.headers.get(header::CONTENT_TYPE) {
            onward = onward.header(header::CONTENT_TYPE, value);
        }
        match asked.headers.get(header::ACCEPT) {
            // The proxy can change JSON only. Every client accepts JSON.
            _ if change.is_some() => onward = onward.header(header::ACCEPT, "application/json"),
            Some(value) => onward = onward.header(header::ACCEPT, value),
            None => {}
        }
        let answer = self
            .client
            .send(onward.body(kube::client::Body::from(body))?)
            .await?;
        let (mut parts, body) = answer.into_parts();
        // The length changes, and the connection is a different one.
        parts.headers.remove(header::CONTENT_LENGTH);
        parts.headers.remove(header::TRANSFER_ENCODING);
        let body = match (change, late) {
            (Some(change), _) if watch => Body::from_stream(changed_events(Body::new(body), change)),
            (Some(change), _) => Body::from(changed_objects(Body::new(body), change).await?),
            (None, Some(delay)) => Body::from_stream(delayed(Body::new(body), delay)),
            (None, None) => Body::new(body),
        };
        if let Difference::LostAnswers(every) = self.difference
            && asked.method != Method::GET
            && (self.writes.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(every)
        {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return Ok(gateway_timeout());
        }
        Ok(Response::from_parts(parts, body))
    }
}

/// The 504 of a gateway that timed out.
fn gateway_timeout() -> Response {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Timeout", "code": 504,
        "message": "a fault: no answer in time", "metadata": {},
    });
    let json = [(header::CONTENT_TYPE, "application/json")];
    (StatusCode::GATEWAY_TIMEOUT, json, status.to_string()).into_response()
}

/// The same bytes, each chunk delayed by `delay`.
fn delayed(body: Body, delay: Duration) -> impl futures::Stream<Item = Result<Bytes, axum::Error>> {
    let (arrive, arrived) = futures::channel::mpsc::unbounded();
    tokio::spawn(async move {
        let mut chunks = body.into_data_stream();
        while let Some(chunk) = chunks.next().await {
            // The receiver may be gone.
            if arrive.unbounded_send((Instant::now() + delay, chunk)).is_err() {
                return;
            }
        }
    });
    arrived.then(|(due, chunk)| async move {
        tokio::time::sleep_until(due).await;
        chunk
    })
}

/// A watch: one JSON event per line, each with an object.
fn changed_events(body: Body, make: fn(&mut Value)) -> impl futures::Stream<Item = std::io::Result<String>> {
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

/// One object, or a list of objects.
async fn changed_objects(body: Body, change: fn(&mut Value)) -> Result<String> {
    let mut answer: Value = serde_json::from_slice(&to_bytes(body, LIMIT).await?)?;
    match answer.get_mut("items").and_then(Value::as_array_mut) {
        Some(items) => items.iter_mut().for_each(change),
        None => change(&mut answer),
    }
    Ok(answer.to_string())
}

/// Adds the later fields to a DaemonSet or a revision.
fn modernize(object: &mut Value) {
    for pointer in ["/spec/template", "/data/spec/template"] {
        if let Some(template) = object.pointer_mut(pointer) {
            add_later_fields(template);
        }
    }
}
