//! The workloads that a command line names, as kubectl's users write them.

use anyhow::{bail, ensure};

use crate::kind::Kind;

/// The kinds in messages.
const KINDS: &str = "it plans for deployment, replicaset and daemonset";

/// One workload, or all workloads of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) kind: Kind,
    /// metadata.name. `None`: all workloads of the kind.
    pub(crate) name: Option<String>,
}

impl Target {
    /// All workloads of all kinds.
    pub(crate) fn every_workload() -> Vec<Self> {
        Kind::WORKLOADS.map(Self::all).to_vec()
    }

    fn all(kind: Kind) -> Self {
        Self { kind, name: None }
    }

    fn one(kind: Kind, name: &str) -> anyhow::Result<Self> {
        ensure!(
            !name.is_empty(),
            "{}/: the name of the {} is missing",
            kind.name().to_ascii_lowercase(),
            kind.name()
        );
        Ok(Self {
            kind,
            name: Some(name.to_owned()),
        })
    }

    /// Parses `KIND NAME` or `KIND/NAME`.
    pub(crate) fn parse_one(words: &[String]) -> anyhow::Result<Self> {
        const EXPECTED: &str =
            "expected a kind and a name, such as deployment/web, rs/web-5d4f or daemonset/agent";
        match words {
            [kind, name] if !kind.contains('/') => Self::one(parse_kind(kind)?, name),
            [both] => match both.split_once('/') {
                Some((kind, name)) => Self::one(parse_kind(kind)?, name),
                None => bail!("{both}: {EXPECTED}"),
            },
            _ => bail!("{}: {EXPECTED}", words.join(" ")),
        }
    }

    /// Parses `KIND[,KIND ...] [NAME ...]` or `KIND/NAME ...`. Without words: all DaemonSets.
    pub(crate) fn parse_many(words: &[String]) -> anyhow::Result<Vec<Self>> {
        let Some((first, rest)) = words.split_first() else {
            return Ok(vec![Self::all(Kind::DaemonSet)]);
        };
        if first.contains('/') {
            let one = |word: &String| match word.split_once('/') {
                Some((kind, name)) => Self::one(parse_kind(kind)?, name),
                None => bail!("{word}: expected KIND/NAME, as {first} before it"),
            };
            return words.iter().map(one).collect();
        }
        let kinds = first.split(',').map(parse_kind);
        let kinds = kinds.collect::<Result<Vec<_>, _>>()?;
        if rest.is_empty() {
            return Ok(kinds.into_iter().map(Self::all).collect());
        }
        if let Some(word) = rest.iter().find(|word| word.contains('/')) {
            bail!("{word}: expected a name, because {first} before it names the kind");
        }
        let of_kind = |kind: Kind| rest.iter().map(move |name| Self::one(kind, name));
        kinds.into_iter().flat_map(of_kind).collect()
    }
}

fn parse_kind(kind: &str) -> anyhow::Result<Kind> {
    match Kind::of_workload(kind) {
        Some(kind) => Ok(kind),
        None => bail!("{kind}: not a kind that Nodewise plans for; {KINDS}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn shown(target: &Target) -> String {
        format!("{}/{}", target.kind.name(), target.name.as_deref().unwrap_or("*"))
    }

    #[test]
    fn kubectls_names_are_known() {
        for (line, expected) in [
            ("", "DaemonSet/*"),
            ("ds", "DaemonSet/*"),
            ("deployments", "Deployment/*"),
            ("Deployment web", "Deployment/web"),
            ("deploy/web", "Deployment/web"),
            ("deployments.apps/web", "Deployment/web"),
            ("deployment.v1.apps/web", "Deployment/web"),
            ("rs/web-1 replicaset/web-2", "ReplicaSet/web-1 ReplicaSet/web-2"),
            ("rs web-1 web-2", "ReplicaSet/web-1 ReplicaSet/web-2"),
            ("deploy,rs", "Deployment/* ReplicaSet/*"),
            ("ds/agent deploy/web", "DaemonSet/agent Deployment/web"),
        ] {
            let targets = Target::parse_many(&words(line)).expect(line);
            let found: Vec<String> = targets.iter().map(shown).collect();
            assert_eq!(found.join(" "), expected, "{line}");
        }
    }

    #[test]
    fn wrong_targets_say_what_is_right() {
        let kinds = "not a kind that Nodewise plans for; it plans for deployment, replicaset and daemonset";
        for (line, expected) in [
            ("statefulset/db", format!("statefulset: {kinds}")),
            ("web", format!("web: {kinds}")),
            (
                "deployments.extensions",
                format!("deployments.extensions: {kinds}"),
            ),
            ("pods", format!("pods: {kinds}")),
            (
                "deploy/",
                "deployment/: the name of the Deployment is missing".to_owned(),
            ),
            (
                "deploy/web web-2",
                "web-2: expected KIND/NAME, as deploy/web before it".to_owned(),
            ),
            (
                "deploy rs/web",
                "rs/web: expected a name, because deploy before it names the kind".to_owned(),
            ),
        ] {
            let error = Target::parse_many(&words(line)).expect_err(line);
            assert_eq!(error.to_string(), expected);
        }
        for line in ["web", "deploy/web rs/web"] {
            let error = Target::parse_one(&words(line)).expect_err(line).to_string();
            let expected =
                "expected a kind and a name, such as deployment/web, rs/web-5d4f or daemonset/agent";
            assert_eq!(error, format!("{line}: {expected}"));
        }
    }
}
