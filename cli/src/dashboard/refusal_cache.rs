//! Remembers for a moment which creates the apiserver has refused, so that no status waits for a list of Events.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kube::Client;
use nodewise_proto::v1;
use tokio::{sync::Semaphore, time::Instant};

use crate::{input::Served, refusals::Refusals};

/// Events are listed again after this time.
const FRESH: Duration = Duration::from_secs(5);
/// An answer that nobody has asked for so long is forgotten.
const KEPT: Duration = Duration::from_mins(1);
/// The most lists of Events at a time.
const MAX_LISTS: usize = 4;

/// The last refusals of DaemonSets.
pub(super) struct RefusalCache {
    client: Client,
    /// By uid.
    known: Arc<Mutex<HashMap<String, Known>>>,
    lists: Arc<Semaphore>,
}

#[derive(Debug)]
struct Known {
    /// When this was asked last.
    asked: Instant,
    refusal: Option<v1::Refusal>,
}

impl RefusalCache {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            known: Arc::default(),
            lists: Arc::new(Semaphore::new(MAX_LISTS)),
        }
    }

    /// The last refusal of a DaemonSet as far as it is known. If that is old, Events are listed meanwhile, and the next call returns what
    /// they say.
    pub(super) fn last(&self, workload: &Served) -> Option<v1::Refusal> {
        let now = Instant::now();
        let (refusal, is_old) = recall(&mut lock(&self.known), &workload.uid, now);
        if is_old {
            let (known, lists) = (Arc::clone(&self.known), Arc::clone(&self.lists));
            let client = self.client.clone();
            let (namespace, uid) = (workload.namespace.clone(), workload.uid.clone());
            tokio::spawn(async move {
                let Ok(_slot) = lists.acquire().await else { return };
                let refusal = Refusals::last(client, &namespace, &uid).await;
                if let Some(known) = lock(&known).get_mut(&uid) {
                    known.refusal = refusal;
                }
            });
        }
        refusal
    }
}

/// What is known about a DaemonSet, and whether that must be asked again. Then it counts as asked now.
fn recall(known: &mut HashMap<String, Known>, uid: &str, now: Instant) -> (Option<v1::Refusal>, bool) {
    if let Some(known) = known.get_mut(uid) {
        let is_old = now.saturating_duration_since(known.asked) >= FRESH;
        if is_old {
            known.asked = now;
        }
        return (known.refusal.clone(), is_old);
    }
    known.retain(|_, known| now.saturating_duration_since(known.asked) < KEPT);
    let unknown = Known {
        asked: now,
        refusal: None,
    };
    known.insert(uid.to_owned(), unknown);
    (None, true)
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
        assert_eq!(recall(&mut known, "a", begin), (None, true));
        assert_eq!(recall(&mut known, "b", begin), (None, true), "b is another one");
        assert_eq!(recall(&mut known, "a", after(4)), (None, false));
        let refusal = v1::Refusal {
            message: "the quota is used up".to_owned(),
            ..v1::Refusal::default()
        };
        known.get_mut("a").expect("a is known").refusal = Some(refusal.clone());
        assert_eq!(recall(&mut known, "a", after(4)), (Some(refusal.clone()), false));
        assert_eq!(recall(&mut known, "a", after(5)), (Some(refusal.clone()), true));
        assert_eq!(recall(&mut known, "a", after(6)), (Some(refusal), false));
        recall(&mut known, "c", after(64));
        assert!(!known.contains_key("b"), "what nobody asks about is forgotten");
        assert!(known.contains_key("a"));
    }
}
