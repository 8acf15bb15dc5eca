//! Produce at intended times, whatever the answers do (an open loop): a request that a stalled
//! broker or a late generator held up is charged from the moment it was meant to leave, so that no
//! stall hides the requests behind it.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use super::batch::{self, Batch};
use super::frames::{ProduceFrame, Target, read_produced, set_correlation};
use super::produce::{correlation, whole};
use super::{PATIENCE, connect, latencies, note, wrong};

/// How long before a send the clock is watched without sleeping.
const SPIN: Duration = Duration::from_micros(40);

/// What is sent, and when.
#[derive(Clone, Debug)]
pub struct Pace {
    pub port: u16,
    pub target: Target,
    pub batch: Batch,
    pub acks: i16,
    /// Requests a second.
    pub rate: u32,
    pub requests: u64,
    /// The first requests, which are not counted.
    pub warm_up: u64,
}

/// Runs the load to its end: latencies from the intended times.
pub fn run(pace: &Pace) -> io::Result<Histogram<u64>> {
    run_stamped(pace, None)
}

/// The same; with an epoch, the value of each batch's first record begins with its intended time in
/// nanoseconds since then.
pub(super) fn run_stamped(pace: &Pace, epoch: Option<Instant>) -> io::Result<Histogram<u64>> {
    let frame = ProduceFrame::new(pace.target, &pace.batch, pace.acks);
    let stream = connect(pace.port)?;
    stream.set_nonblocking(true)?;
    let mut flight = Flight {
        stream,
        stamp: epoch.map(|epoch| (epoch, frame.batch_at, pace.batch.first_value())),
        frame: frame.bytes,
        began: Instant::now() + Duration::from_millis(2),
        gap: Duration::from_secs(1) / pace.rate,
        sent: 0,
        answered: 0,
        answers: vec![0; 64 << 10],
        filled: 0,
        latencies: latencies(),
        warm_up: pace.warm_up,
    };
    flight.run(pace.requests)?;
    Ok(flight.latencies)
}

struct Flight {
    stream: TcpStream,
    frame: Vec<u8>,
    stamp: Option<(Instant, usize, usize)>,
    began: Instant,
    gap: Duration,
    sent: u64,
    answered: u64,
    answers: Vec<u8>,
    filled: usize,
    latencies: Histogram<u64>,
    warm_up: u64,
}

impl Flight {
    fn run(&mut self, requests: u64) -> io::Result<()> {
        while self.answered < requests {
            let now = Instant::now();
            while self.sent < requests && self.intended(self.sent) <= now {
                self.send()?;
            }
            if self.receive()? {
                continue;
            }
            let wait = if self.sent < requests {
                let left = self.intended(self.sent).saturating_duration_since(now);
                left.saturating_sub(SPIN)
            } else {
                PATIENCE
            };
            if !wait.is_zero() {
                self.wait(PollFlags::POLLIN, wait)?;
            }
        }
        Ok(())
    }

    fn intended(&self, number: u64) -> Instant {
        self.began
            + self
                .gap
                .saturating_mul(u32::try_from(number).unwrap_or(u32::MAX))
    }

    fn send(&mut self) -> io::Result<()> {
        set_correlation(&mut self.frame, correlation(self.sent));
        if let Some((epoch, batch_at, value_at)) = self.stamp {
            let intended = self.intended(self.sent).duration_since(epoch).as_nanos();
            let intended = u64::try_from(intended).map_err(wrong)?;
            let rest = self.frame.len() - 3;
            let batch = &mut self.frame[batch_at..rest];
            batch[value_at..value_at + 8].copy_from_slice(&intended.to_be_bytes());
            batch::seal(batch);
        }
        self.sent += 1;
        let mut from = 0;
        while from < self.frame.len() {
            match self.stream.write(&self.frame[from..]) {
                Ok(written) => from += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait(PollFlags::POLLOUT, PATIENCE)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes the answers that are there; whether there were any.
    fn receive(&mut self) -> io::Result<bool> {
        match self.stream.read(&mut self.answers[self.filled..]) {
            Ok(0) => return Err(wrong("the broker closed the connection")),
            Ok(read) => self.filled += read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
        let now = Instant::now();
        let mut at = 0;
        while let Some(answer) = whole(&self.answers[at..self.filled])? {
            read_produced(answer, correlation(self.answered))?;
            if self.answered >= self.warm_up {
                let latency = now.duration_since(self.intended(self.answered));
                note(&mut self.latencies, latency);
            }
            self.answered += 1;
            at += answer.len();
        }
        self.answers.copy_within(at..self.filled, 0);
        self.filled -= at;
        Ok(true)
    }

    fn wait(&self, what: PollFlags, limit: Duration) -> io::Result<()> {
        let mut sockets = [PollFd::new(self.stream.as_fd(), what)];
        let ready = ppoll(&mut sockets, Some(TimeSpec::from_duration(limit)), None)?;
        if ready == 0 && limit == PATIENCE {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }
}
