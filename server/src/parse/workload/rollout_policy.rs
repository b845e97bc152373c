//! Parses RolloutPolicies. Whoever may write a policy writes its spec, so an odd spec is no error of the request: the policy holds the
//! rollouts of its targets, and its status says why (L-2). Only metadata that the apiserver sets must be there.

use std::collections::HashSet;

use nodewise_api as api;
use nodewise_planner::{
    rollout::{
        Disruption, InMaintenance, MOST_STAGES, NotReady, OnFailure, Order, Pace, Policy, Requests, Spec,
        Stage, Targets, Unadmitted, Window,
        analysis::{Check, Condition, When},
        measurement::Provider,
        status::PolicyStatus,
    },
    snapshot::{IntOrString, Selector},
};
use nodewise_proto::v1;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use super::super::{
    json::{self, Meta},
    problems::{Path, Problems},
    selector,
};

/// The version of the API that this server knows.
const API_VERSION: &str = "nodewise.dev/v1alpha1";
/// The most bytes of an object.
const MOST_BYTES: usize = 1 << 20;
/// The most checks of a stage, and windows. The CRD has the same limits.
const MOST_CHECKS: usize = 10;
const MOST_WINDOWS: usize = 32;
/// The most bytes of a digest. The CRD has the same limit.
const MOST_DIGEST: usize = 128;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Object<'a> {
    api_version: Option<String>,
    #[serde(default)]
    metadata: Meta,
    #[serde(borrow)]
    spec: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
}

/// The part of a spec that says whom the policy concerns.
#[derive(Deserialize)]
struct OnlyTargets<'a> {
    #[serde(borrow)]
    targets: &'a RawValue,
}

/// Reads the policy at `at`. `hosts` are those that the executor may call.
pub(super) fn read(
    message: &v1::RolloutPolicy,
    hosts: &[String],
    at: &Path<'_>,
    problems: &mut Problems,
) -> Option<Policy> {
    let at = at.field("object");
    let object: Object<'_> = json::read(&message.object, &at, problems)?;
    let (name, uid) = json::identity(&object.metadata, &at, problems)?;
    let meta = object.metadata;
    let text = object.spec.map_or("null", RawValue::get);
    let version = object.api_version.as_deref().unwrap_or(API_VERSION);
    let size = message.object.len();
    let spec = if size > MOST_BYTES {
        Err(format!(
            "the policy has {size} bytes; at most {MOST_BYTES} are taken"
        ))
    } else if version == API_VERSION {
        parse::<api::RolloutPolicySpec>(text).and_then(|spec| self::spec(spec, hosts))
    } else {
        Err(format!(
            "apiVersion is {version:?}, and this version of Nodewise knows {API_VERSION:?}: it cannot tell what the policy asks for"
        ))
    };
    let only = serde_json::from_str::<OnlyTargets<'_>>(text).ok();
    let only = only.and_then(|only| parse::<api::Targets>(only.targets.get()).ok());
    Some(Policy {
        name,
        uid,
        created: meta.created(),
        deleting: meta.is_deleting(),
        resource_version: meta.resource_version.unwrap_or_default(),
        generation: meta.generation.unwrap_or_default(),
        requests: requests(&meta.annotations.unwrap_or_default()),
        targets: only.and_then(|only| targets(only).ok()),
        spec,
        status: status(object.status, &message.former_target_uids),
    })
}

/// Reads a status, without the entries of former targets. One that cannot be read is as good as lost, which costs time only (L-35).
fn status(text: Option<&RawValue>, former: &[String]) -> PolicyStatus {
    let read = text.and_then(|text| serde_json::from_str::<PolicyStatus>(text.get()).ok());
    let mut status = read.unwrap_or_default();
    status.targets.retain(|target| !former.contains(&target.uid));
    status
}

fn requests(annotations: &std::collections::BTreeMap<String, String>) -> Requests {
    let request = |name: &str| {
        let asked = annotations.get(&format!("nodewise.dev/{name}"))?;
        // No digest is longer, and the status must not quote what it cannot have.
        (asked.len() <= MOST_DIGEST).then(|| asked.clone())
    };
    Requests {
        approve: request("approve"),
        reject: request("reject"),
        rollback: request("rollback"),
        resume: request("resume"),
    }
}

/// Reads a spec, or its targets. An error begins with the path of the field. A field that this version does not know is an error: the
/// apiserver keeps only what the kind has, so a newer version has it, and it may say that the rollout must wait (L-44).
fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let mut track = serde_path_to_error::Track::new();
    let mut unknown = None;
    let tracked = serde_path_to_error::Deserializer::new(&mut reader, &mut track);
    let read = serde_ignored::deserialize(tracked, |path| {
        unknown.get_or_insert_with(|| field_path(&path));
    });
    let read = read.map_err(|error| {
        let error = error.to_string();
        let inner = error
            .rfind(" at line ")
            .map_or(error.as_str(), |end| &error[..end]);
        match track.path().to_string().as_str() {
            "." | "?" => format!("spec: {inner}"),
            path => format!("spec.{path}: {inner}"),
        }
    })?;
    match unknown {
        None => Ok(read),
        Some(path) => Err(format!(
            "spec{path}: this version of the planning service does not know the field, and cannot tell what it asks for; correct its spelling, or upgrade the service"
        )),
    }
}

/// The path of a field, as in `.stages[0].name`.
fn field_path(path: &serde_ignored::Path<'_>) -> String {
    use serde_ignored::Path;
    match path {
        Path::Root => String::new(),
        Path::Seq { parent, index } => format!("{}[{index}]", field_path(parent)),
        Path::Map { parent, key } => format!("{}.{key}", field_path(parent)),
        Path::Some { parent } | Path::NewtypeStruct { parent } | Path::NewtypeVariant { parent } => {
            field_path(parent)
        }
    }
}

fn targets(targets: api::Targets) -> Result<Targets, String> {
    match (targets.names, targets.selector) {
        (names, None) if !names.is_empty() => Ok(Targets::Names(names)),
        (names, Some(selector)) if names.is_empty() => {
            let parsed =
                selector::parse(selector).map_err(|error| format!("spec.targets.selector.{error}"))?;
            Ok(Targets::Selector(parsed))
        }
        (names, Some(_)) => Err(format!(
            "spec.targets: has {} names and a selector; it must have one of them",
            names.len()
        )),
        (_, None) => {
            Err("spec.targets: has neither names nor a selector; it must have one of them".to_owned())
        }
    }
}

fn spec(spec: api::RolloutPolicySpec, hosts: &[String]) -> Result<Spec, String> {
    targets(spec.targets)?;
    bound("spec.stages", spec.stages.len(), MOST_STAGES)?;
    bound("spec.windows", spec.windows.len(), MOST_WINDOWS)?;
    let (mut names, mut stages) = (HashSet::new(), Vec::new());
    for (index, stage) in spec.stages.into_iter().enumerate() {
        let at = format!("spec.stages[{index}]");
        if !names.insert(stage.name.clone()) {
            return Err(format!(
                "{at}.name: {:?} is there twice; each stage needs a name of its own",
                stage.name
            ));
        }
        stages.push(self::stage(stage, &at, hosts)?);
    }
    let windows = spec.windows.into_iter().enumerate();
    let nodes = spec.nodes.unwrap_or_default();
    let defaults = Spec::default();
    Ok(Spec {
        paused: spec.paused.unwrap_or_default(),
        partition: spec.partition.map(int_or_string),
        stages,
        not_ready: match nodes.not_ready.unwrap_or_default() {
            api::NotReady::Exempt => NotReady::Exempt,
            api::NotReady::Count => NotReady::Count,
        },
        max_exempt: int_or_string(nodes.max_exempt.unwrap_or(api::defaults::MAX_EXEMPT)),
        in_maintenance: match nodes.in_maintenance.unwrap_or_default() {
            api::Maintenance::Exempt => InMaintenance::Exempt,
            api::Maintenance::First => InMaintenance::First,
            api::Maintenance::Count => InMaintenance::Count,
        },
        unadmitted: match spec.unadmitted.unwrap_or_default() {
            api::Unadmitted::Stable => Unadmitted::Stable,
            api::Unadmitted::Update => Unadmitted::Update,
        },
        order: match spec.order.unwrap_or_default() {
            api::NodeOrder::Name => Order::Name,
            api::NodeOrder::OldestPod => Order::OldestPod,
        },
        pace: spec
            .pace
            .map(|pace| {
                at_least_one("spec.pace.nodes", pace.nodes)?;
                Ok::<_, String>(Pace {
                    nodes: pace.nodes as usize,
                    interval: pace.interval.into(),
                })
            })
            .transpose()?,
        disruption: match spec.disruption.unwrap_or_default() {
            api::Disruption::Delete => Disruption::Delete,
            api::Disruption::Evict => Disruption::Evict,
        },
        windows: windows
            .map(|(index, window)| {
                self::window(&window).map_err(|error| format!("spec.windows[{index}].{error}"))
            })
            .collect::<Result<_, _>>()?,
        progress_deadline: spec
            .progress_deadline_seconds
            .map_or(defaults.progress_deadline, |seconds| {
                std::time::Duration::from_secs(seconds.into())
            }),
        max_restarts: spec.max_restarts,
        failure_threshold: int_or_string(spec.failure_threshold.unwrap_or(api::defaults::FAILURE_THRESHOLD)),
        on_failure: match spec.on_failure.unwrap_or_default() {
            api::OnFailure::Rollback => OnFailure::Rollback,
            api::OnFailure::Pause => OnFailure::Pause,
        },
    })
}

fn stage(stage: api::Stage, at: &str, hosts: &[String]) -> Result<Stage, String> {
    if stage.replicas.is_some() && stage.group_by.is_some() {
        return Err(format!(
            "{at}: has replicas and groupBy; it must have at most one of them"
        ));
    }
    bound(&format!("{at}.analysis"), stage.analysis.len(), MOST_CHECKS)?;
    let (mut names, mut checks) = (HashSet::new(), Vec::new());
    for (index, check) in stage.analysis.into_iter().enumerate() {
        let at = format!("{at}.analysis[{index}]");
        if !names.insert(check.name.clone()) {
            return Err(format!(
                "{at}.name: {:?} is there twice; each check needs a name of its own",
                check.name
            ));
        }
        checks.push(self::check(check, &at, hosts)?);
    }
    let parse_selector =
        |selector| selector::parse(selector).map_err(|error| format!("{at}.nodeSelector.{error}"));
    let selector: Option<Selector> = stage.node_selector.map(parse_selector).transpose()?;
    Ok(Stage {
        name: stage.name,
        replicas: stage.replicas.map(int_or_string),
        selector,
        spread_by: stage.spread_by,
        group_by: stage.group_by,
        max_unavailable: stage.max_unavailable.map(int_or_string),
        max_surge: stage.max_surge.map(int_or_string),
        soak: stage.soak.unwrap_or_default().into(),
        checks,
        needs_approval: stage.approval.is_some(),
    })
}

fn check(check: api::Analysis, at: &str, hosts: &[String]) -> Result<Check, String> {
    let provider = match (check.prometheus, check.webhook, check.grpc) {
        (Some(prometheus), None, None) => Provider::Prometheus {
            address: prometheus.address,
            query: prometheus.query,
        },
        (None, Some(webhook), None) => Provider::Webhook { url: webhook.url },
        (None, None, Some(grpc)) => Provider::Grpc {
            address: grpc.address,
            tls: grpc.tls.unwrap_or(true),
        },
        _ => {
            return Err(format!(
                "{at}: must have exactly one of prometheus, webhook and grpc"
            ));
        }
    };
    allowed(&provider, hosts).map_err(|error| format!("{at}.{error}"))?;
    let condition = check
        .success_condition
        .map(|text| Condition::parse(&text).map_err(|error| format!("{at}.successCondition: {error}")))
        .transpose()?;
    if condition.is_none() && matches!(provider, Provider::Prometheus { .. }) {
        return Err(format!(
            "{at}.successCondition: is required with prometheus, for example \"result < 0.01\""
        ));
    }
    let count = check.count.unwrap_or(api::defaults::ANALYSIS_COUNT);
    at_least_one(&format!("{at}.count"), count)?;
    Ok(Check {
        name: check.name,
        when: match check.when.unwrap_or_default() {
            api::AnalysisTime::WhileSoaking => When::WhileSoaking,
            api::AnalysisTime::BeforeStage => When::BeforeStage,
        },
        provider,
        condition,
        credential: check.credential.unwrap_or_default(),
        interval: check.interval.unwrap_or(api::defaults::ANALYSIS_INTERVAL).into(),
        count,
        failure_limit: check.failure_limit.unwrap_or(api::defaults::FAILURE_LIMIT),
        inconclusive_limit: check
            .inconclusive_limit
            .unwrap_or(api::defaults::INCONCLUSIVE_LIMIT),
        consecutive_error_limit: check
            .consecutive_error_limit
            .unwrap_or(api::defaults::CONSECUTIVE_ERROR_LIMIT),
    })
}

/// Whether the executor may call the one who is asked (L-32).
fn allowed(provider: &Provider, hosts: &[String]) -> Result<(), String> {
    let (field, address) = match provider {
        Provider::Prometheus { address, .. } => ("prometheus.address", address),
        Provider::Webhook { url } => ("webhook.url", url),
        Provider::Grpc { address, .. } => ("grpc.address", address),
    };
    let of_url = |rest: &'_ str| rest.split(['/', '?', '#']).next().unwrap_or_default().to_owned();
    let (authority, scheme_port) = match address.split_once("://") {
        Some(("http", rest)) => (of_url(rest), ":80"),
        Some(("https", rest)) => (of_url(rest), ":443"),
        None if matches!(provider, Provider::Grpc { .. }) => (address.clone(), ""),
        _ => {
            return Err(format!(
                "{field}: {address:?} must begin with http:// or https://"
            ));
        }
    };
    let authority = authority.to_ascii_lowercase();
    // A user before the host is not a host that anybody meant to allow.
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            (host, &authority[host.len()..])
        }
        _ => (authority.as_str(), scheme_port),
    };
    let with_port = format!("{host}{port}");
    if !authority.contains('@')
        && hosts
            .iter()
            .any(|allowed| *allowed == with_port || allowed == host)
    {
        return Ok(());
    }
    Err(format!(
        "{field}: {}; whoever runs it allows hosts with --analysis-host",
        api::host_not_allowed(&authority)
    ))
}

fn window(window: &api::Window) -> Result<Window, String> {
    let days: Vec<String> = window.days.iter().map(|day| format!("{day:?}")).collect();
    let time = |time: &Option<api::TimeOfDay>| time.map(|time| time.to_string());
    let (start, end) = (time(&window.start_time), time(&window.end_time));
    Window::parse(
        &days,
        start.as_deref(),
        end.as_deref(),
        window.time_zone.as_deref().unwrap_or_default(),
    )
}

fn int_or_string(value: api::IntOrPercent) -> IntOrString {
    match value {
        api::IntOrPercent::Number(number) => IntOrString::Int(i32::try_from(number).unwrap_or(i32::MAX)),
        api::IntOrPercent::Percent(percent) => IntOrString::String(format!("{percent}%")),
    }
}

fn at_least_one(field: &str, number: u32) -> Result<(), String> {
    if number == 0 {
        return Err(format!("{field}: is 0; it must be at least 1"));
    }
    Ok(())
}

fn bound(field: &str, count: usize, most: usize) -> Result<(), String> {
    if count > most {
        return Err(format!("{field}: has {count} entries; at most {most} are taken"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use nodewise_planner::rollout::status as ours;
    use serde_json::{Value, json};

    use super::*;

    fn policy(spec: &Value) -> Policy {
        let object = json!({
            "apiVersion": "nodewise.dev/v1alpha1",
            "kind": "RolloutPolicy",
            "metadata": {"name": "agents", "namespace": "ns", "uid": "u", "resourceVersion": "7", "generation": 2,
                "creationTimestamp": "2026-11-27T10:00:00Z", "annotations": {"nodewise.dev/approve": "abc"}},
            "spec": spec,
            "status": {"observedGeneration": 1, "targets": [
                {"name": "gone", "uid": "deleted"}, {"name": "agent", "uid": "a", "state": "Soaking", "desired": 3},
            ]},
        });
        read_object(&object).expect("a policy")
    }

    fn read_object(object: &Value) -> Option<Policy> {
        let message = v1::RolloutPolicy {
            object: object.to_string().into(),
            former_target_uids: vec!["deleted".to_owned()],
        };
        let hosts = ["prometheus:9090".to_owned(), "hooks".to_owned()];
        let mut problems = Problems::default();
        let policy = read(&message, &hosts, &Path::root("policy"), &mut problems);
        assert_eq!(policy.is_some(), problems.is_empty());
        policy
    }

    #[test]
    fn a_whole_policy_is_read() {
        let spec = json!({
            "targets": {"names": ["agent"]},
            "partition": "10%",
            "stages": [
                {"name": "canary", "replicas": 5, "nodeSelector": {"matchLabels": {"pool": "canary"}}, "spreadBy": "zone",
                 "maxUnavailable": 1, "soak": "10m", "approval": "Required",
                 "analysis": [{"name": "errors", "prometheus": {"address": "http://prometheus:9090", "query": "up"},
                    "successCondition": "result < 0.01", "interval": "1m", "count": 5, "failureLimit": 1}]},
                {"name": "zones", "groupBy": "zone", "maxUnavailable": "10%"},
            ],
            "nodes": {"notReady": "Count", "maxExempt": 3, "inMaintenance": "First"},
            "unadmitted": "Update",
            "order": "OldestPod",
            "pace": {"nodes": 20, "interval": "1m"},
            "disruption": "Evict",
            "windows": [{"days": ["Mon", "Fri"], "startTime": "09:00", "endTime": "16:00", "timeZone": "Europe/Berlin"}],
            "progressDeadlineSeconds": 1800,
            "maxRestarts": 3,
            "failureThreshold": "5%",
            "onFailure": "Pause",
        });
        let policy = policy(&spec);
        assert_eq!(policy.requests.approve.as_deref(), Some("abc"));
        assert_eq!((policy.generation, policy.resource_version.as_str()), (2, "7"));
        assert_eq!(policy.status.targets[0].desired, 3);
        let spec = policy.spec.expect("a spec");
        assert_eq!(spec.stages[0].checks[0].count, 5);
        assert_eq!(spec.stages[0].soak, std::time::Duration::from_mins(10));
        assert!(spec.stages[0].needs_approval && !spec.stages[1].needs_approval);
        assert_eq!(
            (spec.order, spec.disruption, spec.on_failure),
            (Order::OldestPod, Disruption::Evict, OnFailure::Pause)
        );
        assert_eq!((spec.windows.len(), spec.max_restarts), (1, Some(3)));
    }

    #[test]
    fn a_policy_with_nothing_but_targets_has_the_defaults() {
        let read = policy(&json!({"targets": {"names": ["agent"]}}));
        assert_eq!(read.spec, Ok(Spec::default()));
    }

    // L-2, L-32: the field, what was found, and what would be right. The targets count as far as they can be read.
    #[test]
    fn a_spec_that_cannot_be_used_says_why() {
        let names = json!({"names": ["agent"]});
        let stage = |stage: Value| json!({"targets": names, "stages": [stage]});
        let check = |check: Value| stage(json!({"name": "a", "analysis": [check]}));
        let table = [
            (json!(null), vec!["spec"]),
            (json!({}), vec!["targets"]),
            (
                json!({"targets": {}}),
                vec!["spec.targets", "neither names nor a selector"],
            ),
            (
                json!({"targets": {"names": ["a"], "selector": {}}}),
                vec!["spec.targets", "has 1 names and a selector"],
            ),
            (
                json!({"targets": {"selector": {"matchExpressions": [{"key": "a", "operator": "Maybe"}]}}}),
                vec!["spec.targets.selector.matchExpressions[0]", "Maybe"],
            ),
            (
                json!({"targets": names, "partition": "many"}),
                vec!["spec.partition", "many", "percentage"],
            ),
            (
                json!({"targets": names, "onFailure": "Panic"}),
                vec!["spec.onFailure", "Panic", "Rollback"],
            ),
            (
                json!({"targets": names, "pace": {"nodes": 0, "interval": "1m"}}),
                vec!["spec.pace.nodes", "is 0", "at least 1"],
            ),
            (
                json!({"targets": names, "windows": [{"startTime": "09:00"}]}),
                vec!["spec.windows[0]", "endTime is missing"],
            ),
            (
                json!({"targets": names, "windows": [{"timeZone": "Mars/Base"}]}),
                vec!["spec.windows[0]", "Mars/Base", "IANA"],
            ),
            (
                json!({"targets": names, "stages": [{"name": "a"}, {"name": "a"}]}),
                vec!["spec.stages[1].name", "\"a\" is there twice"],
            ),
            (
                stage(json!({"name": "a", "replicas": 1, "groupBy": "zone"})),
                vec!["spec.stages[0]", "replicas and groupBy"],
            ),
            (
                stage(json!({"name": "a", "soak": "soon"})),
                vec!["spec.stages[0].soak", "soon", "10m"],
            ),
            (
                check(json!({"name": "c"})),
                vec!["spec.stages[0].analysis[0]", "exactly one of"],
            ),
            (
                check(json!({"name": "c", "webhook": {"url": "http://elsewhere/x"}})),
                vec![
                    "spec.stages[0].analysis[0].webhook.url",
                    "\"elsewhere\"",
                    "--analysis-host",
                ],
            ),
            (
                check(json!({"name": "c", "webhook": {"url": "http://hooks@elsewhere/"}})),
                vec!["webhook.url", "--analysis-host"],
            ),
            (
                check(json!({"name": "c", "webhook": {"url": "ftp://hooks/"}})),
                vec!["webhook.url", "http://"],
            ),
            (
                check(
                    json!({"name": "c", "prometheus": {"address": "http://prometheus:9090", "query": "up"}}),
                ),
                vec!["successCondition", "is required"],
            ),
            (
                check(
                    json!({"name": "c", "webhook": {"url": "http://hooks:1/"}, "successCondition": "result <"}),
                ),
                vec!["spec.stages[0].analysis[0].successCondition", "result <"],
            ),
        ];
        for (spec, said) in table {
            let policy = policy(&spec);
            let why = policy.spec.expect_err("it cannot be used");
            assert!(said.iter().all(|part| why.contains(part)), "{spec}: {why}");
            let known = spec["targets"] == names;
            assert_eq!(policy.targets.is_some(), known, "{spec}");
        }
    }

    #[test]
    fn a_newer_version_of_the_api_holds_and_an_odd_status_is_lost() {
        let object = |version: &str, status: Value| {
            json!({
                "apiVersion": version,
                "metadata": {"name": "agents", "uid": "u"},
                "spec": {"targets": {"names": ["agent"]}},
                "status": status,
            })
        };
        let newer = read_object(&object("nodewise.dev/v1beta1", json!({}))).expect("a policy");
        let why = newer.spec.expect_err("it is held");
        assert!(why.contains("v1beta1") && why.contains("v1alpha1"), "{why}");
        let odd = read_object(&object(API_VERSION, json!({"targets": "none"}))).expect("a policy");
        assert_eq!(odd.status, PolicyStatus::default());
        assert!(
            read_object(&json!({"metadata": {"name": "agents"}, "spec": {}})).is_none(),
            "no uid"
        );
    }

    // L-44: a newer version of the custom resource may have fields that say that a rollout must wait.
    #[test]
    fn a_field_of_a_newer_version_holds() {
        let known = json!({
            "targets": {"selector": {"matchLabels": {"app": "agent"}}},
            "stages": [{"name": "a", "nodeSelector": {"matchExpressions": [{"key": "pool", "operator": "Exists"}]}}],
            "nodes": {"notReady": "Exempt", "maxExempt": "10%"},
            "windows": [{"startTime": "09:00", "endTime": "16:00", "timeZone": "Europe/Berlin"}],
        });
        let policy_with = |pointer: &str| {
            let mut spec = known.clone();
            let parent = spec.pointer_mut(pointer).expect("it is there");
            parent["gate"] = json!("closed");
            policy(&spec)
        };
        policy(&known).spec.expect("every field is known");
        for (pointer, path) in [
            ("", "spec.gate"),
            ("/stages/0", "spec.stages[0].gate"),
            (
                "/stages/0/nodeSelector/matchExpressions/0",
                "spec.stages[0].nodeSelector.matchExpressions[0].gate",
            ),
            ("/nodes", "spec.nodes.gate"),
            ("/windows/0", "spec.windows[0].gate"),
        ] {
            let policy = policy_with(pointer);
            let why = policy.spec.expect_err("it is held");
            assert!(
                why.starts_with(&format!("{path}: ")) && why.contains("upgrade the service"),
                "{why}"
            );
            assert!(policy.targets.is_some(), "{path}: its targets are known");
        }
        for pointer in ["/targets", "/targets/selector"] {
            let policy = policy_with(pointer);
            policy.spec.expect_err("it is held");
            assert_eq!(policy.targets, None, "{pointer}: it may mean any DaemonSet");
        }
    }

    /// A stage of which no field is empty.
    fn full_stage(time: Option<Timestamp>) -> ours::StageStatus {
        ours::StageStatus {
            name: "canary".into(),
            nodes: 1,
            updated: 2,
            available: 3,
            exempt: 4,
            failed: 5,
            state: ours::StageState::Soaking,
            start_time: time,
            soak_start_time: time,
            completion_time: time,
            analysis: vec![ours::CheckStatus {
                name: "errors".into(),
                measurements: 1,
                successful: 2,
                failed: 3,
                inconclusive: 4,
                errors: 5,
                consecutive_errors: 6,
                time,
                value: "1".into(),
                message: "m".into(),
            }],
        }
    }

    // The planner writes the status, and the custom resource has its schema: both must know the same fields.
    #[test]
    fn the_status_of_the_planner_is_that_of_the_custom_resource() {
        let time = Some("2026-11-27T10:00:00Z".parse().expect("a time"));
        let revision = Some(ours::RevisionRef {
            hash: "h".into(),
            number: 3,
        });
        let target = ours::TargetStatus {
            name: "agent".into(),
            uid: "u".into(),
            update_revision: revision.clone(),
            stable_revision: revision,
            rejected_revision: Some(ours::Rejection {
                hash: "h".into(),
                number: 3,
                reason: "Requested".into(),
                message: "m".into(),
                roll_back: true,
                time,
                digest: "d".into(),
            }),
            resumed: Some(ours::Resumed {
                hash: "h".into(),
                time,
            }),
            digest: "d".into(),
            state: ours::State::Soaking,
            message: "m".into(),
            limited: vec!["maxSurge".into()],
            desired: 1,
            updated: 2,
            available: 3,
            max_unavailable: 4,
            start_time: time,
            disrupted_since: time,
            last_update_time: time,
            stages: vec![full_stage(time)],
            approvals: vec![ours::Approval {
                stage: "canary".into(),
                digest: "d".into(),
                time,
            }],
            pending_approval: Some(ours::PendingApproval {
                stage: "canary".into(),
                nodes: 1,
                digest: "d".into(),
                time,
                refused_digest: Some("e".into()),
            }),
            pace: vec![ours::Begun { time, nodes: 1 }],
            blocking: vec![ours::Blocking {
                node: "n".into(),
                reason: "r".into(),
            }],
        };
        let status = PolicyStatus {
            observed_generation: 1,
            conditions: vec![ours::Condition {
                r#type: "Accepted".into(),
                status: "True".into(),
                reason: "Accepted".into(),
                message: "m".into(),
                observed_generation: 1,
                last_transition_time: time,
            }],
            summary: Some(ours::Summary {
                target: "agent".into(),
                stage: "canary".into(),
                updated: "1/2".into(),
                state: "Soaking".into(),
            }),
            targets: vec![target],
        };
        let written = serde_json::to_value(&status).expect("it is written");
        let read: api::RolloutPolicyStatus =
            serde_json::from_value(written.clone()).expect("it is of the custom resource");
        assert_eq!(
            serde_json::to_value(read).expect("it is written"),
            written,
            "no field is lost"
        );
    }
}
