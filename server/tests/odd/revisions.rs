//! Odd ControllerRevisions, as anyone may write who can create them in a namespace.

use std::ops::Range;

use nodewise_proto::v1::{self, action::Kind};
use nodewise_server::{ByteSize, Engine, Limits};
use serde_json::{Value, json};

use super::{
    ask, decided, engine, plan, says,
    support::{Cluster, actions, created_nodes, inline},
};

/// A revision of another template.
fn other(number: usize) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision",
        "metadata": {"name": format!("other-{number:05}"), "namespace": "monitoring", "uid": format!("other-{number}")},
        "data": {"number": number}, "revision": number,
    })
}

/// A revision that the workload selects and that has no controller.
fn orphan(number: usize) -> Value {
    let mut revision = other(number);
    revision["metadata"]["labels"] =
        json!({"app": "node-agent", "controller-revision-hash": format!("o{number}")});
    revision
}

fn beside(revisions: impl IntoIterator<Item = Value>) -> Cluster {
    let mut cluster = Cluster::settled(2);
    cluster.revisions.extend(revisions);
    cluster
}

/// Revisions that no rule reads are ignored, whatever they contain.
#[test]
fn foreign_revisions_change_nothing() {
    let usual = plan(&Cluster::settled(2));
    let with = |path: &str, value: Value| {
        let mut revision = other(1);
        *revision.pointer_mut(path).expect("it is there") = value;
        revision
    };
    let labels: serde_json::Map<_, _> = (0..150_000)
        .map(|number| (number.to_string(), json!("")))
        .collect();
    let mut labelled = other(1);
    labelled["metadata"]["labels"] = labels.into();
    let mut of_another = orphan(1);
    of_another["metadata"]["ownerReferences"] =
        json!([{"kind": "StatefulSet", "name": "s", "uid": "s", "controller": true}]);
    let table: Vec<(&str, Vec<Value>)> = vec![
        ("more than there may be", (0..10_001).map(other).collect()),
        ("of one name", vec![other(1), other(1)]),
        ("of no name", vec![with("/metadata/name", json!(""))]),
        (
            "of a long name",
            vec![with("/metadata/name", json!("n".repeat(1_000)))],
        ),
        ("large", vec![with("/data", json!("x".repeat(5 << 20)))]),
        ("many values", vec![with("/data", json!(vec![0; 700_000]))]),
        ("many labels", vec![labelled]),
        (
            "absurd numbers",
            vec![
                with("/revision", json!(i64::MAX)),
                with("/metadata/uid", json!("u")),
            ],
        ),
        ("of an odd name", vec![with("/metadata/name", json!(7))]),
        ("of an odd number", vec![with("/revision", json!("one"))]),
        ("of another kind", vec![with("/kind", json!("Pod"))]),
        ("another's", vec![of_another]),
    ];
    for (what, revisions) in table {
        let found = plan(&beside(revisions));
        says(&found, &[]);
        assert_eq!(decided(found), decided(usual.clone()), "{what}");
    }
}

/// Revisions that belong to the workload, or that it adopts, are read whatever they contain.
#[test]
fn odd_revisions_of_the_workload_are_read() {
    let creates = |plan: &v1::Plan| {
        actions(plan).any(|action| matches!(action.kind, Some(Kind::CreateRevision(_) | Kind::DeletePod(_))))
    };
    let with = |field: &str, value: Value| {
        let mut revision = orphan(1);
        revision[field] = value;
        revision
    };
    let dated = |created: &str| {
        let mut revision = orphan(1);
        revision["metadata"]["creationTimestamp"] = json!(created);
        revision
    };
    let labels: serde_json::Map<_, _> = (0..150_000)
        .map(|number| (number.to_string(), json!("")))
        .chain([("app".to_owned(), json!("node-agent"))])
        .collect();
    let mut labelled = orphan(1);
    labelled["metadata"]["labels"] = labels.into();
    let table = [
        ("large", with("data", json!("x".repeat(5 << 20)))),
        ("many values", with("data", json!(vec![0; 700_000]))),
        ("many labels", labelled),
        ("the last number", with("revision", json!(i64::MAX))),
        ("the first number", with("revision", json!(i64::MIN))),
        ("no data", with("data", Value::Null)),
        ("of the year 0", dated("0000-01-01T00:00:00Z")),
        ("of no time", dated("now")),
    ];
    for (what, revision) in table {
        let plan = plan(&beside([revision]));
        says(&plan, &[]);
        let adopted = actions(&plan).any(|action| {
            matches!(&action.kind, Some(Kind::AdoptRevision(adopt))
                if adopt.revision.as_ref().is_some_and(|revision| revision.name == "other-00001"))
        });
        assert!(adopted && !creates(&plan), "{what}: {plan:#?}");
    }
}

#[test]
fn data_that_cannot_be_read_is_a_warning() {
    let mut request = inline(&beside([orphan(1)]));
    let revision = &mut request.snapshot.as_mut().expect("a snapshot").revisions[1];
    let text = String::from_utf8(revision.object.to_vec()).expect("a text");
    revision.object = text.replace(r#"{"number":1}"#, r#""\ud800""#).into();
    let plan = ask(&engine(), &request);
    says(
        &plan,
        &["ControllerRevision other-00001: data: it cannot be read ("],
    );
}

/// An engine with this limit of revisions.
fn reading(revisions: u32) -> Engine {
    let limits = Limits {
        revisions,
        ..Limits::default()
    };
    Engine::new(limits, ByteSize::mib(16))
}

#[test]
fn of_too_many_revisions_the_workloads_own_and_the_newest_are_read() {
    let mut cluster = beside((1..5).map(orphan));
    // The workload's own revision is not among the newest.
    cluster.revisions[0]["revision"] = json!(2);
    let mut shuffled = cluster.clone();
    shuffled.revisions.reverse();
    for cluster in [cluster, shuffled] {
        let plan = ask(&reading(3), &inline(&cluster));
        says(
            &plan,
            &[
                "ControllerRevision other-00001: the revision is left out: there are 5 for the workload, and the newest 3 are read",
                "ControllerRevision other-00002: ",
            ],
        );
        let adopted: Vec<_> = actions(&plan)
            .filter_map(|action| match action.kind {
                Some(Kind::AdoptRevision(adopt)) => Some(adopt.revision.expect("a revision").name),
                Some(Kind::CreateRevision(_) | Kind::DeletePod(_) | Kind::CreatePod(_)) => {
                    panic!("{plan:#?}")
                }
                _ => None,
            })
            .collect();
        assert_eq!(adopted, ["other-00003", "other-00004"]);
    }
}

/// Revisions that look like newer ones of the workload can cause the current one to be left out. The plan then creates it, its name
/// is taken, and the next plan uses the existing revision. No pod is replaced.
#[test]
fn a_current_revision_that_is_left_out_is_found_by_its_name() {
    let own = Cluster::settled(2);
    let own_name = own.revisions[0]["metadata"]["name"].clone();
    let mut cluster = own.clone();
    cluster.revisions.extend((10..15).map(|number| {
        let mut revision = orphan(number);
        revision["metadata"]["ownerReferences"] = own.revisions[0]["metadata"]["ownerReferences"].clone();
        revision
    }));
    let engine = reading(3);
    let left_out = ask(&engine, &inline(&cluster));
    let names: Vec<_> = actions(&left_out)
        .filter_map(|action| match action.kind {
            Some(Kind::CreateRevision(create)) => Some(create.name),
            Some(Kind::DeletePod(_) | Kind::CreatePod(_)) => panic!("{left_out:#?}"),
            _ => None,
        })
        .collect();
    assert_eq!(json!(names), json!([own_name]));
    // AlreadyExists: the executor reads the existing revision from the apiserver, and plans again.
    let mut request = inline(&cluster);
    request.snapshot.as_mut().expect("a snapshot").revisions[0].read_after_name_collision = true;
    let found = ask(&engine, &request);
    let writes = actions(&found).any(|action| {
        matches!(
            action.kind,
            Some(Kind::CreateRevision(_) | Kind::DeletePod(_) | Kind::CreatePod(_) | Kind::RelabelPod(_))
        )
    });
    assert!(!writes, "{found:#?}");
    assert_eq!(
        found.rollout.expect("a rollout").outdated,
        0,
        "the pods have the current template"
    );
}

/// Copies of a revision with other names and numbers, and with these members of the metadata.
fn copies(own: &Value, numbers: Range<usize>, metadata: &Value) -> Vec<Value> {
    let copy = |number| {
        let mut copy = own.clone();
        for (name, value) in metadata.as_object().expect("members") {
            copy["metadata"][name] = value.clone();
        }
        copy["metadata"]["name"] = json!(format!("copy-{number}"));
        copy["metadata"]["uid"] = json!(format!("copy-{number}"));
        copy["revision"] = json!(number);
        copy
    };
    numbers.map(copy).collect()
}

/// A missing hash label is derived from the name (D-52), which may be longer than a label value.
#[test]
fn a_revision_with_a_long_name_gets_a_valid_hash_label() {
    for length in [63, 64, 253] {
        let mut revision = orphan(1);
        revision["metadata"]["name"] = json!("n".repeat(length));
        revision["metadata"]["labels"] = json!({"app": "node-agent"});
        let plan = plan(&beside([revision]));
        says(&plan, &[]);
        let patches: Vec<Value> = actions(&plan)
            .filter_map(|action| match action.kind {
                Some(Kind::UpdateRevision(update)) if update.revision_number.is_none() => {
                    Some(serde_json::from_slice(&update.patch).expect("JSON"))
                }
                _ => None,
            })
            .collect();
        assert_eq!(patches.len(), 1, "{length}: {plan:#?}");
        let hash = patches[0]["metadata"]["labels"]["controller-revision-hash"]
            .as_str()
            .expect("a label");
        assert!((1..=63).contains(&hash.len()), "{length}: {hash}");
    }
}

/// A finalizer can keep revisions forever. If plans deleted them again, they would do nothing else.
#[test]
fn revisions_that_a_finalizer_holds_are_not_deleted_again() {
    let held = json!({
        "deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0, "finalizers": ["example.com/hold"],
    });
    let mut cluster = Cluster::settled(2);
    let mut own = cluster.revisions[0].clone();
    let duplicates = copies(&own, 2..1_052, &held);
    own["data"] = json!({"of": "another template"});
    let old = copies(&own, 2..1_052, &held);
    let deletes =
        |plan: &v1::Plan| actions(plan).any(|action| matches!(action.kind, Some(Kind::DeleteRevision(_))));
    for (what, held) in [("duplicates", duplicates), ("old ones", old)] {
        cluster.revisions.truncate(1);
        // The revision that is kept has the highest number.
        cluster.revisions[0]["revision"] = json!(2_000);
        cluster.revisions.extend(held);
        let mut lacking = cluster.clone();
        lacking.pods.pop();
        let plan = plan(&lacking);
        says(&plan, &[]);
        assert!(!deletes(&plan), "{what}");
        assert_eq!(plan.requeue_after, None, "{what}");
        assert_eq!(
            created_nodes(&plan).len(),
            1,
            "{what}: a node without a pod gets one"
        );
    }
}
