//! The picture of a cluster, as read from files or from an apiserver.
//!
//! DaemonSets and revisions stay the JSON that was served; of nodes and pods, of which there may be many, only the
//! protocol's projections are kept. Everything remembers where it was read, so that a complaint about it can say so.

mod file;
mod live;

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap, hash_map},
    fmt,
    sync::Arc,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt as _};
use nodewise_executor::project;
use nodewise_proto::v1;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::args::SourceArgs;

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
    seen: HashMap<(Kind, String, String), Origin>,
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
        cluster
            .daemon_sets
            .sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        // Needed for nothing but finding duplicates.
        cluster.seen = HashMap::new();
        Ok(cluster)
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

    fn add(&mut self, kind: Kind, json: &RawValue, origin: Origin) -> Result<(), InputError> {
        let Header { metadata, .. } = parse(json, &origin)?;
        let Some(name) = metadata.name.filter(|name| !name.is_empty()) else {
            return Err(InputError::new(origin.at("metadata.name"), "is missing"));
        };
        let (name, namespace) = (
            name.into_owned(),
            metadata.namespace.unwrap_or_default().into_owned(),
        );
        match self.seen.entry((kind, namespace.clone(), name.clone())) {
            hash_map::Entry::Vacant(entry) => entry.insert(origin.clone()),
            hash_map::Entry::Occupied(first) => {
                let problem = format!(
                    "{} was already given at {}",
                    title(kind, &namespace, &name),
                    first.get()
                );
                return Err(InputError::new(origin.at("metadata.name"), problem));
            }
        };
        match kind {
            Kind::Node => {
                let object = projected(project::node, json, &origin)?;
                self.nodes.push(Projected { object, origin });
            }
            Kind::Pod => {
                let object = projected(project::pod, json, &origin)?;
                self.pods
                    .entry(namespace)
                    .or_default()
                    .push(Projected { object, origin });
            }
            Kind::DaemonSet | Kind::ControllerRevision => {
                if kind == Kind::DaemonSet {
                    check_selector(json, &origin, &title(kind, &namespace, &name))?;
                }
                let controller = metadata
                    .owner_references
                    .iter()
                    .flatten()
                    .find(|owner| owner.controller)
                    .map(|owner| owner.uid.to_string());
                let uid = metadata.uid.unwrap_or_default().into_owned();
                let served = Served {
                    kind,
                    namespace,
                    name,
                    uid,
                    controller,
                    json: json.to_owned(),
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
    owner_references: Option<Vec<Owner<'a>>>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct Owner<'a> {
    #[serde(borrow, default)]
    uid: Cow<'a, str>,
    #[serde(default)]
    controller: bool,
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
    let mut deserializer = serde_json::Deserializer::from_str(json.get());
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        let field = if path == "." { "" } else { &path };
        InputError::new(origin.at(field), without_position(error.inner()))
    })
}

fn projected<T, E: fmt::Display>(
    project: impl FnOnce(&serde_json::Value) -> Result<T, E>,
    json: &RawValue,
    origin: &Origin,
) -> Result<T, InputError> {
    let value = serde_json::from_str(json.get())
        .map_err(|error| InputError::new(origin, without_position(&error)))?;
    // The projection's error begins with the path of the field.
    project(&value).map_err(|error| {
        let error = error.to_string();
        match error.split_once(": ") {
            Some((field, problem)) => InputError::new(origin.at(field), problem),
            None => InputError::new(origin, error),
        }
    })
}

/// serde_json's positions count from the start of the object, which helps nobody.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}
