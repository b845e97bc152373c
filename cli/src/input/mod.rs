//! The picture of a cluster, as read from files or from an apiserver.
//!
//! DaemonSets and revisions stay the JSON that was served; of nodes and pods, of which there may be many, only the
//! protocol's projections are kept. Everything remembers where it was read, so that a complaint about it can say so.

mod file;
mod live;
mod yaml;

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    fmt,
    sync::Arc,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt as _};
use nodewise_executor::project::{self, First, LookedFor, ProjectError};
use nodewise_proto::v1;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::args::SourceArgs;

type Reader<'a> = serde_json::Deserializer<serde_json::de::StrRead<'a>>;

/// Something is wrong with the input. One line that names the place and the field.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {problem}")]
pub(crate) struct InputError {
    place: String,
    problem: String,
}

impl InputError {
    fn new(place: impl fmt::Display, problem: impl fmt::Display) -> Self {
        Self {
            place: place.to_string(),
            problem: problem.to_string(),
        }
    }
}

/// Where an object was read.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    /// The file or the apiserver.
    source: Arc<str>,
    /// The document within the file, from 1, when there are several.
    document: Option<u32>,
    /// The index among the document's items; `None` when the object is the whole document.
    item: Option<u32>,
}

impl Origin {
    /// A field of the object, given as a path below it: `cluster.json: items[3].metadata.name`.
    pub(crate) fn at(&self, field: &str) -> String {
        let field = field.trim_start_matches(['.', ':', ' ']);
        match (self.item.is_some(), field.is_empty()) {
            (_, true) => self.to_string(),
            (true, false) => format!("{self}.{field}"),
            (false, false) => format!("{self}: {field}"),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        if let Some(document) = self.document {
            write!(f, ": document {document}")?;
        }
        if let Some(item) = self.item {
            write!(f, ": items[{item}]")?;
        }
        Ok(())
    }
}

/// The kinds that a picture consists of.
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

    /// An object of a kind of the same name in another API group is something else.
    fn parse(kind: &str, api_version: Option<&str>) -> Option<Self> {
        Self::ALL.into_iter().find(|known| {
            known.name() == kind && api_version.is_none_or(|version| version == known.api_version())
        })
    }
}

/// An object as it was served.
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

/// An object reduced to what the protocol carries.
#[derive(Debug)]
pub(crate) struct Projected<T> {
    pub(crate) object: T,
    pub(crate) origin: Origin,
}

/// The picture of a cluster, or of a part of it.
#[derive(Debug, Default)]
pub(crate) struct Cluster {
    /// Ordered by namespace and name.
    pub(crate) daemon_sets: Vec<Served>,
    pub(crate) nodes: Vec<Projected<v1::Node>>,
    /// By namespace.
    pub(crate) pods: HashMap<String, Vec<Projected<v1::Pod>>>,
    /// By namespace.
    pub(crate) revisions: HashMap<String, Vec<Served>>,
    /// The files or the apiserver.
    pub(crate) sources: Vec<Arc<str>>,
}

impl Cluster {
    /// Reads what the command line names.
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

    /// Reads one text as a file of that name.
    pub(crate) fn read_text(name: &str, text: Vec<u8>) -> Result<Self, InputError> {
        let mut cluster = Self::default();
        let source: Arc<str> = name.into();
        file::add_text(&mut cluster, &source, &file::text(text, &source)?)?;
        cluster.complete()?;
        Ok(cluster)
    }

    /// How many objects were read.
    pub(crate) fn objects(&self) -> usize {
        let pods: usize = self.pods.values().map(Vec::len).sum();
        let revisions: usize = self.revisions.values().map(Vec::len).sum();
        self.daemon_sets.len() + self.nodes.len() + pods + revisions
    }

    /// The sources in one phrase.
    pub(crate) fn source(&self) -> String {
        self.sources.join(", ")
    }

    pub(crate) fn pods_in(&self, namespace: &str) -> &[Projected<v1::Pod>] {
        self.pods.get(namespace).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn revisions_in(&self, namespace: &str) -> &[Served] {
        self.revisions.get(namespace).map_or(&[], Vec::as_slice)
    }

    /// Orders what was read. No object may be there twice.
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
                let object = projected(|reader| project::node_from(reader), json, &origin)?;
                self.nodes.push(Projected { object, origin });
            }
            Kind::Pod => {
                let object = projected(|reader| project::pod_from(reader), json, &origin)?;
                // Most namespaces of a small file have one pod; the first one shall not take the room of four.
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

/// What is sent of an object that travels as JSON.
fn kept(json: &RawValue) -> Box<RawValue> {
    match project::without_managed_fields(json.get()) {
        Cow::Borrowed(_) => json.to_owned(),
        // What was JSON is JSON still.
        Cow::Owned(kept) => RawValue::from_string(kept).unwrap_or_else(|_| json.to_owned()),
    }
}

/// Finds the first name that is there twice, with a list of references and not a table of names: a file may consist of
/// names.
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

/// What every object starts with.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object")]
struct Header<'a> {
    #[serde(borrow)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    api_version: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    metadata: Metadata<'a>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object")]
struct Metadata<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    namespace: Option<Cow<'a, str>>,
    #[serde(borrow)]
    uid: Option<Cow<'a, str>>,
    #[serde(borrow)]
    owner_references: Option<First<Owner<'a>>>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct Owner<'a> {
    #[serde(borrow, default)]
    uid: Cow<'a, str>,
    #[serde(default)]
    controller: bool,
}

impl LookedFor for Owner<'_> {
    fn is_it(&self) -> bool {
        self.controller
    }
}

/// The parts of a DaemonSet that its selector is about.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct Selecting {
    spec: Option<SelectingSpec>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct SelectingSpec {
    selector: Option<LabelSelector>,
    template: Option<Template>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct Template {
    metadata: Option<TemplateMetadata>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct TemplateMetadata {
    labels: Option<BTreeMap<String, String>>,
}

/// The apiserver refuses a DaemonSet whose selector does not match its template, since each of its pods would be released
/// at once and replaced for ever. Whatever else may be wrong with a DaemonSet, the service says.
fn check_selector(json: &RawValue, origin: &Origin, title: &str) -> Result<(), InputError> {
    let Selecting { spec } = parse(json, origin)?;
    let Some(SelectingSpec {
        selector: Some(selector),
        template: Some(template),
    }) = spec
    else {
        return Ok(());
    };
    let labels = template
        .metadata
        .and_then(|metadata| metadata.labels)
        .unwrap_or_default();
    let Ok(selector) = Selector::try_from(selector) else {
        return Ok(());
    };
    if selector.selects_all() || selector.matches(&labels) {
        return Ok(());
    }
    let problem = format!("`{selector}` does not match spec.template.metadata.labels ({title})");
    Err(InputError::new(origin.at("spec.selector"), problem))
}

/// Parses a part of an object; a failure names the field.
fn parse<'a, T: Deserialize<'a>>(json: &'a RawValue, origin: &Origin) -> Result<T, InputError> {
    serde_path_to_error::deserialize(&mut Reader::from_str(json.get())).map_err(|error| {
        let path = error.path().to_string();
        let field = if path == "." { "" } else { &path };
        InputError::new(origin.at(field), without_position(&error.inner().to_string()))
    })
}

/// Projects an object while it is read. The projection's error begins with the path of the field.
fn projected<T>(
    project: impl FnOnce(&mut Reader<'_>) -> Result<T, ProjectError>,
    json: &RawValue,
    origin: &Origin,
) -> Result<T, InputError> {
    project(&mut Reader::from_str(json.get()))
        .map_err(|error| InputError::new(origin.at(&error.path), without_position(&error.message)))
}

/// serde_json's positions count from the start of the object, which helps nobody.
fn without_position(error: &str) -> &str {
    error.rfind(" at line ").map_or(error, |end| &error[..end])
}
