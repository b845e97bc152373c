//! The kinds of objects that are watched, and how each is read off the wire.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::event::{ClusterEvent, DaemonSet, Delta, Node, Pod, Resource, Revision};
use crate::project::ProjectError;
use crate::store::KIND;

/// A kind of object as it is watched.
pub(super) trait Watched: Sized + Send + 'static {
    const RESOURCE: Resource;
    /// The path of its API group.
    const API: &'static str;
    /// Objects in a page of a list. A page is in memory as a whole, and each object may take a megabyte or more.
    const PAGE_SIZE: u32;

    /// Reads the JSON that the apiserver sent.
    fn read(json: &str) -> Result<Self, ProjectError>;
    fn event(delta: Delta<Self>) -> ClusterEvent;
    /// Whether one of them may be passed over when it cannot be read. Not where others would be planned around it: a pod that is
    /// not seen gets another beside it, and the pods of a node that is not seen are deleted.
    const MAY_BE_MISSING: bool;

    /// The objects of a page of a list that is not complete yet, as an event of their own where they are so many that they must not
    /// pile up; else they are given back. `is_first` after a list that was given up, and on the first page.
    fn page(objects: Vec<Self>, is_first: bool) -> Result<ClusterEvent, Vec<Self>> {
        let _ = is_first;
        Err(objects)
    }

    /// Whether it is worth keeping in a list.
    fn matters(&self) -> bool {
        true
    }
}

/// Lists leave out what every item of theirs is; the object is completed so that it looks the same from everywhere.
fn complete<'a>(json: &'a str, kind: &str) -> Cow<'a, str> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct TypeMeta<'a> {
        #[serde(borrow)]
        api_version: Option<&'a RawValue>,
        #[serde(borrow)]
        kind: Option<&'a RawValue>,
    }
    let (
        Ok(TypeMeta {
            api_version,
            kind: own,
        }),
        Some(members),
    ) = (serde_json::from_str(json), json.trim_start().strip_prefix('{'))
    else {
        return json.into();
    };
    let version = api_version
        .is_none()
        .then(|| "\"apiVersion\":\"apps/v1\"".to_owned());
    let kind = own.is_none().then(|| format!("\"kind\":\"{kind}\""));
    let missing: Vec<_> = [version, kind].into_iter().flatten().collect();
    if missing.is_empty() {
        return json.into();
    }
    let comma = if members.trim_start().starts_with('}') {
        ""
    } else {
        ","
    };
    format!("{{{}{comma}{members}", missing.join(",")).into()
}

/// An object of a list as it is by itself.
pub(crate) fn completed(resource: Resource, json: &str) -> Cow<'_, str> {
    match resource {
        Resource::DaemonSets => complete(json, KIND),
        Resource::Revisions => complete(json, "ControllerRevision"),
        // These are not kept as they are served.
        Resource::Pods | Resource::Nodes => json.into(),
    }
}

/// Objects in a page of a list.
pub(crate) fn page_size(resource: Resource) -> u32 {
    match resource {
        Resource::DaemonSets => DaemonSet::PAGE_SIZE,
        Resource::Pods => Pod::PAGE_SIZE,
        Resource::Nodes => Node::PAGE_SIZE,
        Resource::Revisions => Revision::PAGE_SIZE,
    }
}

impl Watched for DaemonSet {
    const RESOURCE: Resource = Resource::DaemonSets;
    const PAGE_SIZE: u32 = 250;
    const MAY_BE_MISSING: bool = true;
    const API: &'static str = "/apis/apps/v1";

    fn read(json: &str) -> Result<Self, ProjectError> {
        Self::from_text(&completed(Self::RESOURCE, json))
    }
    fn event(delta: Delta<Self>) -> ClusterEvent {
        ClusterEvent::DaemonSets(delta)
    }
}

impl Watched for Revision {
    const RESOURCE: Resource = Resource::Revisions;
    const PAGE_SIZE: u32 = 50;
    const MAY_BE_MISSING: bool = true;
    const API: &'static str = "/apis/apps/v1";

    fn read(json: &str) -> Result<Self, ProjectError> {
        Self::from_text(&completed(Self::RESOURCE, json))
    }
    fn event(delta: Delta<Self>) -> ClusterEvent {
        ClusterEvent::Revisions(delta)
    }
    fn page(revisions: Vec<Self>, is_first: bool) -> Result<ClusterEvent, Vec<Self>> {
        Ok(ClusterEvent::RevisionPage { revisions, is_first })
    }
    fn matters(&self) -> bool {
        self.controller
            .as_ref()
            .is_none_or(|controller| controller.kind == KIND)
    }
}

impl Watched for Pod {
    const RESOURCE: Resource = Resource::Pods;
    const PAGE_SIZE: u32 = 250;
    const MAY_BE_MISSING: bool = false;
    const API: &'static str = "/api/v1";

    fn read(json: &str) -> Result<Self, ProjectError> {
        Self::from_text(json)
    }
    fn event(delta: Delta<Self>) -> ClusterEvent {
        ClusterEvent::Pods(delta)
    }
    fn page(pods: Vec<Self>, is_first: bool) -> Result<ClusterEvent, Vec<Self>> {
        Ok(ClusterEvent::PodPage { pods, is_first })
    }
    fn matters(&self) -> bool {
        self.projection
            .controller
            .as_ref()
            .is_none_or(|controller| controller.kind == KIND)
    }
}

impl Watched for Node {
    const RESOURCE: Resource = Resource::Nodes;
    const PAGE_SIZE: u32 = 1_000;
    const MAY_BE_MISSING: bool = false;
    const API: &'static str = "/api/v1";

    fn read(json: &str) -> Result<Self, ProjectError> {
        Self::from_text(json)
    }
    fn event(delta: Delta<Self>) -> ClusterEvent {
        ClusterEvent::Nodes(delta)
    }
}
