//! The hosts that the operator allows with `--analysis-host`, and the credentials that each may get.

use std::fmt;
use std::str::FromStr;

use super::address::Address;

/// A value of `--analysis-host`: `HOST[:PORT][=CREDENTIAL]`. Without a port, every port of the host is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedHost {
    host: String,
    port: Option<u16>,
    credential: Option<String>,
}

impl AllowedHost {
    /// The name of the file with the token that this host may get.
    #[must_use]
    pub fn credential(&self) -> Option<&str> {
        self.credential.as_deref()
    }

    fn allows(&self, address: &Address) -> bool {
        self.host == address.host && self.port.is_none_or(|port| port == address.port)
    }
}

/// `HOST` or `HOST:PORT`, as in a snapshot.
impl fmt::Display for AllowedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.host)?;
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

impl FromStr for AllowedHost {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (place, credential) = match text.split_once('=') {
            Some((place, credential)) => (place, Some(credential)),
            None => (text, None),
        };
        if let Some(name) = credential.filter(|name| !is_file_name(name)) {
            return Err(format!(
                "{name:?} is no name of a credential: lower-case letters, digits, hyphens and dots, with a letter or digit at both ends"
            ));
        }
        let place = place.to_ascii_lowercase();
        let (host, port) = match place.rsplit_once(':') {
            // The colons of an IPv6 address are inside its brackets.
            Some((host, port)) if !port.ends_with(']') => {
                let number = port
                    .parse()
                    .ok()
                    .filter(|number: &u16| number.to_string() == port);
                let number = number.filter(|number| *number > 0);
                (host, Some(number.ok_or_else(|| format!("{port:?} is no port"))?))
            }
            _ => (&*place, None),
        };
        if !is_host(host) {
            return Err(format!(
                "{host:?} is no host: write HOST or HOST:PORT, without a scheme, a path or a user; an IPv6 address in brackets"
            ));
        }
        Ok(Self {
            host: host.to_owned(),
            port,
            credential: credential.map(str::to_owned),
        })
    }
}

/// Fails if the operator does not allow the address.
pub(super) fn check(hosts: &[AllowedHost], address: &Address) -> Result<(), String> {
    if hosts.iter().any(|host| host.allows(address)) {
        return Ok(());
    }
    Err(format!(
        "the executor may not call {address}: whoever runs it allows hosts with --analysis-host"
    ))
}

/// Fails if the operator does not allow that the address gets this credential.
pub(super) fn check_credential(hosts: &[AllowedHost], address: &Address, name: &str) -> Result<(), String> {
    let mut allowed = hosts.iter().filter(|host| host.allows(address));
    if allowed.any(|host| host.credential() == Some(name)) {
        return Ok(());
    }
    Err(format!(
        "credential {name:?} may not be sent there: whoever runs the executor allows it with --analysis-host {address}={name}"
    ))
}

/// Whether this can be the name of a credential. It is one file of a folder, and none that the kubelet makes for itself.
fn is_file_name(name: &str) -> bool {
    let is_edge = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
        return false;
    };
    let is_inner = |byte: &u8| is_edge(*byte) || matches!(byte, b'-' | b'.');
    bytes.len() <= 253
        && is_edge(*first)
        && is_edge(*last)
        && bytes.iter().all(is_inner)
        && !name.contains("..")
}

fn is_host(host: &str) -> bool {
    if let Some(inner) = host.strip_prefix('[') {
        let address = inner.strip_suffix(']').map(str::parse::<std::net::Ipv6Addr>);
        return matches!(address, Some(Ok(_)));
    }
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    !host.is_empty() && host.len() <= 253 && host.bytes().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(texts: &[&str]) -> Vec<AllowedHost> {
        texts.iter().map(|text| text.parse().expect(text)).collect()
    }

    #[test]
    fn values_of_the_flag() {
        for (text, shown, credential) in [
            ("Prometheus:9090", "prometheus:9090", None),
            ("checks.example", "checks.example", None),
            ("[::1]", "[::1]", None),
            ("[::1]:80=a", "[::1]:80", Some("a")),
            ("10.0.0.1:80=prom.token", "10.0.0.1:80", Some("prom.token")),
        ] {
            let host: AllowedHost = text.parse().expect(text);
            assert_eq!(
                (&*host.to_string(), host.credential()),
                (shown, credential),
                "{text}"
            );
        }
        for wrong in [
            "",
            ":80",
            "a:",
            "a:0",
            "a:080",
            "a:65536",
            "http://a",
            "a/b",
            "u@a",
            "*.example",
            "::1",
            "[::1",
            "a b",
            "a=",
            "a=..",
            "a=../token",
            "a=.token",
            "a=b..c",
            "a=b/c",
            "a=B",
        ] {
            assert!(wrong.parse::<AllowedHost>().is_err(), "{wrong}");
        }
    }

    // L-32.
    #[test]
    fn only_the_very_host_is_allowed() {
        let allowed = hosts(&["prometheus:9090", "checks", "web:443"]);
        for (url, expected) in [
            ("http://prometheus:9090", true),
            ("http://PROMETHEUS:9090/x", true),
            ("http://prometheus", false),
            ("http://prometheus:9091", false),
            ("http://checks", true),
            ("https://checks:1234/", true),
            ("http://checks.evil.example", false),
            ("http://xchecks", false),
            ("https://web", true),
            ("http://web", false),
        ] {
            let address = Address::of_url(url).expect(url);
            assert_eq!(check(&allowed, &address).is_ok(), expected, "{url}");
        }
        let address = Address::of_url("http://checks").expect("an address");
        let error = check(&[], &address).expect_err("nobody is allowed");
        assert!(
            error.contains("--analysis-host") && error.contains("checks:80"),
            "{error}"
        );
    }

    // L-32: a policy cannot send a token to somebody else than its operator meant.
    #[test]
    fn a_credential_goes_only_to_its_host() {
        let allowed = hosts(&[
            "prometheus:9090=metrics",
            "prometheus:9090=more",
            "checks=checks",
            "checks:81",
        ]);
        for (url, name, expected) in [
            ("https://prometheus:9090", "metrics", true),
            ("https://prometheus:9090", "more", true),
            ("https://prometheus:9090", "checks", false),
            ("https://checks:81", "checks", true),
            ("https://checks", "metrics", false),
            ("https://other", "metrics", false),
        ] {
            let address = Address::of_url(url).expect(url);
            let found = check_credential(&allowed, &address, name);
            assert_eq!(found.is_ok(), expected, "{url} {name}");
        }
    }
}
