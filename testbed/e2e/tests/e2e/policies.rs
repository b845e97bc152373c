//! The CustomResourceDefinition of RolloutPolicy on a real apiserver: what it accepts, and what it says about what it refuses.

use anyhow::{Context as _, Result, ensure};
use kube::{
    Api,
    api::{DynamicObject, Patch, PatchParams, PostParams},
};
use nodewise_conformance::{DEADLINE, rollout_policies};
use nodewise_testbed::{ControlPlane, eventually, manifests};
use serde_json::{Map, Value, json};

const EXAMPLE: &str = include_str!("../../../../deploy/examples/rollout-policy.yaml");

/// Fields that replace those of a good spec, and what the apiserver must say: the field, what was found, and what would be right.
const REFUSED: &[(&str, &[&str])] = &[
    // Targets
    ("targets: null", &["spec.targets", "Required value"]),
    (
        "targets: {}",
        &[
            "spec.targets: Invalid value",
            "neither names nor selector is set",
            "write the names of DaemonSets",
        ],
    ),
    (
        "targets: { names: [agent], selector: { matchLabels: { app: agent } } }",
        &[
            "spec.targets: Invalid value",
            "names and selector are both set: remove one",
        ],
    ),
    (
        "targets: { names: [] }",
        &["spec.targets.names", "should have at least 1 items"],
    ),
    (
        "targets: { names: [agent, agent] }",
        &["spec.targets.names[1]: Duplicate value: \"agent\""],
    ),
    (
        "targets: { names: [Agent] }",
        &[
            "spec.targets.names[0]",
            "'Agent' is not a name: write lower-case letters",
        ],
    ),
    (
        "targets: { selector: { matchExpressions: [{ key: app, operator: In }] } }",
        &[
            "spec.targets.selector.matchExpressions[0].values: Required value",
            "operator In needs values: write at least one",
        ],
    ),
    (
        "targets: { selector: { matchExpressions: [{ key: app, operator: NotIn, values: [] }] } }",
        &[
            "spec.targets.selector.matchExpressions[0].values: Required value",
            "operator NotIn needs values",
        ],
    ),
    (
        "targets: { selector: { matchExpressions: [{ key: app, operator: Exists, values: [agent] }] } }",
        &[
            "matchExpressions[0].values: Forbidden",
            "operator Exists takes no values: remove them",
        ],
    ),
    (
        "targets: { selector: { matchExpressions: [{ key: app, operator: DoesNotExist, values: [agent] }] } }",
        &[
            "matchExpressions[0].values: Forbidden",
            "operator DoesNotExist takes no values: remove them",
        ],
    ),
    (
        "targets: { selector: { matchExpressions: [{ key: app, operator: Is, values: [agent] }] } }",
        &[
            "matchExpressions[0].operator: Unsupported value: \"Is\"",
            "\"In\", \"NotIn\"",
        ],
    ),
    (
        "targets: { selector: { matchExpressions: [{ key: a/b/c, operator: Exists }] } }",
        &[
            "matchExpressions[0].key",
            "'a/b/c' is not the key of a label: write a key such as",
        ],
    ),
    (
        "targets: { selector: { matchLabels: { app: -agent } } }",
        &[
            "spec.targets.selector.matchLabels.app: Invalid value: \"-agent\"",
            "should match",
        ],
    ),
    // Numbers and percentages
    (
        "partition: 101%",
        &[
            "spec.partition: Invalid value",
            "'101%' is not allowed",
            "from \"0%\" to \"100%\"",
        ],
    ),
    (
        "partition: -1",
        &[
            "spec.partition: Invalid value",
            "-1 is not allowed: write a number of at least 0",
        ],
    ),
    (
        "partition: '5'",
        &[
            "spec.partition: Invalid value",
            "'5' is not allowed",
            "without quotes",
        ],
    ),
    (
        "partition: 5 nodes",
        &[
            "spec.partition: Invalid value",
            "'5 nodes' is not allowed: write a number",
        ],
    ),
    (
        "partition: 3000000000",
        &[
            "spec.partition: Invalid value: 3000000000",
            "3000000000 is not allowed",
        ],
    ),
    (
        "partition: true",
        &[
            "spec.partition: Invalid value",
            "must be of type integer,string: \"boolean\"",
        ],
    ),
    (
        "partition: 1.5",
        &[
            "spec.partition: Invalid value",
            "must be of type integer,string: \"number\"",
        ],
    ),
    (
        "failureThreshold: 0",
        &[
            "spec.failureThreshold: Invalid value",
            "0 is not allowed: write a number of at least 1",
        ],
    ),
    (
        "failureThreshold: 0%",
        &[
            "spec.failureThreshold: Invalid value",
            "'0%' is not allowed",
            "\"1%\"",
        ],
    ),
    (
        "nodes: { maxExempt: 200% }",
        &["spec.nodes.maxExempt: Invalid value", "'200%' is not allowed"],
    ),
    (
        "stages: [{ name: a, replicas: 0 }]",
        &[
            "spec.stages[0].replicas: Invalid value",
            "0 is not allowed: write a number of at least 1",
        ],
    ),
    (
        "stages: [{ name: a, replicas: 101% }]",
        &["spec.stages[0].replicas: Invalid value", "'101%' is not allowed"],
    ),
    (
        "stages: [{ name: a, maxUnavailable: 0 }]",
        &["spec.stages[0].maxUnavailable: Invalid value", "0 is not allowed"],
    ),
    (
        "stages: [{ name: a, maxSurge: 0% }]",
        &["spec.stages[0].maxSurge: Invalid value", "'0%' is not allowed"],
    ),
    (
        "progressDeadlineSeconds: 0",
        &[
            "spec.progressDeadlineSeconds: Invalid value: 0",
            "greater than or equal to 1",
        ],
    ),
    (
        "progressDeadlineSeconds: 10m",
        &[
            "spec.progressDeadlineSeconds: Invalid value",
            "must be of type integer: \"string\"",
        ],
    ),
    (
        "progressDeadlineSeconds: 3000000000",
        &["format int32 in spec.progressDeadlineSeconds"],
    ),
    (
        "maxRestarts: -1",
        &[
            "spec.maxRestarts: Invalid value: -1",
            "greater than or equal to 0",
        ],
    ),
    // Words
    (
        "onFailure: RollBack",
        &[
            "spec.onFailure: Unsupported value: \"RollBack\"",
            "\"Rollback\", \"Pause\"",
        ],
    ),
    (
        "disruption: evict",
        &[
            "spec.disruption: Unsupported value: \"evict\"",
            "\"Delete\", \"Evict\"",
        ],
    ),
    (
        "order: Age",
        &[
            "spec.order: Unsupported value: \"Age\"",
            "\"Name\", \"OldestPod\"",
        ],
    ),
    (
        "unadmitted: Old",
        &[
            "spec.unadmitted: Unsupported value: \"Old\"",
            "\"Stable\", \"Update\"",
        ],
    ),
    (
        "nodes: { notReady: Skip }",
        &[
            "spec.nodes.notReady: Unsupported value: \"Skip\"",
            "\"Exempt\", \"Count\"",
        ],
    ),
    (
        "nodes: { inMaintenance: Last }",
        &[
            "spec.nodes.inMaintenance: Unsupported value: \"Last\"",
            "\"First\"",
        ],
    ),
    (
        "stages: [{ name: a, approval: true }]",
        &["spec.stages[0].approval", "boolean"],
    ),
    (
        "stages: [{ name: a, approval: Optional }]",
        &[
            "spec.stages[0].approval: Unsupported value: \"Optional\"",
            "\"Required\"",
        ],
    ),
    // Stages
    (
        "stages: [{ replicas: 1 }]",
        &["spec.stages[0].name: Required value"],
    ),
    (
        "stages: [{ name: Canary }]",
        &[
            "spec.stages[0].name",
            "'Canary' is not a name: write lower-case letters",
        ],
    ),
    (
        "stages: [{ name: zones/a }]",
        &["spec.stages[0].name", "'zones/a' is not a name"],
    ),
    (
        "stages: [{ name: '' }]",
        &["spec.stages[0].name", "'' is not a name"],
    ),
    (
        "stages: [{ name: canary }, { name: canary }]",
        &["spec.stages[1]: Duplicate value", "\"name\":\"canary\""],
    ),
    (
        "stages: [{ name: zones, replicas: 1, groupBy: zone }]",
        &[
            "spec.stages[0].groupBy: Forbidden",
            "stage 'zones' has both replicas and groupBy: remove one",
        ],
    ),
    (
        "stages: [{ name: a, spreadBy: zone= }]",
        &["spec.stages[0].spreadBy", "'zone=' is not the key of a label"],
    ),
    (
        "stages: [{ name: a, groupBy: a//b }]",
        &["spec.stages[0].groupBy", "'a//b' is not the key of a label"],
    ),
    (
        "stages: [{ name: a, nodeSelector: { matchExpressions: [{ key: pool, operator: In }] } }]",
        &[
            "spec.stages[0].nodeSelector.matchExpressions[0].values: Required value",
            "operator In needs values",
        ],
    ),
    // Durations
    (
        "stages: [{ name: a, soak: 10 }]",
        &["spec.stages[0].soak", "must be of type string: \"integer\""],
    ),
    (
        "stages: [{ name: a, soak: 10 min }]",
        &[
            "spec.stages[0].soak",
            "'10 min' is not a duration",
            "such as 10m, 1h30m or 45s",
        ],
    ),
    (
        "stages: [{ name: a, soak: '' }]",
        &["spec.stages[0].soak", "'' is not a duration"],
    ),
    (
        "stages: [{ name: a, soak: 30m1h }]",
        &[
            "spec.stages[0].soak",
            "'30m1h' is not a duration",
            "in this order",
        ],
    ),
    (
        "stages: [{ name: a, soak: 1d }]",
        &["spec.stages[0].soak", "'1d' is not a duration"],
    ),
    ("pace: { nodes: 20 }", &["spec.pace.interval: Required value"]),
    (
        "pace: { nodes: 0, interval: 1m }",
        &["spec.pace.nodes: Invalid value: 0", "greater than or equal to 1"],
    ),
    (
        "pace: { nodes: 20, interval: 0s }",
        &["spec.pace.interval", "'0s' is too short: write at least 1s"],
    ),
    (
        "pace: { nodes: 20, interval: minute }",
        &["spec.pace.interval", "'minute' is not a duration"],
    ),
    // Windows
    (
        "windows: [{ endTime: '16:00' }]",
        &[
            "spec.windows[0].startTime: Required value",
            "ends at 16:00, but has no start: write both, or neither",
        ],
    ),
    (
        "windows: [{ startTime: '09:00' }]",
        &[
            "spec.windows[0].endTime: Required value",
            "begins at 09:00, but has no end: write both, or neither",
        ],
    ),
    (
        "windows: [{ startTime: '09:00', endTime: '09:00' }]",
        &[
            "spec.windows[0].endTime: Invalid value",
            "begins and ends at 09:00, so it never opens",
        ],
    ),
    (
        "windows: [{ startTime: '9:00', endTime: '16:00' }]",
        &[
            "spec.windows[0].startTime",
            "'9:00' is not a time of the day",
            "such as \"09:30\"",
        ],
    ),
    (
        "windows: [{ startTime: '09:00', endTime: '24:00' }]",
        &[
            "spec.windows[0].endTime",
            "'24:00' is not a time of the day",
            "\"23:59\"",
        ],
    ),
    (
        "windows: [{ days: [Monday] }]",
        &[
            "spec.windows[0].days[0]: Unsupported value: \"Monday\"",
            "\"Mon\", \"Tue\"",
        ],
    ),
    (
        "windows: [{ days: [Mon, Mon] }]",
        &["spec.windows[0].days[1]: Duplicate value: \"Mon\""],
    ),
    (
        "windows: [{ days: [] }]",
        &["spec.windows[0].days", "should have at least 1 items"],
    ),
    (
        "windows: [{ days: [Mon], timeZone: Mars/Olympus }]",
        &[
            "spec.windows[0].timeZone",
            "unknown time zone Mars/Olympus",
            "write a name of the IANA time zone database, such as Europe/Berlin",
        ],
    ),
    (
        "windows: [{ days: [Mon], timeZone: '+02:00' }]",
        &[
            "spec.windows[0].timeZone",
            "'+02:00' is not a time zone: write a name of the IANA",
        ],
    ),
    (
        "windows: [{ days: [Mon], timeZone: Local }]",
        &["spec.windows[0].timeZone", "'Local' is not a time zone"],
    ),
    // Checks
    (
        "stages: [{ name: a, analysis: [{ name: b }] }]",
        &[
            "spec.stages[0].analysis[0]: Invalid value",
            "check 'b' has none: write exactly one of prometheus, webhook and grpc",
        ],
    ),
    (
        "stages: [{ name: a, analysis: [{ name: b, webhook: { url: 'http://a' }, grpc: { address: 'a:1' } }] }]",
        &[
            "spec.stages[0].analysis[0]: Invalid value",
            "check 'b' has webhook and grpc: write exactly one",
        ],
    ),
    (
        "stages: [{ name: a, analysis: [{ name: b, prometheus: { address: 'http://a', query: up } }] }]",
        &[
            "spec.stages[0].analysis[0].successCondition: Required value",
            "check 'b' asks Prometheus, so it needs a condition such as",
        ],
    ),
    (
        "stages: [{ name: a, analysis: [{ name: b, grpc: { address: 'a:1' }, successCondition: 'true' }] }]",
        &[
            "spec.stages[0].analysis[0].successCondition: Forbidden",
            "which decides itself: remove the condition",
        ],
    ),
    (
        "stages: [{ name: a, analysis: [{ name: b, webhook: { url: checks } }] }]",
        &[
            "spec.stages[0].analysis[0].webhook.url",
            "'checks' is not a URL: write a URL that begins with http:// or https://",
        ],
    ),
    (
        "stages: [{ name: a, analysis: [{ name: b, webhook: { url: 'ftp://a/b' } }] }]",
        &[
            "spec.stages[0].analysis[0].webhook.url",
            "'ftp://a/b' is not a URL",
        ],
    ),
    (
        "stages: [{ name: a, analysis: [{ name: b, prometheus: { address: 'prometheus:9090', query: up }, successCondition: 'true' }] }]",
        &[
            "spec.stages[0].analysis[0].prometheus.address",
            "'prometheus:9090' is not a URL",
        ],
    ),
    (
        "stages: [{ name: a, analysis: [{ name: b, grpc: { address: 'http://a' } }] }]",
        &[
            "spec.stages[0].analysis[0].grpc.address",
            "'http://a' is not a host with a port",
            "such as checks.monitoring:9000",
        ],
    ),
    (
        "stages: [{ name: a, analysis: [{ name: b, webhook: { url: 'http://a' }, credential: ../token }] }]",
        &[
            "spec.stages[0].analysis[0].credential",
            "'../token' is not a name",
        ],
    ),
    (
        "stages: [{ name: a, analysis: [{ name: b, webhook: { url: 'http://a' }, interval: 0s }] }]",
        &[
            "spec.stages[0].analysis[0].interval",
            "'0s' is too short: write at least 1s",
        ],
    ),
    (
        "stages: [{ name: a, analysis: [{ name: b, webhook: { url: 'http://a' }, count: 0 }] }]",
        &[
            "spec.stages[0].analysis[0].count: Invalid value: 0",
            "greater than or equal to 1",
        ],
    ),
    (
        "stages: [{ name: a, analysis: [{ name: b, webhook: { url: 'http://a' }, failureLimit: -1 }] }]",
        &[
            "spec.stages[0].analysis[0].failureLimit: Invalid value: -1",
            "greater than or equal to 0",
        ],
    ),
    (
        "stages: [{ name: a, analysis: [{ name: b, webhook: { url: 'http://a' }, when: Later }] }]",
        &[
            "spec.stages[0].analysis[0].when: Unsupported value: \"Later\"",
            "\"WhileSoaking\", \"BeforeStage\"",
        ],
    ),
    (
        "stages: [{ name: a, analysis: [{ name: b, webhook: { url: 'http://a' } }, { name: b, webhook: { url: 'http://a' } }] }]",
        &["spec.stages[0].analysis[1]: Duplicate value", "\"name\":\"b\""],
    ),
];

/// Fields that do not exist. The apiserver refuses them if it is asked to, as kubectl does.
const UNKNOWN: &[(&str, &str)] = &[
    ("pause: true", "unknown field \"spec.pause\""),
    (
        "stages: [{ name: a, nodeSelector: { pool: canary } }]",
        "unknown field \"spec.stages[0].nodeSelector.pool\"",
    ),
];

/// Fields that a good spec may have.
const ACCEPTED: &[&str] = &[
    "targets: { selector: {} }",
    "targets: { selector: { matchLabels: { app: agent, empty: '' }, matchExpressions: [{ key: a.b/c_d, operator: In, values: [x] }, { key: e, operator: Exists }] } }",
    "partition: 0",
    "partition: 100%",
    "partition: 0%",
    "failureThreshold: 1%",
    "stages: []",
    "stages: [{ name: a, soak: 1h30m }, { name: b-1, soak: 0s }, { name: c, soak: 999999h }]",
    "stages: [{ name: a, replicas: 100%, spreadBy: topology.kubernetes.io/zone, maxSurge: 1 }]",
    "stages: [{ name: a, analysis: [{ name: b, webhook: { url: 'https://[::1]:8080/a?b=c' }, credential: ci.token }] }]",
    "stages: [{ name: a, analysis: [{ name: b, grpc: { address: 'a.b:9000', tls: false }, when: BeforeStage }] }]",
    "windows: [{ days: [Sat, Sun] }, { startTime: '22:00', endTime: '06:00', timeZone: America/Argentina/Buenos_Aires }]",
    "windows: [{ startTime: '00:00', endTime: '00:01', timeZone: Etc/GMT+5 }]",
    "pace: { nodes: 1, interval: 1s }",
    "progressDeadlineSeconds: 1",
];

/// A control plane with the kind.
struct Apiserver {
    plane: ControlPlane,
}

impl Apiserver {
    async fn start() -> Result<Self> {
        let plane = ControlPlane::builder().start().await?;
        rollout_policies::install(&plane).await?;
        let apiserver = Self { plane };
        // The apiserver serves a new kind shortly after its definition was created.
        eventually(DEADLINE, "the kind RolloutPolicy", async || {
            apiserver.create(&policy("{}")?).await
        })
        .await?;
        Ok(apiserver)
    }

    fn policies(&self, namespace: &str) -> Api<DynamicObject> {
        rollout_policies::api(self.plane.client(), namespace)
    }

    /// Creates a policy without storing it.
    async fn create(&self, policy: &Value) -> Result<()> {
        let policy: DynamicObject = serde_json::from_value(policy.clone())?;
        let dry_run = PostParams {
            dry_run: true,
            field_manager: None,
        };
        self.policies("default").create(&dry_run, &policy).await?;
        Ok(())
    }

    /// The same with kubectl, which refuses unknown fields.
    async fn kubectl_create(&self, policy: &Value) -> Result<()> {
        let file = self.plane.workdir().path().join("policy.json");
        std::fs::write(&file, policy.to_string())?;
        let file = file.display().to_string();
        let arguments = ["create", "--dry-run=server", "--validate=strict", "-f", &file];
        self.plane.kubectl(arguments).await?;
        Ok(())
    }
}

/// A policy in which these fields of the spec, as YAML, replace those of a good one.
fn policy(fields: &str) -> Result<Value> {
    let fields: Map<String, Value> =
        serde_saphyr::from_str(fields).with_context(|| format!("reading {fields}"))?;
    let mut policy = json!({
        "apiVersion": "nodewise.dev/v1alpha1",
        "kind": "RolloutPolicy",
        "metadata": { "name": "agents", "namespace": "default" },
        "spec": { "targets": { "names": ["agent"] } },
    });
    let spec = policy["spec"].as_object_mut().context("a spec")?;
    spec.extend(fields);
    Ok(policy)
}

/// Fails unless the request was refused with all of these words.
fn refused(fields: &str, result: Result<()>, words: &[&str]) -> Result<()> {
    let Err(error) = result else {
        anyhow::bail!("taken: {fields}");
    };
    let said = format!("{error:#}");
    for word in words {
        ensure!(
            said.contains(word),
            "{fields}: expected {word:?}, but it said: {said}"
        );
    }
    Ok(())
}

/// On one apiserver, because its start takes most of the time.
#[tokio::test(flavor = "multi_thread")]
async fn apiserver_says_what_is_wrong_with_a_policy() -> Result<()> {
    let apiserver = Apiserver::start().await?;
    for (fields, words) in REFUSED {
        refused(fields, apiserver.create(&policy(fields)?).await, words)?;
    }
    for (fields, words) in UNKNOWN {
        refused(fields, apiserver.kubectl_create(&policy(fields)?).await, &[words])?;
    }
    for fields in ACCEPTED {
        apiserver
            .kubectl_create(&policy(fields)?)
            .await
            .with_context(|| (*fields).to_owned())?;
    }
    the_largest_policy_is_within_the_budget(&apiserver).await?;
    the_example_has_columns_and_conditions(&apiserver).await
}

/// The apiserver also limits what the rules cost for one object.
async fn the_largest_policy_is_within_the_budget(apiserver: &Apiserver) -> Result<()> {
    let list = |count: usize, item: &dyn Fn(usize) -> Value| (0..count).map(item).collect::<Vec<_>>();
    let key = format!("{}/{}", "a".repeat(250), "b".repeat(60));
    let values = list(10, &|number| format!("value-{number}").into());
    let requirement = json!({ "key": key, "operator": "In", "values": values });
    let check = |number: usize| {
        json!({
            "name": format!("check-{number}"),
            "prometheus": { "address": format!("http://{}.example:9090", "a".repeat(60)), "query": "up" },
            "successCondition": "result < 0.01",
            "interval": "1h30m5s",
            "credential": "a".repeat(200),
        })
    };
    let stage = |number: usize| {
        json!({
            "name": format!("stage-{number}"),
            "replicas": "10%",
            "maxUnavailable": "10%",
            "spreadBy": "topology.kubernetes.io/zone",
            "nodeSelector": { "matchExpressions": vec![requirement.clone(); 32] },
            "soak": "1h30m5s",
            "analysis": list(10, &check),
        })
    };
    let window = json!({
        "days": ["Mon", "Tue"], "startTime": "09:00", "endTime": "16:00", "timeZone": "Europe/Berlin",
    });
    let mut policy = policy("{}")?;
    policy["spec"]["targets"]["names"] = list(100, &|number| format!("agent-{number}").into()).into();
    policy["spec"]["stages"] = list(32, &stage).into();
    policy["spec"]["windows"] = vec![window; 32].into();
    apiserver.create(&policy).await
}

/// `kubectl get` and `kubectl wait` read the status.
async fn the_example_has_columns_and_conditions(apiserver: &Apiserver) -> Result<()> {
    let (client, params) = (
        apiserver.plane.client(),
        PatchParams::apply("test").validation_strict(),
    );
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "monitoring" } });
    manifests::apply(&client, &namespace, &params).await?;
    for object in manifests::parse(EXAMPLE)? {
        manifests::apply(&client, &object, &params).await?;
    }
    let policies = apiserver.policies("monitoring");
    let condition = json!({
        "type": "Accepted", "status": "True", "reason": "Accepted", "message": "", "lastTransitionTime": "2026-11-27T10:00:00Z",
    });
    let summary = json!({ "target": "agent", "stage": "canary", "updated": "12/100", "state": "Soaking" });
    let status = json!({ "status": { "conditions": [condition], "summary": summary } });
    policies
        .patch_status("agents", &PatchParams::default(), &Patch::Merge(&status))
        .await?;
    let table = apiserver
        .plane
        .kubectl(["get", "rolloutpolicies", "--namespace=monitoring"])
        .await?;
    let cells: Vec<Vec<_>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    ensure!(cells.len() == 2, "{table}");
    ensure!(
        cells[0] == ["NAME", "TARGET", "STAGE", "UPDATED", "STATE", "AGE"]
            && cells[1].starts_with(&["agents", "agent", "canary", "12/100", "Soaking"]),
        "{table}"
    );
    let wait = [
        "wait",
        "--namespace=monitoring",
        "--for=condition=Accepted",
        "rop/agents",
    ];
    apiserver.plane.kubectl(wait).await?;

    // A wrong writer cannot fill the store.
    let status = json!({ "status": { "summary": { "state": "x".repeat(64) } } });
    let result = policies
        .patch_status("agents", &PatchParams::default(), &Patch::Merge(&status))
        .await;
    let result = result.map(|_| ()).map_err(anyhow::Error::from);
    refused(
        "a long state",
        result,
        &["status.summary.state: Too long: may not be more than 63 bytes"],
    )
}
