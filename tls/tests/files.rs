//! Tests the errors for files that cannot be used.

use std::{fs, path::Path};

use nodewise_tls::{
    client, server,
    testing::{
        Authority, Pem, assert_said,
        rcgen::{ExtendedKeyUsagePurpose, date_time_ymd},
        write,
    },
};
use tempfile::TempDir;

struct Folder {
    dir: TempDir,
    authority: Authority,
}

impl Folder {
    fn new() -> Self {
        Self {
            dir: TempDir::new().expect("a folder"),
            authority: Authority::new("our authority"),
        }
    }

    fn good(&self) -> Pem {
        self.authority.issue(&["localhost"])
    }

    /// The error for a server's certificate, key, and authorities of clients.
    fn error(&self, certificate: &str, key: &str, clients: Option<&str>) -> String {
        let dir = self.dir.path();
        let files = server::Files {
            certificate: write(dir, "tls.crt", certificate),
            key: write(dir, "tls.key", key),
            clients: clients.map(|authorities| server::Clients {
                authorities: write(dir, "ca.crt", authorities),
                allowed: Vec::new(),
            }),
        };
        match server::Acceptor::new(files) {
            Ok(_) => String::new(),
            Err(error) => error.to_string().replace(&format!("{}/", dir.display()), ""),
        }
    }
}

#[test]
fn valid_files_are_accepted() {
    let folder = Folder::new();
    let good = folder.good();
    assert_eq!(folder.error(&good.certificate, &good.key, None), "");
    let chain = format!("{}{}", good.certificate, folder.authority.pem());
    let authorities = format!("{}{}", Authority::new("another").pem(), folder.authority.pem());
    assert_eq!(folder.error(&chain, &good.key, Some(&authorities)), "");
}

#[test]
fn missing_files_and_files_with_other_content_are_named() {
    let folder = Folder::new();
    let good = folder.good();
    let nowhere = server::Files {
        certificate: "/no/such/tls.crt".into(),
        key: "/no/such/tls.key".into(),
        clients: None,
    };
    let said = server::Acceptor::new(nowhere)
        .expect_err("nothing is there")
        .to_string();
    assert_said(
        &said,
        &[
            "the certificate in /no/such/tls.crt",
            "cannot be read",
            "No such file",
        ],
    );

    let said = folder.error("hello", &good.key, None);
    assert_said(
        &said,
        &["the certificate in tls.crt", "holds no certificate in PEM form"],
    );
    let said = folder.error(&good.key, &good.key, None);
    assert_said(
        &said,
        &["the certificate in tls.crt", "holds no certificate in PEM form"],
    );
    let said = folder.error(&good.certificate, &good.certificate, None);
    assert_said(&said, &["the key in tls.key", "holds no private key in PEM form"]);
    let said = folder.error(&good.certificate, &good.key, Some(""));
    assert_said(
        &said,
        &["the authorities in ca.crt", "holds no certificate in PEM form"],
    );
    let cut = &good.certificate[..good.certificate.len() / 2];
    assert_said(
        &folder.error(cut, &good.key, None),
        &["the certificate in tls.crt", "not in PEM form"],
    );
    let garbage = "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
    let said = folder.error(garbage, &good.key, None);
    assert_said(
        &said,
        &["the certificate in tls.crt", "certificate 1 of it cannot be read"],
    );
}

#[test]
fn an_unreadable_key_is_named() {
    // Root can read every file. Then only the case of a folder instead of a key remains.
    let folder = Folder::new();
    let good = folder.good();
    let dir = folder.dir.path();
    let files = server::Files {
        certificate: write(dir, "tls.crt", &good.certificate),
        key: dir.to_owned(),
        clients: None,
    };
    let said = server::Acceptor::new(files)
        .expect_err("a folder is no key")
        .to_string();
    assert_said(&said, &["the key in ", "cannot be read"]);
}

#[test]
fn the_validity_of_certificates_is_checked() {
    let folder = Folder::new();
    let expired = folder.authority.issue_changed(&["localhost"], |params| {
        params.not_after = date_time_ymd(2020, 1, 2);
    });
    let said = folder.error(&expired.certificate, &expired.key, None);
    assert_said(
        &said,
        &[
            "tls.crt",
            "certificate 1 of it (CN=localhost)",
            "expired at 2020-01-02T00:00:00Z",
        ],
    );
    let early = folder.authority.issue_changed(&["localhost"], |params| {
        params.not_before = date_time_ymd(3000, 1, 2);
    });
    let said = folder.error(&early.certificate, &early.key, None);
    assert_said(&said, &["tls.crt", "valid only from 3000-01-02T00:00:00Z on"]);

    // During a rotation an expired authority is in the file beside a new one.
    let old = Authority::changed("old", |params| params.not_after = date_time_ymd(2020, 1, 2));
    let good = folder.good();
    let said = folder.error(&good.certificate, &good.key, Some(&old.pem()));
    assert_said(
        &said,
        &["the authorities in ca.crt", "CN=old", "expired at 2020-01-02"],
    );
    let both = format!("{}{}", old.pem(), folder.authority.pem());
    assert_eq!(folder.error(&good.certificate, &good.key, Some(&both)), "");
}

#[test]
fn an_authority_is_used_from_the_begin_of_its_validity() {
    let folder = Folder::new();
    let dir = folder.dir.path();
    let [certificate, key] = folder.good().write(dir, "tls");
    let next = Authority::changed("next", |params| params.not_before = date_time_ymd(2900, 1, 2));
    let both = format!("{}{}", folder.authority.pem(), next.pem());
    let acceptor = server::Acceptor::new(server::Files {
        certificate,
        key,
        clients: Some(server::Clients {
            authorities: write(dir, "ca.crt", &both),
            allowed: Vec::new(),
        }),
    });
    let until = acceptor.expect("one is valid").until();
    assert_eq!(until.to_string(), "2900-01-02T00:00:00Z");
}

#[test]
fn a_server_needs_a_name_and_a_key_without_password() {
    let folder = Folder::new();
    let nameless = folder.authority.issue(&[]);
    let said = folder.error(&nameless.certificate, &nameless.key, None);
    assert_said(&said, &["the certificate in tls.crt", "(CN=nobody) has no name"]);
    let good = folder.good();
    let encrypted = good.key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    let said = folder.error(&good.certificate, &encrypted, None);
    assert_said(&said, &["the key in tls.key", "encrypted with a password"]);
}

#[test]
fn certificate_and_key_must_match() {
    let folder = Folder::new();
    let (one, other) = (folder.good(), folder.good());
    let said = folder.error(&one.certificate, &other.key, None);
    assert_said(
        &said,
        &[
            "the key in tls.key",
            "not the key of the certificate in ",
            "tls.crt",
        ],
    );
}

#[test]
fn each_file_needs_the_right_kind_of_certificate() {
    let folder = Folder::new();
    let good = folder.good();
    let said = folder.error(&folder.authority.pem(), &good.key, None);
    assert_said(
        &said,
        &["the certificate in tls.crt", "of an authority (CN=our authority)"],
    );
    let said = folder.error(&good.certificate, &good.key, Some(&good.certificate));
    assert_said(
        &said,
        &[
            "the authorities in ca.crt",
            "(CN=localhost) is not an authority's",
        ],
    );
    let reversed = format!("{}{}", good.certificate, Authority::new("a stranger").pem());
    let said = folder.error(&reversed, &good.key, None);
    assert_said(
        &said,
        &[
            "certificate 2 of it (CN=a stranger) is not the issuer",
            "(CN=localhost)",
        ],
    );
    let of_clients = folder.authority.issue_changed(&["localhost"], |params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    });
    let said = folder.error(&of_clients.certificate, &of_clients.key, None);
    assert_said(&said, &["(CN=localhost) is not for servers", "lacks serverAuth"]);
}

#[test]
fn the_files_of_clients_are_checked_as_well() {
    let folder = Folder::new();
    let dir = folder.dir.path();
    let of_servers = folder.authority.issue_changed(&["localhost"], |params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    });
    let [certificate, key] = of_servers.write(dir, "client");
    let said = |authorities: &Path| {
        let files = client::Files {
            authorities: Some(authorities.to_owned()),
            identity: Some(client::Identity {
                certificate: certificate.clone(),
                key: key.clone(),
            }),
        };
        client::Connector::new(files).expect_err("of no use").to_string()
    };
    assert_said(&said(&dir.join("none")), &["the authorities in ", "No such file"]);
    let good = write(dir, "ca.crt", &folder.authority.pem());
    assert_said(
        &said(&good),
        &["the certificate in ", "is not for clients", "lacks clientAuth"],
    );
    fs::remove_file(&good).expect("it is there");
    assert_said(&said(&good), &["the authorities in "]);
}
