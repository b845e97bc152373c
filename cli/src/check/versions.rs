//! Checks the versions of the apiserver, the executor, the service and this program.

use k8s_openapi::api::apps::v1::Deployment;

use super::{
    facts::Facts,
    finding::{Finding, Section},
    install::{NAME_LABEL, container, pod_spec, title},
};

/// The oldest minor version of Kubernetes 1 that is supported, as in the chart's `kubeVersion`.
const OLDEST: u32 = 30;
/// The newest one that the tests run on.
const NEWEST: u32 = 36;

const VERSION_LABEL: &str = "app.kubernetes.io/version";

pub(crate) fn apiserver(facts: &Facts) -> Finding {
    of_apiserver(&facts.apiserver)
}

fn of_apiserver(version: &str) -> Finding {
    let section = Section::Cluster;
    let message = format!("the apiserver's version is {version}");
    match parse(version) {
        Some((1, minor, _)) if minor < OLDEST => section.error(
            format!("{message}; the oldest supported one is 1.{OLDEST}"),
            format!("upgrade the cluster to Kubernetes 1.{OLDEST} or later"),
        ),
        Some((1, minor, _)) if minor > NEWEST => section.warning(
            format!("{message}; the newest tested one is 1.{NEWEST}"),
            "look for a newer release of Nodewise, and compare in mode observe before you let it own workloads",
        ),
        Some((1, ..)) => section.ok(message),
        _ => section.warning(
            format!("{message}, which is no version such as v1.36.1"),
            format!("check that it is Kubernetes 1.{OLDEST} to 1.{NEWEST}"),
        ),
    }
}

pub(crate) fn programs(facts: &Facts) -> Vec<Finding> {
    let all = |seen: &Result<Vec<Deployment>, _>| seen.iter().flatten().cloned().collect::<Vec<_>>();
    let in_namespace =
        |deployment: &Deployment| deployment.metadata.namespace.as_deref() == Some(facts.namespace.as_str());
    let mut executors = all(&facts.executors);
    executors.retain(in_namespace);
    skew(&all(&facts.servers), &executors, env!("CARGO_PKG_VERSION"))
}

fn skew(servers: &[Deployment], executors: &[Deployment], own: &str) -> Vec<Finding> {
    let section = Section::Installation;
    let mut findings = Vec::new();
    for deployment in servers.iter().chain(executors) {
        let title = title(deployment);
        let Some(version) = version_of(deployment) else {
            findings.push(section.warning(
                format!("{title}: its version is not known; neither the image's tag nor the pod's label {VERSION_LABEL} is one"),
                "compare the image's digest with those of the release",
            ));
            continue;
        };
        let text = format!("{title} has version {}", shown(version));
        findings.push(match parse(own) {
            Some(own) if (own.0, own.1) != (version.0, version.1) => section.warning(
                format!("{text}; this program has {}", shown(own)),
                "use the program of the same minor version (docs/upgrades.md)",
            ),
            _ => section.ok(text),
        });
    }
    let versions = |all: &[Deployment]| all.iter().filter_map(version_of).collect::<Vec<_>>();
    let (oldest_server, newest_executor) = (
        versions(servers).into_iter().min(),
        versions(executors).into_iter().max(),
    );
    if let (Some(server), Some(executor)) = (oldest_server, newest_executor)
        && (server.0, server.1) < (executor.0, executor.1)
    {
        findings.push(section.warning(
            format!(
                "the executor ({}) is newer than the service ({})",
                shown(executor),
                shown(server)
            ),
            "upgrade the service first, then executors (docs/upgrades.md)",
        ));
    }
    findings
}

type Version = (u32, u32, u32);

/// `v1.36.1`, `1.36.1-gke.5` or `0.1.0@sha256:…`.
fn parse(text: &str) -> Option<Version> {
    let mut numbers = text.strip_prefix('v').unwrap_or(text).splitn(3, '.');
    let major = numbers.next()?.parse().ok()?;
    let minor = numbers.next()?.trim_end_matches('+').parse().ok()?;
    let patch = numbers.next()?;
    let end = patch.find(|c: char| !c.is_ascii_digit()).unwrap_or(patch.len());
    Some((major, minor, patch[..end].parse().ok()?))
}

fn shown((major, minor, patch): Version) -> String {
    format!("{major}.{minor}.{patch}")
}

/// The version of a program, by the tag of its image, else by a label of its pods.
fn version_of(deployment: &Deployment) -> Option<Version> {
    let image = pod_spec(deployment)
        .and_then(container)
        .and_then(|container| container.image.as_deref());
    let by_tag = image.and_then(|image| {
        let name = image.split('@').next()?;
        // A colon before the last slash is that of the registry's port.
        let (_, tag) = name.rsplit('/').next()?.split_once(':')?;
        parse(tag)
    });
    by_tag.or_else(|| {
        let template = &deployment.spec.as_ref()?.template;
        let labels = template.metadata.as_ref()?.labels.as_ref()?;
        parse(labels.get(VERSION_LABEL)?)
    })
}

/// Whether the Deployments are there and have ready pods.
pub(crate) fn installed(facts: &Facts) -> Vec<Finding> {
    let section = Section::Installation;
    let mut findings = Vec::new();
    for (name, seen) in [
        ("nodewise-server", &facts.servers),
        ("nodewise-executor", &facts.executors),
    ] {
        match seen {
            Err(unread) => {
                findings.push(section.unread(&format!("Deployments with label {NAME_LABEL}={name}"), unread));
            }
            Ok(all) => findings.extend(ready(name, &facts.namespace, all)),
        }
    }
    findings
}

fn ready(name: &str, namespace: &str, all: &[Deployment]) -> Vec<Finding> {
    let section = Section::Installation;
    let here: Vec<_> = all
        .iter()
        .filter(|deployment| deployment.metadata.namespace.as_deref() == Some(namespace))
        .collect();
    if here.is_empty() {
        return vec![section.error(
            format!("namespace {namespace} has no Deployment with label {NAME_LABEL}={name}"),
            "install Nodewise (docs/install.md), or name its namespace with -n; before installing, use --pre",
        )];
    }
    let one = |deployment: &&Deployment| {
        let wanted = deployment
            .spec
            .as_ref()
            .and_then(|spec| spec.replicas)
            .unwrap_or(1);
        let ready = deployment
            .status
            .as_ref()
            .and_then(|status| status.ready_replicas)
            .unwrap_or(0);
        let text = format!("{} has {ready} of {wanted} pods ready", title(deployment));
        let hint = format!("look at its pods: kubectl -n {namespace} describe pods -l {NAME_LABEL}={name}");
        match ready {
            0 => section.error(text, hint),
            _ if ready < wanted => section.warning(text, hint),
            _ => section.ok(text),
        }
    };
    here.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::check::finding::Outcome::{Error, Ok as Fine, Warning};

    fn deployment(name: &str, image: &str, label: &str, ready: i32) -> Deployment {
        serde_json::from_value(json!({
            "metadata": {"namespace": "nodewise-system", "name": name},
            "spec": {"replicas": 2, "selector": {}, "template": {
                "metadata": {"labels": {"app.kubernetes.io/version": label}},
                "spec": {"containers": [{"name": "server", "image": image}]}}},
            "status": {"readyReplicas": ready},
        }))
        .expect("a Deployment")
    }

    #[test]
    fn versions_of_the_apiserver() {
        for (version, expected) in [
            ("v1.29.9", Error),
            ("v1.30.0", Fine),
            ("v1.36.1-gke.100", Fine),
            ("v1.37.0", Warning),
            ("v2.0.0", Warning),
            ("dev", Warning),
        ] {
            assert_eq!(of_apiserver(version).result, expected, "{version}");
        }
    }

    #[test]
    fn versions_of_programs() {
        let table = [
            (
                "nodewise-server:0.1.0",
                "",
                "nodewise-executor:0.1.7",
                "",
                "0.1.0",
                vec![Fine, Fine],
            ),
            (
                "r:5000/nodewise-server",
                "0.1.0",
                "r:5000/x@sha256:ab",
                "0.1.0",
                "0.1.0",
                vec![Fine, Fine],
            ),
            (
                "r:5000/nodewise-server",
                "",
                "x:0.1.0@sha256:ab",
                "",
                "0.1.0",
                vec![Warning, Fine],
            ),
            ("s:0.2.0", "", "x:0.1.0", "", "0.2.0", vec![Fine, Warning]),
            (
                "s:0.1.0",
                "",
                "x:0.2.0",
                "",
                "0.2.0",
                vec![Warning, Fine, Warning],
            ),
        ];
        for (server, server_label, executor, executor_label, own, expected) in table {
            let servers = [deployment("nodewise-server", server, server_label, 1)];
            let executors = [deployment("nodewise-executor", executor, executor_label, 1)];
            let found = skew(&servers, &executors, own);
            let results: Vec<_> = found.iter().map(|finding| finding.result).collect();
            assert_eq!(results, expected, "{found:#?}");
        }
    }

    #[test]
    fn pods_must_be_ready() {
        for (count, expected) in [(0, Error), (1, Warning), (2, Fine)] {
            let all = [deployment("nodewise-server", "s:0.1.0", "", count)];
            assert_eq!(
                ready("nodewise-server", "nodewise-system", &all)[0].result,
                expected
            );
        }
        let found = ready(
            "nodewise-server",
            "elsewhere",
            &[deployment("s", "s:0.1.0", "", 2)],
        );
        assert_eq!(found[0].result, Error);
        assert!(found[0].message.contains("elsewhere"), "{found:?}");
    }
}
