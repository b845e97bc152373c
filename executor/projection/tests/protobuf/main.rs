//! The projection of an object is the same from its JSON and from its Protobuf message.

mod encode;
mod kinds;
mod random;
mod served;

use std::fmt::Debug;

use bytes::Bytes;
use nodewise_projection::{Node, Pod, ProjectError};
use rand::{SeedableRng as _, rngs::SmallRng};

use encode::{json, protobuf};
use random::Generator;

const OBJECTS: u64 = 6_000;

/// Everything that is read, or the error.
fn shown<T: Debug>(read: Result<T, ProjectError>) -> String {
    match read {
        Ok(object) => format!("{object:#?}"),
        Err(error) => format!("{}: {}", error.path, error.message),
    }
}

/// Compares the projections of random objects. Returns them.
fn compare<T: Debug>(
    fields: &'static [kinds::Field],
    from_text: fn(&str) -> Result<T, ProjectError>,
    from_protobuf: fn(&Bytes) -> Result<T, ProjectError>,
) -> Vec<String> {
    let compared = (0..OBJECTS).map(|seed| {
        let mut random = SmallRng::seed_from_u64(seed);
        let object = Generator(&mut random).message(fields);
        let text = json(&object).to_string();
        let bytes = protobuf(&object, &mut random);
        let found = shown(from_protobuf(&bytes.into()));
        assert_eq!(found, shown(from_text(&text)), "object {seed}: {text}");
        found
    });
    compared.collect()
}

/// Fails if too few of the projections have one of these parts: the property would not say much.
fn assert_parts(projections: &[String], parts: &[&str]) {
    for part in parts {
        let having = projections.iter().filter(|one| one.contains(part)).count();
        assert!(having >= 20, "{having} of {} have {part}", projections.len());
    }
}

#[test]
fn pods() {
    let pods = compare(kinds::POD, Pod::from_text, Pod::from_protobuf);
    let parts = [
        "target_node_name: \"n",
        "deletion_cost: \"1",
        "sidecar_restarts: 2147483647",
        "kind: \"DaemonSet\"",
        "created_by: Some(",
        "disruption: Some(",
        "traceparent: Some(",
        "has_finalizers: true",
        "finalizers: [\n",
        "last_exit: \"exit code -",
        "\u{fffd}\u{fffd}",
        "seconds: -62135596800",
        "seconds: 253402128000",
        "metadata.uid: is missing",
    ];
    assert_parts(&pods, &parts);
}

#[test]
fn nodes() {
    let nodes = compare(kinds::NODE, Node::from_text, Node::from_protobuf);
    let parts = [
        "unschedulable: true",
        "maintenance_in_progress: true",
        "effect: \"NoExecute\"",
        "\u{fffd}",
        "ready_transition_time: Some(",
    ];
    assert_parts(&nodes, &parts);
}

// What is cut off or is no message at all is an error. It is not read as an object without fields.
#[test]
fn what_cannot_be_decoded_is_an_error() {
    let mut random = SmallRng::seed_from_u64(1);
    let object = Generator(&mut random).message(kinds::POD);
    let bytes = protobuf(&object, &mut random);
    let mut spoilt: Vec<_> = (0..bytes.len()).map(|end| bytes[..end].to_vec()).collect();
    spoilt.extend([
        b"{}".to_vec(),
        b"\x0a\xff".to_vec(),
        b"\x08\x01".to_vec(),
        vec![0xff; 20],
    ]);
    // Some cuts are between two fields.
    let mut errors = 0;
    for bytes in spoilt {
        if let Err(error) = Pod::from_protobuf(&bytes.into()) {
            assert!(!error.path.is_empty() && !error.message.is_empty(), "{error}");
            errors += 1;
        }
    }
    assert!(errors > bytes.len() / 2, "{errors} of {}", bytes.len());
}
