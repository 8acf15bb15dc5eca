//! InitProducerId: versions 0-5.
//!
//! - Without a transactional id: a fresh id with epoch 0, whatever else is asked.
//! - v2 flexible · v3 takes the producer's present id (KIP-360) · v4 PRODUCER_FENCED (KIP-588) · v5
//!   TRANSACTION_ABORTABLE (KIP-890)

use std::sync::Arc;

use kafka_protocol::messages::{InitProducerIdRequest, InitProducerIdResponse};
use parking_lot::Mutex;
use std::ops::Range;

use super::context::Context;
use super::serve::{Refuse, Reply};
use crate::base::ProducerId;
use crate::controller::ask::AllocateProducerIds;
use crate::protocol::error::{ErrorCode, Refusal};

/// The ids that the controller gave to this broker and that no producer has yet.
#[derive(Debug, Default)]
pub(crate) struct ProducerIds {
    block: Mutex<Range<i64>>,
    /// One caller at a time fetches a new block; the others wait for it.
    refill: tokio::sync::Mutex<()>,
}

impl ProducerIds {
    fn take(&self) -> Option<ProducerId> {
        self.block.lock().next().map(ProducerId)
    }

    /// A fresh id, from a new block when the last one is used up.
    async fn next(&self, ctx: &Context) -> Result<ProducerId, Refusal> {
        loop {
            if let Some(id) = self.take() {
                return Ok(id);
            }
            let _turn = self.refill.lock().await;
            if self.block.lock().is_empty() {
                let block = ctx.ask(ctx.producer_ids_ask()).await?;
                *self.block.lock() = block.first.0..block.first.0 + i64::from(block.len);
            }
        }
    }
}

impl Context {
    fn producer_ids_ask(&self) -> AllocateProducerIds {
        let id = self.parts.node_id;
        let registered = self.image().brokers.registration(id);
        AllocateProducerIds {
            broker_id: id,
            broker_epoch: registered.map_or(-1, |it| it.epoch),
        }
    }
}

impl Refuse for InitProducerIdRequest {
    type Response = InitProducerIdResponse;

    fn refuse(&self, _version: i16, refusal: &Refusal) -> InitProducerIdResponse {
        InitProducerIdResponse::default()
            .with_error_code(refusal.code.code())
            .with_producer_id((-1).into())
            .with_producer_epoch(-1)
    }
}

/// Gives a producer its id.
pub(super) async fn init_producer_id(
    ctx: Context,
    request: Arc<InitProducerIdRequest>,
) -> Result<Reply<InitProducerIdResponse>, Refusal> {
    match &request.transactional_id {
        None => {}
        Some(id) if id.is_empty() => return Err(ErrorCode::InvalidRequest.into()),
        // No transaction coordinator runs here: a client's look for one fails before this.
        Some(_) => return Err(ErrorCode::NotCoordinator.into()),
    }
    let id = ctx.parts.producer_ids.next(&ctx).await?;
    let response = InitProducerIdResponse::default()
        .with_producer_id(id.0.into())
        .with_producer_epoch(0);
    Ok(response.into())
}
