//! One replica of the service: its connection, how it stands, and which buckets it is believed to have.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nodewise_proto::v1;
use nodewise_proto::v1::reconcile_service_client::ReconcileServiceClient;
use nodewise_tls::client::Connector;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;

use super::ClientError;
use super::dial::Dial;
use super::target::Address;
use crate::service::Digest;

/// How long a replica that failed a call is left alone before it is probed; doubles each time that it fails again before it
/// has answered one.
const EVICTION: Duration = Duration::from_millis(500);
/// The longest of these.
const MAX_EVICTION: Duration = Duration::from_secs(30);
/// Digests of a generation, of which there are two: so many that were used last are remembered for certain. Each generation
/// ends with the request that makes it larger, so there may be at most twice as many and those of two requests: of 32 bytes
/// each, with the room in the tables, about 9 MiB for a replica.
const GENERATION: usize = 1 << 16;
/// How often in a row a replica may be overtaken by another that was asked later.
const MOST_OVERTAKEN: u32 = 3;

/// A replica.
#[derive(Debug)]
pub(super) struct Replica {
    address: Address,
    url: String,
    channel: Channel,
    client: ReconcileServiceClient<Channel>,
    state: Mutex<State>,
    call_failed: Notify,
    gone: CancellationToken,
    /// Held by the call that sends it pieces.
    pub(super) pieces: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    known: Known,
    standing: Standing,
    /// How many calls to it failed that could have gone well.
    failures: u64,
    /// How often it was evicted for a failed call since it last answered one.
    evictions: u32,
    /// How often another was quicker since it last answered a call or was evicted for that.
    overtaken: u32,
    /// The uid of the workload whose call has failed, if none was answered since. It may be the workload.
    failing: Option<String>,
}

/// The buckets that a replica is believed to have: those used last.
#[derive(Debug, Default)]
struct Known {
    recent: HashSet<Digest>,
    /// Dropped when there are enough recent ones.
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

impl State {
    /// Whether it could be asked until now.
    fn evict(&mut self, reason: &str) -> bool {
        let before = std::mem::replace(&mut self.standing, Standing::Evicted(reason.to_owned()));
        before.rank() == 0
    }
}

/// How a replica stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nobody asked it yet.
    #[default]
    Unknown,
    /// It serves.
    Ready,
    /// It did not answer, for this reason.
    Evicted(String),
    /// It is about to end, and refuses new calls.
    Draining,
}

impl Standing {
    /// Who is asked first: the least. One that drains refuses for certain, one that is evicted perhaps.
    pub(super) fn rank(&self) -> u8 {
        match self {
            Self::Unknown | Self::Ready => 0,
            Self::Evicted(_) => 1,
            Self::Draining => 2,
        }
    }
}

impl Replica {
    /// Connects when it is first used; over TLS with the connector, if its address asks for that.
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
            state: Mutex::default(),
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

    pub(super) fn standing(&self) -> Standing {
        self.state().standing.clone()
    }

    /// Whether it may be asked before others have failed.
    pub(super) fn is_eligible(&self) -> bool {
        self.state().standing.rank() == 0
    }

    /// It answered a call. One that drains finishes what it has.
    pub(super) fn answered(&self) {
        let mut state = self.state();
        (state.evictions, state.overtaken, state.failing) = (0, 0, None);
        if state.standing != Standing::Draining {
            state.standing = Standing::Ready;
        }
    }

    /// A call failed. Whether that evicts it just now.
    pub(super) fn failed(&self, reason: &str) -> bool {
        let mut state = self.state();
        if state.standing == Standing::Draining {
            return false;
        }
        state.failures += 1;
        let evicts = state.evict(reason);
        if evicts {
            state.evictions = state.evictions.saturating_add(1);
            self.call_failed.notify_one();
        }
        evicts
    }

    /// A call for this workload failed. Whether one for another did before, and none was answered in between.
    pub(super) fn fails_another(&self, uid: &str) -> bool {
        let before = self.state().failing.replace(uid.to_owned());
        before.is_some_and(|before| before != uid)
    }

    /// Another replica, asked later, was quicker. Whether it is so often enough to call it a failure.
    pub(super) fn is_overtaken_again(&self) -> bool {
        let mut state = self.state();
        state.overtaken += 1;
        let enough = state.overtaken == MOST_OVERTAKEN;
        if enough {
            state.overtaken = 0;
        }
        enough
    }

    /// How many calls to it have failed so far, for [`Replica::serves`].
    pub(super) fn failures(&self) -> u64 {
        self.state().failures
    }

    /// It said that it serves, to a probe that was sent when so many calls had failed. Whether that counts: one that failed since knows
    /// better.
    pub(super) fn serves(&self, failures: u64) -> bool {
        let mut state = self.state();
        let counts = state.failures == failures;
        if counts {
            state.standing = Standing::Ready;
        }
        counts
    }

    /// It said that it serves no longer. Whether it could be asked until now.
    pub(super) fn drains(&self) -> bool {
        let mut state = self.state();
        std::mem::replace(&mut state.standing, Standing::Draining).rank() == 0
    }

    /// It cannot be reached. Whether it could be asked until now.
    pub(super) fn evict(&self, reason: &str) -> bool {
        self.state().evict(reason)
    }

    /// Waits until a call evicts it.
    pub(super) async fn call_failed(&self) {
        self.call_failed.notified().await;
    }

    /// How long it is to be left alone because of failed calls.
    pub(super) fn rest(&self) -> Duration {
        match self.state().evictions {
            0 => Duration::ZERO,
            evictions => EVICTION
                .saturating_mul(1 << (evictions - 1).min(16))
                .min(MAX_EVICTION),
        }
    }

    /// Cancelled when it is a replica no more. Calls under way go on.
    pub(super) fn gone(&self) -> &CancellationToken {
        &self.gone
    }

    pub(super) fn knows(&self, digest: &Digest) -> bool {
        self.state().known.contains(digest)
    }

    /// It was sent these, or has shown that it has them.
    pub(super) fn learn(&self, digests: impl IntoIterator<Item = Digest>) {
        self.state().known.used(digests);
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
            state.known.forget(&digest);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replica() -> Replica {
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
        Replica::new(address.into(), 1 << 20, None).expect("an address")
    }

    // A healthy answer to a probe is no answered call: who fails each call is left alone for longer each time.
    #[tokio::test]
    async fn calls_that_fail_again_and_again_evict_for_longer() {
        let replica = replica();
        let mut rests = Vec::new();
        for _ in 0..9 {
            assert!(replica.failed("no answer"));
            assert!(
                !replica.failed("no answer"),
                "one failure evicts, others add nothing"
            );
            assert_eq!(replica.standing(), Standing::Evicted("no answer".into()));
            rests.push(replica.rest().as_secs_f64());
            replica.serves(replica.failures());
        }
        assert_eq!(rests, [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]);
        replica.answered();
        assert_eq!(replica.rest(), Duration::ZERO);
    }

    #[tokio::test]
    async fn buckets_that_are_in_use_are_not_forgotten_however_many_there_were() {
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
    async fn one_that_drains_finishes_its_calls_and_is_not_ready_for_that() {
        let replica = replica();
        assert!(replica.is_eligible(), "before it is known");
        assert!(replica.drains() && !replica.drains());
        replica.answered();
        assert!(!replica.failed("refused"));
        assert_eq!(replica.standing(), Standing::Draining);
        replica.serves(replica.failures());
        assert_eq!(replica.standing(), Standing::Ready);
    }

    #[tokio::test]
    async fn the_answer_to_a_probe_does_not_undo_what_a_later_call_has_shown() {
        let replica = replica();
        let sent = replica.failures();
        assert!(replica.failed("no answer"));
        assert!(!replica.serves(sent));
        assert_eq!(replica.standing(), Standing::Evicted("no answer".into()));
    }
}
