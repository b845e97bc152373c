use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::{
    core::snapshot::{ControllerRef, Options},
    fixtures::{bucket, controller, daemon_set, edit, labels, pairs, pod, snapshot},
};

/// A workload whose template runs this image.
fn at(image: &str) -> DaemonSet {
    let mut ds = daemon_set();
    edit(&mut ds.template, |template| {
        template["spec"]["containers"][0]["image"] = image.into();
    });
    ds
}

/// A revision of the template with this image; its hash label is `<name>-hash`.
fn revision(name: &str, image: &str, number: i64) -> Revision {
    Revision {
        name: name.to_owned(),
        uid: format!("{name}-uid"),
        labels: labels(&[("app", "foo"), (HASH_LABEL, &format!("{name}-hash"))]),
        controller: Some(controller(&daemon_set())),
        created: Some(Timestamp::UNIX_EPOCH),
        deleting: false,
        number,
        data: canonical::revision_data(&at(image).template),
        read_after_name_collision: false,
    }
}

/// An action on one line, without the manifest of a create.
fn line(action: &Action) -> String {
    let patched = |verb: &str, object: &ObjectRef, patch: &[u8]| {
        assert_eq!(
            object.uid,
            format!("{}-uid", object.name),
            "the uid goes with the name"
        );
        format!(
            "{verb} {} {}",
            object.name,
            String::from_utf8(patch.to_vec()).unwrap()
        )
    };
    assert!(!action.message.is_empty());
    match &action.kind {
        ActionKind::CreateRevision { name, .. } => format!("create {name}"),
        ActionKind::UpdateRevision { revision, patch, .. } => patched("update", revision, patch),
        ActionKind::DeleteRevision { revision, number } => format!("delete {} ({number})", revision.name),
        ActionKind::AdoptRevision { revision, .. } => format!("adopt {}", revision.name),
        ActionKind::ReleaseRevision { revision, .. } => format!("release {}", revision.name),
        ActionKind::RelabelPod { pod, patch } => patched("relabel", pod, patch),
        other => format!("{other:?}"),
    }
}

fn lines(resolution: &Resolution<'_>) -> Vec<String> {
    resolution
        .batches
        .iter()
        .flat_map(|batch| &batch.actions)
        .map(line)
        .collect()
}

fn old<'a>(resolution: &Resolution<'a>) -> Vec<&'a str> {
    resolution
        .old
        .iter()
        .map(|revision| revision.name.as_str())
        .collect()
}

#[test]
fn d_54_d_60_the_first_sync_creates_revision_1() {
    let mut ds = daemon_set();
    ds.annotations = pairs(&[("note", "x"), ("other", "y")]);
    let snapshot = snapshot(ds, vec![]);
    let resolution = resolve(&snapshot);
    assert_eq!((resolution.current_number, resolution.halt.is_none()), (1, true));
    let hash = &resolution.current_hash;
    assert_eq!(lines(&resolution), [format!("create foo-{hash}")]);
    assert_eq!(resolution.batches[0].actions[0].reason, Reason::NewTemplate);
    let ActionKind::CreateRevision { manifest, .. } = &resolution.batches[0].actions[0].kind else {
        panic!()
    };
    let expected = json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": format!("foo-{hash}"),
            "namespace": "default",
            "labels": {"app": "foo", HASH_LABEL: hash},
            "annotations": {"note": "x", "other": "y"},
            "ownerReferences": [claims::owner_reference(snapshot.workload.owner())],
        },
        "data": canonical::revision_data(&snapshot.workload.template).to_value(),
        "revision": 1,
    });
    assert_eq!(
        String::from_utf8(manifest.clone()).unwrap(),
        String::from_utf8(canonical::to_bytes(&expected)).unwrap()
    );
    // D-58: the manifest contains the data in the bytes that upstream compares.
    let data = canonical::to_bytes(&expected["data"]);
    assert!(manifest.windows(data.len()).any(|window| window == data));
}

#[test]
fn d_60_q_15_a_template_without_labels_still_gives_a_hash_label() {
    let mut ds = daemon_set();
    ds.template = json!({"spec": {}}).into();
    let snapshot = snapshot(ds, vec![]);
    let resolution = resolve(&snapshot);
    let ActionKind::CreateRevision { manifest, .. } = &resolution.batches[0].actions[0].kind else {
        panic!()
    };
    let manifest: Value = serde_json::from_slice(manifest).unwrap();
    assert_eq!(
        manifest["metadata"]["labels"],
        json!({HASH_LABEL: resolution.current_hash})
    );
}

#[test]
fn d_53_d_54_d_55_template_changes_and_returns() {
    // (requirement, image, revisions, current hash, number, old, actions)
    type Row = (
        &'static str,
        &'static str,
        Vec<Revision>,
        Option<&'static str>,
        i64,
        &'static [&'static str],
        Vec<String>,
    );
    let renumber = |name: &str, to: i64| {
        format!(r#"update {name} {{"metadata":{{"uid":"{name}-uid"}},"revision":{to}}}"#)
    };
    #[rustfmt::skip] // one case, one line
    let table: Vec<Row> = vec![
        ("D-53 nothing to do", "img:1", vec![revision("a", "img:1", 1)], Some("a-hash"), 1, &[], vec![]),
        ("D-54 the highest already", "img:2", vec![revision("b", "img:2", 9), revision("a", "img:1", 1)], Some("b-hash"), 9, &["a"], vec![]),
        ("D-54 back", "img:1", vec![revision("a", "img:1", 1), revision("b", "img:2", 2)], Some("a-hash"), 3, &["b"], vec![renumber("a", 3)]),
        ("D-54 equal numbers", "img:1", vec![revision("a", "img:1", 2), revision("b", "img:2", 2)], Some("a-hash"), 3, &["b"], vec![renumber("a", 3)]),
        ("D-54 negative numbers", "img:1", vec![revision("a", "img:1", 0), revision("b", "img:2", -7)], Some("a-hash"), 1, &["b"], vec![renumber("a", 1)]),
        ("D-54 changed", "img:3", vec![revision("b", "img:2", 2), revision("a", "img:1", 1)], None, 3, &["a", "b"], vec!["create".to_owned()]),
        ("D-54 the current one is gone", "img:2", vec![revision("c", "img:3", 7), revision("a", "img:1", 1)], None, 8, &["a", "c"], vec!["create".to_owned()]),
        ("D-54 the end of numbers", "img:2", vec![revision("a", "img:1", i64::MAX)], None, i64::MAX, &["a"], vec!["create".to_owned()]),
    ];
    for (requirement, image, revisions, hash, number, expected_old, actions) in table {
        let snapshot = snapshot(at(image), revisions);
        let resolution = resolve(&snapshot);
        assert_eq!(resolution.current_number, number, "{requirement}");
        assert_eq!(old(&resolution), expected_old, "{requirement}");
        let name = format!("create foo-{}", resolution.current_hash);
        if let Some(hash) = hash {
            assert_eq!(resolution.current_hash, hash, "D-55, {requirement}");
        }
        let actions: Vec<_> = actions
            .into_iter()
            .map(|action| if action == "create" { name.clone() } else { action })
            .collect();
        assert_eq!(lines(&resolution), actions, "{requirement}");
        assert!(resolution.deviations.is_empty(), "{requirement}");
    }
}

#[test]
fn d_59_a_served_revision_matches_whatever_its_member_order_and_escapes() {
    let mut ds = daemon_set();
    ds.template = json!({"metadata": {"annotations": {"html": "<a>&b"}}, "spec": {"x": 1}}).into();
    for served in [
        r#"{"spec":{"template":{"spec":{"x":1},"$patch":"replace","metadata":{"annotations":{"html":"<a>&b"}}}}}"#,
        r#"{"spec":{"template":{"$patch":"replace","metadata":{"annotations":{"html":"\u003ca\u003e\u0026b"}},"spec":{"x":1}}}}"#,
    ] {
        let data = serde_json::from_str(served).unwrap();
        let snapshot = snapshot(
            ds.clone(),
            vec![Revision {
                data,
                ..revision("a", "", 1)
            }],
        );
        let resolution = resolve(&snapshot);
        assert_eq!(
            (resolution.current_hash.as_str(), resolution.batches.len()),
            ("a-hash", 0),
            "{served}"
        );
    }
}

#[test]
fn d_65_a_revision_with_the_former_serialization_is_another() {
    let mut former = revision("a", "img:1", 4);
    edit(&mut former.data, |data| {
        data["spec"]["template"]["metadata"]["creationTimestamp"] = Value::Null;
    });
    let snapshot = snapshot(at("img:1"), vec![former]);
    let resolution = resolve(&snapshot);
    assert_eq!((resolution.current_number, old(&resolution)), (5, vec!["a"]));
    assert_ne!(resolution.current_hash, "a-hash");
}

#[test]
fn d_51_revisions_are_claimed_by_the_rules_of_pods() {
    let orphan = |name: &str| Revision {
        controller: None,
        ..revision(name, "img:0", 1)
    };
    let stranger = ControllerRef {
        kind: "DaemonSet".to_owned(),
        name: "foo".to_owned(),
        uid: "former".to_owned(),
    };
    let snapshot = snapshot(
        at("img:1"),
        vec![
            orphan("orphan"),
            Revision {
                deleting: true,
                ..orphan("leaving")
            },
            Revision {
                labels: labels(&[("app", "bar")]),
                ..orphan("unselected")
            },
            Revision {
                controller: Some(stranger),
                ..revision("foreign", "img:1", 1)
            },
            Revision {
                labels: labels(&[("app", "bar")]),
                ..revision("lost", "img:1", 3)
            },
            revision("current", "img:1", 5),
        ],
    );
    let resolution = resolve(&snapshot);
    assert_eq!(lines(&resolution), ["release lost", "adopt orphan"]);
    let confirms: Vec<_> = resolution
        .batches
        .iter()
        .map(|batch| batch.confirm_workload)
        .collect();
    assert_eq!(
        confirms,
        [true],
        "D-23, D-27: all claims together, with one live read for the adoptions"
    );
    assert_eq!(resolution.current_hash, "current-hash");
    assert_eq!(
        old(&resolution),
        ["orphan"],
        "Q-13: adopted, it is one of the old"
    );
}

#[test]
fn d_54_after_a_release_a_new_revision_is_created() {
    let lost = Revision {
        labels: labels(&[("app", "bar")]),
        ..revision("lost", "img:1", 3)
    };
    let snapshot = snapshot(at("img:1"), vec![lost]);
    let resolution = resolve(&snapshot);
    assert_eq!(
        lines(&resolution),
        [
            "release lost".to_owned(),
            format!("create foo-{}", resolution.current_hash)
        ]
    );
    assert_eq!(resolution.current_number, 1);
}

#[test]
fn d_52_a_revision_without_hash_label_is_given_its_name() {
    let bare = |name: &str, image: &str, number| Revision {
        labels: labels(&[("app", "foo")]),
        ..revision(name, image, number)
    };
    let empty = Revision {
        labels: labels(&[("app", "foo"), (HASH_LABEL, "")]),
        ..revision("c", "img:3", 1)
    };
    let snapshot = snapshot(
        at("img:1"),
        vec![bare("a", "img:1", 5), bare("b", "img:2", 2), empty],
    );
    let resolution = resolve(&snapshot);
    let update = |name: &str| {
        format!(r#"update {name} {{"metadata":{{"labels":{{"{HASH_LABEL}":"{name}"}},"uid":"{name}-uid"}}}}"#)
    };
    assert_eq!(
        lines(&resolution),
        [update("b"), update("a")],
        "an empty label is a label"
    );
    assert_eq!(resolution.current_hash, "a", "D-55: the label that it is given");
    // D-63: an old revision's hash is the added label, too.
    let deleted = cleanup(&resolution, &BTreeSet::from(["b"]), Some(0));
    assert_eq!(deleted.iter().map(line).collect::<Vec<_>>(), ["delete c (1)"]);
    // An empty hash label keeps nothing alive.
    let deleted = cleanup(&resolution, &BTreeSet::from(["", "b"]), Some(0));
    assert_eq!(deleted.iter().map(line).collect::<Vec<_>>(), ["delete c (1)"]);
}

// Somebody may create a ControllerRevision whose name is too long for a label value. The apiserver rejects such a label with 422,
// and the DaemonSet would make no progress.
#[test]
fn d_52_the_hash_of_a_long_name_is_a_label_value() {
    let long = "n".repeat(64);
    let bare = |image: &str| Revision {
        labels: labels(&[("app", "foo")]),
        ..revision(&long, image, 5)
    };
    let hash = names::label_value(&long).into_owned();
    let label = format!(
        r#"update {long} {{"metadata":{{"labels":{{"{HASH_LABEL}":"{hash}"}},"uid":"{long}-uid"}}}}"#
    );
    let present = snapshot(at("img:1"), vec![bare("img:1")]);
    let resolution = resolve(&present);
    assert_eq!(lines(&resolution), [label.as_str()]);
    assert_eq!(resolution.current_hash, hash, "D-55");
    let former = snapshot(at("img:1"), vec![bare("img:0"), revision("now", "img:1", 6)]);
    let resolution = resolve(&former);
    assert_eq!(lines(&resolution), [label]);
    // D-63: its hash is the added label.
    assert!(cleanup(&resolution, &BTreeSet::from([hash.as_str()]), Some(0)).is_empty());
    assert_eq!(
        cleanup(&resolution, &BTreeSet::from([long.as_str()]), Some(0)).len(),
        1
    );
}

/// Two revisions of img:1, an old one, and three pods: of the duplicate, of the kept one, of the old one.
fn duplicated(options: Options) -> Snapshot<DaemonSet> {
    let mut snapshot = snapshot(
        at("img:1"),
        vec![
            revision("keep", "img:1", 2),
            revision("old", "img:0", 5),
            revision("twin", "img:1", 1),
        ],
    );
    let ds = &snapshot.workload;
    let pods = [
        pod(ds, "p1", "n1", "twin-hash"),
        pod(ds, "p2", "n2", "keep-hash"),
        pod(ds, "p3", "n3", "old-hash"),
    ];
    snapshot.buckets = vec![bucket(vec![], pods.to_vec())];
    snapshot.options = options;
    snapshot
}

#[test]
fn d_56_of_equal_revisions_the_newest_is_kept() {
    let relabel = |pod: &str| {
        format!(
            r#"relabel {pod} {{"metadata":{{"labels":{{"{HASH_LABEL}":"keep-hash"}},"uid":"{pod}-uid"}}}}"#
        )
    };
    let renumber = r#"update keep {"metadata":{"uid":"keep-uid"},"revision":6}"#.to_owned();
    // Q-4: upstream also relabels the outdated pod. Here only the duplicate's pod is relabelled.
    // D-54: the renumbering comes last, so that after a failure the numbers are unchanged.
    let removed = "delete twin (1)".to_owned();
    let strict = vec![relabel("p1"), relabel("p3"), removed.clone(), renumber.clone()];
    let mended = vec![relabel("p1"), removed, renumber];
    let deviation = BTreeSet::from([Deviation::RelabelDuplicatesOnly]);
    for (options, actions, relabelled, deviations) in [
        (
            Options::upstream_strict(),
            strict,
            vec!["p1-uid", "p3-uid"],
            BTreeSet::new(),
        ),
        (Options::default(), mended, vec!["p1-uid"], deviation),
    ] {
        let snapshot = duplicated(options);
        let resolution = resolve(&snapshot);
        assert_eq!(lines(&resolution), actions);
        assert_eq!(
            (resolution.current_hash.as_str(), resolution.current_number),
            ("keep-hash", 6)
        );
        assert_eq!(old(&resolution), ["old"], "a duplicate is not an old revision");
        // D-57: relabelled pods count as updated in the same plan.
        assert_eq!(resolution.relabelled, relabelled.into_iter().collect());
        assert_eq!(resolution.deviations, deviations);
    }
}

// A finalizer may hold a revision for ever. Deleting it again in every plan would be useless.
#[test]
fn d_56_a_duplicate_that_is_being_deleted_is_not_deleted_again() {
    let mut snapshot = duplicated(Options::upstream_strict());
    snapshot.revisions[2].deleting = true;
    snapshot.revisions.push(revision("third", "img:1", 0));
    let resolution = resolve(&snapshot);
    let deleted: Vec<_> = lines(&resolution)
        .into_iter()
        .filter(|line| line.starts_with("delete"))
        .collect();
    assert_eq!(deleted, ["delete third (0)"]);
    // Its pods are relabelled nevertheless.
    assert!(resolution.relabelled.contains("p1-uid"));
    assert_eq!(old(&resolution), ["old"]);
}

#[test]
fn q_1_among_equal_numbers_the_younger_and_then_the_greater_name_is_kept() {
    let later = Some(Timestamp::from_second(9).unwrap());
    let undated = Revision {
        created: None,
        ..revision("z", "img:1", 1)
    };
    let young = Revision {
        created: later,
        ..revision("a", "img:1", 1)
    };
    // (revisions, kept)
    let table = [
        (
            vec![young.clone(), revision("b", "img:1", 1), undated.clone()],
            "a-hash",
        ),
        (
            vec![revision("c", "img:1", 1), revision("b", "img:1", 1)],
            "c-hash",
        ),
        (vec![undated, revision("b", "img:1", 1)], "b-hash"),
        (vec![young, revision("b", "img:1", 2)], "b-hash"),
    ];
    for (revisions, kept) in table {
        for rotation in 0..revisions.len() {
            let mut revisions = revisions.clone();
            revisions.rotate_left(rotation);
            let snapshot = snapshot(at("img:1"), revisions);
            assert_eq!(resolve(&snapshot).current_hash, kept, "D-56");
        }
    }
}

#[test]
fn d_56_a_pod_without_a_hash_label_carries_the_empty_hash() {
    let hashless = |name: &str, number: i64| Revision {
        labels: labels(&[("app", "foo"), (HASH_LABEL, "")]),
        ..revision(name, "img:1", number)
    };
    let mut snapshot = snapshot(at("img:1"), vec![hashless("keep", 5), hashless("twin", 1)]);
    let mut bare = pod(&snapshot.workload, "bare", "n1", "");
    bare.labels = labels(&[("app", "foo")]);
    let other = pod(&snapshot.workload, "other", "n2", "other-hash");
    snapshot.buckets = vec![bucket(vec![], vec![bare, other])];
    snapshot.options = Options::upstream_strict();
    let resolution = resolve(&snapshot);
    assert_eq!(resolution.current_hash, "");
    assert_eq!(resolution.relabelled, BTreeSet::from(["other-uid"]));
}

#[test]
fn d_56_a_manual_copy_with_a_higher_number_becomes_current() {
    let mut snapshot = snapshot(
        at("img:1"),
        vec![revision("ours", "img:1", 1), revision("copy", "img:1", 8)],
    );
    let pods = vec![pod(&snapshot.workload, "p", "n", "ours-hash")];
    snapshot.buckets = vec![bucket(vec![], pods)];
    let resolution = resolve(&snapshot);
    assert_eq!(
        (resolution.current_hash.as_str(), resolution.current_number),
        ("copy-hash", 8)
    );
    assert_eq!(resolution.relabelled, BTreeSet::from(["p-uid"]));
    assert_eq!(
        lines(&resolution).last().unwrap(),
        "delete ours (1)",
        "D-56: deleted after the pods are relabelled"
    );
    assert!(resolution.batches.iter().all(|batch| !batch.confirm_workload));
}

#[test]
fn d_62_another_template_under_the_name_raises_the_collision_count() {
    for (count, raised) in [(None, 1), (Some(0), 1), (Some(4), 5), (Some(i32::MAX), i32::MAX)] {
        let mut ds = DaemonSet {
            collision_count: count,
            ..at("img:1")
        };
        ds.status.number_ready = 3;
        let wanted = resolve(&snapshot(ds.clone(), vec![])).current_hash;
        let taken = Revision {
            read_after_name_collision: true,
            ..revision(&format!("foo-{wanted}"), "img:9", 1)
        };
        let orphan = Revision {
            controller: None,
            ..revision("orphan", "img:0", 1)
        };
        let snapshot = snapshot(ds.clone(), vec![taken, orphan]);
        let resolution = resolve(&snapshot);
        let halt = resolution.halt.expect("the sync fails once");
        // The executor compares the live count with the expected one.
        let collision = Some(Collision {
            count: raised,
            expected: count,
        });
        assert_eq!(
            halt.action.kind,
            ActionKind::UpdateStatus {
                status: ds.status,
                collision,
                uid_precondition: true,
            }
        );
        assert_eq!(halt.action.reason, Reason::RevisionNameCollision);
        assert!(halt.error.contains(&wanted), "{}", halt.error);
        assert!(resolution.batches.is_empty(), "nothing else is planned");
        if raised != i32::MAX {
            // With a higher count the next name differs, and the revision with the taken name is ignored.
            let raised = DaemonSet {
                collision_count: Some(raised),
                ..ds
            };
            let retried = Snapshot {
                workload: raised,
                ..snapshot.clone()
            };
            let resolution = resolve(&retried);
            assert_ne!(resolution.current_hash, wanted, "D-61");
            assert!(resolution.halt.is_none());
            assert_eq!(old(&resolution), ["orphan"]);
        }
    }
}

#[test]
fn d_62_the_same_template_under_the_name_is_used_as_it_is() {
    let wanted = resolve(&snapshot(at("img:1"), vec![])).current_hash;
    let found = |edit: fn(&mut Revision)| {
        let mut found = Revision {
            read_after_name_collision: true,
            ..revision(&format!("foo-{wanted}"), "img:1", 2)
        };
        edit(&mut found);
        found
    };
    let label = format!("foo-{wanted}-hash");
    // (what, found, hash)
    let table = [
        ("ours", found(|_| {}), label.as_str()),
        (
            "nobody's, labels not selected",
            found(|found| found.controller = None),
            &label,
        ),
        (
            "another's",
            found(|found| found.controller.as_mut().unwrap().uid = "other".to_owned()),
            &label,
        ),
        ("being deleted", found(|found| found.deleting = true), &label),
        (
            "label of its own",
            found(|found| found.labels = labels(&[(HASH_LABEL, "odd")])),
            "odd",
        ),
        ("without label", found(|found| found.labels = labels(&[])), ""),
    ];
    for (what, found, hash) in table {
        let snapshot = snapshot(at("img:1"), vec![found, revision("old", "img:0", 7)]);
        let resolution = resolve(&snapshot);
        assert_eq!(resolution.current_hash, hash, "{what}");
        assert_eq!(
            resolution.current_number, 2,
            "{what}: its number stays, though an old one is higher"
        );
        assert!(
            resolution.batches.is_empty() && resolution.halt.is_none(),
            "{what}: {:?}",
            lines(&resolution)
        );
        assert_eq!(old(&resolution), ["old"]);
    }
}

#[test]
fn d_62_a_claimed_current_revision_comes_before_one_that_was_read() {
    let wanted = resolve(&snapshot(at("img:1"), vec![])).current_hash;
    let read = Revision {
        read_after_name_collision: true,
        ..revision(&format!("foo-{wanted}"), "img:9", 1)
    };
    let snapshot = snapshot(at("img:1"), vec![read, revision("ours", "img:1", 1)]);
    let resolution = resolve(&snapshot);
    assert_eq!(
        (resolution.current_hash.as_str(), resolution.halt.is_none()),
        ("ours-hash", true)
    );
    assert!(old(&resolution).is_empty(), "it is neither claimed nor old");
}

#[test]
fn d_62_only_a_live_read_tells_whether_a_name_is_taken() {
    let wanted = resolve(&snapshot(at("img:1"), vec![])).current_hash;
    // The selector does not match, so the revision is not claimed.
    let cached = Revision {
        labels: labels(&[("app", "bar")]),
        controller: None,
        ..revision(&format!("foo-{wanted}"), "img:9", 1)
    };
    let snapshot = snapshot(at("img:1"), vec![cached]);
    let resolution = resolve(&snapshot);
    assert_eq!(lines(&resolution), [format!("create foo-{wanted}")]);
    assert!(resolution.halt.is_none());
}

#[test]
fn q_14_a_name_that_does_not_fit_is_shortened_where_the_deviation_is_on() {
    let ds = DaemonSet {
        name: "a".repeat(250),
        ..at("img:1")
    };
    for (options, length, deviations) in [
        (
            Options::default(),
            253,
            BTreeSet::from([Deviation::ShortenRevisionNames]),
        ),
        (Options::upstream_strict(), 261, BTreeSet::new()),
    ] {
        let snapshot = Snapshot {
            options,
            ..snapshot(ds.clone(), vec![])
        };
        let resolution = resolve(&snapshot);
        let ActionKind::CreateRevision { name, .. } = &resolution.batches[0].actions[0].kind else {
            panic!()
        };
        assert_eq!(
            (name.len(), resolution.deviations),
            (length, deviations),
            "{name}"
        );
    }
}

#[test]
fn d_63_d_64_clean_up_deletes_the_oldest_that_no_pod_needs() {
    // (requirement, limit, hashes that pods have, deletes)
    type Row = (
        &'static str,
        Option<i32>,
        &'static [&'static str],
        &'static [&'static str],
    );
    let revisions = (1..=5).map(|number| revision(&format!("r{number}"), &format!("img:{number}"), number));
    let snapshot = snapshot(
        at("img:9"),
        revisions.chain([revision("now", "img:9", 9)]).collect(),
    );
    let resolution = resolve(&snapshot);
    #[rustfmt::skip] // one case, one line
    let table: &[Row] = &[
        ("D-63 at the limit", Some(5), &[], &[]),
        ("D-63 below the limit", Some(6), &[], &[]),
        ("D-63", Some(3), &[], &["delete r1 (1)", "delete r2 (2)"]),
        ("D-63 a live one is skipped", Some(3), &["r1-hash"], &["delete r2 (2)", "delete r3 (3)"]),
        ("D-63 nearly all", Some(1), &["r1-hash"], &["delete r2 (2)", "delete r3 (3)", "delete r4 (4)", "delete r5 (5)"]),
        ("D-64 limit 0", Some(0), &["r2-hash", "r3-hash", "now-hash"], &["delete r1 (1)", "delete r4 (4)", "delete r5 (5)"]),
        ("D-120 a negative limit", Some(-1), &["r2-hash"], &["delete r1 (1)", "delete r3 (3)", "delete r4 (4)", "delete r5 (5)"]),
        ("D-63 all live", Some(0), &["r1-hash", "r2-hash", "r3-hash", "r4-hash", "r5-hash"], &[]),
        ("Q-15 no limit is 10", None, &[], &[]),
    ];
    for (requirement, limit, live, expected) in table {
        let actions = cleanup(&resolution, &live.iter().copied().collect(), *limit);
        assert_eq!(
            actions.iter().map(line).collect::<Vec<_>>(),
            *expected,
            "{requirement}"
        );
        assert!(actions.iter().all(|action| action.reason == Reason::HistoryLimit));
    }
}

#[test]
fn d_63_clean_up_counts_what_is_being_deleted_as_deleted() {
    let revisions = (1..=5).map(|number| Revision {
        deleting: number <= 2,
        ..revision(&format!("r{number}"), &format!("img:{number}"), number)
    });
    let snapshot = snapshot(at("img:9"), revisions.collect());
    let resolution = resolve(&snapshot);
    for (limit, expected) in [(3, vec![]), (2, vec!["delete r3 (3)"])] {
        let actions = cleanup(&resolution, &BTreeSet::new(), Some(limit));
        assert_eq!(actions.iter().map(line).collect::<Vec<_>>(), expected, "{limit}");
    }
}

#[test]
fn q_15_without_a_limit_ten_old_revisions_stay() {
    let revisions = (1..=12).map(|number| revision(&format!("r{number}"), &format!("img:{number}"), number));
    let snapshot = snapshot(at("img:99"), revisions.collect());
    let actions = cleanup(&resolve(&snapshot), &BTreeSet::new(), None);
    // D-63, D-120: a missing limit counts as 10.
    assert_eq!(
        actions.iter().map(line).collect::<Vec<_>>(),
        ["delete r1 (1)", "delete r2 (2)"]
    );
}

#[test]
fn the_order_of_revisions_does_not_matter() {
    let mut snapshot = duplicated(Options::default());
    for name in ["x", "y"] {
        snapshot.revisions.extend([
            Revision {
                controller: None,
                ..revision(&format!("orphan-{name}"), "img:7", 5)
            },
            Revision {
                labels: labels(&[("app", "bar")]),
                ..revision(&format!("lost-{name}"), "img:7", 5)
            },
            Revision {
                labels: labels(&[("app", "foo")]),
                ..revision(&format!("bare-{name}"), "img:8", 5)
            },
        ]);
    }
    let expected = resolve(&snapshot);
    for rotation in 1..snapshot.revisions.len() {
        let mut shuffled = snapshot.clone();
        shuffled.revisions.rotate_left(rotation);
        assert_eq!(resolve(&shuffled), expected);
    }
}
