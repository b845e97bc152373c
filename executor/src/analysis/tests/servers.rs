//! The servers that are asked in the tests.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::response::Response;
use nodewise_proto::v1::{self, verdict_service_server};
use nodewise_tls::testing::{Authority, write};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinHandle};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{ServerConfig, crypto::ring, pki_types::pem::PemObject};
use tokio_stream::wrappers::TcpListenerStream;

/// A task that ends with the test.
pub(super) struct Task(AbortHandle);

impl<T> From<JoinHandle<T>> for Task {
    fn from(handle: JoinHandle<T>) -> Self {
        Self(handle.abort_handle())
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A call that an HTTP server got.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) path: String,
    pub(super) headers: http::HeaderMap,
    pub(super) body: String,
}

impl Call {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// An HTTP server.
pub(super) struct Http {
    pub(super) address: SocketAddr,
    calls: Arc<Mutex<Vec<Call>>>,
    _task: Task,
}

impl Http {
    /// A server that answers each call with this.
    pub(super) async fn answering(answer: impl Fn() -> Response + Clone + Send + Sync + 'static) -> Self {
        Self::serving(move |_| {
            let answer = answer.clone();
            async move { answer() }
        })
        .await
    }

    /// A server that answers with this status and text.
    pub(super) async fn with(status: u16, text: &str) -> Self {
        let text = text.to_owned();
        Self::answering(move || response(status, Body::from(text.clone()))).await
    }

    /// A server with this handler.
    pub(super) async fn serving<F>(handler: impl Fn(Call) -> F + Clone + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Response> + Send + 'static,
    {
        let (address, listener) = listen().await;
        let calls = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&calls);
        let serve = move |request: Request| {
            let (kept, handler) = (Arc::clone(&kept), handler.clone());
            async move {
                let (head, body) = request.into_parts();
                let body = to_bytes(body, 1 << 20).await.expect("a short body");
                let call = Call {
                    path: head.uri.to_string(),
                    headers: head.headers,
                    body: String::from_utf8_lossy(&body).into_owned(),
                };
                kept.lock().expect("no panic").push(call.clone());
                handler(call).await
            }
        };
        let router = Router::new().fallback(serve);
        let task = tokio::spawn(async move { axum::serve(listener, router).await });
        Self {
            address,
            calls,
            _task: task.into(),
        }
    }

    pub(super) fn calls(&self) -> Vec<Call> {
        self.calls.lock().expect("no panic").clone()
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

pub(super) fn response(status: u16, body: Body) -> Response {
    Response::builder().status(status).body(body).expect("a response")
}

pub(super) async fn listen() -> (SocketAddr, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    (listener.local_addr().expect("an address"), listener)
}

/// What a VerdictService answers.
type Answer = Result<v1::GetVerdictResponse, tonic::Status>;

/// A request to a VerdictService, with its metadata.
pub(super) type Asked = tonic::Request<v1::GetVerdictRequest>;

/// A VerdictService. Without an answer it never answers.
pub(super) struct Verdicts {
    pub(super) address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    _task: Task,
}

struct Service {
    answer: Option<Answer>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

#[tonic::async_trait]
impl verdict_service_server::VerdictService for Service {
    async fn get_verdict(
        &self,
        request: Asked,
    ) -> Result<tonic::Response<v1::GetVerdictResponse>, tonic::Status> {
        self.asked.lock().expect("no panic").push(request);
        match &self.answer {
            Some(answer) => answer.clone().map(tonic::Response::new),
            None => std::future::pending().await,
        }
    }
}

impl Verdicts {
    pub(super) async fn answering(answer: Option<Answer>) -> Self {
        let (address, listener) = listen().await;
        let asked = Arc::new(Mutex::new(Vec::new()));
        let service = verdict_service_server::VerdictServiceServer::new(Service {
            answer,
            asked: Arc::clone(&asked),
        });
        let server = tonic::transport::Server::builder().add_service(service);
        let task = tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
        Self {
            address,
            asked,
            _task: task.into(),
        }
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.asked.lock().expect("no panic"))
    }
}

/// A server that speaks TLS as `localhost`, and passes everything on to another one.
pub(super) struct TlsFront {
    pub(super) port: u16,
    /// The file with its authority.
    pub(super) authority: PathBuf,
    _task: Task,
}

impl TlsFront {
    /// A front that speaks this protocol only (ALPN).
    pub(super) async fn of(server: SocketAddr, protocol: &'static str, folder: &Path) -> Self {
        let authority = Authority::new("authority");
        let issued = authority.issue(&["localhost"]);
        let certificate = PemObject::from_pem_slice(issued.certificate.as_bytes()).expect("a certificate");
        let key = PemObject::from_pem_slice(issued.key.as_bytes()).expect("a key");
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider speaks them")
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .expect("a certificate");
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let (address, listener) = listen().await;
        let pass = async move {
            while let Ok((stream, _)) = listener.accept().await {
                // A client that refuses the certificate is no reason to end.
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    continue;
                };
                let mut server = TcpStream::connect(server).await.expect("the server listens");
                tokio::spawn(async move { tokio::io::copy_bidirectional(&mut stream, &mut server).await });
            }
        };
        Self {
            port: address.port(),
            authority: write(folder, "authority.crt", &authority.pem()),
            _task: tokio::spawn(pass).into(),
        }
    }
}
