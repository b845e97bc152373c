//! Files that cannot be used, and what is said about them.

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

    /// What is said about a server's certificate and key, and clients' authorities if there are any.
    fn said(&self, certificate: &str, key: &str, clients: Option<&str>) -> String {
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
fn good_files_are_taken() {
    let folder = Folder::new();
    let good = folder.good();
    assert_eq!(folder.said(&good.certificate, &good.key, None), "");
    let chain = format!("{}{}", good.certificate, folder.authority.pem());
    let authorities = format!("{}{}", Authority::new("another").pem(), folder.authority.pem());
    assert_eq!(folder.said(&chain, &good.key, Some(&authorities)), "");
}

#[test]
fn a_file_that_is_not_there_or_holds_something_else_is_named() {
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

    let said = folder.said("hello", &good.key, None);
    assert_said(
        &said,
        &["the certificate in tls.crt", "holds no certificate in PEM form"],
    );
    let said = folder.said(&good.key, &good.key, None);
    assert_said(
        &said,
        &["the certificate in tls.crt", "holds no certificate in PEM form"],
    );
    let said = folder.said(&good.certificate, &good.certificate, None);
    assert_said(&said, &["the key in tls.key", "holds no private key in PEM form"]);
    let said = folder.said(&good.certificate, &good.key, Some(""));
    assert_said(
        &said,
        &["the authorities in ca.crt", "holds no certificate in PEM form"],
    );
    let cut = &good.certificate[..good.certificate.len() / 2];
    assert_said(
        &folder.said(cut, &good.key, None),
        &["the certificate in tls.crt", "not in PEM form"],
    );
    let garbage = "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
    let said = folder.said(garbage, &good.key, None);
    assert_said(
        &said,
        &["the certificate in tls.crt", "certificate 1 of it cannot be read"],
    );
}

#[test]
fn a_key_that_may_not_be_read_is_named() {
    // Whoever may read everything is not refused: then there is nothing to see here but a key that is a folder.
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
fn the_time_of_a_certificate_is_looked_at() {
    let folder = Folder::new();
    let expired = folder.authority.issue_changed(&["localhost"], |params| {
        params.not_after = date_time_ymd(2020, 1, 2);
    });
    let said = folder.said(&expired.certificate, &expired.key, None);
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
    let said = folder.said(&early.certificate, &early.key, None);
    assert_said(&said, &["tls.crt", "valid only from 3000-01-02T00:00:00Z on"]);

    // While authorities change, an old one stands beside a new one.
    let old = Authority::changed("old", |params| params.not_after = date_time_ymd(2020, 1, 2));
    let good = folder.good();
    let said = folder.said(&good.certificate, &good.key, Some(&old.pem()));
    assert_said(
        &said,
        &["the authorities in ca.crt", "CN=old", "expired at 2020-01-02"],
    );
    let both = format!("{}{}", old.pem(), folder.authority.pem());
    assert_eq!(folder.said(&good.certificate, &good.key, Some(&both)), "");
}

#[test]
fn an_authority_whose_time_comes_is_looked_at_again_then() {
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
fn a_server_has_a_name_and_a_key_without_a_password() {
    let folder = Folder::new();
    let nameless = folder.authority.issue(&[]);
    let said = folder.said(&nameless.certificate, &nameless.key, None);
    assert_said(&said, &["the certificate in tls.crt", "(CN=nobody) has no name"]);
    let good = folder.good();
    let encrypted = good.key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    let said = folder.said(&good.certificate, &encrypted, None);
    assert_said(&said, &["the key in tls.key", "encrypted with a password"]);
}

#[test]
fn certificate_and_key_belong_together() {
    let folder = Folder::new();
    let (one, other) = (folder.good(), folder.good());
    let said = folder.said(&one.certificate, &other.key, None);
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
fn a_certificate_stands_where_its_kind_belongs() {
    let folder = Folder::new();
    let good = folder.good();
    let said = folder.said(&folder.authority.pem(), &good.key, None);
    assert_said(
        &said,
        &["the certificate in tls.crt", "of an authority (CN=our authority)"],
    );
    let said = folder.said(&good.certificate, &good.key, Some(&good.certificate));
    assert_said(
        &said,
        &[
            "the authorities in ca.crt",
            "(CN=localhost) is not an authority's",
        ],
    );
    let reversed = format!("{}{}", good.certificate, Authority::new("a stranger").pem());
    let said = folder.said(&reversed, &good.key, None);
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
    let said = folder.said(&of_clients.certificate, &of_clients.key, None);
    assert_said(&said, &["(CN=localhost) is not for servers", "lacks serverAuth"]);
}

#[test]
fn a_clients_files_are_looked_through_as_well() {
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
