//! For tests: a fake apiserver that records every request and sends scripted responses; and plans.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response, header};
use kube::{Client, client::Body};
use nodewise_projection::{Key, Node, Pod, ProjectError, Revision, Workload};
use nodewise_proto::v1;
use nodewise_proto::workload::{DAEMON_SET, HASH_LABEL};
use serde_json::{Value, json};

use crate::delta::Delta;
use crate::effects::{Effects, Rules};
use crate::event::ClusterEvent;
use crate::kind::Kind;
use crate::resource::Resource;
use crate::store::{Store, Transition};

/// A kind for tests: DaemonSets, on which no change has an effect.
#[derive(Debug)]
pub enum DaemonSets {}

impl Kind for DaemonSets {
    const RESOURCE: Resource = DAEMON_SETS;
    const READS: &'static [Resource] = &Resource::INPUTS;
    const EVENT_SOURCE: &'static str = "daemonset-controller";
    const QUEUE: &'static str = "daemonset";

    fn read(json: &str) -> Result<Workload, ProjectError> {
        Workload::daemon_set_from_text(json)
    }

    fn message(workload: &Workload) -> v1::workload::Kind {
        v1::workload::Kind::DaemonSet(v1::DaemonSet {
            object: workload.object.clone(),
        })
    }

    fn effects(_: &Store, _: &Transition, _: Rules) -> Effects {
        Effects::default()
    }
}

/// apps/v1 daemonsets.
pub const DAEMON_SETS: Resource = Resource {
    plural: "daemonsets",
    kind: DAEMON_SET,
    page_size: 250,
    ..Resource::REVISIONS
};

/// A recorded request.
#[derive(Clone, Debug)]
pub struct RecordedRequest {
    /// Method and path with query, such as `GET /api/v1/pods?limit=1`.
    pub line: String,
    /// The header Content-Type; empty if absent.
    pub content_type: String,
    /// The header Accept; empty if absent.
    pub accept: String,
    /// The header User-Agent; empty if absent.
    pub user_agent: String,
    /// The header traceparent; empty if absent.
    pub traceparent: String,
    /// The body.
    pub body: Bytes,
}

impl RecordedRequest {
    /// Returns the body as JSON.
    ///
    /// # Panics
    /// Panics if the body is not JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a JSON body")
    }
}

/// All requests so far.
pub type Requests = Arc<Mutex<Vec<RecordedRequest>>>;

/// Returns a client of a fake apiserver, and its requests. `answer` returns the status and the body; after `None` the request
/// gets no response.
///
/// # Panics
/// Panics if a request cannot be recorded because another thread panicked.
pub fn apiserver(
    answer: impl Fn(&RecordedRequest) -> Option<(u16, Value)> + Send + Sync + 'static,
) -> (Client, Requests) {
    let (requests, answer) = (Requests::default(), Arc::new(answer));
    let noted = Arc::clone(&requests);
    let service = tower::service_fn(move |request: Request<Body>| {
        let (noted, answer) = (Arc::clone(&noted), Arc::clone(&answer));
        async move {
            let (parts, body) = request.into_parts();
            let text = |name| {
                let value = parts.headers.get(name).and_then(|value| value.to_str().ok());
                value.unwrap_or_default().to_owned()
            };
            let asked = RecordedRequest {
                line: format!("{} {}", parts.method, parts.uri),
                content_type: text(header::CONTENT_TYPE),
                accept: text(header::ACCEPT),
                user_agent: text(header::USER_AGENT),
                traceparent: text(header::HeaderName::from_static("traceparent")),
                body: body.collect_bytes().await?,
            };
            noted.lock().expect("lock").push(asked.clone());
            let Some((code, body)) = answer(&asked) else {
                std::future::pending().await
            };
            let response = Response::builder()
                .status(code)
                .body(Body::from(body.to_string().into_bytes()));
            Ok::<_, kube::Error>(response.expect("a response"))
        }
    });
    (Client::new(service, "default"), requests)
}

/// Returns a Status as the apiserver sends it for a failure, with these causes.
#[must_use]
pub fn failure(code: u16, reason: &str, causes: &[&str]) -> (u16, Value) {
    let causes: Vec<_> = causes
        .iter()
        .map(|reason| serde_json::json!({"reason": reason}))
        .collect();
    let body = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
        "message": format!("{reason} it is"), "details": {"causes": causes},
    });
    (code, body)
}

/// Returns a plan with one batch of these actions, numbered from 1.
#[must_use]
pub fn with_actions(phase: v1::PhaseKind, actions: Vec<v1::action::Kind>) -> v1::Plan {
    let actions = (1..).zip(actions).map(|(id, kind)| v1::Action {
        id,
        kind: Some(kind),
        ..Default::default()
    });
    v1::Plan {
        verdict: v1::Verdict::Apply.into(),
        plan_id: "p".into(),
        phases: vec![v1::Phase {
            kind: phase.into(),
            batches: vec![v1::Batch {
                actions: actions.collect(),
                confirm_workload: false,
            }],
            ..Default::default()
        }],
        state: Some(v1::ReconcileState::default()),
        ..Default::default()
    }
}

/// The key of the workload of these tests.
#[must_use]
pub fn key() -> Key {
    Key::new(DAEMON_SET, "ns", "foo")
}

/// The workload, with this uid and resourceVersion.
///
/// # Panics
/// Never.
#[must_use]
pub fn daemon_set(uid: &str, version: &str) -> Workload {
    let object = json!({
        "metadata": {"namespace": "ns", "name": "foo", "uid": uid, "resourceVersion": version},
        "spec": {"selector": {"matchLabels": {"app": "foo"}}},
    });
    Workload::daemon_set_from_json(&object).expect("a DaemonSet")
}

/// A pod of the workload.
///
/// # Panics
/// Never.
#[must_use]
pub fn pod(name: &str, version: &str) -> Pod {
    let object = json!({
        "metadata": {
            "namespace": "ns", "name": name, "uid": format!("uid-{name}"), "resourceVersion": version,
            "labels": {"app": "foo"},
            "ownerReferences": [{"kind": "DaemonSet", "name": "foo", "uid": "u1", "controller": true}],
        },
        "spec": {"nodeName": "n1"},
    });
    Pod::from_json(&object).expect("a pod")
}

/// A node of this name.
///
/// # Panics
/// Never.
#[must_use]
pub fn node(name: &str) -> Node {
    let object = json!({"metadata": {"name": name, "uid": name, "resourceVersion": "10"}});
    Node::from_json(&object).expect("a node")
}

/// A complete list at version 10.
#[must_use]
pub fn listed<T>(objects: Vec<T>) -> Delta<T> {
    Delta::Listed {
        objects,
        resource_version: "10".into(),
    }
}

/// The hash label of the pods that scripted plans create.
pub const HASH: &str = "h1";

/// The revision of the workload with that hash label.
///
/// # Panics
/// Never.
#[must_use]
pub fn current_revision() -> Revision {
    let object = json!({
        "metadata": {
            "namespace": "ns", "name": "foo-current", "uid": "current", "resourceVersion": "10",
            "labels": {"app": "foo", HASH_LABEL: HASH}, "ownerReferences": [owner()],
        },
        "revision": 1,
    });
    Revision::from_json(&object).expect("a revision")
}

/// The first lists of a cluster with the workload, its revision and three nodes, all at version 10.
#[must_use]
pub fn first_lists() -> Vec<ClusterEvent> {
    vec![
        ClusterEvent::Nodes(listed(["n1", "n2", "n3"].map(node).into())),
        ClusterEvent::Pods(listed::<Pod>(Vec::new())),
        ClusterEvent::Workloads(DAEMON_SETS, listed(vec![daemon_set("u1", "10")])),
        ClusterEvent::Revisions(listed(vec![current_revision()])),
    ]
}

/// The owner reference of objects that the workload controls.
#[must_use]
pub fn owner() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "foo", "uid": "u1",
        "controller": true, "blockOwnerDeletion": true,
    })
}
