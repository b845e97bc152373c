//! Responses of the engine and of the service, without a network.

mod support;

use nodewise_proto::{Duration, v1};
use nodewise_server::{
    ByteSize, Config, Engine, Kind, Limits, MISSING_BUCKETS_TYPE_URL, Refusal, Service, never,
};
use prost::Message as _;
use serde_json::json;
use support::{Cluster, Form, NOW, actions, created_nodes, engine, moment, node};
use tonic::Code;
use tonic_types::StatusExt as _;

#[test]
fn a_first_plan_creates_the_revision_and_a_pod_on_each_node() {
    let plan = engine()
        .plan(Cluster::empty(5).request(1, Form::Inline), &never)
        .unwrap()
        .plan
        .unwrap();
    assert_eq!(plan.verdict(), v1::Verdict::Apply);
    let kinds: Vec<_> = plan.phases.iter().map(v1::Phase::kind).collect();
    assert_eq!(
        kinds,
        [
            v1::PhaseKind::Revisions,
            v1::PhaseKind::Creates,
            v1::PhaseKind::Status
        ],
        "{plan:#?}"
    );
    let flags: Vec<_> = plan
        .phases
        .iter()
        .map(|phase| (phase.aborts_on_failure, phase.requires_success))
        .collect();
    assert_eq!(flags, [(true, false), (false, false), (false, false)]);
    assert_eq!(
        created_nodes(&plan),
        (0..5).map(|index| node(index).name).collect::<Vec<_>>()
    );
    // D-77
    let batches: Vec<_> = plan.phases[1]
        .batches
        .iter()
        .map(|batch| batch.actions.len())
        .collect();
    assert_eq!(batches, [1, 2, 2]);
    let ids: Vec<_> = actions(&plan).map(|action| action.id).collect();
    assert_eq!(
        ids,
        (1..=7).collect::<Vec<_>>(),
        "ids count from 1 through the whole plan"
    );
    assert!(actions(&plan).all(|action| action.reason != 0 && !action.message.is_empty()));
    let workload = plan.workload.as_ref().unwrap();
    assert_eq!(
        (workload.kind.as_str(), workload.name.as_str()),
        ("DaemonSet", "node-agent")
    );
    assert_eq!(workload.resource_version, "1000");
    let manifest: serde_json::Value = serde_json::from_slice(&plan.pod_manifest).unwrap();
    for pointer in &plan.node_name_pointers {
        assert!(
            manifest
                .pointer(pointer)
                .is_some_and(serde_json::Value::is_string),
            "{pointer}"
        );
    }
    assert!(!plan.node_name_pointers.is_empty());
    let expectations = plan.state.unwrap().expectations.unwrap();
    assert_eq!(expectations.creates.len(), 5);
    assert_eq!(expectations.set_at, moment(NOW));
}

#[test]
fn a_caller_can_get_the_snapshot_and_run_the_planner_itself() {
    let request = Cluster::settled(5).request(4, Form::InlineWithDigest);
    let engine = engine();
    let snapshot = engine.snapshot(request, &never).unwrap();
    assert_eq!((snapshot.nodes().count(), snapshot.pods().count()), (5, 5));
    assert!(
        snapshot
            .buckets
            .iter()
            .all(|bucket| bucket.pods.digest().is_some())
    );
    let verdict = nodewise_planner::daemonset::plan(&snapshot).verdict;
    assert_eq!(verdict, nodewise_planner::plan::Verdict::Noop);
    let by_digest = Cluster::settled(5).request(4, Form::DigestOnly);
    let again = engine.snapshot(by_digest, &never).unwrap();
    assert_eq!(again.nodes().count(), 5, "buckets are cached");
    let refusal = engine.snapshot(v1::PlanRequest::default(), &never).unwrap_err();
    assert!(matches!(refusal, Refusal::Invalid { .. }), "{refusal}");
}

#[test]
fn the_plan_id_is_the_digest_of_the_plan_without_it() {
    use sha2::{Digest as _, Sha256};
    let mut plan = engine()
        .plan(Cluster::empty(3).request(1, Form::Inline), &never)
        .unwrap()
        .plan
        .unwrap();
    let id = std::mem::take(&mut plan.plan_id);
    let digest = Sha256::digest(plan.encode_to_vec());
    assert_eq!(id.len(), 64);
    for (index, byte) in digest.iter().enumerate() {
        assert_eq!(id[2 * index..2 * index + 2], format!("{byte:02x}"));
    }
}

#[test]
fn equal_snapshots_get_equal_plans_in_any_order_and_with_any_cache() {
    let mut cluster = Cluster::settled(300);
    cluster.pods.truncate(250);
    cluster.pods[7].phase = v1::PodPhase::Failed.into();
    cluster.daemon_set["spec"]["template"]["spec"]["containers"][0]["image"] =
        json!("registry.example/agent:2");
    let bytes = |request| engine().plan(request, &never).unwrap().encode_to_vec();
    let first = bytes(cluster.request(1, Form::Inline));
    let warm = engine();
    for _ in 0..2 {
        let request = cluster.request(64, Form::InlineWithDigest);
        assert_eq!(
            warm.plan(request, &never).unwrap().encode_to_vec(),
            first,
            "with and without the cache"
        );
    }
    let mut request = cluster.request(1, Form::Inline);
    let alone = v1::PodBucket {
        pods: cluster.pods.clone(),
        ..Default::default()
    };
    request.snapshot.as_mut().unwrap().pod_buckets[0].data = Some(alone.encode_to_vec().into());
    assert_eq!(bytes(request), first, "pods without shared metadata");
    cluster.nodes.reverse();
    cluster.pods.rotate_left(101);
    cluster.nodes[0].labels.reverse();
    for buckets in [1, 7, 128] {
        assert_eq!(
            bytes(cluster.request(buckets, Form::Inline)),
            first,
            "shuffled, {buckets} buckets"
        );
    }
}

#[test]
fn options_reach_the_planner() {
    let plan = |options: v1::PlanOptions| {
        let request = v1::PlanRequest {
            options: Some(options),
            ..Cluster::empty(20).request(1, Form::Inline)
        };
        engine().plan(request, &never).unwrap().plan.unwrap()
    };
    assert_eq!(
        created_nodes(&plan(v1::PlanOptions {
            burst: Some(3),
            ..Default::default()
        }))
        .len(),
        3
    );
    let named = |plan: &v1::Plan| {
        actions(plan).any(|action| {
            matches!(action.kind,
            Some(v1::action::Kind::CreatePod(create)) if !create.pod_name.is_empty())
        })
    };
    let by_default = plan(v1::PlanOptions::default());
    assert!(named(&by_default));
    assert!(
        by_default
            .deviations
            .contains(&v1::Deviation::IdempotentCreates.into())
    );
    let strict = v1::PlanOptions {
        profile: v1::Profile::UpstreamStrict.into(),
        ..Default::default()
    };
    assert!(!named(&plan(strict.clone())));
    assert!(plan(strict.clone()).deviations.is_empty());
    let one = vec![v1::Deviation::IdempotentCreates.into()];
    assert!(named(&plan(v1::PlanOptions {
        enabled_deviations: one.clone(),
        ..strict
    })));
    assert!(!named(&plan(v1::PlanOptions {
        disabled_deviations: one,
        ..Default::default()
    })));
}

#[test]
fn buckets_may_be_given_by_digest_once_they_were_sent() {
    let engine = engine();
    let cluster = Cluster::settled(40);
    let Err(Refusal::MissingBuckets(missing)) = engine.plan(cluster.request(8, Form::DigestOnly), &never)
    else {
        panic!("nothing is in the cache")
    };
    assert_eq!(missing.node_bucket_indices, (0..8).collect::<Vec<_>>());
    assert_eq!(missing.pod_bucket_indices, (0..8).collect::<Vec<_>>());
    let request = cluster.request(8, Form::DigestOnly);
    let snapshot = request.snapshot.as_ref().unwrap();
    let digests: Vec<_> = snapshot
        .node_buckets
        .iter()
        .chain(&snapshot.pod_buckets)
        .map(|bucket| bucket.digest.clone())
        .collect();
    assert_eq!(missing.digests, digests);
    let inline = engine
        .plan(cluster.request(8, Form::InlineWithDigest), &never)
        .unwrap();
    assert_eq!(engine.plan(request, &never).unwrap(), inline);

    // One pod changes: only its bucket is missing and must be sent.
    let mut changed = cluster.clone();
    changed.pods[0].ready = v1::ConditionStatus::False.into();
    let Err(Refusal::MissingBuckets(missing)) = engine.plan(changed.request(8, Form::DigestOnly), &never)
    else {
        panic!("the changed bucket is not in the cache")
    };
    assert!(missing.node_bucket_indices.is_empty());
    assert_eq!(missing.pod_bucket_indices.len(), 1);
    let index = missing.pod_bucket_indices[0] as usize;
    let mut request = changed.request(8, Form::DigestOnly);
    let full = changed
        .request(8, Form::InlineWithDigest)
        .snapshot
        .unwrap()
        .pod_buckets
        .swap_remove(index);
    request.snapshot.as_mut().unwrap().pod_buckets[index] = full;
    let by_digest = engine.plan(request, &never).unwrap();
    assert_eq!(
        by_digest,
        engine.plan(changed.request(1, Form::Inline), &never).unwrap()
    );
}

#[test]
fn a_replaced_pod_bucket_is_removed_from_the_cache_at_once() {
    let engine = engine();
    let mut cluster = Cluster::settled(40);
    let mut kept = Vec::new();
    for restarts in 0..20 {
        cluster.pods[0].ready_transition_time = moment(NOW - 3_600 + restarts);
        engine
            .plan(cluster.request(8, Form::InlineWithDigest), &never)
            .unwrap();
        kept.push((engine.cache().entries(), engine.cache().bytes()));
    }
    // Node buckets, pod buckets, and the results of plans.
    assert_eq!(kept[0].0, 8 + 8 + 1);
    assert!(kept[1..].iter().all(|now| *now == kept[1]), "{kept:?}");
    assert!(engine.plan(cluster.request(8, Form::DigestOnly), &never).is_ok());
    // An empty bucket may belong to any workload, so it is not removed.
    let empty = Cluster::empty(40);
    engine
        .plan(empty.request(8, Form::InlineWithDigest), &never)
        .unwrap();
    engine
        .plan(cluster.request(8, Form::InlineWithDigest), &never)
        .unwrap();
    assert!(engine.plan(empty.request(8, Form::DigestOnly), &never).is_ok());
}

#[test]
fn a_cached_bucket_is_checked_again_at_another_position() {
    let engine = engine();
    let cluster = Cluster::settled(40);
    engine
        .plan(cluster.request(8, Form::InlineWithDigest), &never)
        .unwrap();
    let mut request = cluster.request(8, Form::DigestOnly);
    request.snapshot.as_mut().unwrap().node_buckets.swap(1, 2);
    let Err(Refusal::Invalid { violations, .. }) = engine.plan(request, &never) else {
        panic!("not refused")
    };
    assert!(
        violations[0]
            .field
            .starts_with("snapshot.node_buckets[1].data.nodes["),
        "{violations:?}"
    );
    // The same bytes with another bucket count: all empty buckets are equal.
    let empty = Cluster::empty(0);
    engine
        .plan(empty.request(2, Form::InlineWithDigest), &never)
        .unwrap();
    assert!(engine.plan(empty.request(16, Form::DigestOnly), &never).is_ok());
}

#[test]
fn bytes_with_a_wrong_digest_do_not_enter_the_cache() {
    let engine = engine();
    let honest = Cluster::settled(3).request(1, Form::InlineWithDigest);
    let mut forged = honest.clone();
    let digest = honest.snapshot.as_ref().unwrap().node_buckets[0].digest.clone();
    let bucket = support::bucket_message(v1::NodeBucket::default().encode_to_vec(), Form::Inline);
    forged.snapshot.as_mut().unwrap().node_buckets[0] = v1::Bucket { digest, ..bucket };
    assert!(matches!(
        engine.plan(forged, &never),
        Err(Refusal::Invalid { .. })
    ));
    let by_digest = Cluster::settled(3).request(1, Form::DigestOnly);
    let Err(Refusal::MissingBuckets(missing)) = engine.plan(by_digest, &never) else {
        panic!("cached")
    };
    assert_eq!(missing.node_bucket_indices, [0]);
}

// So a client can send its buckets in several calls.
#[test]
fn inline_buckets_are_cached_even_if_others_are_missing() {
    let engine = engine();
    let cluster = Cluster::settled(40);
    let mut piece = cluster.request(8, Form::InlineWithDigest);
    let snapshot = piece.snapshot.as_mut().unwrap();
    for bucket in snapshot.node_buckets[3..]
        .iter_mut()
        .chain(&mut snapshot.pod_buckets[..5])
    {
        bucket.data = None;
    }
    for request in [piece, cluster.request(8, Form::DigestOnly)] {
        let Err(Refusal::MissingBuckets(missing)) = engine.plan(request, &never) else {
            panic!("some buckets were never sent")
        };
        assert_eq!(missing.node_bucket_indices, (3..8).collect::<Vec<_>>());
        assert_eq!(missing.pod_bucket_indices, (0..5).collect::<Vec<_>>());
    }
}

#[test]
fn the_cache_is_bounded_and_evicted_buckets_are_missing() {
    let capacity = ByteSize(128 << 10);
    let engine = Engine::new(Limits::default(), capacity);
    let cluster = Cluster::settled(400);
    engine
        .plan(cluster.request(64, Form::InlineWithDigest), &never)
        .unwrap();
    assert!(engine.cache().bytes() <= capacity.0);
    let held = engine.cache().entries();
    assert!(held > 0, "some buckets fit");
    let Err(Refusal::MissingBuckets(missing)) = engine.plan(cluster.request(64, Form::DigestOnly), &never)
    else {
        panic!("all buckets fit in {capacity}")
    };
    let listed = missing.node_bucket_indices.len() + missing.pod_bucket_indices.len();
    assert!(
        listed + held >= 128 && listed < 128,
        "{listed} missing, {held} held"
    );
    assert!(missing.digests.is_empty(), "more than 32 are named by index only");
}

// Nodes and pods change all the time. Each change brings a bucket that no later request names again.
#[test]
fn buckets_that_others_have_replaced_leave_the_cache() {
    let engine = engine();
    let mut cluster = Cluster::settled(40);
    let mut held = Vec::new();
    for round in 0..20 {
        cluster.nodes[round % 40].unschedulable ^= true;
        cluster.nodes[(round + 7) % 40].ready = v1::ConditionStatus::False.into();
        cluster.pods[round % 40].ready = v1::ConditionStatus::False.into();
        let request = cluster.request(8, Form::InlineWithDigest);
        engine.plan(request, &never).expect("a plan");
        held.push(engine.cache().entries());
    }
    // Those of the last request, and what the plan remembers.
    assert!(held.iter().all(|entries| *entries <= 8 + 8 + 1), "{held:?}");
    engine
        .plan(cluster.request(8, Form::DigestOnly), &never)
        .expect("all current buckets are there");
}

#[test]
fn undelivered_reports_are_folded_before_planning() {
    let cluster = Cluster::empty(3);
    let mut request = cluster.request(1, Form::Inline);
    let plan = engine().plan(request.clone(), &never).unwrap().plan.unwrap();
    request.snapshot.as_mut().unwrap().state.clone_from(&plan.state);
    // Expectations are outstanding, so only the status is planned (D-72).
    let waiting = engine().plan(request.clone(), &never).unwrap().plan.unwrap();
    assert_eq!(waiting.verdict(), v1::Verdict::StatusOnly);
    // Once reports say that every create failed, pods are created again.
    let outcomes = actions(&plan).map(|action| v1::Outcome {
        action_id: action.id,
        result: v1::Result::Failed.into(),
        subject: match action.kind {
            Some(v1::action::Kind::CreatePod(create)) => {
                Some(v1::outcome::Subject::CreatedPod(v1::ExpectedCreate {
                    pod_name: create.pod_name,
                    node_name: create.node_name,
                }))
            }
            _ => None,
        },
        ..Default::default()
    });
    request.undelivered_reports = vec![v1::ReportRequest {
        workload: plan.workload.clone(),
        plan_id: plan.plan_id.clone(),
        outcomes: outcomes.collect(),
        ..Default::default()
    }];
    let again = engine().plan(request.clone(), &never).unwrap().plan.unwrap();
    assert_eq!(created_nodes(&again).len(), 3);

    request.undelivered_reports[0].workload.as_mut().unwrap().uid = "another".into();
    request.undelivered_reports.push(v1::ReportRequest::default());
    let Err(Refusal::Invalid { violations, .. }) = engine().plan(request, &never) else {
        panic!("not refused")
    };
    let fields: Vec<_> = violations
        .iter()
        .map(|violation| violation.field.as_str())
        .collect();
    assert_eq!(
        fields,
        [
            "undelivered_reports[1].workload",
            "undelivered_reports[1].plan_id"
        ]
    );
}

#[test]
fn a_report_of_another_workload_is_refused() {
    let mut request = Cluster::empty(3).request(1, Form::Inline);
    let workload = v1::WorkloadReference {
        uid: "another".into(),
        ..Default::default()
    };
    request.undelivered_reports = vec![v1::ReportRequest {
        workload: Some(workload),
        plan_id: "p".into(),
        ..Default::default()
    }];
    let Err(Refusal::Invalid { violations, .. }) = engine().plan(request, &never) else {
        panic!("not refused")
    };
    assert_eq!(violations[0].field, "undelivered_reports[0].workload.uid");
}

fn report(outcomes: Vec<v1::Outcome>) -> v1::ReportRequest {
    v1::ReportRequest {
        workload: Some(v1::WorkloadReference {
            uid: "uid".into(),
            ..Default::default()
        }),
        plan_id: "plan".into(),
        outcomes,
        ..Default::default()
    }
}

#[test]
fn the_response_to_a_report_says_when_to_reconcile_again() {
    let outcome = |result: v1::Result| v1::Outcome {
        action_id: 1,
        result: result.into(),
        ..Default::default()
    };
    let answer = |request| engine().report(request, &never).unwrap();
    assert_eq!(
        answer(report(vec![outcome(v1::Result::Succeeded)])).requeue(),
        v1::Requeue::None
    );
    let later = Some(Duration {
        seconds: 90,
        nanos: 0,
    });
    let after = answer(v1::ReportRequest {
        requeue_after: later,
        ..report(vec![outcome(v1::Result::Succeeded)])
    });
    assert_eq!(
        (after.requeue(), after.requeue_after),
        (v1::Requeue::After, later)
    );
    let failed = answer(report(vec![outcome(v1::Result::Failed)]));
    assert_eq!(failed.requeue(), v1::Requeue::Backoff);
    assert!(!failed.message.is_empty());
    let error = answer(v1::ReportRequest {
        plan_error: "no node".into(),
        ..report(vec![])
    });
    assert_eq!(error.requeue(), v1::Requeue::Backoff);
}

#[test]
fn errors_of_reports_name_the_field() {
    let outcome = |change: fn(&mut v1::Outcome)| {
        let mut outcome = v1::Outcome {
            action_id: 1,
            result: v1::Result::Failed.into(),
            ..Default::default()
        };
        change(&mut outcome);
        report(vec![outcome])
    };
    let deleted = |uid: &str| Some(v1::outcome::Subject::DeletedPodUid(uid.into()));
    let table = [
        (
            v1::ReportRequest {
                workload: None,
                ..report(vec![])
            },
            "workload",
        ),
        (
            v1::ReportRequest {
                workload: Some(v1::WorkloadReference::default()),
                ..report(vec![])
            },
            "workload.uid",
        ),
        (
            v1::ReportRequest {
                plan_id: String::new(),
                ..report(vec![])
            },
            "plan_id",
        ),
        (outcome(|o| o.action_id = 0), "outcomes[0].action_id"),
        (outcome(|o| o.result = 0), "outcomes[0].result"),
        (outcome(|o| o.result = 99), "outcomes[0].result"),
        (
            report(vec![v1::Outcome {
                action_id: 1,
                result: 1,
                subject: deleted(""),
                ..Default::default()
            }]),
            "outcomes[0].deleted_pod_uid",
        ),
        (
            outcome(|o| o.subject = Some(v1::outcome::Subject::CreatedPod(v1::ExpectedCreate::default()))),
            "outcomes[0].created_pod.node_name",
        ),
        (
            v1::ReportRequest {
                requeue_after: Some(Duration {
                    seconds: -1,
                    nanos: 0,
                }),
                ..report(vec![])
            },
            "requeue_after",
        ),
        (
            v1::ReportRequest {
                options: Some(v1::PlanOptions {
                    burst: Some(0),
                    ..Default::default()
                }),
                ..report(vec![])
            },
            "options.burst",
        ),
        (
            v1::ReportRequest {
                state: Some(v1::ReconcileState {
                    expectations: Some(v1::Expectations {
                        delete_uids: vec!["a".to_owned()],
                        ..v1::Expectations::default()
                    }),
                    ..Default::default()
                }),
                ..report(vec![])
            },
            "state.expectations.set_at",
        ),
    ];
    for (request, field) in table {
        let Err(Refusal::Invalid { violations, .. }) = engine().report(request, &never) else {
            panic!("{field}")
        };
        assert_eq!(
            violations.iter().map(|v| v.field.as_str()).collect::<Vec<_>>(),
            [field]
        );
    }
}

#[test]
fn nodes_are_explained() {
    let mut cluster = Cluster::settled(3);
    cluster.pods.pop();
    cluster.nodes[0].taints = vec![v1::Taint {
        key: "dedicated".into(),
        value: "db".into(),
        effect: "NoExecute".into(),
    }];
    let explain = |node_name: String| {
        let v1::PlanRequest {
            snapshot, options, ..
        } = cluster.request(1, Form::Inline);
        engine()
            .explain(
                v1::ExplainRequest {
                    snapshot,
                    options,
                    node_name,
                },
                &never,
            )
            .unwrap()
            .nodes
    };
    let all = explain(String::new());
    assert_eq!(
        all.iter().map(|e| &e.node_name).collect::<Vec<_>>(),
        cluster.nodes.iter().map(|n| &n.name).collect::<Vec<_>>()
    );
    assert_eq!(
        (all[0].state(), all[0].rule()),
        (v1::NodeState::MustNotRun, v1::Rule::TaintNoExecute),
        "{:#?}",
        all[0]
    );
    assert!(all[0].message.contains("dedicated"), "{}", all[0].message);
    assert_eq!(all[1].state(), v1::NodeState::Runs, "{:#?}", all[1]);
    assert_eq!(all[1].pods[0].pod_name, cluster.pods[1].name);
    assert!(all[1].pods[0].ready && all[1].pods[0].updated && all[1].should_run);
    assert_eq!(all[2].state(), v1::NodeState::Missing, "{:#?}", all[2]);
    assert_eq!(explain(cluster.nodes[2].name.clone()), all[2..]);
    assert_eq!(explain("nowhere".into())[0].rule(), v1::Rule::NodeMissing);
}

#[test]
fn capabilities_contain_limits_and_deviations() {
    let config = Config {
        max_concurrent_plans: 3,
        ..Config::default()
    };
    let capabilities = Service::new(&config).capabilities();
    let limits = capabilities.limits.unwrap();
    assert_eq!(limits.max_message_bytes, 64 << 20);
    assert_eq!(limits.max_concurrent_plans, 3);
    assert_eq!(
        (
            limits.max_nodes,
            limits.max_pods,
            limits.max_bucket_count,
            limits.max_revisions
        ),
        (
            config.limits.nodes,
            config.limits.pods,
            config.limits.buckets,
            config.limits.revisions
        )
    );
    assert_eq!(
        capabilities.digest_functions,
        [i32::from(v1::DigestFunction::Sha256)]
    );
    assert_eq!(
        capabilities.workload_kinds,
        ["DaemonSet", "ReplicaSet", "Deployment"]
    );
    assert_eq!(capabilities.kubernetes_version, "v1.36");
    assert_eq!(capabilities.engine_version, env!("CARGO_PKG_VERSION"));
    let deviations = capabilities.deviations;
    let ids: Vec<_> = deviations.iter().map(|info| info.deviation).collect();
    assert_eq!(
        ids,
        (1..=23).collect::<Vec<_>>(),
        "every deviation of the protocol"
    );
    let off: Vec<_> = deviations
        .iter()
        .filter(|info| !info.on_by_default)
        .map(v1::DeviationInfo::deviation)
        .collect();
    assert_eq!(off, [v1::Deviation::SurgeHonoursBackoff]);
    for info in &deviations {
        let by_default = v1::PlanOptions::default().enables(info.deviation());
        assert_eq!(
            by_default,
            info.on_by_default,
            "as executors see {:?}",
            info.deviation()
        );
    }
    assert!(deviations.iter().all(|info| info.description.ends_with('.')));
}

#[tokio::test]
async fn refusals_have_codes_and_details() {
    let service = Service::new(&Config::default());
    let wrong = service.plan(v1::PlanRequest::default()).await.unwrap_err();
    assert_eq!(wrong.code(), Code::InvalidArgument);
    let violations = wrong
        .get_details_bad_request()
        .expect("a BadRequest")
        .field_violations;
    assert_eq!(violations[0].field, "snapshot");

    let request = Cluster::settled(3).request(4, Form::DigestOnly);
    let missing = service.plan(request).await.unwrap_err();
    assert_eq!(missing.code(), Code::FailedPrecondition);
    let status = tonic_types::pb::Status::decode(missing.details()).unwrap();
    assert_eq!(status.code, i32::from(Code::FailedPrecondition));
    assert_eq!(status.details[0].type_url, MISSING_BUCKETS_TYPE_URL);
    let detail = v1::MissingBuckets::decode(&status.details[0].value[..]).unwrap();
    assert_eq!((detail.node_bucket_indices.len(), detail.digests.len()), (4, 8));

    let mut too_much = Cluster::empty(1).request(1, Form::Inline);
    too_much.snapshot.as_mut().unwrap().bucket_count = 1_000_000;
    let too_much = service.plan(too_much).await.unwrap_err();
    assert_eq!(too_much.code(), Code::ResourceExhausted);
    assert!(
        too_much.get_details_retry_info().is_none(),
        "a retry does not help"
    );
    assert_eq!(
        too_much.get_details_bad_request().unwrap().field_violations[0].field,
        "snapshot.bucket_count"
    );

    service.drain();
    let request = Cluster::empty(1).request(1, Form::Inline);
    assert_eq!(service.plan(request).await.unwrap_err().code(), Code::Unavailable);
}

#[test]
fn cached_results_change_no_byte_of_a_plan() {
    let warm = engine();
    let mut cluster = Cluster::settled(60);
    let bytes = |engine: &Engine, request| engine.plan(request, &never).unwrap().encode_to_vec();
    for step in 0..40 {
        let pod = &mut cluster.pods[step * 7 % 60];
        match step % 5 {
            0 => pod.ready = v1::ConditionStatus::False.into(),
            1 => pod.deletion_time = moment(NOW),
            2 => {
                cluster.nodes[step].taints = vec![v1::Taint {
                    key: "dedicated".to_owned(),
                    effect: "NoExecute".to_owned(),
                    ..Default::default()
                }];
            }
            3 => {
                cluster.daemon_set["spec"]["template"]["spec"]["containers"][0]["image"] =
                    format!("i:{step}").into();
            }
            _ => pod.ready = v1::ConditionStatus::True.into(),
        }
        let request = cluster.request(8, Form::InlineWithDigest);
        let fresh = bytes(&engine(), cluster.request(1, Form::Inline));
        assert_eq!(bytes(&warm, request.clone()), fresh, "step {step}");
        assert_eq!(bytes(&warm, request), fresh, "step {step}, again");
    }
    let usage = warm.cache().usage(Kind::Plans);
    assert_eq!((usage.hits, usage.misses), (79, 1));
    assert!(warm.tally().summaries_cached > 8 * 40);
}

#[test]
fn a_duplicate_pod_is_found_with_and_without_cached_results() {
    let warm = engine();
    let mut cluster = Cluster::settled(60);
    warm.plan(cluster.request(8, Form::InlineWithDigest), &never)
        .unwrap();
    cluster.pods[59].uid = cluster.pods[0].uid.clone();
    let refusals = [&warm, &engine()].map(|engine| {
        let request = cluster.request(8, Form::InlineWithDigest);
        let Err(Refusal::Invalid { violations, .. }) = engine.plan(request, &never) else {
            panic!("not refused")
        };
        violations
    });
    assert_eq!(refusals[0], refusals[1]);
    let violation = &refusals[0][0];
    assert!(
        violation.description.contains(&cluster.pods[0].uid),
        "{violation:?}"
    );
    // The error drops the cached results, but later plans succeed.
    cluster.pods[59].uid.push('x');
    assert!(
        warm.plan(cluster.request(8, Form::InlineWithDigest), &never)
            .is_ok()
    );
}

#[test]
fn a_report_may_repeat_the_longest_requeue_delay() {
    let mut cluster = Cluster::settled(1);
    cluster.daemon_set["spec"]["minReadySeconds"] = json!(10);
    // 9999-12-30T00:00:00Z, the last valid timestamp.
    cluster.pods[0].ready_transition_time = moment(253_402_128_000);
    let plan = engine().plan(cluster.request(1, Form::Inline), &never);
    let plan = plan.expect("a plan").plan.expect("a plan");
    let after = plan.requeue_after.expect("the pod becomes available one day");
    let ten_years = 10 * 365 * 24 * 3_600;
    assert_eq!(after.seconds, ten_years);
    let report = support::report_of(&plan, v1::Result::Succeeded);
    let answer = engine()
        .report(report, &never)
        .expect("the delay of the plan is valid in a report");
    assert_eq!(answer.requeue_after, Some(after));
}
