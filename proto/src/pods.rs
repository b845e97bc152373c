//! The metadata that several pods of a bucket share.

use std::collections::HashMap;

use prost::Message as _;

use crate::v1::{Pod, PodBucket, SharedMetadata};

/// The node that a pod is on, or else the node that it is meant for; empty if there is none. The name selects the pod's bucket.
#[must_use]
pub fn target_node(pod: &Pod) -> &str {
    if pod.node_name.is_empty() {
        &pod.target_node_name
    } else {
        &pod.node_name
    }
}

/// Makes a bucket of these pods, in which equal labels and controllers occur once.
#[must_use]
pub fn sharing(mut pods: Vec<Pod>) -> PodBucket {
    let mut numbers = HashMap::new();
    let mut shared_metadata = Vec::new();
    for pod in &mut pods {
        let metadata = SharedMetadata {
            labels: std::mem::take(&mut pod.labels),
            controller: pod.controller.take(),
        };
        if metadata == SharedMetadata::default() {
            continue;
        }
        pod.shared_metadata = *numbers.entry(metadata.encode_to_vec()).or_insert_with(|| {
            shared_metadata.push(metadata);
            u32::try_from(shared_metadata.len()).unwrap_or(u32::MAX)
        });
    }
    PodBucket {
        pods,
        shared_metadata,
    }
}

/// The pods of a bucket, each with its own labels and controller. `None` if a pod refers to an entry that does not exist.
#[must_use]
pub fn whole(bucket: PodBucket) -> Option<Vec<Pod>> {
    let shared = bucket.shared_metadata;
    let whole = |mut pod: Pod| {
        if pod.shared_metadata > 0 {
            let number = usize::try_from(std::mem::take(&mut pod.shared_metadata)).ok()?;
            let metadata = shared.get(number - 1)?.clone();
            (pod.labels, pod.controller) = (metadata.labels, metadata.controller);
        }
        Some(pod)
    };
    bucket.pods.into_iter().map(whole).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1::{ControllerReference, Label};

    fn pod(name: &str, revision: &str, owner: Option<&str>) -> Pod {
        let label = (!revision.is_empty()).then(|| Label {
            key: "controller-revision-hash".to_owned(),
            value: revision.to_owned(),
        });
        Pod {
            name: name.to_owned(),
            labels: label.into_iter().collect(),
            controller: owner.map(|uid| ControllerReference {
                uid: uid.to_owned(),
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    #[test]
    fn what_is_shared_comes_back_whole() {
        let pods = [
            pod("a", "1", Some("u")),
            pod("b", "2", Some("u")),
            pod("c", "1", Some("u")),
            pod("d", "1", None),
            pod("e", "", None),
        ];
        let bucket = sharing(pods.to_vec());
        assert_eq!(bucket.shared_metadata.len(), 3);
        let numbers: Vec<_> = bucket.pods.iter().map(|pod| pod.shared_metadata).collect();
        assert_eq!(numbers, [1, 2, 1, 3, 0]);
        assert_eq!(whole(bucket).as_deref(), Some(&pods[..]));
        let dangling = Pod {
            shared_metadata: 1,
            ..Default::default()
        };
        assert_eq!(
            whole(PodBucket {
                pods: vec![dangling],
                shared_metadata: Vec::new()
            }),
            None
        );
    }
}
