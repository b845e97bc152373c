//! The names in a client's certificate, and the list of names that a server accepts.

use std::{fmt, str::FromStr, sync::Arc};

use rustls::pki_types::CertificateDer;
use x509_parser::extensions::GeneralName;

/// The names in a client's certificate: URIs, DNS names and the subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientNames {
    uris: Vec<String>,
    dns: Vec<String>,
    subject: String,
}

impl ClientNames {
    /// Reads the names of a verified certificate.
    pub(crate) fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let (_, certificate) = x509_parser::parse_x509_certificate(certificate).ok()?;
        let mut names = Self {
            uris: Vec::new(),
            dns: Vec::new(),
            subject: certificate.subject.to_string(),
        };
        let alternatives = certificate.subject_alternative_name().ok()?;
        for name in alternatives
            .iter()
            .flat_map(|alternatives| &alternatives.value.general_names)
        {
            match name {
                GeneralName::URI(uri) => names.uris.push((*uri).to_owned()),
                GeneralName::DNSName(name) => names.dns.push(name.to_ascii_lowercase()),
                _ => {}
            }
        }
        Some(names)
    }

    /// The name that identifies the client: its first URI, or else its first DNS name, or else its subject.
    #[must_use]
    pub fn principal(&self) -> Arc<str> {
        let name = self.uris.first().or(self.dns.first()).unwrap_or(&self.subject);
        Arc::from(name.as_str())
    }
}

impl fmt::Display for ClientNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.subject)?;
        for name in self.uris.iter().chain(&self.dns) {
            write!(f, ", {name}")?;
        }
        Ok(())
    }
}

/// A pattern for clients that a server accepts. It is a URI or DNS name of the certificate, for example
/// `spiffe://cluster.local/ns/tools/sa/executor` or `executor.tools.svc`. With a star at the end it is a prefix:
/// `spiffe://cluster.local/ns/tools/*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedClient {
    name: String,
    is_uri: bool,
    is_prefix: bool,
}

/// A text that is not a pattern for clients.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AllowedClientError {
    /// The text has no name.
    #[error(
        "must be a URI or DNS name of a client's certificate, such as spiffe://cluster.local/ns/tools/sa/executor"
    )]
    NoName,
    /// A star that is not at the end.
    #[error("a star is allowed only at the end")]
    Star,
    /// A star that is not behind a `/` (URI) or a dot (DNS name).
    #[error("{0}* would also let in {0}x…: a URI's star stands behind a /, a DNS name's behind a dot")]
    HalfName(String),
}

impl FromStr for AllowedClient {
    type Err = AllowedClientError;

    fn from_str(text: &str) -> Result<Self, AllowedClientError> {
        let (name, is_prefix) = match text.strip_suffix('*') {
            Some(name) => (name, true),
            None => (text, false),
        };
        let is_uri = name.contains(':');
        let end = if is_uri { '/' } else { '.' };
        match name {
            _ if name.contains('*') => Err(AllowedClientError::Star),
            "" => Err(AllowedClientError::NoName),
            _ if name.contains(char::is_whitespace) => Err(AllowedClientError::NoName),
            _ if is_prefix && (!name.ends_with(end) || name.ends_with("://")) => {
                Err(AllowedClientError::HalfName(name.to_owned()))
            }
            _ => Ok(Self {
                name: if is_uri {
                    name.to_owned()
                } else {
                    name.to_ascii_lowercase()
                },
                is_uri,
                is_prefix,
            }),
        }
    }
}

impl AllowedClient {
    /// Whether the pattern matches one of these names.
    #[must_use]
    pub fn allows(&self, names: &ClientNames) -> bool {
        let those = if self.is_uri { &names.uris } else { &names.dns };
        those.iter().any(|name| {
            if self.is_prefix {
                name.strip_prefix(&self.name).is_some_and(|rest| !rest.is_empty())
            } else {
                *name == self.name
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(uris: &[&str], dns: &[&str]) -> ClientNames {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        ClientNames {
            uris: owned(uris),
            dns: owned(dns),
            subject: "CN=x".to_owned(),
        }
    }

    #[test]
    fn patterns_match_a_whole_name_or_a_prefix() {
        let executor = names(
            &["spiffe://cluster.local/ns/tools/sa/executor"],
            &["executor.tools.svc"],
        );
        for (text, allows) in [
            ("spiffe://cluster.local/ns/tools/sa/executor", true),
            ("spiffe://cluster.local/ns/tools/*", true),
            ("spiffe://cluster.local/ns/tools/sa/exec", false),
            ("spiffe://cluster.local/ns/other/*", false),
            ("spiffe://cluster.local/ns/tools/sa/executor/*", false),
            ("SPIFFE://cluster.local/ns/tools/*", false),
            ("executor.tools.svc", true),
            ("Executor.Tools.svc", true),
            ("executor.tools.*", true),
            ("executor", false),
            ("tools.svc", false),
        ] {
            let allowed: AllowedClient = text.parse().expect(text);
            assert_eq!(allowed.allows(&executor), allows, "{text}");
        }
        let nameless = names(&[], &[]);
        let allowed: AllowedClient = "executor.tools.*".parse().expect("fine");
        assert!(!allowed.allows(&nameless));
        // A URI pattern matches only URIs, and a DNS pattern only DNS names.
        let odd = names(&["executor.tools.svc"], &["spiffe://x/y"]);
        for text in ["executor.tools.svc", "spiffe://x/*"] {
            assert!(!text.parse::<AllowedClient>().expect(text).allows(&odd), "{text}");
        }
    }

    #[test]
    fn ambiguous_patterns_are_errors() {
        for text in ["", "*", "a b"] {
            let error = text.parse::<AllowedClient>().expect_err(text);
            assert_eq!(error, AllowedClientError::NoName, "{text}");
        }
        for text in ["*.tools.svc", "spiffe://*/x", "a**"] {
            let error = text.parse::<AllowedClient>().expect_err(text);
            assert_eq!(error, AllowedClientError::Star, "{text}");
        }
        for text in ["spiffe://cluster.local/ns/tools*", "spiffe://*", "executor*"] {
            let error = text.parse::<AllowedClient>().expect_err(text);
            assert!(
                matches!(error, AllowedClientError::HalfName(_)),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn the_principal_is_the_first_uri_dns_name_or_subject() {
        assert_eq!(&*names(&["spiffe://a/b"], &["c"]).principal(), "spiffe://a/b");
        assert_eq!(&*names(&[], &["c"]).principal(), "c");
        assert_eq!(&*names(&[], &[]).principal(), "CN=x");
    }
}
