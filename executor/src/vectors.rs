//! The vectors of `proto/testdata`, by which executors in every language agree: what goes in is written there by hand, what comes
//! out is what this executor makes of it.
//!
//! `NODEWISE_REGENERATE=1 cargo test -p nodewise-executor vectors` writes what comes out anew.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::apply::render_pod;
use crate::event::{ClusterEvent, DaemonSet, Delta, Key, Node, Pod};
use crate::expectations::{Holdings, Sighted};
use crate::gate;
use crate::project::{self, KeySet};
use crate::store::Store;

/// Fills each vector of a file with what `answer` makes of it, and compares.
fn check(file: &str, answer: impl Fn(&mut Value)) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../proto/testdata")
        .join(file);
    let text = std::fs::read_to_string(&path).expect(file);
    let given: Vec<Value> = serde_json::from_str(&text).expect(file);
    assert!(!given.is_empty(), "{file}");
    let mut made = given.clone();
    made.iter_mut().for_each(answer);
    if std::env::var_os("NODEWISE_REGENERATE").is_some() {
        let text = serde_json::to_string_pretty(&made).expect("JSON") + "\n";
        std::fs::write(path, text).expect(file);
        return;
    }
    for (made, given) in made.iter().zip(&given) {
        assert_eq!(made, given, "{file}");
    }
}

fn read<T: DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).expect("a message as JSON")
}

fn written(message: impl serde::Serialize) -> Value {
    serde_json::to_value(message).expect("a message as JSON")
}

fn texts(value: &Value, field: &str) -> String {
    value[field].as_str().expect(field).to_owned()
}

fn daemon_sets(objects: &Value) -> Vec<DaemonSet> {
    let objects = objects.as_array().expect("DaemonSets");
    let daemon_sets = objects.iter().map(DaemonSet::from_json);
    daemon_sets
        .collect::<Result<_, _>>()
        .expect("DaemonSets that can be read")
}

#[test]
fn projections() {
    check("projections.json", |vector| {
        let daemon_sets = vector.get("daemon_sets").map(daemon_sets);
        let reads = daemon_sets.as_ref().map(|all| all.iter().map(|one| &one.reads));
        let mut cut = project::Cut::default();
        let projected = match (&vector["node"], &vector["pod"]) {
            (node, Value::Null) => project::node(node).map(|mut node| {
                if let Some(reads) = reads {
                    cut = project::reduce_node(&mut node, &KeySet::of_nodes(reads));
                }
                written(node)
            }),
            (_, pod) => project::pod(pod).map(|mut pod| {
                if let Some(reads) = reads {
                    cut = project::reduce_pod(&mut pod, &KeySet::of_pods(reads));
                }
                written(pod)
            }),
        };
        let vector = vector.as_object_mut().expect("a vector");
        vector.retain(|field, _| !matches!(field.as_str(), "projection" | "error" | "cut"));
        if cut.is_any() {
            vector.insert(
                "cut".into(),
                json!({"labels": cut.labels, "taints": cut.taints}),
            );
        }
        match projected {
            Ok(projection) => vector.insert("projection".into(), projection),
            Err(error) => vector.insert("error".into(), json!({ "path": error.path })),
        };
    });
}

#[test]
fn buckets() {
    check("buckets.json", |vector| {
        let count = read(&vector["bucket_count"]);
        vector["bucket"] = nodewise_proto::bucket::of(&texts(vector, "node_name"), count).into();
    });
}

/// Keeps objects as the watch would bring them, all in one bucket, and sends that about the DaemonSet.
#[test]
fn bucket_bytes() {
    check("bucket_bytes.json", |vector| {
        let mut store = Store::new(1);
        let workload = DaemonSet::from_json(&vector["daemon_set"]).expect("a DaemonSet");
        let mut take = |event| _ = store.apply(event);
        take(ClusterEvent::DaemonSets(Delta::Applied(workload.clone())));
        let messages = |field: &str| vector[field].as_array().cloned().unwrap_or_default();
        for node in messages("nodes") {
            take(ClusterEvent::Nodes(Delta::Applied(Node {
                projection: read(&node),
                resource_version: "1".into(),
            })));
        }
        for pod in messages("pods") {
            take(ClusterEvent::Pods(Delta::Applied(Pod {
                namespace: "ns".into(),
                traceparent: None,
                projection: read(&pod),
                resource_version: "1".into(),
            })));
        }
        let rendered = if vector["nodes"].is_array() {
            store.node_buckets(&workload, &|_| false)
        } else {
            store.pod_buckets(&workload, &|_| false)
        };
        let bucket = &rendered.buckets[0];
        vector["data"] = written(bucket)["data"].clone();
        let hex = |byte: &u8| format!("{byte:02x}");
        vector["digest"] = bucket.digest.iter().map(hex).collect::<String>().into();
    });
}

#[test]
fn manifests() {
    check("manifests.json", |vector| {
        let pod = render_pod(&read(&vector["plan"]), &read(&vector["create"])).expect("a manifest");
        vector["pod"] = serde_json::from_slice(&pod).expect("a pod");
    });
}

#[test]
fn resource_versions() {
    check("resource_versions.json", |vector| {
        let order = gate::compare(&texts(vector, "a"), &texts(vector, "b"));
        vector["order"] = order.map(|order| order as i8).into();
    });
}

/// Pods that the caches show.
struct Present(Vec<Value>);

impl Sighted for Present {
    fn exists(&self, pod_name: &str) -> bool {
        self.0.iter().any(|pod| pod["name"] == pod_name)
    }

    fn deleting(&self) -> HashMap<String, bool> {
        let deleting = |pod: &Value| (texts(pod, "uid"), pod["deleting"] == true);
        self.0.iter().map(deleting).collect()
    }
}

#[test]
fn expectations() {
    check("expectations.json", |vector| {
        let (mut holdings, key, uid) = (Holdings::default(), Key::new("ns", "agent"), Arc::from("u"));
        for step in vector["steps"].as_array().expect("steps") {
            let (name, step) = step
                .as_object()
                .and_then(|step| step.iter().next())
                .expect("a step");
            match name.as_str() {
                "hold" => holdings.replace(
                    &key,
                    &uid,
                    read(&step["planned"]),
                    &read(&step["sent"]),
                    &Present(read(&step["present_pods"])),
                ),
                "created" => {
                    holdings.observe_create(&key, &texts(step, "pod_name"), &texts(step, "node_name"));
                }
                "deleted" => {
                    holdings.observe_deletion(&key, &texts(step, "pod_name"), &texts(step, "pod_uid"));
                }
                "settle" => holdings.settle(&key, &uid, read(step)),
                other => panic!("no step is called {other}"),
            }
        }
        vector["state"] = written(holdings.get(&key, &uid));
    });
}
