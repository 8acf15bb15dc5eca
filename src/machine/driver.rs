//! The task of a machine: queue, handle, append, replay, answer.
//!
//! Answers and effects wait until everything before them is committed, in order; a read waits
//! behind the writes before it. Events that are queued together share one append. While nothing is
//! queued or under way the machine is at rest, and whoever asks runs it right there. When the
//! journal is lost the task ends: the machine, the queue and all that is parked are dropped, and
//! every caller learns that the machine is gone.

use std::any::Any;
use std::collections::VecDeque;
use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::select;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::base::FastMap;
use crate::os::clock;
use crate::os::tasks::Tasks;

use super::handle::{Asked, AskedNow, AtRest, Handle};
use super::journal::{Committed, Journal, Lost};
use super::{Machine, Now, Outcome, Ticket};

/// How much may queue up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Events that wait to be handled; who asks beyond them waits.
    pub(crate) queued_events: usize,
    /// Appends that wait to be committed.
    pub(crate) appends_in_flight: usize,
    /// Records after which no further event joins an append.
    pub(crate) records_per_append: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            queued_events: 1024,
            appends_in_flight: 64,
            records_per_append: 1000,
        }
    }
}

/// Starts the task of a machine that has replayed its journal. `perform` carries out effects and
/// must not wait.
pub(crate) fn spawn<M, J, F>(
    tasks: &Tasks,
    name: &'static str,
    limits: Limits,
    machine: M,
    journal: J,
    perform: F,
) -> Handle<M>
where
    M: Machine<Record = J::Record> + Send + 'static,
    M::Event: Send,
    M::Answer: Send,
    M::Effect: Send,
    J: Journal + 'static,
    J::Record: Sync,
    F: FnMut(M::Effect) + Send + 'static,
{
    let (sender, queue) = mpsc::channel(limits.queued_events);
    let driver = Box::new(Driver {
        machine,
        journal,
        perform,
        limits,
        next_ticket: 0,
        waiting: FastMap::default(),
        unwritten: None,
        parked: VecDeque::new(),
        armed: None,
        trouble: None,
    });
    let bed = Arc::new(Bed {
        driver: Mutex::default(),
        roused: Notify::new(),
    });
    let stop = tasks.clone();
    let rest = Rest(bed.clone());
    tasks.spawn(name, async move {
        select! {
            biased;
            () = stop.stopped() => {}
            lost = run(driver, queue, rest) => {
                if lost.is_err() {
                    tracing::info!(machine = name, "the machine ends, its log is led elsewhere");
                }
            }
        }
    });
    Handle::new(sender, bed)
}

/// What is told once an append is committed.
struct Parked<M: Machine> {
    committed: Committed,
    answers: Vec<(Ticket, M::Answer)>,
    effects: Vec<M::Effect>,
}

struct Driver<M: Machine, J, F> {
    machine: M,
    journal: J,
    perform: F,
    limits: Limits,
    next_ticket: u64,
    /// Callers whose answers the machine has not given yet.
    waiting: FastMap<Ticket, oneshot::Sender<M::Answer>>,
    /// Decided and replayed; to be appended before anything else is.
    unwritten: Option<Outcome<M>>,
    parked: VecDeque<Parked<M>>,
    /// When the task looks after the machine at rest, whether it is asked or not.
    armed: Option<Instant>,
    /// What went wrong while another than the task ran the machine.
    trouble: Option<Trouble>,
}

enum Trouble {
    Lost,
    Panicked(Box<dyn Any + Send>),
}

/// What woke the task.
enum Woken<M: Machine> {
    Committed,
    Asked(Option<Asked<M>>),
    Deadline,
    /// Another ran the machine and left something to do.
    Roused,
}

/// Where a driver lies while it is at rest; the task has it otherwise.
struct Bed<M: Machine, J, F> {
    driver: Mutex<Option<Box<Driver<M, J, F>>>>,
    roused: Notify,
}

/// The task's end of the bed, which is empty for ever once the task ends.
struct Rest<M: Machine, J, F>(Arc<Bed<M, J, F>>);

impl<M: Machine, J, F> Drop for Rest<M, J, F> {
    fn drop(&mut self) {
        drop(self.0.driver.lock().take());
    }
}

impl<M: Machine, J, F> Rest<M, J, F> {
    fn lay(&self, driver: Box<Driver<M, J, F>>) {
        *self.0.driver.lock() = Some(driver);
    }

    fn take(&self) -> Result<Box<Driver<M, J, F>>, Lost> {
        let mut driver = self.0.driver.lock().take().ok_or(Lost)?;
        match driver.trouble.take() {
            None => Ok(driver),
            Some(Trouble::Lost) => Err(Lost),
            Some(Trouble::Panicked(panic)) => resume_unwind(panic),
        }
    }
}

impl<M, J, F> AtRest<M> for Bed<M, J, F>
where
    M: Machine<Record = J::Record> + Send,
    M::Event: Send,
    M::Answer: Send,
    M::Effect: Send,
    J: Journal,
    F: FnMut(M::Effect) + Send,
{
    fn ask_now(&self, event: M::Event) -> AskedNow<M> {
        let Some(mut lying) = self.driver.try_lock() else {
            return AskedNow::Busy(event);
        };
        let Some(driver) = lying.as_mut().filter(|driver| driver.is_at_rest()) else {
            return AskedNow::Busy(event);
        };
        // The defect of a machine ends the node, not the one who happened to ask.
        let asked = catch_unwind(AssertUnwindSafe(|| driver.ask_now(event)));
        let asked = asked.unwrap_or_else(|panic| driver.stumble(Trouble::Panicked(panic)));
        if !driver.may_rest_on() {
            self.roused.notify_one();
        }
        asked
    }
}

/// Runs until the log is lost, or until nobody can ask any more and all is answered.
async fn run<M, J, F>(
    mut driver: Box<Driver<M, J, F>>,
    mut queue: mpsc::Receiver<Asked<M>>,
    rest: Rest<M, J, F>,
) -> Result<(), Lost>
where
    M: Machine<Record = J::Record>,
    J: Journal,
    F: FnMut(M::Effect),
{
    loop {
        let woken;
        (driver, woken) = if driver.is_at_rest() {
            rest_until_woken(driver, &mut queue, &rest).await?
        } else {
            let woken = driver.wake(&mut queue).await?;
            (driver, woken)
        };
        match woken {
            Woken::Committed => driver.release_first(),
            Woken::Asked(None) => return driver.drain().await,
            Woken::Asked(first) => driver.handle_burst(first, &mut queue).await?,
            Woken::Roused => driver.handle_burst(None, &mut queue).await?,
            Woken::Deadline => driver.expire().await?,
        }
    }
}

/// Lets whoever asks run the machine, until there is something for the task to do.
async fn rest_until_woken<M, J, F>(
    mut driver: Box<Driver<M, J, F>>,
    queue: &mut mpsc::Receiver<Asked<M>>,
    rest: &Rest<M, J, F>,
) -> Result<(Box<Driver<M, J, F>>, Woken<M>), Lost>
where
    M: Machine,
{
    let deadline = driver.machine.deadline();
    driver.armed = deadline;
    rest.lay(driver);
    let woken = select! {
        biased;
        () = rest.0.roused.notified() => Woken::Roused,
        () = reached(deadline) => Woken::Deadline,
        asked = queue.recv() => Woken::Asked(asked),
    };
    Ok((rest.take()?, woken))
}

impl<M: Machine, J, F> Driver<M, J, F> {
    fn is_at_rest(&self) -> bool {
        self.parked.is_empty() && self.unwritten.is_none() && self.trouble.is_none()
    }

    /// Whether the task need not be woken after another ran the machine.
    fn may_rest_on(&self) -> bool {
        let deadline = self.machine.deadline();
        self.is_at_rest() && deadline.is_none_or(|at| self.armed.is_some_and(|armed| armed <= at))
    }

    fn ticket(&mut self) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        ticket
    }

    /// Leaves it to the task to end; who asked learns it when the machine is dropped.
    fn stumble(&mut self, trouble: Trouble) -> AskedNow<M> {
        self.trouble = Some(trouble);
        let ticket = self.ticket();
        self.take(ticket)
    }

    fn take(&mut self, ticket: Ticket) -> AskedNow<M> {
        let (answer, answered) = oneshot::channel();
        self.waiting.insert(ticket, answer);
        AskedNow::Taken(answered)
    }
}

impl<M, J, F> Driver<M, J, F>
where
    M: Machine<Record = J::Record>,
    J: Journal,
    F: FnMut(M::Effect),
{
    /// Handles an event of one who does not wait; what must wait is left to the task.
    fn ask_now(&mut self, event: M::Event) -> AskedNow<M> {
        let ticket = self.ticket();
        let mut outcome = self.machine.handle(self.now(0), ticket, event);
        self.replay(&outcome.records);
        if !outcome.records.is_empty() {
            let Some(appended) = self.journal.append_now(&outcome.records) else {
                self.unwritten = Some(outcome);
                return self.take(ticket);
            };
            let Ok(mut committed) = appended else {
                return self.stumble(Trouble::Lost);
            };
            let mut unheard = Context::from_waker(Waker::noop());
            match committed.as_mut().poll(&mut unheard) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(Lost)) => return self.stumble(Trouble::Lost),
                Poll::Pending => {
                    self.park(committed, outcome.answers, outcome.effects);
                    return self.take(ticket);
                }
            }
        }
        let ours = outcome.answers.iter().position(|(to, _)| *to == ticket);
        let ours = ours.map(|at| outcome.answers.remove(at).1);
        self.release(outcome.answers, outcome.effects);
        match ours {
            Some(answer) => AskedNow::Answered(answer),
            None => self.take(ticket),
        }
    }

    async fn wake(&mut self, queue: &mut mpsc::Receiver<Asked<M>>) -> Result<Woken<M>, Lost> {
        let room = self.parked.len() < self.limits.appends_in_flight;
        let deadline = self.machine.deadline().filter(|_| room);
        select! {
            biased;
            committed = first_committed(&mut self.parked) => committed.map(|()| Woken::Committed),
            () = reached(deadline) => Ok(Woken::Deadline),
            asked = queue.recv(), if room => Ok(Woken::Asked(asked)),
        }
    }

    /// Handles an event and those that are queued behind it, up to the size of an append. Each is
    /// replayed before the next is handled; should the append fail, the machine is dropped whole.
    async fn handle_burst(
        &mut self,
        first: Option<Asked<M>>,
        queue: &mut mpsc::Receiver<Asked<M>>,
    ) -> Result<(), Lost> {
        let mut all = self.unwritten.take().unwrap_or_default();
        let mut next = first.or_else(|| queue.try_recv().ok());
        while let Some(asked) = next {
            let ticket = self.ticket();
            self.waiting.insert(ticket, asked.answer);
            let now = self.now(all.records.len());
            let decided = self.machine.handle(now, ticket, asked.event);
            self.gather(&mut all, decided);
            next = if all.records.len() < self.limits.records_per_append {
                queue.try_recv().ok()
            } else {
                None
            };
        }
        self.write(all).await
    }

    async fn expire(&mut self) -> Result<(), Lost> {
        let mut all = self.unwritten.take().unwrap_or_default();
        let now = self.now(all.records.len());
        // Whoever ran the machine meanwhile may have put it off.
        if self.machine.deadline().is_some_and(|at| at <= now.instant) {
            let decided = self.machine.expire(now);
            self.gather(&mut all, decided);
        }
        self.write(all).await
    }

    fn replay(&mut self, records: &[M::Record]) {
        for record in records {
            self.machine.replay(record);
        }
    }

    /// Replays what was decided and puts it behind what was decided before.
    fn gather(&mut self, all: &mut Outcome<M>, decided: Outcome<M>) {
        self.replay(&decided.records);
        all.records.extend(decided.records);
        all.answers.extend(decided.answers);
        all.effects.extend(decided.effects);
    }

    async fn write(&mut self, outcome: Outcome<M>) -> Result<(), Lost> {
        let Outcome {
            records,
            answers,
            effects,
        } = outcome;
        if !records.is_empty() {
            let committed = self.journal.append(&records).await?;
            self.park(committed, answers, effects);
        } else if let Some(last) = self.parked.back_mut() {
            last.answers.extend(answers);
            last.effects.extend(effects);
        } else {
            self.release(answers, effects);
        }
        Ok(())
    }

    fn park(
        &mut self,
        committed: Committed,
        answers: Vec<(Ticket, M::Answer)>,
        effects: Vec<M::Effect>,
    ) {
        self.parked.push_back(Parked {
            committed,
            answers,
            effects,
        });
    }

    async fn drain(mut self: Box<Self>) -> Result<(), Lost> {
        while !self.parked.is_empty() {
            first_committed(&mut self.parked).await?;
            self.release_first();
        }
        Ok(())
    }

    fn release_first(&mut self) {
        if let Some(parked) = self.parked.pop_front() {
            self.release(parked.answers, parked.effects);
        }
    }

    fn release(&mut self, answers: Vec<(Ticket, M::Answer)>, effects: Vec<M::Effect>) {
        for (ticket, answer) in answers {
            if let Some(waiting) = self.waiting.remove(&ticket) {
                // A caller who went away is told nothing.
                let _ = waiting.send(answer);
            }
        }
        effects.into_iter().for_each(&mut self.perform);
    }

    fn now(&self, pending_records: usize) -> Now {
        let pending = i64::try_from(pending_records).expect("a burst is bounded");
        Now {
            instant: clock::now(),
            wall_ms: clock::wall_ms(),
            end_offset: self.journal.end_offset() + pending,
        }
    }
}

async fn first_committed<M: Machine>(parked: &mut VecDeque<Parked<M>>) -> Result<(), Lost> {
    match parked.front_mut() {
        Some(first) => (&mut first.committed).await,
        None => pending().await,
    }
}

async fn reached(deadline: Option<Instant>) {
    match deadline {
        Some(at) => clock::sleep_until(at).await,
        None => pending().await,
    }
}

#[cfg(test)]
#[path = "driver_test.rs"]
mod tests;
