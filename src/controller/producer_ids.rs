//! Blocks of producer ids (ProducerIdControlManager).

use crate::base::ProducerId;
use crate::metadata::record::ProducerIdsRecord;
use crate::protocol::error::{ErrorCode, Refusal};

use super::ask::{AllocateProducerIds, ProducerIdBlock};
use super::state::State;
use super::{Decided, Decision};

/// How many ids a broker gets at a time (ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE).
const BLOCK: i32 = 1000;

impl State {
    /// Gives a broker ids that nobody else has.
    pub(super) fn allocate_producer_ids(
        &self,
        asked: &AllocateProducerIds,
    ) -> Decided<ProducerIdBlock> {
        self.check_broker_epoch(asked.broker_id, asked.broker_epoch)?;
        let first = self.image.next_producer_id.unwrap_or(ProducerId(0));
        let Some(next) = first.0.checked_add(BLOCK.into()) else {
            let words = "Exhausted all producerIds as the next block's end producerId has exceeded \
                         the int64 type limit";
            return Err(Refusal::new(ErrorCode::UnknownServerError, words));
        };
        let record = ProducerIdsRecord {
            broker_id: asked.broker_id,
            broker_epoch: asked.broker_epoch,
            next_producer_id: ProducerId(next),
        };
        Ok(Decision {
            records: vec![record.into()],
            reply: ProducerIdBlock { first, len: BLOCK },
        })
    }
}
