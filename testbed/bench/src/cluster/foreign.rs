//! Pods that belong to no DaemonSet. A real cluster has many, and controllers that watch pods receive them.

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};

/// The number of concurrent creates.
const CONCURRENCY: usize = 64;

/// The namespace of these pods.
pub(super) const NAMESPACE: &str = "foreign";

/// Creates pods of ReplicaSets, evenly distributed over the nodes.
pub(super) async fn create(client: &Client, count: usize, nodes: &[String]) -> Result<()> {
    make_namespace(client, NAMESPACE).await?;
    let api = Api::<Pod>::namespaced(client.clone(), NAMESPACE);
    let params = PostParams::default();
    stream::iter((0..count).zip(nodes.iter().cycle()))
        .map(async |(index, node)| {
            let pod: Pod = serde_json::from_value(pod(index, node)).context("a pod of a ReplicaSet")?;
            api.create(&params, &pod)
                .await
                .context("creating a pod of a ReplicaSet")
        })
        .buffer_unordered(CONCURRENCY)
        .try_for_each(async |_| Ok(()))
        .await
}

/// Creates a namespace.
pub(super) async fn make_namespace(client: &Client, name: &str) -> Result<()> {
    let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
    Api::<Namespace>::all(client.clone())
        .create(&PostParams::default(), &namespace)
        .await
        .with_context(|| format!("creating the namespace {name}"))?;
    Ok(())
}

/// A pod of a web application of typical size, with probes, ports, environment and volumes.
fn pod(index: usize, node: &str) -> Value {
    let app = format!("app-{:04}", index / 10);
    let environment: Vec<_> = (0..12)
        .map(|number| json!({"name": format!("SETTING_{number:02}"), "value": format!("value-of-setting-{number:02}")}))
        .collect();
    let probe = |path: &str| json!({"httpGet": {"path": path, "port": 8080}, "periodSeconds": 10});
    json!({
        "metadata": {
            "name": format!("{app}-5d8c7f9b6d-{index:06}"),
            "labels": {"app.kubernetes.io/name": app, "app.kubernetes.io/part-of": "shop", "pod-template-hash": "5d8c7f9b6d"},
            "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "8080"},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("{app}-5d8c7f9b6d"),
                "uid": format!("00000000-0000-4000-8000-{:012}", index / 10), "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "nodeName": node,
            "containers": [{
                "name": "web", "image": format!("registry.example/{app}:1.2.3"),
                "ports": [{"name": "http", "containerPort": 8080}],
                "env": environment,
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
                "readinessProbe": probe("/ready"), "livenessProbe": probe("/alive"),
                "volumeMounts": [{"name": "config", "mountPath": "/etc/app"}, {"name": "scratch", "mountPath": "/tmp"}],
            }],
            "volumes": [{"name": "config", "configMap": {"name": app}}, {"name": "scratch", "emptyDir": {}}],
        },
    })
}
