//! The ControllerRevisions of the versions.

use serde_json::{Map, Value, json};

use super::owner::{self, Owner};
use super::pod::HASH_LABEL;
use super::rng::CaseRng;
use super::scenario::Scenario;
use super::selector::APP;
use super::serialization::{self, Form};
use super::setup::Setup;
use super::template;
use super::version::Version;
use crate::case::{self, HASH};

/// A revision during generation.
#[derive(Clone)]
pub(super) struct Revision {
    pub(super) name: String,
    labels: Map<String, Value>,
    pub(super) owner: Owner,
    number: i64,
    data: String,
    deleting: bool,
    elsewhere: bool,
    annotations: Map<String, Value>,
}

/// The revisions of a cluster.
pub(super) struct Revisions {
    /// Those in the cache.
    pub(super) cached: Vec<Revision>,
    /// Those that only the API has.
    pub(super) hidden: Vec<Revision>,
    /// Whether the name of the next revision is taken.
    pub(super) collides: bool,
}

/// Generates the revisions in the cache, and those that only the API has.
pub(super) fn draw(rng: &mut CaseRng, setup: &Setup) -> Revisions {
    let without_present = match setup.scenario {
        Scenario::Fresh => 70,
        Scenario::Changed => 55,
        _ => 5,
    };
    let skipped = rng.in_hundred(without_present).then(|| setup.present());
    let mut cached: Vec<_> = (0..setup.versions.len())
        .filter(|version| skipped != Some(*version) && (*version == setup.present() || !rng.in_hundred(5)))
        .map(|version| Revision::of(setup, version))
        .collect();
    for _ in 0..rng.weighted(&[(66, 0), (24, 1), (10, 2)]) {
        let disturb = rng.weighted(ANOMALIES);
        if cached.is_empty() {
            break;
        }
        let index = if rng.in_hundred(40) {
            cached.len() - 1
        } else {
            rng.below(cached.len())
        };
        disturb(rng, setup, &mut cached, index);
    }
    let next = name(setup, HASH);
    let mut revisions = Revisions {
        collides: !cached.iter().any(|revision| revision.name == next) && rng.in_hundred(25),
        cached,
        hidden: Vec::new(),
    };
    if revisions.collides {
        collide(rng, setup, &mut revisions);
    }
    revisions
}

/// The name of the DaemonSet's revision with this hash, shortened if necessary.
pub(super) fn name(setup: &Setup, hash: &str) -> String {
    let prefix: String = setup.set.names.name.chars().take(242).collect();
    format!("{}-{hash}", prefix.trim_end_matches('.'))
}

/// Whether several of these revisions have the present template.
pub(super) fn has_duplicates(setup: &Setup, cached: &[Revision]) -> bool {
    let present = serialization::data(&setup.versions[setup.present()].template, Form::Canonical);
    let is_present = |revision: &&Revision| revision.data == present;
    cached.iter().filter(is_present).count() > 1
}

/// Whether a revision may be missing from the API without a double effect. A revision that is created again under the
/// same name must not be deleted in the same sync: Nodewise sends a uid with the delete and upstream does not, so only
/// upstream would delete the new one.
pub(super) fn may_be_gone(setup: &Setup, cached: &[Revision], revision: &Revision) -> bool {
    let kept = usize::try_from(setup.set.history.unwrap_or(0)).unwrap_or(0);
    revision.name != name(setup, HASH) || cached.len() <= kept
}

/// Adds a revision with the name of the next revision.
fn collide(rng: &mut CaseRng, setup: &Setup, revisions: &mut Revisions) {
    let mut taken = Revision::of(setup, setup.present());
    taken.name = name(setup, HASH);
    taken.labels.insert(HASH_LABEL.into(), HASH.into());
    let is_hidden = rng.in_hundred(60);
    if is_hidden && rng.in_hundred(45) {
        if rng.in_hundred(30) {
            taken.labels.insert(HASH_LABEL.into(), rng.letters(9).into());
        }
        taken.number = rng.between(0..=9);
    } else {
        taken.data = other_data(rng, setup);
    }
    taken.owner = rng.pick(&[
        Owner::Ours,
        Owner::Ours,
        Owner::Nobody,
        Owner::Former,
        Owner::Other,
    ]);
    if rng.in_hundred(25) {
        taken.labels.insert(APP.into(), "other".into());
    }
    if is_hidden {
        revisions.hidden.push(taken);
    } else {
        revisions.cached.push(taken);
    }
}

/// Data that is not the present template.
fn other_data(rng: &mut CaseRng, setup: &Setup) -> String {
    match rng.below(4) {
        0 => "{}".to_owned(),
        1 => r#"{"spec":{"template":{"$patch":"replace","metadata":{},"spec":{}}}}"#.to_owned(),
        _ => {
            let number = rng.below(90) + 10;
            let template = template::former(rng, &setup.versions[setup.present()].template, number);
            let form = rng.weighted(&[(8, Form::Canonical), (1, Form::Reordered), (1, Form::Spaced)]);
            serialization::data(&template, form)
        }
    }
}

impl Revision {
    /// The revision of a version, as upstream creates it.
    fn of(setup: &Setup, version: usize) -> Self {
        let version = &setup.versions[version];
        let mut labels = match &version.template["metadata"]["labels"] {
            Value::Object(labels) => labels.clone(),
            _ => Map::new(),
        };
        labels.insert(HASH_LABEL.into(), version.hash.clone().into());
        Self {
            name: name(setup, &version.hash),
            labels,
            owner: Owner::Ours,
            number: version.number,
            data: serialization::data(&version.template, Form::Canonical),
            deleting: false,
            elsewhere: false,
            annotations: setup.set.annotations.clone(),
        }
    }

    /// The object and its data.
    pub(super) fn render(&self, rng: &mut CaseRng, setup: &Setup) -> case::Revision {
        let mut metadata = json!({
            "name": self.name,
            "namespace": if self.elsewhere { "elsewhere" } else { setup.set.namespace },
            "uid": rng.uid(),
            "resourceVersion": rng.version(),
            "creationTimestamp": setup.clock.before(1000 * rng.between(1..=5)),
        });
        if !self.labels.is_empty() {
            metadata["labels"] = self.labels.clone().into();
        }
        if !self.annotations.is_empty() {
            metadata["annotations"] = self.annotations.clone().into();
        }
        let references = setup.set.names.references(self.owner);
        if !references.is_null() {
            metadata["ownerReferences"] = references;
        }
        if self.deleting {
            metadata["deletionTimestamp"] = setup.clock.before(10).into();
            metadata["deletionGracePeriodSeconds"] = 0.into();
            metadata["finalizers"] = json!(["example.com/hold"]);
        }
        case::Revision {
            object: json!({
                "apiVersion": "apps/v1",
                "kind": "ControllerRevision",
                "metadata": metadata,
                "revision": self.number,
            }),
            data: self.data.clone(),
        }
    }
}

/// The longest value of a label.
const MAX_LABEL_VALUE: usize = 63;

/// Changes one of the revisions.
type Anomaly = fn(&mut CaseRng, &Setup, &mut Vec<Revision>, usize);

const ANOMALIES: &[(u32, Anomaly)] = &[
    (4, |rng, _, all, index| {
        let has_any = !rng.in_hundred(20);
        // If the name is not a valid label value, upstream makes no progress: it retries the label forever (D-52).
        if all[index].name.len() > MAX_LABEL_VALUE {
            return;
        }
        all[index].labels.remove(HASH_LABEL);
        if !has_any {
            all[index].labels.clear();
        }
    }),
    (4, |rng, _, all, index| {
        all[index].owner = rng.pick(&[Owner::Nobody, Owner::Mentioned]);
    }),
    (4, |rng, _, all, index| all[index].owner = owner::foreigner(rng)),
    (4, |_, _, all, index| {
        all[index].labels.insert(APP.into(), "other".into());
        all[index].labels.insert("left-out".into(), "".into());
    }),
    (3, |rng, _, all, index| {
        all[index].deleting = true;
        if rng.in_hundred(50) {
            all[index].owner = Owner::Nobody;
        }
    }),
    (4, |rng, _, all, index| {
        let other = rng.below(all.len());
        all[index].number = all[other].number;
    }),
    (2, |rng, _, all, index| {
        all[index].number = rng.pick(&[0, 5, 20, 1_000_000_007]);
    }),
    (3, |rng, _, all, index| {
        let hash = rng.pick(&["a", "by-hand", ""]);
        all[index].labels.insert(HASH_LABEL.into(), (*hash).into());
    }),
    (4, |rng, setup, all, index| {
        respell(rng, setup, &mut all[index]);
    }),
    (2, |rng, setup, all, _| {
        // A matching revision of another owner.
        let mut foreign = Revision::of(setup, setup.present());
        foreign.name = format!("db-{}", rng.letters(9));
        foreign.owner = rng.pick(&[Owner::Nobody, Owner::Other]);
        foreign.data = other_data(rng, setup);
        foreign.number = rng.between(0..=9);
        all.push(foreign);
    }),
    (1, |rng, setup, all, _| {
        let mut distant = Revision::of(setup, setup.present());
        distant.name = format!("distant-{}", rng.letters(9));
        distant.owner = Owner::Nobody;
        distant.elsewhere = true;
        all.push(distant);
    }),
];

/// Serializes the data of a version in another form.
fn respell(rng: &mut CaseRng, setup: &Setup, revision: &mut Revision) {
    let is_its = |version: &&Version| name(setup, &version.hash) == revision.name;
    if let Some(version) = setup.versions.iter().find(is_its) {
        let form = rng.pick(&[Form::Unescaped, Form::Dated, Form::Reordered, Form::Spaced]);
        revision.data = serialization::data(&version.template, form);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::case::Case;
    use crate::generate::census::{
        Situation, current, is_current, is_deleting, is_orphan, is_owned, name, set,
    };

    fn labels(revision: &case::Revision) -> &Value {
        &revision.object["metadata"]["labels"]
    }

    fn is_ours(case: &Case, revision: &case::Revision) -> bool {
        is_owned(case, &revision.object)
    }

    /// The revision in the cache, or only in the API, with the name of the next revision.
    fn taken(case: &Case, is_cached: bool) -> Option<&case::Revision> {
        let taken = format!("{}-@hash", name(set(case)));
        let revisions = if is_cached {
            &case.revisions
        } else {
            &case.live.revisions
        };
        revisions.iter().find(|revision| name(&revision.object) == taken)
    }

    /// Whether two revisions have the same number, and both are (or are not) the present template.
    fn twins(case: &Case, present: bool) -> bool {
        let all = || {
            case.revisions
                .iter()
                .filter(|revision| is_ours(case, revision) && is_current(case, revision) == present)
        };
        all().any(|one| {
            all().any(|other| {
                name(&one.object) < name(&other.object) && one.object["revision"] == other.object["revision"]
            })
        })
    }

    fn has_live_limit(case: &Case, limit: i64) -> bool {
        let hashes: Vec<_> = case
            .pods
            .iter()
            .map(|pod| &pod["metadata"]["labels"][HASH_LABEL])
            .collect();
        let old = || {
            case.revisions
                .iter()
                .filter(|revision| is_ours(case, revision) && !is_current(case, revision))
        };
        set(case)["spec"]["revisionHistoryLimit"] == limit
            && i64::try_from(old().count()).is_ok_and(|count| count > limit)
            && old().any(|revision| hashes.contains(&&labels(revision)[HASH_LABEL]))
            && old().any(|revision| !hashes.contains(&&labels(revision)[HASH_LABEL]))
    }

    pub(in crate::generate) const SITUATIONS: &[Situation] = &[
        ("no revision", |case| case.revisions.is_empty()),
        ("no revision of the template", |case| {
            !case.revisions.is_empty() && current(case).count() == 0
        }),
        ("two revisions of the template", |case| current(case).count() > 1),
        ("two of the template with equal numbers", |case| twins(case, true)),
        ("two old ones with equal numbers", |case| twins(case, false)),
        ("two of the template, and pods of both", |case| {
            let hashes: Vec<_> = current(case)
                .map(|revision| &labels(revision)[HASH_LABEL])
                .collect();
            let has = |hash: &&Value| {
                case.pods
                    .iter()
                    .any(|pod| pod["metadata"]["labels"][HASH_LABEL] == **hash)
            };
            hashes.len() > 1 && hashes[0] != hashes[1] && hashes.iter().all(has)
        }),
        ("a revision without hash", |case| {
            case.revisions
                .iter()
                .any(|revision| is_ours(case, revision) && labels(revision)[HASH_LABEL].is_null())
        }),
        ("a revision without labels", |case| {
            case.revisions.iter().any(|revision| labels(revision).is_null())
        }),
        ("an orphan revision", |case| {
            case.revisions
                .iter()
                .any(|revision| is_orphan(&revision.object) && labels(revision)[APP] == "agent")
        }),
        ("an orphan revision that terminates", |case| {
            case.revisions
                .iter()
                .any(|revision| is_orphan(&revision.object) && is_deleting(&revision.object))
        }),
        ("a second revision of the template that terminates", |case| {
            current(case).count() > 1 && current(case).any(|revision| is_deleting(&revision.object))
        }),
        ("an old revision beyond the limit that terminates", |case| {
            let old = || {
                case.revisions
                    .iter()
                    .filter(|revision| is_ours(case, revision) && !is_current(case, revision))
            };
            set(case)["spec"]["revisionHistoryLimit"] == 0
                && old().any(|revision| is_deleting(&revision.object))
        }),
        ("a foreign revision", |case| {
            case.revisions
                .iter()
                .any(|revision| !is_orphan(&revision.object) && !is_ours(case, revision))
        }),
        ("a revision to release", |case| {
            case.revisions
                .iter()
                .any(|revision| is_ours(case, revision) && labels(revision)[APP] == "other")
        }),
        ("a revision of another namespace", |case| {
            case.revisions
                .iter()
                .any(|revision| revision.object["metadata"]["namespace"] == "elsewhere")
        }),
        ("a name taken in the API by the same", |case| {
            taken(case, false).is_some_and(|revision| is_current(case, revision) && is_ours(case, revision))
        }),
        ("a name taken in the API by the same, of others", |case| {
            taken(case, false).is_some_and(|revision| is_current(case, revision) && !is_ours(case, revision))
        }),
        ("a name taken in the API by another", |case| {
            taken(case, false).is_some_and(|revision| !is_current(case, revision))
        }),
        ("a name taken in the API by another of ours", |case| {
            taken(case, false).is_some_and(|revision| !is_current(case, revision) && is_ours(case, revision))
        }),
        ("a name taken in the cache by another", |case| {
            taken(case, true).is_some_and(|revision| !is_current(case, revision) && !is_ours(case, revision))
        }),
        ("a name taken in the cache by another of ours", |case| {
            taken(case, true).is_some_and(|revision| !is_current(case, revision) && is_ours(case, revision))
        }),
        ("limit 0 and a live hash", |case| has_live_limit(case, 0)),
        ("limit 1 and a live hash", |case| has_live_limit(case, 1)),
        ("limit 2 and a live hash", |case| has_live_limit(case, 2)),
        ("limit 10 and a live hash", |case| has_live_limit(case, 10)),
    ];
}
