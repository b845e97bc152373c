//! Checks of a stage that were inconclusive too often: `nodewise rollout resume` lets them go on. The planner knows no request for it; it
//! counts by the policy's status, so that is what is written.

use nodewise_proto::v1;
use serde_json::{Value, json};

use super::{
    policy_page::{named, page},
    proposal::{Proposal, Proposed},
    quote::word,
};
use crate::{
    input::{Cluster, Served},
    text::PLAIN,
};

/// The limit of a check that names none.
const DEFAULT_LIMIT: u64 = 0;

/// A check that is held.
struct Held {
    stage: String,
    name: String,
    inconclusive: u64,
    limit: u64,
    message: String,
    /// Where it is in the policy.
    pointer: String,
}

/// Lets the checks go on without their inconclusive measurements. `None` if none is held for that.
pub(super) fn resume(cluster: &Cluster, workload: &Served, policy: &v1::PolicyRollout) -> Option<Proposed> {
    let mut served = cluster.policies_in(&workload.namespace).iter();
    let served = served.find(|served| served.name == policy.name)?;
    let object: Value = serde_json::from_str(served.json.get()).ok()?;
    let held = held(&object, workload);
    if held.is_empty() {
        return None;
    }
    let mut page = page(
        workload,
        policy,
        "makes its checks again that were inconclusive too often",
    );
    let mut status = object["status"].clone();
    let mut operations = Vec::new();
    for check in &held {
        let Held {
            stage,
            name,
            inconclusive,
            limit,
            message,
            pointer,
        } = check;
        let said = match message.as_str() {
            "" => String::new(),
            message => format!("; the last one said: {message}"),
        };
        let text = format!(
            "check {name} of stage {stage}: {inconclusive} inconclusive, and inconclusiveLimit is {limit}{said}"
        );
        page.marked(2, "·", PLAIN, PLAIN, &text);
        let of_status = pointer.strip_prefix("/status").unwrap_or_default();
        if let Some(check) = status.pointer_mut(of_status) {
            check["inconclusive"] = json!(0);
        }
        operations.push(json!({"op": "test", "path": format!("{pointer}/name"), "value": name}));
        operations.push(json!({"op": "replace", "path": format!("{pointer}/inconclusive"), "value": 0}));
    }
    let text = "these measurements do not count any more; those that passed or failed still do. If it is inconclusive again, the rollout is \
                held again: a higher inconclusiveLimit in the policy prevents that";
    page.marked(2, "·", PLAIN, PLAIN, text);
    let question = format!("Make the inconclusive checks of {} again?", workload.title());
    let command = format!(
        "kubectl patch {} --subresource=status --type=json -p {}",
        named(workload, policy),
        word(&Value::Array(operations).to_string())
    );
    // A list is replaced as a whole, so the apiserver must refuse the patch if the status has changed since.
    let patch = json!({
        "metadata": {"resourceVersion": object["metadata"]["resourceVersion"]},
        "status": {"targets": status["targets"]},
    });
    let proposal = Proposal::patch_policy(workload, policy, page, &command, question, patch);
    Some(Proposed::Change(proposal.of_status()))
}

/// The checks of the policy, of stages that are not complete, with more inconclusive measurements than they may have. A check that only
/// the status has holds nothing.
fn held(policy: &Value, workload: &Served) -> Vec<Held> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut held = Vec::new();
    for (target_index, target) in list(&policy["status"]["targets"]).iter().enumerate() {
        if target["name"] != workload.name.as_str() || target["uid"] != workload.uid.as_str() {
            continue;
        }
        for (stage_index, stage) in list(&target["stages"]).iter().enumerate() {
            if stage["state"] == "Complete" {
                continue;
            }
            for (index, check) in list(&stage["analysis"]).iter().enumerate() {
                let (stage, name) = (text(&stage["name"]), text(&check["name"]));
                let Some(limit) = limit(policy, &stage, &name) else {
                    continue;
                };
                let inconclusive = check["inconclusive"].as_u64().unwrap_or_default();
                if inconclusive > limit {
                    held.push(Held {
                        stage,
                        name,
                        inconclusive,
                        limit,
                        message: text(&check["message"]),
                        pointer: format!(
                            "/status/targets/{target_index}/stages/{stage_index}/analysis/{index}"
                        ),
                    });
                }
            }
        }
    }
    held
}

/// The inconclusiveLimit of a check; `None` if the spec has no such check. A wave has the name of its stage and the value of its label.
fn limit(policy: &Value, stage: &str, check: &str) -> Option<u64> {
    let all = policy["spec"]["stages"].as_array().map_or(&[][..], Vec::as_slice);
    let of = |name: &str| all.iter().find(|stage| stage["name"] == name);
    let found = of(stage).or_else(|| of(stage.split_once('/')?.0))?;
    let mut checks = found["analysis"].as_array()?.iter();
    let found = checks.find(|found| found["name"] == check)?;
    Some(found["inconclusiveLimit"].as_u64().unwrap_or(DEFAULT_LIMIT))
}
