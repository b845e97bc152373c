//! What is asked, and what is made of the answers (L-31).

use nodewise_proto::v1::AnalysisVerdict;
use nodewise_runtime::measurements::Measurements;

use super::servers::{Http, Task, TlsFront, Verdicts, listen};
use super::*;

#[tokio::test]
async fn prometheus_is_asked_by_an_instant_query() {
    let body =
        r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"0.5"]}]}}"#;
    let server = Http::with(200, body).await;
    let analyzer = of(server.address);
    let asked = query(&format!("{}/prometheus", server.url()));
    assert_eq!(measure(&analyzer, &asked).await, value("0.5"));
    // A call takes no longer than the interval of its check.
    assert_eq!(analyzer.measure(&subject("5s"), &asked).await, value("0.5"));
    let calls = server.calls();
    for (call, limit) in calls.iter().zip(["10000ms", "5000ms"]) {
        assert_eq!(call.path, "/prometheus/api/v1/query");
        let form = format!("query=sum%28rate%28errors%5B5m%5D%29%29&timeout={limit}");
        assert_eq!(call.body, form);
        let host = server.address.to_string();
        for (name, expected) in [
            ("host", Some(&*host)),
            ("content-type", Some("application/x-www-form-urlencoded")),
            ("authorization", None),
        ] {
            assert_eq!(call.header(name), expected, "{name}");
        }
    }
    assert_eq!(calls.len(), 2);
}

#[tokio::test]
async fn what_prometheus_cannot_say_is_an_error_with_its_address() {
    let nan =
        r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"NaN"]}]}}"#;
    let empty = r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#;
    let bad = r#"{"status":"error","errorType":"bad_data","error":"unexpected end of input"}"#;
    for (status, body, part) in [
        (200, nan, "is NaN"),
        (200, empty, "no series matches"),
        (400, bad, "bad_data: unexpected end of input"),
        (500, "oops", "it answered 500 Internal Server Error"),
    ] {
        let server = Http::with(status, body).await;
        let address = format!("{}/secret-path", server.url());
        let error = error(&of(server.address), &query(&address)).await;
        let place = format!("Prometheus at {}: ", server.address);
        assert!(error.starts_with(&place) && error.contains(part), "{error}");
        assert!(!error.contains("secret-path"), "{error}");
    }
}

#[tokio::test]
async fn a_webhook_gets_the_status_of_the_workload() {
    let server = Http::with(201, r#"{"errors": 0}"#).await;
    let asked = webhook(&format!("{}/check?team=a", server.url()));
    assert_eq!(
        measure(&of(server.address), &asked).await,
        value(r#"{"errors":0}"#)
    );
    let calls = server.calls();
    assert_eq!(calls[0].path, "/check?team=a");
    let sent: serde_json::Value = serde_json::from_str(&calls[0].body).expect("JSON");
    assert_eq!(sent, json!({"name": "agent", "uid": "u1", "state": "Soaking"}));
    assert_eq!(calls[0].header("content-type"), Some("application/json"));
    let server = Http::with(200, r#"{"verdict": "fail", "message": "too slow"}"#).await;
    let expected = v1::MeasuredVerdict {
        verdict: AnalysisVerdict::Fail.into(),
        message: "too slow".into(),
    };
    let found = measure(&of(server.address), &webhook(&server.url())).await;
    assert_eq!(found, measurement::Result::Verdict(expected));
}

fn says(verdict: AnalysisVerdict) -> v1::GetVerdictResponse {
    v1::GetVerdictResponse {
        verdict: verdict.into(),
        message: "so it is".into(),
    }
}

#[tokio::test]
async fn a_verdict_service_decides() {
    use AnalysisVerdict::{Fail, Inconclusive, Pass, Unspecified};
    for (answered, expected) in [
        (Pass, Pass),
        (Fail, Fail),
        (Inconclusive, Inconclusive),
        (Unspecified, Inconclusive),
    ] {
        let server = Verdicts::answering(Some(Ok(says(answered)))).await;
        let asked = verdict(&server.address.to_string(), false);
        let expected = v1::MeasuredVerdict {
            verdict: expected.into(),
            message: "so it is".into(),
        };
        let found = measure(&of(server.address), &asked).await;
        assert_eq!(found, measurement::Result::Verdict(expected), "{answered:?}");
        let requests = server.asked();
        let [request] = &requests[..] else {
            panic!("{} requests", requests.len());
        };
        // The service can stop when nobody waits any more.
        let limit = request.metadata().get("grpc-timeout").expect("a deadline");
        assert!(!limit.is_empty() && request.metadata().get("authorization").is_none());
        let about = request.get_ref();
        assert_eq!((about.id.as_ref(), &*about.policy_name), (asked.id.as_ref(), "p"));
        let workload = about.workload.clone().unwrap_or_default();
        assert_eq!(
            (&*workload.namespace, &*workload.name, &*workload.uid),
            ("ns", "agent", "u1")
        );
        let status: serde_json::Value = serde_json::from_slice(&about.status).expect("JSON");
        assert_eq!(status["state"], "Soaking");
    }
}

#[tokio::test]
async fn a_verdict_service_that_cannot_be_asked_is_an_error() {
    let status = tonic::Status::unavailable("not now");
    let server = Verdicts::answering(Some(Err(status))).await;
    let found = error(&of(server.address), &verdict(&server.address.to_string(), false)).await;
    let expected = format!("the VerdictService at {}: UNAVAILABLE: not now", server.address);
    assert_eq!(found, expected);
    // Nobody listens.
    let (address, listener) = listen().await;
    drop(listener);
    let found = error(&of(address), &verdict(&address.to_string(), false)).await;
    assert!(found.contains("no connection: Connection refused"), "{found}");
    // It never answers.
    let server = Verdicts::answering(None).await;
    let (analyzer, _) = analyzer(&[server.address.to_string()], |settings| {
        settings.timeout = Duration::from_millis(300);
    });
    let found = error(&analyzer, &verdict(&server.address.to_string(), false)).await;
    let is_late = ["no answer within 300ms", "DEADLINE_EXCEEDED", "CANCELLED"];
    assert!(is_late.iter().any(|part| found.contains(part)), "{found}");
}

// Each protocol is that of its provider; the certificate must be of a known authority and for the host.
#[tokio::test]
async fn over_tls() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Http::with(200, "1").await;
    let front = TlsFront::of(server.address, "http/1.1", folder.path()).await;
    let hosts = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let (trusting, _) = analyzer(&hosts, |settings| {
        settings.authorities = Some(front.authority.clone());
    });
    let asked = webhook(&format!("https://localhost:{}/", front.port));
    assert_eq!(measure(&trusting, &asked).await, value("1"));
    let other = webhook(&format!("https://127.0.0.1:{}/", front.port));
    let found = error(&trusting, &other).await;
    assert!(
        found.contains("no TLS") && found.contains("certificate"),
        "{found}"
    );
    let (stranger, _) = analyzer(&hosts, |_| {});
    let found = error(&stranger, &asked).await;
    assert!(found.contains("no TLS"), "{found}");
    assert_eq!(server.calls().len(), 1);

    let server = Verdicts::answering(Some(Ok(says(AnalysisVerdict::Pass)))).await;
    let front = TlsFront::of(server.address, "h2", folder.path()).await;
    let (trusting, _) = analyzer(&hosts, |settings| {
        settings.authorities = Some(front.authority.clone());
    });
    let asked = verdict(&format!("localhost:{}", front.port), true);
    let found = measure(&trusting, &asked).await;
    assert!(matches!(found, measurement::Result::Verdict(_)), "{found:?}");
}

#[tokio::test]
async fn measurements_are_counted_by_provider_and_outcome() {
    let server = Http::with(200, r#"{"verdict": "pass"}"#).await;
    let (analyzer, metrics) = analyzer(&[server.address.to_string()], |_| {});
    measure(&analyzer, &webhook(&server.url())).await;
    measure(&analyzer, &query(&server.url())).await;
    measure(&analyzer, &query("http://other")).await;
    let scrape = metrics.encode();
    for line in [
        r#"nodewise_measurements_total{provider="webhook",outcome="pass"} 1"#,
        r#"nodewise_measurements_total{provider="prometheus",outcome="error"} 2"#,
        r#"nodewise_measurements_total{provider="verdict",outcome="error"} 0"#,
    ] {
        assert!(scrape.contains(line), "{line} is not in:\n{scrape}");
    }
}

// A call ends when nobody waits for it any more.
#[tokio::test]
async fn a_call_that_nobody_waits_for_is_ended() {
    let (address, listener) = listen().await;
    let (told, closed) = tokio::sync::oneshot::channel();
    let (asked, is_asked) = tokio::sync::oneshot::channel();
    let server = tokio::spawn(async move {
        use tokio::io::AsyncReadExt as _;
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut read = [0; 1_024];
        assert!(stream.read(&mut read).await.expect("a request") > 0);
        asked.send(()).expect("the test waits");
        // It ends with the connection.
        while stream.read(&mut read).await.is_ok_and(|count| count > 0) {}
        told.send(()).expect("the test waits");
    });
    let _server = Task::from(server);
    let measurements = Measurements::new(Arc::new(of(address)));
    assert_eq!(measurements.hosts(), [address.to_string()]);
    let subject = subject("1m");
    measurements.start(&subject, &webhook(&format!("http://{address}")));
    tokio::time::timeout(DEADLINE, is_asked)
        .await
        .expect("in time")
        .expect("a call");
    measurements.end();
    tokio::time::timeout(DEADLINE, closed)
        .await
        .expect("in time")
        .expect("its end");
}
