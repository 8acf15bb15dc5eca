//! The records that brokers write for brokers: ends of transactions, changes of leader, the frame
//! of a snapshot, and who votes (org.apache.kafka.common.record.ControlRecordType, KIP-98,
//! KIP-595, KIP-630, KIP-853).
//!
//! A key is a version and a type; a value is a struct that begins with its version.

use bytes::BufMut;

use crate::base::{Uuid, varint};

const ABORT: i16 = 0;
const COMMIT: i16 = 1;
const LEADER_CHANGE: i16 = 2;
const SNAPSHOT_HEADER: i16 = 3;
const SNAPSHOT_FOOTER: i16 = 4;
const KRAFT_VERSION: i16 = 5;
const KRAFT_VOTERS: i16 = 6;

/// A record of a control batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ControlRecord {
    /// A transaction ended, committed or not, on behalf of a coordinator of this epoch.
    EndTransaction {
        committed: bool,
        coordinator_epoch: i32,
    },
    LeaderChange(LeaderChange),
    SnapshotHeader {
        last_contained_log_timestamp: i64,
    },
    SnapshotFooter,
    KraftVersion(i16),
    Voters(Vec<Voter>),
    /// A type of a later release; skipped by all who do not know it.
    Other(i16),
}

/// Who leads a Raft log from here on, and who elected it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeaderChange {
    /// 0, or 1 with directory ids; Kafka 4.1 writes 0.
    pub(crate) version: i16,
    pub(crate) leader_id: i32,
    pub(crate) voters: Vec<LeaderChangeVoter>,
    pub(crate) granting_voters: Vec<LeaderChangeVoter>,
}

/// A voter as a leader change names it; the directory is zero in version 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeaderChangeVoter {
    pub(crate) id: i32,
    pub(crate) directory: Uuid,
}

/// A voter of a Raft log with where it listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Voter {
    pub(crate) id: i32,
    pub(crate) directory: Uuid,
    pub(crate) endpoints: Vec<VoterEndpoint>,
    pub(crate) min_kraft_version: i16,
    pub(crate) max_kraft_version: i16,
}

/// A listener of a voter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VoterEndpoint {
    pub(crate) name: String,
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// The bytes of a control record are not one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a control record is malformed")]
pub(crate) struct BadControlRecord;

impl ControlRecord {
    /// The record's key.
    pub(crate) fn key(&self) -> [u8; 4] {
        let kind = match self {
            Self::EndTransaction {
                committed: false, ..
            } => ABORT,
            Self::EndTransaction {
                committed: true, ..
            } => COMMIT,
            Self::LeaderChange(_) => LEADER_CHANGE,
            Self::SnapshotHeader { .. } => SNAPSHOT_HEADER,
            Self::SnapshotFooter => SNAPSHOT_FOOTER,
            Self::KraftVersion(_) => KRAFT_VERSION,
            Self::Voters(_) => KRAFT_VOTERS,
            Self::Other(kind) => *kind,
        };
        let [high, low] = kind.to_be_bytes();
        [0, 0, high, low]
    }

    /// The record's value; empty for a type that we do not know.
    pub(crate) fn value(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::EndTransaction {
                coordinator_epoch, ..
            } => {
                out.put_i16(0);
                out.put_i32(*coordinator_epoch);
            }
            Self::LeaderChange(change) => change.write(&mut out),
            Self::SnapshotHeader {
                last_contained_log_timestamp,
            } => {
                out.put_i16(0);
                out.put_i64(*last_contained_log_timestamp);
                put_no_tags(&mut out);
            }
            Self::SnapshotFooter => {
                out.put_i16(0);
                put_no_tags(&mut out);
            }
            Self::KraftVersion(version) => {
                out.put_i16(0);
                out.put_i16(*version);
                put_no_tags(&mut out);
            }
            Self::Voters(voters) => {
                out.put_i16(0);
                put_count(&mut out, voters.len());
                for voter in voters {
                    voter.write(&mut out);
                }
                put_no_tags(&mut out);
            }
            Self::Other(_) => {}
        }
        out
    }

    /// Reads a record of a control batch.
    pub(crate) fn read(key: &[u8], value: &[u8]) -> Result<Self, BadControlRecord> {
        let mut key = Input(key);
        let mut value = Input(value);
        key.i16()?;
        let kind = key.i16()?;
        if !(ABORT..=KRAFT_VOTERS).contains(&kind) {
            return Ok(Self::Other(kind));
        }
        let version = value.i16()?;
        Ok(match kind {
            ABORT | COMMIT => Self::EndTransaction {
                committed: kind == COMMIT,
                coordinator_epoch: value.i32()?,
            },
            LEADER_CHANGE => Self::LeaderChange(LeaderChange::read(version, &mut value)?),
            SNAPSHOT_HEADER => Self::SnapshotHeader {
                last_contained_log_timestamp: value.i64()?,
            },
            SNAPSHOT_FOOTER => Self::SnapshotFooter,
            KRAFT_VERSION => Self::KraftVersion(value.i16()?),
            _ => Self::Voters(value.list(Voter::read)?),
        })
    }
}

impl LeaderChange {
    fn write(&self, out: &mut Vec<u8>) {
        out.put_i16(self.version);
        out.put_i32(self.leader_id);
        for voters in [&self.voters, &self.granting_voters] {
            put_count(out, voters.len());
            for voter in voters {
                out.put_i32(voter.id);
                if self.version >= 1 {
                    out.put_slice(&voter.directory.0);
                }
                put_no_tags(out);
            }
        }
        put_no_tags(out);
    }

    fn read(version: i16, input: &mut Input<'_>) -> Result<Self, BadControlRecord> {
        let voter = |input: &mut Input<'_>| {
            let id = input.i32()?;
            let directory = if version >= 1 {
                input.uuid()?
            } else {
                Uuid::ZERO
            };
            input.skip_tags()?;
            Ok(LeaderChangeVoter { id, directory })
        };
        Ok(Self {
            version,
            leader_id: input.i32()?,
            voters: input.list(voter)?,
            granting_voters: input.list(voter)?,
        })
    }
}

impl Voter {
    fn write(&self, out: &mut Vec<u8>) {
        out.put_i32(self.id);
        out.put_slice(&self.directory.0);
        put_count(out, self.endpoints.len());
        for endpoint in &self.endpoints {
            put_text(out, &endpoint.name);
            put_text(out, &endpoint.host);
            out.put_u16(endpoint.port);
            put_no_tags(out);
        }
        out.put_i16(self.min_kraft_version);
        out.put_i16(self.max_kraft_version);
        put_no_tags(out);
        put_no_tags(out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, BadControlRecord> {
        let voter = Self {
            id: input.i32()?,
            directory: input.uuid()?,
            endpoints: input.list(|input| {
                let endpoint = VoterEndpoint {
                    name: input.text()?,
                    host: input.text()?,
                    port: input.i16()?.cast_unsigned(),
                };
                input.skip_tags()?;
                Ok(endpoint)
            })?,
            min_kraft_version: input.i16()?,
            max_kraft_version: input.i16()?,
        };
        input.skip_tags()?;
        input.skip_tags()?;
        Ok(voter)
    }
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    let count = u32::try_from(count).expect("few voters");
    varint::put_unsigned(out, count + 1);
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_count(out, text.len());
    out.put_slice(text.as_bytes());
}

fn put_no_tags(out: &mut Vec<u8>) {
    out.put_u8(0);
}

struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], BadControlRecord> {
        let (head, rest) = self.0.split_first_chunk().ok_or(BadControlRecord)?;
        self.0 = rest;
        Ok(*head)
    }

    fn i16(&mut self) -> Result<i16, BadControlRecord> {
        self.take().map(i16::from_be_bytes)
    }

    fn i32(&mut self) -> Result<i32, BadControlRecord> {
        self.take().map(i32::from_be_bytes)
    }

    fn i64(&mut self) -> Result<i64, BadControlRecord> {
        self.take().map(i64::from_be_bytes)
    }

    fn uuid(&mut self) -> Result<Uuid, BadControlRecord> {
        self.take().map(Uuid)
    }

    fn unsigned(&mut self) -> Result<u32, BadControlRecord> {
        varint::take_unsigned(&mut self.0).ok_or(BadControlRecord)
    }

    fn bytes(&mut self, count: u32) -> Result<&'a [u8], BadControlRecord> {
        let taken = usize::try_from(count)
            .ok()
            .and_then(|count| self.0.split_at_checked(count));
        let (head, rest) = taken.ok_or(BadControlRecord)?;
        self.0 = rest;
        Ok(head)
    }

    fn text(&mut self) -> Result<String, BadControlRecord> {
        let len = self.unsigned()?.checked_sub(1).ok_or(BadControlRecord)?;
        let bytes = self.bytes(len)?;
        String::from_utf8(bytes.to_vec()).map_err(|_| BadControlRecord)
    }

    /// A compact array; it grows as elements are read, whatever count it claims.
    fn list<T>(
        &mut self,
        mut one: impl FnMut(&mut Self) -> Result<T, BadControlRecord>,
    ) -> Result<Vec<T>, BadControlRecord> {
        let count = self.unsigned()?.saturating_sub(1);
        let mut out = Vec::new();
        for _ in 0..count {
            out.push(one(self)?);
        }
        Ok(out)
    }

    fn skip_tags(&mut self) -> Result<(), BadControlRecord> {
        for _ in 0..self.unsigned()? {
            self.unsigned()?;
            let size = self.unsigned()?;
            self.bytes(size)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<ControlRecord> {
        let voter = |id| LeaderChangeVoter {
            id,
            directory: Uuid([7; 16]),
        };
        vec![
            ControlRecord::EndTransaction {
                committed: true,
                coordinator_epoch: 5,
            },
            ControlRecord::EndTransaction {
                committed: false,
                coordinator_epoch: 0,
            },
            ControlRecord::LeaderChange(LeaderChange {
                version: 1,
                leader_id: 3,
                voters: vec![voter(1), voter(2)],
                granting_voters: vec![voter(2)],
            }),
            ControlRecord::SnapshotHeader {
                last_contained_log_timestamp: 12,
            },
            ControlRecord::SnapshotFooter,
            ControlRecord::KraftVersion(1),
            ControlRecord::Voters(vec![Voter {
                id: 1,
                directory: Uuid([3; 16]),
                endpoints: vec![VoterEndpoint {
                    name: "CONTROLLER".into(),
                    host: "localhost".into(),
                    port: 65_000,
                }],
                min_kraft_version: 0,
                max_kraft_version: 1,
            }]),
        ]
    }

    #[test]
    fn every_control_record_survives_the_round_trip() {
        for record in all() {
            let value = record.value();
            assert_eq!(ControlRecord::read(&record.key(), &value), Ok(record));
        }
    }

    #[test]
    fn a_cut_value_is_refused_and_an_unknown_type_is_not() {
        for record in all() {
            let value = record.value();
            assert!(ControlRecord::read(&record.key(), &value[..1]).is_err());
        }
        let other = ControlRecord::read(&[0, 0, 0, 99], b"");
        assert_eq!(other, Ok(ControlRecord::Other(99)));
    }

    #[test]
    fn a_marker_has_the_bytes_that_kafka_writes() {
        let marker = ControlRecord::EndTransaction {
            committed: true,
            coordinator_epoch: 5,
        };
        assert_eq!(marker.key(), [0, 0, 0, 1]);
        assert_eq!(marker.value(), [0, 0, 0, 0, 0, 5]);
    }
}
