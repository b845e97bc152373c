//! The backend of the Collector, which keeps the spans.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use tokio::sync::oneshot;
use tonic::transport::server::{Server, TcpIncoming};
use tonic::{Code, Request, Response, Status};

use super::span::{self, Span};

/// The largest message from the Collector, in bytes. It is larger than the messages that the Collector accepts.
const MESSAGE_LIMIT: usize = 64 << 20;

/// Accepts spans over OTLP until it is dropped.
///
/// It runs on its own thread, so that a test that blocks its runtime does not block the Collector.
#[derive(Debug)]
pub(super) struct Sink {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    spans: Mutex<Vec<Span>>,
    refusal: Mutex<Option<Code>>,
}

impl Sink {
    pub(super) fn start() -> Result<Self> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("listening for the Collector's spans")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let shared = Arc::<Shared>::default();
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("starting a runtime for the Collector's spans")?;
        let receiver = Receiver(Arc::clone(&shared));
        let thread = thread::Builder::new()
            .name("collector-sink".to_owned())
            .spawn(move || runtime.block_on(serve(listener, receiver, stopped)))
            .context("starting a thread for the Collector's spans")?;
        Ok(Self {
            address,
            shared,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn spans(&self) -> Vec<Span> {
        lock(&self.shared.spans).clone()
    }

    /// With a code, answers each export with this code and drops the spans. With `None`, accepts spans again.
    pub(super) fn refuse(&self, code: Option<Code>) {
        *lock(&self.shared.refusal) = code;
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has already failed the test.
            let _ = thread.join();
        }
    }
}

/// Serves until `stopped` completes, then returns without a graceful shutdown: a paused Collector would never close its
/// connections.
async fn serve(listener: TcpListener, receiver: Receiver, stopped: oneshot::Receiver<()>) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("a listener that does not block");
    let service = TraceServiceServer::new(receiver).max_decoding_message_size(MESSAGE_LIMIT);
    let serving = Server::builder()
        .add_service(service)
        .serve_with_incoming(TcpIncoming::from(listener));
    tokio::select! {
        result = serving => result.expect("the loopback interface serves"),
        _ = stopped => {}
    }
}

struct Receiver(Arc<Shared>);

#[tonic::async_trait]
impl TraceService for Receiver {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        if let Some(code) = *lock(&self.0.refusal) {
            return Err(Status::new(code, "the test lets no spans in"));
        }
        lock(&self.0.spans).extend(span::read(request.into_inner()));
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
