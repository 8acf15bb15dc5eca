//! A new image of the cluster, told to each part in order: options, partitions, coordinators, then the
//! handlers, so that a handler never sees a partition that is not there yet.

use std::sync::Arc;

use tokio::sync::watch;
use tracing::{error, warn};

use crate::base::NodeId;
use crate::config::broker::Given;
use crate::config::describe::Layers;
use crate::config::options::{Effective, Options};
use crate::coordinator::router::Router;
use crate::metadata::changes::Changes;
use crate::metadata::image::Image;
use crate::metadata::image::configs::{Resource, ResourceType};
use crate::os::tasks::{self, Tasks};
use crate::quorum::{Follower, Published, Update};
use crate::replica::manager::Manager;

/// Who is told.
pub(super) struct Publisher {
    pub(super) node: NodeId,
    pub(super) options: Arc<Options>,
    pub(super) replicas: Arc<Manager>,
    pub(super) groups: Arc<Router>,
    pub(super) handlers: watch::Sender<Published>,
}

impl Publisher {
    /// Tells of every change after `from` until the quorum or the group stops.
    pub(super) fn run(self, mut follower: Follower, from: i64, tasks: &Tasks) {
        let group = tasks.clone();
        tasks.spawn("publisher", async move {
            loop {
                let update = tokio::select! {
                    biased;
                    () = group.stopped() => return,
                    update = follower.next() => update,
                };
                let Some(Update { published, changes }) = update else {
                    return;
                };
                if published.end_offset > from {
                    self.publish(published, changes).await;
                }
            }
        });
    }

    async fn publish(&self, published: Published, changes: Changes) {
        if changes
            .configs
            .iter()
            .any(|resource| resource.kind == ResourceType::Broker)
        {
            self.apply_options(&published.image);
        }
        let touches_partitions = !changes.partitions.is_empty()
            || !changes.removed_topics.is_empty()
            || !changes.configs.is_empty();
        if touches_partitions {
            let (replicas, image) = (self.replicas.clone(), published.image.clone());
            let work = tasks::blocking(move || {
                replicas.apply(&image, &changes);
                changes
            });
            match work.await {
                Ok(changes) => self.groups.apply(&published.image, &changes),
                Err(_) => error!("a change of the metadata could not be applied; a defect"),
            }
        }
        self.handlers.send_replace(published);
    }

    /// Puts the options in force that were set on this node and on all brokers.
    pub(super) fn apply_options(&self, image: &Image) {
        let own = |resource: &Resource| {
            Given(
                image
                    .configs
                    .of(resource)
                    .map(|set| (**set).clone())
                    .unwrap_or_default(),
            )
        };
        let layers = Layers {
            file: self.options.file().given.clone(),
            cluster: own(&Resource::all_brokers()),
            node: own(&Resource::new(
                ResourceType::Broker,
                self.node.0.to_string(),
            )),
        };
        match layers.readable_config() {
            Ok((config, unreadable)) => {
                for name in unreadable {
                    warn!(
                        name,
                        "an option set on the running cluster cannot be read here"
                    );
                }
                self.options.replace(Effective { layers, config });
            }
            Err(error) => warn!(%error, "the options set on the running cluster are left out"),
        }
    }
}
