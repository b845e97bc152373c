//! The objects of a cluster, read from files or from an apiserver.
//!
//! Workloads and revisions are kept as JSON. Nodes and pods, of which there may be many, are kept as the protocol's projections.
//! Each object has its origin, so that errors can name it.

mod facts;
mod file;
mod find;
mod follow;
mod live;
mod object;
mod origin;
mod touched;
mod yaml;

use nodewise_proto::v1;
use serde_json::value::RawValue;
use std::{borrow::Cow, collections::HashMap, sync::Arc};

pub(crate) use facts::Facts;
pub(crate) use file::read_text_file;
pub(crate) use follow::{Change, Follower};
pub(crate) use live::{cluster_only, connect, connect_if_any, one_line};
use object::{Header, check_selector, parse, projected, without_position};
pub(crate) use origin::{InputError, Origin};
pub(crate) use touched::Touched;

use crate::{args::SourceArgs, kind::Kind, target::Target};

type Reader<'a> = serde_json::Deserializer<serde_json::de::StrRead<'a>>;

/// The kind, namespace and name of a workload.
pub(crate) type WorkloadKey = (Kind, String, String);

/// An object that is kept as JSON.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) kind: Kind,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    /// The uid of the owner that is its controller.
    pub(crate) controller: Option<String>,
    pub(crate) json: Box<RawValue>,
    pub(crate) origin: Origin,
}

impl Served {
    fn named(&self) -> (&str, &Origin) {
        (&self.name, &self.origin)
    }

    /// What workloads are sorted by.
    fn order(&self) -> (Kind, &str, &str) {
        (self.kind, &self.namespace, &self.name)
    }

    fn key(&self) -> WorkloadKey {
        (self.kind, self.namespace.clone(), self.name.clone())
    }

    /// `DaemonSet kube-system/fluentd`.
    pub(crate) fn title(&self) -> String {
        title(self.kind, &self.namespace, &self.name)
    }
}

/// An object that is kept as the protocol's projection.
#[derive(Debug)]
pub(crate) struct Projected<T> {
    pub(crate) object: T,
    pub(crate) origin: Origin,
}

/// The objects of a cluster, or of one namespace and all nodes.
#[derive(Debug, Default)]
pub(crate) struct Cluster {
    /// Sorted by kind, namespace and name.
    workloads: Vec<Served>,
    pub(crate) nodes: Vec<Projected<v1::Node>>,
    /// By namespace.
    pub(crate) pods: HashMap<String, Vec<Projected<v1::Pod>>>,
    /// What people want to know; `None` if the command does not show it.
    pub(crate) facts: Option<Facts>,
    /// By namespace.
    pub(crate) revisions: HashMap<String, Vec<Served>>,
    /// By namespace.
    pub(crate) policies: HashMap<String, Vec<Served>>,
    /// Whether the objects were read from files, and not from an apiserver.
    pub(crate) is_dump: bool,
    /// Whether a file has a list without objects, as kubectl prints it when it was asked for a kind of which there are none.
    has_empty_list: bool,
    /// The names of the files, or the URL of the apiserver.
    pub(crate) sources: Vec<Arc<str>>,
}

impl Cluster {
    /// Reads the source that the command line names. Files are read as a whole; an apiserver is asked only for what the targets
    /// need.
    pub(crate) async fn read(
        source: &SourceArgs,
        targets: &[Target],
        namespace: Option<&str>,
    ) -> Result<Self, InputError> {
        Self::default().filled(source, targets, namespace).await
    }

    /// As [`Cluster::read`], and also reads what people want to know.
    pub(crate) async fn read_with_facts(
        source: &SourceArgs,
        targets: &[Target],
        namespace: Option<&str>,
    ) -> Result<Self, InputError> {
        let cluster = Self {
            facts: Some(Facts::default()),
            ..Self::default()
        };
        cluster.filled(source, targets, namespace).await
    }

    /// Reads files as a whole, or only the objects of these kinds from an apiserver.
    pub(crate) async fn read_kinds(
        source: &SourceArgs,
        kinds: &[Kind],
        namespace: Option<&str>,
    ) -> Result<Self, InputError> {
        let mut cluster = Self {
            is_dump: !source.files.is_empty(),
            ..Self::default()
        };
        if cluster.is_dump {
            file::read(&mut cluster, &source.files)?;
        } else {
            let access = (source.kubeconfig.as_deref(), source.context.as_deref());
            live::read_kinds(&mut cluster, access, kinds, namespace).await?;
        }
        cluster.complete()?;
        Ok(cluster)
    }

    async fn filled(
        self,
        source: &SourceArgs,
        targets: &[Target],
        namespace: Option<&str>,
    ) -> Result<Self, InputError> {
        let mut cluster = Self {
            is_dump: !source.files.is_empty(),
            ..self
        };
        if source.files.is_empty() {
            live::read(
                &mut cluster,
                source.kubeconfig.as_deref(),
                source.context.as_deref(),
                (targets, namespace),
            )
            .await?;
        } else {
            file::read(&mut cluster, &source.files)?;
        }
        cluster.complete()?;
        Ok(cluster)
    }

    /// Reads a text as a file with this name.
    pub(crate) fn read_text(name: &str, text: Vec<u8>) -> Result<Self, InputError> {
        let mut cluster = Self::default();
        let source: Arc<str> = name.into();
        file::add_text(&mut cluster, &source, &file::text(text, &source)?)?;
        cluster.complete()?;
        Ok(cluster)
    }

    /// The number of objects.
    pub(crate) fn objects(&self) -> usize {
        let pods: usize = self.pods.values().map(Vec::len).sum();
        let revisions: usize = self.revisions.values().map(Vec::len).sum();
        let policies: usize = self.policies.values().map(Vec::len).sum();
        self.workloads.len() + self.nodes.len() + pods + revisions + policies
    }

    /// Whether there are workloads, perhaps with their policies, and nothing else: as in a manifest, and unlike a dump of a cluster.
    pub(crate) fn has_only_workloads(&self) -> bool {
        let policies: usize = self.policies.values().map(Vec::len).sum();
        self.objects() == self.workloads.len() + policies && !self.workloads.is_empty()
    }

    /// Whether the RolloutPolicies are known. A file without policies and without an empty list of policies does not tell whether there
    /// are any.
    pub(crate) fn knows_policies(&self) -> bool {
        !self.is_dump || self.has_empty_list || !self.policies.is_empty()
    }

    /// All workloads, sorted by kind, namespace and name.
    pub(crate) fn all_workloads(&self) -> &[Served] {
        &self.workloads
    }

    /// The names of the sources, separated by commas.
    pub(crate) fn source(&self) -> String {
        self.sources.join(", ")
    }

    /// The workloads of a kind, sorted by namespace and name.
    pub(crate) fn workloads(&self, kind: Kind) -> &[Served] {
        let begin = self.workloads.partition_point(|one| one.kind < kind);
        let end = self.workloads.partition_point(|one| one.kind <= kind);
        &self.workloads[begin..end]
    }

    /// The workloads of a kind in a namespace, sorted by name.
    pub(crate) fn workloads_in(&self, kind: Kind, namespace: &str) -> impl Iterator<Item = &Served> {
        let all = self.workloads(kind).iter();
        all.filter(move |one| one.namespace == namespace)
    }

    pub(crate) fn pods_in(&self, namespace: &str) -> &[Projected<v1::Pod>] {
        self.pods.get(namespace).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn revisions_in(&self, namespace: &str) -> &[Served] {
        self.revisions.get(namespace).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn policies_in(&self, namespace: &str) -> &[Served] {
        self.policies.get(namespace).map_or(&[], Vec::as_slice)
    }

    /// Puts a workload in the place of that of the same kind, namespace and name, if there is one.
    /// Returns its key.
    pub(crate) fn put_workload(&mut self, workload: Served) -> WorkloadKey {
        let key = workload.key();
        match self.workloads.binary_search_by(|one| one.key().cmp(&key)) {
            Ok(index) => self.workloads[index] = workload,
            Err(index) => self.workloads.insert(index, workload),
        }
        key
    }

    /// A workload.
    pub(crate) fn workload(&self, key: &WorkloadKey) -> Option<&Served> {
        let index = self.workloads.binary_search_by(|one| one.key().cmp(key));
        index.ok().map(|index| &self.workloads[index])
    }

    fn sort(&mut self) {
        self.workloads.sort_by(|a, b| a.order().cmp(&b.order()));
    }

    /// Moves the last workload to its place among the others, which are sorted.
    fn place_last(&mut self) {
        if let Some(last) = self.workloads.pop() {
            let at = self.workloads.partition_point(|one| one.order() < last.order());
            self.workloads.insert(at, last);
        }
    }

    /// Sorts the workloads, and checks that no object occurs twice.
    fn complete(&mut self) -> Result<(), InputError> {
        self.sort();
        let are_of_one = |a: &Served, b: &Served| (a.kind, &a.namespace) == (b.kind, &b.namespace);
        for sets in self.workloads.chunk_by(are_of_one) {
            unique(sets[0].kind, &sets[0].namespace, sets.iter().map(Served::named))?;
        }
        unique(
            Kind::Node,
            "",
            self.nodes
                .iter()
                .map(|node| (node.object.name.as_str(), &node.origin)),
        )?;
        for (namespace, pods) in &self.pods {
            unique(
                Kind::Pod,
                namespace,
                pods.iter().map(|pod| (pod.object.name.as_str(), &pod.origin)),
            )?;
        }
        for (kind, objects) in [
            (Kind::ControllerRevision, &self.revisions),
            (Kind::RolloutPolicy, &self.policies),
        ] {
            for (namespace, objects) in objects {
                unique(kind, namespace, objects.iter().map(Served::named))?;
            }
        }
        Ok(())
    }

    fn add(&mut self, kind: Kind, json: &RawValue, origin: Origin) -> Result<(), InputError> {
        let Header { metadata, .. } = parse(json, &origin)?;
        let Some(name) = metadata.name.filter(|name| !name.is_empty()) else {
            return Err(InputError::new(origin.at("metadata.name"), "is missing"));
        };
        let (name, namespace) = (
            name.into_owned(),
            metadata.namespace.unwrap_or_default().into_owned(),
        );
        if let Some(facts) = &mut self.facts {
            facts.add(kind, json);
        }
        match kind {
            Kind::Node => {
                let object = projected(|reader| nodewise_projection::node_from(reader), json, &origin)?;
                self.nodes.push(Projected { object, origin });
            }
            Kind::Pod => {
                let object = projected(|reader| nodewise_projection::pod_from(reader), json, &origin)?;
                // Vec's first allocation has room for four elements. Most namespaces of a small file have one pod.
                self.pods
                    .entry(namespace)
                    .or_insert_with(|| Vec::with_capacity(1))
                    .push(Projected { object, origin });
            }
            Kind::DaemonSet
            | Kind::ReplicaSet
            | Kind::Deployment
            | Kind::ControllerRevision
            | Kind::RolloutPolicy => {
                if kind.is_workload() {
                    check_selector(json, &origin, &title(kind, &namespace, &name))?;
                }
                let owner = metadata.owner_references.and_then(|owners| owners.0);
                let controller = owner.map(|owner| owner.uid.into_owned());
                let uid = metadata.uid.unwrap_or_default().into_owned();
                let served = Served {
                    kind,
                    namespace,
                    name,
                    uid,
                    controller,
                    json: kept(json),
                    origin,
                };
                if kind.is_workload() {
                    self.workloads.push(served);
                } else {
                    let namespace = served.namespace.clone();
                    let objects = if kind == Kind::RolloutPolicy {
                        &mut self.policies
                    } else {
                        &mut self.revisions
                    };
                    objects.entry(namespace).or_default().push(served);
                }
            }
        }
        Ok(())
    }
}

/// The JSON of an object without managedFields.
fn kept(json: &RawValue) -> Box<RawValue> {
    match nodewise_projection::without_managed_fields(json.get()) {
        Cow::Borrowed(_) => json.to_owned(),
        // The result is valid JSON, because the input was.
        Cow::Owned(kept) => RawValue::from_string(kept).unwrap_or_else(|_| json.to_owned()),
    }
}

/// Checks that no name occurs twice. Sorts references instead of building a table, to save memory.
fn unique<'a>(
    kind: Kind,
    namespace: &str,
    objects: impl Iterator<Item = (&'a str, &'a Origin)>,
) -> Result<(), InputError> {
    let mut objects: Vec<_> = objects.collect();
    objects.sort_by_key(|(name, _)| *name);
    let twice = objects.windows(2).find(|pair| pair[0].0 == pair[1].0);
    let Some([(name, first), (_, again)]) = twice else {
        return Ok(());
    };
    let problem = format!("{} was already given at {first}", title(kind, namespace, name));
    Err(InputError::new(again.at("metadata.name"), problem))
}

/// `DaemonSet kube-system/fluentd`, `Node node-1`.
fn title(kind: Kind, namespace: &str, name: &str) -> String {
    if namespace.is_empty() {
        format!("{} {name}", kind.name())
    } else {
        format!("{} {namespace}/{name}", kind.name())
    }
}
