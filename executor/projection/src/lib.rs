//! Reads Kubernetes objects as the apiserver serves them, and reduces them to what a plan needs: from JSON, and of pods and nodes also
//! from Protobuf, to the messages of the protocol, and to the encoded buckets in which they are sent.
//!
//! The partial types of this crate are read straight from the text or the message. The rest of an object, 95 % of a pod, is never kept.
//! The crate reads no cluster and holds no cache. It decides nothing, with one exception that the protocol asks for: the
//! target node of an unbound pod (D-24).
//!
//! ```
//! use nodewise_projection::Pod;
//!
//! let json = r#"{
//!     "metadata": {"namespace": "kube-system", "name": "agent-x", "uid": "5f0c", "labels": {"app": "agent"}},
//!     "spec": {"nodeName": "node-1", "containers": [{"name": "agent", "image": "agent:1"}]},
//!     "status": {"phase": "Running"}
//! }"#;
//! let pod = Pod::from_text(json)?;
//! assert_eq!(pod.namespace, "kube-system");
//! assert_eq!(pod.projection.node_name, "node-1");
//! assert_eq!(pod.projection.labels[0].value, "agent");
//!
//! // An error names the field that cannot be read.
//! let error = Pod::from_text(r#"{"metadata": {"name": "agent-x"}}"#).unwrap_err();
//! assert_eq!(error.to_string(), "metadata.uid: is missing");
//! # Ok::<(), nodewise_projection::ProjectError>(())
//! ```

pub mod buckets;
mod daemon_set;
mod deployment;
mod error;
mod first_match;
mod key;
mod label_keys;
mod managed_fields;
mod meta;
mod node;
mod parse;
mod pod;
mod problem;
mod protobuf;
mod replica_set;
mod revision;
mod rollout_policy;
pub mod selection;
pub mod selector;
mod status;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod time;
mod unready;
mod workload;
mod writers;

pub use error::ProjectError;
pub use first_match::{ElementFilter, FirstMatch};
pub use key::Key;
pub use label_keys::{KeySet, LabelKeyCounts, LabelKeysRead, MAX_LABELS, reduce_node, reduce_pod};
pub use managed_fields::without_managed_fields;
pub use node::{Node, node, node_from};
pub use parse::parse_text;
pub use pod::{Pod, pod, pod_from};
pub use problem::pod_problem;
pub use revision::Revision;
pub use rollout_policy::{MOST_POLICY_BYTES, PolicyTargets, Reduced, RolloutPolicy};
pub use selection::OwnershipSelector;
pub use selector::{Selector, is_label_value};
pub use time::{moment, timestamp};
pub use unready::Unready;
pub use workload::{StatusCounts, Strategy, Workload};
pub use writers::{StatusWriter, WRITER};
