//! The addresses that policies name.

use std::fmt;
use std::net::IpAddr;

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
        if host.is_empty() || (text != host && text != format!("{host}:{port}")) {
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

    #[test]
    fn addresses_of_urls() {
        for (url, host, port, tls, path, header) in [
            (
                "http://Prometheus:9090",
                "prometheus",
                9090,
                false,
                "/",
                "prometheus:9090",
            ),
            (
                "https://a.example/x?y=z",
                "a.example",
                443,
                true,
                "/x?y=z",
                "a.example",
            ),
            ("http://a.example:80/", "a.example", 80, false, "/", "a.example"),
            ("https://[::1]:8443/x#f", "[::1]", 8443, true, "/x", "[::1]:8443"),
            ("http://a?b", "a", 80, false, "/?b", "a"),
        ] {
            let address = Address::of_url(url).expect(url);
            assert_eq!(
                (&*address.host, address.port, address.tls, &*address.path),
                (host, port, tls, path),
                "{url}"
            );
            assert_eq!(address.host_header(), header, "{url}");
        }
        let address = Address::of_authority("Checks:9000", true).expect("an address");
        assert_eq!(
            (address.to_string(), address.tls),
            ("checks:9000".to_owned(), true)
        );
    }

    // What two readers could take for different hosts is refused.
    #[test]
    fn what_may_be_read_in_two_ways_is_refused() {
        for url in [
            "",
            "prometheus:9090",
            "ftp://a/",
            "http:///x",
            "http://user@a/",
            "http://allowed:80@evil/",
            "http://a:/",
            "http://a:99999/",
            "http://a:080/",
            "http://a\\@evil/",
            "http://a b/",
            "/x",
        ] {
            assert!(Address::of_url(url).is_err(), "{url}");
        }
        for text in ["a", "http://a:1", "a:1/x", "u@a:1", "a:0x1", ""] {
            assert!(Address::of_authority(text, true).is_err(), "{text}");
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
