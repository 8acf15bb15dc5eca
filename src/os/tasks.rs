//! Tasks: named, spawned in groups that are told to stop and are waited for, and blocking work.

use std::future::Future;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use futures_util::FutureExt;
use tokio::runtime::{Builder, Handle};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::error;

/// A group of tasks that end together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tasks {
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl Tasks {
    /// A group without tasks.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Starts a task; a panic in it is logged under `name` and stops the group.
    pub(crate) fn spawn<F>(&self, name: &'static str, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let alarm = Alarm {
            name,
            stop: self.stop.clone(),
        };
        self.tracker.spawn(async move {
            let _alarm = alarm;
            future.await;
        });
    }

    /// Starts a task on a thread of a crew; its panic ends nothing but itself, as that of one
    /// connection.
    pub(crate) fn spawn_alone<F>(&self, seat: Seat, name: &'static str, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        // An async block around the future would hold it twice.
        let caught = AssertUnwindSafe(future).catch_unwind();
        let runtime = seat.runtime().clone();
        let reported = caught.map(move |ended| {
            drop(seat);
            if ended.is_err() {
                error!(
                    task = name,
                    "a task panicked, this is a defect of the broker"
                );
            }
        });
        self.tracker.spawn_on(reported, &runtime);
    }

    /// Ends when the group is told to stop.
    pub(crate) async fn stopped(&self) {
        self.stop.cancelled().await;
    }

    /// Whether the group was told to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Tells every task of the group to stop, without waiting.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Tells every task of the group to stop and waits until all have ended.
    pub(crate) async fn stop_and_wait(&self) {
        self.stop.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }
}

/// Sounds when its task panics: a panic unwinds through it.
struct Alarm {
    name: &'static str,
    stop: CancellationToken,
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if thread::panicking() {
            error!(task = self.name, "a task panicked, the node stops");
            self.stop.cancel();
        }
    }
}

/// Runs blocking work, as disk access that may wait, off the runtime's threads.
pub(crate) fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    tokio::task::spawn_blocking(work)
}

/// Starts a named thread of its own, for work that waits for the disk all its life.
pub(crate) fn thread(
    name: &'static str,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<thread::JoinHandle<()>> {
    #[cfg(test)]
    let work = {
        let inherit = super::sim_disk::heritage();
        move || {
            inherit();
            work();
        }
    };
    thread::Builder::new().name(name.to_owned()).spawn(work)
}

/// Threads with a runtime each, for tasks that stay on one thread all their life.
///
/// A runtime of several threads has one of them wait for the sockets while others run the tasks:
/// it is woken for each packet, to do nothing, and passes work on through the kernel. A thread that
/// waits for its own sockets does neither.
#[derive(Debug)]
pub(crate) struct Crew {
    members: Vec<Member>,
    stop: CancellationToken,
}

#[derive(Debug)]
struct Member {
    runtime: Handle,
    seats: AtomicUsize,
}

/// A place on one of the threads, given up when dropped; the crew ends with the last.
#[derive(Debug)]
pub(crate) struct Seat {
    crew: Arc<Crew>,
    member: usize,
}

impl Crew {
    /// Starts one thread for each processor.
    pub(crate) fn start(name: &'static str) -> io::Result<Arc<Self>> {
        let count = thread::available_parallelism().map_or(1, usize::from);
        let stop = CancellationToken::new();
        let mut members = Vec::with_capacity(count);
        for _ in 0..count {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            members.push(Member {
                runtime: runtime.handle().clone(),
                seats: AtomicUsize::new(0),
            });
            let told = stop.clone();
            thread(name, move || runtime.block_on(told.cancelled()))?;
        }
        Ok(Arc::new(Self { members, stop }))
    }

    /// The runtime that asks, as the whole crew.
    #[cfg(test)]
    pub(crate) fn here() -> Arc<Self> {
        Arc::new(Self {
            members: vec![Member {
                runtime: Handle::current(),
                seats: AtomicUsize::new(0),
            }],
            stop: CancellationToken::new(),
        })
    }

    /// A place on the thread that has the fewest.
    pub(crate) fn seat(self: &Arc<Self>) -> Seat {
        let members = self.members.iter().enumerate();
        let fewest = members.min_by_key(|(_, member)| member.seats.load(Ordering::Relaxed));
        let (member, fewest) = fewest.expect("a crew has members");
        fewest.seats.fetch_add(1, Ordering::Relaxed);
        Seat {
            crew: self.clone(),
            member,
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Seat {
    fn runtime(&self) -> &Handle {
        &self.crew.members[self.member].runtime
    }

    /// Does something, as making a socket, for a task that will run there.
    pub(crate) fn within<T>(&self, make: impl FnOnce() -> T) -> T {
        let _inside = self.runtime().enter();
        make()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let member = &self.crew.members[self.member];
        member.seats.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Starts a named thread with a runtime of its own, for what must keep its timers whatever the
/// other runtimes are busy with. The runtime ends with the future that `make` gives.
pub(crate) fn thread_with_runtime<F>(
    name: &'static str,
    make: impl FnOnce() -> F + Send + 'static,
) -> io::Result<thread::JoinHandle<()>>
where
    F: Future<Output = ()>,
{
    let runtime = Builder::new_current_thread().enable_all().build()?;
    thread(name, move || runtime.block_on(make()))
}
