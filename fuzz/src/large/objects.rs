//! DaemonSets and revisions whose JSON is expensive to read.

use nodewise_fixtures::{Cluster, Form, daemon_set};
use nodewise_proto::v1;
use prost::Message as _;
use serde_json::{Value, json};

use super::Make;

/// The JSON of a value in which `text` replaces `"HERE"`.
fn with(value: &Value, text: &str) -> Vec<u8> {
    value.to_string().replacen("\"HERE\"", text, 1).into_bytes()
}

/// A request for a DaemonSet given as JSON text.
fn request(object: Vec<u8>) -> Vec<u8> {
    let mut request = Cluster::empty(2).request(1, Form::Inline);
    request.snapshot.as_mut().expect("a snapshot").workload = Some(v1::Workload {
        kind: Some(v1::workload::Kind::DaemonSet(v1::DaemonSet {
            object: object.into(),
            ..v1::DaemonSet::default()
        })),
    });
    request.encode_to_vec()
}

/// A request for a DaemonSet with `text` at `pointer`.
fn at(pointer: &str, text: &str) -> Vec<u8> {
    let mut object = daemon_set();
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    object.pointer_mut(parent).expect("a parent")[key] = json!("HERE");
    request(with(&object, text))
}

/// A request with `count` further revisions whose data is `text`.
fn revisions(count: usize, text: &str) -> Vec<u8> {
    let mut request = Cluster::settled(2).request(1, Form::Inline);
    let controller = json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "node-agent", "controller": true,
        "uid": "11111111-2222-3333-4444-555555555555"}]);
    let revision = |number: usize| {
        let revision = json!({"data": "HERE", "revision": number, "metadata": {"name": format!("node-agent-{number}"),
            "uid": format!("u{number}"), "labels": {"app": "node-agent"}, "ownerReferences": controller}});
        v1::ControllerRevision {
            object: with(&revision, text).into(),
            ..Default::default()
        }
    };
    let snapshot = request.snapshot.as_mut().expect("a snapshot");
    snapshot.revisions.extend((2..count + 2).map(revision));
    request.encode_to_vec()
}

/// A list of as many copies of `entry` as fit.
fn list(entry: &str, bytes: usize) -> String {
    let entries = bytes.saturating_sub(2) / (entry.len() + 1);
    format!("[{}]", vec![entry; entries].join(","))
}

/// An object with as many members as fit.
fn map(value: &str, bytes: usize) -> String {
    let entries = bytes / (value.len() + 9);
    let members: Vec<_> = (0..entries)
        .map(|number| format!("\"{number:05}\":{value}"))
        .collect();
    format!("{{{}}}", members.join(","))
}

fn nested(open: &str, close: &str, bytes: usize) -> String {
    let depth = bytes / (open.len() + close.len());
    open.repeat(depth) + "0" + &close.repeat(depth)
}

const ENTRY: &str = r#"{"name":"AAAA","value":"bbbb"}"#;
const OWNER: &str = r#"{"apiVersion":"","kind":"","name":"","uid":""}"#;
const REQUIRED: &str = "/spec/template/spec/affinity";

fn affinity(kind: &str, text: &str) -> String {
    format!("{{\"{kind}\":{text}}}")
}

const VOLUMES: &str = "/spec/template/spec/volumes";

fn terms(text: &str) -> String {
    let terms = affinity("nodeSelectorTerms", text);
    affinity(
        "nodeAffinity",
        &affinity("requiredDuringSchedulingIgnoredDuringExecution", &terms),
    )
}

/// The large requests with such objects.
pub(super) const REQUESTS: &[(&str, Make)] = &[
    ("numbers", |bytes| at(VOLUMES, &list("0", bytes))),
    ("empty-objects", |bytes| at(VOLUMES, &list("{}", bytes))),
    ("small-objects", |bytes| at(VOLUMES, &list(r#"{"a":0}"#, bytes))),
    ("environment", |bytes| at(VOLUMES, &list(ENTRY, bytes))),
    ("empty-strings", |bytes| at(VOLUMES, &list("\"\"", bytes))),
    ("long-string", |bytes| {
        at(VOLUMES, &format!("\"{}\"", "x".repeat(bytes)))
    }),
    ("escaped-string", |bytes| {
        at(VOLUMES, &format!("\"{}\"", "<".repeat(bytes)))
    }),
    ("page", |bytes| {
        at(VOLUMES, &format!("\"{}\"", "<tag>".repeat(bytes / 5)))
    }),
    ("some-escapes", |bytes| {
        at(VOLUMES, &format!("\"{}\"", "<text".repeat(bytes / 5)))
    }),
    ("members", |bytes| at(VOLUMES, &map("0", bytes))),
    ("deep-lists", |bytes| at(VOLUMES, &nested("[", "]", bytes))),
    ("deep-objects", |bytes| at(VOLUMES, &nested("{\"\":", "}", bytes))),
    ("tolerations", |bytes| {
        at("/spec/template/spec/tolerations", &list("{}", bytes))
    }),
    ("terms", |bytes| at(REQUIRED, &terms(&list("{}", bytes)))),
    ("values", |bytes| {
        {
            at(
                REQUIRED,
                &terms(&format!(
                    "[{{\"matchExpressions\":[{{\"key\":\"a\",\"operator\":\"In\",\"values\":{}}}]}}]",
                    list("\"\"", bytes)
                )),
            )
        }
    }),
    ("pod-affinity", |bytes| {
        {
            at(
                REQUIRED,
                &affinity(
                    "podAffinity",
                    &affinity(
                        "requiredDuringSchedulingIgnoredDuringExecution",
                        &list(r#"{"topologyKey":""}"#, bytes),
                    ),
                ),
            )
        }
    }),
    ("node-selector", |bytes| {
        at("/spec/template/spec/nodeSelector", &map("\"\"", bytes))
    }),
    ("selector", |bytes| {
        at("/spec/selector/matchLabels", &map("\"\"", bytes))
    }),
    ("template-labels", |bytes| {
        at("/spec/template/metadata/labels", &map("\"\"", bytes))
    }),
    ("annotations", |bytes| {
        at("/metadata/annotations", &map("\"\"", bytes))
    }),
    ("owners", |bytes| {
        at("/metadata/ownerReferences", &list(OWNER, bytes))
    }),
    ("finalizers", |bytes| {
        at("/metadata/finalizers", &list("\"\"", bytes))
    }),
    ("managed-fields", |bytes| {
        at("/metadata/managedFields", &list("{}", bytes))
    }),
    ("managed-field", |bytes| {
        {
            at(
                "/metadata/managedFields",
                &format!("[{{\"fieldsV1\":{}}}]", map("{}", bytes)),
            )
        }
    }),
    ("conditions", |bytes| {
        {
            at(
                "/status",
                &format!("{{\"conditions\":{}}}", list(r#"{"type":"","status":""}"#, bytes)),
            )
        }
    }),
    ("ignored", |bytes| at("/ignored", &list("0", bytes))),
    ("revision-numbers", |bytes| revisions(1, &list("0", bytes))),
    ("revision-objects", |bytes| {
        revisions(1, &list(r#"{"a":0}"#, bytes))
    }),
    ("revisions-of-objects", |bytes| {
        revisions(bytes / 10_000, &list(r#"{"a":0}"#, 10_000))
    }),
    ("revisions-of-templates", |bytes| {
        revisions(bytes / 10_000, &list(ENTRY, 9_000))
    }),
    ("small-revisions", |bytes| revisions(bytes / 280, "0")),
];
