//! Access control entries, SCRAM credentials and delegation tokens, as their records say them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::base::Uuid;
use crate::metadata::record::{
    AccessControlEntryRecord, DelegationTokenRecord, Record, UserScramCredentialRecord,
};

/// All access control entries, by id.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Acls(Arc<HashMap<Uuid, Arc<AccessControlEntryRecord>>>);

/// All SCRAM credentials, by mechanism and user.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Scram(Arc<BTreeMap<(i8, String), Arc<UserScramCredentialRecord>>>);

/// All delegation tokens, by token id.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tokens(Arc<HashMap<String, Arc<DelegationTokenRecord>>>);

impl Acls {
    /// All entries, by id.
    pub(crate) fn sorted(&self) -> Vec<&Arc<AccessControlEntryRecord>> {
        let mut all: Vec<_> = self.0.values().collect();
        all.sort_by_key(|entry| entry.id);
        all
    }

    /// All entries, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<AccessControlEntryRecord>> {
        self.0.values()
    }

    pub(super) fn add(&mut self, record: &AccessControlEntryRecord) {
        Arc::make_mut(&mut self.0).insert(record.id, Arc::new(record.clone()));
    }

    pub(super) fn remove(&mut self, id: Uuid) {
        Arc::make_mut(&mut self.0).remove(&id);
    }

    pub(super) fn records(&self, out: &mut Vec<Record>) {
        let entries = self.sorted().into_iter();
        out.extend(entries.map(|entry| Record::AccessControlEntry(entry.as_ref().clone())));
    }
}

impl Scram {
    /// A user's credential for a mechanism.
    pub(crate) fn credential(
        &self,
        user: &str,
        mechanism: i8,
    ) -> Option<&Arc<UserScramCredentialRecord>> {
        self.0.get(&(mechanism, user.to_owned()))
    }

    /// All credentials, by mechanism and user.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<UserScramCredentialRecord>> {
        self.0.values()
    }

    pub(super) fn set(&mut self, record: &UserScramCredentialRecord) {
        let key = (record.mechanism, record.name.clone());
        Arc::make_mut(&mut self.0).insert(key, Arc::new(record.clone()));
    }

    pub(super) fn remove(&mut self, user: &str, mechanism: i8) {
        Arc::make_mut(&mut self.0).remove(&(mechanism, user.to_owned()));
    }

    pub(super) fn records(&self, out: &mut Vec<Record>) {
        out.extend(
            self.iter()
                .map(|c| Record::UserScramCredential(c.as_ref().clone())),
        );
    }
}

impl Tokens {
    /// A token by its id.
    pub(crate) fn token(&self, id: &str) -> Option<&Arc<DelegationTokenRecord>> {
        self.0.get(id)
    }

    /// All tokens, by id.
    pub(crate) fn sorted(&self) -> Vec<&Arc<DelegationTokenRecord>> {
        let mut all: Vec<_> = self.0.values().collect();
        all.sort_by(|a, b| a.token_id.cmp(&b.token_id));
        all
    }

    pub(super) fn set(&mut self, record: &DelegationTokenRecord) {
        let token = Arc::new(record.clone());
        Arc::make_mut(&mut self.0).insert(record.token_id.clone(), token);
    }

    pub(super) fn remove(&mut self, id: &str) {
        Arc::make_mut(&mut self.0).remove(id);
    }

    pub(super) fn records(&self, out: &mut Vec<Record>) {
        let tokens = self.sorted().into_iter();
        out.extend(tokens.map(|token| Record::DelegationToken(token.as_ref().clone())));
    }
}
