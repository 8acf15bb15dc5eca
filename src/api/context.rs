//! What a handler may touch.

use std::net::IpAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use kafka_protocol::protocol::StrBytes;
use tokio::sync::watch;

use crate::base::NodeId;
use crate::config::options::Options;
use crate::controller::Controller;
use crate::coordinator::router::Router;
use crate::machine::ask::Ask;
use crate::metadata::image::Image;
use crate::metadata::view::Node;
use crate::protocol::error::Refusal;
use crate::quorum::{Published, Quorum};
use crate::replica::manager::Manager;
use crate::security::session::Session;

use super::controller::ActiveController;
use super::fetch::session::Sessions;
use super::producers::ProducerIds;
use crate::os::tasks::Tasks;

/// How long an answer waits for this broker to follow what it says.
const FOLLOW: Duration = Duration::from_secs(30);

/// The parts of a running broker, the same for all requests.
pub(crate) struct Parts {
    pub(crate) node_id: NodeId,
    pub(crate) cluster_id: String,
    pub(crate) options: Arc<Options>,
    /// `advertised.listeners` is not set: clients are told the address they reached.
    pub(crate) advertises_reached_address: bool,
    pub(crate) metadata: watch::Receiver<Published>,
    pub(crate) controller: ActiveController,
    /// The node alone ends it.
    pub(crate) quorum: Weak<Quorum>,
    /// How far the quorum has committed.
    pub(crate) committed: watch::Receiver<i64>,
    /// Told when the node stops: nobody waits any longer.
    pub(crate) stopping: Tasks,
    pub(crate) replicas: Arc<Manager>,
    pub(crate) groups: Arc<Router>,
    pub(crate) producer_ids: ProducerIds,
    pub(crate) fetch_sessions: Sessions,
}

/// Where a broker is, as the asking client is told.
pub(crate) struct Address {
    pub(crate) id: NodeId,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) rack: Option<String>,
    pub(crate) fenced: bool,
}

/// One request's surroundings: who asks, in which version, against which state of the cluster.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) parts: Arc<Parts>,
    pub(crate) session: Arc<Session>,
    pub(crate) version: i16,
    pub(crate) client_id: Option<StrBytes>,
    /// The cluster as of the request's start; a handler uses only this.
    pub(crate) metadata: Published,
}

impl Context {
    /// The cluster as of the request's start.
    pub(crate) fn image(&self) -> &Image {
        &self.metadata.image
    }

    /// The alive brokers on this session's listener.
    pub(crate) fn alive_addresses(&self) -> Vec<Address> {
        let listener = &self.session.listener;
        self.image()
            .alive_nodes(listener)
            .map(|node| self.address(&node))
            .collect()
    }

    /// Those of these nodes that are alive, on this session's listener.
    pub(crate) fn addresses_of(&self, nodes: &[NodeId]) -> Vec<Address> {
        if nodes.is_empty() {
            return Vec::new();
        }
        let mut addresses = self.alive_addresses();
        addresses.retain(|address| nodes.contains(&address.id));
        addresses
    }

    /// All registered brokers on this session's listener, the fenced ones too.
    pub(crate) fn all_addresses(&self) -> Vec<Address> {
        let listener = &self.session.listener;
        self.image()
            .all_nodes(listener)
            .map(|node| self.address(&node))
            .collect()
    }

    /// The registered controllers on this session's listener, which is one of controllers.
    pub(crate) fn controller_addresses(&self) -> Vec<Address> {
        let listener = &*self.session.listener;
        let controllers = self.image().controllers.sorted().into_iter();
        let addresses = controllers.filter_map(|controller| {
            let endpoint = controller.endpoints.iter().find(|it| it.name == listener)?;
            Some(Address {
                id: controller.id,
                host: endpoint.host.clone(),
                port: endpoint.port,
                rack: None,
                fenced: false,
            })
        });
        addresses.collect()
    }

    /// The controller that decides now, -1 while there is none.
    pub(crate) fn active_controller(&self) -> i32 {
        let quorum = self.parts.quorum.upgrade();
        let leader = quorum.and_then(|quorum| quorum.leadership().borrow().leader);
        leader.map_or(-1, |id| id.0)
    }

    /// Where a node is. Without `advertised.listeners` this node is where the client reached it.
    fn address(&self, node: &Node<'_>) -> Address {
        let reached = self.parts.advertises_reached_address && node.id == self.parts.node_id;
        let local = self.session.local;
        Address {
            id: node.id,
            host: if reached {
                canonical(local.ip())
            } else {
                node.host.to_owned()
            },
            port: if reached { local.port() } else { node.port },
            rack: node.rack.map(str::to_owned),
            fenced: node.fenced,
        }
    }

    /// Asks the controller, and waits until its answer is committed and this broker follows it,
    /// so that the client's next request finds what it asked for.
    pub(crate) async fn ask<T, A>(&self, request: A) -> Result<T, Refusal>
    where
        A: Ask<Controller, Reply = Result<T, Refusal>>,
    {
        let reply = self.parts.controller.ask(request).await?;
        let end = *self.parts.committed.borrow();
        let mut metadata = self.parts.metadata.clone();
        let followed = metadata.wait_for(|published| published.end_offset >= end);
        // A broker that falls behind answers all the same: what was asked for is done.
        let _ = tokio::time::timeout(FOLLOW, followed).await;
        Ok(reply)
    }
}

/// An IPv4 address that came in through an IPv6 socket is told as IPv4.
pub(super) fn canonical(ip: IpAddr) -> String {
    ip.to_canonical().to_string()
}
