//! The HTTP endpoints `/healthz`, `/livez`, `/readyz` and `/metrics`.

mod connections;
mod plain_text;

use std::{
    collections::BTreeMap,
    fmt,
    fmt::Write as _,
    io,
    sync::{Arc, PoisonError, RwLock},
};

use axum::{
    Router,
    extract::{Path, RawQuery, State},
    http::{HeaderMap, StatusCode, header},
    response::IntoResponse,
    routing::get,
};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use connections::Limits;

type Check = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// Named health checks. A check returns Ok, or the reason why it fails. Clones share the checks.
#[derive(Clone, Default)]
pub struct Checks(Arc<RwLock<BTreeMap<String, Check>>>);

impl Checks {
    /// Without checks: every probe succeeds.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces the check with this name. The check runs at every probe and must not block.
    pub fn add(&self, name: &str, check: impl Fn() -> Result<(), String> + Send + Sync + 'static) {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(name.to_owned(), Arc::new(check));
    }

    /// Adds or replaces the check with this name by a fixed result.
    pub fn set(&self, name: &str, state: Result<(), String>) {
        self.add(name, move || state.clone());
    }

    /// Removes a check.
    pub fn remove(&self, name: &str) {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(name);
    }

    /// The names and reasons of all failing checks, sorted by name.
    #[must_use]
    pub fn failing(&self) -> Vec<(String, String)> {
        self.run()
            .into_iter()
            .filter_map(|(name, result)| result.err().map(|reason| (name, reason)))
            .collect()
    }

    fn run(&self) -> Vec<(String, Result<(), String>)> {
        // Run the checks without the lock, because a check may use these checks.
        let checks = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        checks.into_iter().map(|(name, check)| (name, check())).collect()
    }

    /// The response to a probe: `ok`, or one line per check if any check fails or `verbose` is set.
    fn answer(&self, endpoint: &str, verbose: bool) -> (StatusCode, String) {
        let results = self.run();
        let passed = results.iter().all(|(_, result)| result.is_ok());
        if passed && !verbose {
            return (StatusCode::OK, "ok".to_owned());
        }
        let mut text = String::new();
        if results.is_empty() {
            text.push_str("[+]ping ok\n");
        }
        for (name, result) in results {
            let _ = match result {
                Ok(()) => writeln!(text, "[+]{name} ok"),
                Err(reason) => writeln!(text, "[-]{name} failed: {reason}"),
            };
        }
        let _ = writeln!(
            text,
            "{endpoint} check {}",
            if passed { "passed" } else { "failed" }
        );
        (
            if passed {
                StatusCode::OK
            } else {
                StatusCode::INTERNAL_SERVER_ERROR
            },
            text,
        )
    }

    fn answer_one(&self, name: &str) -> (StatusCode, String) {
        let check = self
            .0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(name)
            .cloned();
        match check.map(|check| check()) {
            Some(Ok(())) => (StatusCode::OK, "ok".to_owned()),
            Some(Err(reason)) => (
                StatusCode::INTERNAL_SERVER_ERROR,
                format!("{name} failed: {reason}\n"),
            ),
            None => (StatusCode::NOT_FOUND, format!("there is no check {name}\n")),
        }
    }
}

impl fmt::Debug for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let checks = self.0.read().unwrap_or_else(PoisonError::into_inner);
        f.debug_list().entries(checks.keys()).finish()
    }
}

/// The content of the HTTP endpoints. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Health {
    /// The checks of `/healthz` and `/livez`. They should fail only if a restart helps.
    pub live: Checks,
    /// The checks of `/readyz`. They fail while the process cannot do its work.
    pub ready: Checks,
    /// The text of `/metrics`.
    pub metrics: Exposition,
    /// Further plain-text pages, by path.
    pub pages: BTreeMap<&'static str, Exposition>,
}

/// A text that is generated for each request. That of `/metrics` must be OpenMetrics 1.0. Clones share it.
#[derive(Clone)]
pub struct Exposition(Arc<dyn Fn() -> String + Send + Sync>);

impl Exposition {
    /// Calls `encode` for each request.
    #[must_use]
    pub fn new(encode: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self(Arc::new(encode))
    }
}

impl Default for Exposition {
    /// No metrics.
    fn default() -> Self {
        Self::new(|| "# EOF\n".to_owned())
    }
}

impl fmt::Debug for Exposition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exposition").finish_non_exhaustive()
    }
}

/// Serves until the returned guard is dropped, and logs the address. The error is that of `local_addr`.
pub fn spawn(listener: TcpListener, health: Health) -> io::Result<DropGuard> {
    let address = listener.local_addr()?;
    tracing::info!(addr = %address, "health and metrics: listening on {address}");
    let end = CancellationToken::new();
    let (router, limits) = (router(health), Limits::default());
    tokio::spawn(connections::serve(listener, router, limits, end.clone()));
    Ok(end.drop_guard())
}

fn router(health: Health) -> Router {
    let mut router = Router::new().route("/metrics", get(metrics));
    for (path, page) in health.pages {
        router = router.route(path, get(async move || (page.0)()));
    }
    router
        .nest("/healthz", probe("healthz", health.live.clone()))
        .nest("/livez", probe("livez", health.live.clone()))
        .nest("/readyz", probe("readyz", health.ready.clone()))
        .with_state(health.metrics)
}

/// The routes of one probe: `/` for all checks, and `/NAME` for one check.
fn probe<S: Clone + Send + Sync + 'static>(endpoint: &'static str, checks: Checks) -> Router<S> {
    let one = checks.clone();
    Router::new()
        .route(
            "/",
            get(move |RawQuery(query): RawQuery| async move {
                let verbose =
                    query.is_some_and(|query| query.split(['&', '=']).any(|part| part == "verbose"));
                checks.answer(endpoint, verbose)
            }),
        )
        .route(
            "/{check}",
            get(move |Path(name): Path<String>| async move { one.answer_one(&name) }),
        )
}

/// Returns OpenMetrics if the `Accept` header names it, as Prometheus does; otherwise the older text format of Prometheus.
async fn metrics(State(metrics): State<Exposition>, headers: HeaderMap) -> impl IntoResponse {
    const OPEN_METRICS: &str = "application/openmetrics-text";
    let mut accepted = headers.get_all(header::ACCEPT).iter();
    let text = (metrics.0)();
    if accepted.any(|types| types.to_str().is_ok_and(|types| types.contains(OPEN_METRICS))) {
        let media_type = format!("{OPEN_METRICS}; version=1.0.0; charset=utf-8");
        ([(header::CONTENT_TYPE, media_type)], text)
    } else {
        let media_type = plain_text::MEDIA_TYPE.to_owned();
        (
            [(header::CONTENT_TYPE, media_type)],
            plain_text::from_open_metrics(&text),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::{body::Body, http::Request};
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpStream,
        time::timeout,
    };
    use tower::ServiceExt as _;

    use super::*;

    /// A timeout that is long enough for any step of a test.
    const SOON: Duration = Duration::from_secs(20);

    async fn ask(health: &Health, path: &str) -> (u16, String) {
        ask_for(health, path, "*/*").await
    }

    async fn ask_for(health: &Health, path: &str, accept: &str) -> (u16, String) {
        let request = Request::get(path).header(header::ACCEPT, accept);
        let request = request.body(Body::empty()).expect("a request");
        let response = router(health.clone()).oneshot(request).await.expect("an answer");
        let status = response.status().as_u16();
        let body = axum::body::to_bytes(response.into_body(), usize::MAX)
            .await
            .expect("a body");
        (status, String::from_utf8(body.to_vec()).expect("text"))
    }

    // The failing check is added at run time. The response has its name and reason.
    #[tokio::test]
    async fn a_failing_check_is_named() {
        let health = Health::default();
        assert_eq!(ask(&health, "/healthz").await, (200, "ok".to_owned()));
        health.live.set("good", Ok(()));
        assert_eq!(ask(&health, "/healthz").await, (200, "ok".to_owned()));
        health.live.set("bad", Err("it broke".to_owned()));
        let expected = "[-]bad failed: it broke\n[+]good ok\nhealthz check failed\n";
        assert_eq!(ask(&health, "/healthz").await, (500, expected.to_owned()));
        assert_eq!(ask(&health, "/livez").await.0, 500);
        assert_eq!(ask(&health, "/healthz/good").await, (200, "ok".to_owned()));
        assert_eq!(
            ask(&health, "/healthz/bad").await,
            (500, "bad failed: it broke\n".to_owned())
        );
        assert_eq!(ask(&health, "/healthz/none").await.0, 404);
    }

    // `?verbose` lists every check, or `ping` if there are none.
    #[tokio::test]
    async fn verbose_lists_all() {
        let health = Health::default();
        assert_eq!(
            ask(&health, "/readyz?verbose").await,
            (200, "[+]ping ok\nreadyz check passed\n".to_owned())
        );
        health.ready.set("caches", Ok(()));
        assert_eq!(
            ask(&health, "/readyz?verbose").await,
            (200, "[+]caches ok\nreadyz check passed\n".to_owned())
        );
        assert_eq!(ask(&health, "/readyz").await, (200, "ok".to_owned()));
    }

    #[tokio::test]
    async fn readiness_does_not_affect_liveness() {
        let health = Health::default();
        health
            .ready
            .set("plan-service", Err("no replica answers".to_owned()));
        assert_eq!(ask(&health, "/readyz").await.0, 500);
        assert_eq!(ask(&health, "/healthz").await.0, 200);
        assert_eq!(
            health.ready.failing(),
            [("plan-service".to_owned(), "no replica answers".to_owned())]
        );
    }

    #[tokio::test]
    async fn metrics_are_served_in_the_accepted_format() {
        const PROMETHEUS: &str =
            "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.4,*/*;q=0.1";
        let health = Health {
            metrics: Exposition::new(|| "a 1\n# EOF\n".to_owned()),
            ..Health::default()
        };
        for (accept, text) in [
            (PROMETHEUS, "a 1\n# EOF\n"),
            ("text/plain", "a 1\n"),
            ("*/*", "a 1\n"),
        ] {
            let answer = ask_for(&health, "/metrics", accept).await;
            assert_eq!(answer, (200, text.to_owned()), "{accept}");
        }
        let nothing = ask_for(&Health::default(), "/metrics", PROMETHEUS).await;
        assert_eq!(nothing, (200, "# EOF\n".to_owned()));
    }

    #[tokio::test]
    async fn serves_until_dropped() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let served = spawn(listener, Health::default()).expect("it has an address");
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        stream
            .write_all(b"GET /healthz HTTP/1.1\r\nhost: here\r\n\r\n")
            .await
            .expect("it is open");
        let mut answer = String::new();
        let closed = timeout(SOON, stream.read_to_string(&mut answer)).await;
        closed.expect("it is closed").expect("text");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer:?}");
        assert!(answer.ends_with("\r\n\r\nok"), "{answer:?}");
        drop(served);
        let closed = async { while TcpStream::connect(address).await.is_ok() {} };
        timeout(SOON, closed).await.expect("new connections are refused");
    }
}
