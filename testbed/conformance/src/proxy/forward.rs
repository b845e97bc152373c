//! Forwards one call from the executor to the service, and the response back.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use futures::{
    Stream, StreamExt as _,
    channel::mpsc::{UnboundedSender, unbounded},
    stream,
};
use http::uri::PathAndQuery;
use hyper::body::Incoming;
use nodewise_proto::v1::{self, plan_stream_response::Result as PlanResult};
use nodewise_testbed::RawCodec;
use prost::Message as _;
use tokio_util::sync::CancellationToken;
use tonic::{
    Code, Extensions, Request, Response, Status, Streaming, body::Body, codec::CompressionEncoding,
    metadata::MetadataMap,
};
use tower::service_fn;

use super::{
    Fault, Shared,
    log::{self, Method, Question},
};

/// The path prefix of all methods that can meet faults.
const SERVICE: &str = "/nodewise.v1.ReconcileService/";

/// The largest message in bytes; larger than a server accepts.
const LIMIT: usize = 256 << 20;

type Answers = Pin<Box<dyn Stream<Item = Result<Bytes, Status>> + Send>>;

/// One call on a connection that can be reset.
#[derive(Clone)]
struct OneCall {
    shared: Arc<Shared>,
    reset: CancellationToken,
    path: PathAndQuery,
}

pub(super) async fn forward(
    shared: Arc<Shared>,
    reset: CancellationToken,
    request: hyper::Request<Incoming>,
) -> http::Response<Body> {
    let Some(path) = request.uri().path_and_query().cloned() else {
        return Status::unimplemented("no path").into_http();
    };
    let call = OneCall { shared, reset, path };
    // On the wire every gRPC method is a stream of messages in each direction.
    let mut wire = tonic::server::Grpc::new(RawCodec)
        .accept_compressed(CompressionEncoding::Gzip)
        .max_decoding_message_size(LIMIT)
        .max_encoding_message_size(LIMIT);
    wire.streaming(service_fn(move |request| call.clone().take(request)), request)
        .await
}

impl OneCall {
    async fn take(self, request: Request<Streaming<Bytes>>) -> Result<Response<Answers>, Status> {
        let (mut metadata, _, messages) = request.into_parts();
        // The proxy forwards messages uncompressed.
        metadata.remove("grpc-encoding");
        let method = match self.path.as_str().strip_prefix(SERVICE) {
            None => return self.ask(metadata, readable(messages)).await,
            Some("PlanStream") => return self.stream(metadata, messages).await,
            Some("Plan") => Method::Plan,
            Some("Report") => Method::Report,
            Some(_) => Method::Other,
        };
        self.unary(method, metadata, messages).await
    }

    async fn unary(
        &self,
        method: Method,
        metadata: MetadataMap,
        mut messages: Streaming<Bytes>,
    ) -> Result<Response<Answers>, Status> {
        let asked = messages.message().await?.unwrap_or_default();
        let fault = self.shared.next_fault();
        let note = |answer: Result<&Bytes, Code>| self.shared.log.push(log::unary(method, &asked, answer));
        if fault == Some(Fault::ResetBefore) {
            note(Err(Code::Unknown));
            return self.reset_connection().await;
        }
        if fault == Some(Fault::Hang) {
            note(Err(Code::DeadlineExceeded));
            return std::future::pending().await;
        }
        if let Some(status) = fault.and_then(Fault::local_response) {
            note(Err(status.code()));
            return Err(status);
        }
        let mut answer = self.ask_once(&metadata, &asked).await;
        if fault == Some(Fault::Twice) {
            answer = self.ask_once(&metadata, &asked).await;
        }
        if method == Method::Plan {
            answer = answer.map(|(metadata, bytes)| (metadata, self.shared.rewritten(bytes)));
        }
        match fault {
            Some(Fault::ResetAfter) => {
                note(Err(Code::Unknown));
                return self.reset_connection().await;
            }
            Some(Fault::Delay(delay)) => tokio::time::sleep(delay).await,
            _ => {}
        }
        note(answer.as_ref().map(|(_, bytes)| bytes).map_err(Status::code));
        let (metadata, bytes) = answer?;
        let answers: Answers = Box::pin(stream::iter([Ok(bytes)]));
        Ok(Response::from_parts(metadata, answers, Extensions::default()))
    }

    /// Makes a call that has one response.
    async fn ask_once(&self, metadata: &MetadataMap, asked: &Bytes) -> Result<(MetadataMap, Bytes), Status> {
        let question = stream::iter([asked.clone()]);
        let (metadata, mut answers, _) = self.ask(metadata.clone(), question).await?.into_parts();
        let answer = answers.next().await;
        let bytes = answer.unwrap_or_else(|| Err(Status::internal("the service gave no answer")))?;
        // The stream may still end with an error.
        while let Some(more) = answers.next().await {
            more?;
        }
        Ok((metadata, bytes))
    }

    async fn ask(
        &self,
        metadata: MetadataMap,
        messages: impl Stream<Item = Bytes> + Send + 'static,
    ) -> Result<Response<Answers>, Status> {
        let mut client = tonic::client::Grpc::new(self.shared.server.clone())
            .max_decoding_message_size(LIMIT)
            .max_encoding_message_size(LIMIT);
        client
            .ready()
            .await
            .map_err(|error| Status::unavailable(format!("no server behind the proxy: {error}")))?;
        let request = Request::from_parts(metadata, Extensions::default(), messages);
        let answers = client.streaming(request, self.path.clone(), RawCodec).await?;
        Ok(answers.map(|answers| Box::pin(answers) as Answers))
    }

    /// A `PlanStream`. Each question can meet its own fault.
    async fn stream(
        self,
        metadata: MetadataMap,
        messages: Streaming<Bytes>,
    ) -> Result<Response<Answers>, Status> {
        let open_questions = Arc::new(OpenQuestions::default());
        let (asking, noting) = (self.clone(), Arc::clone(&open_questions));
        let (instead, instead_of) = unbounded();
        let questions = readable(messages).filter_map(move |message| {
            let go_on = noting.question(&asking, message, &instead);
            async move { go_on }
        });
        let (metadata, answers, extensions) = self.ask(metadata, questions).await?.into_parts();
        let served = answers.then(move |answer| {
            let (call, open_questions) = (self.clone(), Arc::clone(&open_questions));
            async move { stream::iter(open_questions.answer(&call, answer).await) }
        });
        // The stream ends when the service's stream has ended and no more questions can be rejected.
        let answers = stream::select(served.flatten(), instead_of.map(Ok));
        Ok(Response::from_parts(metadata, Box::pin(answers), extensions))
    }

    /// Resets the connection, with all calls on it.
    async fn reset_connection<T>(&self) -> T {
        self.reset.cancel();
        std::future::pending().await
    }
}

/// The open questions of a stream, by id, with the fault that each meets.
#[derive(Debug, Default)]
struct OpenQuestions(Mutex<HashMap<String, (Option<Fault>, Question)>>);

impl OpenQuestions {
    /// Returns the message if it is to be forwarded to the service.
    fn question(&self, call: &OneCall, message: Bytes, instead: &UnboundedSender<Bytes>) -> Option<Bytes> {
        let asked = v1::PlanStreamRequest::decode(message.clone()).unwrap_or_default();
        let question = asked.request.as_ref().map(Question::of).unwrap_or_default();
        let (fault, log) = (call.shared.next_fault(), &call.shared.log);
        if fault == Some(Fault::ResetBefore) {
            log.push(question.ended(Code::Unknown, None));
            call.reset.cancel();
            return None;
        }
        if fault == Some(Fault::Hang) {
            log.push(question.ended(Code::DeadlineExceeded, None));
            return None;
        }
        if let Some(status) = fault.and_then(Fault::local_response) {
            log.push(question.ended(status.code(), None));
            // The receiver is gone if the stream has just ended.
            let _ = instead.unbounded_send(refusal(asked.id, &status).encode_to_vec().into());
            return None;
        }
        self.open().insert(asked.id, (fault, question));
        Some(message)
    }

    /// The responses that the executor gets for one response of the service.
    async fn answer(&self, call: &OneCall, answer: Result<Bytes, Status>) -> Vec<Result<Bytes, Status>> {
        let Ok(bytes) = answer else {
            return vec![answer];
        };
        let (bytes, answer) = rewritten(&call.shared, bytes);
        let (fault, question) = self.open().remove(&answer.id).unwrap_or_default();
        let (code, plan) = match answer.result {
            Some(PlanResult::Response(response)) => (Code::Ok, response.plan),
            Some(PlanResult::Error(error)) => (Code::from_i32(error.code), None),
            None => (Code::Ok, None),
        };
        let log = &call.shared.log;
        match fault {
            Some(Fault::ResetAfter) => {
                log.push(question.ended(Code::Unknown, None));
                return call.reset_connection().await;
            }
            Some(Fault::Delay(delay)) => tokio::time::sleep(delay).await,
            _ => {}
        }
        log.push(question.ended(code, plan));
        let times = if fault == Some(Fault::Twice) { 2 } else { 1 };
        vec![Ok(bytes); times]
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, (Option<Fault>, Question)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A response on a stream after [`Rewrite`].
fn rewritten(shared: &Shared, bytes: Bytes) -> (Bytes, v1::PlanStreamResponse) {
    let mut answer = v1::PlanStreamResponse::decode(bytes.clone()).unwrap_or_default();
    let Some(PlanResult::Response(response)) = &mut answer.result else {
        return (bytes, answer);
    };
    let sent = Bytes::from(response.encode_to_vec());
    let got = shared.rewritten(sent.clone());
    if got == sent {
        return (bytes, answer);
    }
    *response = v1::PlanResponse::decode(got).unwrap_or_default();
    (answer.encode_to_vec().into(), answer)
}

/// A status as a response on a stream.
fn refusal(id: String, status: &Status) -> v1::PlanStreamResponse {
    let error = v1::CallError {
        code: status.code().into(),
        message: status.message().to_owned(),
        status: status.details().to_vec().into(),
    };
    v1::PlanStreamResponse {
        id,
        result: Some(PlanResult::Error(error)),
    }
}

/// The readable messages. The stream to the service ends at the first unreadable one.
fn readable(messages: Streaming<Bytes>) -> impl Stream<Item = Bytes> + Send + 'static {
    messages.filter_map(|message| std::future::ready(message.ok()))
}
