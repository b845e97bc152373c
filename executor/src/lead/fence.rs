//! Writes only while this process leads for certain.
//!
//! A process that was stopped for a while, or starved, may go on with its work before it learns that its lease has run out. The
//! apiserver does not refuse such writes (M-12), so they are refused here.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;

use super::{Pulse, Timing};
use crate::{
    actuator::{Actuator, ActuatorError, ObjectKey, Patch, WorkloadEvent, Written},
    event::Resource,
};

/// Refuses every write that comes too long after the last renewal of the lease. Reads pass.
#[derive(Debug)]
pub struct Fenced<A> {
    within: Arc<A>,
    pulse: Pulse,
    timing: Timing,
}

impl<A> Fenced<A> {
    /// Writes through `within` while the lease of that pulse is held.
    pub fn new(within: Arc<A>, pulse: Pulse, timing: Timing) -> Self {
        Self {
            within,
            pulse,
            timing,
        }
    }

    fn pass(&self) -> Result<&A, ActuatorError> {
        if self.pulse.leads(self.timing, Instant::now()) {
            Ok(&self.within)
        } else {
            Err(ActuatorError::unclear(
                "not written: the lease was not renewed in time, and another executor may lead",
            ))
        }
    }
}

impl<A: Actuator> Actuator for Fenced<A> {
    fn writes(&self) -> bool {
        self.within.writes()
    }

    async fn create(
        &self,
        resource: Resource,
        namespace: &str,
        manifest: Bytes,
    ) -> Result<Written, ActuatorError> {
        self.pass()?.create(resource, namespace, manifest).await
    }

    async fn patch(&self, key: &ObjectKey, patch: Patch) -> Result<Written, ActuatorError> {
        self.pass()?.patch(key, patch).await
    }

    async fn delete(&self, key: &ObjectKey, uid: Option<&str>) -> Result<(), ActuatorError> {
        self.pass()?.delete(key, uid).await
    }

    async fn replace_status(&self, key: &ObjectKey, object: Bytes) -> Result<Written, ActuatorError> {
        self.pass()?.replace_status(key, object).await
    }

    async fn read(&self, key: &ObjectKey) -> Result<Bytes, ActuatorError> {
        self.within.read(key).await
    }

    fn emit(&self, event: WorkloadEvent) {
        if let Ok(within) = self.pass() {
            within.emit(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::testing::ScriptedActuator;

    // M-12: no write of any kind once the lease may be another's, and none before it was ever held; reads go on.
    #[tokio::test(start_paused = true)]
    async fn writes_end_with_the_lease() {
        let (within, pulse) = (Arc::new(ScriptedActuator::default()), Pulse::default());
        *within.live.lock().expect("no panic") = "{}".into();
        let fenced = Fenced::new(Arc::clone(&within), pulse.clone(), Timing::default());
        let key = ObjectKey::new(Resource::Pods, "ns", "p");
        let body = || Bytes::from_static(b"{\"metadata\":{\"name\":\"p\"}}");
        assert!(fenced.delete(&key, None).await.is_err(), "not leading yet");
        pulse.set(Some(Instant::now()));
        tokio::time::sleep(Duration::from_millis(12_400)).await;
        fenced.delete(&key, None).await.expect("12.4 s after the renewal");
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(fenced.create(Resource::Pods, "ns", body()).await.is_err());
        assert!(fenced.patch(&key, Patch::Merge(body())).await.is_err());
        assert!(fenced.replace_status(&key, body()).await.is_err());
        let error = fenced.delete(&key, None).await.expect_err("too late");
        assert!(error.message.contains("lease"), "{error}");
        fenced.read(&key).await.expect("reading harms nobody");
        assert_eq!(within.calls(), ["delete pods ns/p"]);
        pulse.set(Some(Instant::now()));
        fenced.delete(&key, None).await.expect("renewed");
    }
}
