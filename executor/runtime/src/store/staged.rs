//! The pages of a list of pods that is not complete yet.
//!
//! No plan may be made from half a list, so these pods are not visible. They are already encoded for the cache, because
//! a whole list of decoded pods takes several times as much memory.

use std::collections::HashMap;
use std::iter::repeat_n;
use std::sync::Arc;

use nodewise_projection::{Pod, Unready, buckets::EncodedPod};

use super::keys::Keys;
use super::layout::Layout;
use super::parts::Parts;
use super::pods;

/// A pod of a page.
#[derive(Debug)]
pub(super) struct Staged {
    pub(super) namespace: Arc<str>,
    pub(super) pod: EncodedPod,
    pub(super) unready: Option<Box<Unready>>,
}

/// Stored page by page, so that a page is freed when its pods are cached.
#[derive(Debug, Default)]
pub(super) struct Pages(Vec<Page>);

/// A list is ordered by namespace, and most pods are ready. So a pod takes 8 bytes here.
#[derive(Debug, Default)]
struct Page {
    pods: Vec<EncodedPod>,
    /// The namespaces of the pods, and how many pods in turn are in each.
    namespaces: Vec<(Arc<str>, usize)>,
    /// By index of the pod, ascending.
    unready: Vec<(usize, Box<Unready>)>,
}

impl Page {
    /// Counts one more pod of a namespace, and returns the namespace.
    fn count(&mut self, namespace: &str) -> &Arc<str> {
        if self
            .namespaces
            .last()
            .is_none_or(|(last, _)| **last != *namespace)
        {
            self.namespaces.push((namespace.into(), 0));
        }
        let (namespace, count) = self.namespaces.last_mut().expect("it was just added");
        *count += 1;
        namespace
    }

    fn iter(&self) -> impl Iterator<Item = (&str, &EncodedPod)> {
        let namespaces = self.namespaces.iter();
        let namespaces = namespaces.flat_map(|(namespace, count)| repeat_n(&**namespace, *count));
        namespaces.zip(&self.pods)
    }

    fn into_pods(self) -> impl Iterator<Item = Staged> {
        let namespaces = self.namespaces.into_iter();
        let namespaces = namespaces.flat_map(|(namespace, count)| repeat_n(namespace, count));
        let mut unready = self.unready.into_iter().peekable();
        let pods = namespaces.zip(self.pods).enumerate();
        pods.map(move |(index, (namespace, pod))| Staged {
            namespace,
            pod,
            unready: unready
                .next_if(|(at, _)| *at == index)
                .map(|(_, unready)| unready),
        })
    }
}

impl Pages {
    pub(super) fn add(
        &mut self,
        pods: impl Iterator<Item = Pod>,
        keys: &mut Keys,
        parts: &mut Parts,
        layout: &Layout,
    ) {
        let mut page = Page {
            pods: Vec::with_capacity(pods.size_hint().1.unwrap_or_default()),
            ..Page::default()
        };
        for mut pod in pods {
            let keys = keys.of_pods(page.count(&pod.namespace));
            let version = &*pod.resource_version;
            let stored = pods::encode(&mut pod.projection, version, &keys, parts, layout);
            page.unready
                .extend(pod.unready.take().map(|unready| (page.pods.len(), unready)));
            page.pods.push(stored);
        }
        self.0.push(page);
    }

    /// Discards the pages of a list that was given up.
    pub(super) fn discard(&mut self, parts: &mut Parts) {
        for Staged { pod, .. } in std::mem::take(self).into_pods() {
            parts.release(&pod);
        }
    }

    /// The pods and their namespaces.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &EncodedPod)> {
        self.0.iter().flat_map(Page::iter)
    }

    /// The namespaces, and how many pods each has.
    pub(super) fn counts(&self) -> HashMap<Arc<str>, usize> {
        let mut counts = HashMap::new();
        for (namespace, count) in self.0.iter().flat_map(|page| &page.namespaces) {
            *counts.entry(Arc::clone(namespace)).or_default() += count;
        }
        counts
    }

    pub(super) fn into_pods(self) -> impl Iterator<Item = Staged> {
        self.0.into_iter().flat_map(Page::into_pods)
    }
}
