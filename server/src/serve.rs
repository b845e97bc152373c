//! Runs a server: listeners, health, reflection, shutdown and drain.

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
    ByteSize, admission_service::AdmissionService, config::Config, connection::Connections, limits::Limits,
    methods, metrics::Metrics, service::Service, size_estimate,
};

/// HTTP/2 flow-control window of a call, in bytes. A usual snapshot fits, so that its sender never waits for a window update.
const STREAM_WINDOW: u32 = 4 << 20;
/// HTTP/2 flow-control window of a connection, in bytes.
const CONNECTION_WINDOW: u32 = 16 << 20;

/// Largest HTTP/2 frame that a client may send, in bytes. A snapshot of megabytes comes in few frames then. A connection may hold a
/// frame that never ends, without any call: 256 connections take at most 32 MiB so.
const FRAME: u32 = 128 << 10;

/// Most bytes of the headers of a call: four times what a client sends that has a token and a trace context.
const HEADERS: u32 = 16 << 10;
/// How often the server checks whether the TLS files have changed.
const RELOAD: Duration = Duration::from_secs(5);

/// Why a server could not start, or failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The memory for requests is less than the longest allowed message needs.
    #[error(
        "the memory for requests is {given}, but a message of the maximum size may take {needed}: raise \
         --max-request-memory or lower --max-message-size"
    )]
    RequestMemory {
        /// The configured memory.
        given: ByteSize,
        /// The least memory that is needed.
        needed: ByteSize,
    },
    /// The listener has no address.
    #[error("reading the listener's address: {0}")]
    Address(#[source] std::io::Error),
    /// The reflection service cannot be set up.
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
    /// The drain timeout passed first, and the remaining calls were cut off.
    CutOff,
}

/// The listeners of a server.
#[derive(Debug)]
pub struct Listeners {
    /// gRPC.
    pub grpc: TcpListener,
    /// TLS for the gRPC connections; `None` for plain text.
    pub tls: Option<Acceptor>,
    /// Health and metrics over HTTP; `None` if they are not served.
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

/// Serves on `listeners` until `shutdown` completes, then drains: the server accepts no connections, answers new calls with
/// UNAVAILABLE, reports NOT_SERVING, and finishes the calls in progress within [`Config::drain_timeout`].
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

    let admission = AdmissionService::new(&service, &config);
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
        .max_frame_size(FRAME)
        .max_concurrent_streams(config.max_calls_per_connection)
        .http2_max_header_list_size(HEADERS)
        .http2_keepalive_interval(Some(config.keepalive))
        .http2_keepalive_timeout(Some(config.keepalive))
        // For health and reflection. Other calls end earlier, with a better status.
        .timeout(config.longest_call.saturating_add(config.transfer_timeout))
        .add_service(Traced::new(admission, methods::TRACED, metrics.on_end()))
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
    // End the health watches too: an open watch would keep its connection open.
    let mut health = health;
    health.clear_service_status("").await;
    health.clear_service_status(SERVICE_NAME).await;
    if let Ok(ended) = tokio::time::timeout(config.drain_timeout, server).await {
        ended?;
        tracing::info!("drained");
        return Ok(Ended::Drained);
    }
    tracing::warn!("the drain timeout passed; the remaining calls are cancelled");
    Ok(Ended::CutOff)
}

/// Checks that the memory for requests is enough for a message of the maximum size.
fn enough_memory(config: &Config) -> Result<(), Error> {
    let longest = config.max_message_size.as_usize();
    let needed = ByteSize(longest.saturating_add(size_estimate::most(longest)) as u64);
    let given = config.max_request_memory;
    if given < needed {
        return Err(Error::RequestMemory { given, needed });
    }
    Ok(())
}

/// Logs the address. Programs parse this line, so its form is stable.
fn log_listening(address: SocketAddr, tls: bool) {
    tracing::info!(addr = %address, tls, "listening on {address}");
}

/// Serves health and metrics until the returned guard is dropped, also while the server drains.
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
