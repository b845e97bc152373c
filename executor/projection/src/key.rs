//! The key of a workload.

use std::fmt;
use std::sync::Arc;

/// The kind, namespace and name of a workload. Queues, expectations and own-write records use it as their key.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The kind of the workload, as in owner references to it, such as `DaemonSet`.
    pub kind: &'static str,
    /// metadata.namespace.
    pub namespace: Arc<str>,
    /// metadata.name.
    pub name: Arc<str>,
}

impl Key {
    /// Creates the key of an object.
    #[must_use]
    pub fn new(kind: &'static str, namespace: &str, name: &str) -> Self {
        Self {
            kind,
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

/// `NAMESPACE/NAME`. Log lines name the kind beside it.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
