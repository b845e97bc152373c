//! Computes the status of a workload from its plan, its explanation, and facts about its pods and nodes.

use anyhow::Context as _;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use nodewise_proto::v1;
use nodewise_status::{Inputs, PodFacts, PolicyFacts, TemplateFacts};

use crate::{
    engine::Engine,
    input::{Cluster, Facts, Served},
    kind::Kind,
    refusals::{Refusals, Subject, Told},
    request::{RequestFactory, uid_of_policy},
};

/// Where statuses come from. The cluster was read with facts.
pub(crate) struct Source<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) engine: &'a Engine,
    pub(crate) requests: &'a RequestFactory<'a>,
}

impl Source<'_> {
    /// The status of a workload. `refusal` is the last create that the apiserver refused, if an Event says so.
    pub(crate) async fn status(
        &self,
        workload: &Served,
        refusal: Option<&v1::Refusal>,
    ) -> anyhow::Result<v1::WorkloadStatus> {
        let (plan, explanation) = self.planned(workload).await?;
        self.status_of(workload, refusal, &plan, &explanation)
    }

    /// The plan of a workload, and its explanation.
    pub(crate) async fn planned(&self, workload: &Served) -> anyhow::Result<(v1::Plan, v1::ExplainResponse)> {
        let request = self.requests.request_for(workload);
        let plan = self.engine.plan(&request).await?;
        let explanation = self.engine.explain(&request, None).await?;
        Ok((plan, explanation))
    }

    /// As [`Source::status`]. If a pod is missing, Events tell why.
    pub(crate) async fn status_with_events(
        &self,
        workload: &Served,
        client: &Client,
    ) -> anyhow::Result<v1::WorkloadStatus> {
        let (plan, explanation) = self.planned(workload).await?;
        let told = if nodewise_status::lacks_a_pod(&plan, &explanation) {
            Refusals::told(client, &Subject::of(workload)).await
        } else {
            Told::default()
        };
        self.status_told(workload, &told, &plan, &explanation)
    }

    /// The status of a workload with this plan, this explanation, and what Events tell.
    pub(crate) fn status_told(
        &self,
        workload: &Served,
        told: &Told,
        plan: &v1::Plan,
        explanation: &v1::ExplainResponse,
    ) -> anyhow::Result<v1::WorkloadStatus> {
        let mut status = self.status_of(workload, told.refusal.as_ref(), plan, explanation)?;
        told.add_owner(&mut status);
        Ok(status)
    }

    /// What is known about a pod and its controller, if that was read. Whether the pod is of the current revision, only the explanation of
    /// its workload tells.
    pub(crate) fn pod_status(&self, pod: &v1::Pod, owner: Option<&Served>) -> Option<v1::PodStatus> {
        let facts = self.cluster.facts.as_ref()?;
        let owner = owner.and_then(|owner| facts.workload(owner.kind, &owner.namespace, &owner.name));
        let seconds = owner.map_or(0, |owner| owner.min_ready_seconds);
        let pod = facts.pod(&pod.uid)?;
        Some(pod.status(false, is_available(pod, seconds, self.requests.now())))
    }

    /// The status of a workload with this plan and this explanation.
    pub(crate) fn status_of(
        &self,
        workload: &Served,
        refusal: Option<&v1::Refusal>,
        plan: &v1::Plan,
        explanation: &v1::ExplainResponse,
    ) -> anyhow::Result<v1::WorkloadStatus> {
        let facts = self.cluster.facts.as_ref();
        let facts = facts.context("the cluster was read without facts")?;
        let about = facts
            .workload(workload.kind, &workload.namespace, &workload.name)
            .with_context(|| format!("{} was read without facts", workload.title()))?;
        let templates = templates(self.cluster, workload);
        Ok(nodewise_status::of(&Inputs {
            workload: about,
            plan,
            explanation,
            pods: &own_pods(self.cluster, facts, workload, &templates),
            node: &|name| facts.node(name),
            templates: &templates,
            policies: &policies(self.cluster, workload),
            refusal,
            now: self.requests.now(),
        }))
    }
}

/// Whether a pod has been ready for minReadySeconds of its controller.
fn is_available(pod: &PodFacts, min_ready_seconds: i64, now: Timestamp) -> bool {
    let needed = SignedDuration::from_secs(min_ready_seconds);
    let is_old = |since: Timestamp| now.duration_since(since) > needed;
    pod.ready && (min_ready_seconds <= 0 || pod.ready_changed.is_some_and(is_old))
}

/// The status of a workload now, by the planner in this process.
pub(crate) async fn local_status(cluster: &Cluster, workload: &Served) -> anyhow::Result<v1::WorkloadStatus> {
    let source = Source {
        cluster,
        engine: &Engine::in_process(),
        requests: &RequestFactory::at(cluster, None, v1::Profile::Default),
    };
    source.status(workload, None).await
}

/// The pods of a status: those on the nodes of a DaemonSet, or those of the other kinds that are not available.
pub(crate) fn pods(status: &v1::WorkloadStatus) -> impl Iterator<Item = &v1::PodStatus> {
    let on_nodes = status.nodes.iter().flat_map(|node| &node.pods);
    on_nodes.chain(&status.pods)
}

/// The ControllerRevisions of a DaemonSet, or the ReplicaSets of a Deployment.
fn templates(cluster: &Cluster, workload: &Served) -> Vec<TemplateFacts> {
    let is_own = |one: &&Served| one.controller.as_deref() == Some(&workload.uid);
    match workload.kind {
        Kind::DaemonSet => {
            let revisions = cluster.revisions_in(&workload.namespace).iter().filter(is_own);
            revisions
                .map(|one| TemplateFacts::of_revision(one.json.get()))
                .collect()
        }
        Kind::Deployment => {
            let sets = cluster
                .workloads_in(Kind::ReplicaSet, &workload.namespace)
                .filter(is_own);
            sets.map(|one| TemplateFacts::of_replica_set(one.json.get()))
                .collect()
        }
        _ => Vec::new(),
    }
}

/// The RolloutPolicies of the namespace of a DaemonSet.
pub(crate) fn policies(cluster: &Cluster, workload: &Served) -> Vec<PolicyFacts> {
    if workload.kind != Kind::DaemonSet {
        return Vec::new();
    }
    let policies = cluster.policies_in(&workload.namespace).iter();
    let facts = policies.map(|policy| {
        let mut facts = PolicyFacts::of(policy.json.get());
        facts.uid = uid_of_policy(policy);
        facts
    });
    facts.collect()
}

/// The pods of a workload; of a Deployment, those of its ReplicaSets.
fn own_pods<'a>(
    cluster: &Cluster,
    facts: &'a Facts,
    workload: &Served,
    sets: &[TemplateFacts],
) -> Vec<&'a PodFacts> {
    let is_owner = |uid: &str| match workload.kind {
        Kind::Deployment => sets.iter().any(|set| set.uid == uid),
        _ => uid == workload.uid,
    };
    let pods = cluster.pods_in(&workload.namespace).iter().map(|pod| &pod.object);
    let own = pods.filter(|pod| pod.controller.as_ref().is_some_and(|owner| is_owner(&owner.uid)));
    own.filter_map(|pod| facts.pod(&pod.uid)).collect()
}
