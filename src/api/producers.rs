//! InitProducerId: versions 0-5. DescribeProducers: version 0.
//!
//! - Without a transactional id: a fresh id with epoch 0, whatever else is asked.
//! - v2 flexible · v3 takes the producer's present id (KIP-360) · v4 PRODUCER_FENCED (KIP-588) · v5
//!   TRANSACTION_ABORTABLE (KIP-890)

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use kafka_protocol::messages::describe_producers_response::{
    PartitionResponse, ProducerState, TopicResponse,
};
use kafka_protocol::messages::{
    DescribeProducersRequest, DescribeProducersResponse, InitProducerIdRequest,
    InitProducerIdResponse,
};
use kafka_protocol::protocol::StrBytes;
use parking_lot::Mutex;

use super::context::Context;
use super::list_offsets::hosted;
use super::serve::{Refuse, Reply};
use super::topics::words;
use crate::base::ProducerId;
use crate::controller::ask::AllocateProducerIds;
use crate::log::producers::ActiveProducer;
use crate::metadata::names;
use crate::os::tasks;
use crate::protocol::error::{ErrorCode, Refusal};

/// The id and epoch of a producer that has none.
const NONE: i64 = -1;

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
    // An id without its epoch, or an epoch without its id, means nothing (KIP-360).
    if (request.producer_id.0 == NONE) != (i64::from(request.producer_epoch) == NONE) {
        return Err(ErrorCode::InvalidRequest.into());
    }
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

impl Refuse for DescribeProducersRequest {
    type Response = DescribeProducersResponse;

    fn refuse(&self, _version: i16, refusal: &Refusal) -> DescribeProducersResponse {
        let topics = self.topics.iter().map(|topic| {
            let partitions = topic.partition_indexes.iter();
            let refused = partitions.map(|index| refused(*index, refusal.code, words(refusal)));
            TopicResponse::default()
                .with_name(topic.name.clone())
                .with_partitions(refused.collect())
        });
        DescribeProducersResponse::default().with_topics(topics.collect())
    }
}

/// Tells the producers that a partition knows.
pub(super) async fn describe_producers(
    ctx: Context,
    request: Arc<DescribeProducersRequest>,
) -> Result<Reply<DescribeProducersResponse>, Refusal> {
    let mut response = DescribeProducersResponse::default();
    for topic in &request.topics {
        let name = topic.name.as_str();
        // Each partition once: its answer may be much larger than its number.
        let indexes: BTreeSet<i32> = topic.partition_indexes.iter().copied().collect();
        let mut partitions = Vec::with_capacity(indexes.len());
        for index in &indexes {
            partitions.push(match known_topic(&ctx, name) {
                Ok(()) => described(*index, active(&ctx, name, *index).await),
                Err(refusal) => refused(*index, refusal.code, words(&refusal)),
            });
        }
        response.topics.push(
            TopicResponse::default()
                .with_name(topic.name.clone())
                .with_partitions(partitions),
        );
    }
    Ok(response.into())
}

fn known_topic(ctx: &Context, name: &str) -> Result<(), Refusal> {
    names::validate(name)?;
    match ctx.image().topics.by_name(name) {
        Some(_) => Ok(()),
        None => Err(ErrorCode::UnknownTopicOrPartition.into()),
    }
}

async fn active(ctx: &Context, topic: &str, index: i32) -> Result<Vec<ActiveProducer>, ErrorCode> {
    let partition = hosted(ctx, topic, index)?;
    partition.check_epoch(-1)?;
    // The log may be held by a writer for as long as the disk takes.
    let look = tasks::blocking(move || partition.with_log(|log| log.active_producers()));
    look.await.map_err(|_| ErrorCode::UnknownServerError)
}

fn described(index: i32, found: Result<Vec<ActiveProducer>, ErrorCode>) -> PartitionResponse {
    let producers = match found {
        Ok(producers) => producers,
        Err(code) => return refused(index, code, None),
    };
    let producers = producers.into_iter().map(|one| {
        ProducerState::default()
            .with_producer_id(one.producer_id.into())
            .with_producer_epoch(one.epoch.into())
            .with_last_sequence(one.last_sequence)
            .with_last_timestamp(one.last_timestamp)
            .with_coordinator_epoch(one.coordinator_epoch)
            .with_current_txn_start_offset(one.txn_start_offset.unwrap_or(-1))
    });
    PartitionResponse::default()
        .with_partition_index(index)
        .with_active_producers(producers.collect())
}

fn refused(index: i32, code: ErrorCode, message: Option<StrBytes>) -> PartitionResponse {
    PartitionResponse::default()
        .with_partition_index(index)
        .with_error_code(code.code())
        .with_error_message(message)
}
