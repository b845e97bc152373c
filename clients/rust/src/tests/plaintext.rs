//! Tests that plain text off loopback needs `ClientConfig::plaintext`.

use nodewise_tls::client::{Connector, Files};

use super::*;

fn with(tls: bool, plaintext: bool) -> ClientConfig {
    let connector = Connector::new(Files::default()).expect("no files");
    ClientConfig {
        tls: tls.then_some(ClientTls {
            connector,
            server_name: None,
        }),
        plaintext,
        ..ClientConfig::default()
    }
}

fn read(target: &str) -> Target {
    target.parse().expect(target)
}

/// The error of a client of one server with this configuration, if any.
fn wrong(target: &str, config: &ClientConfig) -> Result<(), String> {
    config
        .check_target(&read(target))
        .map_err(|error| error.to_string())
}

// Each kind of server, without settings and with `plaintext`. The tests of `tls` check that TLS rejects `http://`.
#[test]
fn plain_text_needs_loopback_or_the_setting() {
    const FINE: &str = "";
    const HTTPS: &str = "write https://, or set ClientConfig::plaintext";
    const TLS: &str = "set ClientConfig::tls, or ClientConfig::plaintext";
    const ENCRYPTED: &str = "leave that out, or write http://";
    for (target, without, plaintext) in [
        ("http://127.0.0.1:7443", FINE, FINE),
        ("http://127.8.9.1:7443", FINE, FINE),
        ("http://[::1]:7443", FINE, FINE),
        ("http://LocalHost:7443", FINE, FINE),
        ("http://10.0.0.1:7443", HTTPS, FINE),
        ("http://planner:7443", HTTPS, FINE),
        ("http://localhost.example:7443", HTTPS, FINE),
        ("https://127.0.0.1:7443", FINE, ENCRYPTED),
        ("https://planner:7443", FINE, ENCRYPTED),
        ("dns:///localhost:7443", FINE, FINE),
        ("dns:///[::1]:7443", FINE, FINE),
        ("dns:///planner.tools.svc:7443", TLS, FINE),
        ("kubernetes:///planner.tools:grpc", TLS, FINE),
        ("kubernetes:///localhost:7443", TLS, FINE),
    ] {
        for (config, expected) in [(with(false, false), without), (with(false, true), plaintext)] {
            match wrong(target, &config) {
                Ok(()) => assert_eq!(expected, FINE, "{target}"),
                Err(said) => assert!(
                    expected != FINE && said.starts_with(target) && said.contains(expected),
                    "{target}: {said}"
                ),
            }
        }
        assert_eq!(wrong(target, &with(true, false)), Ok(()), "{target}");
        let both = wrong(target, &with(true, true)).expect_err("it is neither");
        assert!(both.contains("leave one of them out"), "{both}");
    }
}

// Every constructor checks every target.
#[tokio::test]
async fn every_constructor_rejects_plain_text() {
    let urls = ["http://127.0.0.1:1".to_owned(), "http://planner:7443".to_owned()];
    let targets = vec![read("dns:///planner:7443")];
    let nobody: Arc<dyn Observer> = Arc::new(());
    let config = ClientConfig::default;
    let Target::Fixed(address) = read("http://planner:7443") else {
        panic!("an address");
    };
    for said in [
        PlanClient::new(&urls, config(), Arc::clone(&nobody)).map(drop),
        PlanClient::discovering(targets, None, config(), nobody).map(drop),
        connect(address, &config()).await.map(drop),
    ] {
        let said = said.expect_err("plain text");
        assert!(matches!(said, ClientError::Unprotected(_)), "{said}");
    }
}

// The error names the server, the problem, and the solution.
#[test]
fn errors_name_server_problem_and_solution() {
    for (plaintext, target, expected) in [
        (
            false,
            "http://planner:7443",
            "http://planner:7443 is not on loopback, and would be asked in plain text: write https://, or set \
             ClientConfig::plaintext where something else protects it",
        ),
        (
            false,
            "dns:///planner.tools.svc:7443",
            "dns:///planner.tools.svc:7443 is not on loopback, and would be asked in plain text: set ClientConfig::tls, or \
             ClientConfig::plaintext where something else protects it",
        ),
        (
            true,
            "https://planner:7443",
            "https://planner:7443 asks for TLS, but ClientConfig::plaintext means none: leave that out, or write http://",
        ),
    ] {
        let said = wrong(target, &with(false, plaintext));
        assert_eq!(said, Err(expected.to_owned()));
    }
}
