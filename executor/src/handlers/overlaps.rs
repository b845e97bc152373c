//! Which overlaps of selectors were told of.

use std::sync::Arc;

use crate::event::Key;
use crate::seldom::Seldom;

/// Overlaps that were told of lately: whoever may label a pod may change the label all the time.
#[derive(Debug, Default)]
pub(crate) struct Overlaps(Seldom<Vec<Key>>);

impl Overlaps {
    /// Logs that these DaemonSets select the same orphan, unless it did so within the last minute.
    pub(crate) fn tell(&mut self, keys: Vec<Key>) {
        let names: Vec<_> = keys.iter().map(|key| Arc::clone(&key.name)).collect();
        let namespace = keys.first().map(|key| Arc::clone(&key.namespace));
        if self.0.is_due(keys) {
            tracing::warn!(
                namespace = namespace.as_deref(),
                ?names,
                "several DaemonSets select the same orphan: their selectors overlap"
            );
        }
    }
}
