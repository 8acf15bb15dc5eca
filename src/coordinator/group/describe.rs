//! What operators see of groups, and how they remove them.

use std::sync::Arc;

use super::ask::{DeleteGroups, DescribeGroups, DescribedGroup, ListGroups, ListedGroup};
use super::classic_state::State;
use super::group::Group;
use super::{GroupMachine, Turn};
use crate::protocol::error::{ErrorCode, Refusal};

impl GroupMachine {
    pub(super) fn list(&self, ask: &ListGroups) -> Vec<ListedGroup> {
        let passes = |filter: &[String], value: &str| {
            filter.is_empty() || filter.contains(&value.to_ascii_lowercase())
        };
        let listed = self.groups.iter().filter(|(_, group)| {
            passes(&ask.states, group.state()) && passes(&ask.types, group.kind())
        });
        let listed = listed.map(|(id, group)| ListedGroup {
            group: id.clone(),
            protocol_type: group.protocol_type(),
            state: group.state(),
            kind: group.kind(),
        });
        listed.collect()
    }

    pub(super) fn describe(&self, ask: &DescribeGroups) -> Vec<Result<DescribedGroup, Refusal>> {
        ask.groups.iter().map(|id| self.describe_one(id)).collect()
    }

    fn describe_one(&self, id: &Arc<str>) -> Result<DescribedGroup, Refusal> {
        let group = match self.groups.get(id) {
            Some(Group::Classic(group)) => group,
            Some(Group::Consumer(_)) => {
                let words = format!("Group {id} is not a classic group.");
                return Err(Refusal::new(ErrorCode::GroupIdNotFound, words));
            }
            None => {
                let words = format!("Group {id} not found.");
                return Err(Refusal::new(ErrorCode::GroupIdNotFound, words));
            }
        };
        let protocol = group
            .protocol
            .clone()
            .filter(|_| group.state == State::Stable);
        Ok(DescribedGroup {
            state: group.state.name(),
            protocol_type: group.protocol_type.clone().unwrap_or_else(|| Arc::from("")),
            protocol: protocol.unwrap_or_else(|| Arc::from("")),
            members: group.described_members(),
        })
    }

    pub(super) fn delete_groups(
        &self,
        turn: &mut Turn,
        ask: &DeleteGroups,
    ) -> Vec<Result<(), ErrorCode>> {
        let mut seen = Vec::with_capacity(ask.groups.len());
        let mut deleted = Vec::with_capacity(ask.groups.len());
        for id in &ask.groups {
            // The records of a group that is named twice are not replayed yet.
            let again = seen.contains(&id);
            seen.push(id);
            deleted.push(match again {
                true => Err(ErrorCode::GroupIdNotFound),
                false => self.delete_group(turn, id),
            });
        }
        deleted
    }

    fn delete_group(&self, turn: &mut Turn, id: &Arc<str>) -> Result<(), ErrorCode> {
        let group = self.groups.get(id).ok_or(ErrorCode::GroupIdNotFound)?;
        if !group.is_empty() {
            return Err(ErrorCode::NonEmptyGroup);
        }
        self.delete_all_offsets(turn, id);
        for record in group.tombstones() {
            turn.write(record);
        }
        Ok(())
    }
}
