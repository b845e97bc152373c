//! Tests bad input: one line that names the file and the field, and exit code 1.

mod common;

use common::{NOW, data, nodewise, nodewise_with_input};
use serde_json::{Value, json};

#[track_caller]
fn refused(ran: &common::Ran, expected: &str) {
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(ran.stdout, "", "{ran:?}");
    assert_eq!(ran.stderr, format!("error: {expected}\n"));
}

const EXPECTED: &str = "expected a List as `kubectl get deployments,replicasets,daemonsets,controllerrevisions,pods,nodes -A -o json` prints it";

#[test]
fn texts_that_are_not_a_list() {
    for (text, problem) in [
        ("", format!("is empty; {EXPECTED}")),
        (" \n", format!("is empty; {EXPECTED}")),
        (
            "{\"kind\": \"List\", ",
            "is not JSON: EOF while parsing an object at line 1 column 17".to_owned(),
        ),
        ("not json", format!("holds a string, not a List; {EXPECTED}")),
        ("[]", format!("holds a bare array, not a List; {EXPECTED}")),
        ("42", format!("holds a single value, not a List; {EXPECTED}")),
        ("{}", format!("kind: is missing; {EXPECTED}")),
        (
            "kind: ConfigMap",
            format!("kind: ConfigMap is not a List; {EXPECTED}"),
        ),
        ("kind: List", "items: is missing".to_owned()),
        (
            "kind: List\nitems: 5",
            "items: invalid type: integer `5`, expected a sequence".to_owned(),
        ),
        (
            "kind: List\nitems: [5]",
            "items[0]: invalid type: integer `5`, expected an object".to_owned(),
        ),
        ("kind: List\nitems: [{}]", "items[0].kind: is missing".to_owned()),
        (
            "kind: List\nitems: [{kind: Node}]",
            "items[0].metadata.name: is missing".to_owned(),
        ),
        (
            "kind: List\nitems: [{kind: Pod, metadata: 5}]",
            "items[0].metadata: invalid type: integer `5`, expected an object".to_owned(),
        ),
        ("kind: List\nkind: List", "is neither JSON nor YAML: ".to_owned()),
        ("a: [", "is neither JSON nor YAML: ".to_owned()),
    ] {
        let ran = nodewise_with_input(&["plan", "-f", "-"], text);
        if problem.ends_with(": ") {
            // The rest is the parser's message.
            assert_eq!(ran.code, Some(1), "{ran:?}");
            assert!(
                ran.stderr
                    .starts_with(&format!("error: standard input: {problem}")),
                "{ran:?}"
            );
            assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
        } else {
            refused(&ran, &format!("standard input: {problem}"));
        }
    }
}

fn new() -> Value {
    serde_json::from_str(&std::fs::read_to_string(data("new.json")).unwrap()).unwrap()
}

/// One wrong field in otherwise valid input.
#[test]
fn objects_with_a_wrong_field() {
    let table: [(&str, Value, &str); 9] = [
        (
            "/items/0/spec/template/metadata/labels/app",
            json!("other"),
            "items[0].spec.selector: `app=agent` does not match spec.template.metadata.labels (DaemonSet monitoring/agent)",
        ),
        (
            "/items/0/spec/selector",
            json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["agent"]}]}),
            "items[0].spec.selector: `app notin (agent)` does not match spec.template.metadata.labels (DaemonSet monitoring/agent)",
        ),
        (
            "/items/0/spec/selector",
            json!("app=agent"),
            "items[0].spec.selector: invalid type: string \"app=agent\", expected LabelSelector",
        ),
        (
            "/items/0/spec/selector",
            json!({"matchExpressions": [{"key": "app", "operator": "Near"}]}),
            "items[0].spec.selector.matchExpressions[0].operator: `Near` is none of In, NotIn, Exists and DoesNotExist (DaemonSet monitoring/agent)",
        ),
        (
            "/items/0/metadata/uid",
            json!(""),
            "items[0].metadata.uid: is required (DaemonSet monitoring/agent)",
        ),
        (
            "/items/0/metadata/name",
            json!(""),
            "items[0].metadata.name: is missing",
        ),
        (
            "/items/0/spec/template",
            json!(null),
            "items[0].spec.template: is required and must be an object (DaemonSet monitoring/agent)",
        ),
        (
            "/items/2/metadata/name",
            json!("node-1"),
            "items[2].metadata.name: Node node-1 was already given at standard input: items[1]",
        ),
        (
            "/items/4/spec/taints",
            json!("none"),
            "items[4].spec.taints: invalid type: string \"none\", expected a sequence",
        ),
    ];
    for (pointer, value, expected) in table {
        let mut list = new();
        *list.pointer_mut(pointer).expect("the field is there") = value;
        let ran = nodewise_with_input(&["plan", "-f", "-", "--now", NOW], &list.to_string());
        refused(&ran, &format!("standard input: {expected}"));
    }
}

/// The types of the fields that are changed here are checked before. The apiserver and the planner check the rest.
#[test]
fn manifests_with_a_field_of_another_type() {
    let folder = tempfile::tempdir().unwrap();
    let (manifest, dump) = (folder.path().join("new.yaml"), data("new.json"));
    let file = manifest.display().to_string();
    let head = "kind: DaemonSet\nmetadata: {name: agent}\n";
    for (spec, expected) in [
        ("spec: text", "spec: is a string; expected an object"),
        (
            "spec: {template: text}",
            "spec.template: is a string; expected an object",
        ),
        (
            "spec: {template: {spec: 5}}",
            "spec.template.spec: is a number; expected an object",
        ),
        (
            "spec: {template: {spec: {containers: {}}}}",
            "spec.template.spec.containers: is an object; expected a list",
        ),
        (
            "spec: {template: {spec: {containers: [agent]}}}",
            "spec.template.spec.containers[0]: is a string; expected an object",
        ),
    ] {
        std::fs::write(&manifest, format!("{head}{spec}\n")).unwrap();
        let simulate = ["simulate", "ds/agent", "--dump", &dump, "-f", &file];
        for more in [&[][..], &["--image", "x"]] {
            let ran = nodewise(&[&simulate[..], more].concat());
            refused(&ran, &format!("{file}: {expected}"));
        }
    }
    std::fs::remove_file(&manifest).unwrap();
    let ran = nodewise(&["simulate", "ds/agent", "--dump", &dump, "-f", &file]);
    refused(&ran, &format!("{file}: no such file"));
}

/// The planner parses revisions. Its error is shown with the position in the input.
#[test]
fn revisions_with_a_wrong_field() {
    for (field, value, expected) in [
        (
            "labels",
            json!(7),
            "labels: invalid type: integer `7`, expected a map",
        ),
        ("uid", json!([]), "uid: invalid type: sequence, expected a string"),
        (
            "creationTimestamp",
            json!(7),
            "creationTimestamp: invalid type: integer `7`, expected a string",
        ),
    ] {
        let mut list: Value =
            serde_json::from_str(&std::fs::read_to_string(data("rollout.json")).unwrap()).unwrap();
        let items = list["items"].as_array_mut().unwrap();
        let is_revision = |item: &Value| item["kind"] == "ControllerRevision";
        let index = items.iter().position(is_revision).unwrap();
        items[index]["metadata"][field] = value;
        let ran = nodewise_with_input(&["plan", "-f", "-", "--now", NOW], &list.to_string());
        assert_eq!((ran.code, &*ran.stdout), (Some(1), ""), "{ran:?}");
        let expected = format!("error: standard input: items[{index}].metadata.{expected}");
        assert!(ran.stderr.starts_with(&expected), "{ran:?}");
        assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
    }
}

#[test]
fn files_that_cannot_be_read() {
    refused(
        &nodewise(&["plan", "-f", "/no/such/file.json"]),
        "/no/such/file.json: no such file",
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display().to_string();
    refused(
        &nodewise(&["plan", "-f", &path]),
        &format!("{path}: is a directory, not a file"),
    );
    refused(
        &nodewise(&["plan", "-f", "-", "-f", "-"]),
        "standard input: is given twice",
    );
    let binary = folder.path().join("binary");
    let path = binary.display().to_string();
    // YAML, and JSON in UTF-16.
    for bytes in [&[0x80, 0x81][..], b"kind: \xff", b"\xff\xfe{\0}\0"] {
        std::fs::write(&binary, bytes).unwrap();
        refused(
            &nodewise(&["plan", "-f", &path]),
            &format!("{path}: is not UTF-8 text"),
        );
    }
}

/// An object may occur once in all files. Errors number the documents of a file.
#[test]
fn duplicates_across_files_and_documents() {
    let new = data("new.json");
    let list = std::fs::read_to_string(&new).unwrap();
    let ran = nodewise_with_input(&["plan", "-f", &new, "-f", "-"], &list);
    refused(
        &ran,
        &format!(
            "standard input: items[0].metadata.name: DaemonSet monitoring/agent was already given at {new}: items[0]"
        ),
    );
    let node = "apiVersion: v1\nkind: Node\nmetadata: {name: a}\n";
    let ran = nodewise_with_input(&["plan", "-f", "-"], &format!("{node}---\n{node}"));
    refused(
        &ran,
        "standard input: document 2: metadata.name: Node a was already given at standard input: document 1",
    );
}

#[test]
fn explain_lists_the_existing_workloads() {
    let new = data("new.json");
    for (args, expected) in [
        (
            &["explain", "daemonset", "web"][..],
            format!("{new}: no DaemonSet web; there is monitoring/agent"),
        ),
        (
            &["explain", "ds/agent", "-n", "default"],
            format!("{new}: no DaemonSet agent in namespace default; there is monitoring/agent"),
        ),
        (
            &["explain", "deployment", "web"],
            format!("{new}: no Deployment web; there is none at all"),
        ),
        (
            &["explain", "web"],
            "web: expected a kind and a name, such as deployment/web, rs/web-5d4f or daemonset/agent"
                .to_owned(),
        ),
        (
            &["explain", "daemonset", "agent", "--node", "node-9"],
            format!("{new}: no Node node-9, and no pod of DaemonSet monitoring/agent for it"),
        ),
    ] {
        let args = [args, &["-f", &new, "--now", NOW]].concat();
        refused(&nodewise(&args), &expected);
    }
}

/// Exit code 2 is reserved for `--detailed-exitcode`.
#[test]
fn a_wrong_command_line_ends_with_1() {
    for args in [
        &["plan", "--no-such-flag"][..],
        &["plan", "--now", "yesterday"],
        &["explain"],
        &["no-such-command"],
    ] {
        let ran = nodewise(args);
        assert_eq!(ran.code, Some(1), "{args:?}: {ran:?}");
        assert!(ran.stderr.starts_with("error: "), "{args:?}: {ran:?}");
    }
    assert_eq!(nodewise(&["--help"]).code, Some(0));
    assert_eq!(nodewise(&["plan", "--version"]).code, Some(0));
}

/// The service accepts the years of Protobuf's timestamps without the last day. The error names the flag, not a file.
#[test]
fn a_clock_out_of_range() {
    let new = data("new.json");
    for time in [
        "9999-12-30T22:00:00Z",
        "9999-12-30T00:00:00.000000001Z",
        "0000-12-31T23:59:59Z",
        "-000001-01-01T00:00:00Z",
    ] {
        let ran = nodewise(&["plan", "-f", &new, &format!("--now={time}")]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let expected = format!(
            "error: invalid value '{time}' for '--now <TIME>': not from 0001-01-01T00:00:00Z to 9999-12-30T00:00:00Z\n"
        );
        assert!(ran.stderr.starts_with(&expected), "{ran:?}");
    }
    for time in ["9999-12-30T00:00:00Z", "0001-01-01T00:00:00Z"] {
        nodewise(&["plan", "-f", &new, "--now", time]).ok();
    }
}

#[test]
fn a_wrong_log_filter() {
    let new = data("new.json");
    let with_filter = |filter: &str| -> common::Ran {
        let mut command = common::command(&["plan", "-f", &new, "--now", NOW]);
        command.env("NODEWISE_LOG", filter).output().unwrap().into()
    };
    refused(
        &with_filter("=[["),
        "NODEWISE_LOG is no log filter such as debug or nodewise_executor=debug: invalid filter directive",
    );
    with_filter("nodewise_executor=debug").ok();
    with_filter("").ok();
}

#[test]
fn a_service_or_cluster_that_cannot_be_reached() {
    let new = data("new.json");
    // Bound but not listening, so that no other process gets the port.
    let silent = tokio::net::TcpSocket::new_v4().unwrap();
    silent.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = silent.local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}");
    let ran = nodewise(&["plan", "-f", &new, "--server", &url]);
    refused(
        &ran,
        &format!(
            "DaemonSet monitoring/agent: no replica of the planning service answered: {url}: Unavailable: tcp connect error: \
             transport error: Connection refused (os error 111) (--server says where to ask, and --server-timeout for how long: 60s)"
        ),
    );
    let ran = nodewise(&["plan", "-f", &new, "--server", "not a url"]);
    refused(
        &ran,
        "--server not a url: must be https://HOST:PORT, http://HOST:PORT, dns:///HOST:PORT or kubernetes:///SERVICE.NAMESPACE:PORT",
    );
    for command in [&["plan"][..], &["explain", "daemonset", "agent"]] {
        let elsewhere = ["-f", &new, "--server", &url, "--server", "http://192.0.2.1:7443"];
        let ran = nodewise(&[command, &elsewhere].concat());
        refused(
            &ran,
            "--server http://192.0.2.1:7443 is not on loopback, and would be asked in plain text: write https://, or give \
             --plaintext where something else protects it",
        );
    }
    let ran = nodewise(&["plan", "-f", &new, "--plaintext", "--tls", "--server", &url]);
    refused(
        &ran,
        "--plaintext means no TLS, and --tls means TLS: leave one of them out",
    );
    let ran = nodewise(&["plan", "--kubeconfig", "/no/such/kubeconfig"]);
    refused(&ran, "/no/such/kubeconfig: no such file");
    let home = tempfile::tempdir().unwrap();
    let ran: common::Ran = common::command(&["plan"])
        .env("HOME", home.path())
        .output()
        .unwrap()
        .into();
    refused(
        &ran,
        "no cluster to ask: neither a kubeconfig nor a service account was found; give -f FILE or --kubeconfig PATH",
    );
}
