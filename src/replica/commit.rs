//! Waiting until what was appended is committed: the second half of a Produce with acks=all.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::Notify;

use super::partition::Partition;
use crate::base::LeaderEpoch;
use crate::os::clock;
use crate::protocol::error::ErrorCode;

/// Waits until every record below `end` is as durable as the topic's options ask for, and committed
/// under `epoch`, however long that takes.
pub(crate) async fn reached(
    partition: &Arc<Partition>,
    end: i64,
    epoch: LeaderEpoch,
) -> Result<(), ErrorCode> {
    partition.made_durable(end).await?;
    let waker = Arc::new(Notify::new());
    let _place = partition.waiting().register(&waker);
    loop {
        partition.check_leader(epoch.0)?;
        if partition.high_watermark() >= end {
            return Ok(());
        }
        waker.notified().await;
    }
}

/// Waits until every record below `end` is as durable as the topic's options ask for, and committed
/// under `epoch`, at most until `deadline`.
pub(crate) async fn committed(
    partition: Arc<Partition>,
    end: i64,
    epoch: LeaderEpoch,
    deadline: Instant,
) -> Result<(), ErrorCode> {
    partition.made_durable(end).await?;
    let waker = Arc::new(Notify::new());
    let _place = partition.waiting().register(&waker);
    loop {
        let role = partition.check_leader(-1)?;
        if role.leader_epoch != epoch {
            return Err(ErrorCode::NotLeaderOrFollower);
        }
        if partition.high_watermark() >= end {
            return Ok(());
        }
        if !role.replicas.suffice() {
            return Err(ErrorCode::NotEnoughReplicasAfterAppend);
        }
        tokio::select! {
            biased;
            () = waker.notified() => {}
            () = clock::sleep_until(deadline) => return Err(ErrorCode::RequestTimedOut),
        }
    }
}
