//! What people want to know about a ControllerRevision or a ReplicaSet.

use jiff::Timestamp;
use nodewise_proto::workload::{HASH_LABEL, TEMPLATE_HASH_LABEL};
use serde_json::Value;

use super::read;

/// The annotation of a ReplicaSet with the number of its revision.
const REVISION: &str = "/metadata/annotations/deployment.kubernetes.io~1revision";

/// Facts about one template of a workload, kept in a ControllerRevision or a ReplicaSet.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TemplateFacts {
    /// metadata.name.
    pub name: String,
    /// metadata.uid.
    pub uid: String,
    /// The number of the revision. 0 if it has none.
    pub number: i64,
    /// The label with the hash that its pods have.
    pub hash: String,
    /// The images of its containers, each as `CONTAINER=IMAGE`.
    pub images: Vec<String>,
    /// metadata.creationTimestamp.
    pub created: Option<Timestamp>,
    /// The kind and the name of the controller, for example `Deployment web`. Empty if there is none.
    pub controller: String,
    /// spec.minReadySeconds of a ReplicaSet. 0 for a ControllerRevision.
    pub min_ready_seconds: i64,
    /// spec.replicas of a ReplicaSet. 0 for a ControllerRevision.
    pub replicas: i64,
    /// Why pods of a ReplicaSet cannot be created or deleted: the condition ReplicaFailure, and its time.
    pub failure: Option<(String, Option<Timestamp>)>,
}

impl TemplateFacts {
    /// Reads an apps/v1 ControllerRevision of a DaemonSet.
    #[must_use]
    pub fn of_revision(json: &str) -> Self {
        let object = read::object(json);
        Self {
            number: read::number(&object, "/revision"),
            images: read::images(&object, "/data/spec/template/spec/containers"),
            ..Self::of(&object, HASH_LABEL)
        }
    }

    /// Reads an apps/v1 ReplicaSet.
    #[must_use]
    pub fn of_replica_set(json: &str) -> Self {
        let object = read::object(json);
        let mut conditions = read::list(&object, "/status/conditions").iter();
        let failure = conditions.find(|condition| {
            read::text(condition, "/type") == "ReplicaFailure" && read::text(condition, "/status") == "True"
        });
        Self {
            number: read::text(&object, REVISION).parse().unwrap_or_default(),
            images: read::images(&object, "/spec/template/spec/containers"),
            min_ready_seconds: read::number(&object, "/spec/minReadySeconds"),
            replicas: read::number(&object, "/spec/replicas"),
            failure: failure.map(|condition| {
                let message = read::owned(condition, "/message");
                (message, read::time(condition, "/lastTransitionTime"))
            }),
            ..Self::of(&object, TEMPLATE_HASH_LABEL)
        }
    }

    fn of(object: &Value, hash_label: &str) -> Self {
        let labels = object.pointer("/metadata/labels");
        let hash = labels
            .and_then(|labels| labels.get(hash_label))
            .and_then(Value::as_str);
        Self {
            name: read::owned(object, "/metadata/name"),
            uid: read::owned(object, "/metadata/uid"),
            hash: hash.unwrap_or_default().to_owned(),
            created: read::time(object, "/metadata/creationTimestamp"),
            controller: read::controller_name(object),
            ..Self::default()
        }
    }
}
