//! The state that the executor keeps between plans, as a message.

use jiff::Timestamp;
use nodewise_planner::snapshot::{Expectations, ExpectedCreate, FailedPodBackoff, SlowStart, State};
use nodewise_proto::v1;

use super::duration;

/// The state as a message.
pub(super) fn state(state: State) -> v1::ReconcileState {
    v1::ReconcileState {
        expectations: state.expectations.map(expectations),
        failed_pod_backoffs: state.failed_pod_backoffs.into_iter().map(backoff).collect(),
        pod_name_collisions: state
            .pod_name_collisions
            .into_iter()
            .map(|known| v1::PodNameCollision {
                node_name: known.node_name,
                count: known.count,
                refused_count: known.refused,
            })
            .collect(),
        slow_start: state.slow_start.map(slow_start),
        used_pod_names: state
            .used_pod_names
            .into_iter()
            .map(|used| v1::UsedPodName {
                node_name: used.node_name,
                pod_name: used.pod_name,
            })
            .collect(),
        blocked_evictions: state
            .blocked_evictions
            .into_iter()
            .map(|blocked| v1::BlockedEviction {
                pod_uid: blocked.pod_uid,
                message: blocked.message,
                retry_time: Some(timestamp(blocked.retry_at)),
                attempts: blocked.attempts,
            })
            .collect(),
    }
}

fn slow_start(slow_start: SlowStart) -> v1::SlowStart {
    v1::SlowStart {
        size: slow_start.size,
        revision_hash: slow_start.revision_hash,
        last: Some(timestamp(slow_start.last)),
    }
}

fn expectations(expectations: Expectations) -> v1::Expectations {
    let create = |ExpectedCreate { pod_name, node_name }| v1::ExpectedCreate { pod_name, node_name };
    v1::Expectations {
        set_at: Some(timestamp(expectations.set_at)),
        creates: expectations.creates.into_iter().map(create).collect(),
        delete_uids: expectations.delete_uids,
    }
}

fn backoff(backoff: FailedPodBackoff) -> v1::FailedPodBackoff {
    v1::FailedPodBackoff {
        observed_generation: backoff.observed_generation,
        node_name: backoff.node_name,
        delay: Some(duration(backoff.delay)),
        last: Some(timestamp(backoff.last)),
    }
}

/// A timestamp as a message. In Protobuf `nanos` is never negative and counts forward from `seconds`, also before 1970.
fn timestamp(timestamp: Timestamp) -> nodewise_proto::Timestamp {
    let nanos = timestamp.as_nanosecond();
    let split = |nanos: i128| (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
    let (seconds, nanos) = split(nanos);
    nodewise_proto::Timestamp {
        seconds: i64::try_from(seconds).expect("the seconds of a Timestamp fit an i64"),
        nanos: i32::try_from(nanos).expect("a remainder below 10^9"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanoseconds_before_1970_count_forward_from_the_second() {
        for (text, seconds, nanos) in [
            ("1969-12-31T23:59:59.75Z", -1, 750_000_000),
            ("1970-01-01T00:00:01.5Z", 1, 500_000_000),
        ] {
            let message = timestamp(text.parse().unwrap());
            assert_eq!((message.seconds, message.nanos), (seconds, nanos), "{text}");
        }
    }
}
