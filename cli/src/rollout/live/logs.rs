//! The log of a pod that holds up a rollout.

use anyhow::anyhow;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client, api::LogParams};
use nodewise_proto::v1;
use nodewise_telemetry::printable;

use crate::{input::one_line, rollout::quote::word, view};

/// The lines that are read, from the end.
const LINES: i64 = 200;

/// The log that says most about a rollout.
pub(super) struct Log {
    namespace: String,
    pod: String,
    /// Empty: the only container.
    container: String,
    /// Whether the container has ended and was started again.
    previous: bool,
}

impl Log {
    /// Of the first pod that cannot become ready, or else of the first that is not ready. `None` if all are ready.
    pub(super) fn of(status: &v1::WorkloadStatus) -> Option<Self> {
        let is_failing =
            |pod: &&v1::PodStatus| pod.problem.as_ref().is_some_and(|problem| problem.is_failing);
        let is_unready = |pod: &&v1::PodStatus| !pod.ready && pod.deleted_at.is_none();
        let pod = view::pods(status)
            .find(is_failing)
            .or_else(|| view::pods(status).find(is_unready))?;
        let problem = pod.problem.as_ref();
        Some(Self {
            namespace: status.namespace.clone(),
            pod: pod.pod_name.clone(),
            container: problem
                .map(|problem| problem.container.clone())
                .unwrap_or_default(),
            previous: problem.is_some_and(|problem| problem.restarts > 0),
        })
    }

    /// kubectl's command.
    pub(super) fn command(&self) -> String {
        let container = match self.container.as_str() {
            "" => String::new(),
            container => format!(" -c {}", word(container)),
        };
        let previous = if self.previous { " --previous" } else { "" };
        format!(
            "kubectl logs {} -n {}{container}{previous} --tail={LINES}",
            word(&self.pod),
            word(&self.namespace)
        )
    }

    /// Reads it. Each line is printable.
    ///
    /// # Errors
    /// The apiserver or the kubelet refuses.
    pub(super) async fn read(&self, client: &Client) -> anyhow::Result<String> {
        let api: Api<Pod> = Api::namespaced(client.clone(), &self.namespace);
        let params = LogParams {
            container: (!self.container.is_empty()).then(|| self.container.clone()),
            previous: self.previous,
            tail_lines: Some(LINES),
            ..LogParams::default()
        };
        let text = api.logs(&self.pod, &params).await;
        let text = text.map_err(|error| anyhow!("the log of pod {}: {}", self.pod, one_line(&error)))?;
        Ok(match text.trim_end() {
            "" => "The log is empty.".to_owned(),
            text => text.lines().map(printable).collect::<Vec<_>>().join("\n"),
        })
    }
}
