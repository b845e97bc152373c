//! One reflector against a scripted apiserver.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use futures::StreamExt as _;
use http_body_util::BodyExt as _;
use kube::client::Body;
use nodewise_projection::{Node, Pod, Revision};
use serde_json::{Value, json};

use super::*;
use crate::testing::DAEMON_SETS;

mod discovery;
mod protobuf;

type Response = http::Response<Body>;

/// An apiserver that gives these responses, one per request, and then hangs; and the requests that it received. Requests for
/// the current version get a high version and are not recorded.
fn apiserver(answers: Vec<Response>) -> (Client, Arc<Mutex<Vec<String>>>) {
    apiserver_at(vec![], answers)
}

/// An apiserver that gives these responses to requests for its current version, one per request.
fn apiserver_at(versions: Vec<Response>, answers: Vec<Response>) -> (Client, Arc<Mutex<Vec<String>>>) {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let (seen, answers) = (
        Arc::clone(&requests),
        Arc::new(Mutex::new(VecDeque::from(answers))),
    );
    let versions = Mutex::new(VecDeque::from(versions));
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let answer = if asks_for_version(&request) {
            let version = versions.lock().expect("no panic").pop_front();
            Some(version.unwrap_or_else(ahead))
        } else {
            seen.lock().expect("no panic").push(request.uri().to_string());
            answers.lock().expect("no panic").pop_front()
        };
        async move {
            match answer {
                Some(answer) => Ok::<_, Infallible>(answer),
                None => std::future::pending().await,
            }
        }
    });
    (Client::new(service, "default"), requests)
}

/// Whether this is the request for the current version before a watch continues.
fn asks_for_version(request: &http::Request<Body>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|pair| pair == "limit=1")
}

fn ahead() -> Response {
    page(&[], "1000000", "")
}

fn answer(code: u16, body: impl Into<Vec<u8>>) -> Response {
    http::Response::builder()
        .status(code)
        .body(Body::from(body.into()))
        .expect("a response")
}

fn page(names: &[&str], version: &str, continue_token: &str) -> Response {
    let items: Vec<_> = names.iter().map(|name| pod(name, "1", "DaemonSet")).collect();
    let metadata = json!({"resourceVersion": version, "continue": continue_token});
    answer(
        200,
        json!({"kind": "PodList", "metadata": metadata, "items": items}).to_string(),
    )
}

fn pod(name: &str, version: &str, owner: &str) -> Value {
    json!({"metadata": {
        "namespace": "ns", "name": name, "uid": name, "resourceVersion": version,
        "ownerReferences": [{"kind": owner, "name": "foo", "uid": "u1", "controller": true}],
    }})
}

/// A watch response with these events.
fn events(events: &[(&str, Value)]) -> Response {
    let lines = events
        .iter()
        .map(|(kind, object)| format!("{}\n", json!({"type": kind, "object": object})));
    answer(200, lines.collect::<String>())
}

fn bookmark(version: &str) -> Value {
    json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": version}})
}

fn status(code: u16) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": "Expired",
        "message": "too old", "metadata": {}})
}

fn describe(event: &ClusterEvent) -> String {
    let name = |pod: &Pod| format!("{}@{}", pod.projection.name, pod.resource_version);
    match event {
        ClusterEvent::Pods(Delta::Applied(pod)) => format!("applied {}", name(pod)),
        ClusterEvent::Pods(Delta::Deleted(pod)) => format!("deleted {}", name(pod)),
        ClusterEvent::Pods(Delta::Listed {
            objects,
            resource_version,
        }) => {
            let names: Vec<_> = objects.iter().map(|pod| pod.projection.name.as_str()).collect();
            format!("listed {} at {resource_version}", names.join(" "))
        }
        ClusterEvent::PodPage { pods, is_first } => {
            let names: Vec<_> = pods.iter().map(|pod| pod.projection.name.as_str()).collect();
            format!("{} {}", if *is_first { "first" } else { "next" }, names.join(" "))
        }
        ClusterEvent::Bookmark(resource, version) => format!("bookmark of {resource} at {version}"),
        other => panic!("unexpected {other:?}"),
    }
}

/// Reflects the pods of an apiserver until it has sent `count` events.
async fn reflect(client: &Client, namespace: Option<&str>, count: usize) -> (Vec<String>, Checks) {
    let checks = Checks::new();
    let (sender, receiver) = mpsc::channel(16);
    let reflector = Reflector::<Pod>::new(
        client,
        namespace,
        &[DAEMON_SETS],
        &sender,
        &watch::Sender::new(0),
        &checks,
        &Metrics::new("nodewise-executor"),
    );
    assert_eq!(checks.failing().len(), 1, "not before the first list");
    let mut tasks = JoinSet::new();
    tasks.spawn(reflector.run());
    let stream = tokio_stream::wrappers::ReceiverStream::new(receiver);
    let events = stream.take(count).map(|event| describe(&event)).collect();
    let events = timeout(Duration::from_hours(24), events).await;
    (events.expect("so many events in a day"), checks)
}

// The pages of an abandoned list are discarded, also when the next list has no pages.
#[tokio::test(start_paused = true)]
async fn pages_of_an_abandoned_list_are_discarded() {
    let (client, _) = apiserver(vec![
        page(&["a"], "7", "more"),
        answer(500, status(500).to_string()),
        page(&["b"], "8", ""),
        answer(410, status(410).to_string()),
        page(&["c"], "9", "more"),
        answer(410, status(410).to_string()),
        page(&["d"], "10", "more"),
        page(&["e"], "10", ""),
        answer(410, status(410).to_string()),
        page(&["f"], "11", ""),
    ]);
    let (events, _) = reflect(&client, None, 8).await;
    let expected = [
        "first a",
        "first ",
        "listed b at 8",
        "first c",
        "first ",
        "next d",
        "listed e at 10",
        "listed f at 11",
    ];
    assert_eq!(events, expected);
}

// D-110: the pages of a list, then a watch from the version of the list. Events and bookmarks advance that version.
#[tokio::test(start_paused = true)]
async fn lists_then_watches() {
    let (client, requests) = apiserver(vec![
        page(&["a", "b"], "7", "more"),
        page(&["f"], "7", "more"),
        page(&["c"], "7", ""),
        events(&[
            ("ADDED", pod("d", "8", "DaemonSet")),
            ("MODIFIED", pod("a", "9", "DaemonSet")),
            ("DELETED", pod("b", "10", "DaemonSet")),
            ("BOOKMARK", bookmark("20")),
        ]),
        events(&[("ADDED", pod("e", "21", "DaemonSet"))]),
    ]);
    let (events, checks) = reflect(&client, None, 8).await;
    let expected = [
        "first a b",
        "next f",
        "listed c at 7",
        "applied d@8",
        "applied a@9",
        "deleted b@10",
        "bookmark of pods at 20",
        "applied e@21",
    ];
    assert_eq!(events, expected);
    assert_eq!(checks.failing(), []);
    let requests = requests.lock().expect("no panic").clone();
    assert!(
        requests[0].starts_with("/api/v1/pods?") && !requests[0].contains("resourceVersion"),
        "a quorum read"
    );
    assert!(requests[1].contains("continue=more"), "{requests:?}");
    assert!(
        requests[3].contains("watch=true") && requests[3].contains("resourceVersion=7"),
        "{requests:?}"
    );
    assert!(requests[3].contains("allowWatchBookmarks=true"), "{requests:?}");
    assert!(
        requests[4].contains("resourceVersion=20"),
        "resumes where the bookmark was: {requests:?}"
    );
}

// After status 410, in the stream or as a response, everything is listed again with a quorum read.
#[tokio::test(start_paused = true)]
async fn lists_again_after_a_gap() {
    let (client, requests) = apiserver(vec![
        page(&["a"], "7", ""),
        events(&[("ERROR", status(410))]),
        page(&["b"], "50", ""),
        answer(410, status(410).to_string()),
        page(&["c"], "90", ""),
    ]);
    let (events, _) = reflect(&client, None, 3).await;
    assert_eq!(events, ["listed a at 7", "listed b at 50", "listed c at 90"]);
    let requests = requests.lock().expect("no panic").clone();
    for list in [0, 2, 4] {
        assert!(!requests[list].contains("resourceVersion"), "{requests:?}");
    }
}

// D-112: an apiserver that restarted at a lower version sends nothing to a watch that is ahead of it.
#[tokio::test(start_paused = true)]
async fn lists_again_when_the_apiserver_is_at_a_lower_version() {
    let (client, requests) = apiserver_at(
        vec![
            page(&["a"], "1001", ""),
            answer(503, status(503).to_string()),
            page(&["b"], "500", "more"),
        ],
        vec![
            page(&["a"], "1000", ""),
            events(&[("BOOKMARK", bookmark("1001"))]),
            events(&[("BOOKMARK", bookmark("1002"))]),
            page(&["b"], "500", ""),
            events(&[("BOOKMARK", bookmark("501"))]),
        ],
    );
    let (events, _) = reflect(&client, None, 5).await;
    let expected = [
        "listed a at 1000",
        "bookmark of pods at 1001",
        "bookmark of pods at 1002",
        "listed b at 500",
        "bookmark of pods at 501",
    ];
    assert_eq!(events, expected);
    let requests = requests.lock().expect("no panic").clone();
    assert!(!requests[3].contains("resourceVersion"), "{requests:?}");
    assert!(requests[4].contains("resourceVersion=500"), "{requests:?}");
}

/// Creates a reflector of the pods of an apiserver. The reflectors of the process share the number of restores.
fn reflector_with_restores(
    client: &Client,
    restores: &watch::Sender<u64>,
    tasks: &mut JoinSet<()>,
) -> mpsc::Receiver<ClusterEvent> {
    let (sender, receiver) = mpsc::channel(16);
    let reflector = Reflector::<Pod>::new(
        client,
        None,
        &[DAEMON_SETS],
        &sender,
        restores,
        &Checks::new(),
        &Metrics::new("nodewise-executor"),
    );
    tasks.spawn(reflector.run());
    receiver
}

// D-112: one watch tells the others, once, when its list has arrived.
#[tokio::test(start_paused = true)]
async fn a_lower_version_is_reported_to_the_other_reflectors() {
    let (client, _) = apiserver(vec![
        page(&["a"], "1000", ""),
        answer(410, status(410).to_string()),
        page(&["b"], "500", ""),
        answer(410, status(410).to_string()),
        page(&["c"], "501", ""),
    ]);
    let (restores, mut tasks) = (watch::Sender::new(0), JoinSet::new());
    let mut events = reflector_with_restores(&client, &restores, &mut tasks);
    for _ in 0..3 {
        events.recv().await.expect("it goes on");
    }
    assert_eq!(*restores.borrow(), 1);
}

// D-112: a watch whose own version the apiserver has already passed does not notice the restore, so deleted objects would
// stay. Nor does a watch that is open.
#[tokio::test(start_paused = true)]
async fn lists_again_when_another_watch_found_a_lower_version() {
    let lists = Mutex::new(VecDeque::from([page(&["a"], "7", ""), page(&["b"], "3", "")]));
    let (sender, mut watched) = mpsc::unbounded_channel();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let query = request.uri().query().unwrap_or_default().to_owned();
        let answer = if query.contains("watch=true") {
            sender.send(query).expect("the test listens");
            // This watch sends nothing and does not end.
            let open = Body::empty().with_trailers(std::future::pending());
            http::Response::new(open.boxed_unsync())
        } else {
            let list = lists.lock().expect("no panic").pop_front();
            list.expect("two lists").map(Body::boxed_unsync)
        };
        async move { Ok::<_, Infallible>(answer) }
    });
    let client = Client::new(service, "default");
    let (restores, mut tasks) = (watch::Sender::new(0), JoinSet::new());
    let mut events = reflector_with_restores(&client, &restores, &mut tasks);
    for expected in ["listed a at 7", "listed b at 3"] {
        let event = timeout(IDLE_LIMIT / 2, events.recv()).await;
        let event = event.expect("in time").expect("it goes on");
        assert_eq!(describe(&event), expected);
        watched.recv().await.expect("it watches");
        restores.send_if_modified(|restores| std::mem::replace(restores, 1) == 0);
    }
    assert_eq!(*restores.borrow(), 1, "it is no further restore");
}

// A page or a watch without a response, as over a half-open connection, times out, is reported, and is retried.
#[tokio::test(start_paused = true)]
async fn silent_calls_time_out_and_are_retried() {
    let hangs = Arc::new(Mutex::new(VecDeque::from([
        None,
        Some(page(&["a"], "7", "")),
        None,
        Some(events(&[("ADDED", pod("b", "8", "DaemonSet"))])),
    ])));
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let answer = if asks_for_version(&request) {
            Some(ahead())
        } else {
            hangs.lock().expect("no panic").pop_front().flatten()
        };
        async move {
            match answer {
                Some(answer) => Ok::<_, Infallible>(answer),
                None => std::future::pending().await,
            }
        }
    });
    let checks = Checks::new();
    let (sender, mut receiver) = mpsc::channel(16);
    let client = Client::new(service, "default");
    let mut tasks = JoinSet::new();
    tasks.spawn(
        Reflector::<Pod>::new(
            &client,
            None,
            &[DAEMON_SETS],
            &sender,
            &watch::Sender::new(0),
            &checks,
            &Metrics::new("nodewise-executor"),
        )
        .run(),
    );
    tokio::time::sleep(PAGE_TIMEOUT + Duration::from_millis(1)).await;
    let reason = &checks.failing()[0].1;
    assert!(reason.contains("no answer about pods"), "{reason}");
    let mut seen = Vec::new();
    while seen.len() < 2 {
        let event = timeout(2 * PAGE_TIMEOUT, receiver.recv()).await;
        seen.push(describe(&event.expect("in time").expect("it goes on")));
    }
    assert_eq!(seen, ["listed a at 7", "applied b@8"]);
}

// A list or watch that opens but fails at once is retried with growing delays.
#[tokio::test(start_paused = true)]
async fn immediate_failures_back_off() {
    let list = || page(&["a"], "7", "");
    let empty: Vec<_> = std::iter::once(list())
        .chain(std::iter::repeat_with(|| events(&[])).take(1000))
        .collect();
    let gone = std::iter::repeat_with(|| [list(), events(&[("ERROR", status(410))])]);
    for answers in [empty, gone.take(500).flatten().collect()] {
        let (client, requests) = apiserver(answers);
        let (sender, mut receiver) = mpsc::channel(16);
        let mut tasks = JoinSet::new();
        tasks.spawn(
            Reflector::<Pod>::new(
                &client,
                None,
                &[DAEMON_SETS],
                &sender,
                &watch::Sender::new(0),
                &Checks::new(),
                &Metrics::new("nodewise-executor"),
            )
            .run(),
        );
        tasks.spawn(async move { while receiver.recv().await.is_some() {} });
        tokio::time::sleep(Duration::from_mins(5)).await;
        let asked = requests.lock().expect("no panic").len();
        assert!((10..60).contains(&asked), "{asked} requests in five minutes");
    }
}

// If one watch panics, the stream ends, so that no cache stays without updates.
#[tokio::test(start_paused = true)]
async fn the_stream_ends_with_any_of_the_watches() {
    let (sender, events) = mpsc::channel::<ClusterEvent>(1);
    let mut tasks = JoinSet::new();
    tasks.spawn(async { panic!("on purpose") });
    tasks.spawn(async move {
        let _kept = sender;
        std::future::pending::<()>().await;
    });
    let mut watches = Watches {
        events,
        tasks,
        checks: Checks::new(),
        check_names: Vec::new(),
    };
    let end = timeout(Duration::from_secs(1), watches.next()).await;
    assert!(matches!(end, Ok(None)), "{end:?}");
}

// A failure shows in the health check with its reason and is retried. A failed watch does not cause a new list.
#[tokio::test(start_paused = true)]
async fn failures_are_named_and_retried() {
    let (client, requests) = apiserver(vec![answer(403, status(403).to_string())]);
    let checks = Checks::new();
    let (sender, _receiver) = mpsc::channel(16);
    let mut reflector = Reflector::<Pod>::new(
        &client,
        None,
        &[DAEMON_SETS],
        &sender,
        &watch::Sender::new(0),
        &checks,
        &Metrics::new("nodewise-executor"),
    );
    let error = reflector.list().await.expect_err("forbidden").describe();
    assert!(
        error.starts_with("listing pods: ") && error.contains("too old"),
        "{error}"
    );
    drop(requests);

    let (client, requests) = apiserver(vec![
        answer(500, "out of order"),
        page(&["a"], "7", ""),
        answer(500, "out of order"),
        events(&[("ADDED", pod("b", "8", "DaemonSet"))]),
    ]);
    let (events, checks) = reflect(&client, None, 2).await;
    assert_eq!(events, ["listed a at 7", "applied b@8"]);
    assert_eq!(checks.failing(), []);
    let requests = requests.lock().expect("no panic").clone();
    assert!(
        requests[2].contains("resourceVersion=7") && requests[3].contains("resourceVersion=7"),
        "{requests:?}"
    );
}

// Lists leave out the pods that no supported kind controls.
#[tokio::test(start_paused = true)]
async fn lists_leave_out_the_pods_of_other_kinds() {
    let items = json!([pod("mine", "1", "DaemonSet"), pod("foreign", "1", "ReplicaSet")]);
    let list = json!({"metadata": {"resourceVersion": "7"}, "items": items});
    let (client, requests) = apiserver(vec![answer(200, list.to_string())]);
    let (events, _) = reflect(&client, Some("ns"), 1).await;
    assert_eq!(events, ["listed mine at 7"]);
    assert!(requests.lock().expect("no panic")[0].starts_with("/api/v1/namespaces/ns/pods?"));
}

/// The JSON of a revision with this data, as the apiserver writes it.
fn revision(name: &str, version: &str, data: &str) -> String {
    format!(
        r#"{{"kind":"ControllerRevision","apiVersion":"apps/v1","metadata":{{"name":"{name}","namespace":"ns","uid":"{name}","resourceVersion":"{version}","managedFields":[{{"fieldsV1":{{"f:data":{{}}}}}}]}},"data":{data},"revision":1}}"#
    )
}

/// The first `count` events about revisions, and the metrics after them.
async fn revisions(answers: Vec<Response>, count: usize) -> (Vec<Delta<Revision>>, String) {
    let (client, _) = apiserver(answers);
    let metrics = Metrics::new("nodewise-executor");
    let (sender, receiver) = mpsc::channel(16);
    let mut tasks = JoinSet::new();
    tasks.spawn(
        Reflector::<Revision>::new(
            &client,
            None,
            &[DAEMON_SETS],
            &sender,
            &watch::Sender::new(0),
            &Checks::new(),
            &metrics,
        )
        .run(),
    );
    let stream = tokio_stream::wrappers::ReceiverStream::new(receiver);
    let events = stream.take(count).map(|event| match event {
        ClusterEvent::Revisions(delta) => delta,
        other => panic!("unexpected {other:?}"),
    });
    (events.collect().await, metrics.encode())
}

// The data of a revision is what some client wrote. It is passed on byte for byte.
#[tokio::test(start_paused = true)]
async fn data_of_a_revision_is_not_parsed() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let odd = [r#"{"a":"\ud800"}"#, r#"{"\udfff":1}"#, r#"{"a":1e999}"#, &deep];
    let objects: Vec<_> = odd.iter().map(|data| revision("odd", "1", data)).collect();
    let page = format!(
        r#"{{"metadata":{{"resourceVersion":"7"}},"items":[{}]}}"#,
        objects.join(",")
    );
    let lines = objects
        .iter()
        .map(|object| format!("{{\"type\":\"ADDED\",\"object\":{object}}}\n"));
    let answers = vec![answer(200, page), answer(200, lines.collect::<String>())];
    let (deltas, metrics) = revisions(answers, 1 + odd.len()).await;
    let mut seen = Vec::new();
    for delta in deltas {
        match delta {
            Delta::Listed { objects, .. } => seen.extend(objects),
            Delta::Applied(object) | Delta::Deleted(object) => seen.push(object),
        }
    }
    assert_eq!(seen.len(), 2 * odd.len());
    for (revision, data) in seen.iter().zip(odd.iter().cycle()) {
        let text = std::str::from_utf8(revision.object.as_ref().expect("whole")).expect("UTF-8");
        assert!(text.contains(&format!("\"data\":{data},")), "{text:.300}");
        assert!(!text.contains("managedFields"), "{text:.300}");
    }
    assert!(
        !metrics.contains("nodewise_unreadable_objects_total{"),
        "{metrics}"
    );
}

// Bytes that are not UTF-8 affect only their own object.
#[tokio::test(start_paused = true)]
async fn invalid_utf8_is_replaced() {
    let object = revision("odd", "8", r#"{"a":"~"}"#);
    let spoilt = |text: String| -> Vec<u8> {
        let bytes = text.bytes().map(|byte| if byte == b'~' { 0xff } else { byte });
        bytes.collect()
    };
    let page = format!(r#"{{"metadata":{{"resourceVersion":"7"}},"items":[{object}]}}"#);
    let line = format!("{{\"type\":\"MODIFIED\",\"object\":{object}}}\n");
    let (deltas, _) = revisions(vec![answer(200, spoilt(page)), answer(200, spoilt(line))], 2).await;
    let [Delta::Listed { objects, .. }, Delta::Applied(changed)] = &deltas[..] else {
        panic!("unexpected {deltas:?}")
    };
    for revision in [&objects[0], changed] {
        let text = std::str::from_utf8(revision.object.as_ref().expect("whole")).expect("UTF-8");
        assert!(text.contains("{\"a\":\"\u{fffd}\"}"), "{text}");
    }
}

// A revision whose own fields cannot be read is skipped and counted, in a list and in a watch. The watch continues.
#[tokio::test(start_paused = true)]
async fn an_unreadable_revision_is_skipped() {
    let odd = revision("odd", "8", "{}").replace("\"uid\"", "\"labels\":7,\"uid\"");
    let items = [revision("a", "1", "{}"), odd.clone(), revision("b", "1", "{}")].join(",");
    let list = format!(r#"{{"metadata":{{"resourceVersion":"7"}},"items":[{items}]}}"#);
    let line = |object: &str| format!("{{\"type\":\"MODIFIED\",\"object\":{object}}}\n");
    let lines = line(&odd) + &line(&revision("c", "10", "{}"));
    let (deltas, metrics) = revisions(vec![answer(200, list), answer(200, lines)], 2).await;
    let [Delta::Listed { objects, .. }, Delta::Applied(changed)] = &deltas[..] else {
        panic!("unexpected {deltas:?}")
    };
    let names: Vec<_> = objects
        .iter()
        .chain([changed])
        .map(|object| &*object.name)
        .collect();
    assert_eq!(names, ["a", "b", "c"]);
    let counted = "nodewise_unreadable_objects_total{group=\"apps\",resource=\"controllerrevisions\"} 2";
    assert!(metrics.contains(counted), "{metrics}");
}

// The planner would create a second pod beside a pod that is missing from the cache. So nothing continues until all pods can
// be read.
#[tokio::test(start_paused = true)]
async fn an_unreadable_pod_blocks_the_list() {
    let mut odd = pod("odd", "8", "DaemonSet");
    odd["metadata"]["creationTimestamp"] = json!("yesterday");
    let list = json!({"metadata": {"resourceVersion": "7"}, "items": [pod("a", "1", "DaemonSet"), odd]});
    let (client, requests) = apiserver(vec![
        answer(200, list.to_string()),
        page(&["a"], "8", ""),
        events(&[("MODIFIED", odd.clone())]),
        page(&["b"], "9", ""),
    ]);
    let (events, _) = reflect(&client, None, 2).await;
    assert_eq!(events, ["listed a at 8", "listed b at 9"]);
    let requests = requests.lock().expect("no panic").clone();
    let lists: Vec<_> = requests
        .iter()
        .take(4)
        .map(|request| !request.contains("watch"))
        .collect();
    assert_eq!(lists, [true, true, false, true], "{requests:?}");
}

// A line that is not an event would be sent again by every watch from that version, so everything is listed again.
#[tokio::test(start_paused = true)]
async fn an_invalid_watch_line_leads_to_a_new_list() {
    let (client, requests) = apiserver(vec![
        page(&["a"], "7", ""),
        answer(200, "{\"type\":\"ADDED\"}\n"),
        page(&["b"], "50", ""),
    ]);
    let (events, _) = reflect(&client, None, 2).await;
    assert_eq!(events, ["listed a at 7", "listed b at 50"]);
    assert!(!requests.lock().expect("no panic")[2].contains("resourceVersion"));
}

// Parsed labels take many times the memory of their text, and the data of a revision may be dropped. So a page is read only
// as fast as the controller receives the objects.
#[tokio::test(start_paused = true)]
async fn a_large_page_is_sent_in_chunks() {
    let data = format!("{{\"a\":\"{}\"}}", "x".repeat(CHUNK_BYTES));
    let items = ["a", "b", "c"].map(|name| revision(name, "1", &data)).join(",");
    let list = format!(r#"{{"metadata":{{"resourceVersion":"7"}},"items":[{items}]}}"#);
    let (client, _) = apiserver(vec![answer(200, list)]);
    let (sender, mut receiver) = mpsc::channel(16);
    let reflector = Reflector::<Revision>::new(
        &client,
        None,
        &[DAEMON_SETS],
        &sender,
        &watch::Sender::new(0),
        &Checks::new(),
        &Metrics::new("nodewise-executor"),
    );
    let mut tasks = JoinSet::new();
    tasks.spawn(reflector.run());
    for expected in ["a", "b", "c"] {
        let event = timeout(IDLE_LIMIT, receiver.recv()).await.expect("in time");
        let Some(ClusterEvent::RevisionPage { revisions, is_first }) = event else {
            panic!("unexpected {event:?}")
        };
        let names: Vec<_> = revisions.iter().map(|revision| &*revision.name).collect();
        assert_eq!((names, is_first), (vec![expected], expected == "a"));
        // The paused clock advances only when all tasks are idle.
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(receiver.len() <= 1, "{} events wait", receiver.len());
    }
    let end = timeout(IDLE_LIMIT, receiver.recv()).await.expect("in time");
    assert!(
        matches!(end, Some(ClusterEvent::Revisions(Delta::Listed { .. }))),
        "{end:?}"
    );
}

// A standby has no watches and is ready.
#[tokio::test]
async fn checks_end_with_their_watches() {
    let (client, _) = apiserver(vec![]);
    let (checks, metrics) = (Checks::new(), Metrics::new("nodewise-executor"));
    let mut watches = Builder::new(&client, None, &[DAEMON_SETS], &checks, &metrics);
    watches.watch::<Pod>();
    let watches = watches.finish();
    assert_eq!(checks.failing().len(), 1, "nothing was listed");
    watches.stop().await;
    assert_eq!(checks.failing(), []);
}

// A resource may be needed by several kinds of workload.
#[tokio::test]
async fn a_resource_is_watched_once() {
    let (client, _) = apiserver(vec![]);
    let (checks, metrics) = (Checks::new(), Metrics::new("nodewise-executor"));
    let mut watches = Builder::new(&client, None, &[DAEMON_SETS], &checks, &metrics);
    let [first, second] = [watches.watch::<Pod>(), watches.watch::<Pod>()];
    assert!(first.same_channel(&second));
    watches.watch::<Node>();
    assert_eq!(watches.watches.tasks.len(), 2);
    assert_eq!(checks.failing().len(), 2);
    watches.finish().stop().await;
}
