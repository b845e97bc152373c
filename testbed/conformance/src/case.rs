//! A case of the conformance kit.

use futures::future::LocalBoxFuture;

use crate::{
    controllers::Controllers,
    fixture::{Fixture, SoloFixture},
};

/// One check of the contract.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// The name. It never changes, because documents cite it.
    pub id: &'static str,
    /// What the case checks, in one sentence.
    pub checks: &'static str,
    /// The controllers that its executor runs.
    pub controllers: Controllers,
    /// The code of the case.
    pub(crate) script: Script,
}

/// The code of a case, and whether other cases may run at the same time.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Script {
    /// The case shares an executor with other cases.
    Shared(for<'a> fn(&'a Fixture) -> LocalBoxFuture<'a, anyhow::Result<()>>),
    /// The case has an executor to itself.
    Solo(for<'a> fn(&'a mut SoloFixture) -> LocalBoxFuture<'a, anyhow::Result<()>>),
}

/// A case that shares an executor with others. The list of all cases says for which controllers.
macro_rules! shared {
    ($id:literal, $checks:literal, $script:path) => {
        $crate::case::Case {
            id: $id,
            checks: $checks,
            controllers: $crate::controllers::Controllers::DaemonSets,
            script: $crate::case::Script::Shared(|fixture| Box::pin($script(fixture))),
        }
    };
}

/// A case that has an executor to itself. The list of all cases says for which controllers.
macro_rules! solo {
    ($id:literal, $checks:literal, $script:path) => {
        $crate::case::Case {
            id: $id,
            checks: $checks,
            controllers: $crate::controllers::Controllers::DaemonSets,
            script: $crate::case::Script::Solo(|solo| Box::pin($script(solo))),
        }
    };
}

pub(crate) use {shared, solo};
