//! Who may ask.

use std::{fmt, net::SocketAddr, sync::Arc};

use axum::http::{HeaderMap, header, uri::Authority};
use sha2::{Digest as _, Sha256};

use crate::source::{Callers, Problem, Reason, Source};

/// How callers are told apart.
pub enum Access {
    /// One person, on this machine. Who has the token of the session sees what the source shows.
    Session(Session, Arc<dyn Source>),
    /// Each request has a bearer token, and sees what the cluster shows to that token.
    Bearer(Arc<dyn Callers>),
}

/// The session of the person who started the page.
pub struct Session {
    token: String,
    cookie: String,
}

// The token must not be in logs.
impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

impl Session {
    /// A session with a new random token. Cookies are shared by all ports of a host, so the cookie's name has the port.
    #[must_use]
    pub fn new(address: SocketAddr) -> Self {
        use fmt::Write as _;
        let mut token = String::new();
        for byte in rand::random::<[u8; 24]>() {
            // Writing to a String cannot fail.
            let _ = write!(token, "{byte:02x}");
        }
        Self {
            token,
            cookie: format!("nodewise-session-{}", address.port()),
        }
    }

    /// The path and query that begins the session in a browser.
    #[must_use]
    pub fn login_path(&self) -> String {
        format!("/login?token={}", self.token)
    }

    /// The cookie for the browser of whoever knows the token.
    pub(crate) fn login(&self, token: &str) -> Result<String, Problem> {
        if !is_equal(token, &self.token) {
            return Err(unauthorized());
        }
        Ok(format!(
            "{}={}; Path=/; HttpOnly; SameSite=Strict",
            self.cookie, self.token
        ))
    }

    fn knows(&self, headers: &HeaderMap) -> bool {
        let cookies = headers.get_all(header::COOKIE).iter();
        let cookies = cookies.filter_map(|value| value.to_str().ok());
        let mut pairs = cookies
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(name, value)| name == self.cookie && is_equal(value, &self.token))
    }
}

/// Compares digests, so that the time says nothing about the secret.
fn is_equal(given: &str, secret: &str) -> bool {
    Sha256::digest(given) == Sha256::digest(secret)
}

fn unauthorized() -> Problem {
    Problem::new(
        Reason::Unauthorized,
        "the session is over or unknown: open the URL that `nodewise dashboard` has printed",
    )
}

impl Access {
    /// What the page must ask for: `session` or `bearer`.
    pub(crate) fn mode(&self) -> &'static str {
        match self {
            Self::Session(..) => "session",
            Self::Bearer(_) => "bearer",
        }
    }

    /// The source of a request.
    pub(crate) async fn source(&self, headers: &HeaderMap) -> Result<Arc<dyn Source>, Problem> {
        match self {
            Self::Session(session, source) if session.knows(headers) => Ok(Arc::clone(source)),
            Self::Session(..) => Err(unauthorized()),
            Self::Bearer(callers) => {
                let token = bearer(headers).ok_or_else(|| {
                    Problem::new(
                        Reason::Unauthorized,
                        "the request has no bearer token: sign in with a token of the cluster",
                    )
                })?;
                callers.source(token).await
            }
        }
    }
}

/// The bearer token of a request.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Refuses requests for another host, as after DNS rebinding, and requests that another site makes.
pub(crate) fn check_origin(hosts: &[String], headers: &HeaderMap) -> Result<(), Problem> {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let is_ours = |host: &str| hosts.iter().any(|ours| ours.eq_ignore_ascii_case(host));
    if !host.is_some_and(is_ours) {
        return Err(Problem::new(
            Reason::Forbidden,
            format!(
                "the header Host is {}; expected {}",
                host.unwrap_or("missing"),
                hosts.join(" or ")
            ),
        ));
    }
    let foreign = || Problem::new(Reason::Forbidden, "another site must not ask this page");
    if let Some(origin) = headers.get(header::ORIGIN) {
        let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        let authority = origin.and_then(|(_, authority)| authority.parse::<Authority>().ok());
        if !authority.is_some_and(|authority| is_ours(authority.as_str())) {
            return Err(foreign());
        }
    }
    Ok(())
}

/// Whether the browser says that another site made the request. Links from other sites to the page itself are allowed.
pub(crate) fn is_cross_site(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").and_then(|site| site.to_str().ok());
    matches!(site, Some("cross-site" | "same-site"))
}
