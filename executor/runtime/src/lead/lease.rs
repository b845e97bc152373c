//! Storage of the lease: a coordination/v1 Lease, or an in-memory implementation in tests.

use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use nodewise_projection::WRITER;

use super::{LEASE_NAME, Record};

/// The metadata of the Lease as it was read. A write succeeds only if the Lease still has this resourceVersion.
pub type Version = ObjectMeta;

/// The lease could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// The apiserver rejected the call, or did not answer.
    #[error("the lease: {}", answer(.0))]
    Api(#[from] Box<kube::Error>),
    /// Another process wrote first.
    #[error("the lease was changed by someone else")]
    Changed,
}

/// What the apiserver answered, or why there is no answer. The text of a [`kube::Error`] repeats an answer with all its fields.
fn answer(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        other => other.to_string(),
    }
}

/// Reads and writes the lease that several candidates share.
pub trait LeaseStore: Send {
    /// Returns the content and the version of the lease; `None` if it does not exist.
    fn read(&self) -> impl Future<Output = Result<Option<(Record, Version)>, LeaseError>> + Send;

    /// Replaces the lease if it still has this version; creates it if `version` is `None`. Returns the new version.
    fn write(
        &self,
        record: &Record,
        version: Option<Version>,
    ) -> impl Future<Output = Result<Version, LeaseError>> + Send;
}

/// A Lease on an apiserver.
#[derive(Clone, Debug)]
pub struct KubeLeaseStore {
    api: Api<Lease>,
}

impl KubeLeaseStore {
    /// Uses the Lease of the executor in this namespace.
    #[must_use]
    pub fn new(client: Client, namespace: &str) -> Self {
        Self {
            api: Api::namespaced(client, namespace),
        }
    }
}

impl LeaseStore for KubeLeaseStore {
    async fn read(&self) -> Result<Option<(Record, Version)>, LeaseError> {
        let lease = self.api.get_opt(LEASE_NAME).await.map_err(Box::new)?;
        Ok(lease.map(|Lease { metadata, spec }| (record(spec.unwrap_or_default()), metadata)))
    }

    async fn write(&self, record: &Record, version: Option<Version>) -> Result<Version, LeaseError> {
        let params = PostParams {
            field_manager: Some(WRITER.to_owned()),
            ..PostParams::default()
        };
        let created = version.is_none();
        let metadata = version.unwrap_or_else(|| ObjectMeta {
            name: Some(LEASE_NAME.to_owned()),
            ..ObjectMeta::default()
        });
        let lease = Lease {
            metadata,
            spec: Some(spec(record)),
        };
        let written = if created {
            self.api.create(&params, &lease).await
        } else {
            self.api.replace(LEASE_NAME, &params, &lease).await
        };
        match written {
            Ok(lease) => Ok(lease.metadata),
            Err(kube::Error::Api(status)) if status.code == 409 => Err(LeaseError::Changed),
            Err(error) => Err(Box::new(error).into()),
        }
    }
}

fn record(spec: LeaseSpec) -> Record {
    Record {
        holder: spec.holder_identity.unwrap_or_default(),
        duration_seconds: spec
            .lease_duration_seconds
            .and_then(|seconds| seconds.try_into().ok())
            .unwrap_or(0),
        acquired: spec.acquire_time.map(|time| time.0),
        renewed: spec.renew_time.map(|time| time.0),
        transitions: spec
            .lease_transitions
            .and_then(|count| count.try_into().ok())
            .unwrap_or(0),
    }
}

fn spec(record: &Record) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(record.holder.clone()),
        lease_duration_seconds: i32::try_from(record.duration_seconds).ok(),
        acquire_time: record.acquired.map(MicroTime),
        renew_time: record.renewed.map(MicroTime),
        lease_transitions: i32::try_from(record.transitions).ok(),
        ..LeaseSpec::default()
    }
}

/// Truncates a time to whole microseconds, as the API stores it. Otherwise a record would differ from what was written.
pub(super) fn micros(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use nodewise_fake_apiserver::{apiserver, failure};

    #[test]
    fn a_record_survives_a_round_trip() {
        let clock = micros(Timestamp::new(1_700_000_000, 123_456_789).expect("a time"));
        let written = Record {
            holder: "host_1".to_owned(),
            duration_seconds: 15,
            acquired: Some(clock),
            renewed: Some(clock),
            transitions: 3,
        };
        let json = serde_json::to_string(&spec(&written)).expect("JSON");
        let read = record(serde_json::from_str(&json).expect("a LeaseSpec"));
        assert_eq!(read, written);
    }

    // The Lease is created if it is missing, and replaced only in the version that was read. A conflict is reported as
    // `Changed`.
    #[tokio::test]
    async fn a_lease_on_an_apiserver() {
        let taken = AtomicBool::new(false);
        let (client, requests) = apiserver(move |asked| {
            Some(match asked.line.split(' ').next() {
                Some("GET") => failure(404, "NotFound", &[]),
                Some("PUT") if taken.swap(true, Ordering::Relaxed) => failure(409, "Conflict", &[]),
                _ => (200, asked.json()),
            })
        });
        let leases = KubeLeaseStore::new(client, "kube-system");
        assert!(leases.read().await.expect("an answer").is_none());
        let mut version = leases.write(&Record::default(), None).await.expect("created");
        version.resource_version = Some("8".to_owned());
        let version = leases
            .write(&Record::default(), Some(version))
            .await
            .expect("replaced");
        let refused = leases.write(&Record::default(), Some(version)).await;
        assert!(matches!(refused, Err(LeaseError::Changed)), "{refused:?}");
        let requests = requests.lock().expect("lock").clone();
        let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
        assert!(
            requests[1].line.starts_with(&format!("POST {lease}?")),
            "{}",
            requests[1].line
        );
        assert!(
            requests[2]
                .line
                .starts_with(&format!("PUT {lease}/nodewise-executor?"))
        );
        assert_eq!(requests[2].json()["metadata"]["resourceVersion"], "8");
    }

    #[test]
    fn an_empty_lease_is_held_by_nobody() {
        assert_eq!(record(LeaseSpec::default()), Record::default());
    }
}
