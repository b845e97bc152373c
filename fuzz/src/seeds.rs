//! The seeds: the requests of `nodewise-fixtures`, and the files of the CLI's tests.

use nodewise_fixtures::{reports, requests};
use prost::Message as _;
use serde_json::Value;

/// The seeds of a target, by name.
#[must_use]
pub fn of(target: &str) -> Vec<(String, Vec<u8>)> {
    let named = |(name, bytes): (&str, Vec<u8>)| (format!("{name}.bin"), bytes);
    match target {
        "parse" | "plan" => requests()
            .into_iter()
            .map(|(name, request)| named((name, request.encode_to_vec())))
            .collect(),
        "report" => reports()
            .into_iter()
            .map(|(name, report)| named((name, report.encode_to_vec())))
            .collect(),
        "file" => texts(),
        _ => Vec::new(),
    }
}

fn texts() -> Vec<(String, Vec<u8>)> {
    let json = [
        ("mixed", include_str!("../../cli/tests/data/mixed.json")),
        ("new", include_str!("../../cli/tests/data/new.json")),
        ("rollout", include_str!("../../cli/tests/data/rollout.json")),
        ("steady", include_str!("../../cli/tests/data/steady.json")),
    ];
    let mut texts = vec![
        ("documents.yaml".to_owned(), DOCUMENTS.as_bytes().to_vec()),
        ("aliases.yaml".to_owned(), ALIASES.as_bytes().to_vec()),
    ];
    for (name, text) in json {
        let value: Value = serde_json::from_str(text).expect("JSON");
        let yaml = serde_saphyr::to_string(&value).expect("YAML");
        texts.push((format!("{name}.json"), text.as_bytes().to_vec()));
        texts.push((format!("{name}.yaml"), yaml.into_bytes()));
    }
    texts
}

/// Several YAML documents with all forms of scalars.
const DOCUMENTS: &str = r#"---
apiVersion: v1
kind: Node
metadata: {name: a, labels: {zone: "x\u00e9", 'n': |
  block
}}
spec: {unschedulable: true, taints: [{key: k, effect: NoSchedule}]}
---
# a comment
apiVersion: v1
kind: PodList
items:
- metadata: {name: p, namespace: ns, uid: u, creationTimestamp: "2026-01-01T00:00:00Z"}
  spec:
    nodeName: >-
      a
  status: {phase: Running, conditions: [{type: Ready, status: "True"}]}
...
---
{"apiVersion": "v1", "kind": "List", "items": []}
"#;

/// Anchors, aliases and a merge key.
const ALIASES: &str = "kind: List
items:
- &node
  kind: Node
  metadata: &meta {name: a, labels: &labels {x: y}}
- kind: Node
  metadata:
    <<: *meta
    name: b
    labels: *labels
";
