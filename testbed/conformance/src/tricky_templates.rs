//! Workloads whose templates are hard to write twice with the same bytes. Their fields have several spellings, are
//! empty but present, or hold characters that JSON writers escape differently. A controller that reads a template
//! and writes it with one different byte restarts pods.

use serde_json::{Value, json};

use crate::workload_builder::WorkloadBuilder;

/// Characters that Go's JSON encoder escapes and others do not, or the other way round: HTML, the line separators of
/// JavaScript, quotes, control characters, and characters outside the basic multilingual plane.
const WORDS: &str = "<a href=\"x?y=1&z='2'\">\\ / \u{8}\u{c}\n\r\t\u{1}\u{1b}\u{1f}\u{7f}\u{85} \u{2027}\u{2028}\u{2029} \u{feff}é e\u{301} ñ 日本 🦀👩\u{200d}🚀 \u{fffd}</a>";

/// Probes of all kinds, hooks, volumes and quantities.
#[must_use]
pub(crate) fn tricky_volumes(workload: WorkloadBuilder) -> WorkloadBuilder {
    let mut main = json!({
        "name": "main", "image": "registry.example/agent:1", "imagePullPolicy": "Always",
        "ports": [{ "name": "web", "containerPort": 8080 }, { "containerPort": 53, "protocol": "UDP" }],
        "resources": {
            "requests": { "cpu": 0.5, "memory": "1024Mi", "ephemeral-storage": "1e3" },
            "limits": { "cpu": "1500m", "memory": "1.5Gi", "ephemeral-storage": "0.5Gi" },
        },
        "resizePolicy": [
            { "resourceName": "cpu", "restartPolicy": "NotRequired" },
            { "resourceName": "memory", "restartPolicy": "RestartContainer" },
        ],
        "volumeMounts": [
            { "name": "config", "mountPath": "/config", "subPathExpr": "$(POD)", "readOnly": true },
            { "name": "scratch", "mountPath": "/scratch", "mountPropagation": "None" },
        ],
        "env": [
            { "name": "POD", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } },
            { "name": "MEMORY", "valueFrom": { "resourceFieldRef": { "resource": "limits.memory", "divisor": "1Mi" } } },
            { "name": "KEY", "valueFrom": { "secretKeyRef": { "name": "keys", "key": "k", "optional": false } } },
            { "name": "EMPTY", "value": "" },
        ],
        "envFrom": [{ "configMapRef": { "name": "settings" } }, { "prefix": "S_", "secretRef": { "name": "more", "optional": true } }],
    });
    merge(&mut main, probes());
    let other = json!({ "name": "other", "image": "registry.example/other", "resources": { "limits": { "cpu": "100m" } },
        "livenessProbe": { "grpc": { "port": 9090, "service": "" } } });
    with_spec(
        workload,
        json!({ "containers": [main, other], "volumes": volumes(), "serviceAccountName": "agent" }),
    )
}

fn probes() -> Value {
    json!({
        "livenessProbe": {
            "httpGet": { "path": "/live?a=<1>&b", "port": "web", "scheme": "HTTPS", "host": "",
                "httpHeaders": [{ "name": "X-Odd", "value": WORDS }] },
            "initialDelaySeconds": 0, "periodSeconds": 7,
        },
        "readinessProbe": { "tcpSocket": { "port": 8080 }, "timeoutSeconds": 3, "successThreshold": 2 },
        "startupProbe": { "exec": { "command": ["sh", "-c", "test -e /ready && echo \"<ok>\""] },
            "failureThreshold": 30, "terminationGracePeriodSeconds": 5 },
        "lifecycle": {
            "postStart": { "httpGet": { "port": 8080 } },
            "preStop": { "sleep": { "seconds": 1 } },
        },
    })
}

fn volumes() -> Value {
    let divided = json!({ "path": "cpu", "resourceFieldRef": {
        "containerName": "main", "resource": "limits.cpu", "divisor": "1m" } });
    json!([
        { "name": "config", "configMap": { "name": "settings", "defaultMode": 256, "items": [{ "key": "a", "path": "b/c", "mode": 0 }] } },
        { "name": "secret", "secret": { "secretName": "keys", "optional": true } },
        { "name": "scratch", "emptyDir": {} },
        { "name": "memory", "emptyDir": { "medium": "Memory", "sizeLimit": "1024Ki" } },
        { "name": "small", "emptyDir": { "sizeLimit": 0.5 } },
        { "name": "host", "hostPath": { "path": "/var/log", "type": "" } },
        { "name": "downward", "downwardAPI": { "items": [
            { "path": "labels", "fieldRef": { "fieldPath": "metadata.labels" } }, divided.clone() ] } },
        { "name": "all", "projected": { "sources": [
            { "serviceAccountToken": { "path": "token", "expirationSeconds": 7200 } },
            { "configMap": { "name": "settings", "items": [] } },
            { "secret": { "name": "keys" } },
            { "downwardAPI": { "items": [divided] } } ] } },
        { "name": "nothing", "projected": { "sources": [] } },
        { "name": "unnamed-source" },
    ])
}

/// Scheduling and network fields, many of them empty but present.
#[must_use]
pub(crate) fn tricky_scheduling(workload: WorkloadBuilder) -> WorkloadBuilder {
    let term =
        json!({ "topologyKey": "kubernetes.io/hostname", "labelSelector": {}, "namespaceSelector": {} });
    let linux = json!([{ "matchExpressions": [{ "key": "kubernetes.io/os", "operator": "In", "values": ["linux"] }] }]);
    let apart = json!({ "topologyKey": "zone", "namespaces": ["elsewhere"], "matchLabelKeys": ["pod-template-generation"],
        "labelSelector": { "matchExpressions": [{ "key": "app", "operator": "Exists" }] } });
    let spec = json!({
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": linux },
                "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 1, "preference": {
                    "matchExpressions": [{ "key": "cores", "operator": "Gt", "values": ["8"] }] } }],
            },
            "podAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 100, "podAffinityTerm": term }] },
            "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [apart] },
        },
        "tolerations": [
            { "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300 },
            { "key": "dedicated", "operator": "Equal", "value": "" },
            { "key": "other", "value": "x", "effect": "PreferNoSchedule" },
        ],
        "topologySpreadConstraints": [
            { "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway" },
            { "maxSkew": 5, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {},
                "minDomains": null, "nodeTaintsPolicy": "Honor" },
        ],
        "nodeSelector": {},
        "priorityClassName": "system-node-critical",
        "terminationGracePeriodSeconds": 0,
    });
    let mut builder = with_spec(workload, spec);
    for part in [sandbox(), containers()] {
        builder = with_spec(builder, part);
    }
    builder
}

/// The pod-level fields: DNS, host aliases, security context.
fn sandbox() -> Value {
    json!({
        "dnsPolicy": "None",
        "dnsConfig": { "nameservers": ["192.0.2.1"], "searches": ["example.com"], "options": [{ "name": "ndots", "value": "2" }, { "name": "edns0" }] },
        "hostAliases": [{ "ip": "192.0.2.2", "hostnames": ["a.example", "b.example"] }, { "ip": "192.0.2.3" }],
        "securityContext": {
            "sysctls": [{ "name": "net.ipv4.ip_local_port_range", "value": "1024\t65535" }, { "name": "kernel.shm_rmid_forced", "value": "" }],
            "seLinuxOptions": {}, "supplementalGroups": [], "fsGroup": 0, "runAsNonRoot": false,
            "seccompProfile": { "type": "RuntimeDefault" },
        },
        "readinessGates": [{ "conditionType": "www.example.com/gate" }],
        "schedulingGates": [],
        "imagePullSecrets": [{ "name": "pull" }, {}],
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "shareProcessNamespace": true,
        "setHostnameAsFQDN": false,
        "os": { "name": "linux" },
        "subdomain": "sub",
    })
}

fn containers() -> Value {
    json!({
        "initContainers": [
            { "name": "sidecar", "image": "registry.example/sidecar:1", "restartPolicy": "Always", "resources": {},
                "startupProbe": { "tcpSocket": { "port": 1, "host": "" } } },
            { "name": "once", "image": "registry.example/once@sha256:0000000000000000000000000000000000000000000000000000000000000000",
                "command": [], "args": [""], "env": [], "resources": { "limits": {}, "requests": {} } },
        ],
        "containers": [{
            "name": "main", "image": "registry.example/agent:1",
            "securityContext": { "capabilities": {}, "runAsUser": 0, "readOnlyRootFilesystem": false, "procMount": "Default" },
            "lifecycle": {}, "ports": [], "volumeMounts": [], "stdin": false,
            "terminationMessagePolicy": "FallbackToLogsOnError",
        }],
        "volumes": [],
        "hostNetwork": false,
    })
}

/// Those characters in all fields that accept any text. It has minReadySeconds.
#[must_use]
pub(crate) fn tricky_strings(workload: WorkloadBuilder) -> WorkloadBuilder {
    let spec = json!({
        "containers": [{
            "name": "main", "image": "registry.example/agent:1", "workingDir": WORDS,
            "command": ["sh", "-c", WORDS, ""],
            "args": ["--selector=a!=b", WORDS, "{\"json\": [1.0, 1e3, null]}", "\u{2028}"],
            "env": [
                { "name": "ODD.name-with_<all>&\"them", "value": WORDS },
                { "name": "NUMBER", "value": "0123" },
                { "name": "BOOLEAN", "value": "yes" },
                { "name": "REFERENCE", "value": "$(NUMBER) $$(NUMBER)" },
            ],
            "resources": { "requests": { "cpu": "1e-3", "memory": "128974848" }, "limits": { "cpu": 1, "memory": "129e6" } },
            "securityContext": {},
        }],
        "securityContext": { "windowsOptions": {} },
        "affinity": { "nodeAffinity": {} },
        "dnsConfig": {},
        "volumes": [{ "name": "v", "hostPath": { "path": "/日本/<&>" } }],
    });
    let annotations = json!({ "example.com/words": WORDS, "example.com/empty": "", "Example.com/Upper": "A", "number": "1" });
    with_spec(workload, spec)
        .set("/spec/template/metadata", "annotations", annotations.clone())
        .set("/spec/template/metadata", "creationTimestamp", Value::Null)
        .set("/spec/template/metadata", "finalizers", json!([]))
        .set("/metadata", "annotations", annotations)
        .set("/spec", "minReadySeconds", json!(1))
        .set("/spec", "revisionHistoryLimit", json!(3))
}

/// Sets fields of the template's pod spec.
fn with_spec(mut builder: WorkloadBuilder, fields: Value) -> WorkloadBuilder {
    let Value::Object(fields) = fields else {
        return builder;
    };
    for (key, value) in fields {
        builder = builder.set("/spec/template/spec", &key, value);
    }
    builder
}

fn merge(object: &mut Value, more: Value) {
    if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
        object.extend(more);
    }
}
