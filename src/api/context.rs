//! What a handler may touch.

use std::net::IpAddr;
use std::sync::Arc;

use kafka_protocol::protocol::StrBytes;

use crate::base::NodeId;
use crate::config::BrokerConfig;
use crate::controller::ask::Ask;
use crate::metadata::image::Image;
use crate::metadata::view::Node;
use crate::protocol::error::{ErrorCode, Refusal};
use crate::quorum::Published;
use crate::replica::manager::Manager;
use crate::security::session::Session;

use super::producers::ProducerIds;

/// The parts of a running broker, the same for all requests.
pub(crate) struct Parts {
    pub(crate) node_id: NodeId,
    pub(crate) cluster_id: String,
    pub(crate) options: Options,
    /// `advertised.listeners` is not set: clients are told the address they reached.
    pub(crate) advertises_reached_address: bool,
    pub(crate) metadata: tokio::sync::watch::Receiver<Published>,
    pub(crate) controller: crate::controller::Handle,
    pub(crate) replicas: Arc<Manager>,
    pub(crate) producer_ids: ProducerIds,
}

/// The node's options: what its file says with what was set on it while it runs.
pub(crate) struct Options {
    file: BrokerConfig,
}

impl Options {
    /// The options of a file, with nothing set yet.
    pub(crate) fn new(file: BrokerConfig) -> Self {
        Self { file }
    }

    /// The options as the file has them; for those that do not change while running.
    pub(crate) fn file(&self) -> &BrokerConfig {
        &self.file
    }
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
        self.image().alive_nodes(listener).map(|node| self.address(&node)).collect()
    }

    /// All registered brokers on this session's listener, the fenced ones too.
    pub(crate) fn all_addresses(&self) -> Vec<Address> {
        let listener = &self.session.listener;
        self.image().all_nodes(listener).map(|node| self.address(&node)).collect()
    }

    /// Where a node is. Without `advertised.listeners` this node is where the client reached it.
    fn address(&self, node: &Node<'_>) -> Address {
        let reached = self.parts.advertises_reached_address && node.id == self.parts.node_id;
        let local = self.session.local;
        Address {
            id: node.id,
            host: if reached { canonical(local.ip()) } else { node.host.to_owned() },
            port: if reached { local.port() } else { node.port },
            rack: node.rack.map(str::to_owned),
            fenced: node.fenced,
        }
    }

    /// Asks the controller, and waits until its answer is committed.
    pub(crate) async fn ask<A: Ask>(&self, request: A) -> Result<A::Reply, Refusal> {
        let answer = self.parts.controller.ask(request.into_event()).await;
        let answer = answer.map_err(|_| Refusal::bare(ErrorCode::NotController))?;
        A::reply(answer).unwrap_or(Err(Refusal::bare(ErrorCode::UnknownServerError)))
    }
}

/// An IPv4 address that came in through an IPv6 socket is told as IPv4.
fn canonical(ip: IpAddr) -> String {
    ip.to_canonical().to_string()
}
