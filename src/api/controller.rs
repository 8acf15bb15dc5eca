//! The active controller as this node's handlers know it.

use tokio::sync::watch;

use crate::controller::Controller;
use crate::machine::ask::Ask;
use crate::machine::handle::Handle;
use crate::protocol::error::{ErrorCode, Refusal};

/// Where the controller is asked; there may be none for a while.
#[derive(Clone)]
pub(crate) struct ActiveController {
    handle: watch::Receiver<Option<Handle<Controller>>>,
}

impl ActiveController {
    /// Follows whoever is announced.
    pub(crate) fn new(handle: watch::Receiver<Option<Handle<Controller>>>) -> Self {
        Self { handle }
    }

    /// Asks, and waits until the answer is committed.
    pub(crate) async fn ask<T, A>(&self, request: A) -> Result<T, Refusal>
    where
        A: Ask<Controller, Reply = Result<T, Refusal>>,
    {
        let handle = self.handle.borrow().clone();
        let handle = handle.ok_or(Refusal::bare(ErrorCode::NotController))?;
        let answer = handle.ask(request.into_event()).await;
        let answer = answer.map_err(|_| Refusal::bare(ErrorCode::NotController))?;
        A::reply(answer).unwrap_or(Err(Refusal::bare(ErrorCode::UnknownServerError)))
    }

    /// Waits until there is one.
    pub(crate) async fn found(&mut self) {
        // The sender lives as long as the node; without it there is none to wait for.
        let _ = self.handle.wait_for(Option::is_some).await;
    }
}
