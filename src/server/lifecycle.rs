//! A broker's life in the cluster: it registers, is heard of, is unfenced, leaves in order.

use std::time::{Duration, Instant};

use tracing::{error, info, warn};

use super::places::Failed;
use crate::api::controller::ActiveController;
use crate::base::{DirectoryId, NodeId, Uuid};
use crate::config::BrokerConfig;
use crate::controller;
use crate::controller::ask::{Heartbeat, RegisterBroker, RegisterController};
use crate::metadata::record::Endpoint;
use crate::os::clock;
use crate::os::tasks::Tasks;
use crate::protocol::error::{ErrorCode, Refusal};

/// How long the controller is given to let this broker go.
const LEAVE: Duration = Duration::from_secs(5);

/// This process as the cluster is to know it.
pub(super) struct Presence {
    pub(super) node: NodeId,
    pub(super) cluster_id: String,
    pub(super) incarnation: Uuid,
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) controller_endpoints: Vec<Endpoint>,
    pub(super) directories: Vec<DirectoryId>,
    pub(super) rack: Option<String>,
    /// As noted at the last clean stop.
    pub(super) previous_epoch: Option<i64>,
    pub(super) controller: ActiveController,
}

impl Presence {
    /// Registers the controller and the broker of this process; the broker's epoch.
    pub(super) async fn register(&mut self) -> Result<i64, Refusal> {
        self.controller.found().await;
        self.controller
            .ask(RegisterController {
                controller_id: self.node,
                incarnation_id: self.incarnation,
                zk_migration_ready: false,
                endpoints: self.controller_endpoints.clone(),
                features: controller::features::supported(),
            })
            .await?;
        self.controller
            .ask(RegisterBroker {
                cluster_id: self.cluster_id.clone(),
                broker_id: self.node,
                incarnation_id: self.incarnation,
                endpoints: self.endpoints.clone(),
                features: controller::features::supported(),
                rack: self.rack.clone(),
                is_migrating_zk_broker: false,
                directories: self.directories.clone(),
                previous_broker_epoch: self.previous_epoch.unwrap_or(-1),
            })
            .await
    }
}

/// A registered broker.
#[derive(Clone)]
pub(super) struct Member {
    pub(super) node: NodeId,
    pub(super) epoch: i64,
    pub(super) controller: ActiveController,
}

impl Member {
    /// Says that the broker has taken in the metadata and may serve.
    pub(super) async fn unfence(&self, metadata_offset: i64) -> Result<(), Refusal> {
        let reply = self
            .controller
            .ask(self.heartbeat(metadata_offset, false))
            .await?;
        if reply.is_fenced {
            let words = "the controller does not let this broker serve yet";
            return Err(Refusal::new(ErrorCode::BrokerNotAvailable, words));
        }
        info!(
            "[BrokerLifecycleManager id={}] The broker has been unfenced. Transitioning from \
             RECOVERY to RUNNING.",
            self.node
        );
        Ok(())
    }

    /// Keeps saying that the broker is alive, until the group stops.
    pub(super) fn keep_alive(
        &self,
        config: &BrokerConfig,
        metadata: tokio::sync::watch::Receiver<crate::quorum::Published>,
        mut failed: Failed,
        tasks: &Tasks,
    ) {
        let interval = super::settings::millis(config.broker_heartbeat_interval_ms.into());
        let mut unsaid = Unsaid {
            since: None,
            patience: super::settings::millis(config.log_dir_failure_timeout_ms),
        };
        let (this, group) = (self.clone(), tasks.clone());
        tasks.spawn("heartbeats", async move {
            loop {
                tokio::select! {
                    biased;
                    () = group.stopped() => return,
                    // Its sender lives as long as the group.
                    Ok(()) = failed.changed() => unsaid.add(clock::now()),
                    () = clock::sleep(interval) => {}
                }
                let offset = metadata.borrow().end_offset - 1;
                let heartbeat = Heartbeat {
                    offline_directories: failed.borrow_and_update().clone(),
                    ..this.heartbeat(offset, false)
                };
                match this.controller.ask(heartbeat).await {
                    Ok(_) => unsaid.since = None,
                    Err(refusal) => warn!(%refusal, "the controller refuses a heartbeat"),
                }
                if unsaid.is_too_long(clock::now()) {
                    error!(
                        "the controller could not be told of a failed log directory within \
                         log.dir.failure.timeout.ms, the broker stops: others must not count on \
                         what it has lost"
                    );
                    group.stop();
                    return;
                }
            }
        });
    }

    /// Leaves in order: leadership moves away first.
    pub(super) async fn leave(&self, metadata_offset: i64) {
        let deadline = clock::now() + LEAVE;
        while clock::now() < deadline {
            match self
                .controller
                .ask(self.heartbeat(metadata_offset, true))
                .await
            {
                Ok(reply) if reply.should_shut_down => return,
                Ok(_) => clock::sleep(Duration::from_millis(20)).await,
                Err(refusal) => {
                    warn!(%refusal, "the controller does not let this broker go in order");
                    return;
                }
            }
        }
        warn!("the controller has not let this broker go, it goes all the same");
    }

    fn heartbeat(&self, metadata_offset: i64, want_shut_down: bool) -> Heartbeat {
        Heartbeat {
            broker_id: self.node,
            broker_epoch: self.epoch,
            metadata_offset,
            want_fence: false,
            want_shut_down,
            offline_directories: Vec::new(),
        }
    }
}

/// Failed directories that the controller has not heard of (BrokerLifecycleManager's
/// OfflineDirEvent).
struct Unsaid {
    since: Option<Instant>,
    patience: Duration,
}

impl Unsaid {
    fn add(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    fn is_too_long(&self, now: Instant) -> bool {
        self.since
            .is_some_and(|since| now.duration_since(since) >= self.patience)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_failed_directory_may_be_unsaid_for_its_time_and_no_longer() {
        let start = clock::now();
        let at = |secs| start + Duration::from_secs(secs);
        let mut unsaid = Unsaid {
            since: None,
            patience: Duration::from_secs(30),
        };
        assert!(!unsaid.is_too_long(at(99)));
        unsaid.add(at(10));
        // Another one that fails meanwhile gives the first no more time.
        unsaid.add(at(30));
        assert!(!unsaid.is_too_long(at(39)));
        assert!(unsaid.is_too_long(at(40)));
        unsaid.since = None;
        assert!(!unsaid.is_too_long(at(99)));
    }
}
