//! Targets: the addresses, DNS names and Kubernetes Services at which replicas are found.
//!
//! The syntax is that of gRPC names: `dns:///host:port`, and `kubernetes:///service.namespace:port` as common resolvers for that
//! scheme accept it.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    str::FromStr,
};

use tonic::transport::Uri;

/// A target: one replica or the name of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// `http://host:port`, or `https://host:port` for TLS: one replica.
    Fixed(Address),
    /// `dns:///host:port`: a replica at each A and AAAA record.
    Dns {
        /// The DNS name or IP address.
        host: String,
        /// The port of each replica.
        port: u16,
    },
    /// `kubernetes:///service.namespace:port`: a replica at each endpoint of a Service.
    Service(ServiceName),
}

/// A Service of the cluster and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceName {
    /// The namespace. `None`: the default namespace of the cluster's client.
    pub namespace: Option<String>,
    /// The name of the Service.
    pub name: String,
    /// The port of the endpoints.
    pub port: ServicePort,
}

/// A port of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServicePort {
    /// The first port of the EndpointSlice.
    First,
    /// The port number on which the pods listen.
    Number(u16),
    /// The port name.
    Name(String),
}

/// The address of one replica, and the name that its certificate must have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// `host:port`.
    text: String,
    /// The name that the replica's certificate must have. `None`: plain text.
    server_name: Option<String>,
}

impl Address {
    /// `host:port`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The name that the replica's certificate must have. `None`: plain text.
    #[must_use]
    pub fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }

    /// The IP address or name, without brackets.
    fn host(&self) -> &str {
        let host = self.text.rsplit_once(':').map_or(&*self.text, |(host, _)| host);
        host.trim_matches(['[', ']'])
    }

    /// The same address over TLS, with this server name.
    #[must_use]
    pub(crate) fn with_server_name(self, name: &str) -> Self {
        Self {
            server_name: Some(name.to_owned()),
            ..self
        }
    }
}

impl From<SocketAddr> for Address {
    /// A plain-text address.
    fn from(address: SocketAddr) -> Self {
        Self {
            text: address.to_string(),
            server_name: None,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Target {
    /// Whether the target is `https://`.
    #[must_use]
    pub fn asks_for_tls(&self) -> bool {
        matches!(self, Self::Fixed(address) if address.server_name.is_some())
    }

    /// Whether the host is a loopback address or `localhost`. Other names are not resolved.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let host = match self {
            Self::Fixed(address) => address.host(),
            Self::Dns { host, .. } => host,
            Self::Service(_) => return false,
        };
        match host.parse::<IpAddr>() {
            Ok(address) => address.is_loopback(),
            Err(_) => host.eq_ignore_ascii_case("localhost"),
        }
    }

    /// Checks the target for a client without TLS settings. `plaintext` allows plain text off loopback, and forbids `https://`.
    pub(crate) fn check_security(&self, plaintext: bool) -> Result<(), Mismatch> {
        match (self.asks_for_tls(), plaintext) {
            (true, true) => Err(Mismatch::Encrypted),
            (true, false) | (false, true) => Ok(()),
            (false, false) if self.is_loopback() => Ok(()),
            (false, false) => Err(Mismatch::Unprotected),
        }
    }
}

/// Why a target does not fit the TLS settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mismatch {
    /// The target would be called in plain text and is not on loopback.
    Unprotected,
    /// The target is `https://`, and the settings ask for plain text.
    Encrypted,
}

/// A text that is not a target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// An unknown scheme, or none.
    #[error(
        "must be https://HOST:PORT, http://HOST:PORT, dns:///HOST:PORT or kubernetes:///SERVICE.NAMESPACE:PORT"
    )]
    Scheme,
    /// An `http` or `https` URL with other parts than host and port.
    #[error("must be https://HOST:PORT or http://HOST:PORT and nothing more")]
    Url,
    /// A `dns` target without host or port.
    #[error("must be dns:///HOST:PORT; both are needed")]
    Dns,
    /// A `dns` target that names a DNS server, which is not supported.
    #[error("names are looked up as the system does it: write dns:///HOST:PORT, with three slashes")]
    DnsServer,
    /// A `kubernetes` target that is not a Service.
    #[error("must be kubernetes:///SERVICE.NAMESPACE:PORT, where PORT is a number or a name")]
    Service,
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        match text.split_once(':') {
            Some(("http", _)) => fixed(text, 80).map(Target::Fixed),
            Some(("https", _)) => {
                let address = fixed(text, 443)?;
                let host = address.host().to_owned();
                Ok(Target::Fixed(address.with_server_name(&host)))
            }
            Some(("dns", rest)) => dns(rest),
            Some(("kubernetes", rest)) => service(rest),
            _ => Err(TargetError::Scheme),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(address) if address.server_name.is_some() => write!(f, "https://{address}"),
            Self::Fixed(address) => write!(f, "http://{address}"),
            Self::Dns { host, port } if host.contains(':') => write!(f, "dns:///[{host}]:{port}"),
            Self::Dns { host, port } => write!(f, "dns:///{host}:{port}"),
            Self::Service(ServiceName {
                namespace,
                name,
                port,
            }) => {
                write!(f, "kubernetes:///{name}")?;
                if let Some(namespace) = namespace {
                    write!(f, ".{namespace}")?;
                }
                match port {
                    ServicePort::First => Ok(()),
                    ServicePort::Number(number) => write!(f, ":{number}"),
                    ServicePort::Name(name) => write!(f, ":{name}"),
                }
            }
        }
    }
}

/// The plain-text address of a URL.
fn fixed(text: &str, default_port: u16) -> Result<Address, TargetError> {
    let url: Uri = text.parse().map_err(|_| TargetError::Url)?;
    let host = url
        .host()
        .filter(|host| !host.is_empty())
        .ok_or(TargetError::Url)?;
    let authority = url.authority().map_or("", |authority| authority.as_str());
    let bare = url.path_and_query().is_none_or(|path| path.as_str() == "/");
    // The authority may contain a user or a port that is not a number.
    if !bare || !authority.starts_with(host) || (url.port_u16().is_none() && authority != host) {
        return Err(TargetError::Url);
    }
    let port = url.port_u16().unwrap_or(default_port);
    Ok(Address {
        text: format!("{host}:{port}"),
        server_name: None,
    })
}

fn dns(rest: &str) -> Result<Target, TargetError> {
    let name = match rest.strip_prefix("//") {
        Some(rest) => rest.strip_prefix('/').ok_or(TargetError::DnsServer)?,
        None => rest,
    };
    let (host, port) = name.rsplit_once(':').ok_or(TargetError::Dns)?;
    let port = port.parse().ok().filter(|port| *port != 0);
    let host = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    let part_of_a_name = |c: char| c.is_ascii_alphanumeric() || ".-_:".contains(c);
    match port {
        Some(port) if !host.is_empty() && host.chars().all(part_of_a_name) => Ok(Target::Dns {
            host: host.to_owned(),
            port,
        }),
        _ => Err(TargetError::Dns),
    }
}

/// `kubernetes:///service.namespace:port`, `kubernetes://namespace/service:port` and `kubernetes://service.namespace:port/`.
fn service(rest: &str) -> Result<Target, TargetError> {
    let rest = rest.strip_prefix("//").ok_or(TargetError::Service)?;
    let (authority, endpoint) = rest.split_once('/').unwrap_or((rest, ""));
    let (namespace, endpoint) = if endpoint.is_empty() {
        (None, authority)
    } else {
        (
            Some(authority).filter(|namespace| !namespace.is_empty()),
            endpoint,
        )
    };
    let (host, port) = match endpoint.split_once(':') {
        Some((host, port)) => (host, service_port(port)?),
        None => (endpoint, ServicePort::First),
    };
    // The rest of the DNS name, such as svc.cluster.local, is not needed.
    let mut labels = host.split('.');
    let name = labels.next().unwrap_or_default();
    let namespace = labels.next().or(namespace);
    if ![Some(name), namespace].into_iter().flatten().all(is_label) {
        return Err(TargetError::Service);
    }
    Ok(Target::Service(ServiceName {
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
        port,
    }))
}

fn service_port(text: &str) -> Result<ServicePort, TargetError> {
    match text.parse() {
        Ok(0) => Err(TargetError::Service),
        Ok(number) => Ok(ServicePort::Number(number)),
        // A port name has at least one letter. Digits alone are a number that is too large.
        Err(_) if is_label(text) && text.contains(|c: char| c.is_ascii_lowercase()) => {
            Ok(ServicePort::Name(text.to_owned()))
        }
        Err(_) => Err(TargetError::Service),
    }
}

fn is_label(text: &str) -> bool {
    let part_of_a_label = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty()
        && text.len() <= 63
        && text.chars().all(part_of_a_label)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_parsed_as_in_grpc() {
        for (text, read) in [
            ("http://127.0.0.1:7443", "http://127.0.0.1:7443"),
            ("http://planner.example:7443/", "http://planner.example:7443"),
            ("http://[::1]:7443", "http://[::1]:7443"),
            ("http://planner.example", "http://planner.example:80"),
            ("https://planner.example:7443", "https://planner.example:7443"),
            ("https://planner.example", "https://planner.example:443"),
            ("dns:///planner.example:7443", "dns:///planner.example:7443"),
            ("dns:planner.example:7443", "dns:///planner.example:7443"),
            ("dns:///[::1]:7443", "dns:///[::1]:7443"),
            (
                "kubernetes:///planner.tools:grpc",
                "kubernetes:///planner.tools:grpc",
            ),
            (
                "kubernetes:///planner.tools:7443",
                "kubernetes:///planner.tools:7443",
            ),
            ("kubernetes:///planner.tools", "kubernetes:///planner.tools"),
            ("kubernetes:///planner:grpc", "kubernetes:///planner:grpc"),
            (
                "kubernetes://tools/planner:grpc",
                "kubernetes:///planner.tools:grpc",
            ),
            (
                "kubernetes://planner.tools:grpc/",
                "kubernetes:///planner.tools:grpc",
            ),
            (
                "kubernetes:///planner.tools.svc.cluster.local:grpc",
                "kubernetes:///planner.tools:grpc",
            ),
        ] {
            let target = text.parse::<Target>().map(|target| target.to_string());
            assert_eq!(target, Ok(read.to_owned()), "{text}");
        }
    }

    #[test]
    fn the_server_name_is_the_host_of_the_url() {
        for (text, name) in [
            ("http://planner.example:7443", None),
            ("https://planner.example:7443", Some("planner.example")),
            ("https://[::1]:7443", Some("::1")),
        ] {
            let Ok(Target::Fixed(address)) = text.parse() else {
                panic!("{text} is an address");
            };
            assert_eq!(address.server_name(), name, "{text}");
        }
    }

    #[test]
    fn invalid_targets_are_errors() {
        for (text, error) in [
            ("", TargetError::Scheme),
            ("127.0.0.1:7443", TargetError::Scheme),
            ("ftp://127.0.0.1:7443", TargetError::Scheme),
            ("https://host:7443/path", TargetError::Url),
            ("http://", TargetError::Url),
            ("http://user@host:7443", TargetError::Url),
            ("http://host:port", TargetError::Url),
            ("http://host:7443/path", TargetError::Url),
            ("http://host:7443?query", TargetError::Url),
            ("dns:///planner.example", TargetError::Dns),
            ("dns:///:7443", TargetError::Dns),
            ("dns:///planner.example:grpc", TargetError::Dns),
            ("dns:///planner.example:0", TargetError::Dns),
            ("dns:///planner.example/x:7443", TargetError::Dns),
            ("dns://8.8.8.8/planner.example:7443", TargetError::DnsServer),
            ("kubernetes:planner", TargetError::Service),
            ("kubernetes:///", TargetError::Service),
            ("kubernetes:///planner.:grpc", TargetError::Service),
            ("kubernetes:///Planner.tools:grpc", TargetError::Service),
            ("kubernetes:///planner.tools:", TargetError::Service),
            ("kubernetes:///planner.tools:0", TargetError::Service),
            ("kubernetes:///planner.tools:70000", TargetError::Service),
            ("kubernetes:///planner.tools:gr_pc", TargetError::Service),
        ] {
            assert_eq!(text.parse::<Target>(), Err(error), "{text}");
        }
    }
}
