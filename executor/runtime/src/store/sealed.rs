//! Orphans that are gone or cannot be changed, as the apiserver has answered. The watch shows it later, or never.

use super::{Cached, Store};
use crate::Resource;
use nodewise_projection::{Key, Pod, Revision, Workload};

impl Store {
    /// Removes an orphan that the API does not find, before its watch shows the deletion. No expectation waits for the
    /// deletion of orphans.
    pub fn forget_orphan(&mut self, resource: Resource, namespace: &str, name: &str) {
        let kept = self.namespaces.get(namespace);
        let key = Key::new(resource.kind, namespace, name);
        // Another object may have this name by now.
        let is_orphan = match resource {
            Resource::PODS => kept
                .and_then(|kept| kept.pods.get(name))
                .is_some_and(|pod| pod.owner().is_none()),
            Resource::REVISIONS => kept
                .and_then(|kept| kept.revisions.get(name))
                .is_some_and(|revision| revision.controller.is_none()),
            _ => self
                .workload(&key)
                .is_some_and(|workload| workload.controller.is_none()),
        };
        if !is_orphan {
            return;
        }
        self.changes.begin();
        match resource {
            Resource::PODS => _ = Pod::forget(self, &(namespace.into(), name.into())),
            Resource::REVISIONS => _ = Revision::forget(self, &(namespace.into(), name.into())),
            _ => _ = Workload::forget(self, &key),
        }
    }

    /// Marks a revision, an orphaned pod or an orphaned workload as sealed: it cannot be changed until it has another
    /// resourceVersion. A sealed revision is sent with that mark. A sealed pod or workload is not sent.
    pub fn seal(&mut self, resource: Resource, namespace: &str, name: &str) {
        if let Some(workload) = self.workload(&Key::new(resource.kind, namespace, name)) {
            let (key, version) = (workload.key.clone(), workload.resource_version.clone());
            self.sealed_workloads.insert(key, version);
            return;
        }
        let Some(namespace) = self.namespaces.get_mut(namespace) else {
            return;
        };
        if resource == Resource::PODS {
            namespace.pods.leave_out(name);
        } else if let Some(revision) = namespace.revisions.get(name)
            && resource == Resource::REVISIONS
        {
            let version = revision.resource_version.clone();
            namespace.sealed.insert(name.to_owned(), version);
        }
    }

    /// Whether a revision is sealed.
    #[must_use]
    pub fn is_sealed(&self, revision: &Revision) -> bool {
        self.namespaces
            .get(revision.namespace.as_str())
            .and_then(|namespace| namespace.sealed.get(&revision.name))
            == Some(&revision.resource_version)
    }

    /// Whether an orphaned workload is sealed.
    #[must_use]
    pub fn is_sealed_workload(&self, workload: &Workload) -> bool {
        self.sealed_workloads.get(&workload.key) == Some(&workload.resource_version)
    }

    /// Whether an orphaned pod is sealed.
    pub(super) fn is_left_out(&self, namespace: &str, name: &str) -> bool {
        let namespace = self.namespaces.get(namespace);
        namespace.is_some_and(|namespace| namespace.pods.is_left_out(name))
    }
}
