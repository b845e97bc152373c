//! The RolloutPolicies of a request.

use std::collections::BTreeSet;

use nodewise_proto::v1;
use serde_json::{Value, json};

use crate::input::Served;

/// The fields of a policy's checks that name a host.
const ADDRESSES: [(&str, &str); 3] = [("prometheus", "address"), ("webhook", "url"), ("grpc", "address")];

/// The uid of a policy as it is in a request. One of a file has none: then its name takes the place.
pub(crate) fn uid(policy: &Served) -> String {
    if policy.uid.is_empty() {
        format!("of-{}", policy.name)
    } else {
        policy.uid.clone()
    }
}

/// A policy as it is in a request.
pub(super) fn message(policy: &Served) -> v1::RolloutPolicy {
    let text = policy.json.get();
    let object = if policy.uid.is_empty() {
        let mut object: Value = serde_json::from_str(text).unwrap_or_default();
        object["metadata"]["uid"] = json!(uid(policy));
        object.to_string()
    } else {
        text.to_owned()
    };
    v1::RolloutPolicy {
        object: object.into(),
        ..v1::RolloutPolicy::default()
    }
}

/// Sets an annotation of the policy of this uid.
pub(super) fn annotate(policy: &mut v1::RolloutPolicy, uid: &str, key: &str, value: &str) {
    let mut object: Value = serde_json::from_slice(&policy.object).unwrap_or_default();
    if object["metadata"]["uid"] == uid {
        object["metadata"]["annotations"][key] = json!(value);
        policy.object = object.to_string().into();
    }
}

/// The hosts that the policies name. Nobody is called here, and which hosts an executor may call is not known.
pub(super) fn hosts(policies: &[Served]) -> Vec<String> {
    let mut hosts = BTreeSet::new();
    for policy in policies {
        let object: Value = serde_json::from_str(policy.json.get()).unwrap_or_default();
        let stages = object["spec"]["stages"].as_array().into_iter().flatten();
        for check in stages.flat_map(|stage| stage["analysis"].as_array().into_iter().flatten()) {
            let named = ADDRESSES
                .iter()
                .filter_map(|(provider, field)| check[provider][field].as_str());
            hosts.extend(named.map(host));
        }
    }
    hosts.into_iter().collect()
}

/// Host and port of a URL, or of an address without scheme.
fn host(address: &str) -> String {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.to_ascii_lowercase()
}
