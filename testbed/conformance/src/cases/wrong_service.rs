//! A service that returns wrong plans. The executor holds the rights, so it must check each plan before the first
//! write.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource, api::PostParams};
use nodewise_proto::v1::{self, action::Kind};
use serde_json::{Value, json};
use tonic::Code;

use crate::{
    case::{Case, solo},
    fixture::SoloFixture,
    proxy::Mark,
    workload_builder::{daemon_set, image_patch},
};

pub(super) const CASES: &[Case] = &[
    solo!(
        "wrong-plan-workload",
        "The service returns a plan for another workload: the executor writes nothing, and work resumes once the plans are \
         right.",
        workload
    ),
    solo!(
        "wrong-plan-namespace",
        "The same with a plan that creates a pod in kube-system.",
        namespace
    ),
    solo!(
        "wrong-plan-template",
        "The same with a plan that creates a privileged pod, although the workload's template is not privileged.",
        template
    ),
    solo!(
        "wrong-plan-name",
        "The same with plans that create a pod whose name has the form of another controller, or from a manifest with two \
         specs.",
        name
    ),
    solo!(
        "wrong-plan-count",
        "The same with a plan that creates two pods for one node.",
        count
    ),
    solo!(
        "wrong-plan-node",
        "The same with plans that create a pod for a node that does not exist, or a third pod on a node.",
        node
    ),
    solo!(
        "wrong-plan-delete",
        "The same with a plan that deletes a pod of another workload. The first such plan is reported with an Event.",
        delete
    ),
    solo!(
        "wrong-plan-uid",
        "The same with a plan that deletes a pod by its name, without a uid.",
        uid
    ),
    solo!(
        "wrong-plan-patch",
        "The same with plans that patch a pod of another workload, or patch more than the labels of their own pod.",
        patch
    ),
    solo!(
        "wrong-plan-state",
        "A plan has a state that the service then rejects: the executor drops the state, and work continues.",
        state
    ),
];

/// Two workloads in one namespace. The plans for `agent` are wrong.
struct TwoWorkloads {
    agent: v1::WorkloadReference,
    other: v1::WorkloadReference,
    own_pod: v1::ObjectReference,
    foreign_pod: v1::ObjectReference,
    node: String,
    /// The correct plan that created the pod of `agent`.
    right: v1::Plan,
}

impl TwoWorkloads {
    async fn start(solo: &mut SoloFixture) -> Result<Self> {
        solo.start()?;
        let nodes = solo.add_nodes(1).await?;
        let agent = solo.roll_out("agent", daemon_set("agent").build()).await?;
        let other = solo.roll_out("other", daemon_set("other").build()).await?;
        let (own, foreign) = (solo.live_pods("agent").await?, solo.live_pods("other").await?);
        solo.wait_until_idle().await?;
        let mut plans = solo.plans(Mark::BEGINNING, "agent").into_iter();
        let right = plans.find(|plan| !plan.pod_manifest.is_empty());
        Ok(Self {
            agent: reference(&agent),
            other: reference(&other),
            own_pod: reference_of(own.first().context("agent has no pod")?),
            foreign_pod: reference_of(foreign.first().context("other has no pod")?),
            node: nodes[0].clone(),
            right: right.context("no plan has created a pod of agent")?,
        })
    }

    /// A plan that creates pods of `agent` on these nodes, with the manifest of the correct plan.
    fn creating_on(&self, nodes: &[&str]) -> v1::Plan {
        let letters = "bcdf".chars().zip(nodes);
        let creates = letters.map(|(letter, node)| v1::CreatePod {
            pod_name: format!("agent-wrngwrngw{letter}"),
            node_name: (*node).to_owned(),
        });
        let actions = (1..).zip(creates).map(|(id, create)| v1::Action {
            id,
            kind: Some(Kind::CreatePod(create)),
            ..v1::Action::default()
        });
        let mut plan = self.creating(|_| ());
        plan.phases[0].batches[0].actions = actions.collect();
        v1::Plan {
            pod_manifest: self.right.pod_manifest.clone(),
            node_name_pointers: self.right.node_name_pointers.clone(),
            ..plan
        }
    }

    /// A plan that creates a pod of `agent` whose name has the form of another controller.
    fn with_foreign_name(&self) -> v1::Plan {
        let mut plan = self.creating(|_| ());
        let create = v1::CreatePod {
            pod_name: "agent-0".to_owned(),
            node_name: self.node.clone(),
        };
        plan.phases[0].batches[0].actions[0].kind = Some(Kind::CreatePod(create));
        plan
    }

    /// A plan that creates a pod of `agent` from a manifest with two specs. Parsers differ in which one they take.
    fn ambiguous(&self) -> v1::Plan {
        let mut plan = self.creating(|_| ());
        let manifest = String::from_utf8_lossy(&plan.pod_manifest);
        let wrong = r#"{"spec":{"containers":[{"name":"main","image":"registry.example/wrong:1"}]},"#;
        plan.pod_manifest = manifest.replacen('{', wrong, 1).into();
        plan
    }

    /// A plan that creates a pod of `agent` from this manifest.
    fn creating(&self, change: impl FnOnce(&mut Value)) -> v1::Plan {
        let mut manifest = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "labels": { "app": "agent" },
                "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": "DaemonSet", "name": self.agent.name, "uid": self.agent.uid,
                    "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "spec": {
                "nodeName": "",
                "containers": [{ "name": "main", "image": "registry.example/agent:2" }],
            },
        });
        change(&mut manifest);
        let create = v1::CreatePod {
            pod_name: "agent-wrngwrngwr".to_owned(),
            node_name: self.node.clone(),
        };
        v1::Plan {
            pod_manifest: manifest.to_string().into(),
            node_name_pointers: vec!["/spec/nodeName".to_owned()],
            ..self.plan(v1::PhaseKind::Creates, Kind::CreatePod(create))
        }
    }

    fn deleting(&self, pod: v1::ObjectReference) -> v1::Plan {
        let uid_precondition = !pod.uid.is_empty();
        let delete = v1::DeletePod {
            pod: Some(pod),
            node_name: self.node.clone(),
            uid_precondition,
        };
        self.plan(v1::PhaseKind::Deletes, Kind::DeletePod(delete))
    }

    /// A plan that patches a pod.
    fn patching(&self, pod: &v1::ObjectReference, mut patch: Value) -> v1::Plan {
        patch["metadata"]["uid"] = json!(pod.uid);
        let relabel = v1::RelabelPod {
            pod: Some(pod.clone()),
            patch: patch.to_string().into(),
        };
        self.plan(v1::PhaseKind::Revisions, Kind::RelabelPod(relabel))
    }

    fn plan(&self, phase: v1::PhaseKind, kind: Kind) -> v1::Plan {
        plan_of(&self.agent, phase, kind)
    }
}

/// The reference to a workload in a plan.
pub(super) fn reference<K: Resource<DynamicType = ()>>(workload: &K) -> v1::WorkloadReference {
    let (text, meta) = (
        |field: &Option<String>| field.clone().unwrap_or_default(),
        workload.meta(),
    );
    v1::WorkloadReference {
        kind: K::kind(&()).into_owned(),
        namespace: text(&meta.namespace),
        name: text(&meta.name),
        uid: text(&meta.uid),
        resource_version: text(&meta.resource_version),
    }
}

/// The reference to an object in a plan.
pub(super) fn reference_of(object: &impl Resource) -> v1::ObjectReference {
    v1::ObjectReference {
        name: object.meta().name.clone().unwrap_or_default(),
        uid: object.meta().uid.clone().unwrap_or_default(),
    }
}

/// A plan for this workload with one action.
pub(super) fn plan_of(workload: &v1::WorkloadReference, phase: v1::PhaseKind, kind: Kind) -> v1::Plan {
    let action = v1::Action {
        id: 1,
        kind: Some(kind),
        ..v1::Action::default()
    };
    v1::Plan {
        verdict: v1::Verdict::Apply.into(),
        plan_id: "wrong".to_owned(),
        workload: Some(workload.clone()),
        phases: vec![v1::Phase {
            kind: phase.into(),
            batches: vec![v1::Batch {
                actions: vec![action],
                confirm_workload: false,
            }],
            ..v1::Phase::default()
        }],
        state: Some(v1::ReconcileState::default()),
        ..v1::Plan::default()
    }
}

/// A resource of the group apps/v1.
pub(super) fn apps_v1(resource: &str) -> v1::GroupVersionResource {
    v1::GroupVersionResource {
        group: "apps".to_owned(),
        version: "v1".to_owned(),
        resource: resource.to_owned(),
    }
}

/// A merge patch of an object of apps/v1. It carries the object's uid.
pub(super) fn merge_patch(
    resource: &str,
    object: v1::ObjectReference,
    subresource: &str,
    mut patch: Value,
) -> v1::PatchObject {
    patch["metadata"]["uid"] = json!(object.uid);
    v1::PatchObject {
        resource: Some(apps_v1(resource)),
        object: Some(object),
        subresource: subresource.to_owned(),
        patch_type: v1::PatchType::Merge.into(),
        patch: patch.to_string().into(),
        ..v1::PatchObject::default()
    }
}

/// Answers requests about `agent` with these plans in turn until the executor has got each of them. Nothing may be
/// written. Then the service is correct again.
async fn expect_refused(solo: &mut SoloFixture, two: &TwoWorkloads, wrong: Vec<v1::Plan>) -> Result<()> {
    let change = async { solo.patch("agent", image_patch(2)).await.map(|_| ()) };
    expect_plans_refused(solo, &two.agent, wrong, change).await?;
    solo.wait_until_settled("agent").await?;
    let updated = solo.count_of_version("agent", 2).await?;
    ensure!(updated == 1, "{updated} pods have the second version");
    Ok(())
}

/// The same for any workload. `change` makes the executor ask for a plan. Returns once the service is correct again.
pub(super) async fn expect_plans_refused(
    solo: &SoloFixture,
    workload: &v1::WorkloadReference,
    wrong: Vec<v1::Plan>,
    change: impl Future<Output = Result<()>>,
) -> Result<()> {
    let (position, calls, count) = (solo.audit_position().await?, solo.proxy().mark(), wrong.len());
    let (next, uid) = (AtomicUsize::new(0), workload.uid.clone());
    solo.proxy().rewrite(move |plan| {
        if plan.workload.as_ref().is_some_and(|workload| workload.uid == uid) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            *plan = wrong[index % wrong.len()].clone();
        }
    });
    change.await?;
    let what = "the executor to ask again after each wrong plan";
    let writes = solo
        .eventually(what, async || {
            let plans = solo.plans(calls, &workload.name).len();
            let writes = solo.writes_anywhere(position).await?;
            ensure!(!writes.is_empty() || plans > 2 * count, "{plans} plans");
            Ok(writes)
        })
        .await?;
    ensure!(writes.is_empty(), "a wrong plan was carried out: {writes:?}");
    solo.expect_running()?;
    solo.proxy().heal();
    Ok(())
}

async fn workload(solo: &mut SoloFixture) -> Result<()> {
    let two = TwoWorkloads::start(solo).await?;
    let deletes = v1::Plan {
        workload: Some(two.other.clone()),
        ..two.deleting(two.foreign_pod.clone())
    };
    let mut elsewhere = two.creating(|_| ());
    if let Some(workload) = &mut elsewhere.workload {
        "kube-system".clone_into(&mut workload.namespace);
    }
    expect_refused(solo, &two, vec![deletes, elsewhere]).await
}

async fn namespace(solo: &mut SoloFixture) -> Result<()> {
    let two = TwoWorkloads::start(solo).await?;
    let elsewhere = two.creating(|pod| pod["metadata"]["namespace"] = json!("kube-system"));
    expect_refused(solo, &two, vec![elsewhere]).await
}

async fn template(solo: &mut SoloFixture) -> Result<()> {
    let two = TwoWorkloads::start(solo).await?;
    let privileged = two.creating(|pod| {
        pod["spec"]["containers"][0]["securityContext"] = json!({ "privileged": true });
    });
    let image = two.creating(|pod| pod["spec"]["containers"][0]["image"] = json!("registry.example/wrong:1"));
    let label = two.creating(|pod| pod["metadata"]["labels"]["app"] = json!("other"));
    let owner = two.creating(|pod| {
        pod["metadata"]["ownerReferences"][0]["uid"] = json!(two.other.uid);
    });
    expect_refused(solo, &two, vec![privileged, image, label, owner]).await
}

async fn name(solo: &mut SoloFixture) -> Result<()> {
    let two = TwoWorkloads::start(solo).await?;
    let plans = vec![two.with_foreign_name(), two.ambiguous()];
    expect_refused(solo, &two, plans).await
}

async fn count(solo: &mut SoloFixture) -> Result<()> {
    let two = TwoWorkloads::start(solo).await?;
    let twice = two.creating_on(&[&two.node, &two.node]);
    expect_refused(solo, &two, vec![twice]).await
}

async fn node(solo: &mut SoloFixture) -> Result<()> {
    let two = TwoWorkloads::start(solo).await?;
    let nothing = v1::Plan {
        verdict: v1::Verdict::Noop.into(),
        workload: Some(two.agent.clone()),
        state: Some(v1::ReconcileState::default()),
        ..v1::Plan::default()
    };
    let uid = two.agent.uid.clone();
    solo.proxy().rewrite(move |plan| {
        if plan.workload.as_ref().is_some_and(|workload| workload.uid == uid) {
            *plan = nothing.clone();
        }
    });
    let mut second = solo.pod_api().get(&two.own_pod.name).await?;
    second.metadata = ObjectMeta {
        name: Some("agent-bbbbbbbbbb".to_owned()),
        labels: second.metadata.labels,
        owner_references: second.metadata.owner_references,
        ..ObjectMeta::default()
    };
    second.status = None;
    solo.pod_api().create(&PostParams::default(), &second).await?;
    solo.wait_until_idle().await?;
    let plans = vec![two.creating_on(&["nowhere"]), two.creating_on(&[&two.node])];
    expect_refused(solo, &two, plans).await
}

async fn state(solo: &mut SoloFixture) -> Result<()> {
    let two = TwoWorkloads::start(solo).await?;
    let (calls, uid, node) = (solo.proxy().mark(), two.agent.uid.clone(), two.node.clone());
    let is_first = AtomicBool::new(true);
    solo.proxy().rewrite(move |plan| {
        let is_agents = plan.workload.as_ref().is_some_and(|workload| workload.uid == uid);
        if is_agents && is_first.swap(false, Ordering::Relaxed) {
            let state = plan.state.get_or_insert_default();
            state.failed_pod_backoffs.push(v1::FailedPodBackoff {
                node_name: node.clone(),
                delay: Some(nodewise_proto::Duration {
                    seconds: -1,
                    nanos: 0,
                }),
                last: Some(nodewise_proto::Timestamp::default()),
                ..v1::FailedPodBackoff::default()
            });
        }
    });
    solo.patch("agent", image_patch(2)).await?;
    solo.eventually("the service to refuse a request for a plan", async || {
        let mut calls = solo.plan_calls(calls, "agent").into_iter();
        let is_refused = calls.any(|call| call.code == Code::InvalidArgument);
        ensure!(is_refused, "it has refused none");
        Ok(())
    })
    .await?;
    solo.wait_until_settled("agent").await?;
    let updated = solo.count_of_version("agent", 2).await?;
    ensure!(updated == 1, "{updated} pods have the second version");
    Ok(())
}

async fn delete(solo: &mut SoloFixture) -> Result<()> {
    let two = TwoWorkloads::start(solo).await?;
    let foreign = two.deleting(two.foreign_pod.clone());
    expect_refused(solo, &two, vec![foreign.clone()]).await?;
    let (told, uid, is_first) = (
        refusals(solo).await?,
        two.agent.uid.clone(),
        AtomicBool::new(true),
    );
    solo.proxy().rewrite(move |plan| {
        let is_agents = plan.workload.as_ref().is_some_and(|workload| workload.uid == uid);
        if is_agents && is_first.swap(false, Ordering::Relaxed) {
            *plan = foreign.clone();
        }
    });
    solo.patch("agent", image_patch(3)).await?;
    solo.eventually("an event PlanRefused after a single wrong plan", async || {
        let now = refusals(solo).await?;
        ensure!(now > told, "{now} times told, as before");
        Ok(())
    })
    .await?;
    solo.wait_until_settled("agent").await?;
    Ok(())
}

/// How many refusals of plans the events count.
async fn refusals(solo: &SoloFixture) -> Result<i32> {
    let events = solo.events("PlanRefused").await?;
    Ok(events.iter().map(|event| event.count.unwrap_or(1)).sum())
}

async fn uid(solo: &mut SoloFixture) -> Result<()> {
    let two = TwoWorkloads::start(solo).await?;
    let by_name = |pod: &v1::ObjectReference| {
        two.deleting(v1::ObjectReference {
            uid: String::new(),
            ..pod.clone()
        })
    };
    let plans = vec![by_name(&two.own_pod), by_name(&two.foreign_pod)];
    expect_refused(solo, &two, plans).await
}

async fn patch(solo: &mut SoloFixture) -> Result<()> {
    let two = TwoWorkloads::start(solo).await?;
    let hash = json!({ "metadata": { "labels": { "controller-revision-hash": "wrong" } } });
    let label = json!({ "metadata": { "labels": { "app": "wrong" } } });
    let plans = vec![
        two.patching(&two.foreign_pod, hash),
        two.patching(&two.own_pod, label),
    ];
    expect_refused(solo, &two, plans).await
}
