//! The status write (D-91): first the cached object with new values. After any error, one live read and one more write.

use crate::actuator::{Actuator, ActuatorError, Written};
use nodewise_proto::v1;
use serde_json::{Map, Value, json};

use super::context::{Context, parse};

/// Writes the workload's status.
pub(super) async fn write<A: Actuator>(
    context: &Context<'_, A>,
    update: &v1::UpdateStatus,
) -> Result<Written, ActuatorError> {
    let key = context.workload_key()?;
    if update.collision_count.is_some() {
        return write_collision_count(context, update).await;
    }
    let mut object = parse(&key, context.object)?;
    set(&mut object, update);
    match context
        .actuator
        .replace_status(&key, object.to_string().into())
        .await
    {
        Ok(written) => Ok(written),
        Err(first) => {
            tracing::debug!(error = %first, "the status write was refused; reading the workload and trying once more");
            let mut live = context.read_workload(holds_uid(context, update)).await?;
            set(&mut live, update);
            context
                .actuator
                .replace_status(&key, live.to_string().into())
                .await
        }
    }
}

fn holds_uid<A>(context: &Context<'_, A>, update: &v1::UpdateStatus) -> bool {
    update.uid_precondition || context.status_with_uid
}

/// Raises the collision count, unless another writer has raised it since the snapshot.
async fn write_collision_count<A: Actuator>(
    context: &Context<'_, A>,
    update: &v1::UpdateStatus,
) -> Result<Written, ActuatorError> {
    let key = context.workload_key()?;
    let mut live = context.read_workload(holds_uid(context, update)).await?;
    let present = live["status"]["collisionCount"].as_i64();
    if present != update.expected_collision_count.map(i64::from) {
        return Err(ActuatorError::unclear(format!(
            "{key} has collision count {present:?}, the plan was made for {:?}",
            update.expected_collision_count
        )));
    }
    set(&mut live, update);
    context
        .actuator
        .replace_status(&key, live.to_string().into())
        .await
}

/// Replaces the fields of `object` that `update` names. All other fields stay.
fn set(object: &mut Value, update: &v1::UpdateStatus) {
    let Some(object) = object.as_object_mut() else {
        return;
    };
    let status = object
        .entry("status")
        .or_insert_with(|| Value::Object(Map::new()));
    if !status.is_object() {
        *status = Value::Object(Map::new());
    }
    if let Some(new) = &update.status {
        status["currentNumberScheduled"] = json!(new.current_number_scheduled);
        status["numberMisscheduled"] = json!(new.number_misscheduled);
        status["desiredNumberScheduled"] = json!(new.desired_number_scheduled);
        status["numberReady"] = json!(new.number_ready);
        status["updatedNumberScheduled"] = json!(new.updated_number_scheduled);
        status["numberAvailable"] = json!(new.number_available);
        status["numberUnavailable"] = json!(new.number_unavailable);
        status["observedGeneration"] = json!(new.observed_generation);
    }
    if let Some(count) = update.collision_count {
        status["collisionCount"] = json!(count);
    }
}
