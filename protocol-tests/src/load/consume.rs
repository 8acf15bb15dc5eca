//! Consumers that drain: the head of each answer is read, its records are thrown away inside the
//! kernel (`MSG_TRUNC`).

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::socket::{MsgFlags, recv};

use super::batch::Batch;
use super::frames::{Appetite, FETCH_HEAD, FetchFrame, Fetched, Target, read_fetched};
use super::produce::correlation;
use super::{connect, wrong};

/// Bytes of the answer that are read; a length may take four more than at its shortest.
const LOOKED_AT: usize = FETCH_HEAD + 4;

/// The most bytes thrown away at once.
const DRAIN: usize = 4 << 20;

/// What is fetched: a partition full of one and the same batch, again and again.
#[derive(Clone, Debug)]
pub struct Drain {
    pub port: u16,
    pub targets: Vec<Target>,
    pub batch: Batch,
    pub fetch_bytes: i32,
    /// Bytes of records for each consumer in all.
    pub bytes: u64,
}

/// What was fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Drained {
    pub requests: u64,
    /// Bytes of records, cut batches at the ends of answers included.
    pub bytes: u64,
    pub elapsed: Duration,
}

/// Runs the consumers to their end.
pub fn run(drain: &Drain) -> io::Result<Drained> {
    let began = Instant::now();
    let mut all = Drained::default();
    let never = AtomicBool::new(false);
    thread::scope(|scope| {
        let running: Vec<_> = drain
            .targets
            .iter()
            .map(|target| scope.spawn(|| consume(drain, *target, &never)))
            .collect();
        running.into_iter().try_for_each(|one| {
            let one = one.join().unwrap_or_else(|_| Err(wrong("a panic")))?;
            all.requests += one.requests;
            all.bytes += one.bytes;
            Ok::<_, io::Error>(())
        })
    })?;
    all.elapsed = began.elapsed();
    Ok(all)
}

/// Runs a consumer of the first target, until it is over or told to stop.
pub fn run_until(drain: &Drain, stop: &AtomicBool) -> io::Result<Drained> {
    consume(drain, drain.targets[0], stop)
}

fn consume(drain: &Drain, target: Target, stop: &AtomicBool) -> io::Result<Drained> {
    let appetite = Appetite {
        max_wait_ms: 500,
        min_bytes: 1,
        max_bytes: drain.fetch_bytes,
    };
    let mut consumer = Consumer::open(drain.port, target, appetite)?;
    let mut done = Drained::default();
    let mut offset = 0;
    while done.bytes < drain.bytes && !stop.load(Ordering::Relaxed) {
        let fetched = consumer.fetch(offset)?;
        consumer.drain()?;
        done.requests += 1;
        done.bytes += fetched.records as u64;
        let batches = fetched.records / drain.batch.bytes.len();
        offset += i64::try_from(batches).map_err(wrong)? * i64::from(drain.batch.records);
        if batches == 0 || offset >= fetched.high_watermark {
            if offset == 0 {
                return Err(wrong("there is nothing to fetch"));
            }
            offset = 0;
        }
    }
    Ok(done)
}

/// One fetching connection.
pub(super) struct Consumer {
    stream: TcpStream,
    frame: FetchFrame,
    sent: u64,
    head: [u8; LOOKED_AT],
    /// Bytes of the answer that are not read yet.
    left: usize,
    trash: Vec<u8>,
}

impl Consumer {
    pub(super) fn open(port: u16, target: Target, appetite: Appetite) -> io::Result<Self> {
        Ok(Self {
            stream: connect(port)?,
            frame: FetchFrame::new(target, appetite),
            sent: 0,
            head: [0; LOOKED_AT],
            left: 0,
            trash: vec![0; DRAIN],
        })
    }

    /// Asks, and reads the head of the answer.
    pub(super) fn fetch(&mut self, offset: i64) -> io::Result<Fetched> {
        let id = correlation(self.sent);
        self.sent += 1;
        self.stream.write_all(self.frame.at(id, offset))?;
        // The shortest answer, one without records, is two bytes longer than its head.
        self.head = [0; LOOKED_AT];
        let short = FETCH_HEAD + 2;
        self.stream.read_exact(&mut self.head[..short])?;
        let size = super::frames::i32_at(&self.head, 0);
        let frame = 4 + usize::try_from(size).map_err(wrong)?;
        let looked_at = frame.min(LOOKED_AT);
        if looked_at > short {
            self.stream.read_exact(&mut self.head[short..looked_at])?;
        }
        self.left = frame.saturating_sub(looked_at);
        read_fetched(&self.head[..looked_at], id)
    }

    /// Throws the rest of the answer away.
    pub(super) fn drain(&mut self) -> io::Result<()> {
        let flags = MsgFlags::MSG_TRUNC | MsgFlags::MSG_WAITALL;
        while self.left > 0 {
            let most = self.left.min(DRAIN);
            match recv(self.stream.as_raw_fd(), &mut self.trash[..most], flags)? {
                0 => return Err(wrong("the broker closed the connection")),
                taken => self.left -= taken,
            }
        }
        Ok(())
    }

    /// Reads the rest of the answer; the records, from the first one on.
    pub(super) fn read(&mut self, fetched: &Fetched) -> io::Result<&[u8]> {
        let begun = LOOKED_AT.min(fetched.frame);
        if self.trash.len() < fetched.frame {
            self.trash.resize(fetched.frame, 0);
        }
        self.trash[..begun].copy_from_slice(&self.head[..begun]);
        self.stream
            .read_exact(&mut self.trash[begun..fetched.frame])?;
        self.left = 0;
        Ok(&self.trash[fetched.records_at..fetched.records_at + fetched.records])
    }
}

/// One fetch of up to 1 MiB; the bytes of records that came.
pub fn fetch_once(port: u16, target: Target, offset: i64) -> io::Result<usize> {
    let appetite = Appetite {
        max_wait_ms: 0,
        min_bytes: 1,
        max_bytes: 1 << 20,
    };
    let mut consumer = Consumer::open(port, target, appetite)?;
    let fetched = consumer.fetch(offset)?;
    consumer.drain()?;
    Ok(fetched.records)
}
