//! Checks the Events of a plan: people read them as messages of the controller.

use nodewise_proto::v1::{self, action::Kind};

/// Longest reason that an apiserver accepts, in bytes.
const MAX_REASON: usize = 128;
/// Longest message that an apiserver accepts, in bytes.
const MAX_MESSAGE: usize = 1024;

/// Checks the Events that an action emits.
pub(super) fn check(action: &v1::Action) -> Result<(), String> {
    let own = match &action.kind {
        Some(Kind::EmitEvent(event)) => Some(event),
        _ => None,
    };
    let mut events = own
        .into_iter()
        .chain(&action.success_events)
        .chain(action.failure_event.as_deref());
    events.try_for_each(check_event)
}

fn check_event(event: &v1::EmitEvent) -> Result<(), String> {
    let v1::EmitEvent {
        r#type: kind,
        reason,
        message,
    } = event;
    if !["Normal", "Warning"].contains(&kind.as_str()) {
        return Err("the type of its event is neither Normal nor Warning".to_owned());
    }
    let is_camel_case = reason.starts_with(|first: char| first.is_ascii_uppercase())
        && reason.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !is_camel_case || reason.len() > MAX_REASON {
        return Err(format!(
            "the reason of its event is no word in UpperCamelCase of at most {MAX_REASON} letters and digits"
        ));
    }
    if message.len() > MAX_MESSAGE {
        return Err(format!(
            "the message of its event has {} bytes, and {MAX_MESSAGE} are the most",
            message.len()
        ));
    }
    Ok(())
}
