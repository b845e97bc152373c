//! The schedule of one call: which replica each attempt asks, how long an attempt may take, and the pauses between attempts.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::ClientConfig;
use super::replica::Replica;

/// The remaining time of a call is divided among the remaining attempts, but among no more than this number. So a replica that
/// hangs costs at most a third of the time that is left, and an attempt has enough time for a large plan even with many replicas.
const MAX_SHARES: usize = 3;

/// The attempts of one call.
#[derive(Debug)]
pub(super) struct AttemptSchedule<'a> {
    config: &'a ClientConfig,
    deadline: Instant,
    made: usize,
    /// The replicas that were asked since the last pause.
    tried: Vec<Arc<Replica>>,
    pauses: u32,
}

/// One attempt.
#[derive(Debug)]
pub(super) struct Attempt {
    /// The replica to ask.
    pub(super) replica: Arc<Replica>,
    /// The replica for a hedge.
    pub(super) spare: Option<Arc<Replica>>,
    /// The deadline of the attempt.
    pub(super) until: Instant,
}

impl<'a> AttemptSchedule<'a> {
    pub(super) fn new(config: &'a ClientConfig) -> Self {
        Self {
            config,
            deadline: Instant::now() + config.timeout,
            made: 0,
            tried: Vec::new(),
            pauses: 0,
        }
    }

    /// The deadline of the whole call.
    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    fn max_attempts(&self, order: &[Arc<Replica>]) -> usize {
        self.config.min_attempts.max(order.len())
    }

    /// The next attempt. `None` if attempts or time are used up or there is no replica. Each replica is asked once before any is
    /// asked again.
    pub(super) fn next_attempt(&mut self, order: &[Arc<Replica>]) -> Option<Attempt> {
        let left = self
            .max_attempts(order)
            .checked_sub(self.made)
            .filter(|left| *left > 0)?;
        let time = self.deadline.checked_duration_since(Instant::now())?;
        if time.is_zero() {
            return None;
        }
        if self.untried(order).next().is_none() {
            self.tried.clear();
        }
        let (replica, spare) = {
            let mut others = self.untried(order);
            let replica = Arc::clone(others.next()?);
            let spare = others.find(|replica| replica.is_eligible());
            (replica, spare.map(Arc::clone))
        };
        self.made += 1;
        self.tried.push(Arc::clone(&replica));
        let part = time / u32::try_from(left.min(MAX_SHARES)).unwrap_or(1);
        Some(Attempt {
            replica,
            spare,
            until: Instant::now() + part,
        })
    }

    /// Counts a hedge as an attempt.
    pub(super) fn add_hedge(&mut self, replica: &Arc<Replica>) {
        self.made += 1;
        self.tried.push(Arc::clone(replica));
    }

    /// The pause before the next attempt. `asked` is the delay that a replica asked for. `None` if no attempt or no time would be
    /// left.
    pub(super) fn pause(&mut self, order: &[Arc<Replica>], asked: Option<Duration>) -> Option<Duration> {
        if self.untried(order).next().is_some() {
            // Another replica was not asked yet: no pause.
            return Some(Duration::ZERO);
        }
        let doubled = self.config.base_pause.saturating_mul(1 << self.pauses.min(16));
        self.pauses += 1;
        let pause = match asked {
            Some(asked) => asked.min(self.config.max_pause),
            None => doubled
                .min(self.config.max_pause)
                .mul_f64(rand::random_range(0.5..1.0)),
        };
        let more = self.made < self.max_attempts(order) && Instant::now() + pause < self.deadline;
        more.then_some(pause)
    }

    fn untried<'b>(&'b self, order: &'b [Arc<Replica>]) -> impl Iterator<Item = &'b Arc<Replica>> {
        let tried = |replica: &Arc<Replica>| self.tried.iter().any(|tried| Arc::ptr_eq(tried, replica));
        order.iter().filter(move |replica| !tried(replica))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replicas(count: u16) -> Vec<Arc<Replica>> {
        let replica = |port| {
            let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
            Arc::new(Replica::new(address.into(), 1 << 20, None).expect("an address"))
        };
        (1..=count).map(replica).collect()
    }

    fn config() -> ClientConfig {
        ClientConfig {
            timeout: Duration::from_secs(30),
            min_attempts: 3,
            base_pause: Duration::from_secs(1),
            max_pause: Duration::from_secs(2),
            ..ClientConfig::default()
        }
    }

    /// The seconds that each attempt gets if all replicas hang.
    async fn shares_if_all_hang(count: u16) -> Vec<u64> {
        let (config, order) = (config(), replicas(count));
        let mut schedule = AttemptSchedule::new(&config);
        let mut shares = Vec::new();
        while let Some(attempt) = schedule.next_attempt(&order) {
            shares.push(attempt.until.duration_since(Instant::now()).as_secs());
            tokio::time::sleep_until(attempt.until).await;
        }
        shares
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_share_the_time_of_the_call() {
        assert_eq!(shares_if_all_hang(1).await, [10, 10, 10]);
        assert_eq!(shares_if_all_hang(3).await, [10, 10, 10]);
        assert_eq!(shares_if_all_hang(6).await, [10, 6, 4, 2, 2, 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn each_replica_is_asked_before_any_is_asked_again() {
        let (config, order) = (config(), replicas(2));
        let mut schedule = AttemptSchedule::new(&config);
        let ports = |attempt: Option<Attempt>| {
            attempt.map(|attempt| {
                let spare = attempt.spare.map(|spare| spare.address().to_string());
                (attempt.replica.address().to_string(), spare)
            })
        };
        let (first, second) = ("127.0.0.1:1".to_owned(), "127.0.0.1:2".to_owned());
        assert_eq!(
            ports(schedule.next_attempt(&order)),
            Some((first.clone(), Some(second.clone())))
        );
        assert_eq!(schedule.pause(&order, Some(Duration::MAX)), Some(Duration::ZERO));
        assert_eq!(ports(schedule.next_attempt(&order)), Some((second.clone(), None)));
        // All replicas were asked, so the pause that they ask for applies, up to max_pause.
        let pause = schedule.pause(&order, Some(Duration::MAX));
        assert_eq!(pause, Some(config.max_pause));
        order[1].evict("it failed");
        assert_eq!(
            ports(schedule.next_attempt(&order)),
            Some((first, None)),
            "no spare failed"
        );
        assert_eq!(schedule.pause(&order, None), Some(Duration::ZERO));
        assert!(schedule.next_attempt(&order).is_none(), "three attempts");
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_double_and_never_outlast_the_call() {
        let config = ClientConfig {
            min_attempts: 100,
            ..config()
        };
        let order = replicas(1);
        let mut schedule = AttemptSchedule::new(&config);
        let mut pauses = Vec::new();
        while schedule.next_attempt(&order).is_some()
            && let Some(pause) = schedule.pause(&order, None)
        {
            pauses.push(pause.as_secs_f64());
            tokio::time::sleep(pause).await;
        }
        assert!((0.5..=1.0).contains(&pauses[0]), "{pauses:?}");
        assert!(
            pauses[1..].iter().all(|pause| (1.0..=2.0).contains(pause)),
            "{pauses:?}"
        );
        assert!(
            pauses.iter().sum::<f64>() <= 30.0 && pauses.len() < 35,
            "{pauses:?}"
        );
    }

    #[tokio::test]
    async fn without_a_replica_there_is_no_attempt() {
        let config = config();
        assert!(AttemptSchedule::new(&config).next_attempt(&[]).is_none());
    }
}
