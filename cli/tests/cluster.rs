//! Tests a cluster as the source: an HTTP server returns lists as an apiserver does.

mod common;

use std::{collections::HashMap, path::Path, sync::Arc};

use axum::{
    Router,
    extract::{Path as UrlPath, RawQuery, State},
    http::StatusCode,
    routing::get,
};
use common::{NOW, Ran, command, data, nodewise};
use serde_json::{Value, json};

/// Objects by the plural name of their kind. Items of a list have no kind.
type Objects = Arc<HashMap<&'static str, Vec<Value>>>;

fn read(file: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(data(file)).unwrap()).unwrap()
}

fn objects(list: &Value) -> Objects {
    let mut objects = HashMap::<_, Vec<Value>>::new();
    for item in list["items"].as_array().unwrap() {
        let plural = match item["kind"].as_str().unwrap() {
            "DaemonSet" => "daemonsets",
            "ReplicaSet" => "replicasets",
            "Deployment" => "deployments",
            "Node" => "nodes",
            "Pod" => "pods",
            "Event" => "events",
            _ => "controllerrevisions",
        };
        let mut item = item.clone();
        item.as_object_mut()
            .unwrap()
            .retain(|key, _| key != "kind" && key != "apiVersion");
        objects.entry(plural).or_default().push(item);
    }
    Arc::new(objects)
}

/// Returns pages of two objects, whatever limit the client asks for.
async fn answer(
    State(objects): State<Objects>,
    UrlPath(path): UrlPath<String>,
    RawQuery(query): RawQuery,
) -> (StatusCode, String) {
    if path.contains("namespaces/forbidden") {
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403,
            "message": "pods is forbidden: User \"somebody\" cannot list resource \"pods\""});
        return (StatusCode::FORBIDDEN, status.to_string());
    }
    if path.contains("namespaces/silent") {
        return (StatusCode::NOT_FOUND, String::new());
    }
    let (namespace, plural) = match path.split('/').collect::<Vec<_>>()[..] {
        ["namespaces", namespace, plural] => (Some(namespace.to_owned()), plural.to_owned()),
        [plural] => (None, plural.to_owned()),
        _ => return (StatusCode::NOT_FOUND, String::new()),
    };
    let from: usize = query
        .unwrap_or_default()
        .split('&')
        .find_map(|pair| pair.strip_prefix("continue=").map(|token| token.parse().unwrap()))
        .unwrap_or(0);
    let all: Vec<Value> = objects
        .get(plural.as_str())
        .into_iter()
        .flatten()
        .filter(|object| {
            namespace
                .as_ref()
                .is_none_or(|namespace| object["metadata"]["namespace"] == **namespace)
        })
        .cloned()
        .collect();
    let to = all.len().min(from + 2);
    let next = if to < all.len() {
        to.to_string()
    } else {
        String::new()
    };
    (
        StatusCode::OK,
        json!({"metadata": {"continue": next}, "items": all[from..to]}).to_string(),
    )
}

/// Serves a file's objects while `use_it` runs with the path of a kubeconfig.
async fn with_cluster(file: &str, use_it: impl FnOnce(&Path) + Send + 'static) {
    with_objects(&read(file), use_it).await;
}

/// As [`with_cluster`], with the objects of a list.
async fn with_objects(list: &Value, use_it: impl FnOnce(&Path) + Send + 'static) {
    let router = Router::new()
        .route("/api/v1/{*path}", get(answer))
        .route("/apis/apps/v1/{*path}", get(answer))
        .with_state(objects(list));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(axum::serve(listener, router).into_future());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "one",
        "clusters": [{"name": "one", "cluster": {"server": url}}],
        "users": [{"name": "one", "user": {}}],
        "contexts": [{"name": "one", "context": {"cluster": "one", "user": "one"}}],
    });
    std::fs::write(&path, kubeconfig.to_string()).unwrap();
    tokio::task::spawn_blocking(move || use_it(&path)).await.unwrap();
    server.abort();
}

#[tokio::test]
async fn the_plan_for_a_cluster_is_that_for_its_dump() {
    with_cluster("rollout.json", |kubeconfig| {
        let path = kubeconfig.display().to_string();
        let file = data("rollout.json");
        for args in [
            &["plan"][..],
            &["plan", "-o", "json"],
            &["explain", "ds", "agent"],
        ] {
            let args = [args, &["--now", NOW]].concat();
            let expected = nodewise(&[&args[..], &["-f", &file]].concat()).ok();
            assert_eq!(
                nodewise(&[&args[..], &["--kubeconfig", &path]].concat()).ok(),
                expected,
                "{args:?}"
            );
            // Without flags, as `kubectl nodewise` is usually called.
            let ran: Ran = command(&args).env("KUBECONFIG", &path).output().unwrap().into();
            assert_eq!(ran.ok(), expected, "{args:?}");
            let one = [
                &args[..],
                &["--kubeconfig", &path, "--context", "one", "-n", "monitoring"],
            ]
            .concat();
            assert_eq!(nodewise(&one).ok(), expected, "{args:?}");
        }
    })
    .await;
}

/// The kinds of a Deployment are listed, in its namespace once that is known.
#[tokio::test]
async fn a_deployment_of_a_cluster_is_that_of_its_dump() {
    with_cluster("stuck-deployment.json", |kubeconfig| {
        let path = kubeconfig.display().to_string();
        let file = data("stuck-deployment.json");
        for command in [
            &["explain", "deployment/web"][..],
            &["explain", "rs/web-7d9f"],
            &["plan", "deployment/web", "rs/web-5c6b"],
            &["plan", "deployments"],
        ] {
            let args = [command, &["--now", NOW]].concat();
            let expected = nodewise(&[&args[..], &["-f", &file]].concat()).ok();
            for scope in [&[][..], &["-n", "shop"]] {
                let args = [&args[..], &["--kubeconfig", &path], scope].concat();
                assert_eq!(nodewise(&args).ok(), expected, "{args:?}");
            }
        }
        let ran = nodewise(&["explain", "deploy/web", "--kubeconfig", &path, "-n", "forbidden"]);
        let needed = "(in this namespace, deployments, replicasets and pods are needed)\n";
        assert!(ran.stderr.ends_with(needed), "{ran:?}");
        let ran = nodewise(&["explain", "deploy/api", "--kubeconfig", &path]);
        assert!(
            ran.stderr.ends_with(": no Deployment api; there is shop/web\n"),
            "{ran:?}"
        );
    })
    .await;
}

/// Events say what refused the pod of a node that has none.
#[tokio::test]
async fn a_refused_pod_says_by_whom() {
    let mut list = read("mixed.json");
    let event = |minute: u32, message: &str| {
        json!({"kind": "Event", "metadata": {"name": format!("agent.{minute}"), "namespace": "monitoring"},
            "involvedObject": {"kind": "DaemonSet", "namespace": "monitoring", "name": "agent", "uid": "7d1f0a52-0000-4000-8000-000000000001"}, "reason": "FailedCreate", "message": message,
            "lastTimestamp": format!("2026-01-01T01:{minute}:00Z")})
    };
    let quota = "pods \"agent-\" is forbidden: exceeded quota: none";
    let items = list["items"].as_array_mut().unwrap();
    items.extend([
        event(58, "an older message"),
        event(59, &format!("Error creating: {quota}")),
    ]);
    with_objects(&list, move |kubeconfig| {
        let path = kubeconfig.display().to_string();
        let source = ["--kubeconfig", &path, "--now", NOW];
        let refused = format!("the apiserver refused to create the pod: {quota}");
        for command in [
            &["explain", "ds/agent"][..],
            &["explain", "ds/agent", "--node", "node-5"],
            &["explain", "node/node-5"],
        ] {
            let text = nodewise(&[command, &source].concat()).ok();
            assert!(text.contains(&refused), "{command:?}: {text}");
        }
        let json = nodewise(&[&["explain", "node/node-5", "-o", "json"][..], &source].concat()).ok();
        let answer: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(answer["daemonSets"][0]["refusal"]["message"], quota);
        // A node that has its pod needs no Event.
        let text = nodewise(&[&["explain", "ds/agent", "--node", "node-2"][..], &source].concat()).ok();
        assert!(!text.contains("refused"), "{text}");
    })
    .await;
}

#[tokio::test]
async fn errors_of_the_apiserver_are_shown() {
    with_cluster("new.json", |kubeconfig| {
        let path = kubeconfig.display().to_string();
        let ran = nodewise(&["plan", "--kubeconfig", &path, "-n", "forbidden"]);
        assert_eq!(ran.code, Some(1));
        assert!(ran.stderr.starts_with("error: http://127.0.0.1:"), "{ran:?}");
        let missing = ": no right to list daemonsets, pods, controllerrevisions: pods is forbidden: User \"somebody\" cannot list resource \
                       \"pods\" (nodes of the cluster and, in this namespace, daemonsets, pods and controllerrevisions are needed)\n";
        assert!(ran.stderr.ends_with(missing), "{ran:?}");
        assert_eq!(ran.stderr.lines().count(), 1);
        let ran = nodewise(&["plan", "--kubeconfig", &path, "--context", "two"]);
        assert_eq!(ran.code, Some(1));
        assert_eq!(ran.stderr.lines().count(), 1);
        assert!(ran.stderr.contains("two"), "{ran:?}");
        let ran = nodewise(&["plan", "--kubeconfig", &path, "-n", "silent"]);
        assert_eq!(ran.code, Some(1));
        let reason = ": cannot list daemonsets: the answer is 404 Not Found, and gives no reason\n";
        assert!(ran.stderr.ends_with(reason), "{ran:?}");
    })
    .await;
}

#[test]
fn a_missing_kubeconfig_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("absent");
    let ran: Ran = command(&["plan"])
        .env("KUBECONFIG", &path)
        .output()
        .unwrap()
        .into();
    assert_eq!(ran.code, Some(1));
    let named = format!("error: no cluster to ask: failed to read kubeconfig from '{path:?}': No such file");
    assert!(ran.stderr.starts_with(&named), "{ran:?}");
    assert_eq!(ran.stderr.lines().count(), 1);
}
