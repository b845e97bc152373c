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
    use serde::Deserialize;

    use super::*;

    /// A vector of `proto/testdata/analysis_addresses.json`, which all executors share.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Vector {
        why: String,
        /// A value of `--analysis-host`. It is read as `host` and `credential`.
        flag: Option<String>,
        host: Option<String>,
        /// What a policy names, with `authority` and `tls` instead for a VerdictService.
        url: Option<String>,
        authority: Option<String>,
        #[serde(default)]
        tls: bool,
        #[serde(default)]
        hosts: Vec<String>,
        credential: Option<String>,
        asks: Option<Asks>,
        refused: Option<String>,
    }

    /// What is called.
    #[derive(Debug, Deserialize, PartialEq, Eq)]
    #[serde(deny_unknown_fields)]
    struct Asks {
        host: String,
        port: u16,
        tls: bool,
        path: String,
    }

    impl Vector {
        fn check_flag(&self, flag: &str) {
            let read = flag.parse::<AllowedHost>();
            let found = read.ok().map(|host| (host.to_string(), host.credential));
            let host = self.host.clone();
            let expected = host.map(|host| (host, self.credential.clone()));
            assert_eq!(found, expected, "{}", self.why);
            assert_eq!(
                found.is_none(),
                self.refused.as_deref() == Some("flag"),
                "{}",
                self.why
            );
        }

        /// Whom the executor calls, or for which reason it refuses that.
        fn asked(&self) -> Result<Address, &'static str> {
            let hosts: Vec<AllowedHost> = self.hosts.iter().map(|text| text.parse().expect(text)).collect();
            let address = match (&self.url, &self.authority) {
                (Some(url), _) => Address::of_url(url),
                (None, Some(authority)) => Address::of_authority(authority, self.tls),
                (None, None) => panic!("{}: nobody is named", self.why),
            };
            let address = address.map_err(|_| "address")?;
            check(&hosts, &address).map_err(|_| "host")?;
            if let Some(name) = &self.credential {
                check_credential(&hosts, &address, name).map_err(|_| "credential")?;
                if !address.tls && !address.is_loopback() {
                    return Err("plain_text");
                }
            }
            Ok(address)
        }
    }

    // L-32.
    #[test]
    fn whom_a_policy_may_have_asked() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../proto/testdata/analysis_addresses.json"
        );
        let text = std::fs::read_to_string(path).expect(path);
        let vectors: Vec<Vector> = serde_json::from_str(&text).expect(path);
        assert!(!vectors.is_empty());
        for vector in vectors {
            if let Some(flag) = &vector.flag {
                vector.check_flag(flag);
                continue;
            }
            let found = vector.asked().map(|address| Asks {
                host: address.host,
                port: address.port,
                tls: address.tls,
                path: address.path,
            });
            let refused = vector.refused.as_deref();
            match vector.asks {
                Some(asks) => assert_eq!((found, refused), (Ok(asks), None), "{}", vector.why),
                None => assert_eq!(found.err(), refused, "{}", vector.why),
            }
        }
    }

    #[test]
    fn a_refusal_says_how_to_allow_the_host() {
        let address = Address::of_url("http://checks").expect("an address");
        let error = check(&[], &address).expect_err("nobody is allowed");
        assert!(
            error.contains("--analysis-host") && error.contains("checks:80"),
            "{error}"
        );
    }
}
