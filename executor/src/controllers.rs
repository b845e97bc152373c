//! Which controllers there are, and which of them run: the lists of `--controllers` and `--mode`, with the syntax of
//! kube-controller-manager.

use std::{fmt, str::FromStr};

use nodewise_runtime::kind::Kind as _;

use crate::{daemon_set::DaemonSets, deployment::Deployments, mode::Mode, replica_set::ReplicaSets};

/// A controller that this executor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Controller {
    /// Of DaemonSets.
    DaemonSet,
    /// Of Deployments.
    Deployment,
    /// Of ReplicaSets.
    ReplicaSet,
}

impl Controller {
    /// All controllers, by name. This is also the order in which they start.
    pub const ALL: [Self; 3] = [Self::DaemonSet, Self::Deployment, Self::ReplicaSet];

    /// The name, as in kube-controller-manager. Also the source of its Events.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::DaemonSet => DaemonSets::EVENT_SOURCE,
            Self::Deployment => Deployments::EVENT_SOURCE,
            Self::ReplicaSet => ReplicaSets::EVENT_SOURCE,
        }
    }

    /// The short name, which kube-controller-manager accepts as well. Also the name of its queue in metrics.
    #[must_use]
    pub fn alias(self) -> &'static str {
        match self {
            Self::DaemonSet => DaemonSets::QUEUE,
            Self::Deployment => Deployments::QUEUE,
            Self::ReplicaSet => ReplicaSets::QUEUE,
        }
    }

    fn of(name: &str) -> Result<Self, Unknown> {
        let is_named = |controller: &Self| name == controller.name() || name == controller.alias();
        let found = Self::ALL.into_iter().find(is_named);
        found.ok_or_else(|| Unknown(name.to_owned()))
    }
}

impl fmt::Display for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// There is no controller of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no controller `{0}`; there are daemonset-controller, deployment-controller and replicaset-controller"
)]
pub struct Unknown(String);

/// One entry of `--controllers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// `*`: every controller.
    All,
    /// `NAME`: this controller.
    On(Controller),
    /// `-NAME`: not this controller.
    Off(Controller),
}

impl FromStr for Entry {
    type Err = Unknown;

    fn from_str(text: &str) -> Result<Self, Unknown> {
        match text.strip_prefix('-') {
            _ if text == "*" => Ok(Self::All),
            Some(name) => Controller::of(name).map(Self::Off),
            None => Controller::of(text).map(Self::On),
        }
    }
}

/// Whether a list enables a controller. The first entry with its name decides; without one, `*` does.
#[must_use]
pub fn is_enabled(list: &[Entry], controller: Controller) -> bool {
    let named = list.iter().find_map(|entry| match entry {
        Entry::On(name) if *name == controller => Some(true),
        Entry::Off(name) if *name == controller => Some(false),
        _ => None,
    });
    named.unwrap_or_else(|| list.contains(&Entry::All))
}

/// One entry of `--mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModeEntry {
    /// `MODE`: of every controller that has no entry of its own.
    Default(Mode),
    /// `NAME=MODE`: of this controller.
    Of(Controller, Mode),
}

/// An entry of `--mode` that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidMode {
    /// There is no such mode.
    #[error("there is no mode `{0}`; there are own, observe and companion")]
    Mode(String),
    /// There is no such controller.
    #[error(transparent)]
    Controller(#[from] Unknown),
}

impl FromStr for ModeEntry {
    type Err = InvalidMode;

    fn from_str(text: &str) -> Result<Self, InvalidMode> {
        let mode = |name: &str| match name {
            "own" => Ok(Mode::Own),
            "observe" => Ok(Mode::Observe),
            "companion" => Ok(Mode::Companion),
            other => Err(InvalidMode::Mode(other.to_owned())),
        };
        match text.split_once('=') {
            None => mode(text).map(Self::Default),
            Some((name, text)) => Ok(Self::Of(Controller::of(name)?, mode(text)?)),
        }
    }
}

/// The mode of a controller; `None` if the list does not say. Of several entries the first one counts.
#[must_use]
pub fn mode_of(list: &[ModeEntry], controller: Controller) -> Option<Mode> {
    let of_its_own = list.iter().find_map(|entry| match entry {
        ModeEntry::Of(name, mode) if *name == controller => Some(*mode),
        _ => None,
    });
    let default = || {
        list.iter().find_map(|entry| match entry {
            ModeEntry::Default(mode) => Some(*mode),
            ModeEntry::Of(..) => None,
        })
    };
    of_its_own.or_else(default)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<Entry> {
        text.split(',')
            .map(|entry| entry.parse().expect("an entry"))
            .collect()
    }

    #[test]
    fn the_list_decides_as_in_kube_controller_manager() {
        use Controller::{DaemonSet, Deployment, ReplicaSet};
        for (text, on) in [
            ("*", &[DaemonSet, Deployment, ReplicaSet][..]),
            ("daemonset-controller", &[DaemonSet]),
            ("daemonset,deployment", &[DaemonSet, Deployment]),
            ("*,-replicaset-controller", &[DaemonSet, Deployment]),
            ("-replicaset,*", &[DaemonSet, Deployment]),
            ("-deployment", &[]),
            ("deployment,-deployment", &[Deployment]),
            ("-deployment,deployment", &[]),
        ] {
            let list = list(text);
            let enabled = Controller::ALL
                .into_iter()
                .filter(|name| is_enabled(&list, *name));
            assert_eq!(enabled.collect::<Vec<_>>(), on, "{text}");
        }
        for unknown in ["statefulset-controller", "-job", "", "Deployment"] {
            assert!(unknown.parse::<Entry>().is_err(), "{unknown}");
        }
    }

    #[test]
    fn a_controller_has_its_own_mode_or_that_of_all() {
        let list =
            |text: &str| -> Result<Vec<ModeEntry>, InvalidMode> { text.split(',').map(str::parse).collect() };
        let of = |text: &str, controller| mode_of(&list(text).expect("a list"), controller);
        assert_eq!(of("own", Controller::DaemonSet), Some(Mode::Own));
        let mixed = "own,deployment=observe,replicaset-controller=observe";
        assert_eq!(of(mixed, Controller::DaemonSet), Some(Mode::Own));
        assert_eq!(of(mixed, Controller::Deployment), Some(Mode::Observe));
        assert_eq!(of(mixed, Controller::ReplicaSet), Some(Mode::Observe));
        assert_eq!(of("deployment=own", Controller::DaemonSet), None);
        for wrong in ["", "Own", "deployment=", "job=own", "own=own"] {
            assert!(list(wrong).is_err(), "{wrong}");
        }
    }
}
