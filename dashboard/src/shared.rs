//! What the handlers share.

use tokio_util::sync::CancellationToken;

use crate::access::Access;

/// What the handlers share.
pub(crate) struct Shared {
    pub(crate) access: Access,
    /// Ends the streams of events.
    pub(crate) end: CancellationToken,
    /// The values of the header Host that lead to this server.
    pub(crate) hosts: Vec<String>,
}
