//! All parts with one owner, on a control plane of their own.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::watcher::{self, watcher};
use kube::{Client, ResourceExt as _};
use nodewise_testbed::{ControlPlane, User, eventually};
use serde_json::{Value, json};
use tokio::task::AbortHandle;

use super::super::kubelets::Kubelets;
use super::super::owner::{Owner, OwnerKind, Programs};
use super::super::part::Part;
use super::super::{DEADLINE, foreign};
use super::Size;
use crate::figure::figure;

/// What both owners run.
const CONTROLLERS: &str = "deployment-controller,replicaset-controller";
/// The number of pods of a small Deployment.
pub(super) const SMALL_PODS: u32 = 10;
/// The number of pods of a Deployment at rest.
const RESTING_PODS: u32 = 1;
/// Many Deployments are spread over so many namespaces.
pub(super) const NAMESPACES: usize = 50;
/// How many Deployments are written at the same time.
const CONCURRENCY: usize = 32;
const FIRST_IMAGE: &str = "registry.example/web:1";
const SECOND_IMAGE: &str = "registry.example/web:2";

/// The measurements of one owner.
#[derive(Clone, Debug)]
pub(super) struct Run {
    /// The large Deployment is created.
    pub(super) create: Part,
    /// The image of the large Deployment changes.
    pub(super) roll: Part,
    /// The large Deployment is scaled to 0.
    pub(super) shrink: Part,
    /// The images of all small Deployments change.
    pub(super) roll_small: Part,
    /// Each Deployment at rest is synced, and there is nothing to do but to observe its generation.
    pub(super) rest: Part,
    /// Peak memory of the owner over all parts.
    pub(super) peak_memory_mb: f64,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, part) in [
            ("created", &self.create),
            ("rolled", &self.roll),
            ("scaled to 0", &self.shrink),
            ("rolled small ones", &self.roll_small),
            ("synced those at rest", &self.rest),
        ] {
            write!(f, "{name} in {part}; ")?;
        }
        write!(f, "{} MB", figure(self.peak_memory_mb))
    }
}

/// Measures all parts.
pub(super) async fn run(size: Size, who: OwnerKind, programs: &Programs) -> Result<Run> {
    let plane = ControlPlane::builder()
        .audit_log(true)
        .user(User::new(who.user()).group("system:masters"))
        .start()
        .await?;
    let owner = Owner::start(&plane, who, programs, CONTROLLERS).await?;
    let stage = Stage::new(&plane, &owner, who).await?;

    // The owner is ready once it has observed a Deployment.
    stage
        .until(&[stage.create("first", "first", 0).await?], is_available)
        .await?;
    let create = stage.measured(
        async || Ok(vec![stage.create("large", "large", size.pods).await?]),
        has_pods,
    );
    let create = create.await?;
    let mut kubelets = Kubelets::start(&stage.client, Api::all(stage.client.clone()));
    let large = [stage.get("large", "large").await?];
    stage.until(&large, is_available).await?;
    let patch_large = async |spec| stage.patch_all(&large, spec).await;
    let roll = stage.measured(async || patch_large(image(SECOND_IMAGE)).await, is_available);
    let roll = roll.await?;
    let shrink = stage.measured(async || patch_large(json!({"replicas": 0})).await, is_available);
    let shrink = shrink.await?;

    let small = stage.create_many("small", size.small, SMALL_PODS).await?;
    stage.until(&small, is_available).await?;
    let roll_small = async || stage.patch_all(&small, image(SECOND_IMAGE)).await;
    let roll_small = stage.measured(roll_small, is_available).await?;

    let resting = stage.create_many("rest", size.at_rest, RESTING_PODS).await?;
    stage.until(&resting, is_available).await?;
    // The planner reads it, and a sync of it writes nothing but the observed generation.
    let touch = async || {
        stage
            .patch_all(&resting, json!({"revisionHistoryLimit": 9}))
            .await
    };
    let rest = stage.measured(touch, is_available).await?;
    kubelets.check_running().await?;
    drop(stage);
    let peak_memory_mb = owner.peak_memory_mb()?;
    owner.stop().await?;
    Ok(Run {
        create,
        roll,
        shrink,
        roll_small,
        rest,
        peak_memory_mb,
    })
}

/// A control plane with an owner, and all Deployments as a watch shows them.
struct Stage<'a> {
    plane: &'a ControlPlane,
    client: Client,
    owner: &'a Owner,
    user: &'a str,
    seen: Store<Deployment>,
    watch: AbortHandle,
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

impl<'a> Stage<'a> {
    async fn new(plane: &'a ControlPlane, owner: &'a Owner, who: OwnerKind) -> Result<Self> {
        let client = plane.client();
        for namespace in ["first", "large"] {
            foreign::make_namespace(&client, namespace).await?;
        }
        let (seen, writer) = reflector::store();
        let watch = watcher(Api::<Deployment>::all(client.clone()), watcher::Config::default());
        // A broken watch restarts by itself with a list.
        let watch = reflector::reflector(writer, watch).for_each(async |_| ());
        Ok(Self {
            plane,
            client,
            owner,
            user: who.user(),
            seen,
            watch: tokio::spawn(watch).abort_handle(),
        })
    }

    fn deployments(&self, namespace: &str) -> Api<Deployment> {
        Api::namespaced(self.client.clone(), namespace)
    }

    async fn get(&self, namespace: &str, name: &str) -> Result<Deployment> {
        Ok(self.deployments(namespace).get(name).await?)
    }

    async fn create(&self, namespace: &str, name: &str, replicas: u32) -> Result<Deployment> {
        let object = deployment(name, replicas)?;
        let (api, params) = (self.deployments(namespace), PostParams::default());
        let created = api.create(&params, &object).await;
        created.with_context(|| format!("creating the Deployment {name}"))
    }

    /// Creates `count` Deployments in [`NAMESPACES`] namespaces.
    async fn create_many(&self, prefix: &str, count: usize, replicas: u32) -> Result<Vec<Deployment>> {
        let namespaces: Vec<_> = (0..NAMESPACES)
            .map(|number| format!("{prefix}-{number}"))
            .collect();
        for namespace in &namespaces {
            foreign::make_namespace(&self.client, namespace).await?;
        }
        stream::iter((0..count).zip(namespaces.iter().cycle()))
            .map(async |(number, namespace)| self.create(namespace, &format!("web-{number}"), replicas).await)
            .buffer_unordered(CONCURRENCY)
            .try_collect()
            .await
    }

    /// Patches the specs of these Deployments.
    async fn patch_all(&self, deployments: &[Deployment], spec: Value) -> Result<Vec<Deployment>> {
        let patch = Patch::Strategic(json!({ "spec": spec }));
        stream::iter(deployments)
            .map(async |deployment| {
                let api = self.deployments(&deployment.namespace().unwrap_or_default());
                let (name, params) = (deployment.name_any(), PatchParams::default());
                let patched = api.patch(&name, &params, &patch).await;
                patched.context("patching a Deployment")
            })
            .buffer_unordered(CONCURRENCY)
            .try_collect()
            .await
    }

    /// Makes a change, and waits until `is_done` holds for all Deployments that it wrote.
    async fn measured(
        &self,
        change: impl AsyncFnOnce() -> Result<Vec<Deployment>>,
        is_done: fn(&Deployment) -> bool,
    ) -> Result<Part> {
        let part = async || self.until(&change().await?, is_done).await;
        let (part, _) = Part::measure(self.plane, self.owner, self.user, part).await?;
        Ok(part)
    }

    /// Waits until the statuses of these Deployments are of this generation or a later one, and `is_done` holds.
    async fn until(&self, deployments: &[Deployment], is_done: fn(&Deployment) -> bool) -> Result<()> {
        let mut open: HashMap<_, _> = deployments
            .iter()
            .map(|deployment| (ObjectRef::from_obj(deployment), deployment.metadata.generation))
            .collect();
        let deadline = DEADLINE.max(Duration::from_millis(200 * u64::try_from(deployments.len())?));
        let ended = eventually(deadline, "the statuses of the Deployments", async || {
            if let Err(ended) = self.owner.check_running() {
                return Ok(Some(ended));
            }
            open.retain(|key, generation| {
                !self.seen.get(key).is_some_and(|seen| {
                    let observed = seen.status.as_ref().and_then(|status| status.observed_generation);
                    observed >= *generation && observed == seen.metadata.generation && is_done(&seen)
                })
            });
            let Some(key) = open.keys().next() else {
                return Ok(None);
            };
            let status = self.seen.get(key).and_then(|seen| seen.status.clone());
            ensure!(
                open.is_empty(),
                "{} are not done; {key} has {status:?}",
                open.len()
            );
            Ok(None)
        });
        ended.await?.map_or(Ok(()), Err)
    }
}

fn deployment(name: &str, replicas: u32) -> Result<Deployment> {
    let labels = json!({ "app": name });
    let object = json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{
                    "name": "web", "image": FIRST_IMAGE,
                    "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
                }]},
            },
        },
    });
    Ok(serde_json::from_value(object)?)
}

fn image(image: &str) -> Value {
    json!({"template": {"spec": {"containers": [{"name": "web", "image": image}]}}})
}

/// The number of pods that the spec asks for, and those that the status counts: all, updated and available.
fn counts(deployment: &Deployment) -> [i32; 4] {
    let spec = deployment.spec.as_ref().and_then(|spec| spec.replicas);
    let status = deployment.status.clone().unwrap_or_default();
    [
        spec,
        status.replicas,
        status.updated_replicas,
        status.available_replicas,
    ]
    .map(Option::unwrap_or_default)
}

fn has_pods(deployment: &Deployment) -> bool {
    let [wanted, all, ..] = counts(deployment);
    all == wanted
}

fn is_available(deployment: &Deployment) -> bool {
    let [wanted, status @ ..] = counts(deployment);
    status == [wanted; 3]
}
