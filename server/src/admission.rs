//! What a call was let in with.

use std::sync::Arc;

use tokio::time::Instant;

use crate::{
    client::{Client, Key},
    fair_share::Share,
    pool::Permit,
};

/// What the gate gives a call, and its handler uses up.
#[derive(Debug)]
pub(crate) struct Admission {
    /// Who calls, where that is known.
    pub(crate) client: Option<Client>,
    /// The right to be planned for; only calls that are planned for need one.
    pub(crate) permit: Option<Permit>,
    /// Bytes for the request and its answer, from the arrival of the one until the other has been taken.
    pub(crate) memory: Arc<Share>,
    /// When the time of the call is up, if it ever is.
    pub(crate) deadline: Option<Instant>,
}

impl Admission {
    /// Whose share the call uses.
    pub(crate) fn key(&self) -> &Key {
        self.memory.client()
    }
}
