//! Finds out whether an optional resource is installed. Every authenticated user may ask that.
//!
//! A custom resource may be installed and removed at any time. While it is not there, there are no objects. A resource that is there
//! and cannot be listed is another matter: then it is not known which objects there are. So is one that is served in another version
//! only, as after an upgrade of its definition: its objects may ask for what this program does not know (L-2).

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{DISCOVERY_INTERVAL, OPEN_TIMEOUT, Reflector, Step, WatchError, Watched};
use crate::delta::Delta;
use crate::event::ClusterEvent;
use crate::resource::Resource;
use crate::response;

/// An APIResourceList.
#[derive(Deserialize)]
struct Resources {
    #[serde(default)]
    resources: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

/// An APIGroup.
#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Version {
    version: String,
}

impl<T: Watched> Reflector<T> {
    /// Asks whether the resource is installed. If it is not, the controller is told so, and the next question follows after
    /// [`DISCOVERY_INTERVAL`].
    pub(super) async fn discover(&mut self) -> Result<(), WatchError> {
        if self.is_installed(T::RESOURCE).await? {
            if self.is_absent {
                tracing::info!(resource = %T::RESOURCE, "the resource is installed by now");
            }
            self.next = Step::List;
            return Ok(());
        }
        if let Some(version) = self.other_version(T::RESOURCE).await? {
            if !self.is_lost {
                self.version.clear();
                self.send(ClusterEvent::Lost(T::RESOURCE)).await?;
                (self.is_lost, self.is_absent) = (true, false);
            }
            let Resource {
                plural,
                group,
                version: known,
                ..
            } = T::RESOURCE;
            return Err(WatchError::OtherVersion(plural, group, version, known));
        }
        let restores = *self.restores.borrow();
        if !self.is_absent || restores != self.restores_listed {
            tracing::info!(resource = %T::RESOURCE, "the resource is not installed");
            self.version.clear();
            self.send(T::event(Delta::Listed {
                objects: Vec::new(),
                resource_version: String::new(),
            }))
            .await?;
            self.has_listed.send_replace(true);
            (self.is_absent, self.is_lost, self.restores_listed) = (true, false, restores);
        }
        self.set_healthy();
        let mut news = self.restores.subscribe();
        tokio::select! {
            () = tokio::time::sleep(DISCOVERY_INTERVAL) => {}
            _ = news.wait_for(|now| *now != restores) => {}
        }
        Ok(())
    }

    async fn is_installed(&self, resource: Resource) -> Result<bool, WatchError> {
        let found: Option<Resources> = self.ask(resource.api()).await?;
        let mut found = found.into_iter().flat_map(|found| found.resources);
        Ok(found.any(|found| found.name == resource.plural))
    }

    /// Another version of the group in which the apiserver serves the resource.
    async fn other_version(&self, resource: Resource) -> Result<Option<String>, WatchError> {
        let group: Option<Group> = self.ask(format!("/apis/{}", resource.group)).await?;
        let versions = group.into_iter().flat_map(|group| group.versions);
        for Version { version } in versions.filter(|found| found.version != resource.version) {
            let found: Option<Resources> = self.ask(format!("/apis/{}/{version}", resource.group)).await?;
            let mut found = found.into_iter().flat_map(|found| found.resources);
            if found.any(|found| found.name == resource.plural) {
                return Ok(Some(version));
            }
        }
        Ok(None)
    }

    /// Asks for a document of the discovery. `None` if there is none.
    async fn ask<D: DeserializeOwned>(&self, path: String) -> Result<Option<D>, WatchError> {
        let failed = |error| WatchError::List(T::RESOURCE.plural, error);
        let request = http::Request::get(path)
            .body(Vec::new())
            .map_err(|error| failed(kube::Error::HttpError(error)))?;
        let answer = self.with_timeout(OPEN_TIMEOUT, response::read_text(&self.client, request));
        let text = match answer.await? {
            Ok(text) => text,
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let read = serde_json::from_str(&text);
        read.map(Some)
            .map_err(|error| failed(kube::Error::SerdeError(error)))
    }
}
