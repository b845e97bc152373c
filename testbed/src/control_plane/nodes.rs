//! Fake nodes, and the annotations and labels that control their fake kubelets.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{Node, NodeCondition, NodeStatus, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::ControlPlane;
use super::builder::Component;
use crate::wait::eventually;

/// The annotation on a pod, or in a pod template, that sets the behaviour of the pod: see [`PodBehaviour`].
pub const POD_ANNOTATION: &str = "nodewise.test/pod";

/// The annotation on a pod that, with the value `hold`, keeps the pod in deletion until the annotation is removed, like
/// a pod whose containers take long to end.
pub const POD_DELETION_ANNOTATION: &str = "nodewise.test/pod-deletion";

/// The annotation on a node that, with the value [`NODE_NOT_READY`], makes the node's kubelet report not ready until
/// the annotation is removed.
pub const NODE_ANNOTATION: &str = "nodewise.test/node";

/// The value of [`NODE_ANNOTATION`].
pub const NODE_NOT_READY: &str = "not-ready";

/// The label on a node, with any value, whose kubelet is dead: the node and its pods do not become ready, and deleted
/// pods stay. When the label is removed, the kubelet works again.
pub const NODE_SILENT_LABEL: &str = "nodewise.test/silent";

/// How many requests run at the same time when many objects are created.
const CONCURRENCY: usize = 32;

/// How long nodes may take to become ready, even thousands of them on a busy machine.
const NODES_DEADLINE: Duration = Duration::from_mins(2);

/// The behaviour of a pod under kwok, as the value of [`POD_ANNOTATION`]. A pod without the annotation becomes ready.
///
/// It may change during the pod's life. A test can also patch the status of a pod; kwok only reverts the Ready
/// condition of a pending or running pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodBehaviour {
    /// The pod runs and is ready.
    Ready,
    /// The pod stays pending, as if its image cannot be pulled. A pod that already runs is not affected.
    Pending,
    /// The pod runs and is not ready.
    Unready,
    /// The pod fails. This is final.
    Failed,
}

impl PodBehaviour {
    /// The annotation's value.
    #[must_use]
    pub fn value(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Pending => "pending",
            Self::Unready => "unready",
            Self::Failed => "failed",
        }
    }
}

/// A node as a kubelet would register it, without conditions: Linux on amd64, for up to 1,000 pods.
#[must_use]
pub fn fake_node(name: &str) -> Node {
    let labels = [
        ("kubernetes.io/hostname", name),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", "amd64"),
    ];
    let room: BTreeMap<_, _> = [
        ("cpu", "64"),
        ("memory", "256Gi"),
        ("ephemeral-storage", "1Ti"),
        ("pods", "1000"),
    ]
    .map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned())))
    .into();
    Node {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(
                labels
                    .map(|(key, value)| (key.to_owned(), value.to_owned()))
                    .into(),
            ),
            ..ObjectMeta::default()
        },
        status: Some(NodeStatus {
            allocatable: Some(room.clone()),
            capacity: Some(room),
            ..NodeStatus::default()
        }),
        ..Node::default()
    }
}

impl ControlPlane {
    /// Creates `count` nodes (`node-0000` and so on), waits until they are ready, and returns their names.
    ///
    /// # Errors
    /// The apiserver rejects a node, or the nodes are not ready within two minutes.
    pub async fn create_nodes(&self, count: usize) -> Result<Vec<String>> {
        self.create_nodes_with(count, |_, _| {}).await
    }

    /// Like [`ControlPlane::create_nodes`], but calls `change` with the index (from 0) of each node and the node before
    /// it is created.
    ///
    /// Waits only for nodes that can become ready: not for those with [`NODE_SILENT_LABEL`] or [`NODE_ANNOTATION`].
    ///
    /// # Errors
    /// The apiserver rejects a node, or the nodes are not ready within two minutes.
    pub async fn create_nodes_with(
        &self,
        count: usize,
        mut change: impl FnMut(usize, &mut Node),
    ) -> Result<Vec<String>> {
        let first = self.nodes_made.fetch_add(count, Ordering::Relaxed);
        let nodes: Vec<Node> = (0..count)
            .map(|index| {
                let mut node = fake_node(&format!("node-{:04}", first + index));
                if !self.has(Component::Kwok) {
                    set_ready(&mut node);
                }
                change(index, &mut node);
                node
            })
            .collect();
        let api = Api::<Node>::all(self.client());
        let made: Vec<Node> = stream::iter(&nodes)
            .map(|node| async {
                api.create(&PostParams::default(), node)
                    .await
                    .context("creating a node")
            })
            .buffered(CONCURRENCY)
            .try_collect()
            .await?;
        self.wait_for_nodes(&made).await?;
        Ok(made.into_iter().filter_map(|node| node.metadata.name).collect())
    }

    /// Sets the behaviour of a pod.
    ///
    /// # Errors
    /// The pod does not exist, or the apiserver rejects the patch.
    pub async fn set_pod_behaviour(&self, namespace: &str, pod: &str, behaviour: PodBehaviour) -> Result<()> {
        let patch = json!({"metadata": {"annotations": {POD_ANNOTATION: behaviour.value()}}});
        Api::<Pod>::namespaced(self.client(), namespace)
            .patch_metadata(pod, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .with_context(|| format!("annotating the pod {namespace}/{pod}"))?;
        Ok(())
    }

    /// Sets whether the kubelet of a node reports ready.
    ///
    /// # Errors
    /// The node does not exist, or the apiserver rejects the patch.
    pub async fn set_node_ready(&self, node: &str, ready: bool) -> Result<()> {
        let value = if ready { Value::Null } else { NODE_NOT_READY.into() };
        self.patch_node(
            node,
            json!({"metadata": {"annotations": {NODE_ANNOTATION: value}}}),
        )
        .await
    }

    /// Kills the kubelet of a node, or starts it again.
    ///
    /// The Ready condition of the node becomes `Unknown` at once, as Kubernetes' node lifecycle controller sets it
    /// after missed heartbeats. (Under kwok no node sends heartbeats, and that controller does not check them. It still
    /// sets the taints for `Unknown`.)
    ///
    /// # Errors
    /// The node does not exist, or the apiserver rejects a patch.
    pub async fn set_node_silent(&self, node: &str, silent: bool) -> Result<()> {
        let value = if silent { "true".into() } else { Value::Null };
        self.patch_node(node, json!({"metadata": {"labels": {NODE_SILENT_LABEL: value}}}))
            .await?;
        if silent {
            let now = Timestamp::now().to_string();
            let condition = json!({
                "type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown",
                "message": "the fake kubelet was killed", "lastTransitionTime": now,
            });
            let patch = json!({"status": {"conditions": [condition]}});
            Api::<Node>::all(self.client())
                .patch_status(node, &PatchParams::default(), &Patch::Strategic(patch))
                .await
                .with_context(|| format!("patching the status of the node {node}"))?;
        }
        Ok(())
    }

    async fn patch_node(&self, node: &str, patch: Value) -> Result<()> {
        Api::<Node>::all(self.client())
            .patch_metadata(node, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .with_context(|| format!("patching the node {node}"))?;
        Ok(())
    }

    async fn wait_for_nodes(&self, made: &[Node]) -> Result<()> {
        let awaited: Vec<_> = made.iter().filter(|node| can_be_ready(node)).map(name).collect();
        let api = Api::<Node>::all(self.client());
        eventually(NODES_DEADLINE, "all new nodes are ready", async || {
            self.check_running()?;
            // From the apiserver's cache, which is fresh enough here and much cheaper.
            let nodes = api.list(&ListParams::default().match_any()).await?.items;
            let ready: std::collections::HashSet<_> =
                nodes.iter().filter(|node| is_ready(node)).map(name).collect();
            let missing = awaited.iter().filter(|name| !ready.contains(*name)).count();
            if missing > 0 {
                bail!("{missing} of {} are not ready", awaited.len());
            }
            Ok(())
        })
        .await
    }
}

fn name(node: &Node) -> &str {
    node.metadata.name.as_deref().unwrap_or_default()
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn can_be_ready(node: &Node) -> bool {
    let silent = node
        .metadata
        .labels
        .as_ref()
        .is_some_and(|labels| labels.contains_key(NODE_SILENT_LABEL));
    let annotations = node.metadata.annotations.as_ref();
    let told = annotations.and_then(|all| all.get(NODE_ANNOTATION));
    !silent && told.is_none_or(|value| value != NODE_NOT_READY)
}

fn set_ready(node: &mut Node) {
    let now = Time(Timestamp::now());
    node.status.get_or_insert_default().conditions = Some(vec![NodeCondition {
        type_: "Ready".to_owned(),
        status: "True".to_owned(),
        reason: Some("KubeletReady".to_owned()),
        last_heartbeat_time: Some(now.clone()),
        last_transition_time: Some(now),
        ..NodeCondition::default()
    }]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kwok_stages_use_the_annotations_of_this_module() {
        let stages = include_str!("../../config/kwok.yaml");
        for annotation in [POD_ANNOTATION, POD_DELETION_ANNOTATION, NODE_ANNOTATION] {
            assert!(
                stages.contains(&format!(".metadata.annotations[\"{annotation}\"]")),
                "{annotation}"
            );
        }
        for behaviour in [PodBehaviour::Pending, PodBehaviour::Unready, PodBehaviour::Failed] {
            assert!(stages.contains(behaviour.value()), "{behaviour:?}");
        }
        assert!(stages.contains(NODE_NOT_READY));
    }
}
