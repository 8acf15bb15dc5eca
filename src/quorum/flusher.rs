//! The one thread that makes appended batches durable: all that is queued with one sync a file,
//! completed in the order of the appends.
//!
//! A failed sync is final. The kernel may have dropped the pages and would report success next
//! time, so nothing that follows is ever called durable.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use parking_lot::Mutex;

use crate::os::disk::File;
use crate::os::tasks;

/// Appends that may wait for the disk; openraft has one under way, so this is never full.
const QUEUE: usize = 64;

/// Told once what it asked for is durable, or never will be.
pub(super) type Done = Box<dyn FnOnce(io::Result<()>) + Send>;

/// The handle to the thread.
#[derive(Debug)]
pub(super) struct Flusher {
    jobs: Mutex<Option<SyncSender<Job>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Work for the disk that nobody waits for.
pub(super) type Errand = Box<dyn FnOnce() + Send>;

enum Job {
    Sync(Arc<File>, Done),
    Errand(Errand),
}

impl Flusher {
    /// Starts the thread.
    pub(super) fn start() -> io::Result<Self> {
        let (sender, jobs) = sync_channel(QUEUE);
        let thread = tasks::thread("metadata-flusher", move || run(&jobs))?;
        Ok(Self {
            jobs: Mutex::new(Some(sender)),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Asks for what was written to `file` so far to become durable.
    pub(super) fn submit(&self, file: Arc<File>, done: Done) {
        if let Some(Job::Sync(_, done)) = self.hand_over(Job::Sync(file, done)) {
            done(Err(io::ErrorKind::BrokenPipe.into()));
        }
    }

    /// Runs `errand` on the thread, behind all that was asked for; not at all after the end.
    pub(super) fn run_later(&self, errand: Errand) {
        self.hand_over(Job::Errand(errand));
    }

    /// Queues a job; gives it back when the thread has ended.
    fn hand_over(&self, job: Job) -> Option<Job> {
        let sender = self.jobs.lock().clone();
        match sender {
            Some(sender) => sender.send(job).err().map(|unsent| unsent.0),
            None => Some(job),
        }
    }

    /// Ends the thread once all that was asked for is done.
    pub(super) fn stop(&self) {
        drop(self.jobs.lock().take());
        if let Some(thread) = self.thread.lock().take() {
            // A panic of the thread was already answered by dropping its callbacks.
            let _ = thread.join();
        }
    }
}

fn run(jobs: &Receiver<Job>) {
    let mut failed = None;
    while let Ok(first) = jobs.recv() {
        let mut batch = vec![first];
        batch.extend(jobs.try_iter());
        if failed.is_none() {
            failed = sync_all(&batch).err();
        }
        for job in batch {
            match (job, &failed) {
                (Job::Sync(_, done), None) => done(Ok(())),
                (Job::Sync(_, done), Some(error)) => done(Err(again(error))),
                (Job::Errand(errand), None) => errand(),
                (Job::Errand(_), Some(_)) => {}
            }
        }
    }
}

/// Syncs each file once; neighbouring jobs nearly always share one.
fn sync_all(batch: &[Job]) -> io::Result<()> {
    let mut synced: Option<&Arc<File>> = None;
    for job in batch.iter().rev() {
        if let Job::Sync(file, _) = job
            && synced.is_none_or(|synced| !Arc::ptr_eq(synced, file))
        {
            file.sync_data()?;
            synced = Some(file);
        }
    }
    Ok(())
}

fn again(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::os::disk::{Disk, Open, TempDir};

    #[test]
    fn callbacks_come_in_order_and_a_stopped_thread_refuses() {
        let dir = TempDir::new();
        let file = Arc::new(Disk.open(&dir.path().join("f"), Open::New).unwrap());
        let flusher = Flusher::start().unwrap();
        let (told, heard) = mpsc::channel();
        for number in 0..50 {
            let told = told.clone();
            let done = Box::new(move |result: io::Result<()>| {
                told.send((number, result.is_ok())).unwrap();
            });
            flusher.submit(Arc::clone(&file), done);
        }
        flusher.stop();
        let done = Box::new(move |result: io::Result<()>| told.send((50, result.is_ok())).unwrap());
        flusher.submit(file, done);
        let heard: Vec<_> = heard.iter().collect();
        assert!(heard.iter().map(|(number, _)| *number).eq(0..=50));
        assert!(heard[..50].iter().all(|(_, ok)| *ok) && !heard[50].1);
    }

    #[test]
    fn after_a_failed_sync_nothing_is_durable_any_more() {
        let dir = TempDir::new();
        let good = Arc::new(Disk.open(&dir.path().join("f"), Open::New).unwrap());
        // A device has nothing to sync and says so.
        let bad = Arc::new(Disk.open("/dev/null".as_ref(), Open::Read).unwrap());
        assert!(bad.sync_data().is_err());
        let flusher = Flusher::start().unwrap();
        let (told, heard) = mpsc::channel();
        for file in [bad, good] {
            let told = told.clone();
            let done = Box::new(move |result: io::Result<()>| told.send(result.is_ok()).unwrap());
            flusher.submit(file, done);
            assert!(!heard.recv().unwrap());
        }
        flusher.stop();
    }
}
