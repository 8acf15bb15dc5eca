//! What the requests mean to the control broker.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::create_topics_response::CreatableTopicResult;
use kafka_protocol::messages::delete_topics_response::DeletableTopicResult;
use kafka_protocol::messages::{
    ApiVersionsResponse, CreateTopicsRequest, CreateTopicsResponse, DeleteTopicsRequest,
    DeleteTopicsResponse, RequestHeader, ResponseHeader,
};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request};
use uuid::Uuid;

use super::connection::{Out, Piece};
use super::partition::Partition;
use crate::load::frames::{
    FETCH_HEAD, FETCH_VERSION, PRODUCE_VERSION, Target, i16_at, i32_at, i64_at,
};
use crate::load::wrong;
use crate::wire::with_length;

const PRODUCE: i16 = 0;
const FETCH: i16 = 1;
const API_VERSIONS: i16 = 18;
const CREATE_TOPICS: i16 = 19;
const DELETE_TOPICS: i16 = 20;

/// A Produce answer's bytes behind its size.
const PRODUCED: usize = 62;

/// A fetch that waits.
pub(super) struct Poll {
    correlation: i32,
    target: Target,
    offset: i64,
    max_bytes: u64,
    pub(super) deadline: Instant,
}

/// All partitions.
pub(super) struct Topics {
    folder: PathBuf,
    names: HashMap<String, Uuid>,
    partitions: HashMap<(Uuid, i32), Partition>,
}

impl Topics {
    /// Opens what an earlier process left in the folder.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let mut topics = Self {
            folder: folder.to_owned(),
            names: HashMap::new(),
            partitions: HashMap::new(),
        };
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let parts = name.to_str().and_then(|name| name.rsplit_once('-'));
            if let Some((id, partition)) = parts
                && let (Ok(id), Ok(partition)) = (id.parse(), partition.parse())
            {
                let opened = Partition::open(&entry.path())?;
                topics.partitions.insert((id, partition), opened);
            }
        }
        Ok(topics)
    }

    /// Answers a frame, its size included, or says for what it must wait.
    pub(super) fn answer(&mut self, frame: &mut [u8], out: &mut Out) -> io::Result<Option<Poll>> {
        if frame.len() < 14 {
            return Err(wrong("a frame without a header"));
        }
        let (key, version) = (i16_at(frame, 4), i16_at(frame, 6));
        let correlation = i32_at(frame, 8);
        // Behind the client's name and the header's tags, of which there are none.
        let named = usize::try_from(i16_at(frame, 12)).unwrap_or(0);
        let body = frame
            .get_mut(14 + named + 1..)
            .ok_or_else(|| wrong("no body"))?;
        match (key, version) {
            (PRODUCE, PRODUCE_VERSION) => self.produce(correlation, body, out).map(|()| None),
            (FETCH, FETCH_VERSION) => self.fetch(correlation, body, out),
            (API_VERSIONS, _) => {
                push(out, correlation, 3, &ApiVersionsResponse::default())?;
                Ok(None)
            }
            (CREATE_TOPICS, 7) => self
                .create(correlation, read(frame, 7)?, out)
                .map(|()| None),
            (DELETE_TOPICS, 6) => self
                .delete(correlation, read(frame, 6)?, out)
                .map(|()| None),
            _ => Err(wrong(format!("version {version} of API {key}"))),
        }
    }

    fn produce(&mut self, correlation: i32, body: &mut [u8], out: &mut Out) -> io::Result<()> {
        let mut at = Cursor::new(body);
        at.skip(1 + 2 + 4)?; // no transactional id, acks, timeout
        let target = at.target()?;
        let length = at.varint()?.saturating_sub(1);
        let range = at.range(length)?;
        let partition = self
            .partitions
            .get_mut(&(target.topic, target.partition))
            .ok_or_else(|| wrong("an unknown partition"))?;
        let offset = partition.append(&mut body[range])?;
        let mut answer = Vec::with_capacity(4 + PRODUCED);
        answer.extend(i32::try_from(PRODUCED).expect("small").to_be_bytes());
        answer.extend(correlation.to_be_bytes());
        answer.extend([0, 2]); // tags, one topic
        answer.extend(target.topic.as_bytes());
        answer.push(2); // one partition
        answer.extend(target.partition.to_be_bytes());
        answer.extend(0_i16.to_be_bytes());
        answer.extend(offset.to_be_bytes());
        answer.extend((-1_i64).to_be_bytes()); // append time
        answer.extend(0_i64.to_be_bytes()); // log start offset
        answer.extend([1, 0]); // no record errors, no message
        answer.extend([0, 0]); // tags of partition and topic
        answer.extend(0_i32.to_be_bytes()); // throttle time
        answer.push(0);
        debug_assert_eq!(answer.len(), 4 + PRODUCED);
        // Answers that are ready together leave together.
        match out.back_mut() {
            Some(Piece::Bytes(bytes)) if bytes.len() < 32 << 10 => bytes.extend(answer),
            _ => out.push_back(Piece::Bytes(answer)),
        }
        Ok(())
    }

    fn fetch(&self, correlation: i32, body: &[u8], out: &mut Out) -> io::Result<Option<Poll>> {
        let max_wait = Duration::from_millis(u64::try_from(i32_at(body, 0)).unwrap_or(0));
        let mut at = Cursor::new(body);
        at.skip(4 + 4 + 4 + 1 + 4 + 4)?; // wait, bytes, isolation, session
        let target = at.target()?;
        at.skip(4)?; // leader epoch
        let offset = i64_at(body, at.range(8)?.start);
        at.skip(4 + 8)?; // last fetched epoch, log start offset
        let max_bytes = u64::try_from(i32_at(body, at.range(4)?.start)).unwrap_or(0);
        let poll = Poll {
            correlation,
            target,
            offset,
            max_bytes,
            deadline: Instant::now() + max_wait,
        };
        if !self
            .partitions
            .contains_key(&(target.topic, target.partition))
        {
            return Err(wrong("an unknown partition"));
        }
        if !max_wait.is_zero() && !self.has_more(&poll) {
            return Ok(Some(poll));
        }
        self.answer_poll(&poll, out);
        Ok(None)
    }

    pub(super) fn has_more(&self, poll: &Poll) -> bool {
        self.of(poll)
            .is_none_or(|partition| partition.end_offset > poll.offset)
    }

    fn of(&self, poll: &Poll) -> Option<&Partition> {
        self.partitions
            .get(&(poll.target.topic, poll.target.partition))
    }

    pub(super) fn answer_poll(&self, poll: &Poll, out: &mut Out) {
        let partition = self.of(poll);
        let (at, left) = partition.map_or((0, 0), |partition| partition.find(poll.offset));
        let end = partition.map_or(0, |partition| partition.end_offset);
        let records = usize::try_from(left.min(poll.max_bytes)).expect("it fits");
        let mut head = vec![0; 4];
        head.extend(poll.correlation.to_be_bytes());
        head.push(0); // tags
        head.extend(0_i32.to_be_bytes()); // throttle time
        head.extend(0_i16.to_be_bytes());
        head.extend(0_i32.to_be_bytes()); // session id
        head.push(2); // one topic
        head.extend(poll.target.topic.as_bytes());
        head.push(2); // one partition
        head.extend(poll.target.partition.to_be_bytes());
        head.extend(0_i16.to_be_bytes());
        head.extend(end.to_be_bytes()); // high watermark
        head.extend(end.to_be_bytes()); // last stable offset
        head.extend(0_i64.to_be_bytes()); // log start offset
        head.push(0); // no aborted transactions
        head.extend((-1_i32).to_be_bytes()); // preferred replica
        debug_assert_eq!(head.len(), FETCH_HEAD - 1);
        put_varint(&mut head, records + 1);
        let tail = [0; 3]; // tags of partition, topic and answer
        let size = u32::try_from(head.len() - 4 + records + tail.len()).expect("below 2 GiB");
        head[..4].copy_from_slice(&size.to_be_bytes());
        match partition {
            Some(partition) if records > 0 => {
                out.push_back(Piece::Bytes(head));
                out.push_back(Piece::File {
                    file: partition.file.clone(),
                    at,
                    len: records,
                });
                out.push_back(Piece::Bytes(tail.to_vec()));
            }
            _ => {
                head.extend(tail);
                out.push_back(Piece::Bytes(head));
            }
        }
    }

    fn create(
        &mut self,
        correlation: i32,
        request: CreateTopicsRequest,
        out: &mut Out,
    ) -> io::Result<()> {
        let mut results = Vec::new();
        for topic in request.topics {
            let id = Uuid::from_u128(u128::from(std::process::id()) << 64 | unique());
            for partition in 0..topic.num_partitions {
                let path = self.folder.join(format!("{id}-{partition}"));
                let opened = Partition::open(&path)?;
                self.partitions.insert((id, partition), opened);
            }
            self.names.insert(topic.name.as_str().to_owned(), id);
            results.push(
                CreatableTopicResult::default()
                    .with_name(topic.name)
                    .with_topic_id(id),
            );
        }
        push(
            out,
            correlation,
            7,
            &CreateTopicsResponse::default().with_topics(results),
        )
    }

    fn delete(
        &mut self,
        correlation: i32,
        request: DeleteTopicsRequest,
        out: &mut Out,
    ) -> io::Result<()> {
        let mut results = Vec::new();
        for topic in request.topics {
            let name = topic.name.as_ref().map(|name| name.as_str());
            let id = name.and_then(|name| self.names.remove(name));
            if let Some(id) = id {
                self.partitions.retain(|(of, _), _| *of != id);
                remove_files(&self.folder, id)?;
            }
            results.push(DeletableTopicResult::default().with_name(topic.name));
        }
        push(
            out,
            correlation,
            6,
            &DeleteTopicsResponse::default().with_responses(results),
        )
    }
}

fn remove_files(folder: &Path, id: Uuid) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry
            .file_name()
            .to_string_lossy()
            .starts_with(&id.to_string())
        {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// A number that is given out once in a process.
fn unique() -> u128 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(1);
    u128::from(NEXT.fetch_add(1, Ordering::Relaxed))
}

fn read<R: Request + Decodable + HeaderVersion>(frame: &[u8], version: i16) -> io::Result<R> {
    let mut bytes = Bytes::copy_from_slice(&frame[4..]);
    RequestHeader::decode(&mut bytes, <R as HeaderVersion>::header_version(version))
        .and_then(|_| R::decode(&mut bytes, version))
        .map_err(wrong)
}

fn push<T: Encodable + HeaderVersion>(
    out: &mut Out,
    correlation: i32,
    version: i16,
    response: &T,
) -> io::Result<()> {
    let mut bytes = BytesMut::new();
    ResponseHeader::default()
        .with_correlation_id(correlation)
        .encode(&mut bytes, T::header_version(version))
        .and_then(|()| response.encode(&mut bytes, version))
        .map_err(wrong)?;
    out.push_back(Piece::Bytes(with_length(&bytes)));
    Ok(())
}

fn put_varint(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push(u8::try_from(value & 0x7f).expect("seven bits") | 0x80);
        value >>= 7;
    }
    out.push(u8::try_from(value).expect("seven bits"));
}

/// A place in a request that is read forward.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn range(&mut self, len: usize) -> io::Result<std::ops::Range<usize>> {
        let range = self.at..self.at + len;
        if self.bytes.len() < range.end {
            return Err(wrong("a request that ends too early"));
        }
        self.at = range.end;
        Ok(range)
    }

    fn skip(&mut self, len: usize) -> io::Result<()> {
        self.range(len).map(|_| ())
    }

    fn varint(&mut self) -> io::Result<usize> {
        let mut value = 0;
        for shift in 0..5 {
            let byte = self.bytes[self.range(1)?.start];
            value |= usize::from(byte & 0x7f) << (7 * shift);
            if byte & 0x80 == 0 {
                break;
            }
        }
        Ok(value)
    }

    /// The one topic, and its one partition.
    fn target(&mut self) -> io::Result<Target> {
        if self.varint()? != 2 {
            return Err(wrong("not one topic"));
        }
        let id = self.range(16)?;
        let topic = Uuid::from_slice(&self.bytes[id]).map_err(wrong)?;
        if self.varint()? != 2 {
            return Err(wrong("not one partition"));
        }
        let partition = i32_at(self.bytes, self.range(4)?.start);
        Ok(Target { topic, partition })
    }
}
