//! The addresses that policies name.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use http::Uri;
use http::uri::Authority;

/// Whom a policy asks. What is checked is what is called: both use these fields, and no text of the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    /// The host in lower case; an IPv6 address is in brackets.
    pub(super) host: String,
    pub(super) port: u16,
    /// Whether the port is that of the scheme, so that it is not part of the header `Host`.
    is_default_port: bool,
    pub(super) tls: bool,
    /// Path and query; begins with a slash.
    pub(super) path: String,
}

impl Address {
    /// The address of a URL.
    pub(super) fn of_url(url: &str) -> Result<Self, String> {
        let uri = url
            .parse::<Uri>()
            .map_err(|error| format!("{url:?} is no URL: {error}"))?;
        let tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(format!("{url:?} must begin with http:// or https://")),
        };
        let authority = uri.authority().ok_or_else(|| format!("{url:?} names no host"))?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let path = if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("/{path}")
        };
        Self::new(authority, tls, path)
    }

    /// The address of `HOST:PORT`.
    pub(super) fn of_authority(text: &str, tls: bool) -> Result<Self, String> {
        let authority = text
            .parse::<Authority>()
            .map_err(|error| format!("{text:?} is not HOST:PORT: {error}"))?;
        if authority.port().is_none() {
            return Err(format!("{text:?} is not HOST:PORT: it has no port"));
        }
        Self::new(&authority, tls, "/".to_owned())
    }

    fn new(authority: &Authority, tls: bool, path: String) -> Result<Self, String> {
        let host = authority.host().to_ascii_lowercase();
        let scheme_port = if tls { 443 } else { 80 };
        let port = authority.port_u16().unwrap_or(scheme_port);
        // A user, an empty port or one that is no number. Nothing of it may be read differently by anybody.
        let text = authority.as_str().to_ascii_lowercase();
        let is_ipv6 = |host: &str| {
            host.strip_suffix(']')
                .is_some_and(|host| host.parse::<Ipv6Addr>().is_ok())
        };
        let is_host = !host.is_empty() && host.strip_prefix('[').is_none_or(is_ipv6);
        if !is_host || port == 0 || (text != host && text != format!("{host}:{port}")) {
            return Err(format!("{text:?} is neither HOST nor HOST:PORT"));
        }
        Ok(Self {
            host,
            port,
            is_default_port: port == scheme_port,
            tls,
            path,
        })
    }

    /// The host without the brackets of an IPv6 address.
    pub(super) fn bare_host(&self) -> &str {
        let inner = self
            .host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        inner.unwrap_or(&self.host)
    }

    /// Whether the host is this machine, whatever a name server says.
    pub(super) fn is_loopback(&self) -> bool {
        let address = self.bare_host().parse::<IpAddr>();
        self.host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }

    /// The value of the header `Host`.
    pub(super) fn host_header(&self) -> String {
        if self.is_default_port {
            self.host.clone()
        } else {
            self.to_string()
        }
    }
}

/// `HOST:PORT`. Paths and queries may have secrets.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The other parts of addresses, and what is refused, are in the vectors that the tests of `hosts` read.
    #[test]
    fn the_port_of_the_scheme_is_not_in_the_header() {
        for (url, header) in [
            ("http://Prometheus:9090", "prometheus:9090"),
            ("https://a.example/x?y=z", "a.example"),
            ("http://a.example:80/", "a.example"),
            ("https://[::1]:8443/x#f", "[::1]:8443"),
        ] {
            assert_eq!(Address::of_url(url).expect(url).host_header(), header, "{url}");
        }
    }

    #[test]
    fn loopback() {
        for (url, expected) in [
            ("http://localhost/", true),
            ("http://127.1.2.3/", true),
            ("http://[::1]/", true),
            ("http://localhost.example/", false),
            ("http://10.0.0.1/", false),
        ] {
            assert_eq!(Address::of_url(url).expect(url).is_loopback(), expected, "{url}");
        }
    }
}
