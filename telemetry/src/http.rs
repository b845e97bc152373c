//! The HTTP endpoints `/healthz`, `/livez`, `/readyz`, `/metrics` and `/metrics/slis`.

mod checks;
mod connections;
mod plain_text;
mod slis;

use std::{collections::BTreeMap, fmt, io, sync::Arc};

use axum::{
    Router,
    extract::{Path, RawQuery, State},
    http::{HeaderMap, header},
    response::IntoResponse,
    routing::get,
};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

pub use checks::Checks;
use connections::Limits;
use slis::Slis;

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
    let slis = Slis::default();
    let exposed = slis.clone();
    let mut router = Router::new().route("/metrics", get(metrics)).route(
        "/metrics/slis",
        get(async move |headers: HeaderMap| exposition(exposed.encode(), &headers)),
    );
    for (path, page) in health.pages {
        router = router.route(path, get(async move || (page.0)()));
    }
    router
        .nest("/healthz", probe("healthz", &health.live, &slis))
        .nest("/livez", probe("livez", &health.live, &slis))
        .nest("/readyz", probe("readyz", &health.ready, &slis))
        .with_state(health.metrics)
}

/// The routes of one probe: `/` for all checks, and `/NAME` for one check. The results are counted.
fn probe<S: Clone + Send + Sync + 'static>(
    endpoint: &'static str,
    checks: &Checks,
    slis: &Slis,
) -> Router<S> {
    let of_all = (checks.clone(), slis.clone());
    let of_one = of_all.clone();
    let all = async move |RawQuery(query): RawQuery| {
        let (checks, slis) = of_all;
        let verbose = query.is_some_and(|query| query.split(['&', '=']).any(|part| part == "verbose"));
        let results = checks.run();
        for (name, result) in &results {
            slis.count(endpoint, name, result.is_ok());
        }
        checks::answer(endpoint, &results, verbose)
    };
    let one = async move |Path(name): Path<String>| {
        let (checks, slis) = of_one;
        let result = checks.run_one(&name);
        if let Some(result) = &result {
            slis.count(endpoint, &name, result.is_ok());
        }
        checks::answer_one(&name, result)
    };
    Router::new().route("/", get(all)).route("/{check}", get(one))
}

async fn metrics(State(metrics): State<Exposition>, headers: HeaderMap) -> impl IntoResponse {
    exposition((metrics.0)(), &headers)
}

/// Returns OpenMetrics if the `Accept` header names it, as Prometheus does; otherwise the older text format of Prometheus.
fn exposition(text: String, headers: &HeaderMap) -> impl IntoResponse + use<> {
    const OPEN_METRICS: &str = "application/openmetrics-text";
    let mut accepted = headers.get_all(header::ACCEPT).iter();
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
        ask_router(&router(health.clone()), path, accept).await
    }

    async fn ask_router(router: &Router, path: &str, accept: &str) -> (u16, String) {
        let request = Request::get(path).header(header::ACCEPT, accept);
        let request = request.body(Body::empty()).expect("a request");
        let response = router.clone().oneshot(request).await.expect("an answer");
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

    // The router counts the probes, so all requests go to one.
    #[tokio::test]
    async fn the_results_of_probes_are_counted() {
        let health = Health::default();
        health.live.set("good", Ok(()));
        health.ready.set("bad", Err("it broke".to_owned()));
        let router = router(health);
        for path in ["/livez", "/livez/good", "/readyz", "/readyz/none"] {
            ask_router(&router, path, "*/*").await;
        }
        let (_, text) = ask_router(&router, "/metrics/slis", "*/*").await;
        let mut series: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        series.sort_unstable();
        let expected = [
            r#"kubernetes_healthchecks_total{name="bad",type="readyz",status="error"} 1"#,
            r#"kubernetes_healthchecks_total{name="good",type="livez",status="success"} 2"#,
            r#"kubernetes_healthcheck{name="bad",type="readyz"} 0"#,
            r#"kubernetes_healthcheck{name="good",type="livez"} 1"#,
        ];
        assert_eq!(series, expected);
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
