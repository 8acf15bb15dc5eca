//! Which partition of `__consumer_offsets` a group belongs to, and the machine that runs for it
//! (org.apache.kafka.coordinator.group.GroupCoordinatorService and CoordinatorRuntime).
//!
//! A partition that this node leads and that has records is loaded at once, so that members who
//! are gone are noticed. One without records costs nothing until it is needed. A machine lives as
//! long as the leader epoch it was loaded in.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tracing::{error, info};

use super::effects::Effects;
use super::group::ask::ForgetTopics;
use super::group::records::KEY_TEXT_MAX;
use super::group::{GroupMachine, Settings, View};
use super::journal::{Cause, PartitionJournal};
use super::load;
use crate::base::{FastMap, LeaderEpoch, NodeId, TopicId};
use crate::config::options::Options;
use crate::machine::Now;
use crate::machine::ask::Ask;
use crate::machine::driver::{self, Limits};
use crate::machine::handle::Handle;
use crate::metadata::changes::Changes;
use crate::metadata::image::Image;
use crate::metadata::image::topics::Topic;
use crate::metadata::names::GROUP_METADATA_TOPIC;
use crate::os::tasks::{self, Tasks};
use crate::os::{clock, random};
use crate::protocol::error::ErrorCode;
use crate::protocol::records::compress::{Codec, Compression};
use crate::replica::manager::Manager;
use crate::replica::partition::Partition;

/// How long a request waits for its partition to be loaded, before its client is to ask again.
const LOADING: Duration = Duration::from_secs(1);

/// What a batch has besides its records, and a record besides its value, generously.
const BATCH_OVERHEAD: usize = 1024;

/// The groups of the partitions that this node leads.
pub(crate) struct Router {
    node: NodeId,
    options: Arc<Options>,
    replicas: Arc<Manager>,
    view: Arc<dyn Fn() -> View + Send + Sync>,
    tasks: Tasks,
    shards: Mutex<FastMap<(TopicId, i32), Shard>>,
}

/// A partition that runs here, or is about to.
#[derive(Clone)]
struct Shard {
    epoch: LeaderEpoch,
    cause: Arc<Cause>,
    machine: watch::Receiver<Machine>,
}

#[derive(Clone)]
enum Machine {
    Loading,
    Running(Handle<GroupMachine>),
    /// It could not be read; the next request tries again.
    Failed,
}

impl Shard {
    /// Whether another is to be started in its place.
    fn is_over(&self) -> bool {
        match &*self.machine.borrow() {
            // Its loader is gone without a word when the sender is.
            Machine::Loading => self.machine.has_changed().is_err(),
            Machine::Running(handle) => handle.is_gone(),
            Machine::Failed => true,
        }
    }

    async fn ask<A: Ask<GroupMachine>>(mut self, ask: A) -> Result<A::Reply, ErrorCode> {
        let handle = self.loaded().await?;
        let answer = handle.ask(ask.into_event()).await;
        let answer = answer.map_err(|_| self.cause.told())?;
        A::reply(answer).ok_or(ErrorCode::UnknownServerError)
    }

    async fn loaded(&mut self) -> Result<Handle<GroupMachine>, ErrorCode> {
        let is_loaded = |machine: &Machine| !matches!(machine, Machine::Loading);
        let waiting = self.machine.wait_for(is_loaded);
        match tokio::time::timeout(LOADING, waiting).await {
            Err(_) => Err(ErrorCode::CoordinatorLoadInProgress),
            Ok(Err(_)) => Err(ErrorCode::NotCoordinator),
            Ok(Ok(machine)) => match &*machine {
                Machine::Running(handle) => Ok(handle.clone()),
                Machine::Loading | Machine::Failed => Err(ErrorCode::NotCoordinator),
            },
        }
    }
}

/// The partition of a key among so many (Utils.abs of String.hashCode).
pub(crate) fn partition_of(key: &str, count: i32) -> i32 {
    let hash = key.encode_utf16().fold(0_i32, |hash, unit| {
        hash.wrapping_mul(31).wrapping_add(i32::from(unit))
    });
    hash.checked_abs().unwrap_or(0) % count.max(1)
}

impl Router {
    /// A router that runs nothing yet. `view` tells the cluster as this broker knows it.
    pub(crate) fn new(
        node: NodeId,
        options: Arc<Options>,
        replicas: Arc<Manager>,
        view: Arc<dyn Fn() -> View + Send + Sync>,
        tasks: Tasks,
    ) -> Self {
        Self {
            node,
            options,
            replicas,
            view,
            tasks,
            shards: Mutex::default(),
        }
    }

    /// Asks the machine of a group.
    pub(crate) async fn ask<A: Ask<GroupMachine>>(
        &self,
        group: &str,
        ask: A,
    ) -> Result<A::Reply, ErrorCode> {
        if group.len() > KEY_TEXT_MAX {
            // Kafka does not even read such a request.
            return Err(ErrorCode::InvalidGroupId);
        }
        let image = (self.view)().image;
        let topic = image.topics.by_name(GROUP_METADATA_TOPIC);
        let topic = topic.ok_or(ErrorCode::NotCoordinator)?;
        let index = partition_of(group, partition_count(topic));
        self.shard(topic, index)?.ask(ask).await
    }

    /// Which groups are asked together: those of one partition, with their places in the list.
    pub(crate) fn together(&self, groups: &[Arc<str>]) -> Vec<Vec<usize>> {
        let image = (self.view)().image;
        let topic = image.topics.by_name(GROUP_METADATA_TOPIC);
        let count = topic.map_or(1, |topic| partition_count(topic));
        let mut by_partition: HashMap<i32, Vec<usize>> = HashMap::new();
        for (at, group) in groups.iter().enumerate() {
            let partition = partition_of(group, count);
            by_partition.entry(partition).or_default().push(at);
        }
        by_partition.into_values().collect()
    }

    /// Asks every machine of this node that knows anything, one after the other.
    pub(crate) async fn ask_all<A: Ask<GroupMachine> + Clone>(
        &self,
        ask: &A,
    ) -> Result<Vec<A::Reply>, ErrorCode> {
        let image = (self.view)().image;
        let Some(topic) = image.topics.by_name(GROUP_METADATA_TOPIC) else {
            return Ok(Vec::new());
        };
        let mut replies = Vec::new();
        for index in topic.partitions.keys() {
            if !self.is_in_use(topic.id, *index) {
                continue;
            }
            // It may have moved away meanwhile.
            if let Ok(shard) = self.shard(topic, *index) {
                replies.push(shard.ask(ask.clone()).await?);
            }
        }
        Ok(replies)
    }

    fn is_in_use(&self, topic: TopicId, index: i32) -> bool {
        if self.shards.lock().contains_key(&(topic, index)) {
            return true;
        }
        let partition = self.replicas.partition(topic, index);
        partition.is_some_and(|it| it.role().leader == self.node && has_records(&it))
    }

    /// The shard of a partition; it is started if it does not run.
    fn shard(&self, topic: &Topic, index: i32) -> Result<Shard, ErrorCode> {
        let not_here = ErrorCode::NotCoordinator;
        let partition = self.replicas.partition(topic.id, index).ok_or(not_here)?;
        let role = partition.check_leader(-1).map_err(|_| not_here)?;
        let mut shards = self.shards.lock();
        let known = shards.get(&(topic.id, index));
        if let Some(shard) = known.filter(|it| it.epoch == role.leader_epoch && !it.is_over()) {
            return Ok(shard.clone());
        }
        let shard = self.start(partition, role.leader_epoch);
        shards.insert((topic.id, index), shard.clone());
        Ok(shard)
    }

    fn start(&self, partition: Arc<Partition>, epoch: LeaderEpoch) -> Shard {
        let cause = Arc::new(Cause::default());
        let machine = GroupMachine::new(self.settings(&partition));
        let journal = PartitionJournal {
            partition: partition.clone(),
            epoch,
            compression: self.compression(),
            cause: cause.clone(),
        };
        let (sender, receiver) = watch::channel(Machine::Loading);
        if has_records(&partition) {
            let bytes = self.options.file().offsets_load_buffer_size;
            let bytes = usize::try_from(bytes).unwrap_or(1 << 20);
            let tasks = self.tasks.clone();
            self.tasks.spawn("group-loader", async move {
                let loaded = load_whole(machine, partition, bytes).await;
                let machine = loaded.map(|machine| run(&tasks, machine, journal));
                sender.send_replace(machine.map_or(Machine::Failed, Machine::Running));
            });
        } else {
            let handle = run(&self.tasks, machine, journal);
            sender.send_replace(Machine::Running(handle));
        }
        Shard {
            epoch,
            cause,
            machine: receiver,
        }
    }

    fn settings(&self, partition: &Partition) -> Arc<Settings> {
        let view = self.view.clone();
        let most = partition.reader().config().max_message_bytes;
        Arc::new(Settings {
            options: self.options.clone(),
            view: Box::new(move || view()),
            uuid: Box::new(random::uuid),
            record_bytes_max: most.saturating_sub(BATCH_OVERHEAD),
        })
    }

    fn compression(&self) -> Compression {
        let bits = self.options.file().offsets_topic_compression_codec;
        let codec = i16::try_from(bits).ok().and_then(Codec::from_bits);
        codec.unwrap_or(Codec::None).into()
    }

    /// Takes up what this node leads from its start on.
    pub(crate) fn begin(&self, image: &Image) {
        if let Some(topic) = image.topics.by_name(GROUP_METADATA_TOPIC) {
            self.elect(topic, topic.partitions.keys().copied());
        }
    }

    /// Follows a change of the metadata, which the replicas know already.
    pub(crate) fn apply(&self, image: &Image, changes: &Changes) {
        if let Some(topic) = image.topics.by_name(GROUP_METADATA_TOPIC)
            && let Some(indexes) = changes.partitions.get(&topic.id)
        {
            self.elect(topic, indexes.iter().copied());
        }
        let mut forget = Vec::new();
        for (id, name) in &changes.removed_topics {
            if &**name == GROUP_METADATA_TOPIC {
                self.shards.lock().retain(|(topic, _), _| topic != id);
            } else {
                forget.push((Arc::from(&**name), *id));
            }
        }
        if !forget.is_empty() {
            self.forget(ForgetTopics { topics: forget });
        }
    }

    /// Starts what has records and is led here; ends what is not led here any more, or in
    /// another epoch.
    fn elect(&self, topic: &Topic, indexes: impl Iterator<Item = i32>) {
        for index in indexes {
            let partition = self.replicas.partition(topic.id, index);
            let led = partition.filter(|it| it.check_leader(-1).is_ok());
            match led {
                Some(partition) if has_records(&partition) => {
                    // Whoever asks next is told what went wrong, if anything does.
                    let _ = self.shard(topic, index);
                }
                Some(partition) => {
                    let epoch = partition.role().leader_epoch;
                    let mut shards = self.shards.lock();
                    if shards
                        .get(&(topic.id, index))
                        .is_some_and(|it| it.epoch != epoch)
                    {
                        shards.remove(&(topic.id, index));
                    }
                }
                None => {
                    if self.shards.lock().remove(&(topic.id, index)).is_some() {
                        info!(index, "the groups of a partition are led elsewhere");
                    }
                }
            }
        }
    }

    fn forget(&self, ask: ForgetTopics) {
        let shards: Vec<_> = self.shards.lock().values().cloned().collect();
        if shards.is_empty() {
            return;
        }
        let stop = self.tasks.clone();
        self.tasks
            .spawn("group-offsets-of-deleted-topics", async move {
                for shard in shards {
                    tokio::select! {
                        biased;
                        () = stop.stopped() => return,
                        // A machine that is gone has left this to its successor.
                        _ = shard.ask(ask.clone()) => {}
                    }
                }
            });
    }
}

fn partition_count(topic: &Topic) -> i32 {
    i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX)
}

fn has_records(partition: &Partition) -> bool {
    let offsets = partition.offsets();
    offsets.log_end > offsets.log_start
}

async fn load_whole(
    mut machine: GroupMachine,
    partition: Arc<Partition>,
    bytes: usize,
) -> Option<GroupMachine> {
    let name = partition.name.clone();
    let work = tasks::blocking(move || {
        let loaded = load::load(&mut machine, &partition, bytes);
        loaded.map(|loaded| (machine, loaded))
    });
    match work.await {
        Ok(Ok((machine, loaded))) => {
            let took = clock::now().duration_since(loaded.since);
            info!(partition = %name, records = loaded.records, ?took, "groups are loaded");
            Some(machine)
        }
        Ok(Err(fault)) => {
            error!(partition = %name, %fault, "groups could not be loaded");
            None
        }
        Err(_) => {
            error!(partition = %name, "groups could not be loaded; this is a defect");
            None
        }
    }
}

fn run(
    tasks: &Tasks,
    mut machine: GroupMachine,
    journal: PartitionJournal,
) -> Handle<GroupMachine> {
    machine.begin(Now {
        instant: clock::now(),
        wall_ms: clock::wall_ms(),
        end_offset: journal.partition.reader().log_end_offset(),
    });
    let effects = Effects::new(tasks.clone());
    let performed = effects.clone();
    let handle = driver::spawn(
        tasks,
        "groups",
        Limits::default(),
        machine,
        journal,
        move |effect| performed.perform(effect),
    );
    effects.tell(&handle);
    handle
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_where_java_puts_them() {
        // String.hashCode of these: 0, 98629247, Integer.MIN_VALUE and 347379084.
        assert_eq!(partition_of("", 50), 0);
        assert_eq!(partition_of("group", 50), 47);
        assert_eq!(partition_of("polygenelubricants", 50), 0);
        assert_eq!(
            partition_of("grüße \u{1f600}", 7),
            partition_of("grüße \u{1f600}", 7)
        );
    }
}
