//! Odd objects: nodes, pods and revisions that are read all the same, and what is said about them.
//!
//! Other people than the caller write these objects: a kubelet writes its node's labels, a tenant creates pods. So none of them
//! may make a request fail. What is odd about one is told in the plan's warnings, and counted.

use std::{collections::BTreeSet, sync::Arc};

use nodewise_proto::v1;

/// The kind of an odd object, in the order of the names.
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
    /// All.
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

/// What is odd about an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OddReason {
    /// There are very many labels, or labels that no apiserver serves.
    Labels,
    /// There are very many taints.
    Taints,
    /// A moment is beyond the years that can be counted with.
    Time,
    /// The data of a revision cannot be read.
    Data,
    /// The object is one of too many and is left out.
    LeftOut,
}

impl OddReason {
    /// All.
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

/// How many warnings there are of each kind and reason.
pub(crate) type Counts = [[u64; OddReason::ALL.len()]; OddKind::ALL.len()];

/// Warnings, of which the first ones are told and the others are counted. Which are the first depends on the objects alone, and
/// not on the order in which they come.
#[derive(Debug, Clone, Default)]
pub(crate) struct Warnings(Option<Arc<Noted>>);

#[derive(Debug, Clone, Default)]
struct Noted {
    /// The first ones in order.
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
    /// Most warnings that a plan tells.
    const MOST: usize = 32;
    /// About what a warning takes besides its texts.
    const WARNING_BYTES: usize = 64;

    /// Notes that an object is odd. `message` is one sentence that begins with the field.
    pub(crate) fn add(
        &mut self,
        kind: OddKind,
        name: &str,
        reason: OddReason,
        message: impl FnOnce() -> String,
    ) {
        let noted = self.noted();
        noted.counts[kind as usize][reason as usize] += 1;
        if noted.is_told(kind, name) {
            noted.first.insert(Warning {
                kind,
                name: name.into(),
                message: message().into(),
            });
            noted.cut();
        }
    }

    /// Adds all of others.
    pub(crate) fn merge(&mut self, others: &Self) {
        let Some(others) = &others.0 else { return };
        let noted = self.noted();
        for (counts, others) in noted.counts.iter_mut().zip(&others.counts) {
            for (count, other) in counts.iter_mut().zip(others) {
                *count += other;
            }
        }
        for warning in &others.first {
            if noted.is_told(warning.kind, &warning.name) {
                noted.first.insert(warning.clone());
                noted.cut();
            }
        }
    }

    /// How many there are of each kind and reason; `None` when there is none at all.
    pub(crate) fn counts(&self) -> Option<&Counts> {
        self.0.as_deref().map(|noted| &noted.counts)
    }

    /// Bytes of memory that they take.
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

    /// As messages, and how many more there are.
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
    /// Whether a warning about this object is among the first ones so far.
    fn is_told(&self, kind: OddKind, name: &str) -> bool {
        self.first.len() < Warnings::MOST
            || self
                .first
                .last()
                .is_none_or(|last| (kind, name) <= (last.kind, &*last.name))
    }

    fn cut(&mut self) {
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
    fn the_first_ones_are_told_whatever_the_order_and_the_others_are_counted() {
        let all = of(0..100);
        let backwards = of((0..100).rev());
        let mut merged = of((0..100).step_by(2));
        merged.merge(&of((1..100).step_by(2)));
        merged.merge(&Warnings::default());
        for warnings in [all, backwards, merged] {
            let (told, more) = warnings.to_messages();
            assert_eq!((told.len(), more), (32, 68));
            assert_eq!((told[0].kind.as_str(), told[0].name.as_str()), ("Node", "n000"));
            assert_eq!(told[31].message, "labels of n031");
            let counts = warnings.counts().expect("there are some");
            let labels = counts[OddKind::Node as usize][OddReason::Labels as usize];
            assert_eq!((labels, counts.iter().flatten().sum::<u64>()), (100, 100));
            assert!(warnings.bytes() > 32 * 20);
        }
    }

    #[test]
    fn kinds_come_in_the_order_of_their_names() {
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
            .map(|told| told.kind)
            .collect();
        assert_eq!(kinds, ["ControllerRevision", "Node", "Pod"]);
    }

    #[test]
    fn without_any_there_is_nothing() {
        let none = Warnings::default();
        assert_eq!((none.to_messages(), none.bytes()), ((Vec::new(), 0), 0));
        assert!(none.counts().is_none());
    }
}
