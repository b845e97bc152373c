//! Which overlaps of selectors were told of.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use tokio::time::Instant;

use crate::event::Key;

/// How often an overlap is told of at most: whoever may label a pod may change the label all the time.
const PAUSE: Duration = Duration::from_mins(1);

/// Overlaps that were told of within the last minute.
#[derive(Debug, Default)]
pub(crate) struct Overlaps(HashMap<Vec<Key>, Instant>);

impl Overlaps {
    /// Logs that these DaemonSets select the same orphan, unless it did so within the last minute; answers whether it did.
    pub(crate) fn tell(&mut self, keys: Vec<Key>) -> bool {
        self.0.retain(|_, told| told.elapsed() < PAUSE);
        let Entry::Vacant(untold) = self.0.entry(keys) else {
            return false;
        };
        let keys = untold.key();
        let names: Vec<_> = keys.iter().map(|key| &*key.name).collect();
        let namespace = keys.first().map(|key| &*key.namespace);
        tracing::warn!(
            namespace,
            ?names,
            "several DaemonSets select the same orphan: their selectors overlap"
        );
        untold.insert(Instant::now());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_overlap_is_told_once_a_minute() {
        let keys = |names: &[&str]| names.iter().map(|name| Key::new("ns", name)).collect::<Vec<_>>();
        let (ab, abc) = (keys(&["a", "b"]), keys(&["a", "b", "c"]));
        let mut overlaps = Overlaps::default();
        assert!(overlaps.tell(ab.clone()));
        assert!(!overlaps.tell(ab.clone()));
        assert!(overlaps.tell(abc.clone()), "another one is");
        tokio::time::advance(PAUSE / 2).await;
        assert!(!overlaps.tell(ab.clone()));
        tokio::time::advance(PAUSE / 2).await;
        assert!(overlaps.tell(ab));
        assert_eq!(overlaps.0.len(), 1, "what is over is forgotten");
        assert!(overlaps.tell(abc));
    }
}
