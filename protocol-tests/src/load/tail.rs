//! Records followed from the moment they were meant to be sent to the moment a consumer that waits
//! at the end has them.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::consume::Consumer;
use super::frames::Appetite;
use super::paced::{self, Pace};
use super::{latencies, note, wrong};

/// Latencies of both ways.
pub struct Tail {
    /// From the intended time to the acknowledgement.
    pub acknowledged: Histogram<u64>,
    /// From the intended time to the consumer.
    pub received: Histogram<u64>,
}

/// Runs the load into an empty partition, with one consumer at its end.
pub fn run(pace: &Pace) -> io::Result<Tail> {
    let epoch = Instant::now();
    thread::scope(|scope| {
        let consumer = scope.spawn(|| follow(pace, epoch));
        let acknowledged = paced::run_stamped(pace, Some(epoch))?;
        let received = consumer.join().unwrap_or_else(|_| Err(wrong("a panic")))?;
        Ok(Tail {
            acknowledged,
            received,
        })
    })
}

fn follow(pace: &Pace, epoch: Instant) -> io::Result<Histogram<u64>> {
    let appetite = Appetite {
        max_wait_ms: 500,
        min_bytes: 1,
        max_bytes: 1 << 20,
    };
    let mut consumer = Consumer::open(pace.port, pace.target, appetite)?;
    let mut latencies = latencies();
    let mut seen = 0;
    while seen < pace.requests {
        let offset = seen * u64::from(pace.batch.records);
        let fetched = consumer.fetch(i64::try_from(offset).map_err(wrong)?)?;
        let records = consumer.read(&fetched)?;
        let now = epoch.elapsed();
        for batch in records.chunks_exact(pace.batch.bytes.len()) {
            let at = pace.batch.first_value();
            let intended = batch[at..at + 8].try_into().expect("eight bytes");
            let intended = Duration::from_nanos(u64::from_be_bytes(intended));
            if seen >= pace.warm_up {
                note(&mut latencies, now.saturating_sub(intended));
            }
            seen += 1;
        }
    }
    Ok(latencies)
}
