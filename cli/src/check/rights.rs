//! Checks the rights of the executors, and of the caller before installing.

use super::{
    facts::{Access, Facts, Subject},
    finding::{Finding, Section},
    needs::Right,
};

const SECTION: Section = Section::Rights;

/// What the caller needs to install, besides the rights that it gives to executors: verb, resource, API group, and whether it is in
/// the namespace.
const TO_INSTALL: [(&str, &str, &str, bool); 13] = [
    ("create", "namespaces", "", false),
    ("create", "clusterroles", "rbac.authorization.k8s.io", false),
    (
        "create",
        "clusterrolebindings",
        "rbac.authorization.k8s.io",
        false,
    ),
    (
        "create",
        "customresourcedefinitions",
        "apiextensions.k8s.io",
        false,
    ),
    ("create", "roles", "rbac.authorization.k8s.io", true),
    ("create", "rolebindings", "rbac.authorization.k8s.io", true),
    ("create", "serviceaccounts", "", true),
    ("create", "services", "", true),
    ("create", "deployments", "apps", true),
    ("create", "horizontalpodautoscalers", "autoscaling", true),
    ("create", "networkpolicies", "networking.k8s.io", true),
    ("create", "poddisruptionbudgets", "policy", true),
    ("create", "resourcequotas", "", true),
];

/// The rights that the caller needs to install.
pub(crate) fn to_install(namespace: &str) -> Vec<Right> {
    TO_INSTALL
        .iter()
        .map(|(verb, resource, group, is_in_namespace)| {
            Right::new(verb, resource, group, is_in_namespace.then_some(namespace))
        })
        .collect()
}

/// The right to give others more rights than one has.
pub(crate) fn escalation() -> Right {
    Right::new("escalate", "clusterroles", "rbac.authorization.k8s.io", None)
}

pub(crate) fn check(facts: &Facts) -> Vec<Finding> {
    if facts.pre {
        return of_caller(&facts.access);
    }
    let mut accounts: Vec<&str> = Vec::new();
    for access in &facts.access {
        if let Subject::Executor(account) = &access.subject
            && !accounts.contains(&account.as_str())
        {
            accounts.push(account);
        }
    }
    accounts
        .into_iter()
        .map(|account| of_executor(&facts.access, account))
        .collect()
}

fn of_executor(all: &[Access], account: &str) -> Finding {
    let of = Subject::Executor(account.to_owned());
    judge(
        all.iter().filter(|access| access.subject == of),
        [
            &format!("ServiceAccount {account} has the rights that the executor needs"),
            &format!("ServiceAccount {account} lacks rights that the executor needs"),
        ],
        "apply the manifests or the chart again, with all controllers and modes that the executor runs (deploy/README.md)",
    )
}

fn of_caller(all: &[Access]) -> Vec<Finding> {
    let of = |subject: Subject| all.iter().filter(move |access| access.subject == subject);
    let hint = "let a cluster administrator install Nodewise";
    let may_escalate = of(Subject::Escalation).any(|access| access.is_allowed == Ok(true));
    let mut findings = vec![judge(
        of(Subject::Installer),
        ["you have the rights to install", "you lack rights to install"],
        hint,
    )];
    findings.push(if may_escalate {
        SECTION.ok("you may give the executor every right (escalate)")
    } else {
        judge(
            of(Subject::Giver),
            [
                "you have the rights that you must give to the executor",
                "you cannot give the executor these rights, because you lack them",
            ],
            hint,
        )
    });
    findings
}

/// One finding about rights of one subject. `has` and `lacks` begin the sentence.
fn judge<'a>(all: impl Iterator<Item = &'a Access>, [has, lacks]: [&str; 2], hint: &str) -> Finding {
    let (mut missing, mut count) = (Vec::new(), 0);
    for access in all {
        count += 1;
        match &access.is_allowed {
            Ok(true) => {}
            Ok(false) => missing.push(access.right.to_string()),
            Err(unread) => return SECTION.unread("rights", unread),
        }
    }
    if missing.is_empty() {
        SECTION.ok(format!("{has} (all {count})"))
    } else {
        SECTION.error(format!("{lacks}: {}", missing.join(", ")), hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{
        facts::{Seen, Unread},
        finding::Outcome,
    };

    fn access(subject: &Subject, verb: &str, is_allowed: Seen<bool>) -> Access {
        Access {
            subject: subject.clone(),
            right: Right::new(verb, "pods", "", None),
            is_allowed,
        }
    }

    #[test]
    fn missing_rights_of_an_executor_are_named() {
        let executor = Subject::Executor("nodewise-system/nodewise-executor".to_owned());
        let forbidden = || Err(Unread::Forbidden("no".to_owned()));
        let table = [
            (vec![Ok(true), Ok(true)], Outcome::Ok, "needs (all 2)"),
            (vec![Ok(true), Ok(false)], Outcome::Error, "needs: watch pods"),
            (
                vec![Ok(false), Ok(false)],
                Outcome::Error,
                "needs: list pods, watch pods",
            ),
            (
                vec![Ok(true), forbidden()],
                Outcome::Warning,
                "could not be read: no",
            ),
        ];
        for (answers, result, text) in table {
            let all: Vec<_> = answers
                .into_iter()
                .zip(["list", "watch"])
                .map(|(answer, verb)| access(&executor, verb, answer))
                .collect();
            let found = of_executor(&all, "nodewise-system/nodewise-executor");
            assert_eq!(found.result, result, "{found:?}");
            assert!(found.message.contains(text), "{found:?}");
        }
    }

    #[test]
    fn the_caller_needs_the_rights_that_it_gives_or_escalate() {
        for (escalates, has, expected) in [
            (false, false, Outcome::Error),
            (false, true, Outcome::Ok),
            (true, false, Outcome::Ok),
        ] {
            let all = [
                access(&Subject::Installer, "create", Ok(true)),
                access(&Subject::Escalation, "escalate", Ok(escalates)),
                access(&Subject::Giver, "watch", Ok(has)),
            ];
            let found = of_caller(&all);
            assert_eq!(
                (found[0].result, found[1].result),
                (Outcome::Ok, expected),
                "{found:?}"
            );
        }
        let found = of_caller(&[access(&Subject::Installer, "create", Ok(false))]);
        assert_eq!(found[0].result, Outcome::Error);
    }
}
