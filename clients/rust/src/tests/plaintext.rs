//! Nobody is asked in plain text off loopback unless that is asked for.

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

/// What is wrong with asking one server so, if anything.
fn wrong(target: &str, config: &ClientConfig) -> Result<(), String> {
    config.suits(&read(target)).map_err(|error| error.to_string())
}

// Each kind of server by itself, and with plain text asked for. That `http://` is refused with TLS is held where TLS is.
#[test]
fn plain_text_is_spoken_on_loopback_or_when_asked_for() {
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

// Whatever a client is made by, and wherever among its servers the one is that cannot be asked.
#[tokio::test]
async fn no_client_is_made_that_would_speak_plain_text_unasked() {
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

// It names the server, what is wrong with it, and what to write.
#[test]
fn what_is_refused_is_said_in_full() {
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
