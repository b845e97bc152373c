//! Finds out whether an optional resource is installed. Every authenticated user may ask that.
//!
//! A custom resource may be installed and removed at any time. While it is not there, there are no objects. A resource that is there
//! and cannot be listed is another matter: then it is not known which objects there are.

use serde::Deserialize;

use super::{DISCOVERY_INTERVAL, OPEN_TIMEOUT, Reflector, Step, WatchError, Watched};
use crate::delta::Delta;
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
            (self.is_absent, self.restores_listed) = (true, restores);
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
        let failed = |error| WatchError::List(T::RESOURCE.plural, error);
        let request = http::Request::get(resource.api())
            .body(Vec::new())
            .map_err(|error| failed(kube::Error::HttpError(error)))?;
        let answer = self.with_timeout(OPEN_TIMEOUT, response::read_text(&self.client, request));
        let text = match answer.await? {
            Ok(text) => text,
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(false),
            Err(error) => return Err(failed(error)),
        };
        let found: Resources =
            serde_json::from_str(&text).map_err(|error| failed(kube::Error::SerdeError(error)))?;
        Ok(found.resources.iter().any(|found| found.name == resource.plural))
    }
}
