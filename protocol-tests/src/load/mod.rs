//! The load generator: requests encoded beforehand, patched and sent; answers hardly looked at.
//!
//! What it sends is what a client sends, to the byte: batches that pass every check, in requests of
//! the newest versions. What it leaves out is a client's own work, so that its CPU time stays far
//! below the broker's.
//!
//! - `batch`: valid record batches. - `frames`: requests around them, and where answers say what.
//! - `produce`: so many requests in flight. - `paced`: requests at intended times.
//! - `consume`: fetches that drain. - `tail`: records followed from their intended time.
//! - `commits`: groups that commit. - `idle`: connections that wait.
//! - `control`: a broker that does the bare kernel work.

pub mod batch;
pub mod commits;
pub mod consume;
pub mod control;
pub mod frames;
pub mod idle;
pub mod paced;
pub mod produce;
pub mod tail;

use std::fmt::Display;
use std::io;
use std::net::TcpStream;
use std::time::Duration;

use hdrhistogram::Histogram;

/// How long a broker may leave a request without an answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A connection as a client opens it.
pub(crate) fn connect(port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// The error of an answer that is none.
pub(crate) fn wrong(what: impl Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_string())
}

/// Latencies in nanoseconds, up to a minute, to three digits.
pub fn latencies() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("the bounds are in order")
}

/// Adds a latency; what lasted longer than a minute counts as a minute.
pub(crate) fn note(latencies: &mut Histogram<u64>, latency: Duration) {
    let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
    latencies.saturating_record(nanos.max(1));
}
