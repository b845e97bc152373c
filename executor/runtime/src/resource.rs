//! The resources of the Kubernetes API that are watched and written.

use std::borrow::Cow;
use std::fmt;

use nodewise_proto::v1;
use serde::Deserialize;
use serde_json::value::RawValue;

/// A resource of the Kubernetes API, as paths, lists and RBAC rules name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The version of the group.
    pub version: &'static str,
    /// The name in paths, in lower case.
    pub plural: &'static str,
    /// The kind of its objects.
    pub kind: &'static str,
    /// Whether the resource is namespaced.
    pub is_namespaced: bool,
    /// Whether the caches keep the JSON of its objects, as the apiserver serves a single object.
    pub is_kept_as_served: bool,
    /// Most objects in a page of a list. A whole page is in memory, and each object may take a megabyte or more.
    pub page_size: u32,
}

impl Resource {
    /// The resources from which plans are made, besides the workloads.
    pub const INPUTS: [Self; 4] = [Self::PODS, Self::NODES, Self::REVISIONS, Self::ROLLOUT_POLICIES];

    /// v1 pods.
    pub const PODS: Self = Self {
        group: "",
        version: "v1",
        plural: "pods",
        kind: "Pod",
        is_namespaced: true,
        is_kept_as_served: false,
        page_size: 250,
    };

    /// v1 nodes.
    pub const NODES: Self = Self {
        group: "",
        version: "v1",
        plural: "nodes",
        kind: "Node",
        is_namespaced: false,
        is_kept_as_served: false,
        page_size: 1_000,
    };

    /// apps/v1 controllerrevisions.
    pub const REVISIONS: Self = Self {
        group: "apps",
        version: "v1",
        plural: "controllerrevisions",
        kind: "ControllerRevision",
        is_namespaced: true,
        is_kept_as_served: true,
        page_size: 50,
    };

    /// nodewise.dev/v1alpha1 rolloutpolicies, a custom resource that may not be installed.
    pub const ROLLOUT_POLICIES: Self = Self {
        group: "nodewise.dev",
        version: "v1alpha1",
        plural: "rolloutpolicies",
        kind: "RolloutPolicy",
        is_namespaced: true,
        is_kept_as_served: true,
        page_size: 50,
    };

    /// The resource that `name` identifies, if it is one of `known`.
    #[must_use]
    pub fn find(known: impl IntoIterator<Item = Self>, name: &v1::GroupVersionResource) -> Option<Self> {
        let name = (&*name.group, &*name.version, &*name.resource);
        known
            .into_iter()
            .find(|known| (known.group, known.version, known.plural) == name)
    }

    /// The path of the API group and version.
    pub(crate) fn api(self) -> String {
        match self.group {
            "" => format!("/api/{}", self.version),
            group => format!("/apis/{group}/{}", self.version),
        }
    }

    /// The path of the collection in one namespace, or in all of them.
    pub(crate) fn path(self, namespace: Option<&str>) -> String {
        let (api, plural) = (self.api(), self.plural);
        match namespace.filter(|_| self.is_namespaced) {
            Some(namespace) => format!("{api}/namespaces/{namespace}/{plural}"),
            None => format!("{api}/{plural}"),
        }
    }

    /// Adds `apiVersion` and `kind` to an item of a list, which has neither, if the caches keep the JSON of this resource.
    #[must_use]
    pub fn completed(self, json: &str) -> Cow<'_, str> {
        if self.is_kept_as_served {
            self.complete(json)
        } else {
            json.into()
        }
    }

    fn complete(self, json: &str) -> Cow<'_, str> {
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
            .then(|| format!("\"apiVersion\":\"{}\"", self.api_version()));
        let kind = own.is_none().then(|| format!("\"kind\":\"{}\"", self.kind));
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

    /// `apiVersion` of its objects, such as `apps/v1`.
    #[must_use]
    pub fn api_version(self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.plural)
    }
}
