//! Whose turn it is: the attempts of one call, its time among them, and the pauses in between.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::ClientConfig;
use super::replica::Replica;

/// Into how many parts what is left of a call's time is divided at most. One that hangs costs a third of it, and there is
/// more than a moment for a large plan however many replicas there are.
const SHARES: usize = 3;

/// The attempts of one call.
#[derive(Debug)]
pub(super) struct Tries<'a> {
    config: &'a ClientConfig,
    deadline: Instant,
    made: usize,
    /// Who had their turn since the last pause.
    tried: Vec<Arc<Replica>>,
    pauses: u32,
}

/// One attempt.
#[derive(Debug)]
pub(super) struct Turn {
    /// Who is asked.
    pub(super) replica: Arc<Replica>,
    /// Who else may be asked.
    pub(super) spare: Option<Arc<Replica>>,
    /// Until when to wait for an answer.
    pub(super) until: Instant,
}

impl<'a> Tries<'a> {
    pub(super) fn new(config: &'a ClientConfig) -> Self {
        Self {
            config,
            deadline: Instant::now() + config.timeout,
            made: 0,
            tried: Vec::new(),
            pauses: 0,
        }
    }

    /// When the whole call must have ended.
    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    fn most(&self, order: &[Arc<Replica>]) -> usize {
        self.config.min_attempts.max(order.len())
    }

    /// The next attempt; none when attempts, time or replicas are used up. Each replica is asked once, then each again.
    pub(super) fn turn(&mut self, order: &[Arc<Replica>]) -> Option<Turn> {
        let left = self.most(order).checked_sub(self.made).filter(|left| *left > 0)?;
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
        let part = time / u32::try_from(left.min(SHARES)).unwrap_or(1);
        Some(Turn {
            replica,
            spare,
            until: Instant::now() + part,
        })
    }

    /// One more was asked besides.
    pub(super) fn also(&mut self, replica: &Arc<Replica>) {
        self.made += 1;
        self.tried.push(Arc::clone(replica));
    }

    /// How long to wait before the next attempt; `None` when there would be no time left for it.
    pub(super) fn pause(&mut self, order: &[Arc<Replica>], asked: Option<Duration>) -> Option<Duration> {
        if self.untried(order).next().is_some() {
            // Another replica may answer at once.
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
        let more = self.made < self.most(order) && Instant::now() + pause < self.deadline;
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

    /// The seconds that each attempt gets when all of them hang.
    async fn shares_of_who_hang(count: u16) -> Vec<u64> {
        let (config, order) = (config(), replicas(count));
        let mut tries = Tries::new(&config);
        let mut shares = Vec::new();
        while let Some(turn) = tries.turn(&order) {
            shares.push(turn.until.duration_since(Instant::now()).as_secs());
            tokio::time::sleep_until(turn.until).await;
        }
        shares
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_share_the_time_of_the_call() {
        assert_eq!(shares_of_who_hang(1).await, [10, 10, 10]);
        assert_eq!(shares_of_who_hang(3).await, [10, 10, 10]);
        assert_eq!(shares_of_who_hang(6).await, [10, 6, 4, 2, 2, 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn each_is_asked_before_anybody_is_asked_again() {
        let (config, order) = (config(), replicas(2));
        let mut tries = Tries::new(&config);
        let ports = |turn: Option<Turn>| {
            turn.map(|turn| {
                let spare = turn.spare.map(|spare| spare.address().to_string());
                (turn.replica.address().to_string(), spare)
            })
        };
        let (first, second) = ("127.0.0.1:1".to_owned(), "127.0.0.1:2".to_owned());
        assert_eq!(
            ports(tries.turn(&order)),
            Some((first.clone(), Some(second.clone())))
        );
        assert_eq!(tries.pause(&order, Some(Duration::MAX)), Some(Duration::ZERO));
        assert_eq!(ports(tries.turn(&order)), Some((second.clone(), None)));
        // Now everybody was asked, so what they say about time counts, within reason.
        let pause = tries.pause(&order, Some(Duration::MAX));
        assert_eq!(pause, Some(config.max_pause));
        order[1].evict("it failed");
        assert_eq!(ports(tries.turn(&order)), Some((first, None)), "no spare failed");
        assert_eq!(tries.pause(&order, None), Some(Duration::ZERO));
        assert!(tries.turn(&order).is_none(), "three attempts");
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_double_and_never_outlast_the_call() {
        let config = ClientConfig {
            min_attempts: 100,
            ..config()
        };
        let order = replicas(1);
        let mut tries = Tries::new(&config);
        let mut pauses = Vec::new();
        while tries.turn(&order).is_some()
            && let Some(pause) = tries.pause(&order, None)
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
    async fn without_a_replica_there_is_no_turn() {
        let config = config();
        assert!(Tries::new(&config).turn(&[]).is_none());
    }
}
