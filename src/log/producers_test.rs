//! Stories of producers against one log's rules.

use super::*;
use crate::protocol::records::batch::Header;

const OPEN: Proof = Proof::NotNeeded;

/// A batch of `count` records of producer 1 at `epoch`, from `sequence`, to stand at `offset`.
fn batch(epoch: i16, sequence: i32, count: i32, offset: i64) -> Header {
    Header {
        base_offset: offset,
        batch_length: 49,
        partition_leader_epoch: 0,
        crc: 0,
        attributes: 0,
        last_offset_delta: count - 1,
        base_timestamp: 0,
        max_timestamp: 1000 + offset,
        producer_id: 1,
        producer_epoch: epoch,
        base_sequence: sequence,
        records_count: count,
    }
}

fn transactional(mut header: Header) -> Header {
    header.set_transactional(true);
    header
}

fn of(id: i64, mut header: Header) -> Header {
    header.producer_id = id;
    header
}

fn append(producers: &mut Producers, header: Header) -> Result<Verdict, ErrorCode> {
    let verdict = producers.check(&header, Origin::Client, OPEN)?;
    if verdict == Verdict::Append {
        producers.apply(&header);
    }
    Ok(verdict)
}

fn marker(committed: bool) -> Marker {
    Marker {
        committed,
        coordinator_epoch: 3,
    }
}

fn end(producers: &mut Producers, header: Header, committed: bool) -> Option<CompletedTxn> {
    let mut header = transactional(header);
    header.set_control(true);
    header.base_sequence = -1;
    producers.check_marker(&header, marker(committed)).unwrap();
    producers.apply_marker(&header, marker(committed))
}

/// What a restart leaves.
fn reloaded(producers: &Producers) -> Producers {
    Producers::load(producers.store(), i64::MIN)
}

#[test]
fn sequences_follow_each_other() {
    let mut producers = Producers::default();
    assert_eq!(
        append(&mut producers, batch(0, 7, 3, 0)),
        Ok(Verdict::Append)
    );
    assert_eq!(
        append(&mut producers, batch(0, 10, 1, 3)),
        Ok(Verdict::Append)
    );
    for bad in [12, 9, 0, 5] {
        assert_eq!(
            append(&mut producers, batch(0, bad, 1, 4)),
            Err(ErrorCode::OutOfOrderSequenceNumber)
        );
    }
    let mut after = reloaded(&producers);
    assert_eq!(append(&mut after, batch(0, 11, 1, 4)), Ok(Verdict::Append));
}

#[test]
fn a_retry_of_the_last_five_batches_gets_the_first_answer() {
    let mut producers = Producers::default();
    for n in 0..6 {
        append(&mut producers, batch(0, n * 2, 2, i64::from(n) * 10)).unwrap();
    }
    for n in 1..6 {
        let Ok(Verdict::Duplicate(known)) = append(&mut producers, batch(0, n * 2, 2, 99)) else {
            panic!("batch {n} is remembered");
        };
        assert_eq!(known.first_offset, i64::from(n) * 10);
        assert_eq!(known.timestamp, 1000 + i64::from(n) * 10);
    }
    assert_eq!(
        append(&mut producers, batch(0, 0, 2, 99)),
        Err(ErrorCode::OutOfOrderSequenceNumber)
    );
    let mut after = reloaded(&producers);
    assert!(matches!(
        append(&mut after, batch(0, 10, 2, 99)),
        Ok(Verdict::Duplicate(_))
    ));
}

#[test]
fn sequences_wrap_also_inside_a_batch_and_across_a_restart() {
    let mut producers = Producers::default();
    append(&mut producers, batch(0, i32::MAX - 1, 4, 0)).unwrap();
    let mut after = reloaded(&producers);
    assert!(matches!(
        append(&mut after, batch(0, i32::MAX - 1, 4, 9)),
        Ok(Verdict::Duplicate(_))
    ));
    assert_eq!(append(&mut after, batch(0, 2, 1, 4)), Ok(Verdict::Append));
    let mut producers = Producers::default();
    append(&mut producers, batch(0, i32::MAX, 1, 0)).unwrap();
    assert_eq!(
        append(&mut producers, batch(0, 0, 1, 1)),
        Ok(Verdict::Append)
    );
}

#[test]
fn a_new_epoch_begins_at_zero_and_fences_the_old() {
    let mut producers = Producers::default();
    append(&mut producers, batch(4, 0, 1, 0)).unwrap();
    assert_eq!(
        append(&mut producers, batch(5, 1, 1, 1)),
        Err(ErrorCode::OutOfOrderSequenceNumber)
    );
    append(&mut producers, batch(5, 0, 1, 1)).unwrap();
    assert_eq!(
        append(&mut producers, batch(4, 1, 1, 2)),
        Err(ErrorCode::InvalidProducerEpoch)
    );
}

#[test]
fn an_open_transaction_holds_the_stable_offset_until_its_marker() {
    let mut producers = Producers::default();
    append(&mut producers, transactional(batch(0, 0, 2, 10))).unwrap();
    append(&mut producers, of(2, transactional(batch(0, 0, 1, 12)))).unwrap();
    assert_eq!(producers.first_open(), Some(10));
    assert_eq!(
        append(&mut producers, batch(0, 2, 1, 13)),
        Err(ErrorCode::InvalidTxnState)
    );
    let mut producers = reloaded(&producers);
    let done = end(&mut producers, batch(0, 0, 1, 13), false).unwrap();
    assert_eq!((done.first_offset, done.last_offset), (10, 13));
    assert_eq!(done.last_stable_offset, 12);
    assert!(done.aborted().is_some());
    let done = end(&mut producers, of(2, batch(0, 0, 1, 14)), true).unwrap();
    assert_eq!((done.last_stable_offset, done.aborted()), (15, None));
    assert_eq!(producers.first_open(), None);
    assert_eq!(end(&mut producers, batch(0, 0, 1, 15), true), None);
}

#[test]
fn a_marker_of_a_higher_epoch_lets_the_sequences_begin_anew() {
    let mut producers = Producers::default();
    append(&mut producers, transactional(batch(0, 0, 2, 0))).unwrap();
    end(&mut producers, batch(1, 0, 1, 2), true).unwrap();
    let stored = producers.store()[0];
    assert_eq!(stored.last_sequence, -1);
    assert_eq!((stored.last_offset, stored.offset_delta), (-1, 0));
    assert_eq!(stored.coordinator_epoch, 3);
    assert_eq!(
        append(&mut producers, transactional(batch(0, 2, 1, 3))),
        Err(ErrorCode::InvalidProducerEpoch)
    );
    assert_eq!(
        append(&mut producers, transactional(batch(1, 2, 1, 3))),
        Err(ErrorCode::OutOfOrderSequenceNumber)
    );
    append(&mut producers, transactional(batch(1, 0, 1, 3))).unwrap();
}

#[test]
fn a_coordinator_of_an_older_epoch_is_fenced() {
    let mut producers = Producers::default();
    append(&mut producers, transactional(batch(0, 0, 2, 0))).unwrap();
    end(&mut producers, batch(0, 0, 1, 2), true);
    let old = Marker {
        committed: true,
        coordinator_epoch: 2,
    };
    assert_eq!(
        producers.check_marker(&batch(0, 0, 1, 3), old),
        Err(ErrorCode::TransactionCoordinatorFenced)
    );
}

#[test]
fn the_first_batch_of_a_transaction_needs_its_proof() {
    let mut producers = Producers::default();
    let first = transactional(batch(0, 0, 1, 0));
    let ask = |producers: &Producers, header: &Header, guard| {
        producers.check(header, Origin::Client, Proof::Needed(guard))
    };
    assert_eq!(
        ask(&producers, &first, None),
        Err(ErrorCode::InvalidTxnState)
    );
    let guard = producers.begin_verification(&first, true, 0);
    assert!(guard.is_some());
    assert_eq!(producers.begin_verification(&first, true, 0), guard);
    assert_eq!(ask(&producers, &first, guard), Ok(Verdict::Append));
    let later = transactional(batch(0, 1, 1, 0));
    assert_eq!(
        ask(&producers, &later, guard),
        Err(ErrorCode::OutOfOrderSequenceNumber)
    );
    producers.apply(&first);
    assert_eq!(producers.begin_verification(&later, true, 0), None);
    assert_eq!(ask(&producers, &later, None), Ok(Verdict::Append));
    end(&mut producers, batch(0, 0, 1, 1), true);
    assert_eq!(
        ask(&producers, &transactional(batch(0, 1, 1, 2)), guard),
        Err(ErrorCode::InvalidTxnState)
    );
}

#[test]
fn idle_producers_are_forgotten_unless_a_transaction_is_open() {
    let mut producers = Producers::default();
    append(&mut producers, batch(0, 0, 1, 0)).unwrap();
    append(&mut producers, of(2, transactional(batch(0, 0, 1, 1)))).unwrap();
    producers.expire(999);
    assert_eq!(producers.len(), 2);
    producers.expire(5000);
    assert_eq!(producers.active()[0].producer_id, 2);
    assert_eq!(producers.active()[0].txn_start_offset, Some(1));
    assert_eq!(Producers::load(producers.store(), 9000).len(), 1);
}

#[test]
fn a_follower_takes_its_leaders_word() {
    let mut producers = Producers::default();
    append(&mut producers, batch(4, 0, 1, 0)).unwrap();
    let odd = batch(3, 77, 1, 1);
    assert_eq!(
        producers.check(&odd, Origin::Replication, OPEN),
        Ok(Verdict::Append)
    );
}
