//! A way from the executor to the service that can be made bad, and that writes down what passes.
//!
//! It forwards the bytes of each message as they are, for any gRPC method of any kind, so that nothing is lost which this
//! crate does not know; it decodes a copy for its log. One [`Fault`] at a time may be on, for all calls of
//! `ReconcileService` or for each n-th of them. Other services (health, reflection) pass, unless the way is cut.

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

/// A running proxy before one server; ends when dropped, with all its connections.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

/// What all connections have in common.
#[derive(Debug)]
struct Shared {
    server: Channel,
    state: Mutex<State>,
    log: log::Log,
    /// Calls and questions on streams that a fault might have met.
    met: AtomicU64,
    refused: AtomicUsize,
}

#[derive(Debug)]
struct State {
    fault: Option<(Fault, u64)>,
    /// What is made of each plan on its way to the executor.
    rewrite: Option<Rewrite>,
    /// Connections are reset as soon as they are made.
    cut: bool,
    /// Cancelled when the way is cut.
    connections: CancellationToken,
}

impl FaultProxy {
    /// A way to the server at `to`, on a port of its own, without a fault.
    pub async fn to(to: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("a free port")?;
        let address = listener.local_addr()?;
        // It connects when it is used, and again when the server has come back.
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
            met: AtomicU64::new(0),
            refused: AtomicUsize::new(0),
        });
        let accepting = tokio::spawn(connection::accept(listener, Arc::clone(&shared)));
        Ok(Self {
            address,
            shared,
            accepting,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same as executors take it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on this happens to each `every`-th call, and to no other; 1 is every one.
    pub fn fault(&self, fault: Fault, every: u64) {
        self.shared.state().fault = Some((fault, every.max(1)));
    }

    /// From now on the executor gets, in the place of each plan, what this makes of it: the service is a wrong one.
    pub fn rewrite(&self, rewrite: impl Fn(&mut v1::Plan) + Send + Sync + 'static) {
        self.shared.state().rewrite = Some(Rewrite::new(rewrite));
    }

    /// From now on all is well again.
    pub fn heal(&self) {
        let mut state = self.shared.state();
        state.fault = None;
        state.rewrite = None;
        state.cut = false;
    }

    /// Resets all connections, and from now on each one as soon as it is made.
    pub fn cut(&self) {
        let mut state = self.shared.state();
        state.cut = true;
        std::mem::take(&mut state.connections).cancel();
    }

    /// How many connections were reset as soon as they were made.
    #[must_use]
    pub fn refused(&self) -> usize {
        self.shared.refused.load(Ordering::Relaxed)
    }

    /// This moment, for [`FaultProxy::calls_since`].
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

    /// The answer as the executor gets it.
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

    /// What happens to the call that is now there.
    fn next_fault(&self) -> Option<Fault> {
        let (fault, every) = self.state().fault?;
        let met = self.met.fetch_add(1, Ordering::Relaxed) + 1;
        met.is_multiple_of(every).then_some(fault)
    }
}
