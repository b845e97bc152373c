//! A service whose plans for a Deployment go beyond what its controller may do. The executor holds the rights, so it must
//! check each plan before the first write.

use anyhow::{Context as _, Result};
use kube::ResourceExt as _;
use nodewise_proto::v1::{self, PhaseKind, action::Kind};
use serde_json::{Value, json};

use super::start;
use crate::{
    case::{Case, solo},
    cases::wrong_service::{apps_v1, expect_plans_refused, merge_patch, plan_of, reference, reference_of},
    fixture::SoloFixture,
    proxy::Mark,
    workload_builder::{deployment, image_patch},
};

pub(super) const CASES: &[Case] = &[
    solo!(
        "deployment-wrong-plan-action",
        "The service returns plans for a Deployment that write pods and revisions: the executor writes nothing, and work resumes \
         once the plans are right.",
        action
    ),
    solo!(
        "deployment-wrong-plan-workload",
        "The same with plans for another Deployment, and plans that scale the Deployment itself or give it a template that none of \
         its ReplicaSets has.",
        workload
    ),
    solo!(
        "deployment-wrong-plan-create",
        "The same with plans that create a ReplicaSet with another template, other labels, or another owner, or in another \
         namespace.",
        create
    ),
    solo!(
        "deployment-wrong-plan-patch",
        "The same with plans that change the template of a ReplicaSet, or scale or delete one of another Deployment.",
        patch
    ),
];

/// Two Deployments in one namespace. The plans for `agent` are wrong.
struct TwoDeployments {
    agent: v1::WorkloadReference,
    other: v1::WorkloadReference,
    own_set: v1::ObjectReference,
    foreign_set: v1::ObjectReference,
    own_pod: v1::ObjectReference,
    /// The correct action that created the ReplicaSet of `agent`.
    right: v1::CreateObject,
}

impl TwoDeployments {
    async fn start(solo: &mut SoloFixture) -> Result<Self> {
        solo.start()?;
        start(solo, deployment("agent", 1)).await?;
        let other = solo.start_deployment(deployment("other", 1).build()).await?;
        let (own, foreign) = (
            solo.replica_set_of("agent", 1).await?,
            solo.replica_set_of("other", 1).await?,
        );
        let pods = solo.live_pods("agent").await?;
        solo.wait_until_idle().await?;
        let plans = solo.plans(Mark::BEGINNING, "agent");
        let kinds = plans.iter().flat_map(v1::Plan::actions);
        let mut creates = kinds.filter_map(|action| match &action.kind {
            Some(Kind::CreateObject(create)) => Some(v1::CreateObject::clone(create)),
            _ => None,
        });
        Ok(Self {
            agent: reference(&solo.deployment_api().get("agent").await?),
            other: reference(&other),
            own_set: reference_of(&own),
            foreign_set: reference_of(&foreign),
            own_pod: reference_of(pods.first().context("agent has no pod")?),
            right: creates
                .next()
                .context("no plan has created a ReplicaSet of agent")?,
        })
    }

    fn plan(&self, phase: PhaseKind, kind: Kind) -> v1::Plan {
        plan_of(&self.agent, phase, kind)
    }

    /// A plan that creates a ReplicaSet from the correct manifest after this change. Its template is that of the second
    /// version.
    fn creating(&self, change: impl FnOnce(&mut Value)) -> Result<v1::Plan> {
        let mut manifest: Value = serde_json::from_slice(&self.right.manifest)?;
        manifest["spec"]["template"]["spec"]["containers"][0]["image"] = json!("registry.example/agent:2");
        change(&mut manifest);
        let create = v1::CreateObject {
            manifest: manifest.to_string().into(),
            ..self.right.clone()
        };
        Ok(self.plan(PhaseKind::Creates, Kind::CreateObject(Box::new(create))))
    }

    /// A plan that patches an object.
    fn patching(&self, resource: &str, object: &v1::ObjectReference, patch: Value) -> v1::Plan {
        let patch = merge_patch(resource, object.clone(), "", patch);
        self.plan(PhaseKind::ReplicaSets, Kind::PatchObject(Box::new(patch)))
    }
}

/// Answers requests about `agent` with these plans. Then `agent` gets its second version.
async fn expect_refused(solo: &SoloFixture, two: &TwoDeployments, wrong: Vec<v1::Plan>) -> Result<()> {
    let change = async {
        let patched = solo.patch_deployment("agent", image_patch(2)).await?;
        anyhow::ensure!(
            patched.uid().as_deref() == Some(&two.agent.uid),
            "it is another one"
        );
        Ok(())
    };
    expect_plans_refused(solo, &two.agent, wrong, change).await?;
    solo.wait_for_sizes("agent", &[(1, 0), (2, 1)]).await?;
    solo.wait_for_deployment("agent").await?;
    Ok(())
}

async fn action(solo: &mut SoloFixture) -> Result<()> {
    let two = TwoDeployments::start(solo).await?;
    let delete = v1::DeletePod {
        pod: Some(two.own_pod.clone()),
        uid_precondition: true,
        ..v1::DeletePod::default()
    };
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "labels": { "app": "agent" } },
        "spec": { "containers": [{ "name": "main", "image": "registry.example/agent:2" }] } });
    let create = v1::CreatePod {
        pod_name: "agent-bbbbb".to_owned(),
        node_name: String::new(),
    };
    let create = v1::Plan {
        pod_manifest: pod.to_string().into(),
        ..two.plan(PhaseKind::Creates, Kind::CreatePod(create))
    };
    let revision = v1::DeleteRevision {
        revision: Some(two.own_set.clone()),
        ..v1::DeleteRevision::default()
    };
    let mut of_pods = merge_patch("pods", two.own_pod.clone(), "", json!({ "spec": {} }));
    of_pods.resource = Some(v1::GroupVersionResource {
        group: String::new(),
        ..apps_v1("pods")
    });
    let wrong = vec![
        two.plan(PhaseKind::Deletes, Kind::DeletePod(delete)),
        create,
        two.plan(PhaseKind::Cleanup, Kind::DeleteRevision(revision)),
        two.plan(PhaseKind::ReplicaSets, Kind::PatchObject(Box::new(of_pods))),
    ];
    expect_refused(solo, &two, wrong).await
}

async fn workload(solo: &mut SoloFixture) -> Result<()> {
    let two = TwoDeployments::start(solo).await?;
    let agent = v1::ObjectReference {
        name: two.agent.name.clone(),
        uid: two.agent.uid.clone(),
    };
    let scale = json!({ "spec": { "replicas": 0 } });
    let elsewhere = v1::Plan {
        workload: Some(two.other.clone()),
        ..two.patching("replicasets", &two.foreign_set, scale.clone())
    };
    let version = two.agent.resource_version.clone();
    let template = json!({ "metadata": { "resourceVersion": version }, "spec": { "template": { "spec": {
        "containers": [{ "name": "main", "image": "registry.example/wrong:1" }] } } } });
    let labels = json!({ "metadata": { "labels": { "app": "wrong" } } });
    let status = merge_patch("deployments", agent.clone(), "status", labels);
    let wrong = vec![
        elsewhere,
        two.patching("deployments", &agent, scale),
        two.patching("deployments", &agent, template),
        two.plan(PhaseKind::Status, Kind::PatchObject(Box::new(status))),
    ];
    expect_refused(solo, &two, wrong).await
}

async fn create(solo: &mut SoloFixture) -> Result<()> {
    let two = TwoDeployments::start(solo).await?;
    let privileged = two.creating(|set| {
        let container = &mut set["spec"]["template"]["spec"]["containers"][0];
        container["securityContext"] = json!({ "privileged": true });
    })?;
    let labelled = two.creating(|set| set["metadata"]["labels"]["app"] = json!("other"))?;
    let owned = two.creating(|set| set["metadata"]["ownerReferences"][0]["uid"] = json!(two.other.uid))?;
    let elsewhere = two.creating(|set| set["metadata"]["namespace"] = json!("kube-system"))?;
    expect_refused(solo, &two, vec![privileged, labelled, owned, elsewhere]).await
}

async fn patch(solo: &mut SoloFixture) -> Result<()> {
    let two = TwoDeployments::start(solo).await?;
    let template = json!({ "spec": { "template": { "spec": { "hostNetwork": true } } } });
    let deleting = |set: v1::ObjectReference| {
        let delete = v1::DeleteObject {
            resource: Some(apps_v1("replicasets")),
            object: Some(set),
            resource_version: String::new(),
        };
        two.plan(PhaseKind::Cleanup, Kind::DeleteObject(Box::new(delete)))
    };
    let by_name = v1::ObjectReference {
        uid: String::new(),
        ..two.own_set.clone()
    };
    let scale = json!({ "spec": { "replicas": 0 } });
    let wrong = vec![
        two.patching("replicasets", &two.own_set, template),
        two.patching("replicasets", &two.foreign_set, scale),
        deleting(two.foreign_set.clone()),
        deleting(by_name),
    ];
    expect_refused(solo, &two, wrong).await
}
