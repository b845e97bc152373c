//! What `nodewise explain` explains.

use anyhow::ensure;

use crate::target::Target;

/// kubectl's names for pods and nodes.
const PODS: [&str; 3] = ["pod", "pods", "po"];
const NODES: [&str; 3] = ["node", "nodes", "no"];

/// A workload, or an object by which workloads are found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Workload(Target),
    /// A pod by its name.
    Pod(String),
    /// A node by its name.
    Node(String),
}

impl Subject {
    /// Parses `KIND NAME` or `KIND/NAME`.
    pub(super) fn parse(words: &[String]) -> anyhow::Result<Self> {
        let split = match words {
            [kind, name] => Some((kind.as_str(), name.as_str())),
            [both] => both.split_once('/'),
            _ => None,
        };
        let Some((kind, name)) = split else {
            return Ok(Self::Workload(Target::parse_one(words)?));
        };
        let kind = kind.to_ascii_lowercase();
        let is_pod = PODS.contains(&&*kind);
        if !is_pod && !NODES.contains(&&*kind) {
            return Ok(Self::Workload(Target::parse_one(words)?));
        }
        let what = if is_pod { "pod" } else { "node" };
        ensure!(!name.is_empty(), "{what}/: the name of the {what} is missing");
        Ok(if is_pod {
            Self::Pod(name.to_owned())
        } else {
            Self::Node(name.to_owned())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_and_nodes_are_entries() {
        let parse = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            Subject::parse(&words)
        };
        for (line, expected) in [
            ("pod/a", Subject::Pod("a".to_owned())),
            ("po a", Subject::Pod("a".to_owned())),
            ("Nodes/worker-1", Subject::Node("worker-1".to_owned())),
            ("no worker-1", Subject::Node("worker-1".to_owned())),
        ] {
            assert_eq!(parse(line).expect(line), expected, "{line}");
        }
        assert!(matches!(parse("ds/agent"), Ok(Subject::Workload(_))));
        let error = parse("node/").expect_err("no name").to_string();
        assert_eq!(error, "node/: the name of the node is missing");
        assert!(parse("service/web").is_err());
    }
}
