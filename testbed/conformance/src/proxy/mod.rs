//! A proxy between executor and service that logs calls and can inject faults.
//!
//! It forwards the bytes of each message of any gRPC method unchanged, so that fields unknown to this crate survive; it
//! decodes a copy for its log. One [`Fault`] at a time may be active, for all calls of `ReconcileService` or for each
//! n-th call. Calls of other services (health, reflection) always pass, unless the proxy is cut.

mod connection;
mod fault;
mod forward;
mod log;

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use nodewise_proto::v1;
use prost::Message as _;
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use tonic::transport::{Channel, Endpoint};

pub use fault::{Fault, Rewrite};
pub use log::{Call, Mark, Method};

/// A running proxy in front of one server. It ends when dropped, with all its connections.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

/// The state that all connections share.
#[derive(Debug)]
struct Shared {
    server: Channel,
    state: Mutex<State>,
    log: log::Log,
    /// The number of calls, and questions on streams, that could have met a fault.
    counted: AtomicU64,
    refused: AtomicUsize,
}

#[derive(Debug)]
struct State {
    fault: Option<(Fault, u64)>,
    /// The change to each plan on its way to the executor.
    rewrite: Option<Rewrite>,
    /// Whether new connections are reset at once.
    cut: bool,
    /// Cancelled by [`FaultProxy::cut`].
    connections: CancellationToken,
}

impl FaultProxy {
    /// Starts a proxy to the server at `to`, on a free port, without a fault.
    pub async fn to(to: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("a free port")?;
        let address = listener.local_addr()?;
        // The channel connects at the first call, and reconnects when the server is back.
        let server = Endpoint::from_shared(format!("http://{to}"))?.connect_lazy();
        let shared = Arc::new(Shared {
            server,
            state: Mutex::new(State {
                fault: None,
                rewrite: None,
                cut: false,
                connections: CancellationToken::new(),
            }),
            log: log::Log::default(),
            counted: AtomicU64::new(0),
            refused: AtomicUsize::new(0),
        });
        let accepting = tokio::spawn(connection::accept(listener, Arc::clone(&shared)));
        Ok(Self {
            address,
            shared,
            accepting,
        })
    }

    /// The address that it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same as a URL for executors.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on every `every`-th call meets this fault (1: every call), and the others do not.
    pub fn fault(&self, fault: Fault, every: u64) {
        self.shared.state().fault = Some((fault, every.max(1)));
    }

    /// From now on `rewrite` changes each plan before the executor gets it.
    pub fn rewrite(&self, rewrite: impl Fn(&mut v1::Plan) + Send + Sync + 'static) {
        self.shared.state().rewrite = Some(Rewrite::new(rewrite));
    }

    /// Removes fault, rewrite and cut.
    pub fn heal(&self) {
        let mut state = self.shared.state();
        state.fault = None;
        state.rewrite = None;
        state.cut = false;
    }

    /// Resets all connections, and from now on each new connection at once.
    pub fn cut(&self) {
        let mut state = self.shared.state();
        state.cut = true;
        std::mem::take(&mut state.connections).cancel();
    }

    /// How many new connections were reset at once.
    #[must_use]
    pub fn refused(&self) -> usize {
        self.shared.refused.load(Ordering::Relaxed)
    }

    /// The present position in the log, for [`FaultProxy::calls_since`].
    #[must_use]
    pub fn mark(&self) -> Mark {
        self.shared.log.mark()
    }

    /// All calls of `ReconcileService` that ended since then.
    #[must_use]
    pub fn calls_since(&self, mark: Mark) -> Vec<Call> {
        self.shared.log.since(mark)
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.shared.state().connections.cancel();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The response after the rewrite.
    fn rewritten(&self, answer: Bytes) -> Bytes {
        let Some(rewrite) = self.state().rewrite.clone() else {
            return answer;
        };
        let Ok(mut response) = v1::PlanResponse::decode(answer.clone()) else {
            return answer;
        };
        response.plan.iter_mut().for_each(|plan| rewrite.apply(plan));
        response.encode_to_vec().into()
    }

    /// The fault that the next call meets, if any.
    fn next_fault(&self) -> Option<Fault> {
        let (fault, every) = self.state().fault?;
        let met = self.counted.fetch_add(1, Ordering::Relaxed) + 1;
        met.is_multiple_of(every).then_some(fault)
    }
}
