//! Creates, patches and deletes objects of any resource that the executor knows.

use nodewise_proto::v1;

use super::{context::Context, done::Done, patching::Patching};
use crate::actuator::{Actuator, Preconditions, Refusal};

impl<A: Actuator> Context<'_, A> {
    /// Creates an object. A taken name and a terminating namespace end the plan (P-27, P-28): its other actions assume
    /// that the object exists.
    pub(super) async fn create_object(&self, action: &v1::Action, create: &v1::CreateObject) -> Done {
        let resource = match self.resource_of(create.resource.as_ref()) {
            Ok(resource) => resource,
            Err(error) => return Done::failed(action, &error),
        };
        let created = self
            .actuator
            .create(resource, &self.workload.namespace, create.manifest.clone())
            .await;
        let error = match created {
            Ok(written) => return Done::recorded(action, resource, written),
            Err(error) => error,
        };
        match error.refusal {
            Refusal::AlreadyExists => match self.colliding(resource, &create.name).await {
                Some(colliding) => Done {
                    colliding: Some(colliding),
                    ..Done::refused(action, v1::Result::NameTaken, &error).ending_plan()
                },
                // The next plan needs the object that has the name.
                None => Done::failed(action, &error).ending_plan(),
            },
            Refusal::NamespaceTerminating => {
                Done::refused(action, v1::Result::NamespaceTerminating, &error).ending_plan()
            }
            _ => Done::failed(action, &error),
        }
    }

    /// Patches an object once. A conflict is a failure: the plan after the next watch event decides anew.
    pub(super) async fn patch_object(
        &self,
        action: &v1::Action,
        patch: &v1::PatchObject,
        failure: Option<&str>,
    ) -> Done {
        let patching = self
            .resource_of(patch.resource.as_ref())
            .and_then(|resource| Patching::of_object(resource, patch, failure));
        match patching {
            Ok(patching) => self.patch(action, patching).await,
            Err(error) => Done::failed(action, &error),
        }
    }

    /// Deletes an object with its uid as a precondition.
    pub(super) async fn delete_object(&self, action: &v1::Action, delete: &v1::DeleteObject) -> Done {
        let resource = match self.resource_of(delete.resource.as_ref()) {
            Ok(resource) => resource,
            Err(error) => return Done::failed(action, &error),
        };
        let version = Some(&*delete.resource_version).filter(|version| !version.is_empty());
        let preconditions = |uid| Preconditions {
            resource_version: version,
            ..Preconditions::uid(uid)
        };
        self.delete(action, resource, delete.object.as_ref(), preconditions)
            .await
    }
}
