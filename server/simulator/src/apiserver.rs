//! The calls of the apiserver that write. They are refused for the same reasons as by a real one.

use serde_json::{Value, json};

use crate::{
    Cluster, ObjectKey, Resource, patch, pod,
    refusal::{Reason, Refusal},
};

/// A patch, by its content type.
#[derive(Clone, Debug, PartialEq)]
pub enum Patch {
    /// application/merge-patch+json.
    Merge(Value),
    /// application/strategic-merge-patch+json, as far as adoption and release need it.
    Strategic(Value),
}

impl Cluster {
    /// An object, as it is now.
    pub fn read(&self, key: &ObjectKey) -> Result<&Value, Refusal> {
        self.objects.find(key)
    }

    /// Creates an object. The apiserver sets the uid, the creation time, and the name if only `generateName` is given.
    pub fn create(
        &mut self,
        resource: Resource,
        namespace: &str,
        mut object: Value,
    ) -> Result<ObjectKey, Refusal> {
        let key = self.objects.prepare(resource, namespace, &mut object, self.now)?;
        if resource == Resource::Pods {
            object["status"]["phase"] = json!("Pending");
        }
        self.validated(resource, &object)?;
        match resource {
            Resource::Pods => {
                self.counter.creating(&object);
                self.put_pod(&key, object);
            }
            Resource::ReplicaSets => {
                object["metadata"]["generation"] = json!(1);
                self.counter.replicas.read_set(&object);
                self.objects.put(&key, object);
            }
            _ => self.objects.put(&key, object),
        }
        Ok(key)
    }

    /// Patches an object. A patch that names another uid or an old resourceVersion is refused. A new spec of a ReplicaSet or of a
    /// Deployment raises its generation.
    pub fn patch(&mut self, key: &ObjectKey, patch: &Patch) -> Result<(), Refusal> {
        let before = self.objects.find(key)?.clone();
        let mut after = patched(key, &before, patch)?;
        let has_generation = matches!(key.resource, Resource::ReplicaSets | Resource::Deployments);
        if has_generation && after["spec"] != before["spec"] {
            let generation = before["metadata"]["generation"].as_i64().unwrap_or(0);
            after["metadata"]["generation"] = json!(generation + 1);
        }
        self.validated(key.resource, &after)?;
        if key.resource == Resource::Pods {
            // The patch may change the pod's controller.
            self.counter.pod_changed(&key.name, &before, false);
            self.put_pod(key, after);
        } else {
            if key.resource == Resource::ReplicaSets {
                self.counter.replicas.read_set(&after);
            }
            self.objects.put(key, after);
        }
        Ok(())
    }

    /// Patches the status of an object, and its metadata. The spec stays as it is.
    pub fn patch_status(&mut self, key: &ObjectKey, patch: &Patch) -> Result<(), Refusal> {
        let before = self.objects.find(key)?.clone();
        let mut after = patched(key, &before, patch)?;
        after["spec"] = before["spec"].clone();
        self.validated(key.resource, &after)?;
        self.objects.put(key, after);
        Ok(())
    }

    /// Deletes an object; with `uid` only if it has that uid. A pod on a node ends gracefully: its kubelet removes it later.
    pub fn delete(&mut self, key: &ObjectKey, uid: Option<&str>) -> Result<(), Refusal> {
        let object = self.objects.find(key)?;
        if uid.is_some_and(|uid| object["metadata"]["uid"] != uid) {
            return Err(Refusal::new(Reason::Conflict, format!("{key} has another uid")));
        }
        if key.resource == Resource::Pods {
            let pod = object.clone();
            self.delete_pod(key, pod);
        } else {
            if key.resource == Resource::ReplicaSets {
                self.counter.replicas.set_removed(object);
            }
            self.objects.remove(key);
        }
        Ok(())
    }

    /// Replaces the status of an object, if the resourceVersion is the current one.
    pub fn replace_status(&mut self, key: &ObjectKey, object: &Value) -> Result<(), Refusal> {
        let mut stored = self.objects.find(key)?.clone();
        if object["metadata"]["resourceVersion"] != stored["metadata"]["resourceVersion"] {
            return Err(Refusal::new(Reason::Conflict, format!("{key} has been modified")));
        }
        stored["status"] = object["status"].clone();
        self.validated(key.resource, &stored)?;
        self.objects.put(key, stored);
        Ok(())
    }

    fn delete_pod(&mut self, key: &ObjectKey, pod: Value) {
        if pod["metadata"]["deletionTimestamp"].is_string() {
            return;
        }
        if let Some(owner) = pod::owner_uid(&pod) {
            self.counter.deleting(owner);
        }
        if pod["spec"]["nodeName"].is_null() {
            self.remove_pod(key);
        } else {
            self.begin_deletion(key, pod);
        }
    }
}

/// The object with the patch; an error if the patch names another uid or another resourceVersion.
fn patched(key: &ObjectKey, before: &Value, patch: &Patch) -> Result<Value, Refusal> {
    let mut after = before.clone();
    match patch {
        Patch::Merge(patch) => patch::merge(&mut after, patch),
        Patch::Strategic(patch) => patch::strategic(&mut after, patch),
    }
    let (old, new) = (&before["metadata"], &after["metadata"]);
    if new["uid"] != old["uid"] {
        return Err(Refusal::new(
            Reason::Invalid,
            format!("{key}: metadata.uid: field is immutable"),
        ));
    }
    if new["resourceVersion"] != old["resourceVersion"] {
        return Err(Refusal::new(Reason::Conflict, format!("{key} has been modified")));
    }
    Ok(after)
}
