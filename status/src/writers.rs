//! Controllers that work on the same workload.

use jiff::{SignedDuration, Timestamp};
use nodewise_projection::moment;
use nodewise_proto::v1;

use crate::span::span;

/// A client that has written the status within this time counts as a controller of the workload. The apiserver keeps the name of a
/// former controller for ever.
const ACTIVE: SignedDuration = SignedDuration::from_mins(10);

/// A sentence about the clients that write the status of a workload, if more than one does.
#[must_use]
pub fn several_writers(writers: &[v1::Writer], now: Timestamp) -> Option<String> {
    let active = writers.iter().filter_map(|writer| {
        let at = writer.at.and_then(moment)?;
        let is_active = now.duration_since(at) <= ACTIVE;
        is_active.then(|| {
            format!(
                "{} ({} ago)",
                writer.manager,
                span(now.duration_since(at).as_secs())
            )
        })
    });
    let active: Vec<String> = active.collect();
    let [others @ .., last] = active.as_slice() else {
        return None;
    };
    (!others.is_empty()).then(|| {
        format!(
            "{} and {last} write its status: if both are controllers, each undoes what the other one does; stop one of them",
            others.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use nodewise_projection::timestamp;

    use super::*;

    #[test]
    fn only_clients_that_still_write_are_told() {
        let now: Timestamp = "2026-01-01T12:00:00Z".parse().expect("a time");
        let writers = |all: &[(&str, i64)]| -> Vec<v1::Writer> {
            let writer = |(manager, seconds): &(&str, i64)| v1::Writer {
                manager: (*manager).to_owned(),
                at: Some(timestamp(now - SignedDuration::from_secs(*seconds))),
            };
            all.iter().map(writer).collect()
        };
        let rest = "write its status: if both are controllers, each undoes what the other one does; stop one of them";
        for (all, expected) in [
            (&[][..], None),
            (&[("a", 1)], None),
            (&[("a", 1), ("b", 601)], None),
            (
                &[("a", 1), ("b", 300)],
                Some(format!("a (1s ago) and b (5m ago) {rest}")),
            ),
            (
                &[("a", 1), ("b", 2), ("c", 3)],
                Some(format!("a (1s ago), b (2s ago) and c (3s ago) {rest}")),
            ),
        ] {
            assert_eq!(several_writers(&writers(all), now), expected, "{all:?}");
        }
    }
}
