//! The routes, and the server.

use std::{io, net::SocketAddr, sync::Arc};

use axum::{
    Router,
    extract::{DefaultBodyLimit, Query, Request, State},
    http::{HeaderMap, HeaderName, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    access::{Access, check_origin, is_cross_site},
    api,
    assets::{FILES, PAGE},
    shared::Shared,
    source::{Problem, Reason},
};

/// A manifest is at most 1.5 MiB in the apiserver.
const MAX_BODY: usize = 2 << 20;

/// The page loads nothing from elsewhere, has no scripts or styles inside, and is in no frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The paths of the views. The script of the page reads them.
const VIEWS: [&str; 6] = [
    "/",
    "/rollout/{kind}/{namespace}/{name}",
    "/node",
    "/node/{name}",
    "/what-if",
    "/takeover",
];

/// The server of the page.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
}

impl Server {
    /// Listens on an address.
    ///
    /// # Errors
    /// The address is in use, or is not one of this machine.
    pub async fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// The address, with the port that was chosen.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The values of the header Host that lead to this server, if it listens on loopback.
    #[must_use]
    pub fn loopback_hosts(&self) -> Vec<String> {
        let port = self.address.port();
        ["127.0.0.1", "localhost", "[::1]"]
            .map(|host| format!("{host}:{port}"))
            .to_vec()
    }

    /// Serves until `end` is cancelled.
    ///
    /// # Errors
    /// The listener fails.
    pub async fn serve(self, access: Access, hosts: Vec<String>, end: CancellationToken) -> io::Result<()> {
        let router = router(access, hosts, end.clone());
        axum::serve(self.listener, router)
            .with_graceful_shutdown(end.cancelled_owned())
            .await
    }
}

/// The routes of the page, for requests to these hosts.
pub fn router(access: Access, hosts: Vec<String>, end: CancellationToken) -> Router {
    let shared = Arc::new(Shared { access, end, hosts });
    let api = Router::new()
        .route("/session", get(api::session))
        .route("/events", get(api::stream))
        .route("/diff", get(api::diff))
        .route("/what-if", post(api::what_if))
        .fallback(async || Problem::new(Reason::NotFound, "there is no such path in the API"))
        .layer(middleware::from_fn(same_site));
    let mut router = Router::new().nest("/api/v1", api).route("/login", get(login));
    for view in VIEWS {
        router = router.route(view, get(async |headers: HeaderMap| PAGE.response(&headers)));
    }
    for file in &FILES {
        router = router.route(
            file.path,
            get(async move |headers: HeaderMap| file.response(&headers)),
        );
    }
    router
        .route("/healthz", get(async || "ok"))
        .fallback(async || Problem::new(Reason::NotFound, "there is no such page"))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(middleware::from_fn_with_state(Arc::clone(&shared), guard))
        .with_state(shared)
}

/// Checks the host and the origin of each request, and adds what browsers must know to each response.
async fn guard(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    // A kubelet asks for the health by the pod's address.
    let is_probe = request.uri().path() == "/healthz";
    let mut response = match check_origin(&shared.hosts, request.headers()) {
        Err(problem) if !is_probe => problem.into_response(),
        _ => next.run(request).await,
    };
    let fixed = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ];
    for (name, value) in fixed {
        response
            .headers_mut()
            .insert(name, header::HeaderValue::from_static(value));
    }
    response
        .headers_mut()
        .entry(header::CACHE_CONTROL)
        .or_insert(header::HeaderValue::from_static("no-store"));
    response
}

/// Refuses requests to the API that another site makes.
async fn same_site(request: Request, next: Next) -> Response {
    if is_cross_site(request.headers()) {
        return Problem::new(Reason::Forbidden, "another site must not ask this page").into_response();
    }
    next.run(request).await
}

/// The query of `/login`.
#[derive(Deserialize)]
struct Login {
    #[serde(default)]
    token: String,
}

/// Begins the session, and leads to the page, so that the token does not stay in the address bar.
async fn login(
    State(shared): State<Arc<Shared>>,
    Query(login): Query<Login>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Access::Session(session, _) = &shared.access else {
        return Err(Problem::new(Reason::NotFound, "there is no such page"));
    };
    let cookie = session.login(&login.token, &headers)?;
    let cookie = cookie.map(|cookie| [(header::SET_COOKIE, cookie)]);
    let place = [(header::LOCATION, "/")];
    Ok((StatusCode::SEE_OTHER, cookie, place).into_response())
}
