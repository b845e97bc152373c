//! The users of a control plane, their tokens and kubeconfig files.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject};
use kube::api::{Api, ObjectMeta, PostParams};
use serde_json::json;

use super::builder::{Component, User};
use crate::wait::eventually;

/// The user of the tests, who has all rights.
pub(super) const ADMIN: &str = "admin";

/// The group whose members have all rights.
const MASTERS: &str = "system:masters";

/// How long the apiserver's authorizer may take to see a new binding.
const RIGHTS_DEADLINE: Duration = Duration::from_mins(1);

/// The users of one control plane, with their tokens.
#[derive(Debug)]
pub(super) struct Access {
    users: BTreeMap<String, (User, String)>,
}

impl Access {
    /// The administrator, the components and the test's own users, each with a new token.
    pub(super) fn new(extra: &[User]) -> Self {
        let own = [ADMIN]
            .into_iter()
            .chain(
                [
                    Component::ControllerManager,
                    Component::Scheduler,
                    Component::Kwok,
                ]
                .map(Component::user),
            )
            .map(|name| User::new(name).group(MASTERS));
        let users = own
            .chain(extra.iter().cloned())
            .map(|user| {
                (
                    user.name.clone(),
                    (user, format!("{:032x}", rand::random::<u128>())),
                )
            })
            .collect();
        Self { users }
    }

    /// Writes the apiserver's `--token-auth-file`: token, user, uid, groups.
    pub(super) fn write_tokens(&self, path: &Path) -> Result<()> {
        let lines: Vec<_> = self
            .users
            .values()
            .map(|(user, token)| format!("{token},{0},{0},\"{1}\"", user.name, user.groups.join(",")))
            .collect();
        write_private(path, &lines.join("\n"))
    }

    /// Writes a kubeconfig for each user into `folder`.
    pub(super) fn write_kubeconfigs(&self, folder: &Path, server: &str, ca: &Path) -> Result<()> {
        for (user, token) in self.users.values() {
            write_kubeconfig(folder, server, ca, &user.name, token)?;
        }
        Ok(())
    }

    /// Binds the users to their ClusterRoles, and waits until the apiserver's authorizer has seen the bindings.
    pub(super) async fn bind_roles(&self, client: &kube::Client) -> Result<()> {
        let bindings = Api::<ClusterRoleBinding>::all(client.clone());
        for (user, _) in self.users.values() {
            for role in &user.cluster_roles {
                bindings
                    .create(&PostParams::default(), &binding(&user.name, role))
                    .await
                    .with_context(|| format!("binding {} to the ClusterRole {role}", user.name))?;
                wait_for_rights(client, &user.name, role).await?;
            }
        }
        Ok(())
    }
}

/// Writes the kubeconfig of a user with this token into `folder`.
pub(super) fn write_kubeconfig(
    folder: &Path,
    server: &str,
    ca: &Path,
    user: &str,
    token: &str,
) -> Result<()> {
    // JSON is valid YAML.
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "testbed", "cluster": {"server": server, "certificate-authority": ca}}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": user}}],
        "current-context": "testbed",
    });
    write_private(&kubeconfig(folder, user), &format!("{config:#}\n"))
}

/// Waits until a user has the first right of a role, because the authorizer learns of bindings through a watch.
///
/// Returns at once if the role does not exist yet, or has no right to a resource.
async fn wait_for_rights(client: &kube::Client, user: &str, role: &str) -> Result<()> {
    let rules = Api::<ClusterRole>::all(client.clone())
        .get_opt(role)
        .await?
        .and_then(|role| role.rules);
    let Some(right) = rules.iter().flatten().find_map(first_right) else {
        return Ok(());
    };
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(user.to_owned()),
            resource_attributes: Some(right),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let reviews = Api::<SubjectAccessReview>::all(client.clone());
    eventually(
        RIGHTS_DEADLINE,
        format!("the rights of {role} for {user}"),
        async || {
            let answer = reviews.create(&PostParams::default(), &review).await?;
            ensure!(
                answer.status.is_some_and(|status| status.allowed),
                "the apiserver does not know of them yet"
            );
            Ok(())
        },
    )
    .await
}

fn first_right(rule: &PolicyRule) -> Option<ResourceAttributes> {
    Some(ResourceAttributes {
        verb: Some(rule.verbs.first()?.clone()),
        group: Some(rule.api_groups.as_ref()?.first()?.clone()),
        resource: Some(rule.resources.as_ref()?.first()?.clone()),
        name: rule
            .resource_names
            .as_ref()
            .and_then(|names| names.first().cloned()),
        ..ResourceAttributes::default()
    })
}

/// The kubeconfig file of a user.
pub(super) fn kubeconfig(folder: &Path, user: &str) -> PathBuf {
    folder.join(format!("{}.kubeconfig", user.replace([':', '/'], "-")))
}

fn binding(user: &str, role: &str) -> ClusterRoleBinding {
    const GROUP: &str = "rbac.authorization.k8s.io";
    ClusterRoleBinding {
        metadata: ObjectMeta {
            name: Some(format!("testbed:{user}:{role}")),
            ..ObjectMeta::default()
        },
        role_ref: RoleRef {
            api_group: Some(GROUP.into()),
            kind: "ClusterRole".into(),
            name: role.into(),
        },
        subjects: Some(vec![Subject {
            api_group: Some(GROUP.into()),
            kind: "User".into(),
            name: user.into(),
            namespace: None,
        }]),
    }
}

/// Writes a file that only its owner can read.
fn write_private(path: &Path, text: &str) -> Result<()> {
    let mut options = fs::OpenOptions::new();
    options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("writing {}", path.display()))
}
