//! The vectors of `proto/testdata`, by which executors in every language agree: what goes in is written there by hand, what comes
//! out is what this executor makes of it.
//!
//! `NODEWISE_REGENERATE=1 cargo test -p nodewise-executor vectors` writes what comes out anew.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use nodewise_proto::v1;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::apply::render_pod;
use crate::event::{ClusterEvent, DaemonSet, Delta, Key, Node, Pod};
use crate::expectations::{Holdings, Sighted};
use crate::gate;
use crate::project::{self, KeySet, Reads};
use crate::store::Store;

/// Fills each vector of a file with what `answer` makes of it, and compares.
fn check(file: &str, mut answer: impl FnMut(&mut Value)) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../proto/testdata")
        .join(file);
    let text = std::fs::read_to_string(&path).expect(file);
    let given: Vec<Value> = serde_json::from_str(&text).expect(file);
    assert!(!given.is_empty(), "{file}");
    let mut made = given.clone();
    made.iter_mut().for_each(&mut answer);
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

/// The labels and taints that the member `many` of a vector stands for.
fn many(vector: &Value) -> impl Iterator<Item = String> + use<> {
    (0..vector["many"].as_u64().unwrap_or(0)).map(|index| format!("many-{index:04}"))
}

/// The object of a vector, with all of its labels and taints.
fn with_many(vector: &Value, kind: &str) -> Value {
    let mut object = vector[kind].clone();
    for key in many(vector) {
        object["metadata"]["labels"][&key] = "".into();
        if kind == "node" {
            let taints = object["spec"]["taints"].as_array_mut().expect("taints");
            taints.insert(0, json!({"key": key, "effect": "NoSchedule"}));
        }
    }
    object
}

/// What the DaemonSets of a vector read, and one that names all of its many labels. Absent where none are said.
fn reads(vector: &Value) -> Option<Vec<Reads>> {
    let daemon_sets = vector.get("daemon_sets")?.as_array().expect("DaemonSets");
    let read = |object| DaemonSet::from_json(object).expect("a DaemonSet").reads;
    let names_many = Reads {
        node_labels: many(vector).collect(),
        pod_labels: many(vector).collect(),
    };
    Some(daemon_sets.iter().map(read).chain([names_many]).collect())
}

/// Takes what the member `many` stands for out of a projection, and counts it.
fn count_many(projection: &mut Value, list: &str) -> usize {
    let Some(entries) = projection.get_mut(list).and_then(Value::as_array_mut) else {
        return 0;
    };
    let before = entries.len();
    entries.retain(|entry| !texts(entry, "key").starts_with("many-"));
    before - entries.len()
}

#[test]
fn projections() {
    check("projections.json", |vector| {
        let reads = reads(vector);
        let mut cut = 0;
        let projected = if vector["node"].is_null() {
            project::pod(&with_many(vector, "pod")).map(|mut pod| {
                if let Some(reads) = &reads {
                    cut = project::reduce_pod(&mut pod, &KeySet::of_pods(reads));
                }
                written(pod)
            })
        } else {
            project::node(&with_many(vector, "node")).map(|mut node| {
                if let Some(reads) = &reads {
                    cut = project::reduce_node(&mut node, &KeySet::of_nodes(reads));
                }
                written(node)
            })
        };
        let is_many = vector["many"].is_u64();
        let vector = vector.as_object_mut().expect("a vector");
        vector.retain(|field, _| !matches!(field.as_str(), "projection" | "error" | "cut" | "many_sent"));
        if cut > 0 {
            vector.insert("cut".into(), cut.into());
        }
        match projected {
            Ok(mut projection) => {
                if is_many {
                    let [labels, taints] = ["labels", "taints"].map(|list| count_many(&mut projection, list));
                    vector.insert("many_sent".into(), json!({"labels": labels, "taints": taints}));
                }
                vector.insert("projection".into(), projection)
            }
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
                created_by: None,
                disruption: None,
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
                "gone" => {
                    holdings.retire_name(&key, &uid, texts(step, "node_name"), texts(step, "pod_name"));
                }
                "applied" => {
                    let outcomes: Vec<v1::Outcome> = read(step);
                    holdings.lower(&key, &uid, &outcomes);
                }
                "settle" => holdings.settle(&key, &uid, read(step)),
                other => panic!("no step is called {other}"),
            }
        }
        vector["state"] = written(holdings.get(&key, &uid));
    });
}

/// What a plan may do to a workload whose caches and apiserver show this (rule W15).
#[test]
fn plan_checks() {
    let mut first = Value::Null;
    check("plan_checks.json", |vector| {
        if first.is_null() {
            first = vector.clone();
        }
        let answer = crate::plan_check::vectors::answer(vector, &first);
        let vector = vector.as_object_mut().expect("a vector");
        vector.retain(|field, _| !matches!(field.as_str(), "refused" | "left_out"));
        match answer {
            Err(violation) => _ = vector.insert("refused".into(), violation.to_string().into()),
            Ok(left_out) if !left_out.is_empty() => _ = vector.insert("left_out".into(), left_out.into()),
            Ok(_) => {}
        }
    });
}
