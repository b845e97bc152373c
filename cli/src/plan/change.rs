//! `nodewise plan -f FILE` with a file of workloads: the apiserver completes and checks each one in a dry run, and all steps to the
//! end are shown.

use std::{io::Write as _, process::ExitCode};

use anyhow::{Context as _, ensure};
use kube::Client;
use nodewise_proto::v1::{self, action::Kind as Action};
use serde_json::{Value, json};

use super::outcome::{exit_code, keep_or_compare};
use crate::{
    args::{Output, PlanArgs, SourceArgs},
    dry_run::Named,
    engine::Engine,
    input::{Cluster, Served, WorkloadKey},
    print,
    request::RequestFactory,
    rollout::diff,
    simulate::{
        assumed::Assumed,
        change,
        object_writer::ObjectWriter,
        play::{self, When},
        report::{JsonWriter, Sample, Subject},
        text::Printer,
    },
    target::Target,
    text::{ADD, BOLD, CHANGE, DIM, PLAIN, Page, terminal_width},
};

/// The number of a ReplicaSet's revision, in a patch.
const REVISION: &str = "/metadata/annotations/deployment.kubernetes.io~1revision";

/// The uid of a workload that does not exist yet.
const UID_OF_NEW: &str = "00000000-0000-0000-0000-000000000000";

/// A workload before and after the change.
struct Changed {
    /// `None` if it is new.
    before: Option<Value>,
    after: Value,
    key: WorkloadKey,
}

/// Plans the workloads of the files against the cluster. Only those that the command line names, if it names any.
pub(super) async fn run(
    args: &PlanArgs,
    files: &Cluster,
    (client, url): (&Client, &str),
) -> anyhow::Result<ExitCode> {
    let wanted = wanted(args, files)?;
    let namespace = |manifest: &Served| -> String {
        match (manifest.namespace.as_str(), &args.namespace) {
            ("", Some(namespace)) => namespace.clone(),
            ("", None) => client.default_namespace().to_owned(),
            (namespace, _) => namespace.to_owned(),
        }
    };
    let mut namespaces: Vec<String> = wanted.iter().map(|one| namespace(one)).collect();
    namespaces.sort_unstable();
    namespaces.dedup();
    // New workloads have no namespace in which their names could be found.
    let targets: Vec<Target> = wanted
        .iter()
        .map(|one| Target {
            kind: one.kind,
            name: None,
        })
        .collect();
    let source = SourceArgs {
        files: Vec::new(),
        kubeconfig: args.source.kubeconfig.clone(),
        context: args.source.context.clone(),
    };
    let one = namespaces.first().filter(|_| namespaces.len() == 1);
    let mut cluster = Cluster::read_with_facts(&source, &targets, one.map(String::as_str)).await?;
    let mut changes = Vec::with_capacity(wanted.len());
    for manifest in wanted {
        let named = Named {
            kind: manifest.kind,
            namespace: &namespace(manifest),
            name: &manifest.name,
        };
        changes.push(apply(args, &mut cluster, manifest, named, (client, url)).await?);
    }
    show(args, &cluster, &changes).await
}

/// The workloads of the files that the command line names; all if it names none.
fn wanted<'a>(args: &PlanArgs, files: &'a Cluster) -> anyhow::Result<Vec<&'a Served>> {
    if args.targets.is_empty() {
        let namespace = args.namespace.as_deref();
        let other = files.all_workloads().iter().find(|one| {
            !one.namespace.is_empty() && namespace.is_some_and(|namespace| namespace != one.namespace)
        });
        if let Some(other) = other {
            anyhow::bail!(
                "{}: metadata.namespace: found {}, but -n says {}",
                other.origin,
                other.namespace,
                namespace.unwrap_or_default()
            );
        }
        return Ok(files.all_workloads().iter().collect());
    }
    let mut wanted: Vec<&Served> = Vec::new();
    for target in Target::parse_many(&args.targets)? {
        wanted.extend(files.find(&target, None)?);
    }
    Ok(wanted)
}

/// Puts the changed workload into the cluster's objects.
async fn apply(
    args: &PlanArgs,
    cluster: &mut Cluster,
    manifest: &Served,
    named: Named<'_>,
    apiserver: (&Client, &str),
) -> anyhow::Result<Changed> {
    let Named {
        kind,
        namespace,
        name,
    } = named;
    let present = cluster.workloads_in(kind, namespace).find(|one| one.name == name);
    let before = present.map(change::value).transpose()?;
    let wanted = change::value(manifest)?;
    let mut after = if args.dry_run.local {
        let before = before.as_ref().with_context(|| {
            format!(
                "{} {namespace}/{name}: does not exist yet, so its defaults are not known; leave out --local",
                kind.name()
            )
        })?;
        change::applied_here(kind, before, &wanted)?
    } else {
        let manager = &args.dry_run.field_manager;
        change::applied(apiserver, named, before.as_ref(), &wanted, manager).await?
    };
    if before.is_none() {
        // The uid and the time are those of this dry run only.
        after["metadata"]["uid"] = json!(UID_OF_NEW);
        after["metadata"]["creationTimestamp"] = Value::Null;
    }
    let uid = after["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    ensure!(
        !uid.is_empty(),
        "{} {namespace}/{name}: the answer of the dry run has no uid",
        kind.name()
    );
    let json = serde_json::value::to_raw_value(&after).context("cannot write the changed workload")?;
    let key = cluster.put_workload(Served {
        kind,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        uid,
        controller: present_controller(&after),
        json,
        origin: manifest.origin.clone(),
    });
    Ok(Changed { before, after, key })
}

fn present_controller(object: &Value) -> Option<String> {
    let mut owners = object["metadata"]["ownerReferences"].as_array()?.iter();
    let controller = owners.find(|owner| owner["controller"] == true)?;
    controller["uid"].as_str().map(str::to_owned)
}

/// Plans, and shows each change and its steps.
async fn show(args: &PlanArgs, cluster: &Cluster, changes: &[Changed]) -> anyhow::Result<ExitCode> {
    let engine = Engine::new(&args.engine)?;
    let requests = RequestFactory::new(cluster, &args.engine);
    let mut plans = Vec::with_capacity(changes.len());
    let mut workloads = Vec::with_capacity(changes.len());
    for Changed { key, .. } in changes {
        let workload = cluster
            .workload(key)
            .context("the changed workload is in the cluster")?;
        plans.push(engine.plan(&requests.request_for(workload)).await?);
        workloads.push(workload);
    }
    let planned = workloads.iter().copied().zip(&plans);
    if let Some(code) = keep_or_compare(args, &requests, cluster, planned)? {
        return Ok(code);
    }
    let when = When {
        now: Some(requests.now()),
        profile: args.engine.profile.into(),
    };
    let mut out = print::Writer;
    if args.output == Output::Json {
        out.write_all(b"[")?;
    }
    for (index, ((changed, workload), plan)) in changes.iter().zip(&workloads).zip(&plans).enumerate() {
        let differences = changed.differences();
        let assumed = Assumed::about(&args.assumed, cluster, workload);
        let subject = Subject::new(workload, differences, assumed);
        match args.output {
            Output::Text => {
                as_text(
                    (args, &engine),
                    cluster,
                    workload,
                    (&subject, changed, plan),
                    when,
                )
                .await?;
            }
            Output::Json => {
                if index > 0 {
                    out.write_all(b",\n")?;
                }
                as_json(&engine, cluster, workload, (&subject, changed, plan), when).await?;
            }
        }
    }
    if args.output == Output::Json {
        out.write_all(b"]\n")?;
    }
    Ok(exit_code(args, &plans))
}

async fn as_text(
    (args, engine): (&PlanArgs, &Engine),
    cluster: &Cluster,
    workload: &Served,
    (subject, changed, plan): (&Subject, &Changed, &v1::Plan),
    when: When,
) -> anyhow::Result<()> {
    let mut page = Page::new(terminal_width());
    page.line(0, BOLD, &format!("{}: {}", subject.title, changed.word()));
    if let Some(before) = &changed.before {
        let template = |object: &Value| object["spec"]["template"].clone();
        let (before, after) = (template(before), template(&changed.after));
        if before != after {
            diff::render(&mut page, &before, &after)?;
        }
    }
    match revision(plan) {
        Some((name, true)) => page.marked(2, "+", ADD, PLAIN, &format!("new revision: {name}")),
        Some((name, false)) => {
            page.marked(2, "~", CHANGE, PLAIN, &format!("back to the revision {name}"));
        }
        None => page.line(2, DIM, "no new revision"),
    }
    let outside: Vec<String> = subject
        .differences
        .iter()
        .filter(|field| !field.starts_with("spec.template."))
        .cloned()
        .collect();
    let mut printer = Printer::new(subject, args.assumed.all_steps, terminal_width());
    print::text(&(page.into_text() + &printer.begin(&outside)))?;
    let mut samples = Vec::new();
    let assumed = &subject.assumed;
    let played = play::show(engine, cluster, workload, assumed, when, &mut |step| {
        samples.push(Sample::from(step));
        print::text(&printer.step(step))
    })
    .await?;
    print::text(&(printer.end(&played, &samples) + "\n"))
}

async fn as_json(
    engine: &Engine,
    cluster: &Cluster,
    workload: &Served,
    (subject, changed, plan): (&Subject, &Changed, &v1::Plan),
    when: When,
) -> anyhow::Result<()> {
    let mut out = ObjectWriter::begin(print::Writer)?;
    out.field("kind", &subject.kind.name())?;
    out.field("namespace", &subject.namespace)?;
    out.field("name", &subject.name)?;
    out.field("change", &changed.word())?;
    let revision = revision(plan).map(|(name, is_new)| json!({"name": name, "isNew": is_new}));
    out.field("revision", &revision)?;
    out.field("plan", plan)?;
    let mut writer = JsonWriter::begin(out.open("forecast")?, subject)?;
    let assumed = &subject.assumed;
    let played = play::show(engine, cluster, workload, assumed, when, &mut |step| {
        writer.step(step)
    })
    .await?;
    writer.end(&played)?;
    out.end()?;
    Ok(())
}

impl Changed {
    fn word(&self) -> &'static str {
        match &self.before {
            None => "new",
            Some(before) if before["spec"] == self.after["spec"] => "unchanged",
            Some(_) => "changed",
        }
    }

    /// The fields of the spec that differ; none for a new workload.
    fn differences(&self) -> Vec<String> {
        let before = self.before.as_ref();
        before.map_or_else(Vec::new, |before| {
            change::differences(&before["spec"], &self.after["spec"])
        })
    }
}

/// The revision or ReplicaSet that the plan makes the present one, and whether it is new.
fn revision(plan: &v1::Plan) -> Option<(String, bool)> {
    plan.actions().find_map(|action| match action.kind.as_ref()? {
        Action::CreateRevision(create) => Some((format!("ControllerRevision {}", create.name), true)),
        Action::CreateObject(create) => Some((format!("ReplicaSet {}", create.name), true)),
        Action::UpdateRevision(update) if update.revision_number.is_some() => {
            let revision = update.revision.as_ref()?;
            Some((format!("ControllerRevision {}", revision.name), false))
        }
        // The ReplicaSet with the template of the Deployment gets the next number.
        Action::PatchObject(patch) => {
            let content: Value = serde_json::from_slice(&patch.patch).ok()?;
            content.pointer(REVISION)?;
            let set = patch.object.as_ref()?;
            Some((format!("ReplicaSet {}", set.name), false))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_revision_may_be_an_earlier_one() {
        let of = |kind: &str, fields: Value| {
            let actions = json!([{"id": 1, kind: fields}]);
            let plan = json!({"phases": [{"batches": [{"actions": actions}]}]});
            revision(&serde_json::from_value(plan).expect("a plan in the protocol's JSON"))
        };
        let patch = |content: Value| {
            let patch = v1::PatchObject {
                object: Some(v1::ObjectReference {
                    name: "web-5c6b".to_owned(),
                    uid: "u".to_owned(),
                }),
                patch: content.to_string().into_bytes().into(),
                ..v1::PatchObject::default()
            };
            of("patchObject", serde_json::to_value(patch).expect("JSON"))
        };
        let raised = json!({"metadata": {"annotations": {"deployment.kubernetes.io/revision": "4"}}});
        assert_eq!(patch(raised), Some(("ReplicaSet web-5c6b".to_owned(), false)));
        assert_eq!(patch(json!({"spec": {"replicas": 3}})), None);
        assert_eq!(
            of("createObject", json!({"name": "web-7d9f"})),
            Some(("ReplicaSet web-7d9f".to_owned(), true))
        );
        assert_eq!(
            of(
                "updateRevision",
                json!({"revision": {"name": "agent-6c9d"}, "revisionNumber": "3"})
            ),
            Some(("ControllerRevision agent-6c9d".to_owned(), false))
        );
    }
}
