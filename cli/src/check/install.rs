//! What an executor's Deployment does, as its flags and environment variables say.

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Container, PodSpec},
};
use nodewise_executor::{
    config::Mode,
    controllers::{Controller, Entry, ModeEntry, is_enabled, mode_of},
};

/// The label that names a component.
pub(crate) const NAME_LABEL: &str = "app.kubernetes.io/name";
pub(crate) const EXECUTOR: &str = "nodewise-executor";
pub(crate) const SERVER: &str = "nodewise-server";

/// What one executor does, or shall do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Its namespace.
    pub(crate) namespace: String,
    /// `Deployment nodewise-system/nodewise-executor`.
    pub(crate) title: String,
    pub(crate) service_account: String,
    /// The controllers that it runs, with their modes. An error says which setting cannot be read.
    pub(crate) modes: Result<Vec<(Controller, Mode)>, String>,
    /// Whether it may work on a part of the cluster only: of one namespace, or of workloads with some labels.
    pub(crate) is_partial: bool,
    /// The namespace of its Lease; `None` if it needs none.
    pub(crate) lease_namespace: Option<String>,
}

impl Plan {
    /// The executor that is to be installed.
    pub(crate) fn planned(namespace: &str, modes: &[ModeEntry], controllers: &[Entry]) -> Self {
        let modes = combined(modes, controllers);
        let writes = modes
            .as_ref()
            .is_ok_and(|modes| modes.iter().any(|(_, mode)| *mode != Mode::Observe));
        Self {
            namespace: namespace.to_owned(),
            title: "the executor to install".to_owned(),
            service_account: EXECUTOR.to_owned(),
            modes,
            is_partial: false,
            lease_namespace: writes.then(|| namespace.to_owned()),
        }
    }

    /// The executor of a Deployment.
    pub(crate) fn of(deployment: &Deployment) -> Self {
        let namespace = deployment.metadata.namespace.clone().unwrap_or_default();
        let title = title(deployment);
        let spec = pod_spec(deployment);
        let container = spec.and_then(container);
        let setting = |flag: &str| container.and_then(|container| setting(container, flag));
        let modes = settings(
            setting("mode").as_deref(),
            setting("controllers").as_deref(),
            &title,
        );
        let writes = modes
            .as_ref()
            .is_ok_and(|modes| modes.iter().any(|(_, mode)| *mode != Mode::Observe));
        let elects = setting("leader-elect").as_deref() != Some("false");
        let account = spec.and_then(|spec| spec.service_account_name.clone());
        Self {
            namespace,
            title,
            service_account: account.unwrap_or_else(|| "default".to_owned()),
            modes,
            is_partial: ["namespace", "selector"]
                .into_iter()
                .any(|flag| setting(flag).is_some_and(|value| !value.is_empty())),
            lease_namespace: (writes && elects)
                .then(|| setting("lease-namespace").unwrap_or_else(|| "kube-system".to_owned())),
        }
    }

    /// The mode of a controller; `None` if the executor does not run it, or if its settings cannot be read.
    pub(crate) fn mode(&self, controller: Controller) -> Option<Mode> {
        let modes = self.modes.as_ref().ok()?;
        modes
            .iter()
            .find(|(name, _)| *name == controller)
            .map(|(_, mode)| *mode)
    }
}

/// `Deployment nodewise-system/nodewise-executor`.
pub(crate) fn title(deployment: &Deployment) -> String {
    let meta = &deployment.metadata;
    let part = |name: &Option<String>| name.clone().unwrap_or_default();
    format!("Deployment {}/{}", part(&meta.namespace), part(&meta.name))
}

pub(crate) fn pod_spec(deployment: &Deployment) -> Option<&PodSpec> {
    deployment.spec.as_ref()?.template.spec.as_ref()
}

/// The container of the program: the first one, because service meshes append theirs.
pub(crate) fn container(spec: &PodSpec) -> Option<&Container> {
    let named = spec
        .containers
        .iter()
        .find(|container| ["executor", "server"].contains(&container.name.as_str()));
    named.or(spec.containers.first())
}

/// The value of a flag, else of its environment variable.
pub(crate) fn setting(container: &Container, flag: &str) -> Option<String> {
    let words = container.command.iter().chain(&container.args).flatten();
    flag_value(words, flag).or_else(|| {
        let variable = format!("NODEWISE_{}", flag.replace('-', "_").to_ascii_uppercase());
        let variables = container.env.as_deref().unwrap_or_default().iter();
        // As for a container, the last one of a name counts.
        variables
            .rev()
            .find(|one| one.name == variable)
            .and_then(|one| one.value.clone())
    })
}

/// The values of `--FLAG VALUE` and `--FLAG=VALUE`, joined by commas.
pub(crate) fn flag_value<'a>(words: impl Iterator<Item = &'a String>, flag: &str) -> Option<String> {
    let name = format!("--{flag}");
    let mut values: Vec<&str> = Vec::new();
    let mut is_next = false;
    for word in words {
        if std::mem::take(&mut is_next) {
            values.push(word);
        } else if *word == name {
            is_next = true;
        } else if let Some(value) = word.strip_prefix(&name).and_then(|rest| rest.strip_prefix('=')) {
            values.push(value);
        }
    }
    (!values.is_empty()).then(|| values.join(","))
}

fn settings(
    mode: Option<&str>,
    controllers: Option<&str>,
    title: &str,
) -> Result<Vec<(Controller, Mode)>, String> {
    let mode = mode.ok_or_else(|| format!("{title} has neither --mode nor NODEWISE_MODE with a value"))?;
    let invalid = |flag: &str, error: &dyn std::fmt::Display| format!("{title}: --{flag}: {error}");
    let modes: Result<Vec<ModeEntry>, _> = mode.split(',').map(str::parse).collect();
    let modes = modes.map_err(|error| invalid("mode", &error))?;
    let list = controllers.unwrap_or("daemonset-controller").split(',');
    let list: Result<Vec<Entry>, _> = list.map(str::parse).collect();
    let list = list.map_err(|error| invalid("controllers", &error))?;
    combined(&modes, &list).map_err(|error| format!("{title}: {error}"))
}

fn combined(modes: &[ModeEntry], controllers: &[Entry]) -> Result<Vec<(Controller, Mode)>, String> {
    let enabled = Controller::ALL
        .into_iter()
        .filter(|controller| is_enabled(controllers, *controller));
    enabled
        .map(|controller| {
            let mode = mode_of(modes, controller).ok_or(format!("--mode has no entry for {controller}"))?;
            Ok((controller, mode))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn plan(container: &Value) -> Plan {
        let deployment = json!({
            "metadata": {"namespace": "nodewise-system", "name": "nodewise-executor"},
            "spec": {"selector": {}, "template": {"spec": {"serviceAccountName": "sa", "containers": [container]}}},
        });
        Plan::of(&serde_json::from_value(deployment).expect("a Deployment"))
    }

    #[test]
    fn flags_and_variables_say_what_an_executor_does() {
        use Controller::{DaemonSet, Deployment, ReplicaSet};
        let table = [
            (
                json!({"name": "executor", "env": [{"name": "NODEWISE_MODE", "value": "own"}]}),
                Ok(vec![(DaemonSet, Mode::Own)]),
                Some("kube-system"),
            ),
            (
                json!({"name": "executor", "args": ["--mode=own,deployment-controller=observe", "--controllers", "*,-replicaset"],
                    "env": [{"name": "NODEWISE_MODE", "value": "observe"}, {"name": "NODEWISE_LEASE_NAMESPACE", "value": "x"}]}),
                Ok(vec![(DaemonSet, Mode::Own), (Deployment, Mode::Observe)]),
                Some("x"),
            ),
            (
                json!({"name": "executor", "args": ["--mode", "observe", "--controllers=replicaset-controller"]}),
                Ok(vec![(ReplicaSet, Mode::Observe)]),
                None,
            ),
            (
                json!({"name": "executor", "args": ["--mode=own", "--leader-elect=false"]}),
                Ok(vec![(DaemonSet, Mode::Own)]),
                None,
            ),
            (
                json!({"name": "executor"}),
                Err("neither --mode nor NODEWISE_MODE"),
                None,
            ),
            (
                json!({"name": "executor", "args": ["--mode=rule"]}),
                Err("there is no mode `rule`"),
                None,
            ),
        ];
        for (container, modes, lease) in table {
            let found = plan(&container);
            match (&found.modes, modes) {
                (Err(found), Err(expected)) => assert!(found.contains(expected), "{found}"),
                (found, modes) => assert_eq!(*found, modes.map_err(str::to_owned), "{container}"),
            }
            assert_eq!(found.lease_namespace.as_deref(), lease, "{container}");
            assert_eq!(found.service_account, "sa");
        }
    }
}
