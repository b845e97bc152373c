//! Remembers for a moment what Events tell of workloads, so that no status waits for a list of Events.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kube::Client;
use tokio::{sync::Semaphore, time::Instant};

use crate::{
    input::Served,
    refusals::{Refusals, Subject, Told},
};

/// Events are listed again after this time.
const FRESH: Duration = Duration::from_secs(5);
/// An answer that nobody has asked for so long is forgotten.
const KEPT: Duration = Duration::from_mins(1);
/// The most lists of Events at a time.
const MAX_LISTS: usize = 4;

/// What Events tell of workloads.
pub(super) struct ToldCache {
    client: Client,
    /// By uid.
    known: Arc<Mutex<HashMap<String, Known>>>,
    lists: Arc<Semaphore>,
}

#[derive(Debug)]
struct Known {
    /// When this was asked last.
    asked: Instant,
    told: Told,
}

impl ToldCache {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            known: Arc::default(),
            lists: Arc::new(Semaphore::new(MAX_LISTS)),
        }
    }

    /// What Events tell of a workload as far as it is known. If that is old, Events are listed meanwhile, and the next call returns what
    /// they say.
    pub(super) fn told(&self, workload: &Served) -> Told {
        let now = Instant::now();
        let (told, is_old) = recall(&mut lock(&self.known), &workload.uid, now);
        if is_old {
            let (known, lists) = (Arc::clone(&self.known), Arc::clone(&self.lists));
            let client = self.client.clone();
            let (subject, uid) = (Subject::of(workload), workload.uid.clone());
            tokio::spawn(async move {
                let Ok(_slot) = lists.acquire().await else { return };
                let told = Refusals::told(&client, &subject).await;
                if let Some(known) = lock(&known).get_mut(&uid) {
                    known.told = told;
                }
            });
        }
        told
    }
}

/// What is known about a workload, and whether that must be asked again. Then it counts as asked now.
fn recall(known: &mut HashMap<String, Known>, uid: &str, now: Instant) -> (Told, bool) {
    if let Some(known) = known.get_mut(uid) {
        let is_old = now.saturating_duration_since(known.asked) >= FRESH;
        if is_old {
            known.asked = now;
        }
        return (known.told.clone(), is_old);
    }
    known.retain(|_, known| now.saturating_duration_since(known.asked) < KEPT);
    let unknown = Known {
        asked: now,
        told: Told::default(),
    };
    known.insert(uid.to_owned(), unknown);
    (Told::default(), true)
}

fn lock(known: &Mutex<HashMap<String, Known>>) -> MutexGuard<'_, HashMap<String, Known>> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_is_asked_about_once_in_a_while() {
        let mut known = HashMap::new();
        let begin = Instant::now();
        let after = |seconds| begin + Duration::from_secs(seconds);
        let nothing = Told::default();
        assert_eq!(recall(&mut known, "a", begin), (nothing.clone(), true));
        assert_eq!(
            recall(&mut known, "b", begin),
            (nothing.clone(), true),
            "b is another one"
        );
        assert_eq!(recall(&mut known, "a", after(4)), (nothing, false));
        let refused = Told {
            refusal: Some(nodewise_proto::v1::Refusal::default()),
            ..Told::default()
        };
        known.get_mut("a").expect("a is known").told = refused.clone();
        assert_eq!(recall(&mut known, "a", after(4)), (refused.clone(), false));
        assert_eq!(recall(&mut known, "a", after(5)), (refused.clone(), true));
        assert_eq!(recall(&mut known, "a", after(6)), (refused, false));
        recall(&mut known, "c", after(64));
        assert!(!known.contains_key("b"), "what nobody asks about is forgotten");
        assert!(known.contains_key("a"));
    }
}
