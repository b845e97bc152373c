//! Creates the HTTP client for the apiserver.

use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::legacy::{Client as HttpClient, connect::HttpConnector},
    rt::TokioExecutor,
};
use kube::{
    Client, Config,
    client::{Body, ConfigExt as _},
};
use tower::{BoxError, ServiceBuilder};

/// Creates a client like [`Client::try_from`], with three differences: connections use `TCP_NODELAY`, and the client creates no
/// spans of its own and repeats no call.
///
/// An executor decides itself what to do next: a create that timed out may have happened, and a 429 of an eviction says that a
/// PodDisruptionBudget protects the pod. kube would repeat the call up to fifteen times.
///
/// kube leaves Nagle's algorithm on. Then a new TLS connection holds the first request back until the apiserver has
/// acknowledged the end of the handshake, which takes 40 ms. Each concurrent call has a connection of its own (HTTP/1.1), so
/// after a start the first revision and the first pods would be delayed.
///
/// # Errors
/// Fails if the settings cannot be used, for example if certificates cannot be read, or if they name a proxy.
pub fn client(config: Config) -> kube::Result<Client> {
    if config.proxy_url.is_some() {
        // This returns the error that proxies are not supported.
        return Client::try_from(config);
    }
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(tcp())?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(HttpClient::builder(TokioExecutor::new()).build::<_, Body>(connector));
    Ok(Client::new(service, config.default_namespace))
}

fn tcp() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector
}

#[cfg(test)]
mod tests {
    use tower::ServiceExt as _;

    use super::*;

    #[tokio::test]
    async fn connections_use_tcp_nodelay() -> anyhow::Result<()> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let apiserver = format!("https://{}", listener.local_addr()?).parse()?;
        let connection = tcp().oneshot(apiserver).await?;
        assert!(connection.inner().nodelay()?);
        Ok(())
    }

    #[test]
    fn a_proxy_is_refused() {
        let mut config = Config::new(http::Uri::from_static("https://127.0.0.1:6443"));
        config.proxy_url = Some(http::Uri::from_static("http://127.0.0.1:3128"));
        assert!(client(config).is_err());
    }
}
