//! One replica of the service: its connection, its state, and the buckets that it is expected to have.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nodewise_proto::v1;
use nodewise_proto::v1::reconcile_service_client::ReconcileServiceClient;
use nodewise_tls::client::Connector;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;

use super::ClientError;
use nodewise_proto::workload::SHARED_LABELS_FEATURE;

use super::capabilities::Capabilities;
use super::dial::Dial;
use super::target::Address;
use crate::service::Digest;

/// The time between a failed call and the next probe. It doubles with each eviction until the replica answers a call.
const EVICTION: Duration = Duration::from_millis(500);
/// The longest time between a failed call and the next probe.
const MAX_EVICTION: Duration = Duration::from_secs(30);
/// The size of a generation of digests. There are two generations, so at least this many of the last used digests are remembered. A
/// generation ends after the request that exceeds this size. With 32 bytes per digest this takes about 9 MiB per replica.
const GENERATION: usize = 1 << 16;
/// The number of times in a row that a hedge may answer before this replica. At this number the replica is evicted.
const MOST_OVERTAKEN: u32 = 3;

/// A replica.
#[derive(Debug)]
pub(super) struct Replica {
    address: Address,
    url: String,
    channel: Channel,
    client: ReconcileServiceClient<Channel>,
    inner: Mutex<Inner>,
    call_failed: Notify,
    gone: CancellationToken,
    /// Locked by the call that sends pieces to the replica.
    pub(super) pieces: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Inner {
    known: Known,
    state: ReplicaState,
    /// The number of failed calls for which the replica was to blame.
    failures: u64,
    /// Evictions by failed calls since the last answered call.
    evictions: u32,
    /// How often a hedge answered first since the last answered call or the last eviction for this reason.
    overtaken: u32,
    /// What the replica knows; `None` if it was not asked since it was last probed.
    capabilities: Option<Arc<Capabilities>>,
    /// Whether it said last that it reads shared labels. A probe does not change that: a version that does not read them says so when
    /// it gets them.
    reads_shared_labels: bool,
    /// The uid of the workload whose call failed last, if no call was answered since. The cause may be the workload.
    failing: Option<String>,
}

/// The digests of the buckets that a replica is expected to have: those that were used last.
#[derive(Debug, Default)]
struct Known {
    recent: HashSet<Digest>,
    /// The previous generation. Dropped when `recent` is full.
    older: HashSet<Digest>,
}

impl Known {
    fn contains(&self, digest: &Digest) -> bool {
        self.recent.contains(digest) || self.older.contains(digest)
    }

    fn used(&mut self, digests: impl IntoIterator<Item = Digest>) {
        self.recent.extend(digests);
        if self.recent.len() > GENERATION {
            self.older = std::mem::take(&mut self.recent);
        }
    }

    fn forget(&mut self, digest: &Digest) {
        self.recent.remove(digest);
        self.older.remove(digest);
    }
}

impl Inner {
    /// Evicts the replica. Returns whether it was eligible before.
    fn evict(&mut self, reason: &str) -> bool {
        let before = std::mem::replace(&mut self.state, ReplicaState::Evicted(reason.to_owned()));
        before.rank() == 0
    }
}

/// The state of a replica.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum ReplicaState {
    /// No call was made yet.
    #[default]
    Unknown,
    /// The replica serves.
    Ready,
    /// A call or a probe failed. The text is the reason.
    Evicted(String),
    /// The replica is about to stop, and rejects new calls.
    Draining,
}

impl ReplicaState {
    /// The rank in the order of calls; the lowest is asked first. A draining replica certainly rejects calls; an evicted one may
    /// answer.
    pub(super) fn rank(&self) -> u8 {
        match self {
            Self::Unknown | Self::Ready => 0,
            Self::Evicted(_) => 1,
            Self::Draining => 2,
        }
    }
}

impl Replica {
    /// Connects at the first call. Uses TLS if the address has a server name.
    pub(super) fn new(
        address: Address,
        max_message_bytes: usize,
        connector: Option<&Connector>,
    ) -> Result<Self, ClientError> {
        let dial = Dial::to(&address, connector)?;
        let (url, channel) = (dial.url.clone(), dial.lazily());
        let client = ReconcileServiceClient::new(channel.clone())
            .max_decoding_message_size(max_message_bytes)
            .max_encoding_message_size(usize::MAX);
        Ok(Self {
            address,
            url,
            channel,
            client,
            inner: Mutex::default(),
            call_failed: Notify::new(),
            gone: CancellationToken::new(),
            pieces: tokio::sync::Mutex::default(),
        })
    }

    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn client(&self) -> ReconcileServiceClient<Channel> {
        self.client.clone()
    }

    pub(super) fn channel(&self) -> Channel {
        self.channel.clone()
    }

    pub(super) fn state(&self) -> ReplicaState {
        self.lock().state.clone()
    }

    /// Whether calls may go to this replica before others have failed.
    pub(super) fn is_eligible(&self) -> bool {
        self.lock().state.rank() == 0
    }

    /// Notes an answered call. A draining replica stays draining: it finishes the calls that it has.
    pub(super) fn answered(&self) {
        let mut inner = self.lock();
        (inner.evictions, inner.overtaken, inner.failing) = (0, 0, None);
        if inner.state != ReplicaState::Draining {
            inner.state = ReplicaState::Ready;
        }
    }

    /// Notes a failed call. Returns whether this evicted the replica.
    pub(super) fn failed(&self, reason: &str) -> bool {
        let mut inner = self.lock();
        if inner.state == ReplicaState::Draining {
            return false;
        }
        inner.failures += 1;
        let evicts = inner.evict(reason);
        if evicts {
            inner.evictions = inner.evictions.saturating_add(1);
            self.call_failed.notify_one();
        }
        evicts
    }

    /// Notes a failed call for this workload. Returns whether the failure before was for another workload, without an answered call
    /// in between.
    pub(super) fn has_failed_for_another(&self, uid: &str) -> bool {
        let before = self.lock().failing.replace(uid.to_owned());
        before.is_some_and(|before| before != uid)
    }

    /// Notes that a hedge answered first. Returns whether this happened often enough in a row to count as a failure.
    pub(super) fn note_overtaken(&self) -> bool {
        let mut inner = self.lock();
        inner.overtaken += 1;
        let enough = inner.overtaken == MOST_OVERTAKEN;
        if enough {
            inner.overtaken = 0;
        }
        enough
    }

    /// The number of failed calls so far, for [`Replica::serves`].
    pub(super) fn failures(&self) -> u64 {
        self.lock().failures
    }

    /// Applies a healthy probe. `failures` is the number of failed calls when the probe was sent. Returns false and ignores the
    /// probe if a call failed after it was sent.
    pub(super) fn serves(&self, failures: u64) -> bool {
        let mut inner = self.lock();
        let counts = inner.failures == failures;
        if counts {
            inner.state = ReplicaState::Ready;
        }
        // Another version may listen at the address now.
        inner.capabilities = None;
        counts
    }

    /// Marks the replica as draining. Returns whether it was eligible before.
    pub(super) fn drains(&self) -> bool {
        let mut inner = self.lock();
        std::mem::replace(&mut inner.state, ReplicaState::Draining).rank() == 0
    }

    /// Evicts the replica because of its health. Returns whether it was eligible before.
    pub(super) fn evict(&self, reason: &str) -> bool {
        self.lock().evict(reason)
    }

    /// Waits until a failed call evicts the replica.
    pub(super) async fn call_failed(&self) {
        self.call_failed.notified().await;
    }

    /// The time to wait before the next probe, because of failed calls.
    pub(super) fn eviction_pause(&self) -> Duration {
        match self.lock().evictions {
            0 => Duration::ZERO,
            evictions => EVICTION
                .saturating_mul(1 << (evictions - 1).min(16))
                .min(MAX_EVICTION),
        }
    }

    /// Cancelled when the replica is removed from the set. Calls in progress continue.
    pub(super) fn removed(&self) -> &CancellationToken {
        &self.gone
    }

    /// What the replica knows, if it was asked.
    pub(super) fn capabilities(&self) -> Option<Arc<Capabilities>> {
        self.lock().capabilities.clone()
    }

    /// Notes what the replica knows.
    pub(super) fn is_capable_of(&self, capabilities: Arc<Capabilities>) {
        let mut inner = self.lock();
        inner.reads_shared_labels = capabilities.has(SHARED_LABELS_FEATURE);
        inner.capabilities = Some(capabilities);
    }

    /// Whether the replica reads shared labels; `None` if it has to be asked.
    pub(super) fn reads_shared_labels(&self) -> Option<bool> {
        let inner = self.lock();
        (inner.reads_shared_labels || inner.capabilities.is_some()).then_some(inner.reads_shared_labels)
    }

    /// Forgets what the replica knows: an earlier version answers, too.
    pub(super) fn forget_capabilities(&self) {
        let mut inner = self.lock();
        (inner.capabilities, inner.reads_shared_labels) = (None, false);
    }

    pub(super) fn knows(&self, digest: &Digest) -> bool {
        self.lock().known.contains(digest)
    }

    /// Notes that the replica has these buckets.
    pub(super) fn learn(&self, digests: impl IntoIterator<Item = Digest>) {
        self.lock().known.used(digests);
    }

    /// Notes that the replica lacks these buckets. The digests are those of the request's node buckets and pod buckets.
    pub(super) fn forget(&self, missing: &v1::MissingBuckets, [nodes, pods]: &[Vec<Digest>; 2]) {
        let at = |digests: &[Digest], indices: &[u32]| {
            indices
                .iter()
                .filter_map(|index| digests.get(*index as usize).copied())
                .collect::<Vec<_>>()
        };
        let mut inner = self.lock();
        for digest in at(nodes, &missing.node_bucket_indices)
            .into_iter()
            .chain(at(pods, &missing.pod_bucket_indices))
        {
            inner.known.forget(&digest);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replica() -> Replica {
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
        Replica::new(address.into(), 1 << 20, None).expect("an address")
    }

    // A healthy probe does not reset the pause; only an answered call does.
    #[tokio::test]
    async fn calls_that_fail_again_and_again_evict_for_longer() {
        let replica = replica();
        let mut pauses = Vec::new();
        for _ in 0..9 {
            assert!(replica.failed("no answer"));
            assert!(
                !replica.failed("no answer"),
                "one failure evicts, others add nothing"
            );
            assert_eq!(replica.state(), ReplicaState::Evicted("no answer".into()));
            pauses.push(replica.eviction_pause().as_secs_f64());
            replica.serves(replica.failures());
        }
        assert_eq!(pauses, [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]);
        replica.answered();
        assert_eq!(replica.eviction_pause(), Duration::ZERO);
    }

    #[tokio::test]
    async fn buckets_in_use_are_remembered() {
        let digest = |number: usize| {
            let mut digest = Digest::default();
            digest[..8].copy_from_slice(&number.to_le_bytes());
            digest
        };
        let replica = replica();
        let in_use = || (0..1_000).map(digest);
        let mut next = 1_000;
        for _ in 0..40 {
            replica.learn(in_use());
            replica.learn((next..next + 10_000).map(digest));
            next += 10_000;
            assert!(in_use().all(|digest| replica.knows(&digest)), "after {next}");
        }
        let known = (0..next).filter(|number| replica.knows(&digest(*number))).count();
        assert!(
            (GENERATION..3 * GENERATION).contains(&known),
            "{known} are remembered"
        );
        assert!(
            replica.knows(&digest(next - GENERATION / 2)),
            "those used last are among them"
        );
        assert!(!replica.knows(&digest(next - 3 * GENERATION)));
    }

    #[tokio::test]
    async fn an_answered_call_does_not_end_draining() {
        let replica = replica();
        assert!(replica.is_eligible(), "before it is known");
        assert!(replica.drains() && !replica.drains());
        replica.answered();
        assert!(!replica.failed("refused"));
        assert_eq!(replica.state(), ReplicaState::Draining);
        replica.serves(replica.failures());
        assert_eq!(replica.state(), ReplicaState::Ready);
    }

    #[tokio::test]
    async fn a_probe_that_is_older_than_a_failed_call_is_ignored() {
        let replica = replica();
        let sent = replica.failures();
        assert!(replica.failed("no answer"));
        assert!(!replica.serves(sent));
        assert_eq!(replica.state(), ReplicaState::Evicted("no answer".into()));
    }
}
