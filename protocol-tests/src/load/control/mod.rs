//! The control broker: real frames, checksums, appends and sendfile, and nothing else. What it costs
//! is what the kernel takes for the work itself; a comparison on another machine is made with it.
//!
//! One thread waits for all connections. It keeps no promise that the work does not need: records
//! are not looked at, topics have no options, and nobody else is asked.
//!
//! - `connection`: bytes in, pieces out. - `partition`: one file, and where its batches begin.
//! - `answer`: what the requests mean.

mod answer;
mod connection;
mod partition;

use std::collections::HashMap;
use std::io;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use self::answer::{Poll, Topics};
use self::connection::Connection;

/// The token of the listening socket; connections count up from one.
const LISTENER: u64 = 0;

/// Bytes read at once; what is left of a frame behind them is read into its own place.
const READ: usize = 128 << 10;

/// Serves on a port with its files in a folder, until it is killed.
pub fn serve(port: u16, folder: &Path) -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    listener.set_nonblocking(true)?;
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    epoll.add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, LISTENER))?;
    let mut server = Server {
        topics: Topics::open(folder)?,
        listener,
        epoll,
        connections: HashMap::new(),
        next: LISTENER + 1,
        polls: Vec::new(),
        scratch: vec![0; READ],
    };
    println!("Kafka Server started");
    loop {
        server.turn()?;
    }
}

struct Server {
    topics: Topics,
    listener: TcpListener,
    epoll: Epoll,
    connections: HashMap<u64, Connection>,
    next: u64,
    /// Fetches that wait for records.
    polls: Vec<(u64, Poll)>,
    scratch: Vec<u8>,
}

impl Server {
    fn turn(&mut self) -> io::Result<()> {
        let mut events = [EpollEvent::empty(); 64];
        let count = match self.epoll.wait(&mut events, self.patience()) {
            // It was stopped and went on.
            Err(nix::errno::Errno::EINTR) => 0,
            count => count?,
        };
        for event in &events[..count] {
            match event.data() {
                LISTENER => self.accept()?,
                token => self.serve(token, event.events()),
            }
        }
        if !self.polls.is_empty() {
            self.answer_polls();
        }
        Ok(())
    }

    /// Until the first of the waiting fetches must be answered.
    fn patience(&self) -> EpollTimeout {
        let first = self.polls.iter().map(|(_, poll)| poll.deadline).min();
        first.map_or(EpollTimeout::NONE, |first| {
            let left = first.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
            EpollTimeout::try_from(left).unwrap_or(EpollTimeout::NONE)
        })
    }

    fn accept(&mut self) -> io::Result<()> {
        while let Ok((stream, _)) = self.listener.accept() {
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            let token = self.next;
            self.next += 1;
            let event = EpollEvent::new(EpollFlags::EPOLLIN, token);
            self.epoll.add(stream.as_fd(), event)?;
            self.connections.insert(token, Connection::new(stream));
        }
        Ok(())
    }

    /// Reads, answers and writes; a connection with trouble is dropped.
    fn serve(&mut self, token: u64, ready: EpollFlags) {
        let Some(connection) = self.connections.get_mut(&token) else {
            return;
        };
        let mut kept = Ok(true);
        if ready.intersects(EpollFlags::EPOLLIN | EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR) {
            let (topics, polls) = (&mut self.topics, &mut self.polls);
            kept = connection.read(&mut self.scratch, |frame, out| {
                if let Some(poll) = topics.answer(frame, out)? {
                    polls.push((token, poll));
                }
                Ok(())
            });
        }
        self.finish(token, kept);
    }

    /// Writes what can be written and asks to be told when more can.
    fn finish(&mut self, token: u64, kept: io::Result<bool>) {
        let Some(connection) = self.connections.get_mut(&token) else {
            return;
        };
        let kept = kept.and_then(|open| connection.write().map(|()| open));
        if !matches!(kept, Ok(true)) {
            self.connections.remove(&token);
            self.polls.retain(|(of, _)| *of != token);
            return;
        }
        if let Some(wanted) = connection.wanted() {
            let mut event = EpollEvent::new(wanted, token);
            // The socket is registered as long as the connection lives.
            let _ = self.epoll.modify(connection.stream(), &mut event);
        }
    }

    fn answer_polls(&mut self) {
        let now = Instant::now();
        let (due, waiting): (Vec<_>, Vec<_>) = std::mem::take(&mut self.polls)
            .into_iter()
            .partition(|(_, poll)| poll.deadline <= now || self.topics.has_more(poll));
        self.polls = waiting;
        for (token, poll) in due {
            if let Some(connection) = self.connections.get_mut(&token) {
                self.topics.answer_poll(&poll, connection.out());
                self.finish(token, Ok(true));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::broker::free_port;
    use crate::load::batch::Batch;
    use crate::load::consume::{self, Drain};
    use crate::load::frames::Target;
    use crate::load::paced::Pace;
    use crate::load::produce::{self, Load};
    use crate::load::{idle, tail};
    use crate::wire::Connection;

    /// A control broker in a thread, which ends with the test program.
    fn started() -> (u16, tempfile::TempDir) {
        let port = free_port();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        thread::spawn(move || serve(port, &path).unwrap());
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            thread::yield_now();
        }
        (port, folder)
    }

    fn target(port: u16, topic: &str) -> Target {
        Target {
            topic: Connection::open_port(port).create_topic(topic, 1),
            partition: 0,
        }
    }

    #[test]
    fn what_is_produced_can_be_fetched() {
        let (port, _folder) = started();
        let load = Load {
            port,
            targets: vec![target(port, "a"), target(port, "b")],
            batch: Batch::new(40_000, 9),
            acks: 1,
            depth: 4,
            requests: 50,
        };
        assert_eq!(produce::run(&load).unwrap().bytes, 2 * 50 * 40_000);
        let drain = Drain {
            port,
            targets: load.targets.clone(),
            batch: load.batch,
            fetch_bytes: 200_000,
            bytes: 4_000_000,
        };
        let drained = consume::run(&drain).unwrap();
        assert_eq!(drained.bytes, 8_000_000);
        assert_eq!(drained.requests, 40);
    }

    #[test]
    fn a_consumer_at_the_end_gets_every_record() {
        let (port, _folder) = started();
        let pace = Pace {
            port,
            target: target(port, "a"),
            batch: Batch::new(1024, 1),
            acks: 1,
            rate: 2000,
            requests: 200,
            warm_up: 20,
        };
        let tail = tail::run(&pace).unwrap();
        assert_eq!(tail.acknowledged.len(), 180);
        assert_eq!(tail.received.len(), 180);
    }

    #[test]
    fn a_broken_batch_is_refused() {
        let (port, _folder) = started();
        let mut load = Load {
            port,
            targets: vec![target(port, "a")],
            batch: Batch::new(1024, 1),
            acks: 1,
            depth: 1,
            requests: 1,
        };
        *load.batch.bytes.last_mut().unwrap() ^= 1;
        assert!(produce::run(&load).is_err());
    }

    #[test]
    fn idle_connections_and_long_polls_are_let_in() {
        let (port, _folder) = started();
        let mut idle = idle::open(port, 20).unwrap();
        idle::poll_long(&mut idle, &[target(port, "a")], 60_000).unwrap();
        assert_eq!(idle.len(), 20);
    }
}
