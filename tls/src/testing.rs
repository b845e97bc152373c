//! Authorities and certificates for tests.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    SanType,
};

pub use rcgen;

/// An authority.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, in PEM form.
#[derive(Debug, Clone)]
pub struct Pem {
    /// The process's own certificate, without intermediates.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

impl Authority {
    /// A new authority.
    ///
    /// # Panics
    /// If no key can be generated.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self::changed(name, |_| {})
    }

    /// A new authority with changed parameters.
    ///
    /// # Panics
    /// If no key can be generated.
    #[must_use]
    pub fn changed(name: &str, change: impl FnOnce(&mut CertificateParams)) -> Self {
        let mut params = named(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        change(&mut params);
        Self(CertifiedIssuer::self_signed(params, key()).expect("a certificate"))
    }

    /// Its certificate, in PEM form.
    #[must_use]
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for servers and clients with these DNS names, IP addresses and URIs.
    ///
    /// # Panics
    /// If a name is invalid.
    #[must_use]
    pub fn issue(&self, names: &[&str]) -> Pem {
        self.issue_changed(names, |_| {})
    }

    /// As [`Self::issue`], with changed parameters.
    ///
    /// # Panics
    /// If a name is invalid.
    #[must_use]
    pub fn issue_changed(&self, names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Pem {
        let mut params = named(names.first().copied().unwrap_or("nobody"));
        params.subject_alt_names = names.iter().map(|name| alternative(name)).collect();
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        change(&mut params);
        let key = key();
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        Pem {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }
}

impl Pem {
    /// Writes both as files, and returns their paths.
    ///
    /// # Panics
    /// If they cannot be written.
    #[must_use]
    pub fn write(&self, dir: &Path, name: &str) -> [PathBuf; 2] {
        [
            write(dir, &format!("{name}.crt"), &self.certificate),
            write(dir, &format!("{name}.key"), &self.key),
        ]
    }
}

/// Writes a file atomically, and returns its path.
///
/// # Panics
/// If it cannot be written.
#[must_use]
pub fn write(dir: &Path, name: &str, text: &str) -> PathBuf {
    let (path, new) = (dir.join(name), dir.join(format!("{name}.new")));
    fs::write(&new, text).expect("a file");
    fs::rename(new, &path).expect("a file");
    path
}

/// Asserts that a message contains all these parts.
///
/// # Panics
/// If it does not.
#[track_caller]
pub fn assert_said(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "{part:?} is not in {said:?}");
    }
}

fn key() -> KeyPair {
    KeyPair::generate().expect("a key")
}

fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn alternative(name: &str) -> SanType {
    if let Ok(address) = name.parse() {
        SanType::IpAddress(address)
    } else if name.contains("://") {
        SanType::URI(name.try_into().expect("ASCII"))
    } else {
        SanType::DnsName(name.try_into().expect("ASCII"))
    }
}
