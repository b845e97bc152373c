//! JSON and YAML files that are expensive to read.

use std::fmt::Write as _;

/// A text of about `bytes` bytes: `begin`, as many copies of `entry` as fit, `end`.
fn many(begin: &str, entry: &str, end: &str, bytes: usize) -> String {
    let times = bytes.saturating_sub(begin.len() + end.len()) / entry.len();
    format!("{begin}{}{end}", entry.repeat(times))
}

/// As many entries as fit. `entry` makes each entry from its number.
fn numbered(bytes: usize, begin: &str, entry: impl Fn(usize) -> String) -> String {
    let mut text = begin.to_owned();
    for number in 0.. {
        let next = entry(number);
        if text.len() + next.len() > bytes {
            break;
        }
        text += &next;
    }
    text
}

/// YAML in which each anchor has nine aliases of the one before ("billion laughs").
fn laughs(_: usize) -> String {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let before = format!("*a{}", level - 1);
        let _ = writeln!(text, "a{level}: &a{level} [{}]", [before.as_str(); 9].join(", "));
    }
    text
}

/// YAML with many aliases of one long scalar.
fn echoes(bytes: usize) -> String {
    format!(
        "a: &a {}\nb: [{}]\n",
        "x".repeat(bytes / 2),
        vec!["*a"; bytes / 8].join(", ")
    )
}

/// A list of real objects in JSON.
fn json_nodes(bytes: usize) -> String {
    let nodes = numbered(bytes, "", |number| {
        format!(
            r#"{{"apiVersion":"v1","kind":"Node","metadata":{{"name":"node-{number}","labels":{{"kubernetes.io/os":"linux"}}}},"status":{{"conditions":[{{"type":"Ready","status":"True"}}]}}}},"#
        )
    });
    format!(
        "{{\"kind\":\"List\",\"items\":[{}]}}",
        nodes.trim_end_matches(',')
    )
}

fn yaml_nodes(bytes: usize) -> String {
    numbered(bytes, "kind: List\nitems:\n", |number| {
        format!(
            "- apiVersion: v1\n  kind: Node\n  metadata:\n    name: node-{number}\n    labels:\n      kubernetes.io/os: linux\n  status:\n    conditions:\n    - type: Ready\n      status: \"True\"\n"
        )
    })
}

fn tiny_nodes(bytes: usize) -> String {
    let nodes = numbered(bytes, "", |number| {
        format!(r#"{{"metadata":{{"name":"{number}"}}}},"#)
    });
    format!(
        "{{\"kind\":\"NodeList\",\"items\":[{}]}}",
        nodes.trim_end_matches(',')
    )
}

fn tiny_pods(bytes: usize) -> String {
    let pods = numbered(bytes, "", |number| {
        format!(r#"{{"metadata":{{"name":"{number}","namespace":"{number}","uid":"u"}}}},"#)
    });
    format!(
        "{{\"kind\":\"PodList\",\"items\":[{}]}}",
        pods.trim_end_matches(',')
    )
}

/// An object of a kind with a long list between `begin` and `end`.
fn object(kind: &str, begin: &str, entry: &str, end: &str, bytes: usize) -> String {
    let list = many("", entry, "", bytes);
    let list = list.trim_end_matches(',');
    format!("{{\"kind\":\"{kind}\",\"metadata\":{{\"name\":\"n\",\"uid\":\"u\"{begin}{list}{end}")
}

/// The large files.
pub(super) fn each(bytes: usize, mut take: impl FnMut(&str, Vec<u8>)) {
    for (name, text) in MADE {
        take(name, text(bytes).into_bytes());
    }
    for (name, begin, entry, end) in REPEATED {
        take(name, many(begin, entry, end, bytes).into_bytes());
    }
    for (name, kind, begin, entry, end) in OBJECTS {
        take(name, object(kind, begin, entry, end, bytes).into_bytes());
    }
}

type Make = fn(usize) -> String;

const MADE: &[(&str, Make)] = &[
    ("laughs", laughs),
    ("echoes", echoes),
    ("json-nodes", json_nodes),
    ("yaml-nodes", yaml_nodes),
    ("tiny-nodes", tiny_nodes),
    ("tiny-pods", tiny_pods),
    ("yaml-members", |bytes| {
        numbered(bytes, "", |number| format!("{number}: 0\n"))
    }),
    ("yaml-anchors", |bytes| {
        numbered(bytes, "", |number| format!("- &{number} 0\n"))
    }),
    ("yaml-nested-blocks", |bytes| {
        numbered(bytes, "", |depth| format!("{}a:\n", " ".repeat(depth)))
    }),
];

/// (name, begin, repeated entry, end)
const REPEATED: &[(&str, &str, &str, &str)] = &[
    (
        "json-empty-items",
        "{\"kind\":\"List\",\"items\":[",
        "{},",
        "{}]}",
    ),
    ("json-number-items", "{\"kind\":\"List\",\"items\":[", "0,", "0]}"),
    (
        "json-skipped-items",
        "{\"kind\":\"List\",\"items\":[",
        "{\"kind\":\"A\"},",
        "{\"kind\":\"A\"}]}",
    ),
    ("json-documents", "", "{}", ""),
    ("json-lists", "", "{\"kind\":\"List\",\"items\":[]}", ""),
    ("json-deep-lists", "", "[", ""),
    ("json-deep-objects", "", "{\"\":", ""),
    ("json-deep-kind", "{\"kind\":", "[", ""),
    ("json-repeated-kind", "{", "\"kind\":\"List\",", "\"items\":[]}"),
    (
        "json-ignored",
        "{\"kind\":\"List\",\"items\":[],\"a\":[",
        "0,",
        "0]}",
    ),
    ("json-blanks", "{", " ", "}"),
    ("yaml-items", "kind: List\nitems:\n", "- {}\n", ""),
    ("yaml-skipped-items", "kind: List\nitems:\n", "- kind: A\n", ""),
    ("yaml-documents", "", "---\n", ""),
    ("yaml-empty-lists", "", "---\nkind: List\nitems: []\n", ""),
    ("yaml-null-items", "kind: List\nitems:\n", "-\n", ""),
    ("yaml-flow-items", "kind: List\nitems: [", "a,", "]"),
    ("yaml-flow-pairs", "kind: List\nitems: [", "a: b,", "]"),
    ("yaml-deep-flow-lists", "a: ", "[", ""),
    ("yaml-deep-flow-maps", "a: ", "{a: ", ""),
    ("yaml-deep-blocks", "", "- ", ""),
    ("yaml-deep-keys", "", "? ", ""),
    ("yaml-colons", "", ": ", ""),
    ("yaml-string", "a: \"", "x", "\""),
    ("yaml-escapes", "a: \"", "\\x41", "\""),
    ("yaml-literal", "a: |\n", "  x\n", ""),
    ("yaml-folded", "a: >\n", "  x\n\n", ""),
    ("yaml-plain", "a: ", "x\n ", ""),
    ("yaml-comments", "", "#\n", "a: b"),
    ("yaml-blank-lines", "", "\n", "a: b"),
    ("yaml-blanks", "a:", " ", "b"),
    ("yaml-tabs", "a:", "\t", "b"),
    ("yaml-long-key", "", "x", ": a"),
    ("yaml-tags", "", "- !a b\n", ""),
    ("yaml-long-tag", "a: !", "x", " b"),
    ("yaml-directives", "", "%TAG !a! b\n", "--- a"),
    ("yaml-binary", "a: !!binary ", "AAAA", ""),
    ("yaml-aliases", "a: &a 0\nb:\n", "- *a\n", ""),
    ("yaml-merges", "a: &a {b: c}\nd:\n", "  <<: *a\n", ""),
    ("yaml-one-anchor", "a:\n", "- &a 0\n", ""),
    ("yaml-numbers", "a:\n", "- 0\n", ""),
    ("yaml-long-number", "a: ", "9", ""),
    ("yaml-repeated-keys", "", "a: b\n", ""),
    ("yaml-quoted", "a:\n", "- ''\n", ""),
    ("yaml-nothing", "a: b\n", "\0", ""),
];

/// (name, kind, text after the name and uid, repeated entry, end)
const OBJECTS: &[(&str, &str, &str, &str, &str)] = &[
    ("node-labels", "Node", ",\"labels\":{", "\"a\":\"\",", "}}}"),
    ("node-finalizers", "Node", ",\"finalizers\":[", "0,", "]}}"),
    ("node-owners", "Node", ",\"ownerReferences\":[", "{},", "]}}"),
    (
        "node-taints",
        "Node",
        "},\"spec\":{\"taints\":[",
        "{\"key\":\"\"},",
        "]}}",
    ),
    (
        "node-images",
        "Node",
        "},\"status\":{\"images\":[",
        "{\"a\":0},",
        "]}}",
    ),
    (
        "node-conditions",
        "Node",
        "},\"status\":{\"conditions\":[",
        "{\"type\":\"\",\"status\":\"\"},",
        "]}}",
    ),
    (
        "pod-terms",
        "Pod",
        "},\"spec\":{\"affinity\":{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{\"nodeSelectorTerms\":[",
        "{},",
        "]}}}}}",
    ),
    (
        "pod-containers",
        "Pod",
        "},\"spec\":{\"containers\":[",
        "{\"name\":\"a\"},",
        "]}}",
    ),
    (
        "set-numbers",
        "DaemonSet",
        "},\"spec\":{\"template\":[",
        "0,",
        "]}}",
    ),
    (
        "set-expressions",
        "DaemonSet",
        "},\"spec\":{\"selector\":{\"matchExpressions\":[",
        "{\"key\":\"a\",\"operator\":\"Exists\"},",
        "]},\"template\":{}}}",
    ),
    ("set-owners", "DaemonSet", ",\"ownerReferences\":[", "{},", "]}}"),
    ("revision-data", "ControllerRevision", "},\"data\":[", "0,", "]}"),
];
