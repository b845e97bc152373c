//! One rollout of one owner, and one run of the bare loop.

use std::fmt;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use nodewise_testbed::{AuditEvent, ControlPlane, eventually};
use serde_json::{Value, json};

use super::bare::{self, Template};
use super::kubelets::Kubelets;
use super::owner::{Owner, OwnerKind, Programs};
use super::part::Part;
use super::{DEADLINE, foreign, policies};
use crate::figure::figure;

/// The measurements of a rollout.
#[derive(Clone, Debug)]
pub(super) struct Rollout {
    /// From the creation of the DaemonSet to the last of its pods.
    pub(super) create: Part,
    /// From the change of the image until all pods are updated and available.
    pub(super) update: Part,
    /// Peak memory of the owner over both parts.
    pub(super) peak_memory_mb: f64,
}

impl fmt::Display for Rollout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory = figure(self.peak_memory_mb);
        write!(
            f,
            "created in {}; updated in {}; {memory} MB",
            self.create, self.update
        )
    }
}

/// The measurements of the creation of a DaemonSet's pods.
#[derive(Clone, Debug)]
pub(super) struct Creation {
    pub(super) part: Part,
    /// The number of requests that were answered with 429.
    pub(super) refused: f64,
}

impl fmt::Display for Creation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [seconds, calls] = [self.part.seconds, self.part.calls].map(figure);
        write!(
            f,
            "created in {seconds} s, {calls} calls, {} refused",
            self.refused
        )
    }
}

/// The measurement of the bare loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    /// Wall-clock time, in seconds.
    pub(super) seconds: f64,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "created in {} s", figure(self.seconds))
    }
}

/// A namespace with the DaemonSets of one rollout.
pub(super) struct RolloutNamespace<'a> {
    pub(super) plane: &'a ControlPlane,
    pub(super) client: Client,
    pub(super) namespace: &'a str,
    pub(super) nodes: usize,
    pub(super) user: &'a str,
}

/// Lets an owner create and replace the pods of a DaemonSet, the latter with a RolloutPolicy of this spec, and cleans up. Also returns
/// one of the pods.
pub(super) async fn rollout(
    plane: &ControlPlane,
    who: OwnerKind,
    programs: &Programs,
    namespace: &str,
    nodes: usize,
    policy: Option<&Value>,
) -> Result<(Rollout, Template)> {
    let home = RolloutNamespace {
        plane,
        client: plane.client(),
        namespace,
        nodes,
        user: who.user(),
    };
    foreign::make_namespace(&home.client, namespace).await?;
    let owner = Owner::start(plane, who, programs, "daemonset-controller").await?;
    // The owner is ready once it has observed a DaemonSet that matches no node.
    home.create_daemon_set("first", json!({"nowhere": "true"}))
        .await?;
    home.observed(&owner, "first", |_| true).await?;

    let create = async || {
        home.create_daemon_set("agent", json!({})).await?;
        home.wait_for_pods(&owner, nodes).await
    };
    let (create, _) = home.measured_creation(&owner, create).await?;
    let template = Template::of(&home.client, namespace).await?;
    let mut kubelets = Kubelets::start(&home.client, Api::namespaced(home.client.clone(), namespace));
    home.observed(&owner, "agent", |status| status.available == status.desired)
        .await?;

    if let Some(policy) = policy {
        policies::create(&home.client, namespace, policy).await?;
    }
    let update = async || {
        home.change_image().await?;
        let done = |status: &Counts| status.updated == status.desired && status.available == status.desired;
        home.observed(&owner, "agent", done).await
    };
    let (update, _) = Part::measure(plane, &owner, home.user, update).await?;
    kubelets.check_running().await?;
    let peak_memory_mb = owner.peak_memory_mb()?;
    owner.stop().await?;
    drop(kubelets);
    home.clean_up().await?;
    Ok((
        Rollout {
            create,
            update,
            peak_memory_mb,
        },
        template,
    ))
}

/// Lets a running owner with this user name create the pods of a DaemonSet, and cleans up. Also returns one of the
/// pods.
pub(super) async fn creation(
    plane: &ControlPlane,
    owner: Owner,
    user: &str,
    namespace: &str,
    nodes: usize,
) -> Result<(Creation, Template)> {
    let client = plane.client();
    let home = RolloutNamespace {
        plane,
        client,
        namespace,
        nodes,
        user,
    };
    foreign::make_namespace(&home.client, namespace).await?;
    // The owner is ready once it has observed a DaemonSet that matches no node.
    home.create_daemon_set("first", json!({"nowhere": "true"}))
        .await?;
    home.observed(&owner, "first", |_| true).await?;
    let create = async || {
        home.create_daemon_set("agent", json!({})).await?;
        home.wait_for_pods(&owner, nodes).await
    };
    let (part, events) = home.measured_creation(&owner, create).await?;
    let refused = events
        .iter()
        .filter(|event| event.user == user && event.code == 429);
    #[expect(clippy::cast_precision_loss, reason = "some ten thousand calls")]
    let refused = refused.count() as f64;
    let template = Template::of(&home.client, namespace).await?;
    owner.stop().await?;
    home.clean_up().await?;
    Ok((Creation { part, refused }, template))
}

/// Creates the same pods without a controller, and cleans up.
pub(super) async fn bare(
    plane: &ControlPlane,
    namespace: &str,
    template: &Template,
    nodes: &[String],
) -> Result<Limit> {
    let client = plane.client();
    let home = RolloutNamespace {
        plane,
        client,
        namespace,
        nodes: nodes.len(),
        user: "admin",
    };
    foreign::make_namespace(&home.client, namespace).await?;
    bare::create(&home.client, namespace, template, nodes).await?;
    let events = plane.audit_events().await?;
    let first = home.creates(&events).map(|event| event.received).min();
    let took = home.until_the_last_create(&events, first.context("pods were created")?)?;
    home.clean_up().await?;
    Ok(Limit {
        seconds: took.as_secs_f64(),
    })
}

/// The counts in a status.
pub(super) struct Counts {
    pub(super) desired: i32,
    pub(super) updated: i32,
    pub(super) available: i32,
}

impl RolloutNamespace<'_> {
    /// Measures the creation of the pods. The time is that of the audit log, up to the last create.
    async fn measured_creation(
        &self,
        owner: &Owner,
        create: impl AsyncFnOnce() -> Result<()>,
    ) -> Result<(Part, Vec<AuditEvent>)> {
        let (mut part, events) = Part::measure(self.plane, owner, self.user, create).await?;
        part.seconds = self.created(&events)?.as_secs_f64();
        Ok((part, events))
    }

    fn daemon_sets(&self) -> Api<DaemonSet> {
        Api::namespaced(self.client.clone(), self.namespace)
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), self.namespace)
    }

    pub(super) async fn create_daemon_set(&self, name: &str, node_selector: Value) -> Result<()> {
        let object = json!({
            "metadata": {"name": name},
            "spec": {
                "selector": {"matchLabels": {"app": name}},
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
                "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {
                        "nodeSelector": node_selector,
                        "containers": [{
                            "name": "agent", "image": "registry.example/agent:1",
                            "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
                        }],
                    },
                },
            },
        });
        let object: DaemonSet = serde_json::from_value(object)?;
        let created = self.daemon_sets().create(&PostParams::default(), &object).await;
        created.with_context(|| format!("creating the DaemonSet {name}"))?;
        Ok(())
    }

    pub(super) async fn change_image(&self) -> Result<()> {
        let container = json!({"name": "agent", "image": "registry.example/agent:2"});
        let patch = json!({"spec": {"template": {"spec": {"containers": [container]}}}});
        let (api, params) = (self.daemon_sets(), PatchParams::default());
        let patched = api.patch("agent", &params, &Patch::Strategic(patch)).await;
        patched.context("changing the image")?;
        Ok(())
    }

    /// Waits until the status of a DaemonSet is of its present generation and `is_so` holds.
    pub(super) async fn observed(
        &self,
        owner: &Owner,
        name: &str,
        is_so: impl Fn(&Counts) -> bool,
    ) -> Result<()> {
        let api = self.daemon_sets();
        let ended = eventually(DEADLINE, format!("the status of {name}"), async || {
            if let Err(ended) = owner.check_running() {
                return Ok(Some(ended));
            }
            let object = api.get(name).await?;
            let status = object.status.unwrap_or_default();
            let counts = Counts {
                desired: status.desired_number_scheduled,
                updated: status.updated_number_scheduled.unwrap_or_default(),
                available: status.number_available.unwrap_or_default(),
            };
            let observed = status.observed_generation == object.metadata.generation;
            ensure!(observed && is_so(&counts), "{status:?}");
            Ok(None)
        });
        ended.await?.map_or(Ok(()), Err)
    }

    /// Waits until there are `count` pods.
    pub(super) async fn wait_for_pods(&self, owner: &Owner, count: usize) -> Result<()> {
        let ended = eventually(DEADLINE, format!("{count} pods"), async || {
            if let Err(ended) = owner.check_running() {
                return Ok(Some(ended));
            }
            let there = self.count_pods().await?;
            ensure!(there >= count, "{there} are there");
            Ok(None)
        });
        ended.await?.map_or(Ok(()), Err)?;
        let there = self.count_pods().await?;
        ensure!(there == count, "{there} pods on {count} nodes");
        Ok(())
    }

    /// The number of pods. The request has a limit of 1, so its cost does not depend on the number.
    async fn count_pods(&self) -> Result<usize> {
        let page = self.pods().list_metadata(&ListParams::default().limit(1)).await?;
        let rest = page.metadata.remaining_item_count.unwrap_or_default();
        Ok(page.items.len() + usize::try_from(rest)?)
    }

    /// The successful creates of this resource in the namespace.
    fn created_here<'e>(
        &'e self,
        events: &'e [AuditEvent],
        resource: &'static str,
    ) -> impl Iterator<Item = &'e AuditEvent> {
        events.iter().filter(move |event| {
            event.namespace == self.namespace
                && event.verb == "create"
                && event.resource == resource
                && event.code == 201
        })
    }

    fn creates<'e>(&'e self, events: &'e [AuditEvent]) -> impl Iterator<Item = &'e AuditEvent> {
        self.created_here(events, "pods")
    }

    /// The time from `from` to the response to the last create of a pod.
    fn until_the_last_create(&self, events: &[AuditEvent], from: Timestamp) -> Result<Duration> {
        let count = self.creates(events).count();
        ensure!(count == self.nodes, "{count} creates for {} nodes", self.nodes);
        let last = self.creates(events).map(|event| event.answered).max();
        Ok((last.context("pods were created")? - from).try_into()?)
    }

    /// The time from the request that created the DaemonSet to the response to the last create of a pod.
    fn created(&self, events: &[AuditEvent]) -> Result<Duration> {
        let asked = self
            .created_here(events, "daemonsets")
            .find(|event| event.name == "agent");
        let asked = asked.context("the DaemonSet is in the audit log")?;
        self.until_the_last_create(events, asked.received)
    }

    pub(super) async fn clean_up(&self) -> Result<()> {
        let revisions = Api::<ControllerRevision>::namespaced(self.client.clone(), self.namespace);
        let (delete, all) = (DeleteParams::background().grace_period(0), ListParams::default());
        self.daemon_sets().delete_collection(&delete, &all).await?;
        revisions.delete_collection(&delete, &all).await?;
        self.pods().delete_collection(&delete, &all).await?;
        eventually(DEADLINE, "no pods", async || {
            let left = self.count_pods().await?;
            ensure!(left == 0, "{left} are left");
            Ok(())
        })
        .await
    }
}
