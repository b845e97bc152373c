//! Tests what the commands say about a DaemonSet with a RolloutPolicy, with files: nothing can be written to them.

mod common;

use common::{NOW, Ran, data, nodewise, nodewise_with_input};
use serde_json::{Value, json};

/// A dump with the rollout of `rollout.json`, and a folder that holds it.
struct Dump {
    items: Value,
    folder: tempfile::TempDir,
}

/// Seconds before [`NOW`].
fn ago(seconds: i64) -> String {
    let now: jiff::Timestamp = NOW.parse().expect("a time");
    (now - jiff::SignedDuration::from_secs(seconds)).to_string()
}

/// A policy with a stage of one canary that soaks, and one that needs an approval.
fn policy(name: &str) -> Value {
    json!({
        "apiVersion": "nodewise.dev/v1alpha1",
        "kind": "RolloutPolicy",
        "metadata": {"name": name, "namespace": "monitoring", "uid": format!("uid-of-{name}"), "creationTimestamp": ago(7_000),
            "generation": 1, "resourceVersion": "7"},
        "spec": {
            "targets": {"names": ["agent"]},
            "stages": [
                {"name": "canary", "nodeSelector": {"matchLabels": {"kubernetes.io/hostname": "node-1"}}, "soak": "10m",
                    "analysis": [{"name": "errors", "interval": "1m", "count": 5, "failureLimit": 1,
                        "webhook": {"url": "https://checks.example/errors"}}]},
                {"name": "rest", "approval": "Required"},
            ],
        },
    })
}

/// The status of a rollout that began five minutes ago, with these further fields.
fn status(fields: &Value) -> Value {
    let mut target = json!({
        "name": "agent", "uid": "7d1f0a52-0000-4000-8000-000000000001",
        "updateRevision": {"hash": "7fb8", "number": 2}, "stableRevision": {"hash": "6c9d", "number": 1},
        "digest": "d16e57", "state": "Progressing", "message": "", "startTime": ago(300), "lastUpdateTime": ago(2),
        "stages": [{"name": "canary", "nodes": 1, "updated": 1, "available": 1, "state": "Progressing", "startTime": ago(300)}],
    });
    for (key, value) in fields.as_object().expect("an object") {
        target[key] = value.clone();
    }
    json!({"observedGeneration": 1, "conditions": [], "targets": [target]})
}

/// Five passed measurements.
fn passed() -> Value {
    json!([{"name": "errors", "measurements": 5, "successful": 5, "time": ago(20), "value": "0.004"}])
}

impl Dump {
    fn new(policies: &[Value]) -> Self {
        let text = std::fs::read_to_string(data("rollout.json")).expect("the file");
        let mut items: Value = serde_json::from_str(&text).expect("JSON");
        let list = items["items"].as_array_mut().expect("a list");
        // The last node must not have a pod, which goes before all others.
        list.retain(|item| {
            !["node-5", "agent-hx25"]
                .iter()
                .any(|name| item["metadata"]["name"] == *name)
        });
        list.extend(policies.iter().cloned());
        for item in list.iter_mut() {
            // The canary's pod has been available for four minutes.
            if item["metadata"]["name"] == "agent-cx21" {
                item["status"] = json!({"phase": "Running", "conditions": [
                    {"type": "Ready", "status": "True", "lastTransitionTime": ago(240)}]});
            }
        }
        Self {
            items,
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    fn item(&mut self, name: &str) -> &mut Value {
        let list = self.items["items"].as_array_mut().expect("a list");
        let found = list.iter_mut().find(|item| item["metadata"]["name"] == name);
        found.expect("it is there")
    }

    fn run(&self, words: &[&str]) -> Ran {
        let path = self.folder.path().join("dump.json");
        std::fs::write(&path, self.items.to_string()).expect("written");
        let path = path.to_str().expect("UTF-8");
        // What is to be written is of the present time.
        let writes = matches!(
            words,
            ["rollout", "pause" | "resume" | "approve" | "rollback", ..]
        );
        let now: &[&str] = if writes { &[] } else { &["--now", NOW] };
        nodewise(&[words, &["-f", path], now].concat())
    }
}

/// A rollout that soaks its canary.
fn soaking() -> Dump {
    let mut agents = policy("agents");
    agents["status"] = status(&json!({}));
    agents["status"]["targets"][0]["stages"][0]["analysis"] = json!([{"name": "errors", "measurements": 2, "successful": 1, "failed": 1, "time": ago(20), "value": "0.02"}]);
    let mut dump = Dump::new(&[agents]);
    let node = dump.item("node-4");
    node["status"]["conditions"] =
        json!([{"type": "Ready", "status": "False", "lastTransitionTime": ago(9_000)}]);
    dump
}

/// A rollout whose second stage waits for an approval.
fn waiting() -> Dump {
    let mut agents = policy("agents");
    agents["spec"]["stages"][0]["soak"] = json!("1m");
    agents["status"] = status(&json!({}));
    agents["status"]["targets"][0]["stages"][0]["analysis"] = passed();
    Dump::new(&[agents])
}

/// A rollout whose check was inconclusive more often than it may be.
fn held() -> Dump {
    let mut agents = policy("agents");
    agents["status"] = status(&json!({}));
    agents["status"]["targets"][0]["stages"][0]["analysis"] = json!([{"name": "errors", "measurements": 1, "inconclusive": 1,
        "time": ago(20), "message": "too few requests to say"}]);
    Dump::new(&[agents])
}

/// A rollout that was rejected, of a policy with this `onFailure`.
fn rejected(on_failure: &str) -> Dump {
    let mut agents = policy("agents");
    agents["spec"]["onFailure"] = json!(on_failure);
    let message = "1 nodes failed, and failureThreshold is 1: node-1";
    agents["status"] = status(
        &json!({"state": "Rejected", "message": "revision 2 is rejected", "rejectedRevision": {
        "hash": "7fb8", "number": 2, "reason": "FailureThreshold", "message": message, "time": ago(60), "digest": "4e5"}}),
    );
    Dump::new(&[agents])
}

#[test]
fn stages_checks_and_exempt_nodes_are_shown() {
    let ran = soaking().run(&["rollout", "status", "ds/agent"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    insta::assert_snapshot!(ran.stdout);
    insta::assert_snapshot!("a_row_that_soaks", soaking().run(&["status"]).ok());
}

#[test]
fn a_stage_that_waits_for_an_approval_names_the_command() {
    let ran = waiting().run(&["rollout", "status", "ds/agent", "-o", "wide"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    insta::assert_snapshot!(ran.stdout);
    insta::assert_snapshot!(
        "a_row_that_waits_for_an_approval",
        waiting().run(&["status"]).ok()
    );
}

#[test]
fn programs_get_the_stages_as_json() {
    let status = |dump: &Dump| -> Value {
        let ran = dump.run(&["rollout", "status", "ds/agent", "-o", "json"]);
        serde_json::from_str(&ran.stdout).expect("JSON")
    };
    let soaking = status(&soaking());
    let policy = &soaking["policy"];
    assert_eq!(policy["name"], "agents");
    assert_eq!(policy["state"], "Soaking", "{policy}");
    assert_eq!(
        policy["stages"][0]["soakEndsAt"], "2026-01-01T02:06:00+00:00",
        "{policy}"
    );
    assert_eq!(policy["stages"][0]["checks"][0]["value"], "0.02");
    assert_eq!(policy["stages"][0]["checks"][0]["count"], 5);
    assert_eq!(policy["exempt"][0]["name"], "node-4", "{policy}");
    assert_eq!(policy["exempt"][0]["reason"], "Ready is False for 2h");
    let waiting = status(&waiting());
    assert_eq!(waiting["policy"]["pendingApproval"]["stage"], "rest", "{waiting}");
    assert_eq!(waiting["nodes"][0]["rolloutStage"], "canary");
    // Without a policy there is no such field.
    let without = status(&Dump::new(&[]));
    assert!(without.get("policy").is_none(), "{without}");
}

#[test]
fn a_rejected_revision_is_stuck_and_one_that_goes_back_is_in_progress() {
    for (on_failure, code, word) in [("Pause", 3, "rejected"), ("Rollback", 2, "rolling back")] {
        let dump = rejected(on_failure);
        let ran = dump.run(&["rollout", "status", "ds/agent"]);
        assert_eq!(ran.code, Some(code), "{on_failure}: {ran:?}");
        let row = dump.run(&["status"]).ok();
        assert!(row.contains(word), "{on_failure}: {row}");
    }
}

#[test]
fn explain_names_the_policy_and_the_stage() {
    insta::assert_snapshot!(waiting().run(&["explain", "ds/agent"]).ok());
    let node = waiting().run(&["explain", "node/node-3"]).ok();
    assert!(node.contains("monitoring/agent (stage rest)"), "{node}");
    let node = soaking().run(&["explain", "ds/agent", "--node", "node-4"]).ok();
    assert!(
        node.contains("stage:                rest (RolloutPolicy agents)"),
        "{node}"
    );
    assert!(node.contains("the policy leaves it alone"), "{node}");
}

/// The digest that the rollout waits for.
fn pending(dump: &Dump) -> String {
    let ran = dump.run(&["rollout", "status", "ds/agent", "-o", "json"]);
    let status: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let digest = status["policy"]["pendingApproval"]["digest"].as_str();
    digest.expect("a digest").to_owned()
}

// L-30.
#[test]
fn approve_shows_the_nodes_and_the_plan_and_approves_what_it_showed() {
    let dump = waiting();
    let ran = dump.run(&["rollout", "approve", "ds/agent", "--yes"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("it was read from a file"), "{ran:?}");
    let digest = pending(&dump);
    let command = format!(
        "kubectl annotate rolloutpolicy agents -n monitoring --overwrite nodewise.dev/approve={digest}"
    );
    for part in [
        "RolloutPolicy agents waits for an approval of stage rest",
        "3 nodes: node-2 … node-4",
        "agent: registry.example/agent:1 → registry.example/agent:2",
        "on node-2",
        &command,
    ] {
        assert!(ran.stdout.contains(part), "no {part:?} in {}", ran.stdout);
    }
    let same = dump.run(&["rollout", "approve", "ds/agent", "--yes", "--digest", &digest]);
    assert!(same.stdout.contains(&command), "{same:?}");
    let old = dump.run(&["rollout", "approve", "ds/agent", "--yes", "--digest", "old"]);
    assert_eq!(old.code, Some(1), "{old:?}");
    assert!(old.stdout.is_empty(), "nothing is proposed: {old:?}");
    let said = format!(
        "the digest old is out of date: stage rest would now run on 3 nodes, and its digest is {digest}"
    );
    assert!(old.stderr.contains(&said), "{old:?}");
}

#[test]
fn the_verbs_write_the_policy() {
    let mut paused = soaking();
    paused.item("agents")["spec"]["paused"] = json!(true);
    let again = r#"kubectl patch rolloutpolicy agents -n monitoring --subresource=status --type=json -p '[{"op":"test","path":"/status/targets/0/stages/0/analysis/0/name","value":"errors"},{"op":"replace","path":"/status/targets/0/stages/0/analysis/0/inconclusive","value":0}]'"#;
    let mut denied = rejected("Pause");
    denied.item("agents")["metadata"]["annotations"] = json!({"nodewise.dev/reject": "x"});
    for (dump, verb, command) in [
        (
            soaking(),
            "pause",
            r#"kubectl patch rolloutpolicy agents -n monitoring --type merge -p '{"spec":{"paused":true}}'"#,
        ),
        (
            paused,
            "resume",
            r#"kubectl patch rolloutpolicy agents -n monitoring --type merge -p '{"spec":{"paused":false}}'"#,
        ),
        (
            rejected("Pause"),
            "resume",
            "kubectl annotate rolloutpolicy agents -n monitoring --overwrite nodewise.dev/resume=4e5\n",
        ),
        (
            denied,
            "resume",
            "--overwrite nodewise.dev/resume=4e5 nodewise.dev/reject-\n",
        ),
        (held(), "resume", again),
        (
            soaking(),
            "rollback",
            "kubectl annotate rolloutpolicy agents -n monitoring --overwrite nodewise.dev/rollback=d16e57\n",
        ),
        (
            rejected("Pause"),
            "rollback",
            "--overwrite nodewise.dev/rollback=d16e57\n",
        ),
    ] {
        let ran = dump.run(&["rollout", verb, "ds/agent", "--yes"]);
        assert!(ran.stdout.contains(command), "{verb}: no {command:?} in {ran:?}");
        assert!(ran.stderr.contains("it was read from a file"), "{ran:?}");
    }
}

// A user who may write the status of a policy must not be able to put commands into the shell of an operator who copies a command.
#[test]
fn texts_of_a_status_are_no_commands() {
    let code = "x'; reboot; '";
    let mut unknown = held();
    let checks = &mut unknown.item("agents")["status"]["targets"][0]["stages"][0]["analysis"];
    let checks = checks.as_array_mut().expect("a list");
    checks.push(json!({"name": code, "measurements": 1, "inconclusive": 1}));
    let ran = unknown.run(&["rollout", "resume", "ds/agent", "--yes"]);
    assert!(ran.stdout.contains("check errors of stage canary"), "{ran:?}");
    assert!(
        !ran.stdout.contains("reboot"),
        "the spec has no such check: {ran:?}"
    );

    let mut known = held();
    let agents = known.item("agents");
    agents["spec"]["stages"][0]["analysis"][0]["name"] = json!(code);
    agents["status"]["targets"][0]["stages"][0]["analysis"][0]["name"] = json!(code);
    let ran = known.run(&["rollout", "resume", "ds/agent", "--yes"]);
    let command = ran.stdout.lines().find(|line| line.contains("kubectl patch"));
    let command = command.unwrap_or_else(|| panic!("no command: {ran:?}"));
    let words = shlex::split(command).expect("a command");
    assert!(!words.iter().any(|word| word == "reboot;"), "{command}");

    let mut resumed = rejected("Pause");
    resumed.item("agents")["status"]["targets"][0]["rejectedRevision"]["digest"] = json!("4e5; reboot");
    let mut rolled_back = soaking();
    rolled_back.item("agents")["status"]["targets"][0]["digest"] = json!("$(reboot)");
    for (dump, verb) in [(resumed, "resume"), (rolled_back, "rollback")] {
        let ran = dump.run(&["rollout", verb, "ds/agent", "--yes"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{verb}: {ran:?}");
        assert!(ran.stderr.contains("where a digest belongs"), "{ran:?}");
    }
}

#[test]
fn what_cannot_be_done_says_why() {
    let mut other = policy("agents");
    other["spec"]["targets"]["names"] = json!(["web"]);
    let mut invalid = policy("agents");
    invalid["spec"]["stages"][1]["name"] = json!("canary");
    let mut settled = policy("agents");
    settled["status"] =
        status(&json!({"stableRevision": {"hash": "7fb8", "number": 2}, "state": "Complete"}));
    let mut unseen = policy("agents");
    unseen["status"] = json!({});
    let cases = [
        (
            vec![],
            "approve",
            1,
            "it has no RolloutPolicy; there is none in namespace monitoring",
        ),
        (
            vec![other],
            "rollback",
            1,
            "it has no RolloutPolicy; spec.targets of agents in namespace monitoring does not include it",
        ),
        (
            vec![invalid],
            "approve",
            1,
            "RolloutPolicy agents cannot be used, so it holds the rollout: spec.stages[1].name",
        ),
        (vec![settled], "rollback", 1, "run `nodewise rollout undo`"),
        (
            vec![unseen],
            "rollback",
            1,
            "no executor has taken up the rollout of revision 2 yet",
        ),
        (
            vec![policy("agents")],
            "resume",
            0,
            "is not paused, and rejects no revision",
        ),
        (vec![], "pause", 1, "Kubernetes can pause only Deployments"),
    ];
    for (policies, verb, code, expected) in cases {
        let ran = Dump::new(&policies).run(&["rollout", verb, "ds/agent", "--yes"]);
        assert_eq!(ran.code, Some(code), "{verb}: {ran:?}");
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains(expected), "{verb}: no {expected:?} in {said}");
    }
    let ran = soaking().run(&["rollout", "approve", "ds/agent", "--yes"]);
    assert!(
        ran.stderr.contains("waits for no approval; it is Analyzing"),
        "{ran:?}"
    );
}

// L-1.
#[test]
fn of_two_policies_the_one_in_charge_is_named() {
    let mut newer = policy("another");
    newer["metadata"]["creationTimestamp"] = json!(ago(100));
    let mut agents = policy("agents");
    agents["status"] = status(&json!({}));
    let dump = Dump::new(&[newer, agents]);
    let shown = dump.run(&["rollout", "status", "ds/agent"]).stdout;
    assert!(
        shown.contains("RolloutPolicy another targets it as well and does not count"),
        "{shown}"
    );
    let pause = dump.run(&["rollout", "pause", "ds/agent", "--yes"]).stdout;
    assert!(pause.contains("RolloutPolicy agents is paused"), "{pause}");
    assert!(
        pause.contains("another targets it as well and does not count"),
        "{pause}"
    );
}

// A dump without policies gets a hint. A dump with an empty list of policies gets none.
#[test]
fn a_file_that_cannot_have_policies_gets_a_hint() {
    let without = Dump::new(&[]).items.to_string();
    let none = json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": []});
    let some = json!({"apiVersion": "v1", "kind": "List", "items": [policy("agents")]});
    let hint = "kubectl get rolloutpolicies -A -o json";
    for words in [
        vec!["plan", "-f", "-"],
        vec!["explain", "ds/agent", "-f", "-"],
        vec!["explain", "node/node-1", "-f", "-"],
        vec!["status", "-f", "-"],
        vec!["rollout", "status", "ds/agent", "-f", "-"],
        vec!["simulate", "ds/agent", "--image", "agent:9", "--dump", "-"],
    ] {
        let words = [words.as_slice(), &["--now", NOW]].concat();
        let ran = nodewise_with_input(&words, &without);
        assert_eq!(ran.stderr.matches(hint).count(), 1, "{words:?}: {ran:?}");
        for policies in [&none, &some] {
            let ran = nodewise_with_input(&words, &format!("{without}\n{policies}\n"));
            assert!(!ran.stderr.contains(hint), "{words:?}: {ran:?}");
            assert!(!ran.stderr.contains("error"), "{words:?}: {ran:?}");
        }
    }
    // The second document is heeded, as the output of the second command.
    let words = ["rollout", "status", "ds/agent", "-f", "-", "--now", NOW];
    let ran = nodewise_with_input(&words, &format!("{without}\n{some}\n"));
    assert!(ran.stdout.contains("RolloutPolicy agents"), "{ran:?}");
    // Deployments have no policies.
    let deployment = data("stuck-deployment.json");
    let ran = nodewise(&["plan", "deployments", "-f", &deployment, "--now", NOW]);
    assert!(!ran.stderr.contains(hint), "{ran:?}");
}

#[test]
fn a_play_says_what_it_assumes_about_the_policy() {
    let play = |dump: &Dump, more: &[&str]| {
        let text = dump.items.to_string();
        let words = [
            "simulate",
            "ds/agent",
            "--dump",
            "-",
            "--now",
            NOW,
            "--ready-after",
            "10s",
        ];
        nodewise_with_input(&[&words, more].concat(), &text)
    };
    let mut evicting = waiting();
    evicting.item("agents")["spec"]["disruption"] = json!("Evict");
    let ran = play(&evicting, &[]);
    for part in [
        "assumed: every approval is given at once (of rest)",
        "assumed: no host is asked, and every measurement of a check passes (errors of canary)",
        "assumed: no PodDisruptionBudget refuses an eviction",
        "done",
    ] {
        assert!(ran.stdout.contains(part), "no {part:?} in {ran:?}");
    }
    let json: Value = serde_json::from_str(&play(&evicting, &["-o", "json"]).stdout).expect("JSON");
    let said = json["assumptions"]["rolloutPolicy"].as_array().expect("a list");
    assert_eq!(said.len(), 3, "{json}");
    // Of what a policy does not ask for nothing is said.
    let mut plain = policy("agents");
    plain["spec"]["stages"] = json!([{"name": "canary", "replicas": 1}]);
    let ran = play(&Dump::new(&[plain]), &[]);
    assert_eq!(ran.stdout.matches("assumed: ").count(), 1, "{ran:?}");
    // A check that is held already is not made again, so the play does not go on either.
    let mut held = held();
    held.item("agents")["spec"]["stages"][0]["soak"] = json!("1m");
    let ran = play(&held, &[]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stdout.contains("inconclusiveLimit is 0"), "{ran:?}");
    let mut paused = waiting();
    paused.item("agents")["spec"]["paused"] = json!(true);
    let ran = play(&paused, &[]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stdout.contains("the policy is paused"), "{ran:?}");
}

// L-31: an inconclusive check waits for a person.
#[test]
fn a_check_that_is_held_can_be_resumed_and_says_so() {
    let status = held().run(&["rollout", "status", "ds/agent"]);
    assert_eq!(status.code, Some(3), "{status:?}");
    for part in [
        "check errors was inconclusive 1 times, and inconclusiveLimit is 0: too few requests to say",
        "`nodewise rollout resume` makes it go on without the inconclusive measurements",
        "$ nodewise rollout resume daemonset/agent -n monitoring",
        "$ nodewise rollout rollback daemonset/agent -n monitoring",
    ] {
        assert!(
            status.stdout.replace("\n  ", " ").contains(part),
            "no {part:?} in {}",
            status.stdout
        );
    }
    let resume = held().run(&["rollout", "resume", "ds/agent", "--yes"]).stdout;
    let said = "check errors of stage canary: 1 inconclusive, and inconclusiveLimit is 0; the last one said: too few requests to say";
    assert!(resume.contains(said), "{resume}");
}

#[test]
fn what_cannot_be_resumed_says_what_helps() {
    let mut erring = held();
    erring.item("agents")["status"]["targets"][0]["stages"][0]["analysis"][0] = json!({"name": "errors", "measurements": 5, "errors": 5, "consecutiveErrors": 5, "time": ago(20), "message": "refused"});
    let mut many = soaking();
    many.item("agents")["spec"]["nodes"] = json!({"maxExempt": 0});
    for (dump, state, helps) in [
        (
            waiting(),
            "AwaitingApproval",
            "`nodewise rollout approve daemonset/agent -n monitoring`",
        ),
        (erring, "AnalysisHeld", "is made again each interval"),
        (
            many,
            "TooManyNodesNotReady",
            "repair the nodes, or raise maxExempt",
        ),
    ] {
        let ran = dump.run(&["rollout", "resume", "ds/agent", "--yes"]);
        assert_eq!(ran.code, Some(1), "{state}: {ran:?}");
        assert!(ran.stdout.is_empty(), "{ran:?}");
        let said = format!("there is nothing to resume. It is {state}: ");
        assert!(ran.stderr.contains(&said), "no {said:?} in {ran:?}");
        assert!(ran.stderr.contains(helps), "no {helps:?} in {ran:?}");
    }
}

/// Which hosts an executor may call, only it knows. What it has written about them counts here too.
#[test]
fn a_policy_whose_host_the_executor_may_not_call_is_held() {
    let mut refused = soaking();
    let message = "stages[0].analysis[0].webhook.url: the executor may not call \"checks.example\"; whoever runs it allows hosts with --analysis-host";
    let status = &mut refused.item("agents")["status"];
    status["conditions"] = json!([{"type": "Accepted", "status": "False", "reason": "Invalid", "message": message,
        "observedGeneration": 1, "lastTransitionTime": ago(200)}]);
    status["targets"][0]["state"] = json!("Invalid");
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = flat(&refused.run(&["rollout", "status", "ds/agent"]).stdout);
    assert!(shown.contains("may not call \"checks.example\""), "{shown}");
    let row = refused.run(&["status"]).ok();
    assert!(row.contains("held"), "{row}");
    let plan = refused.run(&["plan"]).ok();
    assert!(plan.contains("0 to delete"), "{plan}");
}

#[test]
fn the_budget_of_the_stage_and_the_pace_are_shown_with_numbers() {
    let mut paced = soaking();
    paced.item("agents")["spec"]["stages"] = json!([{"name": "all", "maxUnavailable": "100%"}]);
    paced.item("agents")["spec"]["pace"] = json!({"nodes": 1, "interval": "10m"});
    let target = &mut paced.item("agents")["status"]["targets"][0];
    target["pace"] = json!([{"time": ago(300), "nodes": 1}]);
    target["stages"] = json!([{"name": "all", "nodes": 4, "updated": 1, "available": 1, "state": "Progressing", "startTime": ago(300)}]);
    let pace = "the pace allows 1 node in 10m, and so many have begun; the next ones may begin at 2026-01-01T02:05:00Z";
    let budget =
        "budget of stage all: at most 1 node without an available pod at a time (maxUnavailable), 0 now";
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [vec!["rollout", "status", "ds/agent"], vec!["explain", "ds/agent"]] {
        let shown = flat(&paced.run(&words).stdout);
        for part in [pace, budget] {
            assert!(shown.contains(part), "{words:?}: no {part:?} in {shown}");
        }
    }
    let node = flat(&paced.run(&["explain", "ds/agent", "--node", "node-2"]).ok());
    assert!(node.contains(pace), "{node}");
}
