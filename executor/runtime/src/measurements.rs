//! The measurements that plans ask for: which are under way, and the results that no plan has counted yet.
//!
//! A plan asks for a measurement and does not wait for it. When the measurement has ended, its workload is planned again, with the
//! result in the snapshot. This module does the bookkeeping; a [`Measurer`] makes the calls. Everything is in memory: after a
//! restart, plans ask again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Debug;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use nodewise_projection::{Key, RolloutPolicy, timestamp};
use nodewise_proto::v1::{self, measurement};
use prost::Message as _;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// The most measurements of a workload that are under way or whose results are held: as many as a snapshot may have.
const MOST: usize = 1_000;

/// The most bytes of the results of a workload that are held. A service that asks for measurements and never counts them must not fill
/// the memory. Of one that counts them, each plan drops what is held.
const MOST_BYTES: usize = 4 << 20;

/// A call that makes a measurement. It ends with the result, which may be an error.
pub type Measuring = Pin<Box<dyn Future<Output = measurement::Result> + Send>>;

/// What a measurement is about.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The workload.
    pub workload: Key,
    /// metadata.uid of the workload.
    pub uid: String,
    /// The policy as it was in the snapshot of the plan that asks for the measurement.
    pub policy: Option<Arc<RolloutPolicy>>,
    /// The merge patch with which that plan has written the policy's status. Empty if it has not.
    pub status_patch: Bytes,
}

impl Subject {
    /// A subject of which no policy is known.
    #[must_use]
    pub fn new(workload: Key, uid: &str) -> Self {
        Self {
            workload,
            uid: uid.to_owned(),
            policy: None,
            status_patch: Bytes::new(),
        }
    }
}

/// Makes measurements.
pub trait Measurer: Debug + Send + Sync + 'static {
    /// Makes a measurement. The future must end by itself. It is dropped as soon as nobody waits for the result any more. It must not
    /// keep the subject: many may wait, and each would hold a version of its policy in memory.
    fn measure(&self, subject: &Subject, request: &v1::Measure) -> Measuring;

    /// The hosts that may be called, as in the field `analysis_hosts` of a snapshot.
    fn hosts(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A measurer that calls nobody.
#[derive(Clone, Copy, Debug)]
pub struct NoMeasurer;

impl Measurer for NoMeasurer {
    fn measure(&self, _: &Subject, _: &v1::Measure) -> Measuring {
        let error = "this executor makes no measurements".to_owned();
        Box::pin(std::future::ready(measurement::Result::Error(error)))
    }
}

/// The measurements of all workloads. Clones share them. Dropping the last one ends those that are under way.
#[derive(Clone, Debug)]
pub struct Measurements {
    measurer: Arc<dyn Measurer>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    ended: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Whether nothing is started any more.
    is_over: bool,
    of: HashMap<Key, OfWorkload>,
    /// The workloads of which measurements have ended that [`Measurements::ended`] has not returned yet.
    ended: BTreeSet<Key>,
}

#[derive(Debug)]
struct OfWorkload {
    /// metadata.uid of the workload.
    uid: String,
    entries: BTreeMap<Id, Entry>,
}

/// The parts of a MeasurementId: policy, check, stage, revision and number.
type Id = (String, String, String, String, u32);

#[derive(Debug)]
enum Entry {
    UnderWay(AbortHandle),
    Ended(Box<v1::Measurement>),
}

impl Default for Measurements {
    fn default() -> Self {
        Self::new(Arc::new(NoMeasurer))
    }
}

impl Measurements {
    /// Creates measurements that this measurer makes.
    #[must_use]
    pub fn new(measurer: Arc<dyn Measurer>) -> Self {
        Self {
            measurer,
            shared: Arc::default(),
        }
    }

    /// Starts a measurement, and returns at once. A request for a measurement that is under way or whose result is held is ignored.
    pub fn start(&self, subject: &Subject, request: &v1::Measure) {
        let Some(id) = &request.id else { return };
        let (workload, uid) = (&subject.workload, &*subject.uid);
        let mut state = self.shared.lock();
        if state.is_over {
            return;
        }
        let of = state
            .of
            .entry(workload.clone())
            .or_insert_with(|| OfWorkload::of(uid));
        if of.uid != uid {
            *of = OfWorkload::of(uid);
        }
        if of.entries.contains_key(&parts(id)) || of.entries.len() >= MOST {
            return;
        }
        let (measuring, shared) = (
            self.measurer.measure(subject, request),
            Arc::downgrade(&self.shared),
        );
        let task = end(measuring, shared, workload.clone(), id.clone());
        let handle = tokio::spawn(task).abort_handle();
        of.entries.insert(parts(id), Entry::UnderWay(handle));
    }

    /// The results for the workload of this uid that no plan has counted yet, in the order of their ids.
    #[must_use]
    pub fn results(&self, workload: &Key, uid: &str) -> Vec<v1::Measurement> {
        let state = self.shared.lock();
        let of = state.of.get(workload).filter(|of| of.uid == uid);
        let entries = of.into_iter().flat_map(|of| of.entries.values());
        let results = entries.filter_map(|entry| match entry {
            Entry::UnderWay(_) => None,
            Entry::Ended(measurement) => Some((**measurement).clone()),
        });
        results.collect()
    }

    /// Drops these results of a workload: a plan that had them was carried out.
    pub fn counted(&self, workload: &Key, ids: &[v1::MeasurementId]) {
        let mut state = self.shared.lock();
        let Some(of) = state.of.get_mut(workload) else {
            return;
        };
        for id in ids {
            let id = parts(id);
            if matches!(of.entries.get(&id), Some(Entry::Ended(_))) {
                of.entries.remove(&id);
            }
        }
        if of.entries.is_empty() {
            state.of.remove(workload);
        }
    }

    /// Forgets what was measured for policies of a workload whose uids are not these, and ends what is under way for them.
    pub fn retain(&self, workload: &Key, is_of_policy: &dyn Fn(&str) -> bool) {
        let mut state = self.shared.lock();
        let Some(of) = state.of.get_mut(workload) else {
            return;
        };
        of.entries.retain(|(policy_uid, ..), _| is_of_policy(policy_uid));
        if of.entries.is_empty() {
            state.of.remove(workload);
        }
    }

    /// Forgets a workload that is gone, and ends its measurements.
    pub fn forget(&self, workload: &Key) {
        self.shared.lock().of.remove(workload);
    }

    /// Ends all measurements, and starts none from now on: nobody makes plans any more.
    pub fn end(&self) {
        let mut state = self.shared.lock();
        state.is_over = true;
        state.of.clear();
        state.ended.clear();
    }

    /// The hosts that may be called.
    #[must_use]
    pub fn hosts(&self) -> Vec<String> {
        self.measurer.hosts()
    }

    /// Waits for the end of a measurement, and returns its workload. It may be dropped at any time.
    pub async fn ended(&self) -> Key {
        loop {
            let first = self.shared.lock().ended.pop_first();
            match first {
                Some(workload) => return workload,
                None => self.shared.ended.notified().await,
            }
        }
    }
}

/// Waits for the end of a measurement and keeps its result.
async fn end(measuring: Measuring, shared: Weak<Shared>, workload: Key, id: v1::MeasurementId) {
    let result = measuring.await;
    let Some(shared) = shared.upgrade() else { return };
    {
        let mut state = shared.lock();
        let Some(of) = state.of.get_mut(&workload) else {
            return;
        };
        let held: usize = of.entries.values().map(Entry::bytes).sum();
        let Some(entry) = of.entries.get_mut(&parts(&id)) else {
            return;
        };
        let mut ended = v1::Measurement {
            id: Some(id),
            time: Some(timestamp(jiff::Timestamp::now())),
            result: Some(result),
        };
        let bytes = ended.encoded_len();
        if held.saturating_add(bytes) > MOST_BYTES {
            let error = format!(
                "the result has {bytes} bytes, and {held} bytes of results wait to be counted; at most {MOST_BYTES} are held for a workload"
            );
            ended.result = Some(measurement::Result::Error(error));
        }
        *entry = Entry::Ended(Box::new(ended));
        state.ended.insert(workload);
    }
    shared.ended.notify_one();
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OfWorkload {
    fn of(uid: &str) -> Self {
        Self {
            uid: uid.to_owned(),
            entries: BTreeMap::new(),
        }
    }
}

impl Entry {
    /// The bytes of a result.
    fn bytes(&self) -> usize {
        match self {
            Self::UnderWay(_) => 0,
            Self::Ended(measurement) => measurement.encoded_len(),
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let Self::UnderWay(task) = self {
            task.abort();
        }
    }
}

fn parts(id: &v1::MeasurementId) -> Id {
    let v1::MeasurementId {
        policy_uid,
        revision_hash,
        stage,
        check,
        number,
    } = id.clone();
    (policy_uid, check, stage, revision_hash, number)
}

#[cfg(test)]
mod tests {
    use tokio::sync::{mpsc, oneshot};

    use super::*;
    use crate::testing::key;

    fn subject(uid: &str) -> Subject {
        Subject::new(key(), uid)
    }

    type Answer = oneshot::Sender<measurement::Result>;

    /// Hands out the answers to its measurements.
    #[derive(Debug)]
    struct Scripted(mpsc::UnboundedSender<Answer>);

    impl Measurer for Scripted {
        fn measure(&self, _: &Subject, _: &v1::Measure) -> Measuring {
            let (answer, answered) = oneshot::channel();
            self.0.send(answer).expect("the test waits for it");
            Box::pin(async { answered.await.expect("the test answers") })
        }
    }

    fn scripted() -> (Measurements, mpsc::UnboundedReceiver<Answer>) {
        let (sender, answers) = mpsc::unbounded_channel();
        (Measurements::new(Arc::new(Scripted(sender))), answers)
    }

    fn request(number: u32) -> v1::Measure {
        v1::Measure {
            id: Some(v1::MeasurementId {
                policy_uid: "p1".into(),
                number,
                ..v1::MeasurementId::default()
            }),
            ..v1::Measure::default()
        }
    }

    fn numbers(results: &[v1::Measurement]) -> Vec<u32> {
        let ids = results.iter().filter_map(|result| result.id.as_ref());
        ids.map(|id| id.number).collect()
    }

    fn value(text: &str) -> measurement::Result {
        measurement::Result::Value(text.into())
    }

    #[tokio::test]
    async fn a_result_stays_until_it_is_counted() {
        let (measurements, mut answers) = scripted();
        for number in [0, 1, 0] {
            measurements.start(&subject("u1"), &request(number));
        }
        let [first, second] =
            [answers.recv().await, answers.recv().await].map(|answer| answer.expect("a call"));
        assert!(
            answers.try_recv().is_err(),
            "one that is under way is not started again"
        );
        assert_eq!(measurements.results(&key(), "u1"), []);
        second.send(value("2")).expect("it waits");
        assert_eq!(measurements.ended().await, key());
        let results = measurements.results(&key(), "u1");
        assert_eq!(numbers(&results), [1]);
        assert_eq!(results[0].result, Some(value("2")));
        assert_eq!(
            measurements.results(&key(), "u2"),
            [],
            "another workload of the name has none"
        );
        measurements.start(&subject("u1"), &request(1));
        assert!(answers.try_recv().is_err(), "its result is held");
        let ids: Vec<_> = [0, 1]
            .into_iter()
            .filter_map(|number| request(number).id)
            .collect();
        measurements.counted(&key(), &ids);
        assert_eq!(measurements.results(&key(), "u1"), []);
        first.send(value("1")).expect("the one that is under way stays");
        assert_eq!(measurements.ended().await, key());
        assert_eq!(numbers(&measurements.results(&key(), "u1")), [0]);
    }

    #[tokio::test]
    async fn a_workload_that_is_gone_has_no_measurements() {
        let (measurements, mut answers) = scripted();
        measurements.start(&subject("u1"), &request(0));
        let mut answer = answers.recv().await.expect("a call");
        measurements.forget(&key());
        answer.closed().await;
        measurements.start(&subject("u1"), &request(0));
        let mut answer = answers.recv().await.expect("a call");
        measurements.start(&subject("u2"), &request(0));
        answer.closed().await;
        let mut answer = answers.recv().await.expect("a call");
        drop(measurements);
        answer.closed().await;
    }

    // A wrong service asks and never counts. The error counts as one of the check, so that the rollout waits.
    #[tokio::test]
    async fn the_results_of_a_workload_have_a_limited_size() {
        let (measurements, mut answers) = scripted();
        let size = 64 << 10;
        for number in 0..100 {
            measurements.start(&subject("u1"), &request(number));
            let answer = answers.recv().await.expect("a call");
            answer.send(value(&"x".repeat(size))).expect("it waits");
            measurements.ended().await;
        }
        let results = measurements.results(&key(), "u1");
        let bytes: usize = results.iter().map(prost::Message::encoded_len).sum();
        assert!(results.len() == 100 && bytes < MOST_BYTES + 100 * 300, "{bytes}");
        let is_value =
            |result: &&v1::Measurement| matches!(result.result, Some(measurement::Result::Value(_)));
        assert_eq!(results.iter().filter(is_value).count(), MOST_BYTES / size - 1);
        let Some(measurement::Result::Error(error)) = &results[99].result else {
            panic!("{results:?}");
        };
        assert!(error.contains("at most 4194304 are held"), "{error}");
        let ids: Vec<_> = results.into_iter().filter_map(|result| result.id).collect();
        measurements.counted(&key(), &ids);
        measurements.start(&subject("u1"), &request(0));
        let answer = answers.recv().await.expect("a call");
        answer.send(value("1")).expect("it waits");
        measurements.ended().await;
        assert_eq!(
            measurements.results(&key(), "u1")[0].result,
            Some(value("1")),
            "there is room again"
        );
    }

    #[tokio::test]
    async fn of_a_policy_that_is_gone_nothing_is_kept() {
        let (measurements, mut answers) = scripted();
        for number in [0, 1] {
            measurements.start(&subject("u1"), &request(number));
        }
        let [ended, mut under_way] =
            [answers.recv().await, answers.recv().await].map(|answer| answer.expect("a call"));
        ended.send(value("1")).expect("it waits");
        measurements.ended().await;
        measurements.retain(&key(), &|uid| uid == "p1");
        assert_eq!(numbers(&measurements.results(&key(), "u1")), [0]);
        assert!(!under_way.is_closed());
        measurements.retain(&key(), &|uid| uid == "p2");
        under_way.closed().await;
        assert_eq!(measurements.results(&key(), "u1"), []);
        assert!(measurements.shared.lock().of.is_empty());
    }

    // A stop, or the loss of the lease.
    #[tokio::test]
    async fn after_the_end_nothing_is_under_way_or_started() {
        let (measurements, mut answers) = scripted();
        measurements.start(&subject("u1"), &request(0));
        let mut answer = answers.recv().await.expect("a call");
        measurements.end();
        answer.closed().await;
        measurements.start(&subject("u1"), &request(1));
        assert!(answers.try_recv().is_err(), "it is over");
        assert_eq!(measurements.results(&key(), "u1"), []);
    }

    #[tokio::test]
    async fn without_a_measurer_no_measurement_can_be_made() {
        let measurements = Measurements::default();
        measurements.start(&subject("u1"), &request(0));
        measurements.ended().await;
        let error = measurement::Result::Error("this executor makes no measurements".into());
        assert_eq!(measurements.results(&key(), "u1")[0].result, Some(error));
        assert_eq!(measurements.hosts(), [""; 0]);
    }

    #[tokio::test]
    async fn the_number_of_measurements_of_a_workload_is_limited() {
        let (measurements, mut answers) = scripted();
        for number in 0..=1_000 {
            measurements.start(&subject("u1"), &request(number));
        }
        assert_eq!(answers.len(), 1_000);
        let mut answer = answers.recv().await.expect("a call");
        drop(measurements);
        answer.closed().await;
    }
}
