//! A running cluster: lists, never writes and never watches.

use std::{path::Path, sync::Arc};

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use nodewise_executor::answer;
use nodewise_telemetry::with_causes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Cluster, InputError, Kind, Origin};

/// Objects asked for at once, as kubectl does.
const PAGE: u32 = 500;

/// Lists everything of one namespace, or of all.
pub(super) async fn read(
    cluster: &mut Cluster,
    kubeconfig: Option<&Path>,
    context: Option<&str>,
    namespace: Option<&str>,
) -> Result<(), InputError> {
    let config = config(kubeconfig, context).await?;
    let source: Arc<str> = config.cluster_url.to_string().trim_end_matches('/').into();
    let client = Client::try_from(config).map_err(|error| InputError::new(&source, one_line(&error)))?;
    cluster.sources.push(Arc::clone(&source));
    let (daemon_sets, nodes, pods, revisions) = futures::try_join!(
        list(&client, &source, Kind::DaemonSet, namespace),
        list(&client, &source, Kind::Node, None),
        list(&client, &source, Kind::Pod, namespace),
        list(&client, &source, Kind::ControllerRevision, namespace),
    )?;
    let lists = [
        (Kind::DaemonSet, daemon_sets),
        (Kind::Node, nodes),
        (Kind::Pod, pods),
        (Kind::ControllerRevision, revisions),
    ];
    for (kind, items) in lists {
        for (index, item) in (0..).zip(items) {
            let list: Arc<str> = format!("{source}: {}", plural(kind)).into();
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

async fn config(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<Config, InputError> {
    let options = KubeConfigOptions {
        context: context.map(str::to_owned),
        ..KubeConfigOptions::default()
    };
    if let Some(path) = kubeconfig {
        let place = path.display();
        if !path.exists() {
            return Err(InputError::new(place, "no such file"));
        }
        let kubeconfig =
            Kubeconfig::read_from(path).map_err(|error| InputError::new(&place, one_line(&error)))?;
        return Config::from_custom_kubeconfig(kubeconfig, &options)
            .await
            .map_err(|error| InputError::new(&place, one_line(&error)));
    }
    let found = if context.is_some() {
        Config::from_kubeconfig(&options)
            .await
            .map_err(|error| one_line(&error))
    } else {
        Config::infer()
            .await
            .map_err(|_| "neither a kubeconfig nor a service account was found".to_owned())
    };
    found.map_err(|problem| {
        InputError::new(
            "no cluster to ask",
            format!("{problem}; give -f FILE or --kubeconfig PATH"),
        )
    })
}

fn plural(kind: Kind) -> &'static str {
    match kind {
        Kind::DaemonSet => "daemonsets",
        Kind::Node => "nodes",
        Kind::Pod => "pods",
        Kind::ControllerRevision => "controllerrevisions",
    }
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: PageMetadata,
    items: Vec<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
struct PageMetadata {
    #[serde(rename = "continue")]
    next: Option<String>,
}

async fn list(
    client: &Client,
    source: &str,
    kind: Kind,
    namespace: Option<&str>,
) -> Result<Vec<Box<RawValue>>, InputError> {
    let root = match kind {
        Kind::DaemonSet | Kind::ControllerRevision => "/apis/apps/v1",
        Kind::Node | Kind::Pod => "/api/v1",
    };
    let scope = namespace
        .map(|namespace| format!("/namespaces/{namespace}"))
        .unwrap_or_default();
    let path = format!("{root}{scope}/{}", plural(kind));
    let failed = |error: String| InputError::new(source, format!("cannot list {}: {error}", plural(kind)));
    let mut items = Vec::new();
    let mut next = None::<String>;
    loop {
        let token = next.map(|token| format!("&continue={token}")).unwrap_or_default();
        let request = http::Request::get(format!("{path}?limit={PAGE}{token}"))
            .body(Vec::new())
            .map_err(|error| failed(error.to_string()))?;
        let text = answer::text(client, request)
            .await
            .map_err(|error| failed(one_line(&error)))?;
        let page: Page = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
        items.extend(page.items);
        match page.metadata.next.filter(|token| !token.is_empty()) {
            Some(token) => next = Some(token),
            None => return Ok(items),
        }
    }
}

/// An error and its causes, without repeating what the outer one already says.
fn one_line(error: &(dyn std::error::Error + 'static)) -> String {
    if let Some(kube::Error::Api(status)) = error.downcast_ref() {
        return status.message.clone();
    }
    with_causes(error.to_string(), error).replace('\n', " ")
}
