use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::testing::api::{Asked, Requests, apiserver, failure};

fn note(message: &str) -> Note {
    WorkloadEvent {
        workload: v1::WorkloadReference {
            kind: "DaemonSet".to_owned(),
            namespace: "demo".to_owned(),
            name: "agent".to_owned(),
            uid: "uid-agent".to_owned(),
            resource_version: "7".to_owned(),
        },
        kind: "Normal".to_owned(),
        reason: "SuccessfulCreate".to_owned(),
        message: message.to_owned(),
    }
    .into()
}

/// Records all messages, waits until everything was sent, and tells the requests and the counts.
async fn send(
    answer: impl Fn(&Asked) -> Option<(u16, Value)> + Send + Sync + 'static,
    messages: &[&str],
) -> (Vec<Asked>, String) {
    let ((client, requests), metrics): ((Client, Requests), _) = (apiserver(answer), Metrics::new());
    let (recorder, sender) = EventRecorder::new(client, metrics.clone());
    for message in messages {
        recorder.record(note(message));
    }
    drop(recorder);
    sender.await;
    let requests = requests.lock().expect("lock").clone();
    (requests, metrics.encode())
}

fn fate(metrics: &str, fate: &str, count: usize) -> bool {
    metrics.contains(&format!("nodewise_events_total{{fate=\"{fate}\"}} {count}\n"))
}

// Chapter 14: the object's whole identity, source and reporting component. D-102: a repetition is counted in the same event.
#[tokio::test]
async fn events_as_people_find_them() {
    let (requests, metrics) = send(
        |asked| Some((200, asked.json())),
        &["Created pod: p", "Created pod: p"],
    )
    .await;
    let created = requests[0].json();
    assert_eq!(requests[0].line, "POST /api/v1/namespaces/demo/events");
    assert_eq!(
        created["involvedObject"],
        json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "namespace": "demo", "name": "agent",
               "uid": "uid-agent", "resourceVersion": "7"})
    );
    assert_eq!(
        (&created["type"], &created["reason"]),
        (&json!("Normal"), &json!("SuccessfulCreate"))
    );
    assert_eq!(
        (&created["message"], &created["count"]),
        (&json!("Created pod: p"), &json!(1))
    );
    assert_eq!(created["source"]["component"], DAEMON_SET_COMPONENT);
    assert_eq!(created["reportingComponent"], DAEMON_SET_COMPONENT);
    let name = created["metadata"]["name"].as_str().expect("a name");
    assert!(name.starts_with("agent."));
    assert_eq!(
        requests[1].line,
        format!("PATCH /api/v1/namespaces/demo/events/{name}")
    );
    assert_eq!(requests[1].json()["count"], 2);
    assert!(fate(&metrics, "created", 1) && fate(&metrics, "patched", 1));
}

// D-102: an event that has expired in the meantime is created anew.
#[tokio::test]
async fn an_expired_event_is_created_again() {
    let answer = |asked: &Asked| {
        Some(if asked.line.starts_with("PATCH") {
            failure(404, "NotFound", &[])
        } else {
            (201, asked.json())
        })
    };
    let (requests, metrics) = send(answer, &["Created pod: p", "Created pod: p"]).await;
    let methods: Vec<_> = requests.iter().map(|asked| &asked.line[..4]).collect();
    assert_eq!(methods, ["POST", "PATC", "POST"]);
    assert!(fate(&metrics, "created", 2));
}

// M-36: best effort: what is refused is given up, what was not answered is tried again, and neither stops what follows.
#[tokio::test(start_paused = true)]
async fn a_failed_event_stops_nothing() {
    let (requests, metrics) = send(|_| Some(failure(403, "Forbidden", &[])), &["a", "b"]).await;
    assert_eq!(requests.len(), 2);
    assert!(fate(&metrics, "failed", 2));
    let silent = AtomicBool::new(true);
    let answer = move |asked: &Asked| (!silent.swap(false, Ordering::Relaxed)).then(|| (201, asked.json()));
    let (requests, metrics) = send(answer, &["a"]).await;
    assert_eq!(requests.len(), 2, "the second try was answered");
    assert!(fate(&metrics, "created", 1));
    let (requests, metrics) = send(|_| None, &["a"]).await;
    assert_eq!(requests.len(), usize::try_from(TRIES).expect("few"));
    assert!(fate(&metrics, "failed", 1));
}

// M-36: who emits never waits: too many are dropped, and counted.
#[tokio::test]
async fn too_many_are_dropped() {
    let messages: Vec<_> = (0..QUEUE + 5).map(|number| number.to_string()).collect();
    let messages: Vec<_> = messages.iter().map(String::as_str).collect();
    let (requests, metrics) = send(|asked| Some((201, asked.json())), &messages).await;
    assert!(fate(&metrics, "dropped", 5));
    assert_eq!(
        requests.len(),
        25,
        "and of the others the apiserver is spared most"
    );
}
