//! `nodewise plan`.

use std::process::ExitCode;

use nodewise_proto::v1::{self, action::Kind};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    args::{Output, PlanArgs},
    engine::Engine,
    input::{Cluster, Served},
    print,
    request::RequestFactory,
    text::{self, Page},
};

/// The exit code of `--detailed-exitcode` if something would change.
const CHANGES: u8 = 2;

/// One element of the JSON output.
#[derive(Serialize)]
struct Element<'a> {
    namespace: &'a str,
    name: &'a str,
    plan: &'a v1::Plan,
}

pub(crate) async fn run(args: &PlanArgs) -> anyhow::Result<ExitCode> {
    let namespace = args.namespace.as_deref();
    let cluster = Cluster::read(&args.source, namespace).await?;
    let engine = Engine::new(&args.engine)?;
    let requests = RequestFactory::new(&cluster, &args.engine);
    let daemon_sets: Vec<&Served> = cluster
        .daemon_sets
        .iter()
        .filter(|daemon_set| namespace.is_none_or(|namespace| daemon_set.namespace == namespace))
        .collect();
    let mut plans = Vec::with_capacity(daemon_sets.len());
    for daemon_set in &daemon_sets {
        plans.push(engine.plan(&requests.request_for(daemon_set)).await?);
    }
    for note in notes(&cluster, namespace, daemon_sets.len()) {
        print::note(&note);
    }
    for (daemon_set, plan) in daemon_sets.iter().zip(&plans) {
        if looks_edited_by_hand(plan) {
            print::note(&format!("{}: {EDITED_BY_HAND}", daemon_set.title()));
        }
    }
    match args.output {
        Output::Json => print::json(&elements(&daemon_sets, &plans))?,
        Output::Text => print::text(&render(&daemon_sets, &plans, text::terminal_width()))?,
    }
    let changes = plans.iter().any(text::plan::changes_something);
    Ok(if changes && args.detailed_exitcode {
        ExitCode::from(CHANGES)
    } else {
        ExitCode::SUCCESS
    })
}

fn elements<'a>(daemon_sets: &[&'a Served], plans: &'a [v1::Plan]) -> Vec<Element<'a>> {
    daemon_sets
        .iter()
        .zip(plans)
        .map(|(daemon_set, plan)| Element {
            namespace: &daemon_set.namespace,
            name: &daemon_set.name,
            plan,
        })
        .collect()
}

fn render(daemon_sets: &[&Served], plans: &[v1::Plan], width: Option<usize>) -> String {
    let planned: Vec<text::plan::Planned<'_>> = daemon_sets
        .iter()
        .zip(plans)
        .map(|(daemon_set, plan)| text::plan::Planned {
            title: daemon_set.title(),
            plan,
            status: present_status(daemon_set),
        })
        .collect();
    let mut page = Page::new(width);
    text::plan::render(&mut page, &planned);
    page.into_text()
}

/// Hints about kinds that are probably missing in the input.
fn notes(cluster: &Cluster, namespace: Option<&str>, daemon_sets: usize) -> Vec<String> {
    let source = cluster.source();
    if daemon_sets == 0 {
        let of_namespace = namespace
            .map(|namespace| format!(" of namespace {namespace}"))
            .unwrap_or_default();
        return vec![format!("{source}: no DaemonSet{of_namespace}")];
    }
    let mut notes = Vec::new();
    if cluster.nodes.is_empty() {
        notes.push(format!(
            "{source}: no Node; a DaemonSet without nodes runs nowhere"
        ));
    }
    if !cluster.pods.is_empty() && cluster.revisions.is_empty() {
        notes.push(format!(
            "{source}: pods, but no ControllerRevision; without them every pod may look outdated"
        ));
    }
    notes
}

const EDITED_BY_HAND: &str = "the template is new, yet its pods count as current by their template generation; where it \
                              was edited by hand, raise metadata.generation and the annotation \
                              deprecated.daemonset.template.generation as the apiserver would";

/// Whether the plan creates a revision although pods count as updated. Then the apiserver was upgraded, or the template in the
/// input was edited by hand.
fn looks_edited_by_hand(plan: &v1::Plan) -> bool {
    let creates_revision = plan
        .actions()
        .any(|action| matches!(action.kind, Some(Kind::CreateRevision(_))));
    let updated = plan
        .daemon_set_status
        .as_ref()
        .map_or(0, |status| status.updated_number_scheduled);
    creates_revision && updated > 0
}

/// The present status of a DaemonSet, with the fields that the protocol has. A field that is absent or not a number is 0.
fn present_status(daemon_set: &Served) -> v1::DaemonSetStatus {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Object {
        status: serde_json::Map<String, Value>,
    }
    let mut status = serde_json::from_str::<Object>(daemon_set.json.get())
        .unwrap_or_default()
        .status;
    // Drop unknown fields, such as `conditions`, and fields that are not numbers: the message would fail to parse.
    status.retain(|name, value| v1::DaemonSetStatus::deserialize(json!({name: value})).is_ok());
    v1::DaemonSetStatus::deserialize(Value::Object(status)).unwrap_or_default()
}
