//! What the handlers answer, without a network.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    http::{Request, Response, StatusCode, header},
};
use futures::future::BoxFuture;
use http_body_util::BodyExt as _;
use nodewise_dashboard::{
    Access, Board, Callers, Change, Cluster, Comparison, Key, Line, Problem, Reason, Session, Source,
    Workload, login_path, router,
};
use nodewise_proto::v1;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

const HOST: &str = "127.0.0.1:8090";

/// A source with one DaemonSet.
#[derive(Default)]
struct Fixed(Board);

impl Fixed {
    fn new() -> Arc<Self> {
        let fixed = Self::default();
        fixed.0.set_cluster(Cluster {
            source: "test".to_owned(),
            complete: true,
            ..Cluster::default()
        });
        fixed.0.put(vec![workload(&["n1", "n2"])]);
        Arc::new(fixed)
    }
}

fn workload(nodes: &[&str]) -> Workload {
    let node = |name: &&str| v1::NodeStatus {
        node_name: (*name).to_owned(),
        unit_state: v1::UnitState::Done.into(),
        ..v1::NodeStatus::default()
    };
    Workload {
        status: v1::WorkloadStatus {
            kind: "DaemonSet".to_owned(),
            namespace: "shop".to_owned(),
            name: "agent".to_owned(),
            state: v1::RolloutState::Complete.into(),
            nodes: nodes.iter().map(node).collect(),
            ..v1::WorkloadStatus::default()
        },
        commands: Vec::new(),
        divergence: None,
    }
}

impl Source for Fixed {
    fn board(&self) -> &Board {
        &self.0
    }

    fn compare(
        &self,
        key: Key,
        from: Option<i64>,
        to: Option<i64>,
    ) -> BoxFuture<'_, Result<Comparison, Problem>> {
        Box::pin(async move {
            if key.name != "agent" {
                return Err(Problem::new(
                    Reason::NotFound,
                    format!("there is no {}", key.name),
                ));
            }
            let line = Line {
                sign: '+',
                text: "image: agent:2".to_owned(),
            };
            Ok(Comparison {
                revisions: Vec::new(),
                from,
                to,
                lines: vec![line],
            })
        })
    }

    fn what_if(&self, change: Change, steps: mpsc::Sender<Value>) -> BoxFuture<'_, Result<(), Problem>> {
        Box::pin(async move {
            if change.yaml != "late" {
                return Err(Problem::new(Reason::Invalid, "this is not YAML"));
            }
            let _ = steps.send(json!({ "begin": {} })).await;
            Err(Problem::new(Reason::Invalid, "the planner refuses it"))
        })
    }
}

/// The router of one person, and the tokens that sign browsers in.
fn fresh(source: Arc<Fixed>) -> (Router, watch::Receiver<String>) {
    let address: SocketAddr = HOST.parse().expect("an address");
    let session = Session::new(address);
    let tokens = session.tokens();
    let access = Access::Session(session, source);
    let router = router(access, vec![HOST.to_owned()], CancellationToken::new());
    (router, tokens)
}

/// The router of one person, and the cookie of a browser that is signed in.
async fn app(source: Arc<Fixed>) -> (Router, String) {
    let (router, tokens) = fresh(source);
    let path = login_path(&tokens.borrow());
    let response = send(&router, get(&path, &[])).await;
    let cookie = response.headers()[header::SET_COOKIE].to_str().expect("text");
    let cookie = cookie.split(';').next().expect("a cookie").to_owned();
    (router, cookie)
}

async fn send(router: &Router, request: Request<Body>) -> Response<Body> {
    router.clone().oneshot(request).await.expect("infallible")
}

/// A GET request with these headers, and the header Host.
fn get(path: &str, headers: &[(&str, &str)]) -> Request<Body> {
    let mut request = Request::get(path).header(header::HOST, HOST);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::empty()).expect("a request")
}

async fn text(response: Response<Body>) -> String {
    let body = response.into_body().collect().await.expect("a body");
    String::from_utf8_lossy(&body.to_bytes()).into_owned()
}

#[tokio::test]
async fn requests_for_another_host_are_refused() {
    let (router, cookie) = app(Fixed::new()).await;
    for host in ["evil.example", "127.0.0.1:8091", "127.0.0.1"] {
        for path in ["/", "/api/v1/session", "/login?token=x"] {
            let request = Request::get(path)
                .header(header::HOST, host)
                .header(header::COOKIE, &cookie)
                .body(Body::empty())
                .expect("a request");
            let response = send(&router, request).await;
            assert_eq!(response.status(), StatusCode::FORBIDDEN, "{host} {path}");
            let said = text(response).await;
            assert!(said.contains(host) && said.contains(HOST), "{said}");
        }
    }
    let without = Request::get("/").body(Body::empty()).expect("a request");
    assert_eq!(send(&router, without).await.status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn other_sites_cannot_ask() {
    let (router, cookie) = app(Fixed::new()).await;
    let with = async |name: &str, value: &str, path: &str| {
        send(&router, get(path, &[("cookie", &cookie), (name, value)]))
            .await
            .status()
    };
    for origin in ["http://evil.example", "null", "http://127.0.0.1:9999"] {
        assert_eq!(
            with("origin", origin, "/api/v1/session").await,
            StatusCode::FORBIDDEN,
            "{origin}"
        );
    }
    assert_eq!(
        with("origin", "http://127.0.0.1:8090", "/api/v1/session").await,
        StatusCode::OK
    );
    for site in ["cross-site", "same-site"] {
        assert_eq!(
            with("sec-fetch-site", site, "/api/v1/session").await,
            StatusCode::FORBIDDEN
        );
        assert_eq!(
            with("sec-fetch-site", site, "/takeover").await,
            StatusCode::OK,
            "a link to a view"
        );
    }
    let response = send(&router, get("/api/v1/session", &[("cookie", &cookie)])).await;
    assert!(
        !response
            .headers()
            .keys()
            .any(|name| name.as_str().starts_with("access-control"))
    );
}

#[tokio::test]
async fn a_printed_url_signs_one_browser_in() {
    let (router, tokens) = fresh(Fixed::new());
    let token = tokens.borrow().clone();
    for wrong in ["", "?token=", "?token=0000"] {
        let response = send(&router, get(&format!("/login{wrong}"), &[])).await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        assert!(response.headers().get(header::SET_COOKIE).is_none());
    }
    assert_eq!(*tokens.borrow(), token, "a wrong token uses nothing up");
    let response = send(&router, get(&login_path(&token), &[])).await;
    assert_eq!(response.status(), StatusCode::SEE_OTHER);
    assert_eq!(response.headers()[header::LOCATION], "/");
    let set = response.headers()[header::SET_COOKIE].to_str().expect("text");
    let (cookie, rest) = set.split_once(';').expect("attributes");
    assert_eq!(rest, " Path=/; HttpOnly; SameSite=Strict");
    assert!(cookie.starts_with("nodewise-session-8090="), "{cookie}");
    assert!(!cookie.contains(&token), "the cookie has a secret of its own");

    let again = send(&router, get(&login_path(&token), &[])).await;
    assert_eq!(again.status(), StatusCode::UNAUTHORIZED, "the URL is used up");
    let known = send(&router, get(&login_path(&token), &[("cookie", cookie)])).await;
    assert_eq!(known.status(), StatusCode::SEE_OTHER, "a reload is no problem");
    assert!(known.headers().get(header::SET_COOKIE).is_none());
    let next = tokens.borrow().clone();
    assert_ne!(next, token);
    let other = send(&router, get(&login_path(&next), &[])).await;
    assert_eq!(
        other.status(),
        StatusCode::SEE_OTHER,
        "there is a URL for the next browser"
    );
}

#[tokio::test]
async fn only_a_session_sees_data() {
    let (router, cookie) = app(Fixed::new()).await;
    for path in [
        "/api/v1/session",
        "/api/v1/events",
        "/api/v1/diff?kind=a&namespace=b&name=agent",
    ] {
        for wrong in ["", "nodewise-session-8090=0000", "other=1"] {
            let response = send(&router, get(path, &[("cookie", wrong)])).await;
            assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{path} {wrong}");
        }
        let known = format!("other=1; {cookie}");
        assert_eq!(
            send(&router, get(path, &[("cookie", &known)])).await.status(),
            StatusCode::OK,
            "{path}"
        );
    }
}

#[tokio::test]
async fn views_are_the_page_and_nothing_else_is() {
    let (router, _) = app(Fixed::new()).await;
    let views = [
        "/",
        "/rollout/DaemonSet/shop/agent",
        "/node",
        "/node/n1",
        "/what-if",
        "/takeover",
    ];
    for path in views {
        let response = send(&router, get(path, &[])).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        let header = |name: &str| response.headers()[name].to_str().expect("text").to_owned();
        assert!(header("content-type").starts_with("text/html"));
        let policy = header("content-security-policy");
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self';") && !policy.contains("unsafe"),
            "{policy}"
        );
        assert_eq!(header("x-content-type-options"), "nosniff");
        let tag = header("etag");
        let again = send(&router, get(path, &[("if-none-match", &tag)])).await;
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    }
    for path in [
        "/nothing",
        "/rollout/a",
        "/api/v1/nothing",
        "/api/v2/session",
        "/assets/other.js",
    ] {
        let response = send(&router, get(path, &[])).await;
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
        assert!(text(response).await.starts_with("{\"error\":\"there is no such"));
    }
    let post = Request::post("/")
        .header(header::HOST, HOST)
        .body(Body::empty())
        .expect("a request");
    assert_eq!(send(&router, post).await.status(), StatusCode::METHOD_NOT_ALLOWED);
}

/// Reads a stream until a text has come.
async fn until(body: &mut Body, wanted: &str) -> String {
    let mut all = String::new();
    let reading = async {
        while !all.contains(wanted) {
            let frame = body.frame().await.expect("the stream goes on").expect("a frame");
            let data = frame.into_data().expect("data");
            all.push_str(&String::from_utf8_lossy(&data));
        }
    };
    let read = tokio::time::timeout(Duration::from_secs(10), reading).await;
    assert!(read.is_ok(), "{wanted} has not come: {all}");
    all
}

#[tokio::test]
async fn the_stream_sends_all_and_then_what_changes() {
    let source = Fixed::new();
    let (router, cookie) = app(Arc::clone(&source)).await;
    let path = "/api/v1/events?kind=DaemonSet&namespace=shop&name=agent";
    let response = send(&router, get(path, &[("cookie", &cookie)])).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut body = response.into_body();
    let first = until(&mut body, "event: timeline").await;
    for part in [
        "event: cluster",
        "event: workloads",
        "event: present",
        "\"reset\":true",
        "\"nodeName\":\"n1\"",
        "\"nodeName\":\"n2\"",
    ] {
        assert!(first.contains(part), "{part}: {first}");
    }

    let mut changed = workload(&["n1", "n2"]);
    changed.status.nodes[1].message = "news".to_owned();
    source.0.put(vec![changed]);
    let next = until(&mut body, "news").await;
    assert!(
        next.contains("\"reset\":false") && !next.contains("n1"),
        "only n2 has changed: {next}"
    );

    source.0.retain(|_| false);
    let gone = until(&mut body, "event: present").await;
    assert!(gone.contains("{\"keys\":[]}"), "{gone}");

    source.0.close();
    let end = tokio::time::timeout(Duration::from_secs(10), body.frame()).await;
    assert!(end.expect("the stream ends").is_none());
}

#[tokio::test]
async fn the_stream_of_a_node_has_what_is_on_it() {
    let (router, cookie) = app(Fixed::new()).await;
    let response = send(&router, get("/api/v1/events?node=n2", &[("cookie", &cookie)])).await;
    let data = until(&mut response.into_body(), "event: node").await;
    assert!(
        data.contains("\"name\":\"n2\",\"workloads\":[{\"key\":{\"kind\":\"DaemonSet\""),
        "{data}"
    );
    assert!(!data.contains("n1"), "{data}");
    for query in ["?kind=DaemonSet", "?node=a&kind=b", "?other=1"] {
        let response = send(
            &router,
            get(&format!("/api/v1/events{query}"), &[("cookie", &cookie)]),
        )
        .await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{query}");
    }
}

fn post(cookie: &str, body: &str) -> Request<Body> {
    Request::post("/api/v1/what-if")
        .header(header::HOST, HOST)
        .header(header::COOKIE, cookie)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(body.to_owned()))
        .expect("a request")
}

#[tokio::test]
async fn wrong_changes_get_clear_errors() {
    let (router, cookie) = app(Fixed::new()).await;
    for (body, status, said) in [
        (
            r#"{"yaml": "a: [", "failingShare": 0}"#,
            StatusCode::BAD_REQUEST,
            "this is not YAML",
        ),
        ("{", StatusCode::BAD_REQUEST, "EOF"),
        ("{}", StatusCode::BAD_REQUEST, "missing field `yaml`"),
        (
            r#"{"yaml": "", "other": 1}"#,
            StatusCode::BAD_REQUEST,
            "unknown field `other`",
        ),
        (r#"{"yaml": "late"}"#, StatusCode::OK, "the planner refuses it"),
    ] {
        let response = send(&router, post(&cookie, body)).await;
        assert_eq!(response.status(), status, "{body}");
        let answer = text(response).await;
        assert!(answer.contains(said), "{body}: {answer}");
    }
    let large = format!(r#"{{"yaml": "{}"}}"#, "x".repeat(3 << 20));
    assert_eq!(
        send(&router, post(&cookie, &large)).await.status(),
        StatusCode::BAD_REQUEST
    );
    assert_eq!(
        send(&router, post("", "{}")).await.status(),
        StatusCode::UNAUTHORIZED
    );
}

#[tokio::test]
async fn a_difference_needs_numbers_and_an_object() {
    let (router, cookie) = app(Fixed::new()).await;
    for (query, status, said) in [
        ("name=agent&from=1&to=2", StatusCode::OK, "image: agent:2"),
        (
            "name=agent&from=x",
            StatusCode::BAD_REQUEST,
            "expected the number of a revision",
        ),
        ("name=other", StatusCode::NOT_FOUND, "there is no other"),
    ] {
        let path = format!("/api/v1/diff?kind=DaemonSet&namespace=shop&{query}");
        let response = send(&router, get(&path, &[("cookie", &cookie)])).await;
        assert_eq!(response.status(), status, "{query}");
        let answer = text(response).await;
        assert!(answer.contains(said), "{query}: {answer}");
    }
}

/// Knows one token.
struct OneCaller(Arc<Fixed>);

impl Callers for OneCaller {
    fn source(
        &self,
        token: &str,
        namespaces: Vec<String>,
    ) -> BoxFuture<'_, Result<Arc<dyn Source>, Problem>> {
        let known = token == "secret";
        Box::pin(async move {
            if namespaces.iter().any(|name| name == "payments") {
                return Err(Problem::new(Reason::Forbidden, namespaces.join(" and ")));
            }
            if !known {
                return Err(Problem::new(
                    Reason::Unauthorized,
                    "the cluster does not accept this token",
                ));
            }
            let source: Arc<dyn Source> = self.0.clone();
            Ok(source)
        })
    }
}

#[tokio::test]
async fn with_bearer_tokens_each_request_needs_one() {
    let access = Access::Bearer(Arc::new(OneCaller(Fixed::new())));
    let router = router(access, vec![HOST.to_owned()], CancellationToken::new());
    let many: Vec<String> = (0..17).map(|number| format!("n{number}")).collect();
    let many = many.join(",");
    let status = async |headers: &[(&str, &str)]| {
        let response = send(&router, get("/api/v1/session", headers)).await;
        let status = response.status();
        (status, text(response).await)
    };
    for wrong in ["", "Bearer ", "Bearer other", "Basic secret", "secret"] {
        let (status, said) = status(&[("authorization", wrong)]).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{wrong}");
        assert!(said.contains("\"mode\":\"bearer\""), "{said}");
    }
    assert_eq!(
        status(&[("authorization", "bearer secret")]).await.0,
        StatusCode::OK
    );
    for (named, code, expected) in [
        ("shop", StatusCode::OK, "bearer"),
        (" ", StatusCode::OK, "bearer"),
        ("shop,payments, shop,", StatusCode::FORBIDDEN, "payments and shop"),
        ("shop,Payments", StatusCode::BAD_REQUEST, "Payments"),
        ("-shop", StatusCode::BAD_REQUEST, "expected names of namespaces"),
        ("a/../b", StatusCode::BAD_REQUEST, "expected names of namespaces"),
        (many.as_str(), StatusCode::BAD_REQUEST, "at most 16"),
    ] {
        let headers = [("authorization", "Bearer secret"), ("nodewise-namespaces", named)];
        let (status, said) = status(&headers).await;
        assert_eq!(status, code, "{named}: {said}");
        assert!(said.contains(expected), "{named}: {said}");
    }
    let login = send(&router, get("/login?token=secret", &[])).await;
    assert_eq!(login.status(), StatusCode::NOT_FOUND, "there are no sessions");
    let health = Request::get("/healthz")
        .header(header::HOST, "10.0.0.1:8090")
        .body(Body::empty());
    let health = send(&router, health.expect("a request")).await;
    assert_eq!(health.status(), StatusCode::OK, "a kubelet asks for the health");
}
