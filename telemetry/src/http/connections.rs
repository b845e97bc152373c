//! The connections of the HTTP port: how many there may be, what they may take, and their end.
//!
//! Who connects is not known here, so whoever comes new finds room, and who has been there longest makes it. A probe is
//! answered within a millisecond of its arrival; connections that are held open, from however many addresses, do not keep it out.

use std::{collections::VecDeque, io, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

/// Most bytes of a request's head: whoever sends more is told so.
const HEAD: usize = 16 << 10;
/// Pause after an error of the listener, such as too many open files: the next attempt would only meet it again.
const PAUSE: Duration = Duration::from_millis(100);

/// What those may take who connect.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// How many connections there may be.
    pub(super) connections: usize,
    /// Longest time until a request's head is there.
    pub(super) asking: Duration,
    /// Longest time of a connection, until its answer has been taken.
    pub(super) whole: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 64,
            asking: Duration::from_secs(2),
            // As long as Prometheus waits for a scrape, unless it is told otherwise.
            whole: Duration::from_secs(10),
        }
    }
}

/// Answers until `shutdown` is cancelled, and then those who are there already.
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
                tracing::warn!(%error, "health and metrics: no connection can be accepted; trying on");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        connections.retain(|connection| !connection.is_finished());
        if connections.len() >= limits.connections {
            tracing::debug!("health and metrics: the oldest connection makes room for a new one");
            connections.pop_front();
        }
        let answering = answer(stream, router.clone(), limits);
        connections.push_back(AbortOnDropHandle::new(tokio::spawn(answering)));
        // In a burst each has a turn before those behind it: what has been asked by then is answered, and not cut off.
        tokio::task::yield_now().await;
    }
    drop(listener);
    for connection in connections {
        // It ends, if only by its time. A panic of its has been told.
        let _ = connection.await;
    }
}

/// Answers one request: a connection that is kept for the next scrape or probe would only take somebody's room.
async fn answer(stream: TcpStream, router: Router, limits: Limits) {
    let answered = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.asking)
        .max_buf_size(HEAD)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let because = match tokio::time::timeout(limits.whole, answered).await {
        Ok(Ok(())) => return,
        Ok(Err(error)) => io::Error::other(error),
        Err(late) => late.into(),
    };
    tracing::debug!(error = %because, "health and metrics: a connection was cut off");
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

    /// Whatever is to happen has happened by then.
    const SOON: Duration = Duration::from_secs(20);
    /// Nothing that a test waits for.
    const NEVER: Duration = Duration::from_hours(1);
    const REQUEST: &[u8] = b"GET /probe HTTP/1.1\r\nhost: here\r\n\r\n";

    fn limits() -> Limits {
        Limits {
            connections: 3,
            asking: NEVER,
            whole: NEVER,
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
            heard(self.say(REQUEST).await).await
        }
    }

    /// All that comes until the other end closes, in order or not.
    async fn heard(mut stream: TcpStream) -> String {
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
        let answer = heard(served.say(&REQUEST.repeat(3)).await).await;
        assert_ok(&answer);
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer:?}");
        assert!(answer.contains("\r\nconnection: close\r\n"), "{answer:?}");
    }

    #[tokio::test]
    async fn who_does_not_ask_is_cut_off() {
        let asking = Duration::from_millis(50);
        let served = start(probed(), Limits { asking, ..limits() }).await;
        for said in [&b""[..], b"GET /probe HTT", b"GET /probe HTTP/1.1\r\nhost: he"] {
            assert_eq!(heard(served.say(said).await).await, "", "{said:?}");
        }
        assert_ok(&served.probe().await);
    }

    #[tokio::test]
    async fn a_long_head_is_refused() {
        let served = start(probed(), limits()).await;
        let head = format!("GET /probe HTTP/1.1\r\nlong: {}", "x".repeat(HEAD));
        // It may be cut off while it speaks, and then does not hear why.
        let mut stream = served.connect().await;
        let _ = stream.write_all(head.as_bytes()).await;
        let answer = heard(stream).await;
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 431 "),
            "{answer:?}"
        );
    }

    // Connections that are held open, as many as there may be or more, keep no probe out: the oldest makes room.
    #[tokio::test]
    async fn who_comes_new_finds_room() {
        let served = start(probed(), limits()).await;
        let mut slow = VecDeque::new();
        for _ in 0..limits().connections {
            slow.push_back(served.say(b"GET /pro").await);
        }
        for _ in 0..20 {
            assert_ok(&served.probe().await);
            slow.push_back(served.say(b"GET /pro").await);
            let oldest = slow.pop_front().expect("there are some");
            assert_eq!(heard(oldest).await, "");
        }
        // Who may stay may still ask.
        assert_ok(&served.probe().await);
        let mut newest = slow.pop_back().expect("there are some");
        newest
            .write_all(b"be HTTP/1.1\r\n\r\n")
            .await
            .expect("it is open");
        assert_ok(&heard(newest).await);
    }

    #[tokio::test]
    async fn who_has_asked_in_a_burst_is_answered() {
        let served = start(probed(), limits()).await;
        // All of them are there before the first one is accepted, since nothing here waits.
        let mut asked = Vec::new();
        for _ in 0..50 {
            let stream = std::net::TcpStream::connect(served.address).expect("a connection");
            io::Write::write_all(&mut &stream, REQUEST).expect("it is open");
            stream.set_nonblocking(true).expect("a socket");
            asked.push(stream);
        }
        for stream in asked {
            assert_ok(&heard(TcpStream::from_std(stream).expect("a socket")).await);
        }
    }

    // Also: who is there already when the end comes is still answered, or cut off by its time.
    #[tokio::test]
    async fn an_answer_that_nobody_takes_is_cut_off() {
        let whole = Duration::from_millis(50);
        let (asked, mut was_asked) = mpsc::unbounded_channel();
        // More than the buffers of both ends hold.
        let long = move || {
            let _ = asked.send(());
            "x".repeat(64 << 20)
        };
        let router = Router::new().route("/probe", get(async move || long()));
        let served = start(router, Limits { whole, ..limits() }).await;
        let _unread = served.say(REQUEST).await;
        timeout(SOON, was_asked.recv()).await.expect("it asked");
        served.shutdown.cancel();
        let ended = timeout(SOON, served.task).await.expect("nothing is left");
        ended.expect("no panic");
    }

    #[tokio::test]
    async fn ends_after_the_last_answer() {
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
        // The listener is closed while the answer is still awaited.
        let closed = async { while TcpStream::connect(served.address).await.is_ok() {} };
        timeout(SOON, closed).await.expect("nobody else is let in");
        assert!(!served.task.is_finished());
        go_on.cancel();
        assert_ok(&heard(asking).await);
        let ended = timeout(SOON, served.task).await.expect("it ends");
        ended.expect("no panic");
    }
}
