//! Client quotas, by the entity they bind (KIP-546).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::metadata::record::{ClientQuotaRecord, QuotaEntityPart, Record};

/// Whom a quota binds: a name for each type (user, client-id, ip), `None` for the default.
pub(crate) type Entity = BTreeMap<String, Option<String>>;

/// All quotas.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Quotas(Arc<HashMap<Entity, Arc<BTreeMap<String, f64>>>>);

impl Quotas {
    /// The quotas of an entity, by key.
    pub(crate) fn of(&self, entity: &Entity) -> Option<&Arc<BTreeMap<String, f64>>> {
        self.0.get(entity)
    }

    /// Every entity that has quotas, in order.
    pub(crate) fn sorted(&self) -> Vec<(&Entity, &Arc<BTreeMap<String, f64>>)> {
        let mut all: Vec<_> = self.0.iter().collect();
        all.sort_by_key(|(entity, _)| *entity);
        all
    }

    pub(super) fn change(&mut self, record: &ClientQuotaRecord) {
        let entity: Entity = record
            .entity
            .iter()
            .map(|part| (part.entity_type.clone(), part.entity_name.clone()))
            .collect();
        let quotas = Arc::make_mut(&mut self.0);
        if !record.remove {
            let keys = quotas.entry(entity).or_default();
            Arc::make_mut(keys).insert(record.key.clone(), record.value);
        } else if let Some(keys) = quotas.get_mut(&entity) {
            Arc::make_mut(keys).remove(&record.key);
            if keys.is_empty() {
                quotas.remove(&entity);
            }
        }
    }

    pub(super) fn records(&self, out: &mut Vec<Record>) {
        for (entity, keys) in self.sorted() {
            for (key, value) in keys.iter() {
                out.push(Record::ClientQuota(ClientQuotaRecord {
                    entity: parts(entity),
                    key: key.clone(),
                    value: *value,
                    remove: false,
                }));
            }
        }
    }
}

/// An entity as a record writes it.
pub(crate) fn parts(entity: &Entity) -> Vec<QuotaEntityPart> {
    entity
        .iter()
        .map(|(entity_type, entity_name)| QuotaEntityPart {
            entity_type: entity_type.clone(),
            entity_name: entity_name.clone(),
        })
        .collect()
}
