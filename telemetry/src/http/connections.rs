//! The connections of the HTTP port: their number, their time limits, and shutdown.
//!
//! Clients are not authenticated. So a new connection is always accepted, and at the limit the oldest one is closed. Probes are
//! answered within a millisecond, so connections that are held open cannot block them.

use std::{collections::VecDeque, io, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

/// The largest size of a request's head in bytes. A larger one gets status 431.
const HEAD: usize = 16 << 10;
/// The pause after an error of `accept`, such as too many open files, which would repeat at once.
const PAUSE: Duration = Duration::from_millis(100);

/// The limits of connections.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// The number of connections.
    pub(super) connections: usize,
    /// The longest time to receive a request's head.
    pub(super) head_timeout: Duration,
    /// The longest time of a connection, until the client has read the response.
    pub(super) total_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 64,
            head_timeout: Duration::from_secs(2),
            // Prometheus' default scrape timeout.
            total_timeout: Duration::from_secs(10),
        }
    }
}

/// Serves until `shutdown` is cancelled, then waits for the open connections.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    shutdown: CancellationToken,
) {
    // From the oldest to the newest.
    let mut connections = VecDeque::<AbortOnDropHandle<()>>::new();
    while let Some(accepted) = shutdown.run_until_cancelled(listener.accept()).await {
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "health and metrics: no connection can be accepted; retrying");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        connections.retain(|connection| !connection.is_finished());
        if connections.len() >= limits.connections {
            tracing::debug!("health and metrics: closing the oldest connection to accept a new one");
            connections.pop_front();
        }
        let answering = answer(stream, router.clone(), limits);
        connections.push_back(AbortOnDropHandle::new(tokio::spawn(answering)));
        // In a burst of connections, let each one be answered before later ones close it.
        tokio::task::yield_now().await;
    }
    drop(listener);
    for connection in connections {
        // Each connection ends by `total_timeout` at the latest. A panic was logged.
        let _ = connection.await;
    }
}

/// Answers one request and closes the connection. Keep-alive would only use up the limit of connections.
async fn answer(stream: TcpStream, router: Router, limits: Limits) {
    let answered = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        .max_buf_size(HEAD)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let because = match tokio::time::timeout(limits.total_timeout, answered).await {
        Ok(Ok(())) => return,
        Ok(Err(error)) => io::Error::other(error),
        Err(late) => late.into(),
    };
    tracing::debug!(error = %because, "health and metrics: a connection failed");
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use axum::routing::get;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        sync::mpsc,
        task::JoinHandle,
        time::timeout,
    };

    use super::*;

    /// A timeout that is long enough for any step of a test.
    const SOON: Duration = Duration::from_secs(20);
    /// A timeout that no test reaches.
    const NEVER: Duration = Duration::from_hours(1);
    const REQUEST: &[u8] = b"GET /probe HTTP/1.1\r\nhost: here\r\n\r\n";

    fn limits() -> Limits {
        Limits {
            connections: 3,
            head_timeout: NEVER,
            total_timeout: NEVER,
        }
    }

    struct Served {
        address: SocketAddr,
        shutdown: CancellationToken,
        task: JoinHandle<()>,
    }

    async fn start(router: Router, limits: Limits) -> Served {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let shutdown = CancellationToken::new();
        let task = tokio::spawn(serve(listener, router, limits, shutdown.clone()));
        Served {
            address,
            shutdown,
            task,
        }
    }

    fn probed() -> Router {
        Router::new().route("/probe", get(async || "ok"))
    }

    impl Served {
        async fn connect(&self) -> TcpStream {
            TcpStream::connect(self.address).await.expect("a connection")
        }

        async fn say(&self, bytes: &[u8]) -> TcpStream {
            let mut stream = self.connect().await;
            stream.write_all(bytes).await.expect("it is open");
            stream
        }

        async fn probe(&self) -> String {
            read_all(self.say(REQUEST).await).await
        }
    }

    /// Everything that the server sends until it closes the connection, cleanly or not.
    async fn read_all(mut stream: TcpStream) -> String {
        let mut heard = Vec::new();
        let closed = timeout(SOON, stream.read_to_end(&mut heard)).await;
        let _ = closed.expect("it is closed");
        String::from_utf8(heard).expect("text")
    }

    fn assert_ok(answer: &str) {
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer:?}");
        assert!(answer.ends_with("\r\n\r\nok"), "{answer:?}");
    }

    #[tokio::test]
    async fn a_connection_is_for_one_request() {
        let served = start(probed(), limits()).await;
        let answer = read_all(served.say(&REQUEST.repeat(3)).await).await;
        assert_ok(&answer);
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer:?}");
        assert!(answer.contains("\r\nconnection: close\r\n"), "{answer:?}");
    }

    #[tokio::test]
    async fn a_connection_without_a_request_is_closed() {
        let head_timeout = Duration::from_millis(50);
        let served = start(
            probed(),
            Limits {
                head_timeout,
                ..limits()
            },
        )
        .await;
        for said in [&b""[..], b"GET /probe HTT", b"GET /probe HTTP/1.1\r\nhost: he"] {
            assert_eq!(read_all(served.say(said).await).await, "", "{said:?}");
        }
        assert_ok(&served.probe().await);
    }

    #[tokio::test]
    async fn a_long_head_is_refused() {
        let served = start(probed(), limits()).await;
        let head = format!("GET /probe HTTP/1.1\r\nlong: {}", "x".repeat(HEAD));
        // The server may close the connection while the client still writes. Then there is no response.
        let mut stream = served.connect().await;
        let _ = stream.write_all(head.as_bytes()).await;
        let answer = read_all(stream).await;
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 431 "),
            "{answer:?}"
        );
    }

    // Open connections do not block probes, even at the limit: the oldest one is closed.
    #[tokio::test]
    async fn a_new_connection_replaces_the_oldest() {
        let served = start(probed(), limits()).await;
        let mut slow = VecDeque::new();
        for _ in 0..limits().connections {
            slow.push_back(served.say(b"GET /pro").await);
        }
        for _ in 0..20 {
            assert_ok(&served.probe().await);
            slow.push_back(served.say(b"GET /pro").await);
            let oldest = slow.pop_front().expect("there are some");
            assert_eq!(read_all(oldest).await, "");
        }
        // A connection that was not closed can still send its request.
        assert_ok(&served.probe().await);
        let mut newest = slow.pop_back().expect("there are some");
        newest
            .write_all(b"be HTTP/1.1\r\n\r\n")
            .await
            .expect("it is open");
        assert_ok(&read_all(newest).await);
    }

    #[tokio::test]
    async fn all_requests_of_a_burst_are_answered() {
        let served = start(probed(), limits()).await;
        // All of them connect before the first one is accepted, because this loop does not await.
        let mut asked = Vec::new();
        for _ in 0..50 {
            let stream = std::net::TcpStream::connect(served.address).expect("a connection");
            io::Write::write_all(&mut &stream, REQUEST).expect("it is open");
            stream.set_nonblocking(true).expect("a socket");
            asked.push(stream);
        }
        for stream in asked {
            assert_ok(&read_all(TcpStream::from_std(stream).expect("a socket")).await);
        }
    }

    // At shutdown an open connection still ends by its timeout.
    #[tokio::test]
    async fn a_client_that_does_not_read_is_cut_off() {
        let total_timeout = Duration::from_millis(50);
        let (asked, mut was_asked) = mpsc::unbounded_channel();
        // More than fits into the socket buffers.
        let long = move || {
            let _ = asked.send(());
            "x".repeat(64 << 20)
        };
        let router = Router::new().route("/probe", get(async move || long()));
        let served = start(
            router,
            Limits {
                total_timeout,
                ..limits()
            },
        )
        .await;
        let _unread = served.say(REQUEST).await;
        timeout(SOON, was_asked.recv()).await.expect("it asked");
        served.shutdown.cancel();
        let ended = timeout(SOON, served.task).await.expect("nothing is left");
        ended.expect("no panic");
    }

    #[tokio::test]
    async fn shutdown_waits_for_the_last_response() {
        let (asked, mut was_asked) = mpsc::unbounded_channel();
        let go_on = CancellationToken::new();
        let may_answer = go_on.clone();
        let slowly = async move || {
            let _ = asked.send(());
            may_answer.cancelled().await;
            "ok"
        };
        let served = start(Router::new().route("/probe", get(slowly)), limits()).await;
        let asking = served.say(REQUEST).await;
        timeout(SOON, was_asked.recv()).await.expect("it asked");
        served.shutdown.cancel();
        // The listener is closed before the last response is sent.
        let closed = async { while TcpStream::connect(served.address).await.is_ok() {} };
        timeout(SOON, closed).await.expect("new connections are refused");
        assert!(!served.task.is_finished());
        go_on.cancel();
        assert_ok(&read_all(asking).await);
        let ended = timeout(SOON, served.task).await.expect("it ends");
        ended.expect("no panic");
    }
}
