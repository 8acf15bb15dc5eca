//! One connection, one task: frames are read while earlier answers wait, and answers leave in the
//! order of their requests.
//!
//! The task is lent a large buffer while it reads and executes. One that waits holds the bytes of the
//! frame that has begun, if any, and the queue of replies; the task itself is small: what only a busy
//! one needs is boxed.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use tokio::net::TcpStream;
use tracing::{debug, warn};

use super::budget::{Budget, Taken};
use super::connections::Place;
use super::{Close, Reply, Service, buffers, writer};
use crate::os::clock;
use crate::os::tasks::Tasks;
use crate::protocol::chunk::{Chunk, Chunks};
use crate::protocol::frame::Frames;
use crate::security::session::Session;

/// No request is executed while this much of earlier answers is unwritten: small requests may
/// have large answers.
const READY_BYTES: usize = 1 << 20;

/// An answer up to this size is copied behind the one before it.
const JOINED: usize = 1 << 10;

/// How long a client may take for the answers under way when the node stops.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// A reply's place in the order.
enum Slot {
    Ready(Chunks),
    Later {
        answer: BoxFuture<'static, Result<Chunks, Close>>,
        overlaps: bool,
    },
}

/// Why a connection ended.
enum End {
    /// The other end closed, or the socket broke.
    Gone(Option<io::Error>),
    /// We close it for a reason.
    Refused(Close),
    /// The node stops and every answer in flight is out.
    Stopped,
}

impl From<Close> for End {
    fn from(close: Close) -> Self {
        Self::Refused(close)
    }
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        Self::Gone(Some(error))
    }
}

/// What the connections of a listener have in common.
pub(super) struct Shared<S> {
    pub(super) service: Arc<S>,
    pub(super) budget: Arc<Budget>,
    pub(super) replies_max: usize,
    pub(super) tasks: Tasks,
}

/// Serves a connection until it ends, and says in one log line why we closed it, if we did.
pub(super) async fn run<S: Service>(place: Place, session: Arc<Session>, shared: Arc<Shared<S>>) {
    let mut connection = Connection {
        place,
        session,
        shared,
        frames: Frames::default(),
        taken: None,
        replies: VecDeque::new(),
        ready_bytes: 0,
    };
    loop {
        if let Err(end) = connection.turn().await {
            report(&connection.session, &end);
            return;
        }
    }
}

fn report(session: &Session, end: &End) {
    let Session { listener, peer, .. } = session;
    match end {
        End::Refused(Close { cause, client_id }) => {
            let client = client_id.as_ref().map_or("unknown", |id| id.as_str());
            warn!(%listener, %peer, client, cause, "connection closed");
        }
        End::Gone(Some(error)) => debug!(%listener, %peer, %error, "connection lost"),
        End::Gone(None) => debug!(%listener, %peer, "connection ended by the client"),
        End::Stopped => debug!(%listener, %peer, "connection closed, the node stops"),
    }
}

struct Connection<S> {
    place: Place,
    session: Arc<Session>,
    shared: Arc<Shared<S>>,
    frames: Frames,
    /// The bytes of the next frame, once its size is known and the budget has given them.
    taken: Option<Taken>,
    replies: VecDeque<Slot>,
    /// Bytes of answers that were ready at once and wait to be written.
    ready_bytes: usize,
}

/// What became of the next frame.
enum Next {
    Whole(Bytes, Taken),
    /// More must be read.
    Incomplete,
    /// The budget has nothing left for it.
    Refused,
}

impl<S: Service> Connection<S> {
    /// Executes what has arrived, writes what is ready, then waits for one more thing to happen.
    async fn turn(&mut self) -> Result<(), End> {
        let stopping = self.shared.tasks.is_stopping();
        let mut refused = false;
        while !stopping && self.may_execute() {
            match self.next_frame()? {
                Next::Whole(frame, taken) => self.execute(frame, taken).await?,
                Next::Incomplete => break,
                Next::Refused => {
                    refused = true;
                    break;
                }
            }
        }
        if self.write_ready().await? {
            return Ok(());
        }
        if stopping && self.replies.is_empty() {
            return Err(End::Stopped);
        }
        if self.replies.is_empty() {
            self.replies.shrink_to(0);
        }
        if refused {
            give_back(&mut self.frames);
            // Rare enough for a box, which keeps the task small.
            return Box::pin(self.wait_for_budget()).await;
        }
        self.wait(stopping).await
    }

    fn next_frame(&mut self) -> Result<Next, End> {
        let service = &self.shared.service;
        let size = self
            .frames
            .size(|key| service.frame_limit(key))
            .map_err(|bad| Close::new(bad.to_string()))?;
        let Some(size) = size else {
            return Ok(Next::Incomplete);
        };
        let taken = self.taken.take();
        let Some(taken) = taken.or_else(|| self.shared.budget.take(size)) else {
            return Ok(Next::Refused);
        };
        Ok(match self.frames.take(size) {
            Some(frame) => Next::Whole(frame, taken),
            None => {
                self.taken = Some(taken);
                Next::Incomplete
            }
        })
    }

    /// Executes a request; its bytes are given back when its ordered half is over.
    async fn execute(&mut self, frame: Bytes, taken: Taken) -> Result<(), Close> {
        let turn = self.shared.budget.turn().await;
        let reply = self.shared.service.call(&self.session, frame).await;
        drop((turn, taken));
        match reply? {
            Reply::Now(chunks) => {
                self.ready_bytes += in_memory(&chunks);
                self.replies.push_back(Slot::Ready(chunks));
            }
            Reply::Later { answer, overlaps } => {
                self.replies.push_back(Slot::Later { answer, overlaps });
            }
            Reply::Silent => {}
        }
        Ok(())
    }

    /// Whether the next request may be executed while the answers before it are under way.
    fn may_execute(&self) -> bool {
        self.replies.len() < self.shared.replies_max
            && self.ready_bytes < READY_BYTES
            && !matches!(
                self.replies.back(),
                Some(Slot::Later {
                    overlaps: false,
                    ..
                })
            )
    }

    /// Writes the ready answers at the front in one go; whether there were any.
    async fn write_ready(&mut self) -> Result<bool, End> {
        let mut chunks = Chunks::new();
        // Small answers side by side in one piece.
        let mut joined = BytesMut::new();
        while let Some(Slot::Ready(_)) = self.replies.front() {
            let Some(Slot::Ready(ready)) = self.replies.pop_front() else {
                break;
            };
            self.ready_bytes = self.ready_bytes.saturating_sub(in_memory(&ready));
            match &ready[..] {
                [Chunk::Bytes(bytes)] if bytes.len() <= JOINED => joined.extend_from_slice(bytes),
                _ => {
                    put_joined(&mut chunks, &mut joined);
                    chunks.extend(ready);
                }
            }
        }
        put_joined(&mut chunks, &mut joined);
        if chunks.is_empty() {
            return Ok(false);
        }
        if !writer::write_now(self.place.stream(), &mut chunks)? {
            // Boxed: an idle connection need not have room for it.
            Box::pin(write(self.place.stream(), chunks, &self.shared.tasks)).await?;
        }
        self.place.touch();
        Ok(true)
    }

    async fn wait(&mut self, stopping: bool) -> Result<(), End> {
        let may_read = !stopping && self.may_execute();
        if !may_read {
            give_back(&mut self.frames);
        }
        tokio::select! {
            biased;
            answer = first_answer(&mut self.replies) => settle(&mut self.replies, answer?),
            read = fill(self.place.stream(), &mut self.frames), if may_read => {
                if read? == 0 {
                    return Err(End::Gone(None));
                }
                self.place.touch();
            }
            () = self.shared.tasks.stopped(), if !stopping => {}
        }
        Ok(())
    }

    /// Waits for bytes to be left, and meanwhile for answers; nothing more is read.
    async fn wait_for_budget(&mut self) -> Result<(), End> {
        tokio::select! {
            biased;
            answer = first_answer(&mut self.replies) => settle(&mut self.replies, answer?),
            () = self.shared.budget.some_left() => {}
            () = self.shared.tasks.stopped() => {}
        }
        Ok(())
    }
}

fn put_joined(chunks: &mut Chunks, joined: &mut BytesMut) {
    if !joined.is_empty() {
        chunks.push(Chunk::Bytes(joined.split().freeze()));
    }
}

/// Writes while the client takes it; once the node stops, for some more seconds only.
async fn write(stream: &TcpStream, mut chunks: Chunks, tasks: &Tasks) -> Result<(), End> {
    let patience = async {
        tasks.stopped().await;
        clock::sleep(LAST_WORDS).await;
    };
    tokio::select! {
        biased;
        written = writer::write(stream, &mut chunks) => Ok(written?),
        () = patience => Err(End::Stopped),
    }
}

/// The answer that the order waits for; never ends when there is none.
async fn first_answer(replies: &mut VecDeque<Slot>) -> Result<Chunks, Close> {
    match replies.front_mut() {
        Some(Slot::Later { answer, .. }) => answer.await,
        Some(Slot::Ready(_)) | None => std::future::pending().await,
    }
}

fn settle(replies: &mut VecDeque<Slot>, answer: Chunks) {
    if let Some(front) = replies.front_mut() {
        *front = Slot::Ready(answer);
    }
}

/// Reads what the socket has; how many bytes, 0 at its end. While it has nothing there is no
/// buffer: readiness comes first, and it may be a false alarm.
async fn fill(stream: &TcpStream, frames: &mut Frames) -> io::Result<usize> {
    poll_fn(|cx| {
        loop {
            let Poll::Ready(ready) = stream.poll_read_ready(cx) else {
                give_back(frames);
                return Poll::Pending;
            };
            ready?;
            if frames.wants_room() {
                frames.move_into(buffers::lend());
            }
            match stream.try_read_buf(&mut frames.space()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return Poll::Ready(read),
            }
        }
    })
    .await
}

fn give_back(frames: &mut Frames) {
    if let Some(buffer) = frames.pack() {
        buffers::take_back(buffer);
    }
}

#[cfg(test)]
#[path = "connection_test.rs"]
mod tests;

/// What an answer holds in memory; slices of files hold nothing.
fn in_memory(chunks: &Chunks) -> usize {
    let held = chunks.iter().map(|chunk| match chunk {
        Chunk::Bytes(bytes) => bytes.len(),
        Chunk::File(_) => 0,
    });
    held.sum()
}
