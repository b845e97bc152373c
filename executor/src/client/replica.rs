//! One replica of the service: its connection, whether it answered lately, and which buckets it is believed to have.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nodewise_proto::v1;
use nodewise_proto::v1::reconcile_service_client::ReconcileServiceClient;
use tokio::time::Instant;
use tonic::transport::Channel;

use crate::service::Digest;

/// How long a replica is put last after a failure; doubles with each further one.
const EVICTION: Duration = Duration::from_secs(1);
/// The longest of these.
const MAX_EVICTION: Duration = Duration::from_secs(30);
/// Digests remembered per replica (32 bytes each). When there are more, all are forgotten: that costs one larger request.
const MAX_KNOWN: usize = 1 << 16;

/// A replica.
#[derive(Debug)]
pub(super) struct Replica {
    url: String,
    client: ReconcileServiceClient<Channel>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    known: HashSet<Digest>,
    /// In a row.
    failures: u32,
    evicted_until: Option<Instant>,
}

impl Replica {
    pub(super) fn new(url: &str, client: ReconcileServiceClient<Channel>) -> Self {
        Self {
            url: url.to_owned(),
            client,
            state: Mutex::default(),
        }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn client(&self) -> ReconcileServiceClient<Channel> {
        self.client.clone()
    }

    pub(super) fn is_evicted(&self, now: Instant) -> bool {
        self.state().evicted_until.is_some_and(|until| now < until)
    }

    pub(super) fn failed(&self, now: Instant) {
        let mut state = self.state();
        let eviction = EVICTION
            .saturating_mul(1 << state.failures.min(16))
            .min(MAX_EVICTION);
        state.failures = state.failures.saturating_add(1);
        state.evicted_until = Some(now + eviction);
    }

    pub(super) fn answered(&self) {
        let mut state = self.state();
        state.failures = 0;
        state.evicted_until = None;
    }

    pub(super) fn knows(&self, digest: &Digest) -> bool {
        self.state().known.contains(digest)
    }

    pub(super) fn learn(&self, digests: impl IntoIterator<Item = Digest>) {
        let mut state = self.state();
        state.known.extend(digests);
        if state.known.len() > MAX_KNOWN {
            state.known.clear();
        }
    }

    /// The replica lacks these of the node and pod buckets that it was sent.
    pub(super) fn forget(&self, missing: &v1::MissingBuckets, [nodes, pods]: &[Vec<Digest>; 2]) {
        let at = |digests: &[Digest], indices: &[u32]| {
            indices
                .iter()
                .filter_map(|index| digests.get(*index as usize).copied())
                .collect::<Vec<_>>()
        };
        let mut state = self.state();
        for digest in at(nodes, &missing.node_bucket_indices)
            .into_iter()
            .chain(at(pods, &missing.pod_bucket_indices))
        {
            state.known.remove(&digest);
        }
    }

    pub(super) fn forget_all(&self) {
        self.state().known.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
