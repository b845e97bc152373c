//! Reads certificates and keys from PEM files, and checks them.

use std::{
    io,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use rustls::{
    RootCertStore,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    sign::CertifiedKey,
};
use x509_parser::{certificate::X509Certificate, extensions::GeneralName, time::ASN1Time};

/// A certificate or key file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{what} in {}: {problem}", path.display())]
pub struct FileError {
    /// The content that the file should have.
    pub what: &'static str,
    /// The path of the file.
    pub path: PathBuf,
    /// The problem.
    #[source]
    pub problem: Problem,
}

/// The problem of a file.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The file does not exist or cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(#[source] io::Error),
    /// The file does not contain this item.
    #[error("it holds no {0} in PEM form")]
    Missing(&'static str),
    /// The file has invalid PEM.
    #[error("it is not in PEM form: {0}")]
    Pem(String),
    /// An item is not an X.509 certificate.
    #[error("certificate {number} of it cannot be read: {reason}")]
    Malformed {
        /// The position in the file, from 1.
        number: usize,
        /// The reason, for people.
        reason: String,
    },
    /// A certificate has expired.
    #[error("certificate {number} of it ({subject}) expired at {at}")]
    Expired {
        /// The position in the file, from 1.
        number: usize,
        /// The subject of the certificate.
        subject: String,
        /// The end of its validity.
        at: Timestamp,
    },
    /// A certificate is not valid yet.
    #[error("certificate {number} of it ({subject}) is valid only from {at} on")]
    NotYetValid {
        /// The position in the file, from 1.
        number: usize,
        /// The subject of the certificate.
        subject: String,
        /// The begin of its validity.
        at: Timestamp,
    },
    /// A certificate is not the issuer of the one before it.
    #[error(
        "certificate {number} of it ({issuer}) is not the issuer of the one before ({subject}): the process's own comes \
         first, and each is followed by its issuer"
    )]
    Order {
        /// The position in the file, from 1.
        number: usize,
        /// The subject of the certificate.
        issuer: String,
        /// The subject of the certificate before it.
        subject: String,
    },
    /// The first certificate is that of an authority, not that of a process.
    #[error("it begins with the certificate of an authority ({0}), not with the process's own")]
    Authority(String),
    /// A certificate is not that of an authority.
    #[error("certificate {number} of it ({subject}) is not an authority's (no CA in its basic constraints)")]
    NoAuthority {
        /// The position in the file, from 1.
        number: usize,
        /// The subject of the certificate.
        subject: String,
    },
    /// The certificate's extended key usage lacks the usage that is needed.
    #[error("the certificate ({subject}) is not for {role}s: its extended key usage lacks {usage}")]
    Usage {
        /// The subject of the certificate.
        subject: String,
        /// `server` or `client`.
        role: &'static str,
        /// The missing usage.
        usage: &'static str,
    },
    /// The key does not belong to the certificate in this file.
    #[error("it is not the key of the certificate in {}", .0.display())]
    WrongKey(PathBuf),
    /// The key is encrypted with a password.
    #[error("it is encrypted with a password: a key without one is needed")]
    Encrypted,
    /// The server's certificate has neither a DNS name nor an IP address, so no client would accept it.
    #[error(
        "the certificate ({0}) has no name: servers need a DNS name or an IP address among its subject alternative names"
    )]
    Nameless(String),
    /// The kind of key is not supported.
    #[error("this kind of key cannot be used: {0}")]
    Key(String),
    /// rustls does not accept the certificate.
    #[error("certificate {number} of it cannot be trusted: {reason}")]
    Unusable {
        /// The position in the file, from 1.
        number: usize,
        /// The reason, for people.
        reason: String,
    },
}

/// The side of a connection that a certificate is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Server,
    Client,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
        }
    }

    fn usage(self) -> &'static str {
        match self {
            Self::Server => "serverAuth",
            Self::Client => "clientAuth",
        }
    }
}

/// A certificate and its key.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) key: CertifiedKey,
    /// The earliest expiry of the certificates in the chain.
    pub(crate) until: Timestamp,
}

/// Reads and checks the certificate chain and the private key of a process.
pub(crate) fn identity(
    provider: &CryptoProvider,
    role: Role,
    certificate: &Path,
    key: &Path,
) -> Result<Identity, FileError> {
    let of = |what, path: &Path| {
        let path = path.to_owned();
        move |problem| FileError { what, path, problem }
    };
    let (chain, until) = chain(role, certificate).map_err(of("the certificate", certificate))?;
    let der = private_key(key).map_err(of("the key", key))?;
    let certified = CertifiedKey::from_der(chain, der, provider).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => of("the key", key)(Problem::WrongKey(certificate.to_owned())),
        rustls::Error::InvalidCertificate(_) => of("the certificate", certificate)(Problem::Unusable {
            number: 1,
            reason: error.to_string(),
        }),
        other => of("the key", key)(Problem::Key(other.to_string())),
    })?;
    Ok(Identity {
        key: certified,
        until,
    })
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, Problem> {
    let bytes = bytes(path)?;
    let is_encrypted = bytes.windows(9).any(|part| part == b"ENCRYPTED");
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| {
        if is_encrypted {
            Problem::Encrypted
        } else {
            pem(&error, "private key")
        }
    })
}

fn chain(role: Role, path: &Path) -> Result<(Vec<CertificateDer<'static>>, Timestamp), Problem> {
    let chain = certificates(path)?;
    let mut until = Timestamp::MAX;
    let mut before: Option<X509Certificate<'_>> = None;
    for (number, der) in (1..).zip(&chain) {
        let certificate = parse(number, der)?;
        until = until.min(check_time(number, &certificate)?);
        match before {
            None => check_own(role, &certificate)?,
            Some(before) if before.issuer.as_raw() != certificate.subject.as_raw() => {
                return Err(Problem::Order {
                    number,
                    issuer: certificate.subject.to_string(),
                    subject: before.subject.to_string(),
                });
            }
            Some(_) => {}
        }
        before = Some(certificate);
    }
    Ok((chain, until))
}

fn check_own(role: Role, certificate: &X509Certificate<'_>) -> Result<(), Problem> {
    let subject = || certificate.subject.to_string();
    if certificate.is_ca() {
        return Err(Problem::Authority(subject()));
    }
    let has_name =
        |kind: &GeneralName<'_>| matches!(kind, GeneralName::DNSName(_) | GeneralName::IPAddress(_));
    let names = certificate.subject_alternative_name();
    let is_named =
        names.is_ok_and(|names| names.is_some_and(|names| names.value.general_names.iter().any(has_name)));
    if role == Role::Server && !is_named {
        return Err(Problem::Nameless(subject()));
    }
    // An extension that cannot be parsed is left to the peer's checks.
    let Ok(Some(usage)) = certificate.extended_key_usage() else {
        return Ok(());
    };
    let is_for = match role {
        Role::Server => usage.value.server_auth,
        Role::Client => usage.value.client_auth,
    };
    if is_for {
        return Ok(());
    }
    Err(Problem::Usage {
        subject: subject(),
        role: role.name(),
        usage: role.usage(),
    })
}

/// The certificate authorities that are valid now.
#[derive(Debug)]
pub(crate) struct Authorities {
    /// At least one.
    pub(crate) roots: RootCertStore,
    /// The next time at which the set changes: one expires, or another one becomes valid.
    pub(crate) until: Timestamp,
}

/// Reads certificate authorities. Expired ones and future ones are skipped, since both occur during a rotation. It is an error if
/// none is valid.
pub(crate) fn authorities(path: &Path) -> Result<Authorities, FileError> {
    read_authorities(path).map_err(|problem| FileError {
        what: "the authorities",
        path: path.to_owned(),
        problem,
    })
}

fn read_authorities(path: &Path) -> Result<Authorities, Problem> {
    let mut roots = RootCertStore::empty();
    let mut until = Timestamp::MAX;
    let mut not_now = None;
    for (number, der) in (1..).zip(certificates(path)?) {
        let certificate = parse(number, &der)?;
        if !certificate.is_ca() {
            let subject = certificate.subject.to_string();
            return Err(Problem::NoAuthority { number, subject });
        }
        match check_time(number, &certificate) {
            Ok(end) => until = until.min(end),
            Err(problem) => {
                if let Problem::NotYetValid { at, .. } = problem {
                    until = until.min(at);
                }
                not_now.get_or_insert(problem);
                continue;
            }
        }
        roots.add(der).map_err(|error| Problem::Unusable {
            number,
            reason: error.to_string(),
        })?;
    }
    match not_now {
        Some(problem) if roots.is_empty() => Err(problem),
        _ => Ok(Authorities { roots, until }),
    }
}

/// All certificates of a file. At least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Problem> {
    let all: Vec<_> = CertificateDer::pem_slice_iter(&bytes(path)?)
        .collect::<Result<_, _>>()
        .map_err(|error| pem(&error, "certificate"))?;
    if all.is_empty() {
        return Err(Problem::Missing("certificate"));
    }
    Ok(all)
}

fn bytes(path: &Path) -> Result<Vec<u8>, Problem> {
    std::fs::read(path).map_err(Problem::Unreadable)
}

fn pem(error: &rustls::pki_types::pem::Error, wanted: &'static str) -> Problem {
    match error {
        rustls::pki_types::pem::Error::NoItemsFound => Problem::Missing(wanted),
        other => Problem::Pem(other.to_string()),
    }
}

fn parse<'a>(number: usize, der: &'a CertificateDer<'static>) -> Result<X509Certificate<'a>, Problem> {
    match x509_parser::parse_x509_certificate(der) {
        Ok((_, certificate)) => Ok(certificate),
        Err(error) => Err(Problem::Malformed {
            number,
            reason: error.to_string(),
        }),
    }
}

/// Checks the validity period, and returns its end.
fn check_time(number: usize, certificate: &X509Certificate<'_>) -> Result<Timestamp, Problem> {
    let validity = certificate.validity();
    let (from, until) = (timestamp(validity.not_before), timestamp(validity.not_after));
    let subject = || certificate.subject.to_string();
    let now = Timestamp::now();
    if now < from {
        return Err(Problem::NotYetValid {
            number,
            subject: subject(),
            at: from,
        });
    }
    if until < now {
        return Err(Problem::Expired {
            number,
            subject: subject(),
            at: until,
        });
    }
    Ok(until)
}

fn timestamp(time: ASN1Time) -> Timestamp {
    // The last year of X.509 is 9999, as that of jiff.
    Timestamp::from_second(time.timestamp()).unwrap_or(Timestamp::MAX)
}
