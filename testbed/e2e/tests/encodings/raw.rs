//! Writes what only a client can write that speaks Protobuf, such as texts that are not UTF-8.

use anyhow::{Context as _, Result, ensure};
use http::{Request, header};
use kube::client::Body;
use nodewise_testbed::ControlPlane;
use prost::Message;

use crate::PROTOBUF;

/// The envelope of an object, `runtime.Unknown`.
#[derive(Clone, PartialEq, Message)]
struct Unknown {
    #[prost(bytes, tag = "1")]
    type_meta: Vec<u8>,
    #[prost(bytes, tag = "2")]
    raw: Vec<u8>,
}

/// A condition of a pod or a node.
pub(crate) struct Condition {
    /// The number of the field `conditions` of the status.
    pub(crate) tag: u32,
    pub(crate) kind: &'static str,
    pub(crate) status: &'static str,
    /// The last transition. `None` is the time zero.
    pub(crate) seconds: Option<i64>,
    pub(crate) reason: &'static [u8],
    pub(crate) message: &'static [u8],
}

#[derive(Clone, PartialEq, Message)]
struct ConditionMessage {
    #[prost(bytes, tag = "1")]
    kind: Vec<u8>,
    #[prost(bytes, tag = "2")]
    status: Vec<u8>,
    #[prost(message, optional, tag = "4")]
    last_transition_time: Option<Time>,
    #[prost(bytes, tag = "5")]
    reason: Vec<u8>,
    #[prost(bytes, tag = "6")]
    message: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Time {
    #[prost(int64, optional, tag = "1")]
    seconds: Option<i64>,
}

/// Adds a condition to the status of the object at this path. A message may have its field `status` twice; the apiserver merges them.
pub(crate) async fn append_to_status(
    cluster: &ControlPlane,
    path: &str,
    kind: &str,
    condition: &Condition,
) -> Result<()> {
    let get = Request::get(path).header(header::ACCEPT, PROTOBUF);
    let served = send(cluster, get.body(Body::empty())?).await?;
    let unknown = served.strip_prefix(b"k8s\0").context("an envelope")?;
    let mut unknown = Unknown::decode(unknown)?;
    ensure!(
        String::from_utf8_lossy(&unknown.type_meta).contains(kind),
        "{unknown:?}"
    );
    let message = ConditionMessage {
        kind: condition.kind.into(),
        status: condition.status.into(),
        last_transition_time: Some(Time {
            seconds: condition.seconds,
        }),
        reason: condition.reason.into(),
        message: condition.message.into(),
    };
    let mut status = Vec::new();
    prost::encoding::message::encode(condition.tag, &message, &mut status);
    prost::encoding::bytes::encode(3, &status, &mut unknown.raw);
    let body = [&b"k8s\0"[..], &unknown.encode_to_vec()].concat();
    let put = Request::put(format!("{path}/status"))
        .header(header::CONTENT_TYPE, PROTOBUF)
        .header(header::ACCEPT, PROTOBUF);
    send(cluster, put.body(Body::from(body))?).await.map(drop)
}

async fn send(cluster: &ControlPlane, request: Request<Body>) -> Result<Vec<u8>> {
    let line = format!("{} {}", request.method(), request.uri());
    let response = cluster.client().send(request).await?;
    let status = response.status();
    let body = response.into_body().collect_bytes().await?;
    ensure!(
        status.is_success(),
        "{line}: {status}: {}",
        String::from_utf8_lossy(&body)
    );
    Ok(body.to_vec())
}
