//! The pages of a list of pods that is not complete yet.
//!
//! Half a list must not be planned from, so nobody is shown them; but they are in the form in which they will be kept, since a
//! whole list of pods as they were read takes several times as much.

use std::sync::Arc;

use super::keys::Keys;
use super::parts::Parts;
use super::{KIND, pods};
use crate::buckets::Stored;
use crate::event::Pod;

/// A pod and its namespace.
pub(super) type Staged = (Arc<str>, Stored);

/// Page by page, so that each is gone when its pods are kept.
#[derive(Debug, Default)]
pub(super) struct Pages(Vec<Vec<Staged>>);

impl Pages {
    pub(super) fn add(&mut self, page: Vec<Pod>, keys: &mut Keys, parts: &mut Parts, bucket_count: u32) {
        let mut staged: Vec<Staged> = Vec::with_capacity(page.len());
        for mut pod in page {
            let controller = pod.projection.controller.as_ref();
            if controller.is_some_and(|controller| controller.kind != KIND) {
                continue;
            }
            let namespace = match staged.last() {
                Some((namespace, _)) if **namespace == *pod.namespace => Arc::clone(namespace),
                _ => pod.namespace.as_str().into(),
            };
            let keys = keys.of_pods(&namespace);
            let version = &*pod.resource_version;
            let stored = pods::encode(&mut pod.projection, version, &keys, parts, bucket_count);
            staged.push((namespace, stored));
        }
        self.0.push(staged);
    }

    /// The list was given up.
    pub(super) fn discard(&mut self, parts: &mut Parts) {
        for (_, pod) in std::mem::take(self).into_pods() {
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
