//! The steps of a play, as they come.

use nodewise_proto::v1;
use tonic::{Status, Streaming};

use crate::ServiceError;

/// A play that a replica makes. Dropping it ends the play.
#[derive(Debug)]
pub struct Simulation {
    responses: Streaming<v1::SimulateResponse>,
    /// Whether the end has come.
    is_over: bool,
}

impl Simulation {
    pub(crate) fn new(responses: Streaming<v1::SimulateResponse>) -> Self {
        Self {
            responses,
            is_over: false,
        }
    }

    /// The next step, or the end, which is the last response; `None` after the end.
    ///
    /// # Errors
    ///
    /// The replica failed or the deadline of the call has passed. What came before is right.
    pub async fn next(&mut self) -> Result<Option<v1::SimulateResponse>, ServiceError> {
        if self.is_over {
            return Ok(None);
        }
        let failed = |status: &Status| {
            let (code, message) = (status.code(), status.message());
            ServiceError::Unreachable(format!("the play ended early: {code:?}: {message}"))
        };
        let response = self.responses.message().await.map_err(|status| failed(&status))?;
        let Some(response) = response else {
            return Err(failed(&Status::internal("an answer without an end")));
        };
        self.is_over = matches!(
            response.content,
            Some(v1::simulate_response::Content::End(_)) | None
        );
        Ok(Some(response))
    }
}
