//! Tests `nodewise plan` with its text and JSON output.

mod common;

use std::process::Stdio;

use common::{NOW, command, data, new_on, nodewise, nodewise_with_input};
use serde_json::{Value, json};

fn plan(file: &str) -> String {
    nodewise(&["plan", "-f", &data(file), "--now", NOW]).ok()
}

fn plan_json(file: &str, more: &[&str]) -> Value {
    let file = data(file);
    let args = [&["plan", "-f", &file, "--now", NOW, "--output", "json"], more].concat();
    serde_json::from_str(&nodewise(&args).ok()).expect("JSON")
}

#[test]
fn nothing_to_do() {
    insta::assert_snapshot!(plan("steady.json"));
}

#[test]
fn a_new_daemon_set() {
    insta::assert_snapshot!(plan("new.json"));
}

#[test]
fn a_rollout_with_its_budget_used_up() {
    insta::assert_snapshot!(plan("rollout.json"));
}

#[test]
fn a_failed_pod_an_orphan_and_nodes_that_do_not_match() {
    insta::assert_snapshot!(plan("mixed.json"));
}

#[test]
fn hundreds_of_equal_actions() {
    let ran = nodewise_with_input(&["plan", "-f", "-", "--now", NOW], &new_on(300).to_string());
    insta::assert_snapshot!(ran.ok());
}

#[test]
fn json_is_one_element_per_daemon_set_in_the_protocols_form() {
    let plans = plan_json("new.json", &[]);
    let [element] = plans.as_array().expect("an array").as_slice() else {
        panic!("{plans}")
    };
    assert_eq!(element["namespace"], "monitoring");
    assert_eq!(element["name"], "agent");
    assert_eq!(element["plan"]["verdict"], "VERDICT_APPLY");
    // The JSON can be parsed as the protocol's message.
    let plan: nodewise_proto::v1::Plan = serde_json::from_value(element["plan"].clone()).expect("a plan");
    assert_eq!(plan.workload.as_ref().expect("a workload").name, "agent");
    let creates = plan
        .actions()
        .filter(|action| matches!(action.kind, Some(nodewise_proto::v1::action::Kind::CreatePod(_))))
        .count();
    assert_eq!(creates, 3);
}

#[test]
fn exit_codes() {
    let (new, steady) = (data("new.json"), data("steady.json"));
    for (file, detailed, code) in [
        (&new, false, 0),
        (&new, true, 2),
        (&steady, false, 0),
        (&steady, true, 0),
    ] {
        let mut args = vec!["plan", "-f", file, "--now", NOW];
        if detailed {
            args.push("--detailed-exitcode");
        }
        assert_eq!(nodewise(&args).code, Some(code), "{args:?}");
        args.extend(["--output", "json"]);
        assert_eq!(nodewise(&args).code, Some(code), "{args:?}");
    }
}

/// JSON and YAML, one file or several, a list or documents: the same objects.
#[test]
fn every_form_of_input_gives_the_same_plan() {
    let expected = plan("rollout.json");
    let list: Value = serde_json::from_str(&std::fs::read_to_string(data("rollout.json")).unwrap()).unwrap();
    let items = list["items"].as_array().unwrap();

    // JSON is YAML as well. With a leading comment it is not JSON.
    let yaml = format!("# from a backup\n{list}");
    let items_as_text: Vec<String> = items.iter().map(Value::to_string).collect();
    let documents = format!("---\n{}\n", items_as_text.join("\n---\n"));
    let lines = items_as_text.join("\n");
    for input in [yaml, documents, lines] {
        let ran = nodewise_with_input(&["plan", "-f", "-", "--now", NOW], &input);
        assert_eq!(ran.ok(), expected, "{input}");
    }

    let folder = tempfile::tempdir().unwrap();
    let mut args = vec![
        "plan".to_owned(),
        "--now".to_owned(),
        NOW.to_owned(),
        "-f".to_owned(),
    ];
    for (number, part) in items.chunks(4).enumerate() {
        let path = folder.path().join(format!("{number}.json"));
        // The items of a typed list need no kind.
        std::fs::write(&path, json!({"kind": "List", "items": part}).to_string()).unwrap();
        args.push(path.display().to_string());
    }
    assert!(args.len() > 6, "several files");
    assert_eq!(
        nodewise(&args.iter().map(String::as_str).collect::<Vec<_>>()).ok(),
        expected
    );
}

#[test]
fn typed_lists_and_other_kinds_are_fine() {
    let list: Value = serde_json::from_str(&std::fs::read_to_string(data("new.json")).unwrap()).unwrap();
    let items = list["items"].as_array().unwrap();
    let nodes: Vec<Value> = items[1..]
        .iter()
        .cloned()
        .map(|mut node| {
            node.as_object_mut().unwrap().remove("kind");
            node.as_object_mut().unwrap().remove("apiVersion");
            node
        })
        .collect();
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}});
    let other_node = json!({"apiVersion": "example.com/v1", "kind": "Node", "metadata": {"name": "x"}});
    let input = format!(
        "{}{}",
        json!({"kind": "NodeList", "apiVersion": "v1", "items": nodes}),
        json!({"kind": "List", "items": [service, other_node, items[0]]}),
    );
    assert_eq!(
        nodewise_with_input(&["plan", "-f", "-", "--now", NOW], &input).ok(),
        plan("new.json")
    );
}

#[test]
fn a_namespace_can_be_chosen() {
    let all = plan_json("new.json", &["-A"]);
    assert_eq!(plan_json("new.json", &["-n", "monitoring"]), all);
    assert_eq!(plan_json("new.json", &["-n", "default"]), json!([]));
    let ran = nodewise(&["plan", "-f", &data("new.json"), "-n", "default"]);
    assert!(
        ran.stderr.starts_with("note: ") && ran.stderr.contains("no DaemonSet of namespace default"),
        "{ran:?}"
    );
}

#[test]
fn hints_name_kinds_that_may_be_missing() {
    let list: Value = serde_json::from_str(&std::fs::read_to_string(data("steady.json")).unwrap()).unwrap();
    let items = list["items"].as_array().unwrap();
    for (kind, expected) in [
        ("Node", "no Node;"),
        ("ControllerRevision", "no ControllerRevision;"),
    ] {
        let rest: Vec<&Value> = items.iter().filter(|item| item["kind"] != kind).collect();
        let input = json!({"kind": "List", "items": rest}).to_string();
        let ran = nodewise_with_input(&["plan", "-f", "-", "--now", NOW], &input);
        assert!(ran.stderr.contains(expected), "{ran:?}");
        assert_eq!(ran.code, Some(0));
    }
}

/// If a template is edited in a file, the generation does not change. Old pods count as current by their generation (D-65).
#[test]
fn an_edited_template_without_its_generation_gets_a_hint() {
    let text = std::fs::read_to_string(data("steady.json")).unwrap();
    let mut list: Value = serde_json::from_str(&text).unwrap();
    list["items"][0]["spec"]["template"]["spec"]["containers"][0]["image"] =
        "registry.example/agent:2".into();
    let ran = nodewise_with_input(&["plan", "-f", "-", "--now", NOW], &list.to_string());
    assert!(
        ran.stderr.contains("deprecated.daemonset.template.generation"),
        "{ran:?}"
    );
    list["items"][0]["metadata"]["annotations"]["deprecated.daemonset.template.generation"] = "2".into();
    let ran = nodewise_with_input(&["plan", "-f", "-", "--now", NOW], &list.to_string());
    assert!(
        !ran.stderr.contains("deprecated.daemonset.template.generation"),
        "{ran:?}"
    );
    assert!(ran.stdout.contains("- delete pod"), "{ran:?}");
}

#[test]
fn the_strict_profile_has_no_deviation() {
    let deviations = |value: &Value| value[0]["plan"].get("deviations").cloned();
    assert!(deviations(&plan_json("new.json", &[])).is_some());
    assert_eq!(
        deviations(&plan_json("new.json", &["--profile", "upstream-strict"])),
        None
    );
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let mut child = command(&["plan", "-f", &data("new.json"), "--now", NOW])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!said.contains("error"), "{said}");
}

#[test]
fn a_pipe_gets_no_colours_unless_forced() {
    assert!(!plan("new.json").contains('\u{1b}'));
    let coloured = command(&["plan", "-f", &data("new.json"), "--now", NOW])
        .env("CLICOLOR_FORCE", "1")
        .output();
    assert!(
        String::from_utf8(coloured.unwrap().stdout)
            .unwrap()
            .contains("\u{1b}[32m+")
    );
}

/// kubectl finds plugins by their file name.
#[test]
fn it_runs_as_a_kubectl_plugin() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = folder.path().join("kubectl-nodewise");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_nodewise"), &plugin).unwrap();
    let output = std::process::Command::new(&plugin)
        .args(["plan", "--help"])
        .output()
        .unwrap();
    assert!(output.status.success());
    let help = String::from_utf8(output.stdout).unwrap();
    assert!(help.contains("Usage: kubectl nodewise plan [OPTIONS]"), "{help}");
}

/// Counts that are null or absent are 0. Unknown fields are ignored.
#[test]
fn a_status_with_gaps() {
    let text = std::fs::read_to_string(data("mixed.json")).unwrap();
    let mut list: Value = serde_json::from_str(&text).unwrap();
    list["items"][0]["status"] = json!({
        "currentNumberScheduled": 3, "desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberReady": 3,
        "numberAvailable": null, "observedGeneration": 1, "collisionCount": 0, "conditions": [],
    });
    let ran = nodewise_with_input(&["plan", "-f", "-", "--now", NOW], &list.to_string());
    let expected = "status: current 3 → 2, misscheduled 0 → 1, updated 3 → 2, ready 3 → 1, available 0 → 1, unavailable 0 → 2\n";
    let printed = ran.ok();
    assert!(printed.contains(expected), "{printed}");
}

/// The data of a revision that cannot be parsed counts as another template, as in the executor.
#[test]
fn data_of_a_revision_that_cannot_be_read_is_another_template() {
    let folder = tempfile::tempdir().unwrap();
    let deep = [r#"{"a":"#.repeat(9_000), "1".into(), "}".repeat(9_000)].concat();
    let told = |text: &[u8]| {
        let mut list: Value =
            serde_json::from_str(&std::fs::read_to_string(data("rollout.json")).unwrap()).unwrap();
        let items = list["items"].as_array_mut().unwrap();
        let revision = items
            .iter()
            .find(|item| item["kind"] == "ControllerRevision")
            .unwrap();
        let mut odd = revision.clone();
        (odd["metadata"]["name"], odd["metadata"]["uid"]) = (json!("by-hand"), json!("by-hand"));
        (odd["revision"], odd["data"]) = (json!(9), json!("here"));
        items.push(odd);
        let list = list.to_string();
        let (before, after) = list.split_once("\"here\"").unwrap();
        let file = folder.path().join("list.json");
        std::fs::write(&file, [before.as_bytes(), text, after.as_bytes()].concat()).unwrap();
        let file = file.display().to_string();
        [&["plan"][..], &["explain", "daemonset", "agent"]].map(|command| {
            let source = ["-f", &file, "--now", NOW];
            let text = nodewise(&[command, &source].concat()).ok();
            // Both forms may have a warning.
            let warning = "! warning: ControllerRevision by-hand: data: it cannot be read";
            let lines = text.lines().filter(|line| !line.contains(warning));
            let rest: String = lines.flat_map(|line| [line, "\n"]).collect();
            rest.trim_end().to_owned()
        })
    };
    let expected = told(b"{}");
    assert!(expected[0].contains("revision"), "{}", expected[0]);
    let odd: [&[u8]; 5] = [
        b"{\"a\":\"\xff\"}",
        br#"{"a":"\ud800"}"#,
        br#"{"a":1e999}"#,
        br#"{"a":1,"a":2}"#,
        deep.as_bytes(),
    ];
    for data in odd {
        assert_eq!(told(data), expected, "{:.20}", data.escape_ascii());
    }
}

/// A folder for kept plans, and the arguments that plan for a file.
fn planning(file: &str) -> [String; 5] {
    ["plan", "-f", &data(file), "--now", NOW].map(str::to_owned)
}

fn run(args: &[String], more: &[&str]) -> common::Ran {
    let args: Vec<&str> = args
        .iter()
        .map(String::as_str)
        .chain(more.iter().copied())
        .collect();
    nodewise(&args)
}

#[test]
fn a_kept_plan_equals_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("kept.plan").display().to_string();
    run(&planning("rollout.json"), &["--out", &file]).ok();
    let same = run(&planning("rollout.json"), &["--compare", &file]);
    assert_eq!(same.code, Some(0), "{same:?}");
    assert!(
        same.stdout
            .contains("DaemonSet monitoring/agent: the plan is the same"),
        "{same:?}"
    );
}

#[test]
fn a_comparison_names_the_actions_that_came_and_went() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    run(&planning("rollout.json"), &["--out", &path("kept.plan")]).ok();
    // A node goes, and another one comes.
    let dump = std::fs::read_to_string(data("rollout.json")).expect("a file");
    let mut dump: serde_json::Value = serde_json::from_str(&dump).expect("JSON");
    let items = dump["items"].as_array_mut().expect("items");
    let node = items
        .iter_mut()
        .find(|item| item["kind"] == "Node")
        .expect("a node");
    let gone = node["metadata"]["name"].as_str().expect("a name").to_owned();
    node["metadata"]["name"] = "node-new".into();
    std::fs::write(path("now.json"), dump.to_string()).expect("written");
    let args = [
        "plan",
        "-f",
        &path("now.json"),
        "--now",
        NOW,
        "--compare",
        &path("kept.plan"),
    ];
    let text = nodewise(&args);
    assert_eq!(text.code, Some(2), "{text:?}");
    for expected in [
        "DaemonSet monitoring/agent: the plan has changed",
        "1 node came: node-new",
        &format!("1 node went: {gone}"),
        "+ CreatePod on node-new: node without pod",
    ] {
        assert!(text.stdout.contains(expected), "{expected} in {text:?}");
    }
    let json = nodewise(&[&args[..], &["-o", "json"]].concat());
    let compared: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(compared["isEqual"], false);
    assert_eq!(compared["workloads"][0]["result"], "changed");
}

/// A Deployment that someone scales: the actions are the same, and the sizes are not.
#[test]
fn a_comparison_tells_sizes_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let dump = std::fs::read_to_string(data("complete-deployment.json")).expect("a file");
    let scaled = |replicas: u32| {
        let mut dump: Value = serde_json::from_str(&dump).expect("JSON");
        let items = dump["items"].as_array_mut().expect("items");
        let deployment = items.iter_mut().find(|item| item["kind"] == "Deployment");
        deployment.expect("a Deployment")["spec"]["replicas"] = replicas.into();
        let file = path(&format!("{replicas}.json"));
        std::fs::write(&file, dump.to_string()).expect("written");
        ["plan", "deploy/web", "-f", &file, "--now", NOW].map(str::to_owned)
    };
    let kept = path("kept.plan");
    run(&scaled(5), &["--out", &kept]).ok();
    let same = run(&scaled(5), &["--compare", &kept]);
    assert_eq!(same.code, Some(0), "{same:?}");
    let other = run(&scaled(50), &["--compare", &kept]);
    assert_eq!(other.code, Some(2), "{other:?}");
    for expected in [
        "Deployment shop/web: the plan has changed",
        "~ scale ReplicaSet web-7d9f to 5 → to 50",
        "the next step of each, not the steps to the end",
    ] {
        assert!(other.stdout.contains(expected), "{expected} in {other:?}");
    }
    let json = run(&scaled(50), &["--compare", &kept, "-o", "json"]);
    let compared: Value = serde_json::from_str(&json.stdout).expect("JSON");
    let changed = &compared["workloads"][0]["changed"][0];
    assert_eq!(changed["before"]["change"], "scale ReplicaSet web-7d9f to 5");
    let fields = changed["fields"].as_array().expect("fields");
    assert!(fields.contains(&json!("spec.replicas: 5 → 50")), "{changed}");
}

/// A mistyped name must not cost a manifest.
#[test]
fn only_kept_plans_are_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("new.yaml");
    let name = file.display().to_string();
    let manifest = "kind: DaemonSet\n";
    std::fs::write(&file, manifest).expect("written");
    let refused = run(&planning("steady.json"), &["--out", &name]);
    assert_eq!((refused.code, &*refused.stdout), (Some(1), ""), "{refused:?}");
    let expected =
        format!("error: --out {name}: the file exists and is not a kept plan, so it is not replaced");
    assert!(refused.stderr.starts_with(&expected), "{refused:?}");
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), manifest);

    // An empty file has nothing to lose, and a plan may be made again.
    std::fs::write(&file, "").expect("written");
    for _ in 0..2 {
        run(&planning("steady.json"), &["--out", &name]).ok();
    }
    run(&planning("steady.json"), &["--compare", &name]).ok();
}

#[test]
fn flags_without_effect_are_refused() {
    for (flags, expected) in [
        (&["--fail", "4%"][..], "--fail is for a change"),
        (&["--ready-after", "30s"], "--ready-after is for a change"),
        (&["--all-steps"], "--all-steps is for a change"),
        (&["--local"], "--local is for a change"),
        (&["--field-manager", "x"], "--field-manager is for a change"),
        (
            &["--max-nodes", "3", "--server", "http://127.0.0.1:1"],
            "cannot be used with",
        ),
    ] {
        let refused = run(&planning("steady.json"), flags);
        assert_eq!((refused.code, &*refused.stdout), (Some(1), ""), "{refused:?}");
        assert!(refused.stderr.contains(expected), "{expected} in {refused:?}");
    }
}

#[test]
fn kept_plans_of_another_format_or_digest_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("kept.plan").display().to_string();
    run(&planning("steady.json"), &["--out", &file]).ok();
    let kept = std::fs::read_to_string(&file).expect("a file");
    for (from, to, expected) in [
        (
            "kept-plan/v1",
            "kept-plan/v2",
            "format: found nodewise.dev/kept-plan/v2, expected nodewise.dev/kept-plan/v1",
        ),
        (
            "\"generation\"",
            "\"generatiom\"",
            "the file was changed after it was written",
        ),
        ("{", "", "is not JSON"),
    ] {
        std::fs::write(&file, kept.replacen(from, to, 1)).expect("written");
        let refused = run(&planning("steady.json"), &["--compare", &file]);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains(expected), "{expected} in {refused:?}");
    }
}
