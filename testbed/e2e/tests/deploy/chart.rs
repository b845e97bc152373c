//! The chart: Helm's lint, versions and values.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, ensure};
use nodewise_testbed::manifests;
use serde_json::{Value, json};

use crate::render;

#[test]
fn helm_lint_passes() -> Result<()> {
    for name in render::values()? {
        let values = format!("deploy/helm/nodewise/ci/{name}-values.yaml");
        let values = render::file(&values).display().to_string();
        render::helm(&["lint", "--strict", "--kube-version=1.36.0", "--values", &values])?;
    }
    Ok(())
}

#[test]
fn invalid_values_are_rejected() -> Result<()> {
    render::template(&[])?;
    for (wrong, complaint) in [
        ("mode=both", "mode"),
        ("tls.source=none", "source"),
        ("server.replica=3", "replica"),
        ("server.autoscaling.minReplicas=0", "minReplicas"),
        ("networkPolicies.enabled=false", "networkPolicies"),
        ("server.autoscaling.minReplicas=7", "minReplicas"),
        // The server would admit every client with a certificate of the authority.
        ("executor.enabled=false", "tls.allowedClients"),
        ("tracing.tls.clientCertificate=true", "secretName"),
        ("image.digests.server=sha256:12", "digests"),
        ("podAnnotations.a=1", "podAnnotations"),
        // Spans would be sent without TLS, without a warning.
        (
            "tracing.tls.secretName=a,tracing.endpoint=http://b:4317",
            "there is no TLS",
        ),
    ] {
        let error = render::template(&["--set", wrong]).expect_err(wrong).to_string();
        ensure!(error.contains(complaint), "{wrong}: {error}");
    }
    Ok(())
}

/// Without an executor the server must not admit the executor's name.
#[test]
fn service_alone_does_not_mention_the_executor() -> Result<()> {
    let flags = [
        "--set",
        "executor.enabled=false,tls.allowedClients={spiffe://a.example/b}",
    ];
    let objects = manifests::parse(&render::template(&flags)?)?;
    for object in &objects {
        let text = object.to_string();
        // The NetworkPolicy of the service may name pods that do not exist.
        let is_free = object["kind"] == "NetworkPolicy" || !text.contains("nodewise-executor");
        ensure!(is_free, "{text}");
    }
    ensure!(objects.len() > 8, "only {} objects", objects.len());
    Ok(())
}

/// A token of the executor gives no rights on objects that its controllers do not touch.
#[test]
fn rights_are_those_of_the_controllers() -> Result<()> {
    for (controller, writes_pods, of_daemon_sets) in [
        ("deployment-controller", false, false),
        ("replicaset-controller", true, false),
        ("daemonset-controller", true, true),
    ] {
        let flags = ["--set", &format!("mode=own,controllers={{{controller}}}")];
        let objects = manifests::parse(&render::template(&flags)?)?;
        let granted = objects.iter().filter(|object| object["kind"] == "ClusterRole");
        let rules: Vec<_> = granted
            .flat_map(|role| role["rules"].as_array().into_iter().flatten())
            .collect();
        let may = |resource: &str, verb: &str| {
            let has =
                |list: &Value, item: &str| list.as_array().is_some_and(|list| list.contains(&item.into()));
            rules
                .iter()
                .any(|rule| has(&rule["resources"], resource) && has(&rule["verbs"], verb))
        };
        ensure!(may("pods", "watch") && may("events", "create"), "{controller}");
        for verb in ["create", "patch", "delete"] {
            ensure!(may("pods", verb) == writes_pods, "{controller}: {verb} pods");
        }
        for (resource, verb) in [
            ("nodes", "watch"),
            ("daemonsets", "watch"),
            ("daemonsets/status", "update"),
            ("controllerrevisions", "watch"),
            ("controllerrevisions", "create"),
        ] {
            ensure!(
                may(resource, verb) == of_daemon_sets,
                "{controller}: {verb} {resource}"
            );
        }
    }
    Ok(())
}

/// What a company adds to every Deployment and every pod. The executors still avoid each other.
#[test]
fn placement_annotations_and_digests_are_those_of_the_values() -> Result<()> {
    let objects = render::chart("odd")?;
    let deployments: Vec<_> = render::deployments(&objects).collect();
    ensure!(deployments.len() == 2, "{} Deployments", deployments.len());
    for deployment in deployments {
        let name = render::name(deployment);
        let (meta, template) = (&deployment["metadata"], &deployment["spec"]["template"]);
        assert_eq!(
            meta["annotations"],
            json!({ "example.org/owner": "platform" }),
            "{name}"
        );
        assert_eq!(
            template["metadata"]["annotations"],
            json!({ "example.org/scrape": "true" }),
            "{name}"
        );
        let affinity = &template["spec"]["affinity"];
        let term = &affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
            [0];
        assert_eq!(term["matchExpressions"][0]["key"], "example.org/pool", "{name}");
        let is_executor = name.contains("executor");
        assert_eq!(affinity["podAntiAffinity"].is_object(), is_executor, "{name}");
        let image = template["spec"]["containers"][0]["image"]
            .as_str()
            .unwrap_or_default();
        assert_eq!(image.contains(":0.1.0-rc.1@sha256:0123"), !is_executor, "{image}");
    }
    Ok(())
}

/// The executor alone gets the flags and files for the analysis of policies, and may connect to those who are asked.
#[test]
fn analysis_is_the_executors() -> Result<()> {
    let objects = render::chart("odd")?;
    for deployment in render::deployments(&objects) {
        let pod = &deployment["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        let variables = container["env"].as_array().into_iter().flatten();
        let variables: Vec<_> = variables
            .filter(|variable| {
                variable["name"]
                    .as_str()
                    .is_some_and(|name| name.contains("ANALYSIS"))
            })
            .map(|variable| (variable["name"].as_str().unwrap_or_default(), &variable["value"]))
            .collect();
        let name = render::name(deployment);
        if !name.contains("executor") {
            ensure!(
                variables.is_empty() && !pod.to_string().contains("analysis"),
                "{name}: {pod}"
            );
            continue;
        }
        let hosts = json!("prometheus.monitoring:9090=prometheus,[2001:db8::1]:443");
        assert_eq!(
            variables,
            [
                ("NODEWISE_ANALYSIS_HOST", &hosts),
                ("NODEWISE_ANALYSIS_TIMEOUT", &json!("5s")),
                (
                    "NODEWISE_ANALYSIS_CREDENTIALS",
                    &json!("/etc/nodewise/analysis-credentials")
                ),
                ("NODEWISE_ANALYSIS_CA", &json!("/etc/nodewise/analysis-ca/ca.crt")),
            ]
        );
        for volume in ["analysis-credentials", "analysis-ca"] {
            for (list, kind) in [(&pod["volumes"], "volume"), (&container["volumeMounts"], "mount")] {
                let mut names = list.as_array().into_iter().flatten();
                ensure!(
                    names.any(|item| item["name"] == volume),
                    "no {kind} {volume}: {list}"
                );
            }
        }
    }
    let named =
        |object: &&Value| render::name(object).ends_with("-executor") && object["kind"] == "NetworkPolicy";
    let policy = objects
        .iter()
        .find(named)
        .context("the executor's NetworkPolicy")?;
    let mut rules = policy["spec"]["egress"].as_array().into_iter().flatten();
    ensure!(rules.any(|rule| rule["ports"][0]["port"] == 9090), "{policy}");
    Ok(())
}

/// An anti-affinity of the values replaces that of the chart.
#[test]
fn an_anti_affinity_can_be_replaced() -> Result<()> {
    let set = "affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey=rack";
    let objects = manifests::parse(&render::template(&["--set", set])?)?;
    for deployment in render::deployments(&objects) {
        let rules = &deployment["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"];
        let expected =
            json!({ "requiredDuringSchedulingIgnoredDuringExecution": [{ "topologyKey": "rack" }] });
        assert_eq!(*rules, expected, "{}", render::name(deployment));
    }
    Ok(())
}

/// OpenShift assigns user ids itself.
#[test]
fn user_ids_can_be_left_to_the_cluster() -> Result<()> {
    for deployment in render::deployments(&render::chart("odd")?) {
        let context = &deployment["spec"]["template"]["spec"]["securityContext"];
        assert_eq!(
            *context,
            json!({ "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } })
        );
    }
    Ok(())
}

#[test]
fn chart_version_is_the_version_of_the_programs() -> Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    let chart: Value = serde_saphyr::from_str(&render::text("deploy/helm/nodewise/Chart.yaml")?)?;
    assert_eq!(
        (&chart["version"], &chart["appVersion"]),
        (&version.into(), &version.into())
    );
    for overlay in render::overlays()? {
        for deployment in render::deployments(&render::overlay(&overlay)?) {
            let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
            let program = match deployment["metadata"]["name"].as_str().unwrap_or_default() {
                // The page is a command of the command line.
                "nodewise-dashboard" => "nodewise",
                program => program,
            };
            let expected = format!("ghcr.io/nodewise/{program}:{version}");
            assert_eq!(image, &expected);
        }
    }
    Ok(())
}

#[test]
fn the_readme_has_a_table_of_all_values() -> Result<()> {
    const README: &str = "deploy/helm/nodewise/README.md";
    const BEGIN: &str = "<!-- values: made from values.yaml and values.schema.json; a test says what to do when they differ -->\n";
    const END: &str = "<!-- end of values -->\n";
    let schema: Value = serde_json::from_str(&render::text("deploy/helm/nodewise/values.schema.json")?)?;
    let values: Value = serde_saphyr::from_str(&render::text("deploy/helm/nodewise/values.yaml")?)?;
    let mut table = "| value | default | meaning |\n|---|---|---|\n".to_owned();
    add_rows(&mut table, "", &schema, &values)?;
    let readme = render::text(README)?;
    let (before, rest) = readme.split_once(BEGIN).context("the beginning of the values")?;
    let (_, after) = rest.split_once(END).context("the end of the values")?;
    let fresh = format!("{before}{BEGIN}\n{table}\n{END}{after}");
    if std::env::var_os("NODEWISE_REGENERATE").is_some() {
        std::fs::write(render::file(README), &fresh)?;
        return Ok(());
    }
    ensure!(
        fresh == readme,
        "the values have changed: run NODEWISE_REGENERATE=1 cargo test -p nodewise-e2e --test deploy"
    );
    Ok(())
}

/// Adds a row for each leaf value. The schema must describe all values.
fn add_rows(table: &mut String, path: &str, schema: &Value, values: &Value) -> Result<()> {
    let known = schema["properties"]
        .as_object()
        .context("a schema without properties")?;
    let given = values
        .as_object()
        .with_context(|| format!("{path} has no values"))?;
    if let Some(unknown) = given.keys().find(|key| !known.contains_key(*key)) {
        anyhow::bail!("the schema does not know {path}{unknown}");
    }
    for (key, schema) in known {
        let path = format!("{path}{key}");
        let Some(default) = given.get(key) else {
            // A value of Helm's own, or a member of an object that is empty by default.
            continue;
        };
        if schema["properties"].is_object() && default.as_object().is_some_and(|it| !it.is_empty()) {
            add_rows(table, &format!("{path}."), schema, default)?;
            continue;
        }
        let meaning = schema["description"]
            .as_str()
            .with_context(|| format!("{path} has no description"))?;
        writeln!(
            table,
            "| `{path}` | `{default}` | {} |",
            meaning.replace('|', "\\|")
        )?;
    }
    Ok(())
}

/// An empty peer list would allow all traffic.
#[test]
fn network_policies_have_peers() -> Result<()> {
    let mut count = 0;
    for values in render::values()? {
        let objects = render::chart(&values)?;
        for policy in objects.iter().filter(|object| object["kind"] == "NetworkPolicy") {
            for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
                for rule in policy["spec"][direction].as_array().into_iter().flatten() {
                    // The rule for the apiserver's port is the only exception.
                    let named = rule[peers].as_array().is_some_and(|peers| !peers.is_empty());
                    let is_apiserver = rule["ports"][0]["port"] == 443;
                    ensure!(
                        named || is_apiserver,
                        "{values}: {}: {rule}",
                        render::name(policy)
                    );
                    count += 1;
                }
            }
        }
    }
    ensure!(count > 30, "only {count} rules");
    Ok(())
}
