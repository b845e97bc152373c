//! A service whose plans for a ReplicaSet go beyond what its controller may do. The executor holds the rights, so it must
//! check each plan before the first write.

use anyhow::{Context as _, Result};
use k8s_openapi::api::apps::v1::ReplicaSet;
use nodewise_proto::v1::{self, PhaseKind, action::Kind};
use serde_json::{Value, json};

use super::start;
use crate::{
    case::{Case, solo},
    cases::wrong_service::{apps_v1, expect_plans_refused, merge_patch, plan_of, reference, reference_of},
    fixture::SoloFixture,
    proxy::Mark,
    workload_builder::replica_set,
};

pub(super) const CASES: &[Case] = &[
    solo!(
        "rs-wrong-plan-action",
        "The service returns plans for a ReplicaSet that write other resources than its pods and its status: the executor writes \
         nothing, and work resumes once the plans are right.",
        action
    ),
    solo!(
        "rs-wrong-plan-pod",
        "The same with plans that create a privileged pod, a pod with other labels, one for a node, or one with a name of another \
         controller.",
        pod
    ),
    solo!(
        "rs-wrong-plan-delete",
        "The same with plans that delete or take over a pod of another ReplicaSet, delete a pod without a uid, or release a pod \
         that matches.",
        delete
    ),
    solo!(
        "rs-wrong-plan-status",
        "The same with plans that write more than the status, or the status of another ReplicaSet.",
        status
    ),
];

/// Two ReplicaSets in one namespace. The plans for `agent` are wrong.
struct TwoSets {
    agent: v1::WorkloadReference,
    other: v1::WorkloadReference,
    own_pod: v1::ObjectReference,
    foreign_pod: v1::ObjectReference,
    /// The manifest of the correct plan that created the pod of `agent`.
    manifest: Value,
}

impl TwoSets {
    async fn start(solo: &mut SoloFixture) -> Result<Self> {
        solo.start()?;
        let agent = start(solo, 1).await?;
        let other = solo.start_replica_set(replica_set("other", 1).build()).await?;
        let (own, foreign) = (solo.live_pods("agent").await?, solo.live_pods("other").await?);
        solo.wait_until_idle().await?;
        let mut plans = solo.plans(Mark::BEGINNING, "agent").into_iter();
        let right = plans.find(|plan| !plan.pod_manifest.is_empty());
        let right = right.context("no plan has created a pod of agent")?;
        Ok(Self {
            agent: reference(&agent),
            other: reference(&other),
            own_pod: reference_of(own.first().context("agent has no pod")?),
            foreign_pod: reference_of(foreign.first().context("other has no pod")?),
            manifest: serde_json::from_slice(&right.pod_manifest)?,
        })
    }

    fn object(&self) -> v1::ObjectReference {
        object(&self.agent)
    }

    /// A plan that creates a pod from the correct manifest after this change.
    fn creating(&self, name: &str, node: &str, change: impl FnOnce(&mut Value)) -> v1::Plan {
        let mut manifest = self.manifest.clone();
        change(&mut manifest);
        let create = v1::CreatePod {
            pod_name: name.to_owned(),
            node_name: node.to_owned(),
        };
        v1::Plan {
            pod_manifest: manifest.to_string().into(),
            ..plan_of(&self.agent, PhaseKind::Creates, Kind::CreatePod(create))
        }
    }

    /// A plan that patches a ReplicaSet.
    fn patching(&self, set: v1::ObjectReference, subresource: &str, patch: Value) -> v1::Plan {
        let patch = merge_patch("replicasets", set, subresource, patch);
        plan_of(&self.agent, PhaseKind::Status, Kind::PatchObject(Box::new(patch)))
    }
}

fn object(workload: &v1::WorkloadReference) -> v1::ObjectReference {
    v1::ObjectReference {
        name: workload.name.clone(),
        uid: workload.uid.clone(),
    }
}

/// Answers requests about `agent` with these plans. Then `agent` gets its second replica.
async fn expect_refused(solo: &SoloFixture, two: &TwoSets, wrong: Vec<v1::Plan>) -> Result<()> {
    let change = solo.scale::<ReplicaSet>("agent", 2);
    expect_plans_refused(solo, &two.agent, wrong, change).await?;
    solo.wait_for_replica_set("agent").await?;
    Ok(())
}

async fn action(solo: &mut SoloFixture) -> Result<()> {
    let two = TwoSets::start(solo).await?;
    let created = replica_set("agent-bbbbbbbbbb", 1)
        .set("/metadata", "namespace", json!(solo.namespace()))
        .build();
    let create = v1::CreateObject {
        resource: Some(apps_v1("replicasets")),
        name: "agent-bbbbbbbbbb".to_owned(),
        manifest: created.to_string().into(),
    };
    let delete = v1::DeleteObject {
        resource: Some(apps_v1("replicasets")),
        object: Some(two.object()),
        resource_version: String::new(),
    };
    let update = v1::UpdateRevision {
        revision: Some(two.object()),
        ..v1::UpdateRevision::default()
    };
    let wrong = vec![
        plan_of(
            &two.agent,
            PhaseKind::Creates,
            Kind::CreateObject(Box::new(create)),
        ),
        plan_of(
            &two.agent,
            PhaseKind::Cleanup,
            Kind::DeleteObject(Box::new(delete)),
        ),
        plan_of(&two.agent, PhaseKind::Revisions, Kind::UpdateRevision(update)),
        two.patching(two.object(), "", json!({ "spec": { "replicas": 0 } })),
    ];
    expect_refused(solo, &two, wrong).await
}

async fn pod(solo: &mut SoloFixture) -> Result<()> {
    let two = TwoSets::start(solo).await?;
    let name = "agent-bbbbb";
    let privileged = two.creating(name, "", |pod| {
        pod["spec"]["containers"][0]["securityContext"] = json!({ "privileged": true });
    });
    let labelled = two.creating(name, "", |pod| pod["metadata"]["labels"]["app"] = json!("other"));
    let on_node = two.creating(name, &solo.node_names().await?[0], |_| ());
    let named = two.creating("agent-0", "", |_| ());
    expect_refused(solo, &two, vec![privileged, labelled, on_node, named]).await
}

async fn delete(solo: &mut SoloFixture) -> Result<()> {
    let two = TwoSets::start(solo).await?;
    let deleting = |pod: v1::ObjectReference| {
        let uid_precondition = !pod.uid.is_empty();
        let delete = v1::DeletePod {
            pod: Some(pod),
            uid_precondition,
            ..v1::DeletePod::default()
        };
        plan_of(&two.agent, PhaseKind::Deletes, Kind::DeletePod(delete))
    };
    let by_name = v1::ObjectReference {
        uid: String::new(),
        ..two.own_pod.clone()
    };
    let owner = json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": two.agent.name, "uid": two.agent.uid,
        "controller": true, "blockOwnerDeletion": true });
    let adopt = v1::AdoptPod {
        pod: Some(two.foreign_pod.clone()),
        patch: json!({ "metadata": { "uid": two.foreign_pod.uid, "ownerReferences": [owner] } })
            .to_string()
            .into(),
    };
    let given_up = json!({ "$patch": "delete", "uid": two.agent.uid });
    let release = v1::ReleasePod {
        pod: Some(two.own_pod.clone()),
        patch: json!({ "metadata": { "uid": two.own_pod.uid, "ownerReferences": [given_up] } })
            .to_string()
            .into(),
    };
    let wrong = vec![
        deleting(two.foreign_pod.clone()),
        deleting(by_name),
        plan_of(&two.agent, PhaseKind::Claims, Kind::AdoptPod(adopt)),
        plan_of(&two.agent, PhaseKind::Claims, Kind::ReleasePod(release)),
    ];
    expect_refused(solo, &two, wrong).await
}

async fn status(solo: &mut SoloFixture) -> Result<()> {
    let two = TwoSets::start(solo).await?;
    let counts = json!({ "status": { "replicas": 7 } });
    let labelled = json!({ "metadata": { "labels": { "app": "other" } }, "status": { "replicas": 7 } });
    let finalizers = json!({ "metadata": { "finalizers": ["nodewise.test/wrong"] } });
    let wrong = vec![
        two.patching(object(&two.other), "status", counts.clone()),
        two.patching(two.object(), "status", labelled),
        two.patching(two.object(), "status", finalizers),
        two.patching(two.object(), "scale", counts),
    ];
    expect_refused(solo, &two, wrong).await
}
