//! A server from its first connection to its last.

use std::{future::Future, net::SocketAddr, time::Duration};

use nodewise_proto::v1::reconcile_service_server::SERVICE_NAME;
use nodewise_telemetry::{
    grpc::Traced,
    http::{self, Exposition, Health},
};
use nodewise_tls::server::Acceptor;
use tokio::net::TcpListener;
use tokio_util::{sync::DropGuard, task::AbortOnDropHandle};
use tonic::transport::{Server, server::TcpIncoming};
use tonic_health::ServingStatus;
use tonic_reflection::server::v1::{ServerReflection, ServerReflectionServer};

use crate::{
    ByteSize, config::Config, connection::Connections, gate::Gate, limits::Limits, methods, metrics::Metrics,
    service::Service, size_estimate,
};

/// HTTP/2 flow-control window of a call. A usual snapshot fits, so that its sender never waits for an acknowledgement.
const STREAM_WINDOW: u32 = 4 << 20;
/// HTTP/2 flow-control window of a connection.
const CONNECTION_WINDOW: u32 = 16 << 20;

/// Most bytes of a call's headers: four times what a client with a token and a trace's context sends.
const HEADERS: u32 = 16 << 10;
/// How often the files of certificates are looked at.
const RELOAD: Duration = Duration::from_secs(5);

/// Why a server ended that should not have.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The longest message that is allowed would not be taken.
    #[error(
        "memory for requests: {given} is less than the {needed} that a message of the longest size may take: raise \
         --max-request-memory or lower --max-message-size"
    )]
    RequestMemory {
        /// What there is.
        given: ByteSize,
        /// What there must be.
        needed: ByteSize,
    },
    /// The listener has no address.
    #[error("reading the listener's address: {0}")]
    Address(#[source] std::io::Error),
    /// The contract's descriptors cannot be served.
    #[error("setting up gRPC reflection: {0}")]
    Reflection(#[source] Box<tonic_reflection::server::Error>),
    /// Serving failed.
    #[error("serving: {0}")]
    Transport(#[from] tonic::transport::Error),
}

/// How a server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Every call was answered.
    Drained,
    /// The drain timeout passed first; calls were cut off.
    CutOff,
}

/// Where a server is reached.
#[derive(Debug)]
pub struct Listeners {
    /// gRPC.
    pub grpc: TcpListener,
    /// TLS of these connections, if it is spoken.
    pub tls: Option<Acceptor>,
    /// Health and metrics over HTTP, if they are to be served.
    pub http: Option<TcpListener>,
}

impl From<TcpListener> for Listeners {
    /// gRPC alone, in plain text.
    fn from(grpc: TcpListener) -> Self {
        Self {
            grpc,
            tls: None,
            http: None,
        }
    }
}

/// Serves on `listeners` until `shutdown` completes, then drains: accepts nothing more, answers UNAVAILABLE to new plans,
/// reports NOT_SERVING, and finishes what is in work within [`Config::drain_timeout`].
pub async fn run(
    config: Config,
    listeners: impl Into<Listeners>,
    shutdown: impl Future<Output = ()>,
) -> Result<Ended, Error> {
    let Listeners {
        grpc: listener,
        tls,
        http,
    } = listeners.into();
    let address = listener.local_addr().map_err(Error::Address)?;
    enough_memory(&config)?;
    let service = Service::new(&config);
    let connections = Connections::new(config.max_connections, config.transfer_timeout);
    let metrics = Metrics::new(&service, &connections, tls.clone());
    let _http = http
        .map(|listener| serve_http(listener, &service, metrics.clone()))
        .transpose()?;
    let (health, health_service) = tonic_health::server::health_reporter();
    health.set_service_status("", ServingStatus::Serving).await;
    health
        .set_service_status(SERVICE_NAME, ServingStatus::Serving)
        .await;

    let gate = Gate::new(&service, &config);
    let listening = TcpIncoming::from(listener)
        .with_nodelay(Some(true))
        .with_keepalive(Some(config.keepalive));
    let is_tls = tls.is_some();
    let _reloading = tls.clone().map(|tls| {
        let reloading = async move { tls.keep_reloading(RELOAD).await };
        AbortOnDropHandle::new(tokio::spawn(reloading))
    });
    let incoming = connections.incoming(listening, tls);
    let server = Server::builder()
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(config.max_calls_per_connection)
        .http2_max_header_list_size(HEADERS)
        .http2_keepalive_interval(Some(config.keepalive))
        .http2_keepalive_timeout(Some(config.keepalive))
        // For health and reflection: other calls have ended by then, with better words.
        .timeout(config.longest_call.saturating_add(config.transfer_timeout))
        .add_service(Traced::new(gate, methods::TRACED, metrics.on_end()))
        .add_service(health_service.max_decoding_message_size(Limits::SMALL_MESSAGE_BYTES))
        .add_optional_service(reflection(&config)?)
        .serve_with_incoming_shutdown(incoming, service.draining().clone().cancelled_owned());
    log_listening(address, is_tls);

    tokio::pin!(server);
    tokio::select! {
        ended = &mut server => return ended.map(|()| Ended::Drained).map_err(Error::from),
        () = shutdown => {}
    }
    tracing::info!(timeout = ?config.drain_timeout, "draining");
    health.set_service_status("", ServingStatus::NotServing).await;
    health
        .set_service_status(SERVICE_NAME, ServingStatus::NotServing)
        .await;
    service.drain();
    // Whoever watches the health hears of the end now; a watch that stays open would hold its connection open.
    let mut health = health;
    health.clear_service_status("").await;
    health.clear_service_status(SERVICE_NAME).await;
    if let Ok(ended) = tokio::time::timeout(config.drain_timeout, server).await {
        ended?;
        tracing::info!("drained");
        return Ok(Ended::Drained);
    }
    tracing::warn!("the drain timeout passed; calls are cut off");
    Ok(Ended::CutOff)
}

/// Whether there is memory for every message that is allowed.
fn enough_memory(config: &Config) -> Result<(), Error> {
    let longest = config.max_message_size.as_usize();
    let needed = ByteSize(longest.saturating_add(size_estimate::most(longest)) as u64);
    let given = config.max_request_memory;
    if given < needed {
        return Err(Error::RequestMemory { given, needed });
    }
    Ok(())
}

/// The line that tells programs where the server listens: its form is stable.
fn log_listening(address: SocketAddr, tls: bool) {
    tracing::info!(addr = %address, tls, "listening on {address}");
}

/// Serves health and metrics until the answer is dropped: also while the server drains.
fn serve_http(listener: TcpListener, service: &Service, metrics: Metrics) -> Result<DropGuard, Error> {
    let health = Health {
        metrics: Exposition::new(move || metrics.encode()),
        ..Health::default()
    };
    let draining = service.draining().clone();
    health.ready.add("draining", move || {
        if draining.is_cancelled() {
            Err("the server is about to end".to_owned())
        } else {
            Ok(())
        }
    });
    http::spawn(listener, health).map_err(Error::Address)
}

fn reflection(config: &Config) -> Result<Option<ServerReflectionServer<impl ServerReflection>>, Error> {
    if !config.reflection {
        return Ok(None);
    }
    tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(nodewise_proto::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .map(|service| Some(service.max_decoding_message_size(Limits::SMALL_MESSAGE_BYTES)))
        .map_err(|error| Error::Reflection(Box::new(error)))
}
