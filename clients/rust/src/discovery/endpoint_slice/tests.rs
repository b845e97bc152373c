use std::sync::Mutex;

use nodewise_fake_apiserver::{Requests, apiserver, failure};
use serde_json::{Value, json};

use super::*;

/// A slice with two ports; the second one is 7443 with the name grpc.
fn slice(name: &str, endpoints: &Value) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": name, "namespace": "tools", "resourceVersion": "7"},
        "addressType": "IPv4",
        "ports": [{"name": "metrics", "port": 8080}, {"name": "grpc", "port": 7443}],
        "endpoints": endpoints,
    })
}

fn endpoint(address: &str, ready: bool, serving: bool, terminating: bool) -> Value {
    let conditions = json!({"ready": ready, "serving": serving, "terminating": terminating});
    json!({"addresses": [address], "conditions": conditions})
}

fn ready(address: &str) -> Value {
    endpoint(address, true, true, false)
}

fn found(slices: &[Value], port: &ServicePort) -> Result<Vec<String>, String> {
    let mut present = Slices::default();
    assert!(!present.apply(Event::Init));
    for slice in slices {
        let slice = serde_json::from_value(slice.clone()).expect("a slice");
        assert!(
            !present.apply(Event::InitApply(slice)),
            "half a list replaces nothing"
        );
    }
    assert!(present.apply(Event::InitDone));
    let addresses = present.addresses(port)?;
    Ok(addresses.iter().map(ToString::to_string).collect())
}

fn grpc() -> ServicePort {
    ServicePort::Name("grpc".to_owned())
}

#[test]
fn conditions_decide_which_endpoints_are_used() {
    for (case, endpoints, expected) in [
        (
            "ready",
            json!([ready("10.0.0.1"), ready("10.0.0.2")]),
            &["10.0.0.1:7443", "10.0.0.2:7443"][..],
        ),
        (
            "not ready yet",
            json!([ready("10.0.0.1"), endpoint("10.0.0.2", false, false, false)]),
            &["10.0.0.1:7443"],
        ),
        (
            "one ends",
            json!([ready("10.0.0.1"), endpoint("10.0.0.2", false, true, true)]),
            &["10.0.0.1:7443"],
        ),
        (
            "all end",
            json!([
                endpoint("10.0.0.1", false, true, true),
                endpoint("10.0.0.2", false, false, true)
            ]),
            &["10.0.0.1:7443"],
        ),
        (
            "ready by decree, and ending",
            json!([endpoint("10.0.0.1", true, true, true), ready("10.0.0.2")]),
            &["10.0.0.2:7443"],
        ),
        (
            "nothing is said",
            json!([{"addresses": ["10.0.0.1"]}, {"addresses": ["10.0.0.2"], "conditions": {}}]),
            &["10.0.0.1:7443", "10.0.0.2:7443"],
        ),
        (
            "only the first address means something",
            json!([{"addresses": ["10.0.0.1", "10.0.0.9"]}]),
            &["10.0.0.1:7443"],
        ),
        ("none", json!([]), &[]),
        ("none, as the API writes it", Value::Null, &[]),
    ] {
        let found = found(&[slice("a", &endpoints)], &grpc());
        assert_eq!(
            found,
            Ok(expected.iter().map(ToString::to_string).collect()),
            "{case}"
        );
    }
}

#[test]
fn slices_are_merged_to_one_family() {
    let mut six = slice("six", &json!([ready("fd00::1")]));
    six["addressType"] = json!("IPv6");
    assert_eq!(
        found(std::slice::from_ref(&six), &grpc()),
        Ok(vec!["[fd00::1]:7443".to_owned()])
    );
    let four = slice("four", &json!([ready("10.0.0.1")]));
    let again = slice("again", &json!([ready("10.0.0.1"), ready("10.0.0.2")]));
    assert_eq!(
        found(&[six, four, again], &grpc()),
        Ok(vec!["10.0.0.1:7443".to_owned(), "10.0.0.2:7443".to_owned()])
    );
}

#[test]
fn the_port_is_a_name_a_number_or_the_first() {
    let slices = [slice("a", &json!([ready("10.0.0.1")]))];
    for (port, expected) in [
        (ServicePort::First, "10.0.0.1:8080"),
        (ServicePort::Number(9000), "10.0.0.1:9000"),
        (grpc(), "10.0.0.1:7443"),
    ] {
        assert_eq!(found(&slices, &port), Ok(vec![expected.to_owned()]), "{port:?}");
    }
    let error = found(&slices, &ServicePort::Name("http".to_owned())).expect_err("no such port");
    assert!(error.contains("port"), "{error}");
}

#[test]
fn each_event_changes_the_set() {
    let mut slices = Slices::default();
    let read = |value: Value| serde_json::from_value::<EndpointSlice>(value).expect("a slice");
    let (a, b) = (
        slice("a", &json!([ready("10.0.0.1")])),
        slice("b", &json!([ready("10.0.0.2")])),
    );
    assert!(slices.apply(Event::Apply(read(a.clone()))));
    assert!(slices.apply(Event::Apply(read(b))));
    assert_eq!(slices.addresses(&grpc()).expect("addresses").len(), 2);
    assert!(slices.apply(Event::Delete(read(a))));
    assert_eq!(slices.addresses(&grpc()).expect("addresses").len(), 1);
    // A new list removes slices that it does not contain, but only when it is complete.
    slices.apply(Event::Init);
    assert_eq!(slices.addresses(&grpc()).expect("addresses").len(), 1);
    slices.apply(Event::InitDone);
    assert_eq!(slices.addresses(&grpc()), Ok(Vec::new()));
}

/// Returns the answers one after the other. When they are used up, requests get no answer.
fn scripted(answers: Vec<(u16, Value)>) -> (Client, Requests) {
    let answers = Mutex::new(answers.into_iter());
    apiserver(move |_| answers.lock().expect("lock").next())
}

fn list(slices: &[Value]) -> (u16, Value) {
    let body = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSliceList",
        "metadata": {"resourceVersion": "10"}, "items": slices,
    });
    (200, body)
}

// D-112: after an error the watch starts again with a list, whatever resourceVersion it had reached.
#[tokio::test(start_paused = true)]
async fn a_broken_watch_lists_again() {
    let one = slice("a", &json!([ready("10.0.0.1")]));
    let two = slice("a", &json!([ready("10.0.0.1"), ready("10.0.0.2")]));
    let (client, requests) = scripted(vec![
        list(&[two]),
        failure(503, "ServiceUnavailable", &[]),
        list(&[one]),
    ]);
    let service = planner();
    let mut told = Box::pin(addresses(client, &service));
    assert_eq!(
        told.next().await.expect("endless").map(|found| found.len()),
        Ok(2)
    );
    told.next().await.expect("endless").expect_err("it broke");
    assert_eq!(
        told.next().await.expect("endless").map(|found| found.len()),
        Ok(1)
    );
    let requests = requests.lock().expect("lock");
    assert!(!requests[2].line.contains("watch"), "{}", requests[2].line);
}

fn planner() -> ServiceName {
    ServiceName {
        namespace: Some("tools".to_owned()),
        name: "planner".to_owned(),
        port: grpc(),
    }
}

// List, watch, and list again after "Gone". A refused request is an error with the apiserver's message; the addresses stay.
#[tokio::test(start_paused = true)]
async fn the_watch_continues_after_gone() {
    let one = slice("a", &json!([ready("10.0.0.1")]));
    let two = slice("a", &json!([ready("10.0.0.1"), ready("10.0.0.2")]));
    let (client, requests) = scripted(vec![
        failure(403, "Forbidden", &[]),
        list(std::slice::from_ref(&one)),
        (200, json!({"type": "MODIFIED", "object": two})),
        (
            200,
            json!({"type": "ERROR", "object": failure(410, "Expired", &[]).1}),
        ),
        list(&[one]),
    ]);
    let service = planner();
    let mut told = Box::pin(addresses(client, &service));
    let refused = told.next().await.expect("endless").expect_err("forbidden");
    assert!(refused.contains("Forbidden"), "{refused}");
    let mut counts = Vec::new();
    while counts.len() < 3 {
        // The stream may also contain the error of the gap.
        counts.extend(told.next().await.expect("endless").ok().map(|found| found.len()));
    }
    assert_eq!(counts, [1, 2, 1]);
    let requests = requests.lock().expect("lock");
    let path = "GET /apis/discovery.k8s.io/v1/namespaces/tools/endpointslices?";
    for asked in requests.iter() {
        assert!(asked.line.starts_with(path), "{}", asked.line);
        let selector = "labelSelector=kubernetes.io%2Fservice-name%3Dplanner";
        assert!(asked.line.contains(selector), "{}", asked.line);
    }
    assert!(
        requests[2].line.contains("resourceVersion=10"),
        "{}",
        requests[2].line
    );
}
