//! Warnings about odd nodes, pods and revisions.
//!
//! The caller does not write these objects: a kubelet writes its node's labels, a tenant creates pods. So an odd object must not
//! make a request fail. The plan has a warning instead, and a metric counts it.

use std::{collections::BTreeSet, sync::Arc};

use nodewise_proto::v1;

/// The kind of an odd object, ordered by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OddKind {
    /// A ControllerRevision.
    ControllerRevision,
    /// A node.
    Node,
    /// A pod.
    Pod,
}

impl OddKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::ControllerRevision, Self::Node, Self::Pod];

    /// The kind's name in Kubernetes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ControllerRevision => "ControllerRevision",
            Self::Node => "Node",
            Self::Pod => "Pod",
        }
    }
}

/// Why an object is odd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OddReason {
    /// The object has very many labels, or labels that no apiserver serves.
    Labels,
    /// The node has very many taints.
    Taints,
    /// A timestamp is outside the years 1 to 9999.
    Time,
    /// The data of a revision cannot be read.
    Data,
    /// There are too many such objects, and this one is left out.
    LeftOut,
}

impl OddReason {
    /// All reasons.
    pub const ALL: [Self; 5] = [Self::Labels, Self::Taints, Self::Time, Self::Data, Self::LeftOut];

    /// The name in metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Labels => "labels",
            Self::Taints => "taints",
            Self::Time => "time",
            Self::Data => "data",
            Self::LeftOut => "left_out",
        }
    }
}

/// The number of warnings by kind and reason.
pub(crate) type Counts = [[u64; OddReason::ALL.len()]; OddKind::ALL.len()];

/// Warnings. The first ones, ordered by object, are kept as messages; all are counted. The result does not depend on the order in
/// which the warnings are added.
#[derive(Debug, Clone, Default)]
pub(crate) struct Warnings(Option<Arc<Noted>>);

#[derive(Debug, Clone, Default)]
struct Noted {
    /// At most [`Warnings::MOST`] warnings: the first ones in order.
    first: BTreeSet<Warning>,
    counts: Counts,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Warning {
    kind: OddKind,
    name: Box<str>,
    message: Box<str>,
}

impl Warnings {
    /// Most warnings in a plan.
    const MOST: usize = 32;
    /// Bytes of a warning besides its texts, roughly.
    const WARNING_BYTES: usize = 64;

    /// Adds a warning. `message` is one sentence that begins with the field.
    pub(crate) fn add(
        &mut self,
        kind: OddKind,
        name: &str,
        reason: OddReason,
        message: impl FnOnce() -> String,
    ) {
        let noted = self.noted();
        noted.counts[kind as usize][reason as usize] += 1;
        if noted.is_kept(kind, name) {
            noted.first.insert(Warning {
                kind,
                name: name.into(),
                message: message().into(),
            });
            noted.drop_last();
        }
    }

    /// Adds all warnings of `others`.
    pub(crate) fn merge(&mut self, others: &Self) {
        let Some(others) = &others.0 else { return };
        let noted = self.noted();
        for (counts, others) in noted.counts.iter_mut().zip(&others.counts) {
            for (count, other) in counts.iter_mut().zip(others) {
                *count += other;
            }
        }
        for warning in &others.first {
            if noted.is_kept(warning.kind, &warning.name) {
                noted.first.insert(warning.clone());
                noted.drop_last();
            }
        }
    }

    /// The number of warnings by kind and reason; `None` if there are no warnings.
    pub(crate) fn counts(&self) -> Option<&Counts> {
        self.0.as_deref().map(|noted| &noted.counts)
    }

    /// Bytes of memory that the warnings take.
    pub(crate) fn bytes(&self) -> usize {
        self.0.as_deref().map_or(0, |noted| {
            let texts = |warning: &Warning| warning.name.len() + warning.message.len();
            let first = noted
                .first
                .iter()
                .map(|warning| Self::WARNING_BYTES + texts(warning));
            size_of::<Noted>() + first.sum::<usize>()
        })
    }

    /// The kept warnings as messages, and the number of further warnings.
    pub(crate) fn to_messages(&self) -> (Vec<v1::Warning>, u32) {
        let Some(noted) = &self.0 else {
            return (Vec::new(), 0);
        };
        let first = noted.first.iter().map(|warning| v1::Warning {
            kind: warning.kind.name().to_owned(),
            name: warning.name.to_string(),
            message: warning.message.to_string(),
        });
        let all: u64 = noted.counts.iter().flatten().sum();
        let more = all - noted.first.len() as u64;
        (first.collect(), u32::try_from(more).unwrap_or(u32::MAX))
    }

    fn noted(&mut self) -> &mut Noted {
        Arc::make_mut(self.0.get_or_insert_default())
    }
}

impl Noted {
    /// Whether a warning about this object would be among the first ones so far.
    fn is_kept(&self, kind: OddKind, name: &str) -> bool {
        self.first.len() < Warnings::MOST
            || self
                .first
                .last()
                .is_none_or(|last| (kind, name) <= (last.kind, &*last.name))
    }

    fn drop_last(&mut self) {
        if self.first.len() > Warnings::MOST {
            self.first.pop_last();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: impl IntoIterator<Item = usize>) -> Warnings {
        let mut warnings = Warnings::default();
        for name in names {
            let name = format!("n{name:03}");
            warnings.add(OddKind::Node, &name, OddReason::Labels, || {
                format!("labels of {name}")
            });
        }
        warnings
    }

    #[test]
    fn the_first_warnings_are_kept_in_any_order_of_adding_and_all_are_counted() {
        let all = of(0..100);
        let backwards = of((0..100).rev());
        let mut merged = of((0..100).step_by(2));
        merged.merge(&of((1..100).step_by(2)));
        merged.merge(&Warnings::default());
        for warnings in [all, backwards, merged] {
            let (kept, more) = warnings.to_messages();
            assert_eq!((kept.len(), more), (32, 68));
            assert_eq!((kept[0].kind.as_str(), kept[0].name.as_str()), ("Node", "n000"));
            assert_eq!(kept[31].message, "labels of n031");
            let counts = warnings.counts().expect("there are warnings");
            let labels = counts[OddKind::Node as usize][OddReason::Labels as usize];
            assert_eq!((labels, counts.iter().flatten().sum::<u64>()), (100, 100));
            assert!(warnings.bytes() > 32 * 20);
        }
    }

    #[test]
    fn warnings_are_ordered_by_the_name_of_the_kind() {
        assert!(OddKind::ALL.is_sorted_by_key(|kind| kind.name()));
        let mut warnings = of([1]);
        warnings.add(OddKind::Pod, "a", OddReason::Time, || "t".to_owned());
        warnings.add(OddKind::ControllerRevision, "z", OddReason::Data, || {
            "d".to_owned()
        });
        let kinds: Vec<_> = warnings
            .to_messages()
            .0
            .into_iter()
            .map(|warning| warning.kind)
            .collect();
        assert_eq!(kinds, ["ControllerRevision", "Node", "Pod"]);
    }

    #[test]
    fn no_warnings_take_no_memory() {
        let none = Warnings::default();
        assert_eq!((none.to_messages(), none.bytes()), ((Vec::new(), 0), 0));
        assert!(none.counts().is_none());
    }
}
