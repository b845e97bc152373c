//! The resources of an admitted call.

use std::sync::Arc;

use tokio::time::Instant;

use crate::{
    client::{Client, Key},
    fair_share::Share,
    pool::Permit,
};

/// What an admitted call holds while it is handled.
#[derive(Debug)]
pub(crate) struct Admission {
    /// The client, if it is known.
    pub(crate) client: Option<Client>,
    /// The permit of the planning pool; `None` for calls that need none.
    pub(crate) permit: Option<Permit>,
    /// Memory for the request and its response, from the arrival of the request until the client has read the response.
    pub(crate) memory: Arc<Share>,
    /// The deadline of the call, if it has one.
    pub(crate) deadline: Option<Instant>,
}

impl Admission {
    /// The key of the client whose shares the call uses.
    pub(crate) fn key(&self) -> &Key {
        self.memory.client()
    }
}
