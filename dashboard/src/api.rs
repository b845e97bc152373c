//! The handlers of the API. They only read.

use std::{convert::Infallible, sync::Arc};

use axum::{
    Json,
    body::Body,
    extract::{Query, State, rejection::JsonRejection},
    http::{HeaderMap, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::StreamExt as _;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::{
    board::Key,
    changes::Detail,
    events,
    shared::Shared,
    source::{Change, Comparison, Problem, Reason, Source},
};

/// The most steps that wait for a slow browser.
const WAITING_STEPS: usize = 64;

/// The query of `/api/v1/events`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventsQuery {
    kind: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    node: Option<String>,
}

impl EventsQuery {
    fn detail(self) -> Result<Detail, Problem> {
        match (self.kind, self.namespace, self.name, self.node) {
            (None, None, None, None) => Ok(Detail::None),
            (None, None, None, Some(node)) => Ok(Detail::Node(node)),
            (Some(kind), Some(namespace), Some(name), None) => Ok(Detail::Workload(Key {
                kind,
                namespace,
                name,
            })),
            _ => Err(Problem::new(
                Reason::Invalid,
                "expected kind, namespace and name, or node, or nothing",
            )),
        }
    }
}

/// How the page must sign in, and whether this request is.
pub(crate) async fn session(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
) -> Result<Json<Value>, Response> {
    let mode = shared.access.mode();
    match shared.access.source(&headers).await {
        Ok(_) => Ok(Json(json!({ "mode": mode }))),
        Err(problem) => {
            let message = problem.message.clone();
            let (parts, _) = problem.into_response().into_parts();
            Err((parts.status, Json(json!({ "mode": mode, "error": message }))).into_response())
        }
    }
}

/// The live data.
pub(crate) async fn stream(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let source = shared.access.source(&headers).await?;
    let end = shared.end.clone();
    Ok(events::stream(source, query.detail()?, end.cancelled_owned()).into_response())
}

/// The query of `/api/v1/diff`.
#[derive(Debug, Deserialize)]
pub(crate) struct DiffQuery {
    #[serde(flatten)]
    key: Key,
    from: Option<String>,
    to: Option<String>,
}

/// The difference of two templates.
pub(crate) async fn diff(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<DiffQuery>,
    headers: HeaderMap,
) -> Result<Json<Comparison>, Problem> {
    let source = shared.access.source(&headers).await?;
    let number = |name: &str, text: Option<String>| {
        text.map(|text| {
            text.parse().map_err(|_| {
                Problem::new(
                    Reason::Invalid,
                    format!("{name} is {text:?}; expected the number of a revision"),
                )
            })
        })
        .transpose()
    };
    let (from, to) = (number("from", query.from)?, number("to", query.to)?);
    source.compare(query.key, from, to).await.map(Json)
}

/// Plays a change. Each line of the answer is a JSON object; a problem after the first step is a line with `error`.
pub(crate) async fn what_if(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    change: Result<Json<Change>, JsonRejection>,
) -> Result<Response, Problem> {
    let source = shared.access.source(&headers).await?;
    let Json(change) = change.map_err(|error| Problem::new(Reason::Invalid, error.body_text()))?;
    let (sender, mut steps) = mpsc::channel(WAITING_STEPS);
    let end = shared.end.clone();
    let playing = tokio::spawn(async move { play(&*source, change, sender, end).await });
    // The first step comes, or the problem.
    let Some(first) = steps.recv().await else {
        playing
            .await
            .map_err(|_| Problem::new(Reason::Unavailable, "the play has ended without a step"))??;
        return Err(Problem::new(
            Reason::Unavailable,
            "the play has ended without a step",
        ));
    };
    let rest = ReceiverStream::new(steps);
    let last = async move {
        match playing.await {
            Ok(Err(problem)) => Some(json!({ "error": problem.message })),
            _ => None,
        }
    };
    let last = futures::stream::once(last).filter_map(async |last| last);
    let all = futures::stream::once(async { first }).chain(rest).chain(last);
    let lines = all.map(|step| Ok::<_, Infallible>(Bytes::from(format!("{step}\n"))));
    let kind = [(header::CONTENT_TYPE, "application/x-ndjson")];
    Ok((kind, Body::from_stream(lines)).into_response())
}

/// Plays until the end of the play or of the server.
async fn play(
    source: &dyn Source,
    change: Change,
    steps: mpsc::Sender<Value>,
    end: tokio_util::sync::CancellationToken,
) -> Result<(), Problem> {
    tokio::select! {
        played = source.what_if(change, steps) => played,
        () = end.cancelled() => Ok(()),
    }
}
