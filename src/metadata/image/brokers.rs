//! Registrations of brokers and controllers: endpoints, features, fencing, directories.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::base::{DirectoryId, NodeId, Uuid};
use crate::metadata::record::{
    BrokerRegistrationChangeRecord, Endpoint, FeatureRange, Record, RegisterBrokerRecord,
    RegisterControllerRecord,
};

use super::Contradiction;

/// All registered brokers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Brokers(Arc<HashMap<NodeId, Arc<Registration>>>);

/// All registered controllers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Controllers(Arc<HashMap<NodeId, Arc<ControllerRegistration>>>);

/// A broker as it presented itself, and whether it may lead.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Registration {
    pub(crate) id: NodeId,
    /// The offset of the record that registered this incarnation.
    pub(crate) epoch: i64,
    pub(crate) incarnation_id: Uuid,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) features: BTreeMap<String, Levels>,
    pub(crate) rack: Option<String>,
    pub(crate) fenced: bool,
    pub(crate) in_controlled_shutdown: bool,
    pub(crate) is_migrating_zk_broker: bool,
    /// Its online directories, sorted.
    pub(crate) directories: Vec<DirectoryId>,
}

/// A controller as it presented itself.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ControllerRegistration {
    pub(crate) id: NodeId,
    pub(crate) incarnation_id: Uuid,
    pub(crate) zk_migration_ready: bool,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) features: BTreeMap<String, Levels>,
}

/// The levels of a feature that a node supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Levels {
    pub(crate) min: i16,
    pub(crate) max: i16,
}

impl Registration {
    /// Whether the broker may lead and be in an ISR: neither fenced nor on its way out.
    pub(crate) fn is_active(&self) -> bool {
        !self.fenced && !self.in_controlled_shutdown
    }

    /// The endpoint of a listener.
    pub(crate) fn endpoint(&self, listener: &str) -> Option<&Endpoint> {
        self.endpoints.iter().find(|e| e.name == listener)
    }

    /// Whether a replica in this directory can be served; directories not yet known count as
    /// online (org.apache.kafka.common.DirectoryId.isOnline).
    pub(crate) fn has_online_directory(&self, directory: DirectoryId) -> bool {
        directory == DirectoryId::UNASSIGNED
            || directory == DirectoryId::MIGRATING
            || (directory != LOST
                && (self.directories.is_empty() || self.directories.contains(&directory)))
    }

    /// Where a new replica is taken to be: in the only directory, or where the broker will choose.
    pub(crate) fn default_directory(&self) -> DirectoryId {
        match self.directories[..] {
            [] => DirectoryId::MIGRATING,
            [only] => only,
            _ => DirectoryId::UNASSIGNED,
        }
    }
}

/// The replica's directory is gone (DirectoryId.LOST).
const LOST: DirectoryId = DirectoryId(Uuid([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]));

impl Brokers {
    /// The registration of a broker.
    pub(crate) fn registration(&self, id: NodeId) -> Option<&Arc<Registration>> {
        self.0.get(&id)
    }

    /// All registrations by id.
    pub(crate) fn sorted(&self) -> Vec<&Arc<Registration>> {
        let mut brokers: Vec<_> = self.0.values().collect();
        brokers.sort_by_key(|broker| broker.id);
        brokers
    }

    /// Whether a broker is registered and active.
    pub(crate) fn is_active(&self, id: NodeId) -> bool {
        self.0.get(&id).is_some_and(|broker| broker.is_active())
    }

    pub(super) fn register(&mut self, record: &RegisterBrokerRecord) {
        let mut directories = record.log_dirs.clone();
        directories.sort_unstable();
        let registration = Registration {
            id: record.broker_id,
            epoch: record.broker_epoch,
            incarnation_id: record.incarnation_id,
            endpoints: record.end_points.clone(),
            features: levels(&record.features),
            rack: record.rack.clone(),
            fenced: record.fenced,
            in_controlled_shutdown: record.in_controlled_shutdown,
            is_migrating_zk_broker: record.is_migrating_zk_broker,
            directories,
        };
        Arc::make_mut(&mut self.0).insert(record.broker_id, Arc::new(registration));
    }

    pub(super) fn unregister(&mut self, id: NodeId, epoch: i64) -> Result<(), Contradiction> {
        self.of_epoch(id, epoch)?;
        Arc::make_mut(&mut self.0).remove(&id);
        Ok(())
    }

    pub(super) fn set_fenced(
        &mut self,
        id: NodeId,
        epoch: i64,
        fenced: bool,
    ) -> Result<(), Contradiction> {
        self.of_epoch(id, epoch)?.fenced = fenced;
        Ok(())
    }

    pub(super) fn change(
        &mut self,
        record: &BrokerRegistrationChangeRecord,
    ) -> Result<(), Contradiction> {
        let broker = self.of_epoch(record.broker_id, record.broker_epoch)?;
        let fenced = match record.fenced {
            0 => broker.fenced,
            1 => true,
            -1 => false,
            code => return Err(Contradiction::InvalidCode(code, "fencing change")),
        };
        match record.in_controlled_shutdown {
            0 => {}
            1 => broker.in_controlled_shutdown = true,
            code => return Err(Contradiction::InvalidCode(code, "shutdown change")),
        }
        broker.fenced = fenced;
        if !record.log_dirs.is_empty() {
            broker.directories.clone_from(&record.log_dirs);
            broker.directories.sort_unstable();
        }
        Ok(())
    }

    pub(super) fn records(&self, out: &mut Vec<Record>) {
        for broker in self.sorted() {
            out.push(Record::RegisterBroker(RegisterBrokerRecord {
                broker_id: broker.id,
                is_migrating_zk_broker: broker.is_migrating_zk_broker,
                incarnation_id: broker.incarnation_id,
                broker_epoch: broker.epoch,
                end_points: broker.endpoints.clone(),
                features: ranges(&broker.features),
                rack: broker.rack.clone(),
                fenced: broker.fenced,
                in_controlled_shutdown: broker.in_controlled_shutdown,
                log_dirs: broker.directories.clone(),
            }));
        }
    }

    fn of_epoch(&mut self, id: NodeId, epoch: i64) -> Result<&mut Registration, Contradiction> {
        let unknown = Contradiction::UnknownBroker(id, epoch);
        if self.0.get(&id).is_none_or(|broker| broker.epoch != epoch) {
            return Err(unknown);
        }
        Arc::make_mut(&mut self.0)
            .get_mut(&id)
            .map(Arc::make_mut)
            .ok_or(unknown)
    }
}

impl Controllers {
    /// The registration of a controller.
    pub(crate) fn registration(&self, id: NodeId) -> Option<&Arc<ControllerRegistration>> {
        self.0.get(&id)
    }

    /// All registrations by id.
    pub(crate) fn sorted(&self) -> Vec<&Arc<ControllerRegistration>> {
        let mut controllers: Vec<_> = self.0.values().collect();
        controllers.sort_by_key(|controller| controller.id);
        controllers
    }

    pub(super) fn register(&mut self, record: &RegisterControllerRecord) {
        let registration = ControllerRegistration {
            id: record.controller_id,
            incarnation_id: record.incarnation_id,
            zk_migration_ready: record.zk_migration_ready,
            endpoints: record.end_points.clone(),
            features: levels(&record.features),
        };
        Arc::make_mut(&mut self.0).insert(record.controller_id, Arc::new(registration));
    }

    pub(super) fn records(&self, out: &mut Vec<Record>) {
        for controller in self.sorted() {
            out.push(Record::RegisterController(RegisterControllerRecord {
                controller_id: controller.id,
                incarnation_id: controller.incarnation_id,
                zk_migration_ready: controller.zk_migration_ready,
                end_points: controller.endpoints.clone(),
                features: ranges(&controller.features),
            }));
        }
    }
}

fn levels(features: &[FeatureRange]) -> BTreeMap<String, Levels> {
    let level = |feature: &FeatureRange| Levels {
        min: feature.min_supported_version,
        max: feature.max_supported_version,
    };
    features
        .iter()
        .map(|f| (f.name.clone(), level(f)))
        .collect()
}

fn ranges(features: &BTreeMap<String, Levels>) -> Vec<FeatureRange> {
    features
        .iter()
        .map(|(name, levels)| FeatureRange {
            name: name.clone(),
            min_supported_version: levels.min,
            max_supported_version: levels.max,
        })
        .collect()
}
