//! A witness between clients and a broker: it passes every frame on as it is, and notes what was
//! asked, when, and when the answer came.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use bytes::Bytes;
use kafka_protocol::messages::{ApiKey, ResponseHeader};
use kafka_protocol::protocol::{Decodable, HeaderVersion, Request};

use crate::load::frames::{i16_at, i32_at};

/// A request, and its answer once there is one.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// Connections are counted as they come.
    pub connection: usize,
    pub key: i16,
    pub version: i16,
    pub asked: Instant,
    pub answered: Option<Instant>,
    /// The answer without its size.
    answer: Bytes,
}

impl Exchange {
    /// What was answered, if this was asked and is answered.
    pub fn answer<R: Request>(&self) -> Option<R::Response> {
        self.answered.filter(|_| self.key == R::KEY)?;
        let mut answer = self.answer.clone();
        let header = R::Response::header_version(self.version);
        ResponseHeader::decode(&mut answer, header).expect("the header of an answer");
        Some(R::Response::decode(&mut answer, self.version).expect("an answer of its version"))
    }

    /// The name of what was asked.
    pub fn name(&self) -> String {
        ApiKey::try_from(self.key).map_or_else(|()| self.key.to_string(), |key| format!("{key:?}"))
    }
}

/// Listens on a port of its own; who is to be overheard must be told that port, by
/// `advertised.listeners` too.
pub struct Witness {
    port: u16,
    notes: Notes,
    is_over: Arc<AtomicBool>,
}

type Notes = Arc<Mutex<Vec<Exchange>>>;

impl Witness {
    /// Stands at a port, in front of the broker at another one.
    pub fn stand(port: u16, broker: u16) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port))?;
        let notes = Notes::default();
        let is_over = Arc::new(AtomicBool::new(false));
        let (noted, ends) = (notes.clone(), is_over.clone());
        thread::spawn(move || {
            for (number, client) in listener.incoming().enumerate() {
                if ends.load(Ordering::Acquire) {
                    return;
                }
                // A client that cannot be served sees its connection close.
                if let Ok(client) = client {
                    let _ = pass_on(number, client, broker, &noted);
                }
            }
        });
        Ok(Self {
            port,
            notes,
            is_over,
        })
    }

    pub fn bootstrap(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// All that was asked so far.
    pub fn heard(&self) -> Vec<Exchange> {
        self.notes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        // The listener wakes for one more.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

/// Requests without an answer yet: correlation ids, and where they are noted.
type Open = Arc<Mutex<HashMap<i32, usize>>>;

fn pass_on(number: usize, client: TcpStream, broker: u16, notes: &Notes) -> io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", broker))?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let open = Open::default();
    let up = (
        client.try_clone()?,
        server.try_clone()?,
        notes.clone(),
        open.clone(),
    );
    thread::spawn(move || {
        let (from, to, notes, open) = up;
        each_frame(from, to, |frame| {
            let exchange = Exchange {
                connection: number,
                key: i16_at(frame, 4),
                version: i16_at(frame, 6),
                asked: Instant::now(),
                answered: None,
                answer: Bytes::new(),
            };
            let mut notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
            let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
            open.insert(i32_at(frame, 8), notes.len());
            notes.push(exchange);
        });
    });
    let notes = notes.clone();
    thread::spawn(move || {
        each_frame(server, client, |frame| {
            let mut notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
            let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(at) = open.remove(&i32_at(frame, 4)) {
                notes[at].answered = Some(Instant::now());
                notes[at].answer = Bytes::copy_from_slice(&frame[4..]);
            }
        });
    });
    Ok(())
}

/// Passes frames on until one side is done, and then closes both.
fn each_frame(mut from: TcpStream, mut to: TcpStream, mut note: impl FnMut(&[u8])) {
    while let Ok(frame) = read_frame(&mut from) {
        // The shortest header has a key, a version and a correlation id.
        if frame.len() >= 12 {
            note(&frame);
        }
        if to.write_all(&frame).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

/// A frame with its size.
fn read_frame(from: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; 4];
    from.read_exact(&mut frame)?;
    let size = u32::from_be_bytes(frame[..4].try_into().expect("four bytes"));
    frame.resize(4 + size as usize, 0);
    from.read_exact(&mut frame[4..])?;
    Ok(frame)
}
