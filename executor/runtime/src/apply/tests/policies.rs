//! What plans do for RolloutPolicies: evictions, statuses of policies, and measurements.

use super::*;
use crate::measurements::{Measurer, Measuring, Subject};

fn evict(name: &str) -> Kind {
    Kind::EvictPod(v1::EvictPod {
        pod: Some(reference(name)),
        node_name: "node".to_owned(),
    })
}

fn evicting(names: &[&str]) -> v1::Plan {
    let batches = names.iter().map(|name| vec![evict(name)]).collect();
    plan(vec![phase(P::Deletes, batches)])
}

// L-24, D-81: as deletes, but for the words of the Events.
#[tokio::test(start_paused = true)]
async fn evictions() {
    let gone = live_pod("uid-agent", "node", "h1");
    let mut same = gone.clone();
    same["metadata"]["uid"] = json!("uid-p");
    let mut deleting = same.clone();
    deleting["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let evicted = || vec![("Normal SuccessfulDelete".to_owned(), "Evicted pod: p".to_owned())];
    let not_evicted = |why: &str| {
        vec![(
            "Warning FailedDelete".to_owned(),
            format!("Error evicting: {why}"),
        )]
    };
    for (failure, live, result, events) in [
        (none(), &gone, R::Succeeded, evicted()),
        (error(Refusal::NotFound, 404), &gone, R::NotFound, vec![]),
        (error(Refusal::Conflict, 409), &gone, R::NotFound, vec![]),
        (
            error(Refusal::Conflict, 409),
            &same,
            R::Failed,
            not_evicted("Conflict"),
        ),
        (error(Refusal::Other, 0), &deleting, R::Succeeded, evicted()),
        (error(Refusal::Other, 500), &same, R::Failed, not_evicted("Other")),
    ] {
        let script = Script::default()
            .refuse("evict", &[failure])
            .live("p", live.clone());
        let applied = run(&script, &evicting(&["p"])).await;
        assert_eq!((results(&applied), script.events()), (vec![result], events));
        assert_eq!(applied.failed, result == R::Failed);
        assert_eq!(
            (script.calls()[0].as_str(), applied.blocked.len()),
            ("evict p uid-p", 0)
        );
        let subject = v1::outcome::Subject::DeletedPodUid("uid-p".to_owned());
        assert_eq!(applied.outcomes[0].subject, Some(subject));
    }
}

// L-24: a pod that a budget protects stays. That is no failure, and later batches still run.
#[tokio::test(start_paused = true)]
async fn a_blocked_eviction_is_no_failure() {
    let script = Script::default().refuse("evict p uid-p", &[error(Refusal::Other, 429)]);
    let applied = run(&script, &evicting(&["p", "q"])).await;
    assert_eq!(results(&applied), [R::Blocked, R::Succeeded]);
    assert!(!applied.failed && !applied.aborted);
    assert_eq!(
        (
            applied.outcomes[0].message.as_str(),
            applied.outcomes[0].http_status
        ),
        ("Other", 429)
    );
    let blocked = Blocked {
        pod_uid: "uid-p".into(),
        message: "Other".into(),
        retry_after: Some(Duration::from_secs(7)),
    };
    assert_eq!(applied.blocked, [blocked]);
    let events = [("Normal SuccessfulDelete".to_owned(), "Evicted pod: q".to_owned())];
    assert_eq!(script.events(), events);
}

fn policy_status() -> v1::Action {
    let resource = Resource::ROLLOUT_POLICIES;
    let event = v1::EmitEvent {
        r#type: "Normal".into(),
        reason: "StageComplete".into(),
        message: "Stage canary is complete".into(),
    };
    v1::Action {
        kind: Some(Kind::PatchObject(Box::new(v1::PatchObject {
            resource: Some(v1::GroupVersionResource {
                group: resource.group.into(),
                version: resource.version.into(),
                resource: resource.plural.into(),
            }),
            object: Some(reference("agents")),
            subresource: "status".into(),
            patch_type: v1::PatchType::Merge.into(),
            patch: r#"{"status":{}}"#.into(),
            ..v1::PatchObject::default()
        }))),
        success_events: vec![event],
        ..v1::Action::default()
    }
}

/// A plan that writes the status of a policy and then evicts a pod.
fn recording() -> v1::Plan {
    let mut statuses = phase(P::RolloutPolicies, vec![vec![]]);
    statuses.aborts_on_failure = true;
    statuses.batches[0].actions.push(policy_status());
    plan(vec![statuses, phase(P::Deletes, vec![vec![evict("p")]])])
}

// L-37: the Events are about the workload and about the policy. D-109: the gate waits for the write.
#[tokio::test(start_paused = true)]
async fn the_status_of_a_policy_is_written() {
    let script = Script::default();
    let applied = run(&script, &recording()).await;
    assert_eq!(results(&applied), [R::Succeeded, R::Succeeded]);
    assert_eq!(script.calls(), ["patch-status agents", "evict p uid-p"]);
    let message = "Stage canary is complete".to_owned();
    let events = [
        ("Normal StageComplete".to_owned(), message.clone()),
        ("Normal StageComplete of uid-agents".to_owned(), message),
        ("Normal SuccessfulDelete".to_owned(), "Evicted pod: p".to_owned()),
    ];
    assert_eq!(script.events(), events);
    let resources: Vec<_> = applied.writes.iter().map(|write| write.resource).collect();
    assert_eq!(resources, [Resource::ROLLOUT_POLICIES]);
}

// What a rollout does to pods is recorded before it is done.
#[tokio::test(start_paused = true)]
async fn nothing_is_evicted_if_the_status_is_not_written() {
    let script = Script::default().refuse("patch-status", &[error(Refusal::Conflict, 409)]);
    let applied = run(&script, &recording()).await;
    assert_eq!(results(&applied), [R::Failed, R::Skipped]);
    assert!(applied.failed && applied.aborted);
    assert_eq!((script.events(), script.calls().len()), (vec![], 1));
}

// L-2: what is not known of a status must not be overwritten. The owner of the workload is told why it waits.
#[tokio::test(start_paused = true)]
async fn the_status_of_a_policy_that_is_not_kept_is_not_written() {
    let names = json!({"names": ["agent"]});
    let whole = crate::testing::policy("agents", "10", &names);
    for (has_status, calls) in [
        (true, vec!["patch-status agents", "evict p uid-p"]),
        (false, vec!["evict p uid-p"]),
    ] {
        let mut mark = whole.mark("there are too many".to_owned());
        mark.reduced.as_mut().expect("a mark").has_status = has_status;
        let options = Options {
            policies: vec![mark.into()],
            ..Options::default()
        };
        let (script, workload) = (Script::default(), cached());
        let applied = apply(
            &script,
            &recording(),
            (DAEMON_SETS, &workload),
            &LeftOut::new(),
            &options,
        )
        .await;
        assert_eq!(
            (results(&applied), script.calls()),
            (
                vec![R::Succeeded; 2],
                calls.iter().map(ToString::to_string).collect()
            )
        );
        let (first, message) = &script.events()[0];
        let is_told = first == "Warning RolloutPolicyNotKept" && message.ends_with("there are too many");
        assert_eq!(is_told, !has_status, "{first} {message}");
    }
}

/// Keeps what the measurements are about.
#[derive(Debug, Default)]
struct Keeping(std::sync::Mutex<Vec<Subject>>);

impl Measurer for Keeping {
    fn measure(&self, subject: &Subject, _: &v1::Measure) -> Measuring {
        self.0.lock().expect("no panic").push(subject.clone());
        Box::pin(std::future::pending())
    }
}

// A plan does not wait for the end of a measurement.
#[tokio::test(start_paused = true)]
async fn measurements_are_started() {
    let measurer = std::sync::Arc::new(Keeping::default());
    let names = json!({"names": ["agent"]});
    let policy = std::sync::Arc::new(crate::testing::policy("agents", "10", &names));
    let options = Options {
        measurements: Measurements::new(measurer.clone()),
        policies: vec![policy.clone()],
        ..Options::default()
    };
    let measure = v1::Measure {
        id: Some(v1::MeasurementId {
            policy_uid: policy.uid.clone(),
            ..v1::MeasurementId::default()
        }),
        ..v1::Measure::default()
    };
    let mut statuses = phase(P::RolloutPolicies, vec![vec![]]);
    statuses.batches[0].actions.push(policy_status());
    let asking = phase(P::Analysis, vec![vec![Kind::Measure(Box::new(measure))]]);
    let measuring = plan(vec![statuses, asking]);
    let (script, workload) = (Script::default(), cached());
    let workload = (DAEMON_SETS, &workload);
    let applied = apply(&script, &measuring, workload, &LeftOut::new(), &options).await;
    assert_eq!(results(&applied), [R::Succeeded, R::Succeeded]);
    let subjects = measurer.0.lock().expect("no panic").clone();
    let [subject] = &subjects[..] else {
        panic!("{} measurements", subjects.len());
    };
    let known = subject.policy.as_ref().map(|policy| policy.name.as_str());
    assert_eq!((&*subject.workload.name, known), ("agent", Some("agents")));
    assert_eq!(subject.status_patch, r#"{"status":{}}"#);
    // L-40: an observer asks nobody.
    let observer = crate::actuator::ObserveActuator::new(Script::default());
    let fresh = std::sync::Arc::new(Keeping::default());
    let options = Options {
        measurements: Measurements::new(fresh.clone()),
        ..options
    };
    let applied = apply(&observer, &measuring, workload, &LeftOut::new(), &options).await;
    assert_eq!(results(&applied), [R::Succeeded, R::Succeeded]);
    assert_eq!(fresh.0.lock().expect("no panic").len(), 0);
}
