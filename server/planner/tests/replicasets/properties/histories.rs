//! Histories: plans, results, caches that lag and executors that restart, in any order.

use nodewise_planner::{
    plan::ActionKind,
    report::OutcomeResult,
    snapshot::{Pod, PodPhase},
};
use proptest::prelude::*;

use crate::support::{World, used};

/// What happens next.
#[derive(Debug, Clone, Copy)]
enum Event {
    /// A plan is made and applied. For each create by turns: it succeeds, fails, or succeeds though the executor thinks it failed.
    Plan([u8; 4]),
    /// The cache shows the next change.
    Show,
    /// The cache shows everything.
    ShowAll,
    /// A user deletes a pod.
    Delete(usize),
    /// A pod that is being deleted is gone.
    Gone(usize),
    /// A pod fails.
    Fail(usize),
    /// The executor restarts: its state is lost, and its cache is new.
    Restart,
    /// Minutes pass.
    Wait(i64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => any::<[u8; 4]>().prop_map(Event::Plan),
        6 => Just(Event::Show),
        2 => Just(Event::ShowAll),
        2 => any::<usize>().prop_map(Event::Delete),
        2 => any::<usize>().prop_map(Event::Gone),
        1 => any::<usize>().prop_map(Event::Fail),
        1 => Just(Event::Restart),
        1 => (0..7_i64).prop_map(Event::Wait),
    ]
}

/// The cluster, and what the executor's cache shows of it.
struct History {
    /// The world as the cache shows it, with the executor's state.
    seen: World,
    /// The pods as they are.
    pods: Vec<Pod>,
    created: usize,
}

fn is_active(pod: &Pod) -> bool {
    !pod.deleting && !pod.phase.is_terminal()
}

impl History {
    fn happen(&mut self, event: Event) {
        match event {
            Event::Plan(fates) => self.plan(fates),
            Event::Show => {
                let next = self
                    .pods
                    .iter()
                    .find(|pod| !self.seen.pods.contains(pod))
                    .cloned();
                let gone = self
                    .seen
                    .pods
                    .iter()
                    .find(|pod| !self.pods.iter().any(|other| other.uid == pod.uid));
                match (next, gone.map(|pod| pod.uid.clone())) {
                    (Some(pod), _) => self.show(pod),
                    (None, Some(uid)) => self.hide(&uid),
                    (None, None) => {}
                }
            }
            Event::ShowAll => self.show_all(),
            Event::Delete(index) => self.change(index, |pod| pod.deleting = true),
            Event::Fail(index) => self.change(index, |pod| pod.phase = PodPhase::Failed),
            Event::Gone(index) => {
                let going: Vec<_> = self
                    .pods
                    .iter()
                    .filter(|pod| pod.deleting)
                    .map(|pod| pod.uid.clone())
                    .collect();
                if let Some(uid) = going.get(index % going.len().max(1)) {
                    self.pods.retain(|pod| pod.uid != *uid);
                }
            }
            Event::Restart => {
                self.seen.pods.clone_from(&self.pods);
                self.seen.state = nodewise_planner::snapshot::State::default();
            }
            Event::Wait(minutes) => self.seen.now += jiff::SignedDuration::from_mins(minutes),
        }
    }

    fn change(&mut self, index: usize, change: impl FnOnce(&mut Pod)) {
        let count = self.pods.len().max(1);
        if let Some(pod) = self.pods.get_mut(index % count) {
            change(pod);
        }
    }

    fn plan(&mut self, fates: [u8; 4]) {
        let plan = self.seen.plan();
        let (mut turn, pods) = (0, &mut self.pods);
        let (now, created) = (self.seen.now, &mut self.created);
        let template = self.seen.clone();
        let mut executor = self.seen.clone();
        let mut fate = |action: &nodewise_planner::plan::Action| {
            let ActionKind::CreatePod { pod_name, .. } = &action.kind else {
                if let ActionKind::DeletePod { pod, .. } = &action.kind
                    && let Some(pod) = pods.iter_mut().find(|other| other.uid == pod.uid)
                {
                    pod.deleting = true;
                }
                return OutcomeResult::Succeeded;
            };
            let fate = fates[turn % fates.len()] % 4;
            turn += 1;
            if pods.iter().any(|pod| pod.name == *pod_name) {
                return OutcomeResult::AlreadyExists;
            }
            if fate != 0 {
                *created += 1;
                let mut one = template.clone();
                one.now = now;
                one.create(pod_name);
                let mut pod = one.pods.pop().expect("just created");
                pod.uid = format!("uid-{created}");
                pods.push(pod);
            }
            // a create that timed out is a failure, though it may have created the pod.
            if fate <= 1 {
                OutcomeResult::Failed
            } else {
                OutcomeResult::Succeeded
            }
        };
        executor.apply_with(&plan, &mut |action| match fate(action) {
            // The executor's cache shows nothing yet.
            OutcomeResult::Succeeded
                if matches!(
                    action.kind,
                    ActionKind::CreatePod { .. } | ActionKind::DeletePod { .. }
                ) =>
            {
                OutcomeResult::Succeeded
            }
            result => result,
        });
        self.seen.state = executor.state;
        self.seen.rs = executor.rs;
        // Events may have come before the plan's expectations were set.
        for pod in self.seen.pods.clone() {
            self.settle(&pod);
        }
    }

    /// Removes the expectations that a pod settles.
    fn settle(&mut self, pod: &Pod) {
        if let Some(expected) = &mut self.seen.state.expectations {
            expected.creates.retain(|create| create.pod_name != pod.name);
            if pod.deleting {
                expected.delete_uids.retain(|uid| *uid != pod.uid);
            }
        }
    }

    fn show(&mut self, pod: Pod) {
        self.settle(&pod);
        self.seen.pods.retain(|other| other.uid != pod.uid);
        self.seen.pods.push(pod);
    }

    fn hide(&mut self, uid: &str) {
        let pod = self
            .seen
            .pods
            .iter()
            .find(|pod| pod.uid == uid)
            .cloned()
            .expect("it was there");
        self.settle(&Pod {
            deleting: true,
            ..pod.clone()
        });
        self.seen.pods.retain(|other| other.uid != uid);
        self.seen.state.used_pod_names.push(used(&pod.name));
    }

    fn show_all(&mut self) {
        for pod in self.pods.clone() {
            self.show(pod);
        }
        let gone: Vec<_> = self
            .seen
            .pods
            .iter()
            .filter(|pod| !self.pods.iter().any(|other| other.uid == pod.uid))
            .map(|pod| pod.uid.clone())
            .collect();
        for uid in gone {
            self.hide(&uid);
        }
    }

    fn active(&self) -> usize {
        self.pods.iter().filter(|pod| is_active(pod)).count()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn there_are_never_more_pods_than_wanted(replicas in 1..7_i32, burst in 1..5_usize, events in proptest::collection::vec(event(), 0..60)) {
        let mut history = History { seen: World::new(replicas).burst(burst), pods: vec![], created: 0 };
        let wanted = usize::try_from(replicas).expect("it is positive");
        for event in events {
            history.happen(event);
            prop_assert!(history.active() <= wanted, "{event:?} leads to {} of {wanted} pods", history.active());
        }
        // In the end the set is complete. A pod that was gone before the cache showed it is expected until that expires.
        for _ in 0..20 {
            history.happen(Event::Wait(6));
            history.happen(Event::ShowAll);
            history.happen(Event::Plan([2; 4]));
        }
        prop_assert_eq!(history.active(), wanted);
    }
}
