//! The recipes of `docs/rollouts.md`: each policy is applied as it is written there, to a real apiserver.
//!
//! A rollout is watched until it waits for what the text says. Then its times are shortened, as a person could do, and it goes on.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::{
    apps::v1::DaemonSet,
    core::v1::{Namespace, Pod},
};
use kube::{
    Api,
    api::{DynamicObject, ListParams, Patch, PatchParams},
};
use nodewise_conformance::{DEADLINE, rollout_policies};
use nodewise_e2e::{Setup, SetupOptions};
use nodewise_testbed::{NODE_ANNOTATION, NODE_NOT_READY, Prometheus, eventually, manifests};
use serde_json::{Value, json};

const DOCUMENT: &str = include_str!("../../../../docs/rollouts.md");
const ZONE: &str = "topology.kubernetes.io/zone";
/// The nodes of each recipe.
const NODES: usize = 6;
const IMAGES: [&str; 2] = ["registry.example/agent:1", "registry.example/agent:2"];
/// A rollout of six nodes ends within a few seconds.
const ROLLOUT: Duration = Duration::from_mins(2);

/// The policy of a recipe.
fn written(recipe: &str) -> Result<Value> {
    let begin = format!("```yaml recipe={recipe}\n");
    let (_, rest) = DOCUMENT
        .split_once(&begin)
        .context("the document has no such recipe")?;
    let (yaml, _) = rest.split_once("```").context("the recipe has no end")?;
    manifests::parse(yaml)?.pop().context("the recipe is empty")
}

/// A recipe with its own nodes and DaemonSet. All of them share a cluster.
struct Recipe<'a> {
    setup: &'a Setup,
    policy: Value,
    namespace: String,
    daemon_set: String,
    /// The names of its nodes.
    nodes: Vec<String>,
}

impl<'a> Recipe<'a> {
    /// The first version runs on all nodes, and the policy has been accepted. `labels` are those of each node.
    async fn begin(
        setup: &'a Setup,
        recipe: &str,
        daemon_set: &str,
        labels: impl Fn(usize) -> Option<(&'static str, String)>,
    ) -> Result<Recipe<'a>> {
        let policy = written(recipe)?;
        let namespace = policy["metadata"]["namespace"].as_str();
        let namespace = namespace.context("a namespace")?.to_owned();
        let zones = ["a", "b", "c"];
        let nodes = setup
            .cluster()
            .plane()
            .create_nodes_with(NODES, |index, node| {
                let all = node.metadata.labels.get_or_insert_default();
                all.insert("recipe".to_owned(), recipe.to_owned());
                all.insert(ZONE.to_owned(), zones[index % zones.len()].to_owned());
                all.extend(labels(index).map(|(key, value)| (key.to_owned(), value)));
            })
            .await?;
        let this = Self {
            setup,
            namespace: namespace.clone(),
            daemon_set: daemon_set.to_owned(),
            nodes,
            policy,
        };
        let namespaces: Api<Namespace> = Api::all(setup.client());
        let named = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        namespaces
            .patch(&namespace, &PatchParams::apply("test"), &Patch::Apply(&named))
            .await?;
        this.apply(&this.daemon_set_of(recipe)).await?;
        this.wait_for_pods(0, NODES).await?;
        this.apply(&this.policy).await?;
        this.wait_for("Complete").await?;
        Ok(this)
    }

    fn daemon_set_of(&self, recipe: &str) -> Value {
        let labels = json!({"app": self.daemon_set});
        json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": {"name": self.daemon_set, "namespace": self.namespace, "labels": labels},
            "spec": {
                "selector": {"matchLabels": labels},
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "50%"}},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "nodeSelector": {"recipe": recipe},
                        "containers": [{"name": "agent", "image": IMAGES[0]}],
                    },
                },
            },
        })
    }

    async fn apply(&self, object: &Value) -> Result<()> {
        manifests::apply(&self.setup.client(), object, &PatchParams::apply("test").force()).await?;
        Ok(())
    }

    fn policies(&self) -> Api<DynamicObject> {
        rollout_policies::api(self.setup.client(), &self.namespace)
    }

    fn name(&self) -> &str {
        self.policy["metadata"]["name"].as_str().unwrap_or_default()
    }

    async fn patch_policy(&self, patch: Value) -> Result<()> {
        let (api, params) = (self.policies(), PatchParams::default());
        api.patch(self.name(), &params, &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Gives the DaemonSet the second image.
    async fn update(&self) -> Result<()> {
        let api: Api<DaemonSet> = Api::namespaced(self.setup.client(), &self.namespace);
        let containers = json!([{"name": "agent", "image": IMAGES[1]}]);
        let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
        api.patch(
            &self.daemon_set,
            &PatchParams::default(),
            &Patch::Strategic(patch),
        )
        .await?;
        Ok(())
    }

    /// Shortens the soak of every stage to a second, and drops the pace.
    async fn shorten(&self) -> Result<()> {
        let mut stages = self.policy["spec"]["stages"].clone();
        for stage in stages.as_array_mut().into_iter().flatten() {
            stage["soak"] = json!("1s");
        }
        self.patch_policy(json!({"spec": {"stages": stages, "pace": null}}))
            .await
    }

    /// Approves what the policy waits for.
    async fn approve(&self) -> Result<()> {
        let target = self.wait_for("AwaitingApproval").await?;
        let digest = &target["pendingApproval"]["digest"];
        self.patch_policy(json!({"metadata": {"annotations": {"nodewise.dev/approve": digest}}}))
            .await
    }

    /// Waits until the rollout has this state, and returns its status.
    async fn wait_for(&self, state: &str) -> Result<Value> {
        eventually(ROLLOUT, &format!("{}: {state}", self.name()), async || {
            let policy = self.policies().get(self.name()).await?;
            let target = &policy.data["status"]["targets"][0];
            ensure!(
                target["state"] == state,
                "it is {}: {}; {}",
                target["state"],
                target["message"],
                policy.data["status"]["conditions"]
            );
            Ok(target.clone())
        })
        .await
    }

    /// The nodes with a ready pod of an image.
    async fn nodes_with(&self, image: usize) -> Result<BTreeSet<String>> {
        let api: Api<Pod> = Api::namespaced(self.setup.client(), &self.namespace);
        let selector = ListParams::default().labels(&format!("app={}", self.daemon_set));
        let mut nodes = BTreeSet::new();
        for pod in api.list(&selector).await? {
            let (spec, status) = (pod.spec.unwrap_or_default(), pod.status.unwrap_or_default());
            let has_image = spec.containers[0].image.as_deref() == Some(IMAGES[image]);
            let conditions = status.conditions.unwrap_or_default();
            let is_ready = conditions
                .iter()
                .any(|one| one.type_ == "Ready" && one.status == "True");
            if has_image && is_ready && pod.metadata.deletion_timestamp.is_none() {
                nodes.extend(spec.node_name);
            }
        }
        Ok(nodes)
    }

    async fn wait_for_pods(&self, image: usize, count: usize) -> Result<BTreeSet<String>> {
        let what = format!("{}: {count} pods of {}", self.daemon_set, IMAGES[image]);
        eventually(DEADLINE, &what, async || {
            let nodes = self.nodes_with(image).await?;
            ensure!(nodes.len() == count, "they are on {nodes:?}");
            Ok(nodes)
        })
        .await
    }

    /// The zones of nodes. The node with the index i is in the zone i modulo 3.
    fn zones<'n>(&self, nodes: impl IntoIterator<Item = &'n String>) -> BTreeSet<usize> {
        let index = |node: &String| self.nodes.iter().position(|name| name == node);
        nodes
            .into_iter()
            .filter_map(index)
            .map(|index| index % 3)
            .collect()
    }
}

/// The names of the stages in a status.
fn stages(target: &Value) -> Vec<&str> {
    let stages = target["stages"].as_array().into_iter().flatten();
    stages.filter_map(|stage| stage["name"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_recipes_do_what_they_say() -> Result<()> {
    let prometheus = Prometheus::builder().start().await?;
    let (_, host) = prometheus.url().split_once("://").context("a URL")?;
    let options = SetupOptions::nodes(0)
        .rollout_policies()
        .executor_arg("--analysis-host=prometheus.monitoring:9090")
        .executor_arg(&format!("--analysis-host={}", host.trim_end_matches('/')));
    let setup = Setup::start(options).await?;
    cni(&setup).await.context("the CNI")?;
    gpu(&setup).await.context("the GPU driver")?;
    logs(&setup, &prometheus).await.context("the log agent")?;
    edge(&setup).await.context("the edge fleet")?;
    migrated(&setup).await.context("from ExtendedDaemonSet")
}

async fn cni(setup: &Setup) -> Result<()> {
    let recipe = Recipe::begin(setup, "cni", "cni", |_| None).await?;
    recipe.update().await?;
    let target = recipe.wait_for("Soaking").await?;
    assert_eq!(
        stages(&target),
        ["one-per-zone", "zones/a", "zones/b", "zones/c"],
        "{target}"
    );
    let updated = recipe.wait_for_pods(1, 3).await?;
    assert_eq!(recipe.zones(&updated).len(), 3, "one of each zone: {updated:?}");
    recipe.shorten().await?;
    recipe.wait_for("Complete").await?;
    recipe.wait_for_pods(1, NODES).await?;
    Ok(())
}

async fn gpu(setup: &Setup) -> Result<()> {
    let pool = |index| (index == 0).then(|| ("pool", "spare".to_owned()));
    let recipe = Recipe::begin(setup, "gpu", "gpu-driver", pool).await?;
    // A node that is dead before the rollout, and one that is cordoned.
    let (dead, cordoned) = (&recipe.nodes[3], &recipe.nodes[5]);
    let annotation = format!("{NODE_ANNOTATION}={NODE_NOT_READY}");
    setup.kubectl(&["annotate", "node", dead, &annotation]).await?;
    setup
        .kubectl(&[
            "wait",
            "node",
            dead,
            "--for=condition=Ready=False",
            "--timeout=60s",
        ])
        .await?;
    setup.kubectl(&["cordon", cordoned]).await?;
    recipe.update().await?;
    recipe.wait_for("Soaking").await?;
    assert_eq!(
        recipe.wait_for_pods(1, 1).await?,
        BTreeSet::from([recipe.nodes[0].clone()])
    );
    recipe.shorten().await?;
    let target = recipe.wait_for("Complete").await?;
    let updated = recipe.wait_for_pods(1, NODES - 1).await?;
    ensure!(!updated.contains(dead), "{updated:?}");
    ensure!(updated.contains(cordoned), "{updated:?}");
    assert_eq!(target["stages"][1]["exempt"], 1, "{target}");
    // It gets its turn when it is back.
    let removed = format!("{NODE_ANNOTATION}-");
    setup.kubectl(&["annotate", "node", dead, &removed]).await?;
    recipe.wait_for_pods(1, NODES).await?;
    Ok(())
}

async fn logs(setup: &Setup, prometheus: &Prometheus) -> Result<()> {
    let recipe = Recipe::begin(setup, "logs", "log-agent", |_| None).await?;
    recipe.update().await?;
    // This cluster has no `prometheus.monitoring`: that the call fails is no failure of the revision.
    eventually(ROLLOUT, "a measurement that erred", async || {
        let policy = recipe.policies().get(recipe.name()).await?;
        let check = &policy.data["status"]["targets"][0]["stages"][0]["analysis"][0];
        ensure!(check["errors"].as_u64() >= Some(1), "{}", policy.data["status"]);
        ensure!(check["failed"].as_u64().unwrap_or_default() == 0, "{check}");
        Ok(())
    })
    .await?;
    assert_eq!(recipe.nodes_with(1).await?.len(), 1);
    // Now a Prometheus that answers, and shorter times.
    let mut stages = recipe.policy["spec"]["stages"].clone();
    stages[0]["soak"] = json!("1s");
    stages[0]["analysis"][0]["interval"] = json!("1s");
    stages[0]["analysis"][0]["prometheus"]["address"] = json!(prometheus.url().trim_end_matches('/'));
    recipe.patch_policy(json!({"spec": {"stages": stages}})).await?;
    let target = recipe.wait_for("Complete").await?;
    let check = &target["stages"][0]["analysis"][0];
    assert_eq!(check["successful"], 5, "{target}");
    recipe.wait_for_pods(1, NODES).await?;
    Ok(())
}

async fn edge(setup: &Setup) -> Result<()> {
    let pilot = |index| (index < 2).then(|| ("shop", "pilot".to_owned()));
    let recipe = Recipe::begin(setup, "edge", "till", pilot).await?;
    // The windows of the recipe are open or not, by the time of day. One on another day than today and its neighbours is not.
    let today = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC);
    let days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    let far = (today.weekday().to_monday_zero_offset() + 3) % 7;
    let far = days[usize::try_from(far)?];
    recipe
        .patch_policy(json!({"spec": {"windows": [{"days": [far]}]}}))
        .await?;
    // The executor follows policies and DaemonSets with two watches.
    eventually(ROLLOUT, "the windows to be seen", async || {
        let policy = recipe.policies().get(recipe.name()).await?;
        let observed = policy.data["status"]["observedGeneration"].as_i64();
        ensure!(observed == policy.metadata.generation, "{observed:?} is observed");
        Ok(())
    })
    .await?;
    recipe.update().await?;
    recipe.wait_for("OutsideWindow").await?;
    assert_eq!(recipe.nodes_with(1).await?.len(), 0);
    recipe.patch_policy(json!({"spec": {"windows": null}})).await?;
    recipe.wait_for("Soaking").await?;
    assert_eq!(
        recipe.wait_for_pods(1, 2).await?,
        recipe.nodes[..2].iter().cloned().collect()
    );
    recipe.shorten().await?;
    recipe.approve().await?;
    recipe.wait_for("Partitioned").await?;
    recipe.wait_for_pods(1, NODES - 2).await?;
    recipe.patch_policy(json!({"spec": {"partition": null}})).await?;
    recipe.wait_for("Complete").await?;
    recipe.wait_for_pods(1, NODES).await?;
    Ok(())
}

async fn migrated(setup: &Setup) -> Result<()> {
    let recipe = Recipe::begin(setup, "migrated", "agent", |_| None).await?;
    recipe.update().await?;
    recipe.wait_for("Soaking").await?;
    recipe.wait_for_pods(1, 3).await?;
    recipe.shorten().await?;
    recipe.approve().await?;
    recipe.wait_for("Complete").await?;
    recipe.wait_for_pods(1, NODES).await?;
    Ok(())
}
