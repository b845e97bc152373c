//! Pod templates, in the shape in which an apiserver serves them: with every default filled in, so that reading one into
//! types and writing it again adds and loses nothing.

use serde_json::{Map, Value, json};

use super::odds::Odds;
use super::placement;

/// Strings that a serializer can get wrong.
pub(super) const ODD_STRINGS: &[&str] = &[
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
pub(super) fn draw(odds: &mut Odds, labels: &Map<String, Value>, nodes: &[String], numeric: bool) -> Value {
    let mut spec = json!({
        "containers": [container(odds, "main")],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    });
    if odds.in_hundred(12) {
        spec["hostNetwork"] = true.into();
    }
    placement::add(odds, &mut spec, nodes, numeric);
    if odds.in_hundred(25) {
        for _ in 0..=odds.below(4) {
            let add = odds.pick(ODD_FIELDS);
            add(odds, &mut spec);
        }
    }
    json!({ "metadata": metadata(odds, labels), "spec": spec })
}

/// What the template was before its latest change, or before an earlier one.
pub(super) fn former(odds: &mut Odds, template: &Value, number: usize) -> Value {
    let mut former = template.clone();
    let spec = &mut former["spec"];
    spec["containers"][0]["image"] = format!("registry.example/agent:former-{number}").into();
    if odds.in_hundred(15)
        && let Some(spec) = spec.as_object_mut()
    {
        let field = odds.pick(&["nodeSelector", "affinity", "tolerations", "hostNetwork"]);
        spec.remove(field);
    }
    if odds.in_hundred(10) {
        former["metadata"]["annotations"] = json!({"restarted": format!("{number}")});
    }
    former
}

fn metadata(odds: &mut Odds, labels: &Map<String, Value>) -> Value {
    let mut metadata = Map::new();
    let mut labels = labels.clone();
    if odds.in_hundred(3) {
        labels.insert("controller-revision-hash".into(), "by-hand".into());
    }
    if odds.in_hundred(3) {
        let generation = odds.pick(&["99", "1", "x"]);
        labels.insert("pod-template-generation".into(), (*generation).into());
    }
    if !labels.is_empty() {
        metadata.insert("labels".into(), labels.into());
    }
    if odds.in_hundred(18) {
        let mut annotations = Map::new();
        for index in 0..=odds.below(3) {
            let text = odds.pick(ODD_STRINGS);
            let key = odds.pick(&["note", "example.com/note", "a"]);
            annotations.insert(format!("{key}-{index}"), text.into());
        }
        metadata.insert("annotations".into(), annotations.into());
    }
    if odds.in_hundred(5) {
        metadata.insert(
            "finalizers".into(),
            json!(["example.com/hold", "example.com/more"]),
        );
    }
    if odds.in_hundred(3) {
        metadata.insert("name".into(), "ignored".into());
    }
    metadata.into()
}

fn container(odds: &mut Odds, name: &str) -> Value {
    json!({
        "name": name,
        "image": format!("registry.example/{name}:{}", odds.letters(6)),
        "imagePullPolicy": odds.pick(&["IfNotPresent", "Always", "Never"]),
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": odds.pick(&["File", "FallbackToLogsOnError"]),
    })
}

/// Fills in something that the serialization could trip over.
type OddField = fn(&mut Odds, &mut Value);

const ODD_FIELDS: &[OddField] = &[
    |odds, spec| {
        spec["containers"][0]["resources"] = json!({
            "requests": {"cpu": odds.pick(&["500m", "1", "1500m", "0", "2k"]), "memory": "128Mi"},
            "limits": {"memory": odds.pick(&["1Gi", "512M", "1e3", "1536Mi"])},
        });
    },
    |odds, spec| {
        spec["containers"][0]["ports"] = match odds.below(2) {
            0 => json!([{"containerPort": 8080, "hostPort": 8080, "name": "http", "protocol": "TCP"}]),
            _ => json!([{"containerPort": 53, "hostPort": 53, "protocol": "UDP"}]),
        };
    },
    |odds, spec| {
        let port = if odds.in_hundred(50) {
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
    |odds, spec| {
        let text = odds.pick(ODD_STRINGS);
        spec["containers"][0]["args"] = json!(["--text", text, "--empty=", ""]);
    },
    |_, spec| {
        spec["containers"][0]["env"] = json!([
            {"name": "EMPTY"},
            {"name": "NODE", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}}},
            {"name": "CPU", "valueFrom": {"resourceFieldRef": {"divisor": "0", "resource": "limits.cpu"}}},
        ]);
    },
    |odds, spec| {
        spec["containers"][0]["securityContext"] = match odds.below(3) {
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
    |odds, spec| {
        let mut first = container(odds, "first");
        first["restartPolicy"] = "Always".into();
        spec["initContainers"] = json!([first]);
    },
    |odds, spec| {
        let second = container(odds, "second");
        if let Some(containers) = spec["containers"].as_array_mut() {
            containers.push(second);
        }
    },
    |_, spec| {
        spec["serviceAccount"] = "agent".into();
        spec["serviceAccountName"] = "agent".into();
        spec["automountServiceAccountToken"] = false.into();
    },
    |odds, spec| {
        spec["securityContext"] =
            json!({"fsGroup": 0, "sysctls": [{"name": "net.ipv4.ip_forward", "value": "1"}]});
        spec["terminationGracePeriodSeconds"] = odds.pick(&[0_i64, 1, 9_007_199_254_740_993]).into();
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
