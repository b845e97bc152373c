//! The order of a plan, its gates, expectations and batches.

use std::time::Duration;

use jiff::SignedDuration;
use nodewise_planner::{
    daemonset::plan_cache::PlanCache,
    plan::{ActionKind, EventType, PhaseKind, Verdict, When},
    snapshot::{Expectations, ExpectedCreate, OwnWrite, Selector},
};
use serde_json::{Value, json};

use crate::support::{Cluster, actions, apply::phases, counts, events, pod_changes, status};

fn expecting(creates: &[&str], deletes: &[&str], age: SignedDuration) -> Cluster {
    let mut cluster = Cluster::new(2);
    cluster.state.expectations = Some(Expectations {
        set_at: cluster.now - age,
        creates: creates
            .iter()
            .map(|node| ExpectedCreate {
                pod_name: String::new(),
                node_name: (*node).to_owned(),
            })
            .collect(),
        delete_uids: deletes.iter().map(|uid| (*uid).to_owned()).collect(),
    });
    cluster
}

#[test]
fn the_first_plan() {
    let mut cluster = Cluster::new(5);
    cluster.revisions.clear();
    cluster.ds.generation = 4;
    let plan = cluster.plan();
    // D-71, D-76: creates before deletes, the status last.
    assert_eq!(
        phases(&plan),
        [PhaseKind::Revisions, PhaseKind::Creates, PhaseKind::Status]
    );
    let creates = &plan.phases[1].batches;
    assert_eq!(
        creates
            .iter()
            .map(|batch| batch.actions.len())
            .collect::<Vec<_>>(),
        [1, 2, 2],
        "D-77"
    );
    assert_eq!(
        (
            status(&plan).desired_number_scheduled,
            status(&plan).observed_generation
        ),
        (5, 4)
    );
    assert!(plan.pod_manifest.is_some());
    // D-72
    let expected = plan.state.expectations.expect("creates are expected");
    assert_eq!(
        (
            expected.creates.len(),
            expected.delete_uids.len(),
            expected.set_at
        ),
        (5, 0, cluster.now),
        "D-72"
    );
    let nodes: Vec<_> = expected
        .creates
        .iter()
        .map(|create| create.node_name.as_str())
        .collect();
    assert_eq!(nodes, ["node-0", "node-1", "node-2", "node-3", "node-4"]);
    let rollout = plan.rollout.expect("it is described");
    assert_eq!((rollout.current_revision, rollout.desired), (1, 5));
}

#[test]
fn an_empty_selector_is_only_reported() {
    let mut cluster = Cluster::new(2).with(&["a@node-0 old ready orphan", "b@node-1 stray"]);
    cluster.revisions.clear();
    cluster.ds.selector = Some(Selector::default());
    let plan = cluster.plan();
    let message = "This daemon set is selecting all pods. A non-empty selector is required.";
    assert_eq!(events(&plan), [("SelectingAll", message)], "D-71");
    assert_eq!(
        (phases(&plan), &plan.status),
        (vec![PhaseKind::Events], &None),
        "D-120"
    );
    assert!(matches!(
        actions(&plan, PhaseKind::Events)[0].kind,
        ActionKind::EmitEvent {
            event_type: EventType::Warning,
            ..
        }
    ));
    // D-22, D-120: a selector that is missing selects nothing, which is something else.
    cluster.ds.selector = None;
    assert_eq!(pod_changes(&cluster.plan()).0, ["node-0", "node-1"], "D-120");
}

#[test]
fn d_71_nothing_is_planned_for_a_workload_that_is_being_deleted() {
    let mut cluster = Cluster::new(2).with(&["a@node-0 old", "b@node-1 orphan", "c@node-1 stray"]);
    cluster.revisions.clear();
    cluster.ds.deleting = true;
    let plan = cluster.plan();
    assert_eq!(
        (plan.verdict, plan.phases, plan.status),
        (Verdict::Noop, vec![], None),
        "D-71"
    );
}

#[test]
fn d_72_expectations_hold_everything_up_but_the_status() {
    let five_minutes = SignedDuration::from_mins(5);
    let tick = SignedDuration::from_nanos(1);
    // (case, cluster, held up)
    let table = [
        (
            "D-72: creates",
            expecting(&["node-0", "node-1"], &[], SignedDuration::ZERO),
            true,
        ),
        (
            "D-72: deletes",
            expecting(&[], &["gone"], SignedDuration::ZERO),
            true,
        ),
        (
            "D-72: exactly five minutes",
            expecting(&["node-0"], &[], five_minutes),
            true,
        ),
        (
            "D-72: strictly older",
            expecting(&["node-0"], &[], five_minutes + tick),
            false,
        ),
        (
            "D-72: none left",
            expecting(&[], &[], SignedDuration::ZERO),
            false,
        ),
    ];
    for (what, mut cluster, held) in table {
        cluster.ds.generation = 2;
        cluster.pod("a@lost unbound");
        let plan = cluster.plan();
        assert_eq!(counts(&plan), if held { (0, 0) } else { (2, 1) }, "{what}");
        assert_eq!(
            plan.verdict,
            if held { Verdict::StatusOnly } else { Verdict::Apply },
            "{what}"
        );
        // D-90
        assert_eq!(
            status(&plan).observed_generation,
            if held { 1 } else { 2 },
            "{what}"
        );
        if held {
            assert_eq!(plan.state.expectations, cluster.state.expectations, "{what}");
            assert_eq!(phases(&plan), [PhaseKind::Status]);
        }
    }
    let plan = expecting(&["node-0"], &[], SignedDuration::from_secs(60)).plan();
    let delay = plan.requeue.map(|requeue| requeue.delay);
    assert_eq!(
        delay,
        Some(Duration::from_millis(240_001)),
        "Q-18: when they expire"
    );
    // A plan without creates and deletes clears the expectations.
    let settled = expecting(&["node-0"], &[], SignedDuration::from_mins(6));
    let settled = settled.with(&["a@node-0 ready", "b@node-1 ready"]);
    assert_eq!(settled.plan().state.expectations, None, "D-72");
}

// The clock was set back by an hour: the plan's expectations expire five minutes from now.
#[test]
fn d_72_expectations_of_the_future_last_no_longer_than_five_minutes() {
    let named = |cluster: &mut Cluster| {
        let expected = cluster.state.expectations.as_mut().expect("set");
        for create in &mut expected.creates {
            "foo-abc".clone_into(&mut create.pod_name);
        }
    };
    let hour_ahead =
        |creates: &[&str], deletes: &[&str]| expecting(creates, deletes, -SignedDuration::from_hours(1));
    let mut ahead = hour_ahead(&["node-0"], &[]);
    named(&mut ahead);
    // (expectation, cluster, creates meanwhile)
    let table = [
        ("a create that has no name", hour_ahead(&["node-0"], &[]), 0),
        ("a delete", hour_ahead(&[], &["gone"]), 0),
        ("a create that has a name", ahead, 1),
    ];
    for (what, mut cluster, creates) in table {
        let began = cluster.now;
        for (passed, left) in [(0, 300_001), (100, 200_001), (300, 1)] {
            cluster.now = began + SignedDuration::from_secs(passed);
            let plan = cluster.plan();
            assert_eq!(counts(&plan), (creates, 0), "{what} after {passed} s");
            let delay = plan.requeue.as_ref().map(|requeue| requeue.delay);
            assert_eq!(
                delay,
                Some(Duration::from_millis(left)),
                "{what} after {passed} s"
            );
            let held = plan.state.expectations.as_ref().expect("still expected");
            assert_eq!(held.set_at, began, "{what} after {passed} s");
            // The creates are not applied here.
            cluster.state.expectations.as_mut().expect("set").set_at = held.set_at;
        }
        cluster.now = began + SignedDuration::from_secs(300) + SignedDuration::from_nanos(1);
        assert_eq!(counts(&cluster.plan()), (2, 0), "{what}: expired");
    }
}

#[test]
fn d_71_revisions_and_claims_precede_the_gate() {
    let mut cluster = expecting(&["node-0"], &[], SignedDuration::ZERO).with(&["a@node-1 orphan old"]);
    cluster.change_template("img:2");
    cluster.ds.revision_history_limit = Some(0);
    let plan = cluster.plan();
    assert_eq!(
        phases(&plan),
        [PhaseKind::Revisions, PhaseKind::Claims, PhaseKind::Status],
        "D-71: no clean-up"
    );
    assert_eq!(plan.verdict, Verdict::StatusOnly);
}

#[test]
fn d_63_clean_up_goes_on_while_pods_are_created() {
    let mut cluster = Cluster::new(2).with(&["a@node-0 ready"]);
    cluster.ds.revision_history_limit = Some(0);
    cluster.change_template("img:2");
    // A pod that is finished and being deleted, but held by a finalizer, still has its hash.
    let first = cluster.current_hash();
    cluster.pods.clear();
    cluster.pod("a@node-0 failed deleting").has_finalizers = true;
    assert_eq!(
        cluster.pods[0].labels.get("controller-revision-hash"),
        Some(first.as_str())
    );
    assert_eq!(
        phases(&cluster.plan()),
        [PhaseKind::Revisions, PhaseKind::Creates, PhaseKind::Status],
        "D-63"
    );
    cluster.pods.clear();
    let plan = cluster.plan();
    let order = [
        PhaseKind::Revisions,
        PhaseKind::Creates,
        PhaseKind::Cleanup,
        PhaseKind::Status,
    ];
    assert_eq!(phases(&plan), order, "D-63, D-64, D-71");
    assert_eq!(
        plan.phases[2].when,
        When::AfterSuccess,
        "D-71: not after a failure"
    );
    // D-71: there is no clean-up if the rollout step has an error.
    let mut failing = Cluster::new(1).rolling("\"x\"", "0").with(&["a@node-0 ready"]);
    failing.ds.revision_history_limit = Some(0);
    failing.change_template("img:2");
    failing.pods.clear();
    failing.pod("a@node-0 old ready");
    let plan = failing.plan();
    assert_eq!(
        (phases(&plan), plan.error.is_some()),
        (vec![PhaseKind::Revisions, PhaseKind::Status], true)
    );
    let working = failing.rolling("0", "0").plan();
    assert!(
        phases(&working).contains(&PhaseKind::Cleanup),
        "there is something to clean up"
    );
}

#[test]
fn a_taken_revision_name_ends_the_plan() {
    let mut cluster = Cluster::new(1);
    let mut taken = cluster.revisions[0].clone();
    (taken.data, taken.read_after_name_collision) = (json!({"other": true}).into(), true);
    cluster.revisions = vec![taken];
    let plan = cluster.plan();
    // D-62
    assert_eq!(
        (phases(&plan), plan.error.is_some()),
        (vec![PhaseKind::Status], true)
    );
    let collision = actions(&plan, PhaseKind::Status)
        .into_iter()
        .find_map(|action| match &action.kind {
            ActionKind::UpdateStatus { collision, .. } => *collision,
            _ => None,
        });
    let collision = collision.expect("the count rises");
    assert_eq!((collision.count, collision.expected), (1, None));
    cluster.ds.collision_count = Some(1);
    assert_eq!(
        phases(&cluster.plan()),
        [PhaseKind::Revisions, PhaseKind::Creates, PhaseKind::Status]
    );
}

#[test]
fn d_75_the_burst_limits_creates_and_deletes_separately() {
    let plan = Cluster::new(300).plan();
    let batches: Vec<_> = plan.phases[0]
        .batches
        .iter()
        .map(|batch| batch.actions.len())
        .collect();
    assert_eq!(batches, [1, 2, 4, 8, 16, 32, 64, 123], "D-75, D-77");
    assert_eq!(
        plan.state.expectations.map(|expected| expected.creates.len()),
        Some(250),
        "D-72"
    );

    let mut cluster = Cluster::new(350);
    for index in 0..300 {
        cluster.pod(&format!("a{index}@node-{index} t=1"));
        cluster.pod(&format!("b{index}@node-{index} t=2"));
    }
    let plan = cluster.plan();
    assert_eq!(counts(&plan), (50, 250), "D-75");
    let deletes = plan
        .phases
        .iter()
        .find(|phase| phase.kind == PhaseKind::Deletes)
        .expect("there are deletes");
    assert_eq!(deletes.batches.len(), 1, "D-81: all at once");
    // The next plan deletes the rest.
    cluster.apply(&plan);
    cluster.observe();
    assert_eq!(cluster.sync(), (0, 50), "D-75");
}

#[test]
fn d_110_a_snapshot_that_does_not_show_own_writes_is_stale() {
    let wrote = |resource: &str, written: &str, observed: &str| OwnWrite {
        resource: resource.to_owned(),
        written: written.to_owned(),
        observed: observed.to_owned(),
    };
    // (case, written, observed, stale)
    let table = [
        ("D-110: behind", "10", "5", true),
        ("D-110: equal", "10", "10", false),
        ("D-111: the longer is greater", "9", "10", false),
        ("D-111: the longer is greater", "100", "99", true),
        ("D-111: bytewise", "21", "12", true),
        ("D-111: not comparable", "10", "", false),
        ("D-111: not comparable", "10", "0", false),
        ("D-111: not comparable", "010", "5", false),
        ("D-111: not comparable", "1x", "5", false),
        ("D-111: not comparable", "", "5", false),
        (
            "D-111: larger than any integer",
            "99999999999999999999999999",
            "99999999999999999999999998",
            true,
        ),
    ];
    for (what, written, observed, stale) in table {
        let mut snapshot = Cluster::new(1).snapshot();
        snapshot.own_writes = vec![wrote("daemonsets", "3", "4"), wrote("pods", written, observed)];
        let plan = nodewise_planner::daemonset::plan(&snapshot);
        assert_eq!(
            plan.verdict == Verdict::Stale,
            stale,
            "{what}: {written} {observed}"
        );
        if stale {
            assert_eq!((plan.phases, plan.state), (vec![], snapshot.state), "D-110");
            assert!(plan.error.is_some_and(|error| error.contains("pods")), "D-110");
        }
    }
}

#[test]
fn d_71_the_gate_of_own_writes_comes_first() {
    let mut cluster = Cluster::new(1);
    cluster.ds.deleting = true;
    let mut snapshot = cluster.snapshot();
    assert_eq!(
        nodewise_planner::daemonset::plan(&snapshot).verdict,
        Verdict::Noop
    );
    let (written, observed) = ("2".to_owned(), "1".to_owned());
    snapshot.own_writes = vec![OwnWrite {
        resource: "pods".to_owned(),
        written,
        observed,
    }];
    assert_eq!(
        nodewise_planner::daemonset::plan(&snapshot).verdict,
        Verdict::Stale,
        "D-71"
    );
}

#[test]
fn d_113_deletes_are_guarded_by_expectations_and_creates_by_both() {
    // The caches show all own writes, but still show the deleted pod.
    let mut cluster = Cluster::new(2).rolling("1", "0").with_old_pods();
    let plan = cluster.plan();
    let before = cluster.pods.clone();
    cluster.apply(&plan);
    cluster.pods = before;
    // Other pods look like they may be deleted.
    cluster.pods.remove(0);
    cluster.pod("z@node-0 new ready");
    assert_eq!(cluster.plan().verdict, Verdict::StatusOnly, "D-113");
    cluster.state.expectations = None;
    assert_eq!(
        counts(&cluster.plan()),
        (0, 1),
        "D-113: nothing else guards deletes"
    );
    let mut snapshot = cluster.snapshot();
    let (written, observed) = ("2".to_owned(), "1".to_owned());
    snapshot.own_writes = vec![OwnWrite {
        resource: "pods".to_owned(),
        written,
        observed,
    }];
    assert_eq!(
        nodewise_planner::daemonset::plan(&snapshot).verdict,
        Verdict::Stale,
        "D-113"
    );
}

#[test]
fn d_66_pods_without_any_label_are_not_created() {
    let mut cluster = Cluster::new(2).with(&["a@lost unbound"]);
    let set_metadata = |cluster: &mut Cluster, metadata: Value| {
        let mut template = cluster.ds.template.to_value();
        template["metadata"] = metadata;
        cluster.ds.template = (&template).into();
        template["$patch"] = json!("replace");
        cluster.revisions[0].data = json!({"spec": {"template": template}}).into();
    };
    set_metadata(&mut cluster, json!({}));
    assert_eq!(counts(&cluster.plan()), (2, 1), "the hash is a label");
    cluster.revisions[0].labels = [("app", "foo"), ("controller-revision-hash", "")]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    let plan = cluster.plan();
    assert_eq!((counts(&plan), plan.pod_manifest), ((0, 1), None), "D-66, D-79");
    assert!(
        plan.error.is_some_and(|error| error.contains("no labels")),
        "D-66"
    );
    let mut generated = cluster.clone();
    let annotation = "deprecated.daemonset.template.generation".to_owned();
    generated.ds.annotations.push((annotation, "1".to_owned()));
    assert_eq!(
        counts(&generated.plan()),
        (2, 1),
        "D-66: the generation is a label"
    );
    set_metadata(&mut cluster, json!({"labels": {"app": "foo"}}));
    assert_eq!(counts(&cluster.plan()), (2, 1), "D-66: the template has a label");
    // With an empty hash no pod is new.
    cluster.pods.clear();
    cluster.pod("a@node-0 ready").labels = [("app", "foo"), ("controller-revision-hash", "")]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    assert_eq!(status(&cluster.plan()).updated_number_scheduled, 0, "D-86");
}

#[test]
fn d_5_only_the_snapshot_matters_and_a_cancelled_plan_is_none() {
    let snapshot = Cluster::new(3).with_old_pods().snapshot();
    assert_eq!(
        nodewise_planner::daemonset::plan(&snapshot),
        nodewise_planner::daemonset::plan(&snapshot.clone()),
        "D-5"
    );
    assert_eq!(
        nodewise_planner::daemonset::plan_until(&snapshot, &mut PlanCache::default(), &|| true),
        None
    );
    assert_eq!(
        nodewise_planner::daemonset::explain_until(&snapshot, None, &|| true),
        None
    );
    let asked = std::cell::Cell::new(0);
    let later = || asked.replace(asked.get() + 1) > 2;
    assert_eq!(
        nodewise_planner::daemonset::plan_until(&snapshot, &mut PlanCache::default(), &later),
        None
    );
}
