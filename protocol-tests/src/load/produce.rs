//! Produce with so many requests in flight on each connection: the next goes out when an answer
//! comes in (a closed loop).

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use super::batch::Batch;
use super::frames::{ProduceFrame, Target, i32_at, read_produced, set_correlation};
use super::{connect, wrong};

/// Room for the answers of one read.
const ANSWERS: usize = 64 << 10;

/// What is sent.
#[derive(Clone, Debug)]
pub struct Load {
    pub port: u16,
    /// One connection for each; a partition may come again.
    pub targets: Vec<Target>,
    pub batch: Batch,
    pub acks: i16,
    /// Requests in flight on each connection.
    pub depth: usize,
    /// Requests of each connection in all.
    pub requests: u64,
}

/// What was acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Produced {
    pub requests: u64,
    /// Bytes of batches.
    pub bytes: u64,
    pub elapsed: Duration,
}

/// Runs the load to its end.
pub fn run(load: &Load) -> io::Result<Produced> {
    let began = Instant::now();
    thread::scope(|scope| {
        let running: Vec<_> = load
            .targets
            .iter()
            .map(|target| scope.spawn(|| Loop::open(load, *target)?.run(load.requests)))
            .collect();
        running
            .into_iter()
            .try_for_each(|one| one.join().unwrap_or_else(|_| Err(wrong("a panic"))))
    })?;
    let requests = load.requests * load.targets.len() as u64;
    Ok(Produced {
        requests,
        bytes: requests * load.batch.bytes.len() as u64,
        elapsed: began.elapsed(),
    })
}

/// One connection: as many frames as may be in flight lie side by side, so that those which are due
/// together leave in one write.
struct Loop {
    stream: TcpStream,
    frames: Vec<u8>,
    frame: usize,
    depth: u64,
    sent: u64,
    answers: Answers,
}

impl Loop {
    fn open(load: &Load, target: Target) -> io::Result<Self> {
        let frame = ProduceFrame::new(target, &load.batch, load.acks).bytes;
        Ok(Self {
            stream: connect(load.port)?,
            frames: frame.repeat(load.depth),
            frame: frame.len(),
            depth: load.depth as u64,
            sent: 0,
            answers: Answers::new(),
        })
    }

    fn run(mut self, requests: u64) -> io::Result<()> {
        while self.answers.count < requests {
            self.send(requests.min(self.answers.count + self.depth))?;
            self.answers.receive(&mut self.stream)?;
        }
        Ok(())
    }

    /// Sends up to the request of this number.
    fn send(&mut self, until: u64) -> io::Result<()> {
        while self.sent < until {
            let first = index(self.sent % self.depth);
            let count = index((until - self.sent).min(self.depth - first as u64));
            for at in first..first + count {
                let frame = &mut self.frames[at * self.frame..][..self.frame];
                set_correlation(frame, correlation(self.sent));
                self.sent += 1;
            }
            let due = first * self.frame..(first + count) * self.frame;
            self.stream.write_all(&self.frames[due])?;
        }
        Ok(())
    }
}

/// The answers of one connection.
struct Answers {
    count: u64,
    bytes: Vec<u8>,
    filled: usize,
}

impl Answers {
    fn new() -> Self {
        Self {
            count: 0,
            bytes: vec![0; ANSWERS],
            filled: 0,
        }
    }

    /// Reads once, and checks the answers that are whole.
    fn receive(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        let read = stream.read(&mut self.bytes[self.filled..])?;
        if read == 0 {
            return Err(wrong("the broker closed the connection"));
        }
        self.filled += read;
        let mut at = 0;
        while let Some(answer) = whole(&self.bytes[at..self.filled])? {
            read_produced(answer, correlation(self.count))?;
            self.count += 1;
            at += answer.len();
        }
        self.bytes.copy_within(at..self.filled, 0);
        self.filled -= at;
        Ok(())
    }
}

/// One connection for batches that are all different.
pub struct Stream {
    stream: TcpStream,
    target: Target,
    acks: i16,
    sent: u64,
    answers: Answers,
}

impl Stream {
    pub fn open(port: u16, target: Target, acks: i16) -> io::Result<Self> {
        Ok(Self {
            stream: connect(port)?,
            target,
            acks,
            sent: 0,
            answers: Answers::new(),
        })
    }

    /// Sends a batch; one request more may be in flight meanwhile.
    pub fn send(&mut self, batch: &Batch) -> io::Result<()> {
        let mut frame = ProduceFrame::new(self.target, batch, self.acks).bytes;
        set_correlation(&mut frame, correlation(self.sent));
        self.sent += 1;
        self.stream.write_all(&frame)?;
        self.wait(1)
    }

    /// Waits until all is acknowledged.
    pub fn finish(mut self) -> io::Result<()> {
        self.wait(0)
    }

    fn wait(&mut self, in_flight: u64) -> io::Result<()> {
        while self.sent - self.answers.count > in_flight {
            self.answers.receive(&mut self.stream)?;
        }
        Ok(())
    }
}

/// The frame at the front, its size included, if all of it is there.
pub(super) fn whole(bytes: &[u8]) -> io::Result<Option<&[u8]>> {
    if bytes.len() < 4 {
        return Ok(None);
    }
    let size = 4 + usize::try_from(i32_at(bytes, 0)).map_err(wrong)?;
    Ok(bytes.get(..size))
}

/// Correlation ids go round.
pub(super) fn correlation(number: u64) -> i32 {
    i32::try_from(number & 0x7fff_ffff).expect("31 bits")
}

fn index(number: u64) -> usize {
    usize::try_from(number).expect("a place in memory")
}
