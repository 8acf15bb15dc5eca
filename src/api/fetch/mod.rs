//! Fetch: versions 4-18.
//!
//! - Waits until min bytes are there or max wait is over; the first partition with records gives
//!   at least one whole batch. A response holds slices of the log, never bytes past what its
//!   reader may see.
//! - Order of the answer: as asked for, or as the session remembers it; what is unknown stands last.
//! - v5 log start offset · v7 sessions (KIP-227) · v9 leader epochs (KIP-320) · v11 racks (KIP-392)
//!   · v12 diverging epochs (KIP-595) · v13 topic ids (KIP-516) · v15 replica state (KIP-903) · v16
//!   the new leader (KIP-951) · v17 directory ids (KIP-853) · v18 a follower's high watermark
//!   (KIP-1166)

mod answer;
mod plan;
mod read;
pub(crate) mod session;

use std::sync::Arc;
use std::time::{Duration, Instant};

use kafka_protocol::messages::{FetchRequest, FetchResponse};
use tokio::sync::Notify;

use super::context::Context;
use super::serve::{Refuse, Reply};
use crate::os::clock;
use crate::protocol::error::{ErrorCode, Refusal};
use crate::protocol::fetch::SlicedFetch;
use crate::replica::partition::Isolation;
use plan::{Limits, Wanted};
use read::Outcome;
use session::{Opened, Turn};

pub(super) fn carries_topic_ids(version: i16) -> bool {
    version >= 13
}

fn carries_log_start(version: i16) -> bool {
    version >= 5
}

fn carries_replica_state(version: i16) -> bool {
    version >= 15
}

fn names_new_leader(version: i16) -> bool {
    version >= 16
}

fn knows_storage_error(version: i16) -> bool {
    version >= 6
}

/// The replica id of a consumer.
const CONSUMER: i32 = -1;
/// The replica id of a consumer that reads to the log's end (ReplicaVerificationTool).
const DEBUGGER: i32 = -2;

impl Refuse for FetchRequest {
    type Response = SlicedFetch;

    fn refuse(&self, version: i16, refusal: &Refusal) -> SlicedFetch {
        let mut refused = if carries_topic_ids(version) {
            refused(refusal.code)
        } else {
            answer::every_partition(self, refusal.code)
        };
        refused.response.session_id = self.session_id;
        refused
    }
}

/// An answer without topics.
fn refused(code: ErrorCode) -> SlicedFetch {
    SlicedFetch {
        response: FetchResponse::default().with_error_code(code.code()),
        records: Vec::new(),
    }
}

/// Who fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    Consumer(Isolation),
    Debugger,
    Replica(i32),
}

impl Reader {
    fn of(request: &FetchRequest, version: i16) -> Result<Self, Refusal> {
        let id = if carries_replica_state(version) {
            request.replica_state.replica_id.0
        } else {
            request.replica_id.0
        };
        // Kafka reads the level before it asks who fetches.
        let isolation = match request.isolation_level {
            0 => Isolation::Committed,
            1 => Isolation::Stable,
            _ => return Err(ErrorCode::UnknownServerError.into()),
        };
        Ok(match id {
            DEBUGGER => Self::Debugger,
            id if id <= CONSUMER => Self::Consumer(isolation),
            id => Self::Replica(id),
        })
    }

    /// How far this reader may see.
    pub(super) fn isolation(self) -> Isolation {
        match self {
            Self::Consumer(isolation) => isolation,
            Self::Debugger | Self::Replica(_) => Isolation::LogEnd,
        }
    }

    fn is_follower(self) -> bool {
        matches!(self, Self::Replica(_))
    }
}

/// One fetch under way.
struct Fetch {
    ctx: Context,
    reader: Reader,
    limits: Limits,
    max_wait_ms: i32,
    wanted: Vec<Wanted>,
    turn: Turn,
}

/// Gives records.
pub(super) async fn fetch(
    ctx: Context,
    request: Arc<FetchRequest>,
) -> Result<Reply<SlicedFetch>, Refusal> {
    let by_id = carries_topic_ids(ctx.version);
    let asked = plan::asked(&ctx, &request);
    let sessions = &ctx.parts.fetch_sessions;
    let opened = sessions.open(&request, by_id, asked, ctx.image(), clock::now());
    let Opened { asked, turn } = match opened {
        Ok(opened) => opened,
        Err(code) => return Ok(Reply::Now(refused(code))),
    };
    let reader = Reader::of(&request, ctx.version)?;
    let options = ctx.parts.options.current();
    let limits = Limits::of(&request, options.config.fetch_max_bytes);
    let fetch = Fetch {
        wanted: plan::wanted(&ctx, asked),
        ctx,
        reader,
        limits,
        max_wait_ms: request.max_wait_ms,
        turn,
    };
    let outcomes = read::all(&fetch.wanted, reader, limits).await;
    if fetch.is_enough(&outcomes) {
        return Ok(Reply::Now(fetch.answer(outcomes)));
    }
    let in_order = fetch.turn.is_in_order();
    let waiting = Box::pin(fetch.wait());
    Ok(if in_order {
        Reply::InTurn(waiting)
    } else {
        Reply::Later(waiting)
    })
}

impl Fetch {
    /// Looks again at every change of a wanted partition, until there is enough or time is over.
    async fn wait(self) -> SlicedFetch {
        let deadline = self.deadline();
        let waker = Arc::new(Notify::new());
        let partitions = self.wanted.iter();
        let partitions = partitions.filter_map(|one| one.partition.as_ref().ok());
        let _places: Vec<_> = partitions
            .map(|one| one.waiting().register(&waker))
            .collect();
        let mut late = false;
        loop {
            // Registered first: what came in between is seen by this look.
            let outcomes = read::all(&self.wanted, self.reader, self.limits).await;
            if late || self.is_enough(&outcomes) {
                return self.answer(outcomes);
            }
            tokio::select! {
                biased;
                () = waker.notified() => {}
                () = clock::sleep_until(deadline) => late = true,
                () = self.ctx.parts.stopping.stopped() => late = true,
            }
        }
    }

    fn deadline(&self) -> Instant {
        let wait = u64::try_from(self.max_wait_ms).unwrap_or(0);
        clock::now() + Duration::from_millis(wait)
    }

    /// Whether the answer should go out now (ReplicaManager.fetchMessages).
    fn is_enough(&self, outcomes: &[Outcome]) -> bool {
        let bytes: usize = outcomes.iter().map(Outcome::len).sum();
        self.max_wait_ms <= 0
            || usize::try_from(self.limits.min_bytes).is_ok_and(|least| bytes >= least)
            || self.limits.min_bytes < 0
            || self.wanted.iter().all(Wanted::is_unknown)
            || outcomes.iter().any(|outcome| outcome.must_answer)
    }

    fn answer(self, outcomes: Vec<Outcome>) -> SlicedFetch {
        let is_follower = self.reader.is_follower();
        answer::answer(&self.ctx, self.wanted, outcomes, &self.turn, is_follower)
    }
}
