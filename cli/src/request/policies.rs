//! The RolloutPolicies of a request.

use std::collections::BTreeSet;

use nodewise_api::{accepted, host_not_allowed};
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

/// The hosts that the policies name, with their ports. Nobody is called here. Only an executor knows which hosts it may call, so those
/// are left out of which it has written to the status of a policy that it may not.
pub(super) fn hosts(policies: &[Served]) -> Vec<String> {
    let objects = policies
        .iter()
        .map(|policy| serde_json::from_str(policy.json.get()).unwrap_or_default());
    hosts_of(&objects.collect::<Vec<_>>())
}

fn hosts_of(policies: &[Value]) -> Vec<String> {
    let refusals: Vec<&str> = policies.iter().filter_map(refusal).collect();
    let named: Vec<Host> = policies.iter().flat_map(named).collect();
    let is_refused = |host: &Host| {
        let refused = host_not_allowed(&host.authority);
        refusals.iter().any(|refusal| refusal.contains(&refused))
    };
    let refused: BTreeSet<&str> = named
        .iter()
        .filter(|host| is_refused(host))
        .map(|host| &*host.with_port)
        .collect();
    let hosts: BTreeSet<&str> = named.iter().map(|host| &*host.with_port).collect();
    hosts
        .difference(&refused)
        .map(|host| (*host).to_owned())
        .collect()
}

/// A host that a check names.
struct Host {
    /// As it is named.
    authority: String,
    /// With the port of the scheme, if no port is named.
    with_port: String,
}

fn named(policy: &Value) -> impl Iterator<Item = Host> {
    let stages = policy["spec"]["stages"].as_array().into_iter().flatten();
    let checks = stages.flat_map(|stage| stage["analysis"].as_array().into_iter().flatten());
    checks.flat_map(|check| {
        let addresses = ADDRESSES.iter();
        let addresses = addresses.filter_map(move |(provider, field)| check[provider][field].as_str());
        addresses.map(Host::of)
    })
}

impl Host {
    /// That of a URL, or of an address without scheme.
    fn of(address: &str) -> Self {
        let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let authority = authority.to_ascii_lowercase();
        let is_number = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
        let has_port = authority
            .rsplit_once(':')
            .is_some_and(|(_, port)| is_number(port));
        let with_port = match scheme {
            "http" if !has_port => format!("{authority}:80"),
            "https" if !has_port => format!("{authority}:443"),
            _ => authority.clone(),
        };
        Self { authority, with_port }
    }
}

/// Why an executor did not accept the policy. `None` if it did, or has not said.
fn refusal(policy: &Value) -> Option<&str> {
    let refused = accepted(&policy["status"]).filter(|condition| condition["status"] == "False");
    refused?["message"].as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A policy with a check of each address, and the message with which it was not accepted.
    fn policy(addresses: &[&str], refused: Option<&str>) -> Value {
        let check = |address: &&str| json!({"webhook": {"url": address}});
        let checks: Vec<Value> = addresses.iter().map(check).collect();
        let conditions = refused.map(|host| {
            let message = format!("stages[0]: {}; whoever runs it", host_not_allowed(host));
            json!([{"type": "Accepted", "status": "False", "message": message}])
        });
        json!({"spec": {"stages": [{"analysis": checks}]}, "status": {"conditions": conditions}})
    }

    #[test]
    fn hosts_have_ports_and_those_that_an_executor_refused_are_left_out() {
        let refused = policy(
            &["http://Prom/x", "https://checks/y", "http://other:9090"],
            Some("prom"),
        );
        let table = [
            (
                vec![policy(&["http://prom", "checks:1"], None)],
                vec!["checks:1", "prom:80"],
            ),
            (vec![refused.clone()], vec!["checks:443", "other:9090"]),
            // Another policy names it as well, and no executor has looked at that one.
            (
                vec![
                    refused.clone(),
                    policy(&["http://prom:80/z", "https://[::1]"], None),
                ],
                vec!["[::1]:443", "checks:443", "other:9090"],
            ),
            // Another port of the same host was not refused.
            (
                vec![policy(&["http://prom:9090"], Some("prom"))],
                vec!["prom:9090"],
            ),
        ];
        for (policies, expected) in table {
            assert_eq!(hosts_of(&policies), expected, "{policies:?}");
        }
    }
}
