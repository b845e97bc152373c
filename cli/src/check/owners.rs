//! Checks that every kind of workload has exactly one owner.

use k8s_openapi::api::core::v1::Pod;
use nodewise_executor::{
    config::Mode,
    controllers::{Controller, Entry, is_enabled},
};

use super::{
    facts::{Clock, Facts},
    finding::{Finding, Section},
    install::{Plan, flag_value},
};

const SECTION: Section = Section::Owners;
const FIND_OUT: &str = "ask whoever runs the control plane for its flag --controllers, or look there with \
                        `ps -ef | grep kube-controller-manager`; docs/install.md says how to change it";

/// What is known about kube-controller-manager's controllers.
#[derive(Debug, Clone, PartialEq, Eq)]
enum BuiltIn {
    /// The `--controllers` of its pods.
    Seen(Vec<String>),
    /// Its pods are not visible. The text says what is known.
    Unknown(String),
}

pub(crate) fn check(facts: &Facts) -> Vec<Finding> {
    let built_in = built_in(facts);
    let mut findings = Vec::new();
    findings.extend(unknown(&facts.plans, &built_in));
    let unreadable = facts.plans.iter().filter_map(|plan| plan.modes.as_ref().err());
    findings.extend(unreadable.map(|error| {
        SECTION.error(
            format!("what an executor owns is not known: {error}"),
            "give the executor values that `nodewise-executor --help` names",
        )
    }));
    for controller in Controller::ALL {
        findings.extend(two_executors(&facts.plans, controller));
        findings.extend(of_kind(&facts.plans, &built_in, controller));
    }
    findings
}

/// That kube-controller-manager is not visible, and of which kinds it may be the second owner. This is never ok.
fn unknown(plans: &[Plan], built_in: &BuiltIn) -> Option<Finding> {
    let BuiltIn::Unknown(known) = built_in else {
        return None;
    };
    let is_owned =
        |controller: &Controller| plans.iter().any(|plan| plan.mode(*controller) == Some(Mode::Own));
    let owned: Vec<_> = Controller::ALL
        .into_iter()
        .filter(is_owned)
        .map(Controller::name)
        .collect();
    let second = if owned.is_empty() {
        String::new()
    } else {
        format!(
            "; it may be a second owner, besides Nodewise, of {}",
            owned.join(", ")
        )
    };
    Some(SECTION.warning(
        format!("which controllers kube-controller-manager runs is not known: {known}{second}"),
        FIND_OUT,
    ))
}

fn built_in(facts: &Facts) -> BuiltIn {
    match &facts.controller_managers {
        Ok(pods) if !pods.is_empty() => BuiltIn::Seen(pods.iter().map(controllers_of).collect()),
        Ok(_) => {
            let lease = facts.controller_manager_lease.as_ref();
            let renewed = lease.ok().and_then(Option::as_ref).and_then(|lease| {
                let spec = lease.spec.as_ref()?;
                Some((spec.holder_identity.as_deref()?, spec.renew_time.as_ref()?.0))
            });
            BuiltIn::Unknown(match renewed {
                Some((holder, time)) => {
                    format!(
                        "no pod of it is visible, and its Lease is held by {holder} ({})",
                        age(&facts.clock, time)
                    )
                }
                None => {
                    "no pod of it is visible, and nobody holds the Lease kube-system/kube-controller-manager"
                        .to_owned()
                }
            })
        }
        Err(unread) => BuiltIn::Unknown(format!("its pods could not be read: {unread}")),
    }
}

fn age(clock: &Clock, time: jiff::Timestamp) -> String {
    let seconds = clock.now().duration_since(time).as_secs().max(0);
    format!("renewed {seconds} s ago")
}

/// The flag `--controllers` of a pod; without it, `*`.
fn controllers_of(pod: &Pod) -> String {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let words = containers.flat_map(|container| container.command.iter().chain(&container.args).flatten());
    flag_value(words, "controllers").unwrap_or_else(|| "*".to_owned())
}

/// Whether a list of kube-controller-manager enables a controller. Entries for other controllers do not matter.
fn enables(list: &str, controller: Controller) -> bool {
    let entries: Vec<Entry> = list
        .split(',')
        .filter_map(|entry| entry.trim().parse().ok())
        .collect();
    is_enabled(&entries, controller)
}

fn two_executors(plans: &[Plan], controller: Controller) -> Option<Finding> {
    let owners: Vec<&Plan> = plans
        .iter()
        .filter(|plan| plan.mode(controller) == Some(Mode::Own))
        .collect();
    let [first, others @ ..] = owners.as_slice() else {
        return None;
    };
    if others.is_empty() {
        return None;
    }
    let titles: Vec<_> = owners.iter().map(|plan| plan.title.as_str()).collect();
    let message = format!(
        "several executors own the workloads of {controller}: {}",
        titles.join(", ")
    );
    let same_lease = others
        .iter()
        .all(|plan| plan.lease_namespace.is_some() && plan.lease_namespace == first.lease_namespace);
    if same_lease {
        return None;
    }
    Some(if owners.iter().all(|plan| plan.is_partial) {
        SECTION.warning(
            message,
            "check that their --namespace and --selector leave no workload to two of them",
        )
    } else {
        SECTION.error(message, "leave one of them in mode own")
    })
}

/// `None` if kube-controller-manager's part is not known.
fn of_kind(plans: &[Plan], built_in: &BuiltIn, controller: Controller) -> Option<Finding> {
    let BuiltIn::Seen(lists) = built_in else {
        return None;
    };
    let is_built_in = lists.iter().any(|list| enables(list, controller));
    let has = |mode| plans.iter().find(|plan| plan.mode(controller) == Some(mode));
    Some(match (has(Mode::Own), is_built_in) {
        (Some(plan), true) => SECTION.error(
            format!(
                "{controller} has two owners: {} and kube-controller-manager",
                plan.title
            ),
            format!(
                "add -{controller} to kube-controller-manager's --controllers, or take the executor out of mode own (docs/install.md)"
            ),
        ),
        (Some(plan), false) => SECTION.ok(format!("{controller}: {} is the only owner", plan.title)),
        (None, true) if has(Mode::Companion).is_some() => SECTION.ok(format!(
            "{controller}: kube-controller-manager is the owner, and the executor its companion"
        )),
        (None, true) => SECTION.ok(format!(
            "{controller}: kube-controller-manager is the only owner"
        )),
        (None, false) => SECTION.error(
            format!(
                "{controller} has no owner: it is off in kube-controller-manager, and no executor is in mode own for it"
            ),
            format!(
                "run an executor with --mode own and --controllers {controller}, or take -{controller} out of \
                 kube-controller-manager's --controllers"
            ),
        ),
    })
}

#[cfg(test)]
mod tests;
