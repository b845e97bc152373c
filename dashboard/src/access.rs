//! Who may ask.

use std::{fmt, net::SocketAddr, sync::Arc};

use axum::http::{HeaderMap, header, uri::Authority};
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;

use crate::source::{Callers, Problem, Reason, Source};

/// How callers are told apart.
pub enum Access {
    /// One person, on this machine. Who has the token of the session sees what the source shows.
    Session(Session, Arc<dyn Source>),
    /// Each request has a bearer token, and sees what the cluster shows to that token.
    Bearer(Arc<dyn Callers>),
}

/// The header in which a caller names namespaces, separated by commas.
const NAMESPACES: &str = "nodewise-namespaces";
/// The most namespaces that a caller may name. Each costs watches of its own.
const MAX_NAMESPACES: usize = 16;
/// The longest name of a namespace.
const MAX_NAME: usize = 63;

/// The session of the person who started the page.
pub struct Session {
    /// Signs one browser in. The next one gets another token.
    token: watch::Sender<String>,
    /// The name of the cookie. Cookies are shared by all ports of a host, so the name has the port.
    cookie: String,
    /// The value of the cookie.
    secret: String,
}

// The token and the secret must not be in logs.
impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

impl Session {
    /// A session with new random secrets.
    #[must_use]
    pub fn new(address: SocketAddr) -> Self {
        Self {
            token: watch::Sender::new(random()),
            cookie: format!("nodewise-session-{}", address.port()),
            secret: random(),
        }
    }

    /// The token that signs the next browser in, at [`login_path`]. It changes each time that one is used.
    #[must_use]
    pub fn tokens(&self) -> watch::Receiver<String> {
        self.token.subscribe()
    }

    /// The cookie for the browser of whoever knows the token, which then is used up. `None` if the browser is signed in already.
    pub(crate) fn login(&self, token: &str, headers: &HeaderMap) -> Result<Option<String>, Problem> {
        if self.knows(headers) {
            return Ok(None);
        }
        let is_used = self.token.send_if_modified(|next| {
            let is_next = is_equal(token, next);
            if is_next {
                *next = random();
            }
            is_next
        });
        if !is_used {
            return Err(unauthorized());
        }
        Ok(Some(format!(
            "{}={}; Path=/; HttpOnly; SameSite=Strict",
            self.cookie, self.secret
        )))
    }

    fn knows(&self, headers: &HeaderMap) -> bool {
        let cookies = headers.get_all(header::COOKIE).iter();
        let cookies = cookies.filter_map(|value| value.to_str().ok());
        let mut pairs = cookies
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(name, value)| name == self.cookie && is_equal(value, &self.secret))
    }
}

/// The path and query that begins a session in a browser.
#[must_use]
pub fn login_path(token: &str) -> String {
    format!("/login?token={token}")
}

/// A secret that nobody can guess.
fn random() -> String {
    use fmt::Write as _;
    let mut text = String::new();
    for byte in rand::random::<[u8; 24]>() {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Compares digests, so that the time says nothing about the secret.
fn is_equal(given: &str, secret: &str) -> bool {
    Sha256::digest(given) == Sha256::digest(secret)
}

fn unauthorized() -> Problem {
    Problem::new(
        Reason::Unauthorized,
        "the session is over or unknown, or the URL was used before: open the URL that `nodewise dashboard` has printed last",
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
                callers.source(token, namespaces(headers)?).await
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

/// The namespaces that a caller names, sorted. Empty: all.
fn namespaces(headers: &HeaderMap) -> Result<Vec<String>, Problem> {
    let invalid = |problem: String| {
        let expected = "expected names of namespaces, separated by commas";
        Problem::new(
            Reason::Invalid,
            format!("the header Nodewise-Namespaces {problem}; {expected}"),
        )
    };
    let mut named = Vec::new();
    for value in headers.get_all(NAMESPACES) {
        let value = value.to_str().map_err(|_| invalid("is not ASCII".to_owned()))?;
        for name in value.split(',').map(str::trim) {
            if name.is_empty() {
                continue;
            }
            if !is_label(name) {
                return Err(invalid(format!("has {name:?}")));
            }
            named.push(name.to_owned());
        }
    }
    named.sort_unstable();
    named.dedup();
    if named.len() > MAX_NAMESPACES {
        return Err(invalid(format!(
            "has {} namespaces; at most {MAX_NAMESPACES} are shown",
            named.len()
        )));
    }
    Ok(named)
}

/// Whether a text is a DNS label, as the name of each namespace is.
fn is_label(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(is_inner)
        && !name.starts_with('-')
        && !name.ends_with('-')
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
