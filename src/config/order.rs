//! The order in which Kafka lists the options of a resource: that of a Scala 2.13 mutable hash
//! map, which is fixed by the names and their number. Clients sort for themselves, but whoever
//! compares answers byte by byte sees no difference.

/// Sorts by the bucket that a name falls into, and by hash within a bucket.
pub(crate) fn like_kafka<T>(entries: &mut [T], name: impl Fn(&T) -> &str) {
    let mask = buckets(entries.len()) - 1;
    entries.sort_by_key(|entry| {
        let hash = spread(name(entry));
        (hash & mask, hash.cast_signed())
    });
}

/// The table doubles from sixteen buckets as soon as it would be three quarters full.
fn buckets(entries: usize) -> u32 {
    let mut buckets: u32 = 16;
    while u64::from(buckets) * 3 / 4 <= entries as u64 {
        buckets *= 2;
    }
    buckets
}

/// Java's hash of a text, with its upper half folded in.
fn spread(name: &str) -> u32 {
    let hash = name.encode_utf16().fold(0_u32, |hash, unit| {
        hash.wrapping_mul(31).wrapping_add(u32::from(unit))
    });
    hash ^ (hash >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_groups_options_come_in_the_order_kafka_listed_them() {
        let recorded = [
            "consumer.session.timeout.ms",
            "streams.heartbeat.interval.ms",
            "share.auto.offset.reset",
            "share.record.lock.duration.ms",
            "consumer.heartbeat.interval.ms",
            "share.session.timeout.ms",
            "share.isolation.level",
            "streams.session.timeout.ms",
            "share.heartbeat.interval.ms",
            "streams.num.standby.replicas",
        ];
        let mut names = recorded;
        names.sort_unstable();
        like_kafka(&mut names, |name| name);
        assert_eq!(names, recorded);
    }
}
