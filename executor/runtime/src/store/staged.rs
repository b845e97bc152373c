//! The pages of a list of pods that is not complete yet.
//!
//! No plan may be made from half a list, so these pods are not visible. They are already encoded for the cache, because
//! a whole list of decoded pods takes several times as much memory.

use std::sync::Arc;

use nodewise_projection::{Pod, Unready, buckets::EncodedObject};

use super::keys::Keys;
use super::layout::Layout;
use super::parts::Parts;
use super::pods;

/// A pod of a page.
#[derive(Debug)]
pub(super) struct Staged {
    pub(super) namespace: Arc<str>,
    pub(super) pod: EncodedObject,
    pub(super) unready: Option<Box<Unready>>,
}

/// Stored page by page, so that a page is freed when its pods are cached.
#[derive(Debug, Default)]
pub(super) struct Pages(Vec<Vec<Staged>>);

impl Pages {
    pub(super) fn add(
        &mut self,
        page: impl Iterator<Item = Pod>,
        keys: &mut Keys,
        parts: &mut Parts,
        layout: &Layout,
    ) {
        let mut staged: Vec<Staged> = Vec::with_capacity(page.size_hint().1.unwrap_or_default());
        for mut pod in page {
            let namespace = match staged.last() {
                Some(staged) if *staged.namespace == *pod.namespace => Arc::clone(&staged.namespace),
                _ => pod.namespace.as_str().into(),
            };
            let keys = keys.of_pods(&namespace);
            let version = &*pod.resource_version;
            let stored = pods::encode(&mut pod.projection, version, &keys, parts, layout);
            staged.push(Staged {
                namespace,
                pod: stored,
                unready: pod.unready.take(),
            });
        }
        self.0.push(staged);
    }

    /// Discards the pages of a list that was given up.
    pub(super) fn discard(&mut self, parts: &mut Parts) {
        for Staged { pod, .. } in std::mem::take(self).into_pods() {
            parts.release(&pod);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Staged> {
        self.0.iter().flatten()
    }

    pub(super) fn into_pods(self) -> impl Iterator<Item = Staged> {
        self.0.into_iter().flatten()
    }
}
