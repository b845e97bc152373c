//! Schemas of fields that the types alone do not give.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use schemars::{JsonSchema as _, Schema, SchemaGenerator, json_schema};

const MAX_NODES: u32 = i32::MAX.unsigned_abs();

fn integer(minimum: u32) -> Schema {
    json_schema!({ "type": "integer", "format": "int32", "minimum": minimum, "maximum": MAX_NODES })
}

/// A count that may be 0.
pub(crate) fn count(_: &mut SchemaGenerator) -> Schema {
    integer(0)
}

/// A count of at least 1.
pub(crate) fn at_least_one(_: &mut SchemaGenerator) -> Schema {
    integer(1)
}

pub(crate) fn int_or_percent(_minimum: u32) -> Schema {
    json_schema!({ "x-kubernetes-int-or-string": true, "maxLength": 8 })
}

/// At least 1, or `1%`.
pub(crate) fn positive_int_or_percent(_: &mut SchemaGenerator) -> Schema {
    int_or_percent(1)
}

fn text(max_length: u32) -> Schema {
    json_schema!({ "type": "string", "maxLength": max_length })
}

pub(crate) fn duration() -> Schema {
    text(32)
}

/// A duration of at least a second.
pub(crate) fn interval(_: &mut SchemaGenerator) -> Schema {
    duration()
}

pub(crate) fn time_of_day() -> Schema {
    text(32)
}

pub(crate) fn time_zone(_: &mut SchemaGenerator) -> Schema {
    text(64)
}

pub(crate) fn dns_label(_: &mut SchemaGenerator) -> Schema {
    text(63)
}

pub(crate) fn dns_subdomain(_: &mut SchemaGenerator) -> Schema {
    text(253)
}

pub(crate) fn label_key(_: &mut SchemaGenerator) -> Schema {
    text(317)
}

pub(crate) fn url(_: &mut SchemaGenerator) -> Schema {
    text(1024)
}

pub(crate) fn host_and_port(_: &mut SchemaGenerator) -> Schema {
    text(259)
}

/// Names of DaemonSets.
pub(crate) fn names(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": dns_subdomain(generator), "maxItems": 100, "x-kubernetes-list-type": "set" })
}

pub(crate) fn label_selector(generator: &mut SchemaGenerator) -> Schema {
    LabelSelector::json_schema(generator)
}

pub(crate) fn conditions(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": Condition::json_schema(generator), "maxItems": 16, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"] })
}
