//! Finds the workloads that a command line names.

use anyhow::bail;
use nodewise_proto::v1;

use super::{Cluster, Served};
use crate::{kind::Kind, target::Target};

impl Cluster {
    /// The workloads of a target, of all namespaces or of one. If the target has a name: exactly one.
    pub(crate) fn find(&self, target: &Target, namespace: Option<&str>) -> anyhow::Result<Vec<&Served>> {
        let all = self.workloads(target.kind).iter();
        let found = all
            .filter(|one| namespace.is_none_or(|namespace| one.namespace == namespace))
            .filter(|one| target.name.as_ref().is_none_or(|name| one.name == *name));
        let found: Vec<&Served> = found.collect();
        let Some(name) = &target.name else {
            return Ok(found);
        };
        let (source, kind) = (self.source(), target.kind.name());
        match found.as_slice() {
            [_] => Ok(found),
            [] => {
                let in_namespace = namespace
                    .map(|namespace| format!(" in namespace {namespace}"))
                    .unwrap_or_default();
                bail!("{source}: no {kind} {name}{in_namespace}{}", self.others(target))
            }
            several => {
                let namespaces: Vec<&str> = several.iter().map(|one| one.namespace.as_str()).collect();
                bail!(
                    "{source}: {kind} {name} is in several namespaces: choose with -n {}",
                    namespaces.join(" or -n ")
                )
            }
        }
    }

    /// The workload that controls a pod. `None` if there is none, or if it is of another kind.
    pub(crate) fn controller_of(&self, namespace: &str, pod: &v1::Pod) -> Option<&Served> {
        self.workload_of_uid(namespace, &pod.controller.as_ref()?.uid)
    }

    /// The workload with this uid.
    pub(crate) fn workload_of_uid(&self, namespace: &str, uid: &str) -> Option<&Served> {
        let mut all = Kind::WORKLOADS
            .into_iter()
            .flat_map(|kind| self.workloads_in(kind, namespace));
        all.find(|one| one.uid == uid)
    }

    /// A hint with the workloads of the kind that exist, if they are few.
    fn others(&self, target: &Target) -> String {
        let others = self.workloads(target.kind);
        let names: Vec<String> = others
            .iter()
            .map(|one| format!("{}/{}", one.namespace, one.name))
            .collect();
        match names.len() {
            0 => "; there is none at all".to_owned(),
            1..=8 => format!("; there is {}", names.join(", ")),
            many => format!("; there are {many} others"),
        }
    }
}
