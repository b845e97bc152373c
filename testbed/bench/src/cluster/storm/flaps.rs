//! Nodes that become not ready and ready again, one after the other, as kubelets and the node lifecycle controller would write it:
//! the condition in the status, and the taints.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, ListParams, Patch, PatchParams};
use nodewise_testbed::eventually;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

/// How many nodes are written at the same time.
const CONCURRENCY: usize = 32;
/// One node in so many is not ready at any time.
const NOT_READY: usize = 10;
/// The key of the taints.
const TAINT: &str = "node.kubernetes.io/not-ready";

/// A storm of node events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Storm<'a> {
    pub(super) nodes: &'a [String],
    pub(super) lasts: Duration,
    /// How often each node becomes not ready.
    pub(super) flaps: usize,
}

impl Storm<'_> {
    /// Lets the nodes flap, evenly over the time of the storm. If the apiserver is too slow for that, the storm ends in time,
    /// with fewer changes. All nodes are ready afterwards. Returns the number of changes from ready to not ready and back.
    pub(super) async fn run(self, client: &Client) -> Result<usize> {
        let api = Api::<Node>::all(client.clone());
        let steps = self.nodes.len() * self.flaps;
        ensure!(steps > 0, "no node flaps");
        let pause = self.lasts.div_f64(u32::try_from(steps)?.into());
        let behind = (self.nodes.len() / NOT_READY).max(1);
        let begun = Instant::now();
        let end = begun + self.lasts;
        let node = |step: usize| &*self.nodes[step % self.nodes.len()];
        let changes = stream::iter(0..u32::try_from(steps)?)
            .then(async |step| {
                sleep_until(begun + pause * step).await;
                step as usize
            })
            .take_while(|_| futures::future::ready(Instant::now() < end))
            .map(async |step| {
                set_ready(&api, node(step), false).await?;
                if step < behind {
                    return Ok(1);
                }
                set_ready(&api, node(step - behind), true).await?;
                anyhow::Ok(2)
            })
            .buffer_unordered(CONCURRENCY)
            .try_fold(0, async |all, changes| Ok(all + changes))
            .await?;
        sleep_until(end).await;
        Ok(changes + self.calm(&api).await?)
    }

    /// Makes all nodes ready. Returns how many were not.
    async fn calm(self, api: &Api<Node>) -> Result<usize> {
        let left = not_ready(api).await?;
        stream::iter(&left)
            .map(async |name| set_ready(api, name, true).await)
            .buffer_unordered(CONCURRENCY)
            .try_collect::<()>()
            .await?;
        Ok(left.len())
    }
}

/// Waits until all nodes are ready.
pub(super) async fn wait_until_ready(client: &Client, deadline: Duration) -> Result<()> {
    let api = Api::<Node>::all(client.clone());
    eventually(deadline, "ready nodes", async || {
        let left = not_ready(&api).await?;
        ensure!(left.is_empty(), "{} are not ready", left.len());
        Ok(())
    })
    .await
}

/// The names of the nodes that are not ready, or have the taint.
async fn not_ready(api: &Api<Node>) -> Result<Vec<String>> {
    let nodes = api.list(&ListParams::default()).await?.items;
    let left = nodes.into_iter().filter(|node| !is_ready(node));
    Ok(left.filter_map(|node| node.metadata.name).collect())
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| &status.conditions).flatten();
    let mut ready = conditions.filter(|condition| condition.type_ == "Ready");
    let mut taints = node.spec.iter().flat_map(|spec| &spec.taints).flatten();
    ready.any(|condition| condition.status == "True") && !taints.any(|taint| taint.key == TAINT)
}

async fn set_ready(api: &Api<Node>, name: &str, ready: bool) -> Result<()> {
    let params = PatchParams::default();
    let status = Patch::Strategic(status(ready, Timestamp::now()));
    api.patch_status(name, &params, &status)
        .await
        .with_context(|| format!("patching the status of {name}"))?;
    api.patch_metadata(name, &params, &Patch::Merge(taints(ready)))
        .await
        .with_context(|| format!("patching the taints of {name}"))?;
    Ok(())
}

fn status(ready: bool, now: Timestamp) -> Value {
    let now = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let (status, reason) = if ready {
        ("True", "KubeletReady")
    } else {
        ("False", "KubeletNotReady")
    };
    json!({"status": {"conditions": [{
        "type": "Ready", "status": status, "reason": reason, "lastHeartbeatTime": now, "lastTransitionTime": now,
    }]}})
}

fn taints(ready: bool) -> Value {
    let taint = |effect: &str| json!({"key": TAINT, "effect": effect});
    let taints = if ready {
        Value::Null
    } else {
        json!([taint("NoSchedule"), taint("NoExecute")])
    };
    json!({"spec": {"taints": taints}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_ready_without_the_taint() -> Result<()> {
        let node = |of_status: bool, of_taints: bool| -> Result<Node> {
            let mut node = status(of_status, Timestamp::UNIX_EPOCH);
            node["spec"] = taints(of_taints)["spec"].clone();
            Ok(serde_json::from_value(node)?)
        };
        assert!(is_ready(&node(true, true)?));
        assert!(!is_ready(&node(false, true)?) && !is_ready(&node(true, false)?));
        assert!(!is_ready(&Node::default()));
        Ok(())
    }
}
