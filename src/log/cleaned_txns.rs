//! Transactions as a cleaning meets them: which batches were aborted, and from when on a marker has
//! nothing left to mark (org.apache.kafka.storage.internals.log.CleanedTransactionMetadata).

use std::collections::{BTreeMap, HashMap, HashSet};

use super::producers::Marker;
use super::txn_index::AbortedTxn;
use crate::protocol::records::batch::Header;

/// The transactions between the first and the last batch met so far.
#[derive(Debug, Default)]
pub(crate) struct CleanedTxns {
    /// Aborted, by first offset and marker; not reached yet.
    ahead: BTreeMap<(i64, i64), AbortedTxn>,
    /// Aborted and under way, by producer, and whether a batch of theirs was met.
    aborted: HashMap<i64, (AbortedTxn, bool)>,
    /// Committed and under way, of which a batch was met.
    committed: HashSet<i64>,
}

/// What a marker comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarkerFate {
    /// Batches of its transaction were met; an aborted one stays in the index.
    Keep(Option<AbortedTxn>),
    /// Nothing of its transaction is left.
    Spent,
}

impl CleanedTxns {
    /// Learns of transactions that were aborted, further on.
    pub(crate) fn add(&mut self, aborted: impl IntoIterator<Item = AbortedTxn>) {
        for one in aborted {
            self.ahead.insert((one.first_offset, one.last_offset), one);
        }
    }

    /// Meets a batch of records; whether it was aborted.
    pub(crate) fn meet(&mut self, header: &Header) -> bool {
        self.advance(header.last_offset());
        if !header.is_transactional() {
            return false;
        }
        match self.aborted.get_mut(&header.producer_id) {
            Some((_, met)) => {
                *met = true;
                true
            }
            None => {
                self.committed.insert(header.producer_id);
                false
            }
        }
    }

    /// Meets a control batch; `marker` is `None` when its record is gone or says something else.
    pub(crate) fn meet_marker(&mut self, header: &Header, marker: Option<Marker>) -> MarkerFate {
        self.advance(header.last_offset());
        let id = header.producer_id;
        let (kept, aborted) = match marker {
            None if header.records_count == 0 => (false, None),
            None => (true, None),
            Some(Marker {
                committed: true, ..
            }) => (self.committed.remove(&id), None),
            Some(Marker {
                committed: false, ..
            }) => match self.aborted.remove(&id) {
                Some((aborted, true)) => (true, Some(aborted)),
                Some((_, false)) | None => (false, None),
            },
        };
        match kept {
            true => MarkerFate::Keep(aborted),
            false => MarkerFate::Spent,
        }
    }

    fn advance(&mut self, offset: i64) {
        while let Some(next) = self.ahead.first_entry() {
            if next.key().0 > offset {
                return;
            }
            let aborted = next.remove();
            self.aborted
                .entry(aborted.producer_id)
                .or_insert((aborted, false));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::testkit::{marker_batch, producer_batch};
    use crate::protocol::records::batch::Batch;

    fn data(id: i64, offset: i64) -> Header {
        let mut header = Batch::parse(&producer_batch(id, 0, 1, true))
            .unwrap()
            .header;
        header.base_offset = offset;
        header
    }

    fn end(id: i64, offset: i64, committed: bool) -> (Header, Option<Marker>) {
        let mut header = Batch::parse(&marker_batch(id, committed)).unwrap().header;
        header.base_offset = offset;
        let marker = Marker {
            committed,
            coordinator_epoch: 1,
        };
        (header, Some(marker))
    }

    fn aborted(id: i64, first: i64, last: i64) -> AbortedTxn {
        AbortedTxn {
            producer_id: id,
            first_offset: first,
            last_offset: last,
            last_stable_offset: last + 1,
        }
    }

    #[test]
    fn a_marker_is_spent_once_its_batches_are_gone() {
        let mut txns = CleanedTxns::default();
        txns.add([aborted(1, 0, 2), aborted(1, 6, 7)]);
        assert!(txns.meet(&data(1, 0)));
        assert!(!txns.meet(&data(2, 1)));
        let (header, marker) = end(1, 2, false);
        let kept = MarkerFate::Keep(Some(aborted(1, 0, 2)));
        assert_eq!(txns.meet_marker(&header, marker), kept);
        // The same producer's next transaction is committed.
        assert!(!txns.meet(&data(1, 3)));
        let (header, marker) = end(1, 4, true);
        assert_eq!(txns.meet_marker(&header, marker), MarkerFate::Keep(None));
        let (header, marker) = end(2, 5, true);
        assert_eq!(txns.meet_marker(&header, marker), MarkerFate::Keep(None));
        // Its third one was compacted before: only the marker is left.
        let (header, marker) = end(1, 7, false);
        assert_eq!(txns.meet_marker(&header, marker), MarkerFate::Spent);
        let (header, marker) = end(2, 8, true);
        assert_eq!(txns.meet_marker(&header, marker), MarkerFate::Spent);
    }

    #[test]
    fn an_emptied_control_batch_is_spent_and_an_unknown_one_kept() {
        let mut txns = CleanedTxns::default();
        let (mut header, _) = end(1, 0, true);
        assert_eq!(txns.meet_marker(&header, None), MarkerFate::Keep(None));
        header.records_count = 0;
        assert_eq!(txns.meet_marker(&header, None), MarkerFate::Spent);
    }
}
