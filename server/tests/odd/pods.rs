//! Odd pods, as anyone may write who can create pods in a namespace.

use nodewise_proto::{
    Timestamp, pods,
    v1::{self, action::Kind},
};
use nodewise_server::never;
use serde_json::json;

use super::{
    ask, decided, engine, junk, label, plan, says,
    support::{Cluster, Form, actions, bucket_message, inline, moment, pod, report_of},
};

/// An orphan that the workload does not select, on a node.
fn stranger(number: usize) -> v1::Pod {
    v1::Pod {
        name: format!("stranger-{number}"),
        uid: format!("99999999-4444-5555-6666-{number:012}"),
        labels: Vec::new(),
        controller: None,
        ..pod(0, "h")
    }
}

/// A settled cluster with these pods in addition.
fn beside(pods: impl IntoIterator<Item = v1::Pod>) -> Cluster {
    let mut cluster = Cluster::settled(3);
    cluster.pods.extend(pods);
    cluster
}

#[test]
fn a_foreign_pod_may_have_any_number_of_labels() {
    for count in [1_025, 150_000] {
        let odd = plan(&beside([v1::Pod {
            labels: junk(count).collect(),
            ..stranger(0)
        }]));
        let expected =
            format!("Pod stranger-0: labels: there are {count}, more than 1024; all of them are read");
        says(&odd, &[&expected]);
        assert_eq!(decided(odd), decided(plan(&Cluster::settled(3))));
    }
}

#[test]
fn many_foreign_pods_may_have_many_short_labels() {
    let crowd = (0..80).map(|number| v1::Pod {
        labels: junk(1_000).chain([label("n", number.to_string())]).collect(),
        ..stranger(number)
    });
    let odd = plan(&beside(crowd));
    says(&odd, &[]);
    assert_eq!(decided(odd), decided(plan(&Cluster::settled(3))));
}

/// The smallest pods that an apiserver accepts: short names, different labels, no node.
#[test]
fn many_foreign_pods_may_be_small() {
    let crowd = (0..50_000).map(|number| v1::Pod {
        name: format!("{number:x}"),
        uid: stranger(number).uid,
        labels: vec![label("n", format!("{number:x}"))],
        phase: v1::PodPhase::Pending.into(),
        ..Default::default()
    });
    let odd = plan(&beside(crowd));
    says(&odd, &[]);
    assert_eq!(decided(odd), decided(plan(&Cluster::settled(3))));
}

/// Anyone who may update pods can also label the workload's own pods.
#[test]
fn an_own_pod_may_have_any_number_of_labels() {
    let mut cluster = Cluster::settled(3);
    cluster.pods[1].labels.extend(junk(2_000));
    let warning = "Pod node-agent-00001: labels: there are 2003, more than 1024; all of them are read";
    let apart = plan(&cluster);
    says(&apart, &[warning]);
    // A warning about shared metadata names each of its pods.
    let mut request = inline(&cluster);
    let mut bucket = pods::sharing(vec![cluster.pods[1].clone()]);
    let (mut other, metadata) = (bucket.pods[0].clone(), bucket.shared_metadata.len());
    assert_eq!((other.shared_metadata, metadata), (1, 1));
    (other.name, other.uid) = ("another".into(), "another".into());
    bucket.pods.push(other);
    let snapshot = request.snapshot.as_mut().expect("a snapshot");
    snapshot.pod_buckets = vec![bucket_message(
        prost::Message::encode_to_vec(&bucket),
        Form::Inline,
    )];
    says(&ask(&engine(), &request), &["Pod another: labels: ", warning]);
    assert_eq!(decided(apart), decided(plan(&Cluster::settled(3))));
}

/// A timestamp field of a pod.
type Field = fn(&mut v1::Pod) -> &mut Option<Timestamp>;

/// The status of a pod may contain any timestamp.
#[test]
fn timestamps_out_of_range_are_clamped() {
    let at = |seconds, nanos| Some(Timestamp { seconds, nanos });
    // (timestamp, value that is used)
    let table = [
        (moment(i64::MIN), "0001-01-01T00:00:00Z"),
        (moment(-62_167_219_200), "0001-01-01T00:00:00Z"),
        (moment(1 << 60), "9999-12-30T00:00:00Z"),
        (at(i64::MAX, i32::MAX), "9999-12-30T00:00:00.999999999Z"),
        (at(0, -1), "1970-01-01T00:00:00Z"),
    ];
    for (odd, used) in table {
        let right = used.parse::<jiff::Timestamp>().expect("a moment");
        let right = at(right.as_second(), right.subsec_nanosecond());
        let fields: [(&str, Field); 3] = [
            ("creation_time", |pod| &mut pod.creation_time),
            ("ready_transition_time", |pod| &mut pod.ready_transition_time),
            ("deletion_time", |pod| &mut pod.deletion_time),
        ];
        for (field, of) in fields {
            for min_ready_seconds in [0, 10, i32::MAX] {
                let with = |value| {
                    let mut cluster = Cluster::settled(2);
                    cluster.daemon_set["spec"]["minReadySeconds"] = min_ready_seconds.into();
                    *of(&mut cluster.pods[1]) = value;
                    plan(&cluster)
                };
                let found = with(odd);
                says(&found, &[&format!("Pod node-agent-00001: {field}: ")]);
                assert!(
                    found.warnings[0]
                        .message
                        .ends_with(&format!("{used} is used instead"))
                );
                assert_eq!(decided(found), decided(with(right)), "{field} {used}");
            }
        }
    }
}

/// A pod may be so large that the apiserver refuses a new hash label. The executor then reports NOT_FOUND for the relabelling. The
/// plan does not wait for the pod: the duplicate revision is deleted, and without a duplicate no pod is relabelled.
#[test]
fn a_pod_that_cannot_be_relabelled_blocks_nothing() {
    let relabels =
        |plan: &v1::Plan| actions(plan).any(|action| matches!(action.kind, Some(Kind::RelabelPod(_))));
    let mut cluster = Cluster::settled(3);
    let mut copy = cluster.revisions[0].clone();
    copy["metadata"]["name"] = json!("copy");
    copy["metadata"]["uid"] = json!("copy");
    copy["metadata"]["labels"]["controller-revision-hash"] = json!("c".repeat(63));
    copy["revision"] = json!(9);
    cluster.revisions.push(copy);
    let first = plan(&cluster);
    assert!(relabels(&first), "{first:#?}");
    let mut report = report_of(&first, v1::Result::Succeeded);
    for (outcome, action) in report.outcomes.iter_mut().zip(actions(&first)) {
        if matches!(action.kind, Some(Kind::RelabelPod(_))) {
            outcome.set_result(v1::Result::NotFound);
        }
    }
    let answer = engine().report(report, &never).expect("the report is valid");
    assert_ne!(answer.requeue(), v1::Requeue::Backoff);
    cluster.revisions.remove(0);
    let second = plan(&cluster);
    assert!(!relabels(&second), "{second:#?}");
    assert_eq!(second.error, "");
    assert_eq!(second.rollout.expect("a rollout").desired, 3);
}
