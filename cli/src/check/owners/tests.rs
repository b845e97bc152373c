use serde_json::json;

use super::*;
use crate::check::finding::Outcome::{self, Error, Ok as Fine, Warning};

fn plan(mode: &str, controllers: &str) -> Plan {
    let modes: Vec<_> = mode.split(',').map(|one| one.parse().expect("a mode")).collect();
    let list: Vec<_> = controllers
        .split(',')
        .map(|one| one.parse().expect("a controller"))
        .collect();
    Plan::planned("nodewise-system", &modes, &list)
}

fn results(plans: &[Plan], built_in: &BuiltIn) -> Vec<Option<Outcome>> {
    let of = |controller| of_kind(plans, built_in, controller).map(|finding| finding.result);
    Controller::ALL.into_iter().map(of).collect()
}

/// Of DaemonSets, Deployments and ReplicaSets.
#[test]
fn each_kind_has_one_owner() {
    let table = [
        (
            "own",
            "daemonset",
            Some("*"),
            [Some(Error), Some(Fine), Some(Fine)],
        ),
        (
            "own",
            "daemonset",
            Some("*,-daemonset-controller"),
            [Some(Fine), Some(Fine), Some(Fine)],
        ),
        (
            "own",
            "daemonset",
            Some("*,bootstrap-signer-controller,-daemonset"),
            [Some(Fine), Some(Fine), Some(Fine)],
        ),
        (
            "own",
            "*",
            Some("*,-daemonset"),
            [Some(Fine), Some(Error), Some(Error)],
        ),
        ("observe", "*", Some("*"), [Some(Fine), Some(Fine), Some(Fine)]),
        (
            "observe",
            "*",
            Some("*,-deployment"),
            [Some(Fine), Some(Error), Some(Fine)],
        ),
        (
            "companion",
            "daemonset",
            Some("*"),
            [Some(Fine), Some(Fine), Some(Fine)],
        ),
        (
            "own",
            "daemonset",
            Some("job,cronjob"),
            [Some(Fine), Some(Error), Some(Error)],
        ),
        ("own", "daemonset", None, [None, None, None]),
        ("observe", "daemonset", None, [None, None, None]),
    ];
    for (mode, controllers, list, expected) in table {
        let built_in = match list {
            Some(list) => BuiltIn::Seen(vec![list.to_owned()]),
            None => BuiltIn::Unknown("no pod of it is visible".to_owned()),
        };
        let found = results(&[plan(mode, controllers)], &built_in);
        assert_eq!(found, expected, "{mode} {controllers} {list:?}");
    }
}

/// What cannot be seen is a warning, and names the kinds.
#[test]
fn a_controller_manager_that_is_not_visible_is_a_warning() {
    let hidden = BuiltIn::Unknown("no pod of it is visible".to_owned());
    for (mode, part) in [
        (
            "own",
            "a second owner, besides Nodewise, of daemonset-controller, deployment-controller, replicaset-controller",
        ),
        ("observe", "no pod of it is visible"),
    ] {
        let found = unknown(&[plan(mode, "*")], &hidden).expect("a finding");
        assert_eq!(found.result, Warning);
        assert!(found.message.ends_with(part), "{found:?}");
    }
    assert_eq!(
        unknown(&[plan("own", "*")], &BuiltIn::Seen(vec!["*".to_owned()])),
        None
    );
}

/// One replica of kube-controller-manager with the controller is enough.
#[test]
fn every_replica_of_the_control_plane_counts() {
    let lists = BuiltIn::Seen(vec!["*,-daemonset".to_owned(), "*".to_owned()]);
    assert_eq!(results(&[plan("own", "daemonset")], &lists)[0], Some(Error));
}

#[test]
fn two_executors_that_own_one_kind_are_reported() {
    let (mut first, mut second) = (plan("own", "daemonset"), plan("own", "daemonset"));
    let of = |first: &Plan, second: &Plan| {
        let plans = [first.clone(), second.clone()];
        two_executors(&plans, Controller::DaemonSet).map(|finding| finding.result)
    };
    // They share a Lease.
    assert_eq!(of(&first, &second), None);
    second.lease_namespace = Some("other".to_owned());
    assert_eq!(of(&first, &second), Some(Error));
    (first.is_partial, second.is_partial) = (true, true);
    assert_eq!(of(&first, &second), Some(Warning));
    assert_eq!(of(&first, &plan("observe", "daemonset")), None);
}

#[test]
fn the_flag_of_the_built_in_controllers_is_read() {
    let pod = |command: serde_json::Value| -> Pod {
        let pod = json!({"spec": {"containers": [{"name": "kube-controller-manager", "command": command}]}});
        serde_json::from_value(pod).expect("a pod")
    };
    for (command, expected) in [
        (
            json!(["kube-controller-manager", "--controllers=*,-daemonset-controller"]),
            "*,-daemonset-controller",
        ),
        (
            json!(["kube-controller-manager", "--controllers", "job", "--v=2"]),
            "job",
        ),
        (
            json!(["kube-controller-manager", "--concurrent-daemonset-syncs=2"]),
            "*",
        ),
    ] {
        assert_eq!(controllers_of(&pod(command)), expected);
    }
}
