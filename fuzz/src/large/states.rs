//! Reconcile states with many small parts.

use nodewise_fixtures::{NOW, moment};
use nodewise_proto::v1;
use prost::Message as _;

use super::fields::words;

pub(super) fn backoff(node_name: String) -> v1::ReconcileState {
    let backoff = v1::FailedPodBackoff {
        observed_generation: 1,
        node_name,
        delay: Some(nodewise_proto::Duration { seconds: 1, nanos: 0 }),
        last: moment(NOW),
    };
    v1::ReconcileState {
        failed_pod_backoffs: vec![backoff],
        ..Default::default()
    }
}

pub(super) fn collision(node_name: String) -> v1::ReconcileState {
    let pod_name_collisions = vec![v1::PodNameCollision {
        node_name,
        count: 1,
        refused_count: 1,
    }];
    v1::ReconcileState {
        pod_name_collisions,
        ..Default::default()
    }
}

pub(super) fn create(name: String) -> v1::ReconcileState {
    expecting(v1::Expectations {
        creates: vec![v1::ExpectedCreate {
            pod_name: name.clone(),
            node_name: name,
        }],
        ..Default::default()
    })
}

pub(super) fn delete(uid: String) -> v1::ReconcileState {
    expecting(v1::Expectations {
        delete_uids: vec![uid],
        ..Default::default()
    })
}

pub(super) fn expecting(expectations: v1::Expectations) -> v1::ReconcileState {
    v1::ReconcileState {
        expectations: Some(v1::Expectations {
            set_at: moment(NOW),
            ..expectations
        }),
        ..Default::default()
    }
}

/// A state of at most `bytes` bytes, concatenated from many small states, which Protobuf merges.
pub(super) fn states(bytes: usize, state: impl Fn(String) -> v1::ReconcileState) -> Vec<u8> {
    let mut data = Vec::new();
    for word in words() {
        let next = state(word).encode_to_vec();
        if data.len() + next.len() > bytes {
            break;
        }
        data.extend(next);
    }
    data
}
