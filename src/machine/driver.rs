//! One task that owns a machine: queue, handle, append, replay, answer.
//!
//! Answers and effects wait until everything before them is committed, in order; a read waits
//! behind the writes before it. Events that are queued together share one append. When the journal
//! is lost the task ends: the machine, the queue and all that is parked are dropped, and every
//! caller learns that the machine is [`Gone`].

use std::collections::{HashMap, VecDeque};
use std::future::pending;
use std::time::Instant;

use tokio::select;
use tokio::sync::{mpsc, oneshot};

use crate::os::clock;
use crate::os::tasks::Tasks;

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

/// The machine no longer runs here: this node does not lead it any more, or stops. What was asked
/// may or may not have happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the machine does not run on this node any more")]
pub(crate) struct Gone;

/// Where a machine is asked; cheap to clone. The machine ends when all handles are dropped.
#[derive(Debug)]
pub(crate) struct Handle<M: Machine> {
    queue: mpsc::Sender<Asked<M>>,
}

impl<M: Machine> Clone for Handle<M> {
    fn clone(&self) -> Self {
        Self {
            queue: self.queue.clone(),
        }
    }
}

impl<M: Machine> Handle<M> {
    /// Asks, and waits for the answer; waits for room in the queue first.
    pub(crate) async fn ask(&self, event: M::Event) -> Result<M::Answer, Gone> {
        let (answer, answered) = oneshot::channel();
        let asked = Asked { event, answer };
        self.queue.send(asked).await.map_err(|_| Gone)?;
        answered.await.map_err(|_| Gone)
    }

    /// A handle that does not keep the machine running.
    pub(crate) fn downgrade(&self) -> WeakHandle<M> {
        WeakHandle {
            queue: self.queue.downgrade(),
        }
    }

    /// Whether the machine has ended.
    pub(crate) fn is_gone(&self) -> bool {
        self.queue.is_closed()
    }
}

/// Where a machine is asked by those who must not keep it running.
#[derive(Debug)]
pub(crate) struct WeakHandle<M: Machine> {
    queue: mpsc::WeakSender<Asked<M>>,
}

impl<M: Machine> WeakHandle<M> {
    /// The handle, if the machine still runs.
    pub(crate) fn upgrade(&self) -> Option<Handle<M>> {
        self.queue.upgrade().map(|queue| Handle { queue })
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
    let driver = Driver {
        machine,
        journal,
        perform,
        limits,
        queue,
        next_ticket: 0,
        waiting: HashMap::new(),
        parked: VecDeque::new(),
    };
    let stop = tasks.clone();
    tasks.spawn(name, async move {
        select! {
            biased;
            () = stop.stopped() => {}
            lost = driver.run() => {
                if lost.is_err() {
                    tracing::info!(machine = name, "the machine ends, its log is led elsewhere");
                }
            }
        }
    });
    Handle { queue: sender }
}

/// An event and where its answer goes.
struct Asked<M: Machine> {
    event: M::Event,
    answer: oneshot::Sender<M::Answer>,
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
    queue: mpsc::Receiver<Asked<M>>,
    next_ticket: u64,
    /// Callers whose answers the machine has not given yet.
    waiting: HashMap<Ticket, oneshot::Sender<M::Answer>>,
    parked: VecDeque<Parked<M>>,
}

/// What woke the driver.
enum Woken<M: Machine> {
    Committed,
    Asked(Option<Asked<M>>),
    Deadline,
}

impl<M, J, F> Driver<M, J, F>
where
    M: Machine<Record = J::Record>,
    J: Journal,
    F: FnMut(M::Effect),
{
    /// Runs until the log is lost, or until nobody can ask any more and all is answered.
    async fn run(mut self) -> Result<(), Lost> {
        loop {
            match self.wake().await? {
                Woken::Committed => self.release_first(),
                Woken::Asked(Some(asked)) => {
                    let outcome = self.handle_burst(asked);
                    self.write(outcome).await?;
                }
                Woken::Asked(None) => return self.drain().await,
                Woken::Deadline => {
                    let now = self.now(0);
                    let outcome = self.machine.expire(now);
                    self.replay(&outcome.records);
                    self.write(outcome).await?;
                }
            }
        }
    }

    async fn wake(&mut self) -> Result<Woken<M>, Lost> {
        let room = self.parked.len() < self.limits.appends_in_flight;
        let deadline = self.machine.deadline().filter(|_| room);
        select! {
            biased;
            committed = first_committed(&mut self.parked) => committed.map(|()| Woken::Committed),
            () = reached(deadline) => Ok(Woken::Deadline),
            asked = self.queue.recv(), if room => Ok(Woken::Asked(asked)),
        }
    }

    /// Handles an event and those that are queued behind it, up to the size of an append. Each is
    /// replayed before the next is handled; should the append fail, the machine is dropped whole.
    fn handle_burst(&mut self, first: Asked<M>) -> Outcome<M> {
        let mut all = Outcome::default();
        let mut next = Some(first);
        while let Some(asked) = next {
            let ticket = Ticket(self.next_ticket);
            self.next_ticket += 1;
            self.waiting.insert(ticket, asked.answer);
            let now = self.now(all.records.len());
            let outcome = self.machine.handle(now, ticket, asked.event);
            let replayed = all.records.len();
            all.records.extend(outcome.records);
            all.answers.extend(outcome.answers);
            all.effects.extend(outcome.effects);
            self.replay(&all.records[replayed..]);
            next = if all.records.len() < self.limits.records_per_append {
                self.queue.try_recv().ok()
            } else {
                None
            };
        }
        all
    }

    fn replay(&mut self, records: &[M::Record]) {
        for record in records {
            self.machine.replay(record);
        }
    }

    async fn write(&mut self, outcome: Outcome<M>) -> Result<(), Lost> {
        let Outcome {
            records,
            answers,
            effects,
        } = outcome;
        if !records.is_empty() {
            let committed = self.journal.append(&records).await?;
            self.parked.push_back(Parked {
                committed,
                answers,
                effects,
            });
        } else if let Some(last) = self.parked.back_mut() {
            last.answers.extend(answers);
            last.effects.extend(effects);
        } else {
            self.release(answers, effects);
        }
        Ok(())
    }

    async fn drain(mut self) -> Result<(), Lost> {
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
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use parking_lot::Mutex;

    use super::*;

    /// Adds up numbers; what it wrote is its state.
    #[derive(Default)]
    struct Adder {
        total: u64,
        deadline: Option<Instant>,
    }

    enum Event {
        Add(u64),
        Total,
        AddLater(u64),
    }

    impl Machine for Adder {
        type Event = Event;
        type Record = u64;
        type Answer = u64;
        type Effect = u64;

        fn handle(&mut self, now: Now, ticket: Ticket, event: Event) -> Outcome<Self> {
            let mut outcome = Outcome::default();
            match event {
                Event::Add(number) => {
                    outcome.records.push(number);
                    outcome.answers.push((ticket, self.total + number));
                    outcome.effects.push(number);
                }
                Event::Total => outcome.answers.push((ticket, self.total)),
                Event::AddLater(seconds) => {
                    self.deadline = Some(now.instant + Duration::from_secs(seconds));
                    outcome.answers.push((ticket, 0));
                }
            }
            outcome
        }

        fn replay(&mut self, record: &u64) {
            self.total += record;
        }

        fn deadline(&self) -> Option<Instant> {
            self.deadline
        }

        fn expire(&mut self, _now: Now) -> Outcome<Self> {
            self.deadline = None;
            Outcome {
                records: vec![100],
                ..Outcome::default()
            }
        }
    }

    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Sheet>>);

    #[derive(Default)]
    struct Sheet {
        appends: Vec<Vec<u64>>,
        commits: VecDeque<oneshot::Sender<Result<(), Lost>>>,
        hold: bool,
        lost: bool,
    }

    impl Journal for Paper {
        type Record = u64;

        fn end_offset(&self) -> i64 {
            let written: usize = self.0.lock().appends.iter().map(Vec::len).sum();
            i64::try_from(written).unwrap()
        }

        async fn append(&mut self, records: &[u64]) -> Result<Committed, Lost> {
            let mut sheet = self.0.lock();
            if sheet.lost {
                return Err(Lost);
            }
            sheet.appends.push(records.to_vec());
            if !sheet.hold {
                return Ok(Box::pin(async { Ok(()) }));
            }
            let (commit, committed) = oneshot::channel();
            sheet.commits.push_back(commit);
            Ok(Box::pin(
                async move { committed.await.unwrap_or(Err(Lost)) },
            ))
        }
    }

    fn start(paper: &Paper) -> (Handle<Adder>, Arc<Mutex<Vec<u64>>>, Tasks) {
        let tasks = Tasks::new();
        let done = Arc::new(Mutex::new(Vec::new()));
        let effects = Arc::clone(&done);
        let handle = spawn(
            &tasks,
            "adder",
            Limits::default(),
            Adder::default(),
            paper.clone(),
            move |effect| effects.lock().push(effect),
        );
        (handle, done, tasks)
    }

    #[tokio::test(start_paused = true)]
    async fn queued_events_share_an_append_and_are_answered_each() {
        let paper = Paper::default();
        let (handle, done, _tasks) = start(&paper);
        let answers = tokio::join!(
            handle.ask(Event::Add(1)),
            handle.ask(Event::Add(2)),
            handle.ask(Event::Total),
        );
        assert_eq!(answers, (Ok(1), Ok(3), Ok(3)));
        assert_eq!(paper.0.lock().appends, [vec![1, 2]]);
        assert_eq!(*done.lock(), [1, 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_waits_behind_the_writes_before_it() {
        let paper = Paper::default();
        paper.0.lock().hold = true;
        let (handle, done, _tasks) = start(&paper);
        let mut add = Box::pin(handle.ask(Event::Add(1)));
        let mut total = Box::pin(handle.ask(Event::Total));
        let second = Duration::from_secs(1);
        assert!(tokio::time::timeout(second, &mut add).await.is_err());
        assert!(tokio::time::timeout(second, &mut total).await.is_err());
        assert!(done.lock().is_empty());
        let commit = paper.0.lock().commits.pop_front().unwrap();
        commit.send(Ok(())).unwrap();
        assert_eq!((add.await, total.await), (Ok(1), Ok(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_writes_on_its_own() {
        let paper = Paper::default();
        let (handle, _done, _tasks) = start(&paper);
        handle.ask(Event::AddLater(5)).await.unwrap();
        clock::sleep(Duration::from_secs(6)).await;
        assert_eq!(handle.ask(Event::Total).await, Ok(100));
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_log_ends_the_machine_and_tells_everybody() {
        let paper = Paper::default();
        paper.0.lock().hold = true;
        let (handle, done, _tasks) = start(&paper);
        let asked = handle.clone();
        let lose = async {
            clock::sleep(Duration::from_secs(1)).await;
            paper.0.lock().lost = true;
            paper.0.lock().commits.clear();
        };
        let (add, ()) = tokio::join!(asked.ask(Event::Add(1)), lose);
        assert_eq!(add, Err(Gone));
        assert_eq!(handle.ask(Event::Total).await, Err(Gone));
        assert!(handle.is_gone());
        assert!(done.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_stopped_group_ends_the_machine() {
        let (handle, _done, tasks) = start(&Paper::default());
        tasks.stop_and_wait().await;
        assert_eq!(handle.ask(Event::Total).await, Err(Gone));
    }
}
