//! Policies as people write them, and statuses as programs do.

use std::{fs, path::Path};

use nodewise_api::{
    AnalysisTime, Approval, Disruption, Duration, IntOrPercent, Maintenance, NodeOrder, NotReady, OnFailure,
    RolloutPolicy, RolloutPolicySpec, StageState, Unadmitted, Weekday, defaults,
};
use serde_json::{Value, json};

fn example() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/examples/rollout-policy.yaml");
    fs::read_to_string(path).expect("the example is readable")
}

#[test]
fn the_example_is_read_and_written_without_loss() {
    let policy: RolloutPolicy = serde_saphyr::from_str(&example()).expect("the example is a policy");
    let spec = &policy.spec;
    assert_eq!(spec.targets.names, ["agent"]);
    assert_eq!(spec.partition, Some(IntOrPercent::Number(0)));
    let [canary, zones] = &spec.stages[..] else {
        panic!("{:?}", spec.stages)
    };
    assert_eq!((canary.name.as_str(), zones.name.as_str()), ("canary", "zones"));
    assert_eq!(canary.replicas, Some(IntOrPercent::Number(5)));
    assert_eq!(canary.soak, Some(Duration::from_secs(600)));
    assert_eq!(canary.approval, Some(Approval::Required));
    assert_eq!(zones.group_by.as_deref(), Some("topology.kubernetes.io/zone"));
    assert_eq!(zones.max_unavailable, Some(IntOrPercent::Percent(10)));
    let check = &canary.analysis[0];
    assert_eq!(
        check.prometheus.as_ref().map(|it| it.query.as_str()),
        Some("sum(rate(errors[5m]))")
    );
    assert_eq!((check.count, check.when), (Some(5), None));
    assert_eq!(
        spec.windows[0].days,
        [Weekday::Mon, Weekday::Tue, Weekday::Wed, Weekday::Thu]
    );
    let end = spec.windows[0].end_time.expect("an end");
    assert_eq!((end.hour(), end.minute()), (16, 0));

    let read: Value = serde_saphyr::from_str(&example()).expect("the example is YAML");
    assert_eq!(serde_json::to_value(&policy).expect("it is JSON"), read);
}

/// The planner must be able to tell a given value from an absent one.
#[test]
fn what_is_not_given_stays_absent() {
    let json = json!({ "targets": { "names": ["agent"] }, "stages": [{ "name": "a", "analysis": [{ "name": "b" }] }] });
    let spec: RolloutPolicySpec = serde_json::from_value(json.clone()).expect("it is a spec");
    assert!(spec.paused.is_none() && spec.nodes.is_none() && spec.failure_threshold.is_none());
    assert_eq!(serde_json::to_value(&spec).expect("it is JSON"), json);
}

#[test]
fn defaults_are_those_of_the_descriptions() {
    assert_eq!(Unadmitted::default(), Unadmitted::Stable);
    assert_eq!(NodeOrder::default(), NodeOrder::Name);
    assert_eq!(Disruption::default(), Disruption::Delete);
    assert_eq!(OnFailure::default(), OnFailure::Rollback);
    assert_eq!(NotReady::default(), NotReady::Exempt);
    assert_eq!(Maintenance::default(), Maintenance::Exempt);
    assert_eq!(AnalysisTime::default(), AnalysisTime::WhileSoaking);
    assert_eq!(StageState::default(), StageState::Pending);
    let crd = {
        use nodewise_api::CustomResourceExt as _;
        serde_json::to_value(RolloutPolicy::crd()).expect("it is JSON")
    };
    let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    let stage = &spec["stages"]["items"]["properties"];
    let analysis = &stage["analysis"]["items"]["properties"];
    for (schema, value) in [
        (&spec["partition"], defaults::PARTITION.to_string()),
        (
            &spec["nodes"]["properties"]["maxExempt"],
            defaults::MAX_EXEMPT.to_string(),
        ),
        (
            &spec["progressDeadlineSeconds"],
            defaults::PROGRESS_DEADLINE_SECONDS.to_string(),
        ),
        (&spec["failureThreshold"], defaults::FAILURE_THRESHOLD.to_string()),
        (
            &spec["windows"]["items"]["properties"]["timeZone"],
            defaults::TIME_ZONE.to_owned(),
        ),
        (&analysis["interval"], defaults::ANALYSIS_INTERVAL.to_string()),
        (&analysis["count"], defaults::ANALYSIS_COUNT.to_string()),
        (&analysis["failureLimit"], defaults::FAILURE_LIMIT.to_string()),
        (
            &analysis["inconclusiveLimit"],
            defaults::INCONCLUSIVE_LIMIT.to_string(),
        ),
        (
            &analysis["consecutiveErrorLimit"],
            defaults::CONSECUTIVE_ERROR_LIMIT.to_string(),
        ),
    ] {
        let description = schema["description"].as_str().expect("a description");
        assert!(
            description.ends_with(&format!("Default: {value}.")),
            "{value}: {description}"
        );
    }
}

/// An older program reads a newer object. A word that it does not know is an error, because a policy must not be
/// followed in part.
#[test]
fn unknown_fields_are_ignored_and_unknown_words_are_not() {
    let read = |spec: Value| serde_json::from_value::<RolloutPolicySpec>(spec);
    let spec =
        read(json!({ "targets": { "names": ["agent"], "later": 1 }, "later": {} })).expect("unknown fields");
    assert_eq!(spec.targets.names, ["agent"]);
    for (wrong, complaint) in [
        (
            json!({ "order": "Later" }),
            "unknown variant `Later`, expected `Name` or `OldestPod`",
        ),
        (
            json!({ "partition": "110%" }),
            "`\"110%\"` is neither a number nor a percentage",
        ),
        (
            json!({ "pace": { "nodes": 1, "interval": "1d" } }),
            "`1d` is not a duration",
        ),
        (
            json!({ "windows": [{ "startTime": "9:00" }] }),
            "`9:00` is not a time of the day",
        ),
        (json!({ "maxRestarts": -1 }), "`-1`"),
    ] {
        let mut spec = json!({ "targets": {} });
        let members = wrong.as_object().expect("an object").clone();
        spec.as_object_mut().expect("an object").extend(members);
        let error = read(spec).expect_err("it is wrong").to_string();
        assert!(error.contains(complaint), "{error}");
    }
}

const WITH_STATUS: &str = r#"
apiVersion: nodewise.dev/v1alpha1
kind: RolloutPolicy
metadata: { name: agents, namespace: monitoring }
spec: { targets: { names: [agent] } }
status:
  observedGeneration: 2
  conditions:
    - type: Accepted
      status: "True"
      reason: Accepted
      message: ""
      observedGeneration: 2
      lastTransitionTime: "2026-11-27T10:00:00Z"
  summary: { target: agent, stage: canary, updated: 5/100, state: Soaking }
  targets:
    - name: agent
      uid: 4b9c
      updateRevision: { hash: 6f7d9c, number: 4 }
      stableRevision: { hash: 54bb6c, number: 3 }
      rejectedRevision: { hash: 6f7d9c, number: 4, reason: NodesFailed, message: 3 nodes, rollBack: true, digest: fee, time: "2026-11-27T10:00:00.25Z" }
      resumed: { hash: 6f7d9c, time: "2026-11-27T10:00:00Z" }
      state: Soaking
      message: 5 nodes soak until 10:20.
      desired: 100
      updated: 5
      available: 99
      maxUnavailable: 3
      digest: fed
      lastUpdateTime: "2026-11-27T10:00:00Z"
      startTime: "2026-11-27T10:00:00Z"
      stages:
        - name: zones/eu-1a
          nodes: 5
          updated: 5
          available: 5
          exempt: 0
          failed: 0
          state: Soaking
          startTime: "2026-11-27T10:00:00Z"
          soakStartTime: "2026-11-27T10:00:00Z"
          completionTime: "2026-11-27T10:00:00Z"
          analysis:
            - name: errors
              measurements: 2
              successful: 1
              failed: 0
              inconclusive: 0
              errors: 1
              consecutiveErrors: 1
              time: "2026-11-27T10:00:00Z"
              value: "0.002"
              message: timed out
      approvals: [{ stage: canary, digest: abc, time: "2026-11-27T10:00:00Z" }]
      pendingApproval: { stage: zones, nodes: 20, digest: def, time: "2026-11-27T10:00:00Z", refusedDigest: abc }
      pace: [{ time: "2026-11-27T10:00:00Z", nodes: 5 }]
      blocking: [{ node: n1, reason: The PodDisruptionBudget agent allows no disruption. }]
"#;

#[test]
fn a_status_is_read_and_written_without_loss() {
    let policy: RolloutPolicy = serde_saphyr::from_str(WITH_STATUS).expect("it is a policy");
    let status = policy.status.as_ref().expect("a status");
    assert_eq!(status.targets[0].stages[0].state, StageState::Soaking);
    let read: Value = serde_saphyr::from_str(WITH_STATUS).expect("it is YAML");
    assert_eq!(serde_json::to_value(&policy).expect("it is JSON"), read);
}
