//! Objects as a real apiserver served them in both encodings.

use bytes::Bytes;
use nodewise_projection::{Node, Pod};
use prost::Message;
use serde_json::Value;

use crate::shown;

/// `runtime.Unknown`.
#[derive(Clone, PartialEq, Message)]
struct Unknown {
    #[prost(bytes = "bytes", tag = "2")]
    raw: Bytes,
}

/// A list of any kind.
#[derive(Clone, PartialEq, Message)]
struct List {
    #[prost(bytes = "bytes", repeated, tag = "2")]
    items: Vec<Bytes>,
}

/// The objects of a list: the JSON and the message of each.
fn objects(json: &str, protobuf: &'static [u8]) -> Vec<(String, Bytes)> {
    let envelope = protobuf.strip_prefix(b"k8s\0").expect("an envelope");
    let list = Unknown::decode(envelope).expect("an envelope").raw;
    let messages = List::decode(list).expect("a list").items;
    let list: Value = serde_json::from_str(json).expect("JSON");
    let texts = list["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(Value::to_string);
    texts.zip(messages).collect()
}

#[test]
fn served_pods_are_the_same_in_both_encodings() {
    let pods = objects(
        include_str!("../../testdata/pods.json"),
        include_bytes!("../../testdata/pods.pb"),
    );
    assert_eq!(pods.len(), 2);
    let mut problems = Vec::new();
    for (text, message) in pods {
        let pod = Pod::from_protobuf(&message);
        assert_eq!(shown(Pod::from_protobuf(&message)), shown(Pod::from_text(&text)));
        let pod = pod.expect("a pod");
        assert_eq!(
            pod.projection.controller.expect("a controller").name,
            "node-agent"
        );
        assert_eq!(pod.created_by.as_deref(), Some("kube-controller-manager"));
        problems.push(
            pod.unready
                .and_then(|unready| unready.problem)
                .map(|problem| problem.reason),
        );
    }
    assert_eq!(problems, [None, Some("ReadinessProbe".to_owned())]);
}

#[test]
fn served_nodes_are_the_same_in_both_encodings() {
    let nodes = objects(
        include_str!("../../testdata/nodes.json"),
        include_bytes!("../../testdata/nodes.pb"),
    );
    assert_eq!(nodes.len(), 1);
    for (text, message) in nodes {
        assert_eq!(
            shown(Node::from_protobuf(&message)),
            shown(Node::from_text(&text))
        );
        let node = Node::from_protobuf(&message).expect("a node").projection;
        assert_eq!(node.name, "node-0000");
        assert!(node.ready_transition_time.is_some());
    }
}
