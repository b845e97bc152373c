//! Reads the objects of a running cluster with list requests. It never writes.

use std::{io, path::Path, sync::Arc};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use kube::{
    Client, Config,
    config::{AuthInfo, KubeConfigOptions, Kubeconfig, KubeconfigError},
};
use nodewise_runtime::{
    connect,
    list::{ListPager, Page},
};
use nodewise_telemetry::with_causes;
use serde_json::value::RawValue;

use super::{Cluster, InputError, Origin};
use crate::{kind::Kind, target::Target};

/// The page size of a list, as in kubectl.
const PAGE: u32 = 500;

/// The lists of one command.
struct Lister<'a> {
    client: Client,
    /// The URL of the apiserver.
    source: Arc<str>,
    /// Every kind that the command reads, for messages.
    kinds: &'a [Kind],
}

/// Lists what the plans for these targets read: of one namespace, or of all.
///
/// If every target has a name and no namespace is given, the workloads are listed first. If they are in one namespace, the other
/// objects are listed only there.
pub(super) async fn read(
    cluster: &mut Cluster,
    kubeconfig: Option<&Path>,
    context: Option<&str>,
    (targets, namespace): (&[Target], Option<&str>),
) -> Result<(), InputError> {
    let (client, source) = connect(kubeconfig, context).await?;
    cluster.sources.push(Arc::clone(&source));
    let kinds = kinds(targets);
    let lister = Lister {
        client,
        source,
        kinds: &kinds,
    };
    if namespace.is_some() || targets.iter().any(|target| target.name.is_none()) {
        return lister.add(cluster, &kinds, namespace).await;
    }
    let named = |kind: &Kind| targets.iter().any(|target| target.kind == *kind);
    let (workloads, others): (Vec<_>, Vec<_>) = kinds.iter().copied().partition(named);
    lister.add(cluster, &workloads, None).await?;
    let is_named =
        |target: &&Target, name: &str, kind| target.kind == kind && target.name.as_deref() == Some(name);
    let mut namespaces: Vec<String> = (cluster.workloads.iter())
        .filter(|one| {
            targets
                .iter()
                .any(|target| is_named(&target, &one.name, one.kind))
        })
        .map(|one| one.namespace.clone())
        .collect();
    namespaces.sort_unstable();
    namespaces.dedup();
    match namespaces.as_slice() {
        // Nothing can be planned. The error says so.
        [] => Ok(()),
        [one] => lister.add(cluster, &others, Some(one)).await,
        _ => lister.add(cluster, &others, None).await,
    }
}

/// Lists the objects of these kinds: of one namespace, or of all.
pub(super) async fn read_kinds(
    cluster: &mut Cluster,
    (kubeconfig, context): (Option<&Path>, Option<&str>),
    kinds: &[Kind],
    namespace: Option<&str>,
) -> Result<(), InputError> {
    let (client, source) = connect(kubeconfig, context).await?;
    cluster.sources.push(Arc::clone(&source));
    let lister = Lister {
        client,
        source,
        kinds,
    };
    lister.add(cluster, kinds, namespace).await
}

/// The kinds that plans for these targets read.
fn kinds(targets: &[Target]) -> Vec<Kind> {
    let mut kinds = Vec::new();
    for kind in targets.iter().flat_map(|target| target.kind.needs()) {
        if !kinds.contains(kind) {
            kinds.push(*kind);
        }
    }
    kinds
}

impl Lister<'_> {
    /// Lists these kinds, and adds the objects to the cluster.
    async fn add(
        &self,
        cluster: &mut Cluster,
        kinds: &[Kind],
        namespace: Option<&str>,
    ) -> Result<(), InputError> {
        let source = &self.source;
        let lists = futures::future::join_all(kinds.iter().map(|kind| {
            let namespace = namespace.filter(|_| *kind != Kind::Node);
            list(&self.client, *kind, namespace)
        }));
        let lists = lists.await.into_iter().zip(kinds);
        let lists = all(lists.map(|(items, kind)| (*kind, items)))
            .map_err(|failed| failed.into_input_error(source, self.kinds, namespace))?;
        for (kind, items) in lists {
            for (index, item) in (0..).zip(items) {
                let list: Arc<str> = format!("{source}: {}", kind.plural()).into();
                cluster.add(
                    kind,
                    &item,
                    Origin {
                        source: list,
                        document: None,
                        item: Some(index),
                    },
                )?;
            }
        }
        Ok(())
    }
}

/// A client of the cluster, and the URL of its apiserver.
pub(crate) async fn connect(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
) -> Result<(Client, Arc<str>), InputError> {
    let config = config(kubeconfig, context).await?;
    let source: Arc<str> = config.cluster_url.to_string().trim_end_matches('/').into();
    let client = connect::client(config).map_err(|error| InputError::new(&source, one_line(&error)))?;
    Ok((client, source))
}

/// How to reach the cluster of a kubeconfig, without the user that it names.
pub(crate) async fn cluster_only(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
) -> Result<Config, InputError> {
    let mut config = config(kubeconfig, context).await?;
    config.auth_info = AuthInfo::default();
    Ok(config)
}

/// As [`connect`]; `None` if the command line names no cluster, and there is neither a kubeconfig nor a service account.
pub(crate) async fn connect_if_any(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
) -> Result<Option<(Client, Arc<str>)>, InputError> {
    let is_named = kubeconfig.is_some()
        || context.is_some()
        || std::env::var_os("KUBECONFIG").is_some_and(|paths| !paths.is_empty());
    let is_there = is_named
        || match Config::from_kubeconfig(&KubeConfigOptions::default()).await {
            Err(error) => !is_absent(&error) || Config::incluster().is_ok(),
            Ok(_) => true,
        };
    if !is_there {
        return Ok(None);
    }
    connect(kubeconfig, context).await.map(Some)
}

async fn config(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<Config, InputError> {
    let options = KubeConfigOptions {
        context: context.map(str::to_owned),
        ..KubeConfigOptions::default()
    };
    if let Some(path) = kubeconfig {
        let file = path.display();
        if !path.exists() {
            return Err(InputError::new(file, "no such file"));
        }
        let kubeconfig =
            Kubeconfig::read_from(path).map_err(|error| InputError::new(&file, one_line(&error)))?;
        return Config::from_custom_kubeconfig(kubeconfig, &options)
            .await
            .map_err(|error| InputError::new(&file, one_line(&error)));
    }
    let is_named = context.is_some() || std::env::var_os("KUBECONFIG").is_some_and(|paths| !paths.is_empty());
    let found = match Config::from_kubeconfig(&options).await {
        Err(error) if !is_named && is_absent(&error) => {
            Config::incluster().map_err(|_| "neither a kubeconfig nor a service account was found".to_owned())
        }
        found => found.map_err(|error| one_line(&error)),
    };
    found.map_err(|problem| {
        InputError::new(
            "no cluster to ask",
            format!("{problem}; give -f FILE or --kubeconfig PATH"),
        )
    })
}

/// Whether the error means that there is no kubeconfig, or no home directory.
fn is_absent(error: &KubeconfigError) -> bool {
    match error {
        KubeconfigError::FindPath => true,
        KubeconfigError::ReadConfig(error, _) => error.kind() == io::ErrorKind::NotFound,
        _ => false,
    }
}

type Items = Vec<Box<RawValue>>;

/// A failed list.
#[derive(Debug)]
enum Failed {
    /// The user may not list these kinds. The text is the apiserver's message about the first.
    Forbidden(Vec<Kind>, String),
    /// Another error.
    Other(Kind, String),
}

impl Failed {
    fn into_input_error(self, source: &str, needed: &[Kind], namespace: Option<&str>) -> InputError {
        let (kinds, said) = match self {
            Self::Forbidden(kinds, said) => (kinds, said),
            Self::Other(kind, said) => {
                return InputError::new(source, format!("cannot list {}: {said}", kind.plural()));
            }
        };
        let nodes = if needed.contains(&Kind::Node) {
            "nodes of the cluster and, "
        } else {
            ""
        };
        let is_named = |kind: &Kind| *kind != Kind::Node && (!kind.is_optional() || kinds.contains(kind));
        let needed = needed.iter().filter(|kind| is_named(kind));
        let needed: Vec<_> = needed.map(|kind| kind.plural()).collect();
        let needed = match needed.as_slice() {
            [others @ .., last] if !others.is_empty() => format!("{} and {last}", others.join(", ")),
            _ => needed.concat(),
        };
        let hint = if namespace.is_some() {
            format!("{nodes}in this namespace, {needed} are needed")
        } else {
            format!(
                "all namespaces are asked for; with -n NAMESPACE {nodes}in that namespace, {needed} are enough"
            )
        };
        let kinds = kinds.into_iter().map(Kind::plural).collect::<Vec<_>>().join(", ");
        InputError::new(source, format!("no right to list {kinds}: {said} ({hint})"))
    }
}

/// All lists, or the error. If several kinds are forbidden, the error names all of them.
fn all(lists: impl Iterator<Item = (Kind, Result<Items, Failed>)>) -> Result<Vec<(Kind, Items)>, Failed> {
    let (mut found, mut forbidden) = (Vec::new(), None);
    for (kind, items) in lists {
        match items {
            Ok(items) => found.push((kind, items)),
            Err(Failed::Forbidden(kinds, said)) => {
                let (all, _) = forbidden.get_or_insert_with(|| (Vec::new(), said));
                all.extend(kinds);
            }
            Err(otherwise) => return Err(otherwise),
        }
    }
    match forbidden {
        Some((kinds, said)) => Err(Failed::Forbidden(kinds, said)),
        None => Ok(found),
    }
}

async fn list(client: &Client, kind: Kind, namespace: Option<&str>) -> Result<Items, Failed> {
    let root = match kind.api_version() {
        "v1" => "/api/v1".to_owned(),
        version => format!("/apis/{version}"),
    };
    if kind.is_optional() && !is_installed(client, &root, kind).await? {
        return Ok(Items::new());
    }
    let scope = namespace
        .map(|namespace| format!("/namespaces/{namespace}"))
        .unwrap_or_default();
    let path = format!("{root}{scope}/{}", kind.plural());
    let otherwise = |error: String| Failed::Other(kind, error);
    let mut items = Vec::new();
    let mut pager = ListPager::new(path, PAGE);
    loop {
        let text = pager.next(client).await.map_err(|error| match &error {
            kube::Error::Api(status) if status.is_forbidden() => {
                Failed::Forbidden(vec![kind], one_line(&error))
            }
            _ => otherwise(one_line(&error)),
        })?;
        let Some(text) = text else { continue };
        let page = Page::read(&text).map_err(|error| otherwise(error.to_string()))?;
        items.extend(page.items.into_iter().flatten().map(ToOwned::to_owned));
        if !pager.advance(&page.metadata) {
            return Ok(items);
        }
    }
}

/// Whether the apiserver serves a kind of a group that may not be installed. `None` if it does not say.
pub(super) async fn is_served(client: &Client, kind: Kind) -> Option<bool> {
    let root = format!("/apis/{}", kind.api_version());
    is_installed(client, &root, kind).await.ok()
}

/// Whether the apiserver serves a resource. Every user may ask that; a list would be forbidden to users without the right to it, also if
/// it is not installed.
async fn is_installed(client: &Client, root: &str, kind: Kind) -> Result<bool, Failed> {
    let failed = |error: &(dyn std::error::Error + 'static)| Failed::Other(kind, one_line(error));
    let request = http::Request::get(root)
        .body(Vec::new())
        .map_err(|error| failed(&error))?;
    match client.request::<APIResourceList>(request).await {
        Ok(served) => Ok(served.resources.iter().any(|one| one.name == kind.plural())),
        // An apiserver that does not know the group answers without a Status, and thus without its reason.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(error) => Err(failed(&error)),
    }
}

/// An error and its causes in one line. For an error of the apiserver, its message.
pub(crate) fn one_line(error: &(dyn std::error::Error + 'static)) -> String {
    if let Some(kube::Error::Api(status)) = error.downcast_ref() {
        return status.message.clone();
    }
    with_causes(error.to_string(), error).replace('\n', " ")
}
