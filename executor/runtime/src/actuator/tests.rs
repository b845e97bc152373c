use std::time::Duration;

use kube::client::Body;
use nodewise_projection::WRITER;
use serde_json::{Value, json};

use tokio::time::Instant;

use super::*;
use crate::testing::DAEMON_SETS;
use crate::{
    events::EventRecorder,
    lead::{LeaderStatus, Timing},
    metrics::Metrics,
};
use nodewise_fake_apiserver::{RecordedRequest, Requests, apiserver, failure};

/// The source component of the Events.
const COMPONENT: &str = "daemonset-controller";

fn actuator(
    answer: impl Fn(&RecordedRequest) -> Option<(u16, Value)> + Send + Sync + 'static,
) -> (KubeActuator, Requests, Metrics) {
    let ((client, requests), metrics) = (apiserver(answer), Metrics::new("nodewise-executor"));
    let (recorder, _sender) = EventRecorder::new(client.clone(), COMPONENT, metrics.clone());
    (
        KubeActuator::new(client, Duration::from_secs(5), metrics.clone(), recorder),
        requests,
        metrics,
    )
}

fn object(name: &str, version: &str) -> (u16, Value) {
    (
        200,
        json!({"metadata": {"name": name, "resourceVersion": version}}),
    )
}

fn key(resource: Resource, name: &str) -> ObjectKey {
    ObjectKey::new(resource, "demo", name)
}

/// The metadata of an object: in Protobuf, or else in JSON, or else with the rest of the object.
const METADATA: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,\
    application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

// D-27, D-62, D-81, D-91: verbs, paths, patch types and bodies are sent as given.
#[tokio::test]
async fn calls_as_the_apiserver_gets_them() {
    let (actuator, requests, metrics) = actuator(|_| Some(object("agent-1", "42")));
    let raw = Bytes::from_static(br#"{"metadata":{"name":"agent-1"},"data":{"z":"\u003c","a":1.50}}"#);
    let written = actuator
        .create(Resource::REVISIONS, "demo", raw.clone())
        .await
        .expect("created");
    assert_eq!(
        written,
        Written {
            name: "agent-1".to_owned(),
            resource_version: "42".to_owned()
        }
    );
    actuator
        .patch(&key(Resource::PODS, "p"), Patch::Strategic("{\"a\":1}".into()))
        .await
        .expect("patched");
    actuator
        .patch(&key(Resource::REVISIONS, "r"), Patch::Merge("{\"b\":2}".into()))
        .await
        .expect("patched");
    actuator
        .delete(&key(Resource::PODS, "p"), Preconditions::uid("uid-1"))
        .await
        .expect("deleted");
    actuator
        .delete(&key(Resource::PODS, "p"), Preconditions::NONE)
        .await
        .expect("deleted");
    actuator
        .replace_status(&key(DAEMON_SETS, "agent"), "{}".into())
        .await
        .expect("replaced");
    actuator.read(&key(DAEMON_SETS, "agent")).await.expect("read");
    actuator
        .patch_status(&key(DAEMON_SETS, "agent"), Patch::Merge("{}".into()))
        .await
        .expect("patched");
    let unchanged = Preconditions {
        resource_version: Some("7"),
        ..Preconditions::uid("uid-1")
    };
    actuator
        .delete(&key(DAEMON_SETS, "agent"), unchanged)
        .await
        .expect("deleted");
    let requests = requests.lock().expect("lock").clone();
    let lines: Vec<_> = requests
        .iter()
        .map(|asked| (asked.line.as_str(), asked.content_type.as_str()))
        .collect();
    let writer = "fieldManager=nodewise-executor&fieldValidation=Ignore";
    assert_eq!(
        lines,
        [
            (
                &*format!("POST /apis/apps/v1/namespaces/demo/controllerrevisions?{writer}"),
                "application/json"
            ),
            (
                &format!("PATCH /api/v1/namespaces/demo/pods/p?{writer}"),
                "application/strategic-merge-patch+json"
            ),
            (
                &format!("PATCH /apis/apps/v1/namespaces/demo/controllerrevisions/r?{writer}"),
                "application/merge-patch+json"
            ),
            ("DELETE /api/v1/namespaces/demo/pods/p", "application/json"),
            ("DELETE /api/v1/namespaces/demo/pods/p", ""),
            (
                &format!("PUT /apis/apps/v1/namespaces/demo/daemonsets/agent/status?{writer}"),
                "application/json"
            ),
            ("GET /apis/apps/v1/namespaces/demo/daemonsets/agent", ""),
            (
                &format!("PATCH /apis/apps/v1/namespaces/demo/daemonsets/agent/status?{writer}"),
                "application/merge-patch+json"
            ),
            (
                "DELETE /apis/apps/v1/namespaces/demo/daemonsets/agent",
                "application/json"
            ),
        ]
    );
    assert_eq!(requests[0].body, raw, "D-59: not a byte is changed");
    assert_eq!(requests[3].json()["preconditions"], json!({"uid": "uid-1"}));
    assert_eq!(
        requests[8].json()["preconditions"],
        json!({"uid": "uid-1", "resourceVersion": "7"})
    );
    assert!(requests[4].body.is_empty());
    assert!(requests.iter().all(|asked| asked.user_agent == WRITER));
    let accepted = [&*requests[0].accept, &*requests[6].accept];
    assert_eq!(accepted, [METADATA, "application/json"]);
    let counted =
        "nodewise_api_call_duration_seconds_count{verb=\"delete\",resource=\"pods\",code=\"200\"} 2";
    assert!(metrics.encode().contains(counted));
}

/// The answer to an eviction that a budget does not allow.
fn protected(retry_after_seconds: u32) -> (u16, Value) {
    let cause = json!({"reason": "DisruptionBudget", "message": "The disruption budget b needs 3 healthy pods and has 3 currently"});
    let status = json!({
        "kind": "Status", "code": 429, "reason": "TooManyRequests",
        "message": "Cannot evict pod as it would violate the pod's disruption budget.",
        "details": {"retryAfterSeconds": retry_after_seconds, "causes": [cause]},
    });
    (429, status)
}

// L-24: through the Eviction API, with the uid. What a budget forbids is no error, and the message names the budget.
#[tokio::test]
async fn evictions_heed_budgets() {
    let says = "Cannot evict pod as it would violate the pod's disruption budget. The disruption budget b needs 3 healthy pods \
                and has 3 currently";
    let blocked = |retry_after: Option<u64>| Eviction::Blocked {
        message: says.to_owned(),
        retry_after: retry_after.map(Duration::from_secs),
    };
    for (answer, expected) in [
        ((201, json!({"kind": "Status"})), Ok(Eviction::Evicted)),
        (protected(0), Ok(blocked(None))),
        (protected(10), Ok(blocked(Some(10)))),
        (failure(404, "NotFound", &[]), Err(Refusal::NotFound)),
        (failure(409, "Conflict", &[]), Err(Refusal::Conflict)),
        (failure(500, "InternalError", &[]), Err(Refusal::Other)),
    ] {
        let code = answer.0;
        let (actuator, requests, metrics) = actuator(move |_| Some(answer.clone()));
        let evicted = actuator.evict(&key(Resource::PODS, "p"), "uid-p").await;
        assert_eq!(evicted.map_err(|error| error.refusal), expected, "{code}");
        let asked = requests.lock().expect("lock")[0].clone();
        assert_eq!(asked.line, "POST /api/v1/namespaces/demo/pods/p/eviction");
        let body = json!({
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p", "namespace": "demo"},
            "deleteOptions": {"preconditions": {"uid": "uid-p"}},
        });
        assert_eq!(asked.json(), body);
        let counted = format!(
            "nodewise_api_call_duration_seconds_count{{verb=\"create\",resource=\"pods/eviction\",code=\"{code}\"}} 1"
        );
        assert!(metrics.encode().contains(&counted), "{}", metrics.encode());
    }
}

// Objects are listed page by page, each in the form of a single object. A page that fails ends the list.
#[tokio::test]
async fn a_list_is_read_page_by_page() {
    let (actuator, requests, metrics) = actuator(|asked| {
        let (next, name) = match asked.line.as_str() {
            line if line.contains("/pods") => return Some(failure(403, "Forbidden", &[])),
            line if line.contains("continue=7") => ("", "b"),
            _ => ("7", "a"),
        };
        let items = [json!({"metadata": {"name": name}, "data": {}})];
        Some((
            200,
            json!({"metadata": {"resourceVersion": "9", "continue": next}, "items": items}),
        ))
    });
    let mut taken = Vec::new();
    let mut take = |object: &str| taken.push(serde_json::from_str::<Value>(object).expect("JSON"));
    let listed = actuator.list(Resource::REVISIONS, "demo", &mut take).await;
    assert_eq!(listed, Ok(()));
    let refused = actuator.list(Resource::PODS, "demo", &mut take).await;
    assert_eq!(refused.expect_err("refused").http_status, 403);
    let of = |name: &str| json!({"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": name}, "data": {}});
    assert_eq!(taken, ["a", "b"].map(of));
    let requests = requests.lock().expect("lock").clone();
    let lines: Vec<_> = requests.iter().map(|asked| asked.line.as_str()).collect();
    let path = "GET /apis/apps/v1/namespaces/demo/controllerrevisions?&limit=";
    assert!(
        lines[0].starts_with(path) && lines[1].contains("continue=7"),
        "{lines:?}"
    );
    let counted = "nodewise_api_call_duration_seconds_count{verb=\"list\",resource=\"controllerrevisions\",code=\"200\"} 2";
    assert!(metrics.encode().contains(counted));
}

// D-23, D-62, D-80, D-81: rejections are classified, and the message of the apiserver is kept.
#[tokio::test]
async fn rejections_are_classified() {
    for (answer, refusal) in [
        (failure(409, "AlreadyExists", &[]), Refusal::AlreadyExists),
        (failure(409, "Conflict", &[]), Refusal::Conflict),
        (failure(404, "NotFound", &[]), Refusal::NotFound),
        (failure(422, "Invalid", &["FieldValueInvalid"]), Refusal::Invalid),
        (
            failure(403, "Forbidden", &["NamespaceTerminating"]),
            Refusal::NamespaceTerminating,
        ),
        (failure(403, "Forbidden", &[]), Refusal::Other),
        (failure(504, "Timeout", &[]), Refusal::Other),
    ] {
        let code = answer.0;
        let expected = answer.1["message"].as_str().expect("text").to_owned();
        let (actuator, ..) = actuator(move |_| Some(answer.clone()));
        let error = actuator
            .create(Resource::PODS, "demo", "{}".into())
            .await
            .expect_err("refused");
        assert_eq!(
            (error.refusal, error.http_status, error.message),
            (refusal, code, expected)
        );
    }
}

// D-82: a call without a response times out with an unclear result.
#[tokio::test(start_paused = true)]
async fn a_call_without_response_times_out() {
    let (actuator, _, metrics) = actuator(|_| None);
    let error = actuator
        .create(Resource::PODS, "demo", "{}".into())
        .await
        .expect_err("no answer");
    assert_eq!((error.refusal, error.http_status), (Refusal::Other, 0));
    assert!(
        metrics
            .encode()
            .contains("{verb=\"create\",resource=\"pods\",code=\"0\"} 1")
    );
}

// The apiserver stores invalid UTF-8 in the data of a revision. The actuator and the watch read it in the same way.
#[tokio::test]
async fn invalid_utf8_is_replaced() {
    let service = tower::service_fn(async |_: http::Request<Body>| {
        let body = Body::from(b"{\"metadata\":{\"name\":\"r\"},\"data\":{\"a\":\"\xff\"}}".to_vec());
        Ok::<_, std::convert::Infallible>(http::Response::new(body))
    });
    let (client, metrics) = (
        kube::Client::new(service, "default"),
        Metrics::new("nodewise-executor"),
    );
    let (recorder, _sender) = EventRecorder::new(client.clone(), COMPONENT, metrics.clone());
    let actuator = KubeActuator::new(client, Duration::from_secs(5), metrics, recorder);
    let read = actuator.read(&key(Resource::REVISIONS, "r")).await;
    let expected = "{\"metadata\":{\"name\":\"r\"},\"data\":{\"a\":\"\u{fffd}\"}}";
    assert_eq!(read, Ok(Bytes::from(expected)));
}

// A proxy may answer in another format. The HTTP status of the response counts.
#[tokio::test]
async fn the_status_is_that_of_the_answer() {
    for body in [json!({}), json!({"code": 7}), json!({"error": "no"}), json!("no")] {
        let (actuator, _, metrics) = actuator(move |_| Some((403, body.clone())));
        let error = actuator
            .read(&key(Resource::PODS, "p"))
            .await
            .expect_err("refused");
        assert_eq!((error.refusal, error.http_status), (Refusal::Other, 403));
        assert!(
            metrics
                .encode()
                .contains("{verb=\"get\",resource=\"pods\",code=\"403\"} 1")
        );
    }
}

#[tokio::test]
async fn an_invalid_response_is_unclear() {
    let (actuator, ..) = actuator(|_| Some((200, json!("ok"))));
    let error = actuator
        .create(Resource::PODS, "demo", "{}".into())
        .await
        .expect_err("no object");
    assert_eq!((error.refusal, error.http_status), (Refusal::Other, 0));
}

#[tokio::test]
async fn an_observer_reads_and_never_writes() {
    let (actuator, requests, _) = actuator(|_| Some(object("agent", "42")));
    let observer = ObserveActuator::new(actuator);
    assert!(!observer.writes());
    let manifest = Bytes::from(json!({"metadata": {"generateName": "agent-"}}).to_string());
    let written = observer
        .create(Resource::PODS, "demo", manifest)
        .await
        .expect("as if");
    assert_eq!(
        written,
        Written {
            name: "agent-".to_owned(),
            resource_version: String::new()
        }
    );
    let pod = key(Resource::PODS, "p");
    observer
        .patch(&pod, Patch::Merge("{}".into()))
        .await
        .expect("as if");
    observer
        .delete(&pod, Preconditions::uid("uid"))
        .await
        .expect("as if");
    observer
        .replace_status(&key(DAEMON_SETS, "agent"), "{}".into())
        .await
        .expect("as if");
    observer.emit(WorkloadEvent {
        workload: v1::WorkloadReference::default(),
        kind: "Normal".to_owned(),
        reason: "SuccessfulCreate".to_owned(),
        message: "Created pod: p".to_owned(),
        once: None,
    });
    assert!(requests.lock().expect("lock").is_empty());
    observer.read(&pod).await.expect("read");
    assert_eq!(requests.lock().expect("lock").len(), 1);
}

// A rate limit spreads calls over time. The wait does not count for the timeout.
#[tokio::test(start_paused = true)]
async fn calls_keep_the_rate_limit() {
    let (actuator, requests, _) = actuator(|_| Some(object("p", "1")));
    let actuator = actuator.with_most_calls_per_second(std::num::NonZeroU64::new(2));
    let started = tokio::time::Instant::now();
    let target = key(Resource::PODS, "p");
    let calls = (0..41).map(|_| actuator.delete(&target, Preconditions::NONE));
    let answers = futures::future::join_all(calls).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(
        started.elapsed(),
        Duration::from_secs(20),
        "longer than a call may take"
    );
    assert_eq!(requests.lock().expect("lock").len(), 41);
}

// A limit of pod creates does not slow down other calls.
#[tokio::test(start_paused = true)]
async fn pod_creates_keep_their_rate_limit() {
    let (actuator, requests, _) = actuator(|_| Some(object("p", "1")));
    let actuator = actuator.with_most_creates_per_second(std::num::NonZeroU64::new(10));
    let started = tokio::time::Instant::now();
    let target = key(Resource::PODS, "p");
    for _ in 0..100 {
        actuator
            .delete(&target, Preconditions::NONE)
            .await
            .expect("deleted");
        let revision = actuator.create(Resource::REVISIONS, "demo", "{}".into());
        revision.await.expect("created");
    }
    assert_eq!(started.elapsed(), Duration::ZERO);
    let creates = (0..31).map(|_| actuator.create(Resource::PODS, "demo", "{}".into()));
    let answers = futures::future::join_all(creates).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(started.elapsed(), Duration::from_secs(3));
    assert_eq!(requests.lock().expect("lock").len(), 231);
}

/// An actuator with a lease check, and the pulse that records renewals.
fn elected() -> (KubeActuator, Requests, LeaderStatus) {
    let (actuator, requests, _) = actuator(|_| Some(object("p", "1")));
    let leader_status = LeaderStatus::default();
    let check: LeaseCheck = {
        let leader_status = leader_status.clone();
        std::sync::Arc::new(move || leader_status.leads(Timing::default(), Instant::now()))
    };
    (actuator.with_lease_check(Some(check)), requests, leader_status)
}

fn sent(requests: &Requests) -> Vec<String> {
    let requests = requests.lock().expect("lock");
    let lines = requests.iter().map(|asked| asked.line.clone());
    lines
        .map(|line| line.split('?').next().unwrap_or_default().to_owned())
        .collect()
}

// No write is sent before the lease was held or after it may have expired. Reads are still sent.
#[tokio::test(start_paused = true)]
async fn writes_end_with_the_lease() {
    let (actuator, requests, leader_status) = elected();
    let pod = key(Resource::PODS, "p");
    let body = || Bytes::from_static(b"{\"metadata\":{\"name\":\"p\"}}");
    assert!(
        actuator.delete(&pod, Preconditions::NONE).await.is_err(),
        "not leading yet"
    );
    leader_status.set(Some(Instant::now()));
    tokio::time::advance(Duration::from_millis(12_400)).await;
    actuator
        .delete(&pod, Preconditions::NONE)
        .await
        .expect("12.4 s after the renewal");
    tokio::time::advance(Duration::from_millis(100)).await;
    assert!(actuator.create(Resource::PODS, "demo", body()).await.is_err());
    assert!(actuator.patch(&pod, Patch::Merge(body())).await.is_err());
    let workload = key(DAEMON_SETS, "agent");
    assert!(actuator.replace_status(&workload, body()).await.is_err());
    let error = actuator
        .delete(&pod, Preconditions::NONE)
        .await
        .expect_err("too late");
    assert!(error.message.contains("lease") && error.is_unclear(), "{error}");
    actuator.read(&pod).await.expect("reads pass without the lease");
    let path = "/api/v1/namespaces/demo/pods/p";
    assert_eq!(sent(&requests), [format!("DELETE {path}"), format!("GET {path}")]);
    leader_status.set(Some(Instant::now()));
    actuator.delete(&pod, Preconditions::NONE).await.expect("renewed");
}

// A write that waits for the rate limit while the lease expires is not sent, whether or not the process was paused meanwhile.
#[tokio::test(start_paused = true)]
async fn writes_that_waited_for_the_rate_limit_end_with_the_lease() {
    let pod = key(Resource::PODS, "p");
    let all_calls: fn(KubeActuator) -> KubeActuator =
        |actuator| actuator.with_most_calls_per_second(std::num::NonZeroU64::new(2));
    let pods_only: fn(KubeActuator) -> KubeActuator =
        |actuator| actuator.with_most_creates_per_second(std::num::NonZeroU64::new(2));
    // (the call, the rate limit, whether the process is paused for 21 s, how many calls are sent at two per second)
    let table = [
        ("create", all_calls, true, 1),
        ("create", all_calls, false, 25),
        ("create", pods_only, true, 1),
        ("create", pods_only, false, 25),
        ("delete", all_calls, true, 1),
        ("delete", all_calls, false, 25),
    ];
    for (verb, slowed, is_stopped, expected) in table {
        let (actuator, requests, leader_status) = elected();
        let actuator = slowed(actuator);
        leader_status.set(Some(Instant::now()));
        let calls = (0..40).map(|_| async {
            if verb == "create" {
                let created = actuator.create(Resource::PODS, "demo", "{}".into());
                created.await.map(|_| ())
            } else {
                actuator.delete(&pod, Preconditions::NONE).await
            }
        });
        let stop = async {
            // Now all calls wait for the rate limit.
            tokio::task::yield_now().await;
            if is_stopped {
                tokio::time::advance(Duration::from_secs(21)).await;
            }
        };
        let (answers, ()) = futures::future::join(futures::future::join_all(calls), stop).await;
        let refused = answers.iter().filter_map(|answer| answer.as_ref().err());
        let refused = refused.filter(|error| error.message.contains("lease")).count();
        let case = format!("{verb}, stopped: {is_stopped}");
        assert_eq!(
            (sent(&requests).len(), refused),
            (expected, 40 - expected),
            "{case}"
        );
    }
}
