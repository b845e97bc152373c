use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use nodewise_fake_apiserver::{RecordedRequest, Requests, apiserver, failure};

/// The source component of the Events.
const COMPONENT: &str = "daemonset-controller";

fn note(message: &str) -> EventNote {
    EventNote {
        component: COMPONENT,
        object: v1::WorkloadReference {
            kind: "DaemonSet".to_owned(),
            namespace: "demo".to_owned(),
            name: "agent".to_owned(),
            uid: "uid-agent".to_owned(),
            resource_version: "7".to_owned(),
        },
        kind: "Normal".to_owned(),
        reason: "SuccessfulCreate".to_owned(),
        message: message.to_owned(),
        once: None,
    }
}

/// Records all messages and waits until they were sent. Returns the requests and the metrics.
async fn send(
    answer: impl Fn(&RecordedRequest) -> Option<(u16, Value)> + Send + Sync + 'static,
    messages: &[&str],
) -> (Vec<RecordedRequest>, String) {
    let ((client, requests), metrics): ((Client, Requests), _) =
        (apiserver(answer), Metrics::new("nodewise-executor"));
    let (recorder, sender) = EventRecorder::new(client, COMPONENT, metrics.clone());
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

// An Event has the full identity of the object, the source and the reporting component. D-102: a repetition is counted in the
// same Event.
#[tokio::test]
async fn events_have_the_standard_fields() {
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
    assert_eq!(created["source"]["component"], COMPONENT);
    assert_eq!(created["reportingComponent"], COMPONENT);
    let name = created["metadata"]["name"].as_str().expect("a name");
    assert!(name.starts_with("agent."));
    assert_eq!(
        requests[1].line,
        format!("PATCH /api/v1/namespaces/demo/events/{name}")
    );
    assert_eq!(requests[1].json()["count"], 2);
    assert!(fate(&metrics, "created", 1) && fate(&metrics, "patched", 1));
}

// D-102: an Event that was deleted meanwhile is created again.
#[tokio::test]
async fn an_expired_event_is_created_again() {
    let answer = |asked: &RecordedRequest| {
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

// Another process that tells the same finds the Event.
#[tokio::test]
async fn an_event_that_is_told_once_has_a_fixed_name() {
    for (status, expected) in [(201, "created"), (409, "filtered")] {
        let answer = move |asked: &RecordedRequest| {
            Some(match status {
                409 => failure(409, "AlreadyExists", &[]),
                _ => (status, asked.json()),
            })
        };
        let ((client, requests), metrics): ((Client, Requests), _) =
            (apiserver(answer), Metrics::new("nodewise-executor"));
        let (recorder, sender) = EventRecorder::new(client, COMPONENT, metrics.clone());
        recorder.record(EventNote {
            once: Some("0123456789abcdef".to_owned()),
            ..note("the rollout is stuck")
        });
        drop(recorder);
        sender.await;
        let requests = requests.lock().expect("lock").clone();
        assert_eq!(requests.len(), 1);
        assert_eq!(requests[0].json()["metadata"]["name"], "agent.0123456789abcdef");
        assert!(fate(&metrics.encode(), expected, 1), "{status}");
    }
}

// Best effort: a rejected Event is dropped, an Event without a response is retried, and neither stops later Events.
#[tokio::test(start_paused = true)]
async fn a_failed_event_stops_nothing() {
    let (requests, metrics) = send(|_| Some(failure(403, "Forbidden", &[])), &["a", "b"]).await;
    assert_eq!(requests.len(), 2);
    assert!(fate(&metrics, "failed", 2));
    let silent = AtomicBool::new(true);
    let answer =
        move |asked: &RecordedRequest| (!silent.swap(false, Ordering::Relaxed)).then(|| (201, asked.json()));
    let (requests, metrics) = send(answer, &["a"]).await;
    assert_eq!(requests.len(), 2, "the second try was answered");
    assert!(fate(&metrics, "created", 1));
    let (requests, metrics) = send(|_| None, &["a"]).await;
    assert_eq!(requests.len(), usize::try_from(TRIES).expect("few"));
    assert!(fate(&metrics, "failed", 1));
}

// A caller never waits. If there are too many Events, the rest are dropped and counted.
#[tokio::test]
async fn too_many_are_dropped() {
    let messages: Vec<_> = (0..QUEUE_SIZE + 5).map(|number| number.to_string()).collect();
    let messages: Vec<_> = messages.iter().map(String::as_str).collect();
    let (requests, metrics) = send(|asked| Some((201, asked.json())), &messages).await;
    assert!(fate(&metrics, "dropped", 5));
    assert_eq!(
        requests.len(),
        25,
        "and of the others the apiserver is spared most"
    );
}

// The kind of an object determines its API version.
#[test]
fn an_event_may_be_about_a_policy_or_a_lease() {
    for (kind, expected) in [
        ("RolloutPolicy", "nodewise.dev/v1alpha1"),
        ("Lease", "coordination.k8s.io/v1"),
        ("DaemonSet", "apps/v1"),
    ] {
        let mut note = note("Stage canary is complete");
        note.object.kind = kind.to_owned();
        let regarded = &event(&note, &note.message, Timestamp::UNIX_EPOCH)["involvedObject"];
        assert_eq!(
            (&regarded["kind"], &regarded["apiVersion"]),
            (&json!(kind), &json!(expected))
        );
    }
}
