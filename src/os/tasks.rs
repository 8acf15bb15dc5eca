//! Tasks: named, spawned in groups that are told to stop and are waited for, and blocking work.

use std::future::Future;
use std::io;
use std::panic::AssertUnwindSafe;
use std::thread;

use futures_util::FutureExt;
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

    /// Starts a task whose panic ends nothing but itself, as that of one connection.
    pub(crate) fn spawn_alone<F>(&self, name: &'static str, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        // An async block around the future would hold it twice.
        let caught = AssertUnwindSafe(future).catch_unwind();
        self.tracker.spawn(caught.map(move |ended| {
            if ended.is_err() {
                error!(
                    task = name,
                    "a task panicked, this is a defect of the broker"
                );
            }
        }));
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
    thread::Builder::new().name(name.to_owned()).spawn(work)
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
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    thread(name, move || runtime.block_on(make()))
}
