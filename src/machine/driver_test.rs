use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use parking_lot::Mutex;

use super::super::handle::Gone;
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
    Stumble,
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
            Event::Stumble => panic!("a machine stumbles"),
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
    /// Appends without a wait.
    is_quick: bool,
}

impl Journal for Paper {
    type Record = u64;

    fn end_offset(&self) -> i64 {
        let written: usize = self.0.lock().appends.iter().map(Vec::len).sum();
        i64::try_from(written).unwrap()
    }

    fn append_now(&mut self, records: &[u64]) -> Option<Result<Committed, Lost>> {
        let is_quick = self.0.lock().is_quick;
        is_quick.then(|| self.push(records))
    }

    async fn append(&mut self, records: &[u64]) -> Result<Committed, Lost> {
        self.push(records)
    }
}

impl Paper {
    fn push(&self, records: &[u64]) -> Result<Committed, Lost> {
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

/// A machine at rest whose journal never waits.
async fn at_rest() -> (Handle<Adder>, Paper, Tasks) {
    let paper = Paper::default();
    paper.0.lock().is_quick = true;
    let (handle, _done, tasks) = start(&paper);
    assert_eq!(handle.ask(Event::Add(1)).await, Ok(1));
    // Its task lies down after the first answer.
    tokio::task::yield_now().await;
    (handle, paper, tasks)
}

#[tokio::test(start_paused = true)]
async fn a_machine_at_rest_is_run_by_whoever_asks() {
    let (handle, paper, _tasks) = at_rest().await;
    for total in 2..5 {
        assert_eq!(handle.ask(Event::Add(1)).now_or_never(), Some(Ok(total)));
    }
    assert_eq!(handle.ask(Event::Total).now_or_never(), Some(Ok(4)));
    assert_eq!(paper.0.lock().appends.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_appended_at_once_is_left_to_the_task() {
    let (handle, paper, _tasks) = at_rest().await;
    paper.0.lock().is_quick = false;
    let answers = tokio::join!(
        handle.ask(Event::Add(1)),
        handle.ask(Event::Add(2)),
        handle.ask(Event::Total),
    );
    assert_eq!(answers, (Ok(2), Ok(4), Ok(4)));
    assert_eq!(paper.0.lock().appends, [vec![1], vec![1, 2]]);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_committed_at_once_is_waited_for_in_order() {
    let (handle, paper, _tasks) = at_rest().await;
    paper.0.lock().hold = true;
    let commit = async {
        clock::sleep(Duration::from_secs(1)).await;
        assert_eq!(handle.ask(Event::Total).now_or_never(), None);
        for commit in std::mem::take(&mut paper.0.lock().commits) {
            commit.send(Ok(())).unwrap();
        }
    };
    let (add, total, ()) =
        tokio::join!(handle.ask(Event::Add(1)), handle.ask(Event::Total), commit);
    assert_eq!((add, total), (Ok(2), Ok(2)));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_set_by_whoever_asked_is_met() {
    let (handle, _paper, _tasks) = at_rest().await;
    assert_eq!(handle.ask(Event::AddLater(9)).now_or_never(), Some(Ok(0)));
    tokio::task::yield_now().await;
    assert_eq!(handle.ask(Event::AddLater(5)).now_or_never(), Some(Ok(0)));
    clock::sleep(Duration::from_secs(6)).await;
    assert_eq!(handle.ask(Event::Total).await, Ok(101));
    // Put off, it is met when it is due and not before.
    handle.ask(Event::AddLater(5)).await.unwrap();
    tokio::task::yield_now().await;
    handle.ask(Event::AddLater(9)).await.unwrap();
    clock::sleep(Duration::from_secs(6)).await;
    assert_eq!(handle.ask(Event::Total).await, Ok(101));
    clock::sleep(Duration::from_secs(4)).await;
    assert_eq!(handle.ask(Event::Total).await, Ok(201));
}

#[tokio::test(start_paused = true)]
async fn a_log_lost_under_whoever_asks_ends_the_machine() {
    let (handle, paper, _tasks) = at_rest().await;
    paper.0.lock().lost = true;
    assert_eq!(handle.ask(Event::Add(1)).await, Err(Gone));
    assert_eq!(handle.ask(Event::Total).await, Err(Gone));
    assert!(handle.is_gone());
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_stumbles_stops_the_node_and_not_who_asked() {
    let (handle, _paper, tasks) = at_rest().await;
    assert_eq!(handle.ask(Event::Stumble).await, Err(Gone));
    tasks.stopped().await;
    assert_eq!(handle.ask(Event::Total).await, Err(Gone));
}

#[tokio::test(start_paused = true)]
async fn a_stopped_group_ends_a_machine_at_rest() {
    let (handle, _paper, tasks) = at_rest().await;
    tasks.stop_and_wait().await;
    assert_eq!(handle.ask(Event::Total).await, Err(Gone));
}
