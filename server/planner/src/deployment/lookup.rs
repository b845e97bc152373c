//! Brings the new ReplicaSet up to date, and creates it if there is none (P-11, P-18 to P-28).

use crate::{
    core::{
        plan::{Action, ActionKind, Event, EventType, Reason, Resource, WriteEvents},
        snapshot::Deviation,
    },
    deployment::{
        annotations::REVISION,
        conditions::{self, CREATE_ERROR, NEW_SET_CREATED, NEW_SET_FOUND, PROGRESSING},
        fenceposts, new_set,
        plan_builder::PlanBuilder,
        revision,
        set_write::scaled,
        sets::NewSet,
        status_write, template,
        workload::{Deployment, Set},
    },
};

/// The name that the new ReplicaSet has if this plan creates it.
pub(crate) fn name(deployment: &Deployment) -> String {
    new_set::name(&deployment.name, &new_set::hash(deployment))
}

/// Makes an existing new ReplicaSet follow the Deployment. If the set is up to date, the Deployment takes over its revision (P-19 to
/// P-23).
pub(crate) fn update(builder: &mut PlanBuilder<'_>) {
    let Some(set) = builder.new.as_ref().and_then(|new| new.set) else {
        return;
    };
    let wanted = revision::wanted(builder.old.iter().copied());
    if revision::follow(builder.sets.of(set), builder.deployment, wanted) {
        return;
    }
    builder.set_revision(set.annotation(REVISION).unwrap_or_default());
    let is_unknown = conditions::find(&builder.conditions, PROGRESSING).is_none();
    if builder.deployment.deadline().is_some() && is_unknown {
        let message = format!("Found new replica set {:?}", set.name);
        let condition = conditions::new(PROGRESSING, "True", NEW_SET_FOUND, message, builder.snapshot.now);
        conditions::set(&mut builder.conditions, condition);
    }
}

/// Creates the new ReplicaSet if there is none. An error ends the sync.
pub(crate) fn create_if_missing(builder: &mut PlanBuilder<'_>) -> Result<(), String> {
    if builder.new.is_some() {
        return Ok(());
    }
    let deployment = builder.deployment;
    let hash = new_set::hash(deployment);
    let name = new_set::name(&deployment.name, &hash);
    let total = builder.numbers.sum(builder.counted().sizes());
    let size = fenceposts::new_set_size(deployment, 0, total, &builder.numbers)?;
    match holder(builder, &name) {
        Holder::Nobody => {
            create(builder, &hash, name, size);
            Ok(())
        }
        Holder::Same(set) => {
            let wanted = revision::wanted(builder.old.iter().copied());
            builder.new = Some(NewSet::existing(set));
            builder.set_revision(&wanted.to_string());
            Ok(())
        }
        Holder::Other => {
            let count = builder.collision_count.unwrap_or_default();
            builder.collision_count = Some(count.wrapping_add(1));
            Err(format!("replicasets.apps {name:?} already exists"))
        }
    }
}

/// Who has the name of the ReplicaSet to create, as far as it is known.
enum Holder<'a> {
    /// Nobody.
    Nobody,
    /// The Deployment's own set, which the executor's cache does not show yet.
    Same(&'a Set),
    /// Another set.
    Other,
}

/// Finds out who has the name (P-27).
fn holder<'a>(builder: &mut PlanBuilder<'a>, name: &str) -> Holder<'a> {
    let deployment = builder.deployment;
    let is_same = |set: &Set| {
        let is_ours = set
            .controller
            .as_ref()
            .is_some_and(|controller| controller.uid == deployment.uid);
        is_ours && template::equal(&set.template, &deployment.template)
    };
    let mut read = deployment.sets.iter();
    if let Some(set) = read.find(|set| set.read_after_name_collision && set.name == name) {
        return if is_same(set) {
            Holder::Same(set)
        } else {
            Holder::Other
        };
    }
    // Upstream goes on with a set that it has just released: its cache still shows the Deployment as the controller.
    let mut released = builder.claimed.released.iter();
    match released.find(|set| set.name == name && is_same(set)) {
        Some(_) if builder.deviates(Deviation::ReleasedSetIsCollision) => {
            builder.deviations.insert(Deviation::ReleasedSetIsCollision);
            Holder::Other
        }
        Some(set) => Holder::Same(set),
        None => Holder::Nobody,
    }
}

fn create(builder: &mut PlanBuilder<'_>, hash: &str, name: String, size: i32) {
    let (deployment, now) = (builder.deployment, builder.snapshot.now);
    let wanted = revision::wanted(builder.old.iter().copied());
    let sizes = (size, builder.max_replicas());
    let failure = format!("Failed to create new replica set {name:?}");
    builder.create = Some(Action {
        reason: Reason::NewTemplate,
        message: format!("no ReplicaSet has the present template, which becomes revision {wanted}"),
        kind: ActionKind::CreateObject {
            resource: Resource::ReplicaSets,
            name: name.clone(),
            manifest: new_set::manifest(deployment, (&name, hash), wanted, sizes),
            events: Box::new(WriteEvents {
                success: (size > 0)
                    .then(|| scaled("up", &name, 0, size))
                    .into_iter()
                    .collect(),
                failure: Some(Event {
                    event_type: EventType::Warning,
                    reason: CREATE_ERROR,
                    message: failure.clone(),
                }),
            }),
        },
    });
    builder.set_revision(&wanted.to_string());
    if deployment.deadline().is_some() {
        // The executor appends the bare error to this message.
        let failed = conditions::new(PROGRESSING, "False", CREATE_ERROR, failure + ": ", now);
        let mut conditions = builder.conditions.clone();
        conditions::set(&mut conditions, failed);
        // A condition that already says so stays as it is.
        builder.failure = (conditions != builder.conditions).then(|| {
            let message = format!("{name} could not be created");
            status_write::failure(deployment, &conditions, message)
        });
        let message = format!("Created new replica set {name:?}");
        let created = conditions::new(PROGRESSING, "True", NEW_SET_CREATED, message, now);
        conditions::set(&mut builder.conditions, created);
    }
    builder.new = Some(NewSet::created(name, size));
}
