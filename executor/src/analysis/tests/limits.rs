//! Whom a policy can make the executor call, and what that takes at most (L-32).

use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::{Body, Bytes};
use futures::stream;

use super::servers::{Http, TlsFront, Verdicts, response};
use super::*;
use crate::analysis::turns::MOST_WAITING;

#[tokio::test]
async fn only_hosts_that_the_operator_allows_are_called() {
    let server = Http::with(200, "1").await;
    let verdicts = Verdicts::answering(None).await;
    let port = server.address.port();
    let others = [format!("127.0.0.1:{}", port ^ 1), "prometheus:9090".to_owned()];
    for hosts in [&[][..], &others] {
        let (analyzer, _) = analyzer(hosts, |_| {});
        for request in [
            query(&server.url()),
            webhook(&server.url()),
            webhook(&format!("http://prometheus:9090@127.0.0.1:{port}/")),
            webhook(&format!("http://127.0.0.1:{port}/?http://prometheus:9090")),
            verdict(&verdicts.address.to_string(), false),
        ] {
            let found = error(&analyzer, &request).await;
            assert!(
                found.contains("--analysis-host") || found.contains("neither HOST nor HOST:PORT"),
                "{found}"
            );
        }
        assert_eq!(analyzer.hosts(), hosts);
    }
    assert_eq!((server.calls().len(), verdicts.asked().len()), (0, 0));
}

#[tokio::test]
async fn no_redirect_is_followed() {
    let target = Http::with(200, "1").await;
    let location = target.url();
    for status in [301, 302, 303, 307, 308] {
        let location = location.clone();
        let server = Http::answering(move || {
            let mut response = response(status, Body::empty());
            let value = location.parse().expect("a header");
            response.headers_mut().insert("location", value);
            response
        })
        .await;
        let hosts = [server.address.to_string(), target.address.to_string()];
        let (analyzer, _) = analyzer(&hosts, |_| {});
        for request in [query(&server.url()), webhook(&server.url())] {
            let found = error(&analyzer, &request).await;
            let expected = format!("{status}");
            assert!(
                found.contains(&expected) && found.contains("no redirect is followed"),
                "{found}"
            );
        }
    }
    assert_eq!(target.calls().len(), 0);
}

const SPACES: &str = "                                                                ";

// The answer has no end: the test ends only because no more is read than is needed.
#[tokio::test]
async fn of_a_long_answer_no_more_is_read() {
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sent);
    let server = Http::answering(move || {
        let counted = Arc::clone(&counted);
        let chunks = stream::repeat_with(move || {
            counted.fetch_add(1, Ordering::SeqCst);
            Ok::<_, std::convert::Infallible>(Bytes::from_static(SPACES.as_bytes()))
        });
        response(200, Body::from_stream(chunks))
    })
    .await;
    for request in [query(&server.url()), webhook(&server.url())] {
        let found = error(&of(server.address), &request).await;
        assert!(found.contains("longer than 1048576 bytes"), "{found}");
    }
    assert!(
        sent.load(Ordering::SeqCst) > 2 * (1 << 20) / SPACES.len(),
        "it was cut too early"
    );
    let message = "x".repeat((1 << 20) + 1);
    let answer = v1::GetVerdictResponse { verdict: 1, message };
    let verdicts = Verdicts::answering(Some(Ok(answer))).await;
    let asked = verdict(&verdicts.address.to_string(), false);
    let found = error(&of(verdicts.address), &asked).await;
    assert!(found.contains("OUT_OF_RANGE"), "{found}");
}

#[tokio::test]
async fn a_call_has_a_time_limit() {
    // Neither a head nor a body that never comes keeps a call waiting.
    let silent = Http::serving(|_| std::future::pending()).await;
    let begun = Http::answering(|| {
        let never = stream::pending::<Result<Bytes, std::convert::Infallible>>();
        response(200, Body::from_stream(never))
    })
    .await;
    for server in [silent, begun] {
        let (analyzer, _) = analyzer(&[server.address.to_string()], |settings| {
            settings.timeout = Duration::from_millis(200);
        });
        for request in [query(&server.url()), webhook(&server.url())] {
            let found = error(&analyzer, &request).await;
            assert!(found.ends_with("no answer within 200ms"), "{found}");
        }
        assert_eq!(server.calls().len(), 2);
    }
}

// A token goes to the host that the operator meant, and is in no error.
#[tokio::test]
async fn a_credential_goes_only_to_its_host() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["prom", "checks"] {
        token(folder.path(), name);
    }
    let (first, second) = (Http::with(200, "1").await, Http::with(200, "1").await);
    let hosts = [
        format!("{}=prom", first.address),
        format!("{}=checks", second.address),
    ];
    let with_folder = |settings: &mut Settings| settings.credentials = Some(folder.path().to_owned());
    let (analyzer, _) = analyzer(&hosts, with_folder);
    let with = |server: &Http, credential: &str| v1::Measure {
        credential: credential.to_owned(),
        ..webhook(&server.url())
    };
    for (server, credential, expected) in [
        (&first, "prom", Some("Bearer token-of-prom")),
        (&first, "", None),
        (&second, "checks", Some("Bearer token-of-checks")),
    ] {
        assert_eq!(measure(&analyzer, &with(server, credential)).await, value("1"));
        let call = server.calls().pop().expect("a call");
        assert_eq!(call.header("authorization"), expected);
    }
    let before = first.calls().len() + second.calls().len();
    for (server, credential) in [
        (&first, "checks"),
        (&second, "prom"),
        (&first, "other"),
        (&first, "../prom"),
        (&first, "."),
    ] {
        let found = error(&analyzer, &with(server, credential)).await;
        assert!(
            found.contains("may not be sent there") && !found.contains("token-of"),
            "{found}"
        );
    }
    assert_eq!(
        first.calls().len() + second.calls().len(),
        before,
        "nobody is called"
    );
}

// The policy's author chooses the scheme, and must not be able to have a token sent in plain text.
#[tokio::test]
async fn a_credential_is_sent_over_tls_only() {
    let folder = tempfile::tempdir().expect("a folder");
    token(folder.path(), "prom");
    let hosts = ["metrics.invalid=prom".to_owned(), "localhost=prom".to_owned()];
    let server = Http::with(200, "1").await;
    let verdicts = Verdicts::answering(Some(Ok(v1::GetVerdictResponse::default()))).await;
    let front = TlsFront::of(server.address, "http/1.1", folder.path()).await;
    let (analyzer, _) = analyzer(&hosts, |settings| {
        settings.credentials = Some(folder.path().to_owned());
        settings.authorities = Some(front.authority.clone());
    });
    let with = |request: v1::Measure| v1::Measure {
        credential: "prom".to_owned(),
        ..request
    };
    for request in [
        with(webhook("http://metrics.invalid/")),
        with(query("http://metrics.invalid:9090")),
        with(verdict("metrics.invalid:443", false)),
    ] {
        let found = error(&analyzer, &request).await;
        assert!(found.contains("not sent in plain text"), "{found}");
    }
    let secured = with(webhook(&format!("https://localhost:{}/", front.port)));
    assert_eq!(measure(&analyzer, &secured).await, value("1"));
    let call = server.calls().pop().expect("a call");
    assert_eq!(call.header("authorization"), Some("Bearer token-of-prom"));
    let local = with(verdict(&format!("localhost:{}", verdicts.address.port()), false));
    measure(&analyzer, &local).await;
    let asked = verdicts.asked();
    let sent = asked[0].metadata().get("authorization").expect("a token");
    assert_eq!(sent, "Bearer token-of-prom");
}

// A call may wait for long, and meanwhile the policy may be replaced by ever new versions.
#[tokio::test]
async fn a_call_that_waits_does_not_keep_its_policy() {
    let server = Http::with(200, "1").await;
    let (analyzer, subject) = (of(server.address), subject("1m"));
    for request in [
        query(&server.url()),
        webhook(&server.url()),
        verdict("127.0.0.1:1", false),
    ] {
        let _waits = analyzer.measure(&subject, &request);
        let policy = subject.policy.as_ref().expect("a policy");
        assert_eq!(Arc::strong_count(policy), 1, "{request:?}");
    }
}

#[tokio::test]
async fn of_a_namespace_few_calls_wait() {
    let server = Http::with(200, "1").await;
    let analyzer = of(server.address);
    let request = webhook(&server.url());
    let mut waiting: Vec<_> = (0..MOST_WAITING)
        .map(|_| analyzer.measure(&subject("1m"), &request))
        .collect();
    let found = error(&analyzer, &request).await;
    assert!(
        found.contains("100 measurements of the namespace wait already"),
        "{found}"
    );
    waiting.pop();
    assert_eq!(measure(&analyzer, &request).await, value("1"));
}
