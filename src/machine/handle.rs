//! Where a machine is asked.
//!
//! Whoever asks runs the machine on its own thread while the machine has nothing else to do: a
//! commit then costs no wake-up of another thread, which is most of its price. Otherwise the event
//! queues for the machine's task, and what is queued together shares one append.

use std::sync::{Arc, Weak};

use tokio::sync::{mpsc, oneshot};

use super::Machine;

/// The machine no longer runs here: this node does not lead it any more, or stops. What was asked
/// may or may not have happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the machine does not run on this node any more")]
pub(crate) struct Gone;

/// An event and where its answer goes.
pub(super) struct Asked<M: Machine> {
    pub(super) event: M::Event,
    pub(super) answer: oneshot::Sender<M::Answer>,
}

/// A machine that may be at rest.
pub(super) trait AtRest<M: Machine>: Send + Sync {
    /// Runs the machine for one event right here, if it has nothing else to do; never waits.
    fn ask_now(&self, event: M::Event) -> AskedNow<M>;
}

/// What asking a machine at rest led to.
pub(super) enum AskedNow<M: Machine> {
    Answered(M::Answer),
    /// The answer comes later.
    Taken(oneshot::Receiver<M::Answer>),
    /// It is not at rest; nothing was done.
    Busy(M::Event),
}

/// Where a machine is asked; cheap to clone. The machine ends when all handles are dropped.
pub(crate) struct Handle<M: Machine> {
    queue: mpsc::Sender<Asked<M>>,
    machine: Arc<dyn AtRest<M>>,
}

impl<M: Machine> Clone for Handle<M> {
    fn clone(&self) -> Self {
        Self {
            queue: self.queue.clone(),
            machine: self.machine.clone(),
        }
    }
}

impl<M: Machine> Handle<M> {
    pub(super) fn new(queue: mpsc::Sender<Asked<M>>, machine: Arc<dyn AtRest<M>>) -> Self {
        Self { queue, machine }
    }

    /// Asks, and waits for the answer. An event that must queue waits for room first.
    pub(crate) async fn ask(&self, event: M::Event) -> Result<M::Answer, Gone> {
        let event = match self.ask_now(event) {
            AskedNow::Answered(answer) => return Ok(answer),
            AskedNow::Taken(answered) => return answered.await.map_err(|_| Gone),
            AskedNow::Busy(event) => event,
        };
        let (answer, answered) = oneshot::channel();
        let asked = Asked { event, answer };
        self.queue.send(asked).await.map_err(|_| Gone)?;
        answered.await.map_err(|_| Gone)
    }

    /// Who came first goes first.
    fn ask_now(&self, event: M::Event) -> AskedNow<M> {
        if self.queue.capacity() == self.queue.max_capacity() {
            self.machine.ask_now(event)
        } else {
            AskedNow::Busy(event)
        }
    }

    /// A handle that does not keep the machine running.
    pub(crate) fn downgrade(&self) -> WeakHandle<M> {
        WeakHandle {
            queue: self.queue.downgrade(),
            machine: Arc::downgrade(&self.machine),
        }
    }

    /// Whether the machine has ended.
    pub(crate) fn is_gone(&self) -> bool {
        self.queue.is_closed()
    }
}

/// Where a machine is asked by those who must not keep it running.
pub(crate) struct WeakHandle<M: Machine> {
    queue: mpsc::WeakSender<Asked<M>>,
    machine: Weak<dyn AtRest<M>>,
}

impl<M: Machine> WeakHandle<M> {
    /// The handle, if the machine still runs.
    pub(crate) fn upgrade(&self) -> Option<Handle<M>> {
        Some(Handle {
            queue: self.queue.upgrade()?,
            machine: self.machine.upgrade()?,
        })
    }
}
