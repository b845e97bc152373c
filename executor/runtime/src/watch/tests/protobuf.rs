//! A reflector and an apiserver that speaks Protobuf.

use http::{HeaderMap, header};
use prost::Message;

use super::*;
use crate::protobuf::{Cause, Details, Failure, List, ListMeta, RawExtension, TypeMeta, Unknown, WatchEvent};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const STREAM: &str = "application/vnd.kubernetes.protobuf;stream=watch";

/// A pod with the fields that these tests read.
#[derive(Clone, PartialEq, Message)]
struct PodMessage {
    #[prost(message, optional, tag = "1")]
    metadata: Option<Metadata>,
}

#[derive(Clone, PartialEq, Message)]
struct Metadata {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "3")]
    namespace: String,
    #[prost(string, tag = "5")]
    uid: String,
    #[prost(string, tag = "6")]
    resource_version: String,
    #[prost(message, repeated, tag = "13")]
    owner_references: Vec<Owner>,
}

#[derive(Clone, PartialEq, Message)]
struct Owner {
    #[prost(string, tag = "1")]
    kind: String,
    #[prost(string, tag = "3")]
    name: String,
    #[prost(string, tag = "4")]
    uid: String,
    #[prost(bool, tag = "6")]
    controller: bool,
}

/// The same pod as that of [`super::pod`].
fn pod_message(name: &str, version: &str) -> Vec<u8> {
    let owner = Owner {
        kind: DAEMON_SETS.kind.into(),
        name: "foo".into(),
        uid: "u1".into(),
        controller: true,
    };
    let metadata = Metadata {
        name: name.into(),
        namespace: "ns".into(),
        uid: name.into(),
        resource_version: version.into(),
        owner_references: vec![owner],
    };
    let metadata = Some(metadata);
    PodMessage { metadata }.encode_to_vec()
}

fn enveloped(kind: &str, object: Vec<u8>) -> Vec<u8> {
    let unknown = Unknown {
        type_meta: Some(TypeMeta {
            kind: kind.to_owned().into(),
        }),
        raw: object.into(),
        ..Unknown::default()
    };
    [&b"k8s\0"[..], &unknown.encode_to_vec()].concat()
}

fn failure(code: i32) -> Vec<u8> {
    let failure = Failure {
        status: "Failure".into(),
        message: b"too \xff old".to_vec().into(),
        reason: "Expired".into(),
        details: Some(Details {
            causes: vec![Cause::default()],
            retry_after_seconds: 7,
            ..Details::default()
        }),
        code,
    };
    enveloped("Status", failure.encode_to_vec())
}

fn answer_of(content_type: &'static str, code: u16, body: Vec<u8>) -> Response {
    let mut response = answer(code, body);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type.parse().expect("a value"));
    response
}

fn page_of(names: &[&str], version: &str, continue_token: &str) -> Response {
    let list = List {
        metadata: Some(ListMeta {
            resource_version: version.into(),
            continue_token: continue_token.into(),
        }),
        items: names.iter().map(|name| pod_message(name, "1").into()).collect(),
    };
    answer_of(PROTOBUF, 200, enveloped("PodList", list.encode_to_vec()))
}

fn frame(kind: &str, object: Vec<u8>) -> Vec<u8> {
    let event = WatchEvent {
        kind: kind.to_owned().into(),
        object: Some(RawExtension { raw: object.into() }),
    };
    let event = event.encode_to_vec();
    let length = u32::try_from(event.len()).expect("short");
    [&length.to_be_bytes()[..], &event].concat()
}

fn change(kind: &str, name: &str, version: &str) -> Vec<u8> {
    frame(kind, enveloped("Pod", pod_message(name, version)))
}

fn frames(frames: &[Vec<u8>]) -> Response {
    answer_of(STREAM, 200, frames.concat())
}

/// An apiserver that gives these responses, one per request, and the headers that it received.
fn recording(answers: Vec<Response>) -> (Client, Arc<Mutex<Vec<HeaderMap>>>) {
    let headers = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&headers);
    let answers = Mutex::new(VecDeque::from(answers));
    let service = tower::service_fn(move |request: http::Request<Body>| {
        seen.lock().expect("no panic").push(request.headers().clone());
        let answer = answers.lock().expect("no panic").pop_front();
        async move {
            match answer {
                Some(answer) => Ok::<_, Infallible>(answer),
                None => std::future::pending().await,
            }
        }
    });
    (Client::new(service, "default"), headers)
}

// D-110, as in JSON. Every request asks for Protobuf, and none for compression.
#[tokio::test(start_paused = true)]
async fn lists_then_watches() {
    let watched = frames(&[
        change("ADDED", "d", "8"),
        change("MODIFIED", "a", "9"),
        change("DELETED", "b", "10"),
        change("BOOKMARK", "", "20"),
    ]);
    let (client, headers) = recording(vec![
        page_of(&["a", "b"], "7", "more"),
        page_of(&["c"], "7", ""),
        watched,
        page_of(&[], "30", ""),
        frames(&[change("ADDED", "e", "21")]),
    ]);
    let (events, checks) = reflect(&client, None, 7).await;
    let expected = [
        "first a b",
        "listed c at 7",
        "applied d@8",
        "applied a@9",
        "deleted b@10",
        "bookmark of pods at 20",
        "applied e@21",
    ];
    assert_eq!(events, expected);
    assert_eq!(checks.failing(), []);
    for headers in headers.lock().expect("no panic").iter() {
        let value = |name| headers.get(name).map(|value| value.to_str().expect("ASCII"));
        let accepted = value(header::ACCEPT).expect("a header");
        assert_eq!(accepted, format!("{PROTOBUF},application/json"));
        let compressed = value(header::ACCEPT_ENCODING);
        assert!(
            compressed.is_none_or(|value| value == "identity"),
            "{compressed:?}"
        );
    }
}

// The Content-Type of each response decides, because a proxy may send some requests to an apiserver that knows JSON only.
#[tokio::test(start_paused = true)]
async fn each_response_may_be_json() {
    let json =
        |kind: &str, name: &str, version: &str| events(&[(kind, pod(name, version, DAEMON_SETS.kind))]);
    let (client, _) = recording(vec![
        page_of(&["a"], "7", ""),
        json("ADDED", "b", "8"),
        page(&[], "9", ""),
        frames(&[change("ADDED", "c", "9"), frame("ERROR", failure(410))]),
        page(&["d"], "10", ""),
        frames(&[change("ADDED", "e", "11")]),
    ]);
    let (events, _) = reflect(&client, None, 5).await;
    let expected = [
        "listed a at 7",
        "applied b@8",
        "applied c@9",
        "listed d at 10",
        "applied e@11",
    ];
    assert_eq!(events, expected);
}

// After status 410, in the stream or as a response, everything is listed again.
#[tokio::test(start_paused = true)]
async fn lists_again_after_a_gap() {
    let (client, _) = apiserver(vec![
        page_of(&["a"], "7", ""),
        frames(&[frame("ERROR", failure(410))]),
        page_of(&["b"], "50", ""),
        answer_of(PROTOBUF, 410, failure(410)),
        page_of(&["c"], "90", ""),
    ]);
    let (events, _) = reflect(&client, None, 3).await;
    assert_eq!(events, ["listed a at 7", "listed b at 50", "listed c at 90"]);
}

// A failure is read like one in JSON, and its message is shown.
#[tokio::test(start_paused = true)]
async fn failures_are_read() {
    for (response, in_message) in [
        (answer_of(PROTOBUF, 403, failure(403)), "too \u{fffd} old"),
        (answer_of(PROTOBUF, 403, b"<html>".to_vec()), "<html>"),
        (answer_of(PROTOBUF, 403, Vec::new()), "403 Forbidden"),
    ] {
        let (client, _) = recording(vec![response]);
        let request = http::Request::get("/api/v1/pods").body(Vec::new());
        let opened = crate::response::open(&client, request.expect("a request")).await;
        let Err(kube::Error::Api(status)) = opened else {
            panic!("no failure: {opened:?}")
        };
        assert_eq!(status.code, 403);
        assert!(status.message.contains(in_message), "{status:?}");
        if in_message.starts_with("too") {
            let details = status.details.as_ref().expect("details");
            assert_eq!((details.retry_after_seconds, &*status.reason), (7, "Expired"));
        }
    }
}

// A watch that is cut within an event continues before this event.
#[tokio::test(start_paused = true)]
async fn an_incomplete_event_is_sent_again() {
    let whole = [change("ADDED", "b", "8"), change("ADDED", "c", "9")].concat();
    for cut in [1, 4, 5, change("ADDED", "c", "9").len() - 1] {
        let first = whole[..change("ADDED", "b", "8").len() + cut].to_vec();
        let (client, requests) = apiserver(vec![
            page_of(&["a"], "7", ""),
            answer_of(STREAM, 200, first),
            frames(&[change("ADDED", "c", "9")]),
        ]);
        let (events, _) = reflect(&client, None, 3).await;
        assert_eq!(events, ["listed a at 7", "applied b@8", "applied c@9"], "{cut}");
        let requests = requests.lock().expect("no panic").clone();
        assert!(requests[2].contains("resourceVersion=8"), "{requests:?}");
    }
}

// What is no event, or is about another kind, leads to a new list. It is not read as a pod.
#[tokio::test(start_paused = true)]
async fn an_invalid_event_leads_to_a_new_list() {
    let pod = |name: &str| pod_message(name, "8");
    let unknown = Unknown {
        content_encoding: "gzip".into(),
        raw: pod("x").into(),
        ..Unknown::default()
    };
    for invalid in [
        frame("ADDED", pod("x")),
        frame("ADDED", enveloped("PartialObjectMetadata", pod("x"))),
        frame("ADDED", [&b"k8s\0"[..], &unknown.encode_to_vec()].concat()),
        frame("ADDED", b"k8s\0\xff".to_vec()),
        frame("RENAMED", enveloped("Pod", pod("x"))),
        frame("ADDED", Vec::new()),
        vec![0, 0, 0, 0],
        vec![0, 0, 0, 2, 0xff, 0xff],
    ] {
        let (client, requests) = apiserver(vec![
            page_of(&["a"], "7", ""),
            frames(std::slice::from_ref(&invalid)),
            page_of(&["b"], "50", ""),
        ]);
        let (events, _) = reflect(&client, None, 2).await;
        assert_eq!(events, ["listed a at 7", "listed b at 50"], "{invalid:?}");
        assert!(!requests.lock().expect("no panic")[2].contains("resourceVersion"));
    }
}

// A list that is not one of pods is not read, and the next one is.
#[tokio::test(start_paused = true)]
async fn a_list_of_another_kind_is_refused() {
    let list = List {
        items: vec![pod_message("x", "1").into()],
        ..List::default()
    };
    for body in [
        enveloped("PartialObjectMetadataList", list.encode_to_vec()),
        list.encode_to_vec(),
        b"{}".to_vec(),
        // Without a version.
        enveloped("PodList", list.encode_to_vec()),
    ] {
        let (client, _) = apiserver(vec![answer_of(PROTOBUF, 200, body), page_of(&["a"], "7", "")]);
        let (events, _) = reflect(&client, None, 1).await;
        assert_eq!(events, ["listed a at 7"]);
    }
}

// As in JSON: the planner would create a second pod beside a pod that is missing from the cache.
#[tokio::test(start_paused = true)]
async fn an_unreadable_pod_blocks_the_list() {
    let nameless = pod_message("", "8");
    let list = List {
        metadata: Some(ListMeta {
            resource_version: "7".into(),
            ..ListMeta::default()
        }),
        items: vec![pod_message("a", "1").into(), nameless.into()],
    };
    let (client, _) = apiserver(vec![
        answer_of(PROTOBUF, 200, enveloped("PodList", list.encode_to_vec())),
        page_of(&["a"], "8", ""),
        frames(&[change("MODIFIED", "", "9")]),
        page_of(&["b"], "9", ""),
    ]);
    let (events, _) = reflect(&client, None, 2).await;
    assert_eq!(events, ["listed a at 8", "listed b at 9"]);
}

// Only pods and nodes are asked for in Protobuf: no field of a revision may be lost.
#[tokio::test(start_paused = true)]
async fn other_resources_are_asked_for_in_json() {
    let (client, headers) = recording(vec![
        answer(200, r#"{"metadata":{"resourceVersion":"7"},"items":[]}"#),
        answer(200, "{\"type\":\"ADDED\"}\n"),
    ]);
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
    receiver.recv().await.expect("a list");
    while headers.lock().expect("no panic").len() < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for headers in headers.lock().expect("no panic").iter() {
        let accepted = headers
            .get(header::ACCEPT)
            .map(|value| value.to_str().expect("ASCII"));
        assert!(
            accepted.is_none_or(|value| !value.contains("protobuf")),
            "{accepted:?}"
        );
    }
}
