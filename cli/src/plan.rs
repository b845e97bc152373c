//! `nodewise plan`: the next step of workloads as they are, or (`change`) all steps of a change that a file describes.

mod change;
mod compare;
mod kept;
mod outcome;

use std::process::ExitCode;

use anyhow::bail;
use nodewise_proto::v1::{self, action};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::outcome::{exit_code, keep_or_compare};
use crate::{
    args::{Output, PlanArgs, SourceArgs},
    dry_run::KUBECTL,
    engine::Engine,
    gaps,
    input::{Cluster, Served, connect_if_any},
    kind::Kind,
    print,
    request::RequestFactory,
    target::Target,
    text::{self, Page},
};

/// One element of the JSON output.
#[derive(Serialize)]
struct Element<'a> {
    kind: &'static str,
    namespace: &'a str,
    name: &'a str,
    plan: &'a v1::Plan,
}

pub(crate) async fn run(args: &PlanArgs) -> anyhow::Result<ExitCode> {
    if let Some(file) = &args.out {
        kept::output(file).check()?;
    }
    let namespace = args.namespace.as_deref();
    let targets = Target::parse_many(&args.targets)?;
    let cluster = read(args, &targets).await?;
    if is_change(args, &cluster) {
        let source = &args.source;
        let asked = connect_if_any(source.kubeconfig.as_deref(), source.context.as_deref()).await?;
        if let Some((client, url)) = asked {
            refuse_unused(args, true)?;
            return change::run(args, &cluster, (&client, &url)).await;
        }
    } else if cluster.is_dump && (args.source.kubeconfig.is_some() || args.source.context.is_some()) {
        bail!(
            "{}: has nodes, pods or revisions, so it is a dump of a cluster; leave out --kubeconfig and --context, or the objects \
             that are no workloads",
            cluster.source()
        );
    }
    refuse_unused(args, false)?;
    let workloads = find(&cluster, &targets, namespace)?;
    let engine = Engine::new(&args.engine)?;
    let requests = RequestFactory::new(&cluster, &args.engine);
    let mut plans = Vec::with_capacity(workloads.len());
    for workload in &workloads {
        gaps::refuse(&cluster, workload)?;
        plans.push(engine.plan(&requests.request_for(workload)).await?);
    }
    let kinds: Vec<Kind> = targets.iter().map(|target| target.kind).collect();
    for note in gaps::notes(&cluster, &kinds, namespace, &workloads) {
        print::note(&note);
    }
    for (workload, plan) in workloads.iter().zip(&plans) {
        if looks_edited_by_hand(plan) {
            print::note(&format!("{}: {EDITED_BY_HAND}", workload.title()));
        }
    }
    let planned = workloads.iter().copied().zip(&plans);
    if let Some(code) = keep_or_compare(args, &requests, &cluster, planned)? {
        return Ok(code);
    }
    match args.output {
        Output::Json => print::json(&elements(&workloads, &plans))?,
        Output::Text => print::text(&render(&workloads, &plans, text::terminal_width()))?,
    }
    Ok(exit_code(args, &plans))
}

/// Refuses flags that would have no effect: a dump is not played and needs no dry run, and a comparison is one of the next step.
fn refuse_unused(args: &PlanArgs, is_change: bool) -> anyhow::Result<()> {
    let played = args.assumed.given();
    if is_change {
        if let Some(flag) = played.filter(|_| args.compare.is_some()) {
            bail!("{flag} has no effect with --compare, which compares the next step; leave it out");
        }
        return Ok(());
    }
    let dry_run = &args.dry_run;
    let flags = [
        ("--local", dry_run.local),
        ("--field-manager", dry_run.field_manager != KUBECTL),
    ];
    let unused = flags.into_iter().find(|(_, is_given)| *is_given);
    if let Some(flag) = unused.map(|(flag, _)| flag).or(played) {
        bail!(
            "{flag} is for a change: -f with a file that has workloads only, and a cluster to ask; `nodewise simulate` also plays a dump"
        );
    }
    Ok(())
}

/// Reads the files or the cluster.
async fn read(args: &PlanArgs, targets: &[Target]) -> anyhow::Result<Cluster> {
    let files = if args.dumps.is_empty() {
        &args.source.files
    } else {
        &args.dumps
    };
    let source = SourceArgs {
        files: files.clone(),
        kubeconfig: args.source.kubeconfig.clone(),
        context: args.source.context.clone(),
    };
    Ok(Cluster::read(&source, targets, args.namespace.as_deref()).await?)
}

/// Whether the files describe a change, if there is a cluster.
fn is_change(args: &PlanArgs, files: &Cluster) -> bool {
    !args.source.files.is_empty() && files.has_only_workloads()
}

/// The workloads of all targets, each once.
fn find<'a>(
    cluster: &'a Cluster,
    targets: &[Target],
    namespace: Option<&str>,
) -> anyhow::Result<Vec<&'a Served>> {
    let mut workloads: Vec<&Served> = Vec::new();
    for target in targets {
        for found in cluster.find(target, namespace)? {
            if !workloads.iter().any(|known| std::ptr::eq(*known, found)) {
                workloads.push(found);
            }
        }
    }
    Ok(workloads)
}

fn elements<'a>(workloads: &[&'a Served], plans: &'a [v1::Plan]) -> Vec<Element<'a>> {
    workloads
        .iter()
        .zip(plans)
        .map(|(workload, plan)| Element {
            kind: workload.kind.name(),
            namespace: &workload.namespace,
            name: &workload.name,
            plan,
        })
        .collect()
}

fn render(workloads: &[&Served], plans: &[v1::Plan], width: Option<usize>) -> String {
    let planned: Vec<text::plan::Planned<'_>> = workloads
        .iter()
        .zip(plans)
        .map(|(workload, plan)| text::plan::Planned {
            title: workload.title(),
            kind: workload.kind.name(),
            plan,
            status: present_status(workload),
        })
        .collect();
    let mut page = Page::new(width);
    text::plan::render(&mut page, &planned);
    page.into_text()
}

const EDITED_BY_HAND: &str = "the template is new, yet its pods count as current by their template generation; where it \
                              was edited by hand, raise metadata.generation and the annotation \
                              deprecated.daemonset.template.generation as the apiserver would";

/// Whether the plan creates a revision although pods count as updated. Then the apiserver was upgraded, or the template in the
/// input was edited by hand.
fn looks_edited_by_hand(plan: &v1::Plan) -> bool {
    let creates_revision = plan
        .actions()
        .any(|action| matches!(action.kind, Some(action::Kind::CreateRevision(_))));
    let updated = plan
        .daemon_set_status
        .as_ref()
        .map_or(0, |status| status.updated_number_scheduled);
    creates_revision && updated > 0
}

/// The present status of a DaemonSet, with the fields that the protocol has. A field that is absent or not a number is 0.
pub(crate) fn present_status(daemon_set: &Served) -> v1::DaemonSetStatus {
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
