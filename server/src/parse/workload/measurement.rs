//! Parses the measurements that an executor made for RolloutPolicies.

use nodewise_planner::rollout::measurement::{Measurement, MeasurementId, MeasurementResult, Verdict};
use nodewise_proto::v1::{self, measurement::Result};

use super::super::{
    problems::{Path, Problems},
    time,
};

/// The most bytes of a value. As a tree, a value takes up to a hundred times as much.
pub(crate) const MOST_BYTES: usize = 64 << 10;

/// Reads the measurement at `at`. A value that is no JSON is a measurement that could not be made: whoever was asked has written it.
pub(super) fn read(message: &v1::Measurement, at: &Path<'_>, problems: &mut Problems) -> Option<Measurement> {
    let time = time::required(message.time, &at.field("time"), problems);
    let Some(id) = &message.id else {
        problems.add(&at.field("id"), "is required");
        return None;
    };
    let result = match &message.result {
        None => {
            problems.add(
                &at.field("result"),
                "is required: one of value, verdict and error",
            );
            return None;
        }
        Some(Result::Value(value)) if value.len() > MOST_BYTES => MeasurementResult::Error(format!(
            "the value has {} bytes; at most {MOST_BYTES} are taken",
            value.len()
        )),
        Some(Result::Value(value)) => match serde_json::from_str(value) {
            Ok(value) => MeasurementResult::Value(value),
            Err(error) => MeasurementResult::Error(format!("the value is no JSON: {error}")),
        },
        Some(Result::Verdict(verdict)) => MeasurementResult::Verdict(
            match verdict.verdict() {
                v1::AnalysisVerdict::Pass => Verdict::Pass,
                v1::AnalysisVerdict::Fail => Verdict::Fail,
                v1::AnalysisVerdict::Inconclusive | v1::AnalysisVerdict::Unspecified => Verdict::Inconclusive,
            },
            verdict.message.clone(),
        ),
        Some(Result::Error(error)) => MeasurementResult::Error(error.clone()),
    };
    Some(Measurement {
        id: MeasurementId {
            policy_uid: id.policy_uid.clone(),
            revision_hash: id.revision_hash.clone(),
            stage: id.stage.clone(),
            check: id.check.clone(),
            number: id.number,
        },
        time: time?,
        result,
    })
}
