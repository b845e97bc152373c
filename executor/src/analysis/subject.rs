//! What a call needs to know: the workload, the policy's status of it, and the interval of the check. It is read when the call is
//! asked for. A call that waits does not keep its policy, which may be large, in memory.

use std::time::Duration;

use bytes::Bytes;
use nodewise_api::{Stage, defaults};
use nodewise_projection::Key;
use nodewise_proto::v1::{self, measure::Provider};
use nodewise_runtime::measurements::Subject;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The most bytes of a status that is sent. It has an entry for each wave of a stage.
const MOST_STATUS: usize = 256 << 10;

/// What a call is about.
#[derive(Debug)]
pub(super) struct About {
    /// The workload.
    pub(super) workload: Key,
    /// metadata.uid of the workload.
    pub(super) uid: String,
    /// The policy's status of the workload as JSON: an entry of `status.targets`, or an empty object. Empty if it is not sent.
    pub(super) status: Bytes,
    /// The time between two measurements of the check.
    pub(super) interval: Duration,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Policy {
    spec: Spec,
    status: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    stages: Vec<Stage>,
}

/// Reads the policy of a measurement, with the status that the plan has written.
pub(super) fn read(subject: &Subject, request: &v1::Measure) -> Result<About, String> {
    let policy = subject.policy.as_ref();
    let policy = policy.and_then(|policy| serde_json::from_slice::<Policy>(&policy.object).ok());
    let mut policy = policy.unwrap_or_default();
    let about = About {
        workload: subject.workload.clone(),
        uid: subject.uid.clone(),
        status: Bytes::new(),
        interval: interval(&policy.spec, request.id.as_ref()).into(),
    };
    if matches!(request.provider, Some(Provider::Prometheus(_))) {
        return Ok(about);
    }
    let mut patch: Value = serde_json::from_slice(&subject.status_patch).unwrap_or_default();
    if let Some(written) = patch.get_mut("status") {
        merge(&mut policy.status, written.take());
    }
    let targets = policy.status.get_mut("targets");
    let targets = targets.and_then(Value::as_array_mut);
    let mut targets = targets.into_iter().flatten();
    let target = targets.find(|target| {
        target["uid"] == *subject.uid || (target["uid"].is_null() && target["name"] == *subject.workload.name)
    });
    let status = target.map_or_else(|| Value::Object(Map::new()), Value::take);
    let status = status.to_string();
    if status.len() > MOST_STATUS {
        return Err(format!(
            "the policy's status of {} has {} bytes; at most {MOST_STATUS} are sent",
            subject.workload.name,
            status.len()
        ));
    }
    Ok(About {
        status: status.into(),
        ..about
    })
}

/// The interval of the check. The name of a wave begins with that of its stage.
fn interval(spec: &Spec, id: Option<&v1::MeasurementId>) -> nodewise_api::Duration {
    let found = id.and_then(|id| {
        let is_of_stage = |stage: &&Stage| {
            let rest = id.stage.strip_prefix(&*stage.name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let checks = spec
            .stages
            .iter()
            .filter(is_of_stage)
            .flat_map(|stage| &stage.analysis);
        checks
            .filter(|check| check.name == id.check)
            .find_map(|check| check.interval)
    });
    found.unwrap_or(defaults::ANALYSIS_INTERVAL)
}

/// Applies a JSON merge patch (RFC 7386).
fn merge(into: &mut Value, patch: Value) {
    let Value::Object(members) = patch else {
        if !patch.is_null() {
            *into = patch;
        }
        return;
    };
    if !into.is_object() {
        *into = Value::Object(Map::new());
    }
    let Some(object) = into.as_object_mut() else {
        return;
    };
    for (name, value) in members {
        if value.is_null() {
            object.remove(&name);
        } else {
            merge(object.entry(name).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use nodewise_projection::{Key, RolloutPolicy};
    use nodewise_proto::workload::DAEMON_SET;
    use serde_json::json;

    use super::*;

    fn subject(status: &Value, patch: &str) -> Subject {
        let object = json!({
            "metadata": {"namespace": "ns", "name": "p", "uid": "uid-p", "resourceVersion": "1"},
            "spec": {"targets": {"names": ["agent"]}, "stages": [
                {"name": "canary", "analysis": [{"name": "errors", "interval": "5s"}, {"name": "others"}]},
                {"name": "zones", "groupBy": "zone", "analysis": [{"name": "errors", "interval": "7s"}]},
            ]},
            "status": status,
        });
        let policy = RolloutPolicy::from_json(&object).expect("a policy");
        Subject {
            policy: Some(Arc::new(policy)),
            status_patch: Bytes::copy_from_slice(patch.as_bytes()),
            ..Subject::new(Key::new(DAEMON_SET, "ns", "agent"), "u1")
        }
    }

    fn status(subject: &Subject) -> Value {
        let about = read(subject, &v1::Measure::default()).expect("a small status");
        serde_json::from_slice(&about.status).expect("JSON")
    }

    // The status that the plan writes is newer than that of its snapshot.
    #[test]
    fn the_status_of_the_workload() {
        let targets = json!({"targets": [{"name": "other", "uid": "u2"}, {"name": "agent", "uid": "u1", "state": "Soaking"}]});
        let before = subject(&targets, "");
        assert_eq!(status(&before)["state"], "Soaking");
        let patch = r#"{"status": {"summary": null, "targets": [{"name": "agent", "uid": "u1", "state": "Analyzing"}]}}"#;
        assert_eq!(status(&subject(&targets, patch))["state"], "Analyzing");
        assert_eq!(status(&subject(&Value::Null, patch))["state"], "Analyzing");
        assert_eq!(status(&subject(&Value::Null, "")), json!({}));
        let replaced = json!({"targets": [{"name": "agent", "uid": "u0"}]});
        assert_eq!(
            status(&subject(&replaced, "")),
            json!({}),
            "an earlier workload of the name"
        );
        assert_eq!(status(&Subject::new(before.workload, "u1")), json!({}));
    }

    #[test]
    fn the_interval_is_that_of_the_check() {
        let subject = subject(&Value::Null, "");
        for (stage, check, seconds) in [
            ("canary", "errors", 5),
            ("zones/a", "errors", 7),
            ("canary", "others", 60),
            ("canaryx", "errors", 60),
        ] {
            let id = v1::MeasurementId {
                stage: stage.to_owned(),
                check: check.to_owned(),
                ..v1::MeasurementId::default()
            };
            let request = v1::Measure {
                id: Some(id),
                ..v1::Measure::default()
            };
            let found = read(&subject, &request).expect("a small status").interval;
            assert_eq!(found, Duration::from_secs(seconds), "{stage} {check}");
        }
    }

    #[test]
    fn a_status_is_sent_only_where_it_is_used_and_if_it_is_small() {
        let target = json!({"name": "agent", "uid": "u1", "message": "x".repeat(MOST_STATUS)});
        let large = subject(&json!({ "targets": [target] }), "");
        let mut request = v1::Measure::default();
        let error = read(&large, &request).expect_err("it is too large");
        assert!(error.ends_with("bytes; at most 262144 are sent"), "{error}");
        request.provider = Some(Provider::Prometheus(v1::PrometheusQuery::default()));
        assert_eq!(read(&large, &request).expect("it is not sent").status, "");
    }
}
