//! Pod templates as an apiserver serves them, with all defaults. So decoding a template into types and encoding it
//! again changes nothing.

use serde_json::{Map, Value, json};

use super::placement;
use super::rng::CaseRng;

/// Strings that are difficult to serialize.
pub(super) const TRICKY_STRINGS: &[&str] = &[
    "<a href=\"x\">&amp;</a>",
    "a && b > c",
    "line\u{2028}and\u{2029}paragraph",
    "grüße, 世界 🚢",
    "tab\t, quote \", backslash \\, slash /",
    "line\nfeed\r\n",
    "bell\u{7}, backspace\u{8}, form feed\u{c}, escape\u{1b}, delete\u{7f}",
    "{\"a\":[1,2.50,\"<\"]}",
    "\\u003c",
    "",
];

/// A template with these labels.
pub(super) fn draw(rng: &mut CaseRng, labels: &Map<String, Value>, nodes: &[String], numeric: bool) -> Value {
    let mut spec = json!({
        "containers": [container(rng, "main")],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    });
    if rng.in_hundred(12) {
        spec["hostNetwork"] = true.into();
    }
    placement::add(rng, &mut spec, nodes, numeric);
    if rng.in_hundred(25) {
        for _ in 0..=rng.below(4) {
            let add = rng.pick(TRICKY_FIELDS);
            add(rng, &mut spec);
        }
    }
    json!({ "metadata": metadata(rng, labels), "spec": spec })
}

/// A former version of the template.
pub(super) fn former(rng: &mut CaseRng, template: &Value, number: usize) -> Value {
    let mut former = template.clone();
    let spec = &mut former["spec"];
    spec["containers"][0]["image"] = format!("registry.example/agent:former-{number}").into();
    if rng.in_hundred(15)
        && let Some(spec) = spec.as_object_mut()
    {
        let field = rng.pick(&["nodeSelector", "affinity", "tolerations", "hostNetwork"]);
        spec.remove(field);
    }
    if rng.in_hundred(10) {
        former["metadata"]["annotations"] = json!({"restarted": format!("{number}")});
    }
    former
}

fn metadata(rng: &mut CaseRng, labels: &Map<String, Value>) -> Value {
    let mut metadata = Map::new();
    let mut labels = labels.clone();
    if rng.in_hundred(3) {
        labels.insert("controller-revision-hash".into(), "by-hand".into());
    }
    if rng.in_hundred(3) {
        let generation = rng.pick(&["99", "1", "x"]);
        labels.insert("pod-template-generation".into(), (*generation).into());
    }
    if !labels.is_empty() {
        metadata.insert("labels".into(), labels.into());
    }
    if rng.in_hundred(18) {
        let mut annotations = Map::new();
        for index in 0..=rng.below(3) {
            let text = rng.pick(TRICKY_STRINGS);
            let key = rng.pick(&["note", "example.com/note", "a"]);
            annotations.insert(format!("{key}-{index}"), text.into());
        }
        metadata.insert("annotations".into(), annotations.into());
    }
    if rng.in_hundred(5) {
        metadata.insert(
            "finalizers".into(),
            json!(["example.com/hold", "example.com/more"]),
        );
    }
    if rng.in_hundred(3) {
        metadata.insert("name".into(), "ignored".into());
    }
    metadata.into()
}

fn container(rng: &mut CaseRng, name: &str) -> Value {
    json!({
        "name": name,
        "image": format!("registry.example/{name}:{}", rng.letters(6)),
        "imagePullPolicy": rng.pick(&["IfNotPresent", "Always", "Never"]),
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": rng.pick(&["File", "FallbackToLogsOnError"]),
    })
}

/// Adds a field that is difficult to serialize.
type TrickyField = fn(&mut CaseRng, &mut Value);

const TRICKY_FIELDS: &[TrickyField] = &[
    |rng, spec| {
        spec["containers"][0]["resources"] = json!({
            "requests": {"cpu": rng.pick(&["500m", "1", "1500m", "0", "2k"]), "memory": "128Mi"},
            "limits": {"memory": rng.pick(&["1Gi", "512M", "1e3", "1536Mi"])},
        });
    },
    |rng, spec| {
        spec["containers"][0]["ports"] = match rng.below(2) {
            0 => json!([{"containerPort": 8080, "hostPort": 8080, "name": "http", "protocol": "TCP"}]),
            _ => json!([{"containerPort": 53, "hostPort": 53, "protocol": "UDP"}]),
        };
    },
    |rng, spec| {
        let port = if rng.in_hundred(50) {
            json!("http")
        } else {
            json!(8080)
        };
        spec["containers"][0]["livenessProbe"] = json!({
            "httpGet": {"path": "/healthz?a=1&b=<2>", "port": port, "scheme": "HTTP"},
            "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3,
        });
    },
    |_, spec| {
        spec["containers"][0]["readinessProbe"] = json!({
            "exec": {"command": ["sh", "-c", "test -f /ready && true"]}, "initialDelaySeconds": 5,
            "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3,
        });
    },
    |rng, spec| {
        let text = rng.pick(TRICKY_STRINGS);
        spec["containers"][0]["args"] = json!(["--text", text, "--empty=", ""]);
    },
    |_, spec| {
        spec["containers"][0]["env"] = json!([
            {"name": "EMPTY"},
            {"name": "NODE", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}}},
            {"name": "CPU", "valueFrom": {"resourceFieldRef": {"divisor": "0", "resource": "limits.cpu"}}},
        ]);
    },
    |rng, spec| {
        spec["containers"][0]["securityContext"] = match rng.below(3) {
            0 => json!({}),
            1 => json!({"privileged": true, "runAsUser": 0, "capabilities": {}}),
            _ => json!({"capabilities": {"add": ["NET_ADMIN"]}, "readOnlyRootFilesystem": false}),
        };
    },
    |_, spec| {
        spec["volumes"] = json!([
            {"name": "scratch", "emptyDir": {}},
            {"name": "bounded", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}},
            {"name": "host", "hostPath": {"path": "/var/log", "type": ""}},
            {"name": "config", "configMap": {"name": "config", "defaultMode": 420}},
        ]);
        spec["containers"][0]["volumeMounts"] = json!([
            {"name": "scratch", "mountPath": "/scratch"},
            {"name": "host", "mountPath": "/logs", "readOnly": true},
        ]);
    },
    |rng, spec| {
        let mut first = container(rng, "first");
        first["restartPolicy"] = "Always".into();
        spec["initContainers"] = json!([first]);
    },
    |rng, spec| {
        let second = container(rng, "second");
        if let Some(containers) = spec["containers"].as_array_mut() {
            containers.push(second);
        }
    },
    |_, spec| {
        spec["serviceAccount"] = "agent".into();
        spec["serviceAccountName"] = "agent".into();
        spec["automountServiceAccountToken"] = false.into();
    },
    |rng, spec| {
        spec["securityContext"] =
            json!({"fsGroup": 0, "sysctls": [{"name": "net.ipv4.ip_forward", "value": "1"}]});
        spec["terminationGracePeriodSeconds"] = rng.pick(&[0_i64, 1, 9_007_199_254_740_993]).into();
        spec["priorityClassName"] = "system-node-critical".into();
    },
    |_, spec| {
        spec["hostAliases"] = json!([{"ip": "127.0.0.1", "hostnames": ["a.example"]}]);
        spec["dnsConfig"] = json!({"options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}]});
    },
    |_, spec| {
        spec["containers"][0]["lifecycle"] = json!({"preStop": {"sleep": {"seconds": 5}}});
    },
];

#[cfg(test)]
pub(super) mod tests {
    use crate::case::Case;
    use crate::generate::census::{self, Situation, template};

    fn text(case: &Case) -> String {
        template(case).to_string()
    }

    pub(in crate::generate) const SITUATIONS: &[Situation] = &[
        ("HTML in a template", |case| text(case).contains('<')),
        ("U+2028 in a template", |case| text(case).contains('\u{2028}')),
        ("unicode in a template", |case| text(case).contains('世')),
        ("a control character in a template", |case| {
            text(case).contains("\\u0007")
        }),
        ("a large number in a template", |case| {
            text(case).contains("9007199254740993")
        }),
        ("quantities", |case| {
            template(case)["spec"]["containers"][0]["resources"]["requests"].is_object()
        }),
        ("a port by name", |case| {
            template(case)["spec"]["containers"][0]["livenessProbe"]["httpGet"]["port"].is_string()
        }),
        ("a port by number", |case| {
            template(case)["spec"]["containers"][0]["livenessProbe"]["httpGet"]["port"].is_i64()
        }),
        ("an empty struct in a template", |case| {
            text(case).contains("\"emptyDir\":{}")
        }),
        ("a host network", |case| {
            template(case)["spec"]["hostNetwork"] == true
        }),
        ("finalizers in a template", |case| {
            template(case)["metadata"]["finalizers"].is_array()
        }),
        ("annotations in a template", |case| {
            template(case)["metadata"]["annotations"].is_object()
        }),
        ("a template without labels", |case| {
            template(case)["metadata"]["labels"].is_null()
        }),
        ("a template with a name", |case| {
            template(case)["metadata"]["name"].is_string()
        }),
        ("a template label for the hash", |case| {
            template(case)["metadata"]["labels"]["controller-revision-hash"].is_string()
        }),
        ("a template label for the generation", |case| {
            template(case)["metadata"]["labels"]["pod-template-generation"].is_string()
        }),
    ];

    #[test]
    fn every_container_has_its_defaults() {
        for seed in 0..300 {
            let case = crate::generate::case(seed);
            for container in census::items(&template(&case)["spec"]["containers"]) {
                assert!(container["resources"].is_object(), "seed {seed}: {container}");
                assert!(
                    container["imagePullPolicy"].is_string(),
                    "seed {seed}: {container}"
                );
            }
        }
    }
}
