//! Tests of the control plane's components.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use nodewise_testbed::{
    Component, ControlPlane, NODE_SILENT_LABEL, POD_ANNOTATION, POD_DELETION_ANNOTATION, PodBehaviour, User,
    eventually,
};
use serde_json::json;

const DEADLINE: Duration = Duration::from_mins(1);

/// A pod for one node, with these annotations.
fn pod(name: &str, node: &str, annotations: &serde_json::Value) -> Result<Pod> {
    Ok(serde_json::from_value(json!({
        "metadata": {"name": name, "annotations": annotations},
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": 30,
            "containers": [{"name": "app", "image": "app:1"}],
        },
    }))?)
}

/// The phase of a pod, and whether it is ready.
async fn phase_and_readiness(pods: &Api<Pod>, name: &str) -> Result<(String, bool)> {
    let status = pods.get(name).await?.status.context("a pod without status")?;
    let ready = status
        .conditions
        .iter()
        .flatten()
        .any(|it| it.type_ == "Ready" && it.status == "True");
    Ok((status.phase.unwrap_or_default(), ready))
}

async fn wait_for_phase(pods: &Api<Pod>, name: &str, phase: &str, ready: bool) -> Result<()> {
    eventually(DEADLINE, format!("{name}: {phase}, ready: {ready}"), async || {
        let now = phase_and_readiness(pods, name).await?;
        ensure!(now == (phase.to_owned(), ready), "it is {now:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn two_control_planes_are_independent() -> Result<()> {
    let (one, other) = tokio::try_join!(ControlPlane::builder().start(), ControlPlane::builder().start())?;
    let names = one.create_nodes(3).await?;
    assert_eq!(names, ["node-0000", "node-0001", "node-0002"]);
    assert_eq!(one.create_nodes(1).await?, ["node-0003"]);
    let nodes = |control_plane: &ControlPlane| Api::<Node>::all(control_plane.client());
    assert_eq!(nodes(&one).list(&ListParams::default()).await?.items.len(), 4);
    assert_eq!(nodes(&other).list(&ListParams::default()).await?.items.len(), 0);
    let version = one.kubectl(["version", "-o", "json"]).await?;
    let version: serde_json::Value = serde_json::from_str(&version)?;
    assert_eq!(
        version["serverVersion"]["gitVersion"],
        version["clientVersion"]["gitVersion"]
    );
    Ok(())
}

#[tokio::test]
async fn audit_log_has_user_and_object() -> Result<()> {
    let control_plane = ControlPlane::builder()
        .audit_log(true)
        .user(User::new("somebody").cluster_role("cluster-admin"))
        .user(User::new("nobody"))
        .start()
        .await?;
    let map = ConfigMap {
        metadata: kube::api::ObjectMeta {
            name: Some("written".to_owned()),
            ..Default::default()
        },
        ..ConfigMap::default()
    };
    let maps = async |user| {
        anyhow::Ok(Api::<ConfigMap>::namespaced(
            control_plane.client_for(user).await?,
            "default",
        ))
    };
    maps("somebody")
        .await?
        .create(&PostParams::default(), &map)
        .await?;
    maps("nobody")
        .await?
        .delete("written", &DeleteParams::default())
        .await
        .expect_err("nobody has no rights");
    assert!(control_plane.kubeconfig_for("unheard-of").is_err());

    let events = control_plane.audit_events().await?;
    let writes: Vec<_> = events
        .iter()
        .filter(|event| event.is_write() && ["somebody", "nobody"].contains(&event.user.as_str()))
        .map(|event| {
            (
                event.user.as_str(),
                event.verb.as_str(),
                event.resource.as_str(),
                event.name.as_str(),
                event.code,
                event.is_forbidden,
            )
        })
        .collect();
    assert_eq!(
        writes,
        [
            ("somebody", "create", "configmaps", "written", 201, false),
            ("nobody", "delete", "configmaps", "written", 403, true),
        ]
    );
    Ok(())
}

#[tokio::test]
async fn fake_kubelets_follow_annotations_and_labels() -> Result<()> {
    let control_plane = ControlPlane::builder().whole_cluster().start().await?;
    let nodes = control_plane
        .create_nodes_with(2, |index, node| {
            if index == 1 {
                let labels = node.metadata.labels.get_or_insert_default();
                labels.insert(NODE_SILENT_LABEL.to_owned(), "true".to_owned());
            }
        })
        .await?;
    let pods = Api::<Pod>::namespaced(control_plane.client(), "default");
    let make = async |name: &str, node: &str, annotations| {
        anyhow::Ok(
            pods.create(&PostParams::default(), &pod(name, node, &annotations)?)
                .await?,
        )
    };

    for (name, behaviour, phase, ready) in [
        ("ready", PodBehaviour::Ready, "Running", true),
        ("unready", PodBehaviour::Unready, "Running", false),
        ("failed", PodBehaviour::Failed, "Failed", false),
    ] {
        make(name, &nodes[0], json!({POD_ANNOTATION: behaviour.value()})).await?;
        wait_for_phase(&pods, name, phase, ready).await?;
    }
    make(
        "pending",
        &nodes[0],
        json!({POD_ANNOTATION: PodBehaviour::Pending.value()}),
    )
    .await?;
    make("silent", &nodes[1], json!({})).await?;
    let mut no_image = pod("no-image", &nodes[0], &json!({}))?;
    for container in no_image.spec.iter_mut().flat_map(|spec| &mut spec.containers) {
        container.image = Some("foo:non-existent".to_owned());
    }
    pods.create(&PostParams::default(), &no_image).await?;
    make("last", &nodes[0], json!({})).await?;
    // The fake kubelets have handled the three earlier pods by the time the last one is ready.
    wait_for_phase(&pods, "last", "Running", true).await?;
    assert_eq!(
        phase_and_readiness(&pods, "pending").await?,
        ("Pending".to_owned(), false)
    );
    assert_eq!(
        phase_and_readiness(&pods, "silent").await?,
        ("Pending".to_owned(), false)
    );
    assert_eq!(
        phase_and_readiness(&pods, "no-image").await?,
        ("Pending".to_owned(), false)
    );

    control_plane
        .set_pod_behaviour("default", "ready", PodBehaviour::Unready)
        .await?;
    wait_for_phase(&pods, "ready", "Running", false).await?;
    control_plane
        .set_pod_behaviour("default", "ready", PodBehaviour::Failed)
        .await?;
    wait_for_phase(&pods, "ready", "Failed", false).await?;
    control_plane
        .set_pod_behaviour("default", "pending", PodBehaviour::Ready)
        .await?;
    wait_for_phase(&pods, "pending", "Running", true).await?;
    control_plane.set_node_silent(&nodes[1], false).await?;
    wait_for_phase(&pods, "silent", "Running", true).await?;

    node_readiness_follows(&control_plane, &nodes[0]).await?;
    deletion_waits_for_the_kubelet(&control_plane, &pods, &nodes).await
}

async fn node_readiness_follows(control_plane: &ControlPlane, node: &str) -> Result<()> {
    for ready in [false, true] {
        control_plane.set_node_ready(node, ready).await?;
        wait_for_node(control_plane, node, if ready { "True" } else { "False" }).await?;
    }
    Ok(())
}

async fn wait_for_node(control_plane: &ControlPlane, node: &str, ready: &str) -> Result<()> {
    let condition = format!("--for=condition=Ready={ready}");
    control_plane
        .kubectl(["wait", "node", node, &condition, "--timeout=60s"])
        .await?;
    Ok(())
}

/// A deleted pod goes away only if its kubelet lives and the pod has no `hold` annotation.
async fn deletion_waits_for_the_kubelet(
    control_plane: &ControlPlane,
    pods: &Api<Pod>,
    nodes: &[String],
) -> Result<()> {
    let held = pod("held", &nodes[0], &json!({POD_DELETION_ANNOTATION: "hold"}))?;
    pods.create(&PostParams::default(), &held).await?;
    wait_for_phase(pods, "held", "Running", true).await?;
    control_plane.set_node_silent(&nodes[1], true).await?;
    wait_for_node(control_plane, &nodes[1], "Unknown").await?;

    let gone = async |name: &str| {
        eventually(DEADLINE, format!("{name} is gone"), async || {
            ensure!(pods.get_opt(name).await?.is_none(), "it is still there");
            Ok(())
        })
        .await
    };
    for name in ["held", "silent", "last"] {
        pods.delete(name, &DeleteParams::default()).await?;
    }
    // The fake kubelets have handled the two earlier deletes by the time the last pod is gone.
    gone("last").await?;
    for name in ["held", "silent"] {
        assert!(
            pods.get(name).await?.metadata.deletion_timestamp.is_some(),
            "{name} is in deletion"
        );
    }
    let release = format!("{POD_DELETION_ANNOTATION}-");
    control_plane
        .kubectl(["annotate", "pod", "held", &release])
        .await?;
    gone("held").await?;
    control_plane.set_node_silent(&nodes[1], false).await?;
    wait_for_node(control_plane, &nodes[1], "True").await?;
    gone("silent").await
}

#[tokio::test]
async fn controllers_and_scheduler_work() -> Result<()> {
    // With the admission plugins of a real cluster, which depend on these components.
    let builder = ControlPlane::builder().whole_cluster();
    let control_plane = builder
        .admission("ServiceAccount")
        .admission("TaintNodesByCondition")
        .start()
        .await?;
    control_plane.create_nodes(3).await?;
    control_plane
        .kubectl(["create", "deployment", "web", "--image=web:1", "--replicas=6"])
        .await?;
    control_plane
        .kubectl(["rollout", "status", "deployment/web", "--timeout=60s"])
        .await?;
    control_plane
        .kubectl(["delete", "deployment", "web", "--wait=false"])
        .await?;
    let pods = Api::<Pod>::namespaced(control_plane.client(), "default");
    eventually(
        DEADLINE,
        "the garbage collector removes the deployment's pods",
        async || {
            let left = pods.list(&ListParams::default()).await?.items.len();
            ensure!(left == 0, "{left} are left");
            Ok(())
        },
    )
    .await?;

    let daemonset = serde_json::from_value(json!({
        "metadata": {"name": "agent"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {"containers": [{"name": "agent", "image": "agent:1"}]},
            },
        },
    }))?;
    let daemonsets = Api::<DaemonSet>::namespaced(control_plane.client(), "default");
    daemonsets.create(&PostParams::default(), &daemonset).await?;
    // A later Deployment is complete, so a running DaemonSet controller would have created pods by now.
    control_plane
        .kubectl(["create", "deployment", "later", "--image=web:1"])
        .await?;
    control_plane
        .kubectl(["rollout", "status", "deployment/later", "--timeout=60s"])
        .await?;
    let agents = pods.list(&ListParams::default().labels("app=agent")).await?.items;
    assert!(agents.is_empty(), "the built-in DaemonSet controller is off");
    Ok(())
}

#[tokio::test]
async fn a_component_can_be_killed_and_started_again() -> Result<()> {
    let control_plane = ControlPlane::builder().start().await?;
    control_plane.create_nodes(2).await?;
    control_plane.kill(Component::Apiserver)?;
    let nodes = Api::<Node>::all(control_plane.client());
    nodes
        .list(&ListParams::default())
        .await
        .expect_err("nobody answers");
    control_plane.start(Component::Apiserver)?;
    assert!(
        control_plane.start(Component::Apiserver).is_err(),
        "it runs already"
    );
    control_plane.wait_until_ready().await?;
    assert_eq!(nodes.list(&ListParams::default()).await?.items.len(), 2);
    assert!(
        control_plane.start(Component::Kwok).is_err(),
        "it was not asked for"
    );
    Ok(())
}

#[tokio::test]
async fn a_component_that_ends_early_is_reported_with_its_log() {
    let builder = ControlPlane::builder().arg(Component::Apiserver, "--no-such-flag");
    let error = builder.start().await.expect_err("the apiserver refuses the flag");
    let said = format!("{error:#}");
    assert!(
        said.contains("kube-apiserver has ended") && said.contains("no-such-flag"),
        "{said}"
    );
}
