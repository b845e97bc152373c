//! Opens connections to a replica, in plain text or over TLS.

use std::io;
use std::time::Duration;

use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use nodewise_tls::client::{Connector, ServerName, TlsStream};
use tonic::transport::{Channel, Endpoint, Uri};
use tower::{Service as _, service_fn};

use super::{CONNECT_TIMEOUT, ClientConfig, ClientError};
use crate::target::{Address, Target};

/// Largest HTTP/2 frame that the service may send, in bytes. Plans with much to do are long.
const FRAME: u32 = 128 << 10;

/// Connects to one replica, over TLS if the address is from an `https://` target. Only `tls` and `plaintext` of the configuration
/// are used.
///
/// # Errors
/// The replica cannot be reached, its certificate is not accepted, or the address would need plain text that `config` does not
/// allow.
pub async fn connect(address: Address, config: &ClientConfig) -> Result<Channel, ClientError> {
    config.check_target(&Target::Fixed(address.clone()))?;
    let tls = config.tls.as_ref();
    let address = match tls {
        Some(tls) => tls.secured(address)?,
        None => address,
    };
    let dial = Dial::to(&address, tls.map(|tls| &tls.connector))?;
    let connected = match dial.tls {
        None => dial.endpoint.connect().await,
        Some(tls) => {
            dial.endpoint
                .connect_with_connector(service_fn(tls.into_connector()))
                .await
        }
    };
    connected.map_err(|source| ClientError::Address { address, source })
}

/// The connection parameters of one replica.
pub(super) struct Dial {
    /// Scheme, host and port, for logs and errors.
    pub(super) url: String,
    endpoint: Endpoint,
    tls: Option<Tls>,
}

#[derive(Clone)]
struct Tls {
    name: ServerName<'static>,
    connector: Connector,
}

impl Dial {
    pub(super) fn to(address: &Address, connector: Option<&Connector>) -> Result<Self, ClientError> {
        // With https:// tonic would start its own TLS. Ours is in the connector, so the endpoint is http://.
        let plain = format!("http://{address}");
        let endpoint = Endpoint::from_shared(plain.clone())
            .map_err(|source| ClientError::Address {
                address: address.clone(),
                source,
            })?
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true)
            .max_frame_size(FRAME)
            .http2_keep_alive_interval(Duration::from_secs(10))
            .keep_alive_timeout(Duration::from_secs(5));
        let Some(name) = address.server_name() else {
            return Ok(Self {
                url: plain,
                endpoint,
                tls: None,
            });
        };
        let url = format!("https://{address}");
        let origin: Uri = url.parse().expect("the same text is a valid http URL");
        let tls = Tls {
            name: ServerName::try_from(name.to_owned())
                .map_err(|_| ClientError::ServerName(name.to_owned()))?,
            connector: connector.cloned().unwrap_or_default(),
        };
        Ok(Self {
            url,
            endpoint: endpoint.origin(origin),
            tls: Some(tls),
        })
    }

    /// A channel that connects at the first call.
    pub(super) fn lazily(self) -> Channel {
        match self.tls {
            None => self.endpoint.connect_lazy(),
            Some(tls) => self
                .endpoint
                .connect_with_connector_lazy(service_fn(tls.into_connector())),
        }
    }
}

impl Tls {
    fn into_connector(self) -> impl FnMut(Uri) -> Connecting + Clone + Send {
        move |replica| Box::pin(self.clone().connect(replica))
    }

    async fn connect(self, replica: Uri) -> io::Result<TokioIo<TlsStream>> {
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        // HttpConnector tries all addresses of a name, as it does for plain text.
        let stream = connector.call(replica).await.map_err(io::Error::other)?;
        Ok(TokioIo::new(
            self.connector.connect(self.name, stream.into_inner()).await?,
        ))
    }
}

type Connecting = futures::future::BoxFuture<'static, io::Result<TokioIo<TlsStream>>>;
