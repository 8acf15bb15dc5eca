//! One connection, one task: frames are read while earlier answers wait, and answers leave in the
//! order of their requests.
//!
//! The task owns the socket, a read buffer while bytes of a frame are in it, and the queue of
//! replies. An idle connection holds none of the buffers.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::ready;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tracing::{debug, warn};

use super::{Close, Reply, Service, writer};
use crate::os::tasks::Tasks;
use crate::protocol::chunk::Chunks;
use crate::protocol::frame::Frames;
use crate::security::session::Session;

/// The room for the first read of a burst.
const FIRST_READ: usize = 16 << 10;

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

/// Serves a connection until it ends, and says in one log line why we closed it, if we did.
pub(super) async fn run<S: Service>(
    stream: TcpStream,
    session: Arc<Session>,
    service: Arc<S>,
    replies_max: usize,
    tasks: Tasks,
) {
    let mut connection = Connection {
        stream,
        session,
        service,
        replies_max,
        frames: Frames::default(),
        replies: VecDeque::new(),
    };
    let end = connection.serve(&tasks).await;
    report(&connection.session, &end);
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
    stream: TcpStream,
    session: Arc<Session>,
    service: Arc<S>,
    replies_max: usize,
    frames: Frames,
    replies: VecDeque<Slot>,
}

impl<S: Service> Connection<S> {
    async fn serve(&mut self, tasks: &Tasks) -> End {
        loop {
            match self.turn(tasks).await {
                Ok(()) => {}
                Err(end) => return end,
            }
        }
    }

    /// Executes what has arrived, writes what is ready, then waits for one more thing to happen.
    async fn turn(&mut self, tasks: &Tasks) -> Result<(), End> {
        let stopping = tasks.is_stopping();
        while !stopping && self.may_execute() {
            let Some(frame) = self.next_frame()? else {
                break;
            };
            self.execute(frame).await?;
        }
        if self.write_ready().await? {
            return Ok(());
        }
        if stopping && self.replies.is_empty() {
            return Err(End::Stopped);
        }
        self.wait(tasks, stopping).await
    }

    fn next_frame(&mut self) -> Result<Option<Bytes>, End> {
        let service = &self.service;
        self.frames
            .next(|key| service.frame_limit(key))
            .map_err(|bad| Close::new(bad.to_string()).into())
    }

    async fn execute(&mut self, frame: Bytes) -> Result<(), Close> {
        match self.service.call(&self.session, frame).await? {
            Reply::Now(chunks) => self.replies.push_back(Slot::Ready(chunks)),
            Reply::Later { answer, overlaps } => {
                self.replies.push_back(Slot::Later { answer, overlaps });
            }
            Reply::Silent => {}
        }
        Ok(())
    }

    /// Whether the next request may be executed while the answers before it are under way.
    fn may_execute(&self) -> bool {
        self.replies.len() < self.replies_max
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
        while let Some(Slot::Ready(_)) = self.replies.front() {
            let Some(Slot::Ready(ready)) = self.replies.pop_front() else {
                break;
            };
            if chunks.is_empty() {
                chunks = ready;
            } else {
                chunks.extend(ready);
            }
        }
        if chunks.is_empty() {
            return Ok(false);
        }
        writer::write(&self.stream, &mut chunks).await?;
        Ok(true)
    }

    async fn wait(&mut self, tasks: &Tasks, stopping: bool) -> Result<(), End> {
        let may_read = !stopping && self.may_execute();
        if self.frames.is_empty() {
            self.frames.release();
            if self.replies.is_empty() {
                self.replies.shrink_to(0);
            }
        }
        tokio::select! {
            biased;
            answer = first_answer(&mut self.replies) => {
                let answer = answer?;
                if let Some(front) = self.replies.front_mut() {
                    *front = Slot::Ready(answer);
                }
            }
            read = fill(&mut self.stream, &mut self.frames), if may_read => {
                if read? == 0 {
                    return Err(End::Gone(None));
                }
            }
            () = tasks.stopped(), if !stopping => {}
        }
        Ok(())
    }
}

/// The answer that the order waits for; never ends when there is none.
async fn first_answer(replies: &mut VecDeque<Slot>) -> Result<Chunks, Close> {
    match replies.front_mut() {
        Some(Slot::Later { answer, .. }) => answer.await,
        Some(Slot::Ready(_)) | None => std::future::pending().await,
    }
}

/// Reads what the socket has; how many bytes, 0 at its end. While it has nothing there is no
/// buffer: readiness comes first, and it may be a false alarm.
async fn fill(stream: &mut TcpStream, frames: &mut Frames) -> io::Result<usize> {
    poll_fn(|cx| {
        ready!(stream.poll_read_ready(cx))?;
        let read = pin!(stream.read_buf(frames.space(FIRST_READ))).poll(cx);
        if read.is_pending() {
            frames.release();
        }
        read
    })
    .await
}
