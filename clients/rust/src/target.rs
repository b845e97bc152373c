//! What may be given as a server: one replica, a name of which every record is one, or a Service of the cluster.
//!
//! Names are written as gRPC writes them: `dns:///host:port`, and `kubernetes:///service.namespace:port` in the form that
//! resolvers of that scheme have made usual.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    str::FromStr,
};

use tonic::transport::Uri;

/// Where replicas of the service are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// `http://host:port`, or `https://host:port` for TLS: one replica.
    Fixed(Address),
    /// `dns:///host:port`: a replica at each A and AAAA record.
    Dns {
        /// The name.
        host: String,
        /// Where each of them listens.
        port: u16,
    },
    /// `kubernetes:///service.namespace:port`: a replica at each endpoint of a Service.
    Service(ServiceName),
}

/// A Service of the cluster, and one of its ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceName {
    /// `None`: the namespace that the client of the cluster is in.
    pub namespace: Option<String>,
    /// The Service.
    pub name: String,
    /// The port of its endpoints.
    pub port: ServicePort,
}

/// Which port of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServicePort {
    /// The first that it has.
    First,
    /// This one, which is the port that the pods listen on.
    Number(u16),
    /// The one of this name.
    Name(String),
}

/// Where a replica is, what it is known by, and how it is spoken to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// `host:port`.
    text: String,
    /// The name that it must prove to have; plain text is spoken without one.
    server_name: Option<String>,
}

impl Address {
    /// `host:port`, however it is spoken to.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The name that it must prove to have over TLS; none where plain text is spoken.
    #[must_use]
    pub fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }

    /// An IP address, or a name.
    fn host(&self) -> &str {
        let host = self.text.rsplit_once(':').map_or(&*self.text, |(host, _)| host);
        host.trim_matches(['[', ']'])
    }

    /// The same, over TLS.
    #[must_use]
    pub(crate) fn with_server_name(self, name: &str) -> Self {
        Self {
            server_name: Some(name.to_owned()),
            ..self
        }
    }
}

impl From<SocketAddr> for Address {
    /// In plain text.
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
    /// Whether it is written so that its replicas are asked over TLS, whatever else is said.
    #[must_use]
    pub fn asks_for_tls(&self) -> bool {
        matches!(self, Self::Fixed(address) if address.server_name.is_some())
    }

    /// Whether its replicas are on this machine, as it is written: no name but `localhost` is looked up for that.
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

    /// Whether it can be asked as it is written where no TLS is set up; `plaintext` is whether somebody asked for plain text.
    pub(crate) fn can_be_asked(&self, plaintext: bool) -> Result<(), Mismatch> {
        match (self.asks_for_tls(), plaintext) {
            (true, true) => Err(Mismatch::Encrypted),
            (true, false) | (false, true) => Ok(()),
            (false, false) if self.is_loopback() => Ok(()),
            (false, false) => Err(Mismatch::Unprotected),
        }
    }
}

/// Why a target cannot be asked as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mismatch {
    /// In plain text others could read along, and answer.
    Unprotected,
    /// It asks for TLS, and somebody asked for plain text.
    Encrypted,
}

/// Not something that replicas can be found by.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Another scheme, or none.
    #[error(
        "must be https://HOST:PORT, http://HOST:PORT, dns:///HOST:PORT or kubernetes:///SERVICE.NAMESPACE:PORT"
    )]
    Scheme,
    /// A URL that is more or less than an address.
    #[error("must be https://HOST:PORT or http://HOST:PORT and nothing more")]
    Url,
    /// A name to look up that is incomplete.
    #[error("must be dns:///HOST:PORT; both are needed")]
    Dns,
    /// A DNS server of the caller's choice.
    #[error("names are looked up as the system does it: write dns:///HOST:PORT, with three slashes")]
    DnsServer,
    /// No name of a Service.
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

/// The address of a URL, in plain text.
fn fixed(text: &str, default_port: u16) -> Result<Address, TargetError> {
    let url: Uri = text.parse().map_err(|_| TargetError::Url)?;
    let host = url
        .host()
        .filter(|host| !host.is_empty())
        .ok_or(TargetError::Url)?;
    let authority = url.authority().map_or("", |authority| authority.as_str());
    let bare = url.path_and_query().is_none_or(|path| path.as_str() == "/");
    // An authority may also name a user, and a port that is no number.
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
    // What follows the namespace, such as svc.cluster.local, says nothing to the API.
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
        // A name has a letter somewhere: digits alone are a number that is too large.
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
    fn targets_are_read_as_grpc_and_its_resolvers_write_them() {
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
    fn a_server_must_have_the_name_in_its_url() {
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
    fn a_target_that_means_nothing_says_what_is_wrong() {
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
