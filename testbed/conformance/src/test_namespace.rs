//! One namespace, the nodes that its DaemonSets run on, and requests to the apiserver about them.

use std::{
    collections::BTreeSet,
    fmt::{self, Display},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::{
    apps::v1::{ControllerRevision, DaemonSet, DaemonSetStatus},
    core::v1::{Event, Node, Pod},
};
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::NamespaceResourceScope,
};
use nodewise_testbed::{POD_ANNOTATION, PodBehaviour, eventually};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{
    budget::{BudgetWatch, is_live, node_of},
    deadline::DEADLINE,
};

/// A namespace, and the nodes that its DaemonSets run on.
#[derive(Clone)]
pub struct TestNamespace {
    client: Client,
    namespace: String,
    /// The label of the nodes; `None` for all nodes of the cluster.
    nodes: Option<(String, String)>,
    deadline: Duration,
}

impl fmt::Debug for TestNamespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestNamespace")
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

impl TestNamespace {
    /// A namespace whose DaemonSets run on all nodes.
    #[must_use]
    pub fn of_all_nodes(client: Client, namespace: &str) -> Self {
        Self {
            client,
            namespace: namespace.to_owned(),
            nodes: None,
            deadline: DEADLINE,
        }
    }

    /// A namespace whose DaemonSets run on the nodes with this label: [`TestNamespace::create`] adds the node selector.
    #[must_use]
    pub fn of_nodes_with(client: Client, namespace: &str, key: &str, value: &str) -> Self {
        Self {
            client,
            namespace: namespace.to_owned(),
            nodes: Some((key.to_owned(), value.to_owned())),
            deadline: DEADLINE,
        }
    }

    /// Another namespace with the same nodes.
    #[must_use]
    pub fn in_namespace(&self, namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            ..self.clone()
        }
    }

    /// The same with another deadline for all waits.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// The deadline of all waits.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Calls `probe` until it succeeds and returns its value: [`eventually`] with this deadline.
    pub async fn eventually<T>(
        &self,
        what: impl Display,
        probe: impl AsyncFnMut() -> Result<T>,
    ) -> Result<T> {
        eventually(self.deadline, what, probe).await
    }

    /// The name of the namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// A client with all rights.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The API of one type of objects in the namespace.
    #[must_use]
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client(), &self.namespace)
    }

    /// The API of its pods.
    #[must_use]
    pub fn pod_api(&self) -> Api<Pod> {
        self.api()
    }

    /// The API of its DaemonSets.
    #[must_use]
    pub fn daemon_set_api(&self) -> Api<DaemonSet> {
        self.api()
    }

    /// Starts to watch the pods with the label `app: name`.
    #[must_use]
    pub fn watch(&self, name: &str) -> BudgetWatch {
        BudgetWatch::start(self.client(), &self.namespace, name)
    }

    /// Creates a DaemonSet that runs on the nodes of this namespace.
    pub async fn create(&self, object: Value) -> Result<DaemonSet> {
        self.create_as(object).await
    }

    /// Creates a workload of any kind that runs on the nodes of this namespace.
    pub async fn create_as<K>(&self, mut object: Value) -> Result<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + DeserializeOwned,
    {
        if let Some((key, value)) = &self.nodes {
            // Keeps a node selector that the DaemonSet already has.
            let selector = &mut object["spec"]["template"]["spec"]["nodeSelector"];
            if !selector.is_object() {
                *selector = json!({});
            }
            selector[key] = json!(value);
        }
        object["metadata"]["namespace"] = json!(self.namespace);
        // Untyped: a typed object would lose unknown fields, or change their spelling.
        let object: DynamicObject = serde_json::from_value(object).context("the test's workload")?;
        let resource = ApiResource::erase::<K>(&());
        let api: Api<DynamicObject> = Api::namespaced_with(self.client(), &self.namespace, &resource);
        let created = api.create(&PostParams::default(), &object).await?;
        Ok(created.try_parse()?)
    }

    /// Creates a DaemonSet and waits until it is rolled out.
    pub async fn roll_out(&self, name: &str, object: Value) -> Result<DaemonSet> {
        let created = self.create(object).await?;
        self.wait_for_rollout(name).await?;
        Ok(created)
    }

    /// Changes a DaemonSet with a strategic merge patch.
    pub async fn patch(&self, name: &str, patch: Value) -> Result<DaemonSet> {
        let api = self.daemon_set_api();
        Ok(api
            .patch(name, &PatchParams::default(), &Patch::Strategic(patch))
            .await?)
    }

    /// Deletes a DaemonSet in the background and waits until it is gone. Its pods may still exist.
    pub async fn delete(&self, name: &str) -> Result<()> {
        let api = self.daemon_set_api();
        api.delete(name, &DeleteParams::background()).await?;
        self.eventually(format!("the DaemonSet {name} to be gone"), async || {
            ensure!(api.get_opt(name).await?.is_none(), "it is still there");
            Ok(())
        })
        .await
    }

    /// A patch to an image version whose pods never become ready.
    #[must_use]
    pub fn never_ready_patch(&self, version: u32) -> Value {
        behaviour_patch(version, Some(PodBehaviour::Unready))
    }

    /// A patch to an image version whose pods become ready.
    #[must_use]
    pub fn ready_again_patch(&self, version: u32) -> Value {
        behaviour_patch(version, None)
    }

    /// The DaemonSet's status.
    pub async fn status(&self, name: &str) -> Result<DaemonSetStatus> {
        Ok(self.daemon_set_api().get(name).await?.status.unwrap_or_default())
    }

    /// The DaemonSet's status; an error unless it is of the present generation.
    pub async fn observed_status(&self, name: &str) -> Result<DaemonSetStatus> {
        let object = self.daemon_set_api().get(name).await?;
        let status = object.status.unwrap_or_default();
        ensure!(
            status.observed_generation == object.metadata.generation,
            "the spec is not observed: {status:?}"
        );
        Ok(status)
    }

    /// Waits until every desired node has an available pod of the present template. Returns the status.
    pub async fn wait_for_rollout(&self, name: &str) -> Result<DaemonSetStatus> {
        self.eventually(format!("the rollout of {name}"), async || {
            let status = self.observed_status(name).await?;
            let desired = status.desired_number_scheduled;
            let (updated, available) = (status.updated_number_scheduled, status.number_available);
            ensure!(
                desired > 0 && updated == Some(desired) && available == Some(desired),
                "{status:?}"
            );
            Ok(status)
        })
        .await
    }

    /// Waits until the rollout is complete and each node has one pod, counting pods in deletion.
    pub async fn wait_until_settled(&self, name: &str) -> Result<()> {
        self.wait_for_rollout(name).await?;
        self.eventually(format!("{name} to settle"), async || {
            self.expect_settled(name).await
        })
        .await
    }

    /// Fails unless each node has exactly one pod, the pod is ready, and the status agrees. Then nothing is left to do.
    pub async fn expect_settled(&self, name: &str) -> Result<()> {
        let pods = self.pods(name).await?;
        let nodes = self.node_names().await?.len();
        ensure!(pods.len() == nodes, "{} pods, some are going", pods.len());
        self.expect_one_pod_per_node(name).await?;
        let ready = pods.iter().filter(|pod| crate::is_ready(pod)).count();
        ensure!(ready == nodes, "{ready} pods are ready");
        let status = self.observed_status(name).await?;
        let all = [
            status.desired_number_scheduled,
            status.current_number_scheduled,
            status.number_ready,
            status.number_available.unwrap_or(0),
        ];
        ensure!(
            all == [i32::try_from(nodes)?; 4] && status.number_misscheduled == 0,
            "{status:?}"
        );
        Ok(())
    }

    /// The pods with the label `app: name`.
    pub async fn pods(&self, name: &str) -> Result<Vec<Pod>> {
        let params = ListParams::default().labels(&format!("app={name}"));
        Ok(self.pod_api().list(&params).await?.items)
    }

    /// The pods that are neither finished nor in deletion.
    pub async fn live_pods(&self, name: &str) -> Result<Vec<Pod>> {
        Ok(self.pods(name).await?.into_iter().filter(is_live).collect())
    }

    /// The names of the live pods.
    pub async fn pod_names(&self, name: &str) -> Result<BTreeSet<String>> {
        let pods = self.live_pods(name).await?.into_iter();
        Ok(pods.filter_map(|pod| pod.metadata.name).collect())
    }

    /// The uids of the live pods.
    pub async fn uids(&self, name: &str) -> Result<BTreeSet<String>> {
        let pods = self.live_pods(name).await?;
        Ok(pods.into_iter().filter_map(|pod| pod.metadata.uid).collect())
    }

    /// The images of the first containers of the live pods.
    pub async fn images(&self, name: &str) -> Result<Vec<String>> {
        let images = self.live_pods(name).await?.into_iter().map(|pod| {
            let container = pod.spec.and_then(|spec| spec.containers.into_iter().next());
            container
                .and_then(|container| container.image)
                .context("a pod has a container with an image")
        });
        images.collect()
    }

    /// How many live pods run this version of the image.
    pub async fn count_of_version(&self, name: &str, version: u32) -> Result<usize> {
        let end = format!(":{version}");
        let images = self.images(name).await?;
        Ok(images.iter().filter(|image| image.ends_with(&end)).count())
    }

    /// The numbers of a DaemonSet's revisions, ascending.
    pub async fn revisions(&self, name: &str) -> Result<Vec<i64>> {
        let revisions = self.revision_objects(name).await?;
        let mut numbers: Vec<i64> = revisions.iter().map(|revision| revision.revision).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// A DaemonSet's revisions.
    pub async fn revision_objects(&self, name: &str) -> Result<Vec<ControllerRevision>> {
        let params = ListParams::default().labels(&format!("app={name}"));
        Ok(self.api().list(&params).await?.items)
    }

    /// The events with this reason.
    pub async fn events(&self, reason: &str) -> Result<Vec<Event>> {
        let params = ListParams::default().fields(&format!("reason={reason}"));
        Ok(self.api().list(&params).await?.items)
    }

    /// Fails unless each node has exactly one live pod with the label `app: name`.
    pub async fn expect_one_pod_per_node(&self, name: &str) -> Result<()> {
        let mut on: Vec<String> = self.live_pods(name).await?.iter().map(node_of).collect();
        on.sort();
        let nodes = self.node_names().await?;
        ensure!(
            on == nodes,
            "{} live pods on {} nodes: {on:?}",
            on.len(),
            nodes.len()
        );
        Ok(())
    }

    /// The names of its nodes, sorted.
    pub async fn node_names(&self) -> Result<Vec<String>> {
        let params = match &self.nodes {
            Some((key, value)) => ListParams::default().labels(&format!("{key}={value}")),
            None => ListParams::default(),
        };
        let nodes = Api::<Node>::all(self.client()).list_metadata(&params).await?;
        let mut names: Vec<String> = nodes.items.iter().map(kube::ResourceExt::name_any).collect();
        names.sort();
        Ok(names)
    }

    /// Changes a node with a merge patch.
    pub async fn patch_node(&self, name: &str, patch: Value) -> Result<()> {
        let nodes: Api<Node> = Api::all(self.client());
        nodes
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        Ok(())
    }

    /// Changes a label of the first node that no selector uses.
    pub async fn label_a_node(&self) -> Result<()> {
        let node = self.node_names().await?.into_iter().next().context("a node")?;
        let api: Api<Node> = Api::all(self.client());
        let version = api.get_metadata(&node).await?.metadata.resource_version;
        self.patch_node(
            &node,
            json!({ "metadata": { "labels": { "example.com/seen": version } } }),
        )
        .await
    }

    /// Deletes one pod of a DaemonSet. Returns its name and uid.
    pub async fn delete_a_pod(&self, name: &str) -> Result<(String, String)> {
        let pod = self.live_pods(name).await?.into_iter().next().context("a pod")?;
        let (victim, uid) = (pod.name_any(), pod.uid().context("a uid")?);
        self.pod_api().delete(&victim, &DeleteParams::default()).await?;
        Ok((victim, uid))
    }

    /// Makes a pod fail.
    pub async fn fail_pod(&self, name: &str) -> Result<()> {
        let patch =
            json!({ "metadata": { "annotations": { POD_ANNOTATION: PodBehaviour::Failed.value() } } });
        self.pod_api()
            .patch_metadata(name, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        Ok(())
    }
}

fn behaviour_patch(version: u32, behaviour: Option<PodBehaviour>) -> Value {
    let container = json!({ "name": "main", "image": format!("registry.example/agent:{version}") });
    let annotations = json!({ POD_ANNOTATION: behaviour.map(PodBehaviour::value) });
    json!({ "spec": { "template": { "metadata": { "annotations": annotations }, "spec": { "containers": [container] } } } })
}
