//! Certificates and keys in files, looked through.

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

/// A file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{what} in {}: {problem}", path.display())]
pub struct FileError {
    /// What it should hold.
    pub what: &'static str,
    /// Where it is.
    pub path: PathBuf,
    /// What is wrong with it.
    #[source]
    pub problem: Problem,
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// There is no such file, or it may not be read.
    #[error("it cannot be read: {0}")]
    Unreadable(#[source] io::Error),
    /// Something else is in it.
    #[error("it holds no {0} in PEM form")]
    Missing(&'static str),
    /// Parts of it look like PEM and are not.
    #[error("it is not in PEM form: {0}")]
    Pem(String),
    /// No certificate of X.509.
    #[error("certificate {number} of it cannot be read: {reason}")]
    Malformed {
        /// From 1 on.
        number: usize,
        /// A sentence's part.
        reason: String,
    },
    /// Its time is over.
    #[error("certificate {number} of it ({subject}) expired at {at}")]
    Expired {
        /// From 1 on.
        number: usize,
        /// Whose it is.
        subject: String,
        /// The end.
        at: Timestamp,
    },
    /// Its time has not come.
    #[error("certificate {number} of it ({subject}) is valid only from {at} on")]
    NotYetValid {
        /// From 1 on.
        number: usize,
        /// Whose it is.
        subject: String,
        /// The beginning.
        at: Timestamp,
    },
    /// The certificates after the first should lead to an authority.
    #[error(
        "certificate {number} of it ({issuer}) is not the issuer of the one before ({subject}): the process's own comes \
         first, and each is followed by its issuer"
    )]
    Order {
        /// From 1 on.
        number: usize,
        /// Whose it is.
        issuer: String,
        /// Whose the one before is.
        subject: String,
    },
    /// An authority's where a process's is needed.
    #[error("it begins with the certificate of an authority ({0}), not with the process's own")]
    Authority(String),
    /// A process's where an authority's is needed.
    #[error("certificate {number} of it ({subject}) is not an authority's (no CA in its basic constraints)")]
    NoAuthority {
        /// From 1 on.
        number: usize,
        /// Whose it is.
        subject: String,
    },
    /// A certificate that is for something else.
    #[error("the certificate ({subject}) is not for {role}s: its extended key usage lacks {usage}")]
    Usage {
        /// Whose it is.
        subject: String,
        /// What it is to be used as.
        role: &'static str,
        /// The usage's name.
        usage: &'static str,
    },
    /// The key of another certificate.
    #[error("it is not the key of the certificate in {}", .0.display())]
    WrongKey(PathBuf),
    /// Nobody is there to be asked for the password.
    #[error("it is encrypted with a password: a key without one is needed")]
    Encrypted,
    /// No client would believe it.
    #[error(
        "the certificate ({0}) has no name: servers need a DNS name or an IP address among its subject alternative names"
    )]
    Nameless(String),
    /// A kind of key that is not spoken.
    #[error("this kind of key cannot be used: {0}")]
    Key(String),
    /// An authority that cannot be relied on.
    #[error("certificate {number} of it cannot be trusted: {reason}")]
    Unusable {
        /// From 1 on.
        number: usize,
        /// A sentence's part.
        reason: String,
    },
}

/// Which end of a connection a certificate is for.
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
    /// When the first of its certificates expires.
    pub(crate) until: Timestamp,
}

/// Reads a process's certificate, with those that lead to its authority, and its key.
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
    // What cannot be read is judged by the other end.
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

/// Authorities that are valid now.
#[derive(Debug)]
pub(crate) struct Authorities {
    /// There is at least one.
    pub(crate) roots: RootCertStore,
    /// When that may change: one of them expires, or another one becomes valid.
    pub(crate) until: Timestamp,
}

/// Reads the authorities whose certificates are taken. While they change there are old ones among them: one that is valid is
/// enough.
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

/// All certificates of a file; there is at least one.
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

/// When it expires.
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
    // X.509 goes as far as the year 9999, and so do timestamps.
    Timestamp::from_second(time.timestamp()).unwrap_or(Timestamp::MAX)
}
