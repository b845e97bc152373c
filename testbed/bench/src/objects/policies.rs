//! RolloutPolicies in the namespace of the DaemonSets, and a rollout that has reached its first stage.

use anyhow::{Context as _, Result, bail};
use nodewise_executor::daemon_set::DAEMON_SETS;
use nodewise_projection::{Revision, RolloutPolicy, Workload};
use nodewise_proto::bucket::Receiver;
use nodewise_proto::v1;
use nodewise_runtime::Delta;
use nodewise_runtime::event::ClusterEvent;
use serde_json::{Value, json};

use super::manifests::{CREATED, NAMESPACE, daemon_set};
use super::{Caches, FIRST_VERSION, first_plan, listed, planned, pod, revision};

/// The number of node pools of [`super::manifests::node`].
const POOLS: usize = 8;
/// The nodes of the first stage of each policy.
pub const CANARIES: usize = 50;

/// Ten stages: fifty nodes, each node pool, and the nodes that are left.
#[must_use]
pub fn stages() -> Value {
    let pool = |index| {
        let labels = json!({"eks.amazonaws.com/nodegroup": format!("workers-{index}")});
        json!({"name": format!("pool-{index}"), "nodeSelector": {"matchLabels": labels}})
    };
    let mut stages = vec![json!({"name": "canary", "replicas": CANARIES})];
    stages.extend((0..POOLS).map(pool));
    stages.push(json!({"name": "rest"}));
    Value::Array(stages)
}

/// What differs for pods that a rollout has replaced already.
#[derive(Debug)]
pub(super) struct Replaced {
    /// They are on the nodes before this one.
    pub(super) nodes: usize,
    /// The text of a ready pod, with placeholders.
    pub(super) pod: String,
}

impl Caches {
    /// Puts `count` policies into the namespace. The first one targets the first DaemonSet if `applies`; the others, and it too
    /// if not, target DaemonSets that do not exist.
    ///
    /// # Errors
    /// The service refuses the status of the policy, or does not come to rest.
    pub fn add_policies(&mut self, count: usize, applies: bool) -> Result<()> {
        let policy = |index: usize| {
            let target = match index {
                0 if applies => json!(["node-agent-0"]),
                index => json!([format!("another-agent-{index}")]),
            };
            json!({
                "apiVersion": "nodewise.dev/v1alpha1", "kind": "RolloutPolicy",
                "metadata": {
                    "name": format!("policy-{index}"), "namespace": NAMESPACE, "generation": 1, "creationTimestamp": CREATED,
                    "resourceVersion": "1005", "uid": format!("{index:08x}-3c1d-4e2f-8a9b-0c1d2e3f4a5b"),
                },
                "spec": {"targets": {"names": target}, "stages": stages()},
            })
        };
        let objects: Vec<_> = (0..count).map(policy).collect();
        let read = objects.iter().map(RolloutPolicy::from_json);
        let policies = listed(read.collect::<Result<Vec<_>, _>>().context("a policy")?);
        self.store.apply(ClusterEvent::Policies(policies));
        self.governing = objects.into_iter().next().filter(|_| applies);
        self.record()
    }

    /// Gives the first DaemonSet a new image. The pods on the first [`CANARIES`] nodes have it already.
    ///
    /// # Errors
    /// Nodewise's first plan for the new template does not create its revision and its pods.
    pub fn roll_out(&mut self) -> Result<()> {
        let metadata = &self.cluster.workloads[0].daemon_set["metadata"];
        let (name, uid) = (metadata["name"].as_str(), metadata["uid"].as_str());
        let (name, uid) = name.zip(uid).context("a DaemonSet without a name")?;
        let mut object = daemon_set(name, uid, self.nodes());
        object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("registry.example/agent:2");
        object["metadata"]["generation"] = json!(2);
        object["metadata"]["annotations"]["deprecated.daemonset.template.generation"] = json!("2");
        let version = json!((FIRST_VERSION + 1).to_string());
        object["metadata"]["resourceVersion"] = version.clone();
        let first = first_plan(&object)?;
        let mut new_revision = revision(&first, 1)?;
        let number = serde_json::value::to_raw_value(&2)?;
        new_revision.insert("revision".to_owned(), number);
        let text = serde_json::to_string(&new_revision)?;
        self.replaced = Some(Replaced {
            nodes: CANARIES.min(self.nodes()),
            pod: pod(&first, name)?,
        });
        let workload = Workload::daemon_set_from_json(&object)?;
        self.workloads[0] = workload.clone();
        self.store
            .apply(ClusterEvent::Workloads(DAEMON_SETS, Delta::Applied(workload)));
        self.store
            .apply(ClusterEvent::Revisions(Delta::Applied(Revision::from_text(
                &text,
            )?)));
        for node in 0..CANARIES.min(self.nodes()) {
            self.set_ready(0, node, true)?;
        }
        self.record()
    }

    /// Writes what plans say about the status of the policy that applies, until they say nothing more.
    fn record(&mut self) -> Result<()> {
        let Some(mut policy) = self.governing.take() else {
            return Ok(());
        };
        for version in 1..10 {
            let plan = planned(self.request(0, &Receiver::EMPTY))?;
            let status = plan.actions().find_map(|action| match &action.kind {
                Some(v1::action::Kind::PatchObject(patch)) if patch.subresource == "status" => Some(patch),
                _ => None,
            });
            let Some(write) = status else {
                self.governing = Some(policy);
                return Ok(());
            };
            let patch: Value = serde_json::from_slice(&write.patch)?;
            let fields = patch["status"].as_object().context("a patch without a status")?;
            for (field, value) in fields {
                policy["status"][field] = value.clone();
            }
            policy["metadata"]["resourceVersion"] = json!((FIRST_VERSION + version).to_string());
            let read = RolloutPolicy::from_json(&policy)?;
            self.store.apply(ClusterEvent::Policies(Delta::Applied(read)));
        }
        bail!("the status of the policy changes with every plan")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::objects::Cluster;

    fn caches() -> Result<Caches> {
        Caches::of(&Arc::new(Cluster::settled(600, 1)?))
    }

    /// The names of the nodes whose pods the plan deletes.
    fn deletes(caches: &mut Caches) -> Result<usize> {
        let plan = planned(caches.request(0, &Receiver::EMPTY))?;
        let is_delete = |action: &&v1::Action| matches!(action.kind, Some(v1::action::Kind::DeletePod(_)));
        Ok(plan.actions().filter(is_delete).count())
    }

    #[test]
    fn a_settled_cluster_stays_settled_with_policies() -> Result<()> {
        for applies in [false, true] {
            let mut caches = caches()?;
            caches.add_policies(50, applies)?;
            let plan = planned(caches.request(0, &Receiver::EMPTY))?;
            assert_eq!(plan.verdict(), v1::Verdict::Noop, "{plan:?}");
            let request = caches.request(0, &Receiver::EMPTY);
            let snapshot = request.snapshot.context("a snapshot")?;
            let Some(v1::workload::Kind::DaemonSet(daemon_set)) =
                snapshot.workload.and_then(|found| found.kind)
            else {
                panic!("a DaemonSet");
            };
            assert_eq!(daemon_set.rollout_policies.len(), usize::from(applies));
        }
        Ok(())
    }

    #[test]
    fn a_rollout_goes_on_with_and_without_a_policy() -> Result<()> {
        for policies in [0, 50] {
            let mut caches = caches()?;
            caches.add_policies(policies, true)?;
            caches.roll_out()?;
            assert_eq!(deletes(&mut caches)?, 1, "with {policies} policies");
        }
        Ok(())
    }
}
