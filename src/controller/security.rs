//! Access control entries and client quotas as records; what they may be is decided above.

use crate::metadata::image::quotas::{Entity, parts};
use crate::metadata::record::{
    AccessControlEntryRecord, ClientQuotaRecord, Record, RemoveAccessControlEntryRecord,
};
use crate::protocol::error::Refusal;

use super::ask::{AlterQuotas, CreateAcls, DeleteAcls};
use super::state::{State, within_limit};
use super::{Decided, Decision};

impl State {
    /// Adds entries; one that says what another says is left out (AclControlManager).
    pub(super) fn create_acls(&self, asked: &CreateAcls) -> Decided<()> {
        let mut added: Vec<&AccessControlEntryRecord> = Vec::new();
        for entry in &asked.entries {
            let says_the_same = |other: &AccessControlEntryRecord| {
                let id = entry.id;
                AccessControlEntryRecord {
                    id,
                    ..other.clone()
                } == *entry
            };
            let known = self.image.acls.iter().any(|other| says_the_same(other));
            if !known && !added.iter().any(|other| says_the_same(other)) {
                added.push(entry);
            }
        }
        let records = added
            .into_iter()
            .cloned()
            .map(Record::AccessControlEntry)
            .collect();
        Ok(Decision {
            records: within_limit(records)?,
            reply: (),
        })
    }

    /// Removes entries; those that are gone already are left out.
    pub(super) fn delete_acls(&self, asked: &DeleteAcls) -> Decided<()> {
        let exists = |id: &&_| self.image.acls.iter().any(|entry| entry.id == **id);
        let mut ids: Vec<_> = asked.ids.iter().filter(exists).copied().collect();
        ids.sort_unstable();
        ids.dedup();
        let remove = |id| Record::RemoveAccessControlEntry(RemoveAccessControlEntryRecord { id });
        Ok(Decision {
            records: within_limit(ids.into_iter().map(remove).collect())?,
            reply: (),
        })
    }

    /// Sets and removes quotas; what is so already is left out (ClientQuotaControlManager).
    pub(super) fn alter_quotas(
        &self,
        asked: &AlterQuotas,
    ) -> Decided<Vec<(Entity, Result<(), Refusal>)>> {
        let mut records = Vec::new();
        for (entity, changes) in &asked.entities {
            for (key, value) in changes {
                let now = self.image.quotas.of(entity);
                let now = now.and_then(|keys| keys.get(key)).copied();
                if now != *value {
                    records.push(Record::ClientQuota(ClientQuotaRecord {
                        entity: parts(entity),
                        key: key.clone(),
                        value: value.unwrap_or(0.0),
                        remove: value.is_none(),
                    }));
                }
            }
        }
        let mut records = within_limit(records)?;
        if asked.validate_only {
            records.clear();
        }
        let entities = asked.entities.iter();
        Ok(Decision {
            records,
            reply: entities
                .map(|(entity, _)| (entity.clone(), Ok(())))
                .collect(),
        })
    }
}
