//! A node: controller and broker in one process, started in order and stopped in reverse.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tracing::{error, info, warn};

use super::lifecycle::{Member, Presence};
use super::metrics::{self, Metrics};
use super::publish::Publisher;
use super::{controller, dirs, places, settings};
use crate::api::Table;
use crate::api::context::Parts;
use crate::api::fetch::session::Sessions;
use crate::base::NodeId;
use crate::config::options::Options;
use crate::config::{BrokerConfig, Endpoint as Address, SecurityProtocol};
use crate::coordinator::group::View;
use crate::coordinator::router::Router;
use crate::log::dir::Held;
use crate::metadata::bootstrap;
use crate::metadata::image::Image;
use crate::metadata::record::Endpoint;
use crate::net::budget::Budget;
use crate::net::connections::Connections;
use crate::net::listener::{Hall, Listener};
use crate::os::disk::Disk;
use crate::os::net::{self, Sockets};
use crate::os::random;
use crate::os::tasks::{self, Crew, Tasks};
use crate::protocol::error::Refusal;
use crate::quorum::{self, Published, Quorum};
use crate::replica::manager::Manager;
use crate::security::session::ListenerKind;

/// The answers that may wait on one connection; beyond them its requests stay unread.
const REPLIES: usize = 64;

/// Why a node does not start.
#[derive(Debug, Error)]
pub(crate) enum Fault {
    #[error("{0}")]
    Option(String),
    #[error(transparent)]
    Directory(#[from] dirs::Fault),
    #[error(transparent)]
    Log(#[from] crate::log::fault::Fault),
    #[error(transparent)]
    Quorum(#[from] quorum::Fault),
    #[error("Socket server failed to bind to {host}:{port}: {source}")]
    Bind {
        host: String,
        port: u16,
        source: std::io::Error,
    },
    #[error("the threads of connections do not start: {0}")]
    Threads(std::io::Error),
    #[error("the controller refuses this broker: {0}")]
    Refused(#[from] Refusal),
}

/// A running node.
pub(crate) struct Node {
    config: BrokerConfig,
    /// Listeners and connections.
    front: Tasks,
    /// What serves them.
    back: Tasks,
    quorum: Arc<Quorum>,
    replicas: Arc<Manager>,
    member: Member,
    metadata: watch::Receiver<Published>,
    /// The directory of the metadata log, where it is none of the log directories.
    held: Option<Held>,
}

impl Node {
    /// Starts a node; when this returns it serves.
    /// Metrics are told at an address of their own, if there is one.
    pub(crate) async fn start(
        config: BrokerConfig,
        metrics_at: Option<SocketAddr>,
    ) -> Result<Self, Fault> {
        check_roles(&config)?;
        check_authorizer(&config)?;
        let node = NodeId(config.node_id);
        let dirs::Opened {
            dirs,
            cluster_id,
            metadata_id,
            metadata: held,
        } = dirs::open(&config)?;
        let listeners = bind(&config).await?;
        let metrics_listener = bind_metrics(metrics_at).await?;
        let (front, back) = (Tasks::new(), Tasks::new());
        let crew = Crew::start("connections").map_err(Fault::Threads)?;

        let metadata_dir = dirs::metadata_dir(&config);
        let formatted = quorum::formatted(Disk, &metadata_dir)?;
        let formatted = formatted.unwrap_or_else(bootstrap::default_features);
        let settings = settings::quorum(&config, &cluster_id, metadata_id, metadata_dir);
        let quorum = Arc::new(Quorum::start(settings, Disk, &back, None).await?);
        let follower = quorum.follow();
        let options = Arc::new(Options::new(config.clone()));
        let rules = Arc::new(settings::controller(&config, &cluster_id, &options));
        let controller = controller::run(&quorum, node, rules, formatted, &back);

        let mut presence = Presence {
            node,
            cluster_id: cluster_id.clone(),
            incarnation: random::uuid(),
            endpoints: advertised(&config, &listeners),
            controller_endpoints: controllers(&config, &listeners),
            directories: dirs.dirs().iter().map(|dir| dir.id()).collect(),
            rack: config.broker_rack.clone(),
            previous_epoch: dirs.dirs().iter().find_map(|dir| dir.clean_broker_epoch()),
            controller: controller.clone(),
        };
        let epoch = presence.register().await?;
        let member = Member {
            node,
            epoch,
            controller: controller.clone(),
        };

        let image = caught_up(&quorum).await;
        warn_of_acls(&image.image);
        let replicas = Arc::new(Manager::new(node, options.clone(), dirs));
        let (handlers, metadata) = watch::channel(image.clone());
        let known = metadata.clone();
        let groups = Arc::new(Router::new(
            node,
            options.clone(),
            replicas.clone(),
            Arc::new(move || {
                let known = known.borrow();
                View {
                    image: known.image.clone(),
                    version: known.end_offset - 1,
                }
            }),
            back.clone(),
        ));
        let publisher = Publisher {
            node,
            options: options.clone(),
            replicas: replicas.clone(),
            groups: groups.clone(),
            handlers,
        };
        publisher.apply_options(&image.image);
        let (loading, known) = (replicas.clone(), image.image.clone());
        if tasks::blocking(move || loading.load(&known)).await.is_err() {
            return Err(Fault::Option(
                "the logs could not be opened; this is a defect".into(),
            ));
        }
        if !replicas.can_go_on() {
            return Err(Fault::Option(
                "a log directory failed that is needed".into(),
            ));
        }
        replicas.run_background(&back);
        groups.begin(&image.image);
        publisher.run(follower, image.end_offset, &back);
        member.unfence(image.end_offset - 1).await?;
        let serving = caught_up(&quorum).await.end_offset;
        let mut follows = metadata.clone();
        // The publisher runs as long as the node does.
        let _ = follows
            .wait_for(|published| published.end_offset >= serving)
            .await;
        let failed = places::tell(&member, &replicas, &back);
        member.keep_alive(&config, metadata.clone(), failed, &back);

        let parts = Arc::new(Parts {
            node_id: node,
            cluster_id,
            advertises_reached_address: config.advertised_listeners.is_none(),
            options: options.clone(),
            metadata: metadata.clone(),
            controller,
            quorum: Arc::downgrade(&quorum),
            committed: quorum.committed(),
            stopping: front.clone(),
            replicas: replicas.clone(),
            groups,
            producer_ids: Default::default(),
            fetch_sessions: Sessions::new(config.max_incremental_fetch_session_cache_slots),
        });
        let table = Arc::new(Table::new(parts));
        let (brokers, controllers) = halls(&config, &options, &crew, &front);
        for (listener, _) in listeners {
            let hall = match listener.kind() {
                ListenerKind::Broker => brokers.clone(),
                ListenerKind::Controller => controllers.clone(),
            };
            listener.serve(table.clone(), hall, &front);
        }
        if let Some(listener) = metrics_listener {
            Metrics::new(replicas.clone()).serve(listener, &front);
        }
        info!("[KafkaRaftServer nodeId={node}] Kafka Server started");
        Ok(Self {
            config,
            front,
            back,
            quorum,
            replicas,
            member,
            metadata,
            held,
        })
    }

    /// Ends when something inside cannot go on.
    pub(crate) async fn broken(&self) {
        let mut fault = self.quorum.fault();
        tokio::select! {
            found = fault.wait_for(Option::is_some) => {
                if let Ok(found) = found
                    && let Some(fault) = &*found
                {
                    error!(
                        %fault,
                        "the metadata log fails, so the node stops, as nothing can be decided \
                         without it; it may start again once its directory takes what is written"
                    );
                }
            }
            () = self.back.stopped() => error!("a part of the node has ended, the node stops"),
        }
    }

    /// Stops in order: no new connections, answers in flight go out, leadership is given up, logs
    /// are closed.
    pub(crate) async fn stop(self) {
        info!("the node stops");
        self.front.stop_and_wait().await;
        let offset = self.metadata.borrow().end_offset - 1;
        if !self.back.is_stopping() {
            self.member.leave(offset).await;
        }
        self.back.stop_and_wait().await;
        let (replicas, epoch) = (self.replicas.clone(), self.member.epoch);
        if tasks::blocking(move || replicas.close(epoch))
            .await
            .is_err()
        {
            error!("the logs could not be closed in order");
        }
        match Arc::try_unwrap(self.quorum) {
            Ok(quorum) => {
                if let Err(fault) = quorum.stop().await {
                    error!(%fault, "the metadata log could not be closed in order");
                }
            }
            Err(_) => error!("a part of the node still uses the metadata log"),
        }
        drop(self.held);
        info!(
            "[BrokerServer id={}] shut down completed",
            self.config.node_id
        );
    }
}

/// What this release cannot be.
fn check_roles(config: &BrokerConfig) -> Result<(), Fault> {
    if !(config.roles.broker && config.roles.controller) {
        return Err(Fault::Option(
            "process.roles must be broker,controller: this release runs single nodes only".into(),
        ));
    }
    let others = config.voters.iter().any(|voter| voter.id != config.node_id);
    if others {
        return Err(Fault::Option(
            "controller.quorum.voters names other nodes: this release runs single nodes only"
                .into(),
        ));
    }
    let endpoints = &config.endpoints;
    for listener in endpoints.listeners.iter().chain(&endpoints.controllers) {
        let protocol = endpoints.protocol(&listener.listener);
        if protocol != Some(SecurityProtocol::Plaintext) {
            return Err(Fault::Option(format!(
                "listener {} asks for {}: this release serves PLAINTEXT only",
                listener.listener,
                protocol.map_or("an unknown protocol", SecurityProtocol::name),
            )));
        }
    }
    Ok(())
}

/// Nothing is enforced here: an authorizer is accepted only where it would let everybody in. Every
/// client of a PLAINTEXT listener is the user ANONYMOUS.
fn check_authorizer(config: &BrokerConfig) -> Result<(), Fault> {
    let is_set = !config.authorizer_class_name.trim().is_empty();
    let is_super = config
        .super_users()
        .iter()
        .any(|user| user == "User:ANONYMOUS");
    if is_set && !is_super && !config.allow_everyone_if_no_acl_found() {
        return Err(Fault::Option(
            "authorizer.class.name is set, and this release enforces no access control: set \
             allow.everyone.if.no.acl.found=true to go on without, or leave the option out"
                .into(),
        ));
    }
    Ok(())
}

/// Entries of an adopted cluster hold nobody back; better told than found out.
fn warn_of_acls(image: &Image) {
    let entries = image.acls.sorted().len();
    if entries > 0 {
        warn!(
            entries,
            "the cluster has access control entries; this release enforces none"
        );
    }
}

/// What the brokers' and the controllers' listeners share; as in Kafka, they are limited apart.
fn halls(
    config: &BrokerConfig,
    options: &Arc<Options>,
    crew: &Arc<Crew>,
    tasks: &Tasks,
) -> (Hall, Hall) {
    let endpoints = &config.endpoints;
    let among_others = endpoints.listeners.len() > 1;
    let hall = |protected| Hall {
        connections: Connections::new(),
        budget: Budget::new(config.queued_max_request_bytes, config.queued_max_requests),
        crew: crew.clone(),
        options: options.clone(),
        protected,
        replies_max: REPLIES,
    };
    let inter_broker = among_others.then(|| endpoints.inter_broker.clone());
    let halls = (hall(inter_broker), hall(None));
    // A negative time is no limit.
    if let Ok(idle_ms) = u64::try_from(config.connections_max_idle_ms) {
        let idle = Duration::from_millis(idle_ms);
        halls.0.connections.close_idle(idle, tasks);
        halls.1.connections.close_idle(idle, tasks);
    }
    halls
}

/// How sockets are set up. Their sizes are the system's unless the options name them: it adapts
/// them to each connection.
fn sockets(config: &BrokerConfig) -> Sockets {
    let named = |name: &str, size: i32| {
        let size = usize::try_from(size).ok().filter(|size| *size > 0);
        size.filter(|_| config.given.contains_key(name))
    };
    Sockets {
        backlog: config.socket_listen_backlog_size,
        send_buffer: named("socket.send.buffer.bytes", config.socket_send_buffer_bytes),
        receive_buffer: named(
            "socket.receive.buffer.bytes",
            config.socket_receive_buffer_bytes,
        ),
    }
}

type Bound = Vec<(Listener, Address)>;

async fn bind(config: &BrokerConfig) -> Result<Bound, Fault> {
    let endpoints = &config.endpoints;
    let brokers = endpoints
        .listeners
        .iter()
        .map(|one| (one, ListenerKind::Broker));
    let controllers = endpoints
        .controllers
        .iter()
        .map(|one| (one, ListenerKind::Controller));
    let mut bound = Vec::new();
    for (wanted, kind) in brokers.chain(controllers) {
        let listener = bind_one(wanted, kind, sockets(config)).await;
        let listener = listener.map_err(|source| Fault::Bind {
            host: wanted.host.clone(),
            port: wanted.port,
            source,
        })?;
        let shown = shown_address(listener.address());
        info!("listening on {}://{shown}", wanted.listener);
        bound.push((listener, wanted.clone()));
    }
    Ok(bound)
}

async fn bind_metrics(address: Option<SocketAddr>) -> Result<Option<TcpListener>, Fault> {
    let Some(address) = address else {
        return Ok(None);
    };
    let bound = metrics::bind(address).await;
    bound.map(Some).map_err(|source| Fault::Bind {
        host: address.ip().to_string(),
        port: address.port(),
        source,
    })
}

async fn bind_one(
    wanted: &Address,
    kind: ListenerKind,
    sockets: Sockets,
) -> std::io::Result<Listener> {
    let address = net::resolve(&wanted.host, wanted.port).await?;
    Listener::bind(&wanted.listener, kind, address, sockets)
}

/// A wildcard is shown as the loopback address, where it can be reached.
fn shown_address(address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        return ([127, 0, 0, 1], address.port()).into();
    }
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// The endpoints that the cluster is told, with the ports that were chosen.
fn advertised(config: &BrokerConfig, bound: &Bound) -> Vec<Endpoint> {
    let endpoints = config.endpoints.advertised.iter();
    endpoints
        .map(|wanted| endpoint(config, wanted, bound))
        .collect()
}

fn controllers(config: &BrokerConfig, bound: &Bound) -> Vec<Endpoint> {
    let endpoints = config.endpoints.controllers.iter();
    endpoints
        .map(|wanted| endpoint(config, wanted, bound))
        .collect()
}

fn endpoint(config: &BrokerConfig, wanted: &Address, bound: &Bound) -> Endpoint {
    let listener = bound.iter().find(|(_, at)| at.listener == wanted.listener);
    let port = match (wanted.port, listener) {
        (0, Some((listener, _))) => listener.address().port(),
        (port, _) => port,
    };
    let host = if wanted.host.is_empty() {
        "localhost"
    } else {
        &wanted.host
    };
    let protocol = config.endpoints.protocol(&wanted.listener);
    Endpoint {
        name: wanted.listener.clone(),
        host: host.to_owned(),
        port,
        security_protocol: protocol.map_or(0, SecurityProtocol::id),
    }
}

/// The newest committed image.
async fn caught_up(quorum: &Quorum) -> Published {
    let end = *quorum.committed().borrow();
    let mut images = quorum.image();
    match images
        .wait_for(|published| published.end_offset >= end)
        .await
    {
        Ok(published) => published.clone(),
        Err(_) => Published::default(),
    }
}
