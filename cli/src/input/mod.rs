//! The objects of a cluster, read from files or from an apiserver.
//!
//! DaemonSets and revisions are kept as JSON. Nodes and pods, of which there may be many, are kept as the protocol's projections.
//! Each object has its origin, so that errors can name it.

mod file;
mod live;
mod object;
mod origin;
mod yaml;

use nodewise_proto::v1;
use serde_json::value::RawValue;
use std::{borrow::Cow, collections::HashMap, sync::Arc};

use object::{Header, check_selector, parse, projected, without_position};
pub(crate) use origin::{InputError, Origin};

use crate::args::SourceArgs;

type Reader<'a> = serde_json::Deserializer<serde_json::de::StrRead<'a>>;

/// The kinds of objects that a plan needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    DaemonSet,
    Node,
    Pod,
    ControllerRevision,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::DaemonSet, Self::Node, Self::Pod, Self::ControllerRevision];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::DaemonSet => "DaemonSet",
            Self::Node => "Node",
            Self::Pod => "Pod",
            Self::ControllerRevision => "ControllerRevision",
        }
    }

    fn api_version(self) -> &'static str {
        match self {
            Self::DaemonSet | Self::ControllerRevision => "apps/v1",
            Self::Node | Self::Pod => "v1",
        }
    }

    /// Finds a kind by name. A kind of that name in another API group does not match.
    fn parse(kind: &str, api_version: Option<&str>) -> Option<Self> {
        Self::ALL.into_iter().find(|known| {
            known.name() == kind && api_version.is_none_or(|version| version == known.api_version())
        })
    }
}

/// An object that is kept as JSON.
#[derive(Debug)]
pub(crate) struct Served {
    kind: Kind,
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
    /// Sorted by namespace and name.
    pub(crate) daemon_sets: Vec<Served>,
    pub(crate) nodes: Vec<Projected<v1::Node>>,
    /// By namespace.
    pub(crate) pods: HashMap<String, Vec<Projected<v1::Pod>>>,
    /// By namespace.
    pub(crate) revisions: HashMap<String, Vec<Served>>,
    /// The names of the files, or the URL of the apiserver.
    pub(crate) sources: Vec<Arc<str>>,
}

impl Cluster {
    /// Reads the source that the command line names.
    pub(crate) async fn read(source: &SourceArgs, namespace: Option<&str>) -> Result<Self, InputError> {
        let mut cluster = Self::default();
        if source.files.is_empty() {
            live::read(
                &mut cluster,
                source.kubeconfig.as_deref(),
                source.context.as_deref(),
                namespace,
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
        self.daemon_sets.len() + self.nodes.len() + pods + revisions
    }

    /// The names of the sources, separated by commas.
    pub(crate) fn source(&self) -> String {
        self.sources.join(", ")
    }

    pub(crate) fn pods_in(&self, namespace: &str) -> &[Projected<v1::Pod>] {
        self.pods.get(namespace).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn revisions_in(&self, namespace: &str) -> &[Served] {
        self.revisions.get(namespace).map_or(&[], Vec::as_slice)
    }

    /// Sorts the DaemonSets, and checks that no object occurs twice.
    fn complete(&mut self) -> Result<(), InputError> {
        self.daemon_sets
            .sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        for sets in self.daemon_sets.chunk_by(|a, b| a.namespace == b.namespace) {
            unique(
                Kind::DaemonSet,
                &sets[0].namespace,
                sets.iter().map(Served::named),
            )?;
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
        for (namespace, revisions) in &self.revisions {
            unique(
                Kind::ControllerRevision,
                namespace,
                revisions.iter().map(Served::named),
            )?;
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
            Kind::DaemonSet | Kind::ControllerRevision => {
                if kind == Kind::DaemonSet {
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
                match kind {
                    Kind::DaemonSet => self.daemon_sets.push(served),
                    _ => self
                        .revisions
                        .entry(served.namespace.clone())
                        .or_default()
                        .push(served),
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
