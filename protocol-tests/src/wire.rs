//! A tiny client: one connection, one frame at a time, for what stock clients will not send.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{
    ApiVersionsRequest, BrokerId, CreateTopicsRequest, FetchRequest, ListOffsetsRequest,
    MetadataRequest, ProduceRequest, RequestHeader, TopicName,
};
use kafka_protocol::protocol::Decodable;
use kafka_protocol::protocol::{Encodable, HeaderVersion, Request, StrBytes};
use kafka_protocol::records::{
    Compression, Record, RecordBatchDecoder, RecordBatchEncoder, RecordEncodeOptions, TimestampType,
};
use uuid::Uuid;

use crate::{Broker, Kind};

/// UNKNOWN_TOPIC_OR_PARTITION, LEADER_NOT_AVAILABLE, NOT_LEADER_OR_FOLLOWER.
const NOT_YET: [i16; 3] = [3, 5, 6];

/// What this client calls itself.
const NAME: &str = "protocol-tests";

/// How long an answer may take.
const LIMIT: Duration = Duration::from_secs(20);

/// One connection to a broker.
pub struct Connection {
    stream: TcpStream,
    next_correlation_id: i32,
}

impl Connection {
    #[track_caller]
    pub fn open(broker: &Broker) -> Self {
        Self::open_port(broker.port())
    }

    #[track_caller]
    pub fn open_port(port: u16) -> Self {
        Self::open_at("127.0.0.1", port)
    }

    #[track_caller]
    pub fn open_at(address: &str, port: u16) -> Self {
        let stream = TcpStream::connect((address, port)).expect("the broker accepts a connection");
        stream.set_nodelay(true).expect("a socket option");
        stream
            .set_read_timeout(Some(LIMIT))
            .expect("a socket option");
        stream
            .set_write_timeout(Some(LIMIT))
            .expect("a socket option");
        Self {
            stream,
            next_correlation_id: 1,
        }
    }

    /// How long to wait for an answer from here on.
    pub fn patience(&self, limit: Duration) {
        self.stream
            .set_read_timeout(Some(limit))
            .expect("a socket option");
    }

    /// Our side's address: the peer that the broker's log names.
    pub fn local(&self) -> SocketAddr {
        self.stream
            .local_addr()
            .expect("a connected socket has one")
    }

    /// Sends a request of this version and returns its answer.
    #[track_caller]
    pub fn ask<R: Request>(&mut self, version: i16, request: &R) -> R::Response {
        self.ask_as(NAME, version, request)
    }

    /// The same for a client of this name.
    #[track_caller]
    pub fn ask_as<R: Request>(
        &mut self,
        client: &'static str,
        version: i16,
        request: &R,
    ) -> R::Response {
        let correlation_id = self.next_correlation_id;
        self.next_correlation_id += 1;
        self.exchange::<R>(
            version,
            correlation_id,
            &frame_of(client, version, correlation_id, request),
        )
    }

    #[track_caller]
    fn exchange<R: Request>(
        &mut self,
        version: i16,
        correlation_id: i32,
        frame: &[u8],
    ) -> R::Response {
        self.send(frame).expect("the broker reads the request");
        let mut answer = match self.receive() {
            Ok(Some(answer)) => answer,
            other => panic!("no answer to {} v{version}: {other:?}", R::KEY),
        };
        let header = kafka_protocol::messages::ResponseHeader::decode(
            &mut answer,
            R::Response::header_version(version),
        )
        .expect("a response header");
        assert_eq!(
            header.correlation_id, correlation_id,
            "the answer is to this request"
        );
        let response =
            R::Response::decode(&mut answer, version).expect("a response of this version");
        assert!(
            answer.is_empty(),
            "{} bytes are left behind the response to {}",
            answer.len(),
            R::KEY
        );
        response
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// The socket, for who goes on by himself.
    pub(crate) fn into_stream(self) -> TcpStream {
        self.stream
    }

    /// Ends our sending side, so that a broker which waits for more sees there is none.
    pub fn finish_sending(&self) {
        // The broker may have closed already.
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
    }

    /// The next frame without its length, or none when the broker has closed the connection.
    pub fn receive(&mut self) -> io::Result<Option<Bytes>> {
        let mut length = [0; 4];
        match self.stream.read_exact(&mut length) {
            Ok(()) => {}
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset
                ) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
        let length = u32::from_be_bytes(length) as usize;
        assert!(length < 1 << 30, "a frame of {length} bytes");
        let mut frame = vec![0; length];
        self.stream.read_exact(&mut frame)?;
        Ok(Some(frame.into()))
    }

    /// Whether the broker neither answers nor closes for that long.
    pub fn is_silent(&self, span: Duration) -> bool {
        self.stream
            .set_read_timeout(Some(span))
            .expect("a socket option");
        let silent = match self.stream.peek(&mut [0]) {
            Ok(_) => false,
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        };
        self.stream
            .set_read_timeout(Some(LIMIT))
            .expect("a socket option");
        silent
    }

    /// Waits for the broker to close the connection; a frame or silence in its place fails.
    #[track_caller]
    pub fn expect_closed(mut self, after: &str) {
        match self.receive() {
            Ok(None) => {}
            Ok(Some(frame)) => panic!(
                "after {after}: an answer of {} bytes: {frame:02x?}",
                frame.len()
            ),
            Err(error) => panic!("after {after}: the connection stays open: {error}"),
        }
    }

    pub fn api_versions(&mut self) {
        let request = ApiVersionsRequest::default()
            .with_client_software_name(StrBytes::from_static_str("protocol-tests"))
            .with_client_software_version(StrBytes::from_static_str("1"));
        let answer = self.ask(3, &request);
        assert_eq!(answer.error_code, 0, "ApiVersions");
    }

    /// Creates a topic of one replica and returns its id.
    #[track_caller]
    pub fn create_topic(&mut self, topic: &str, partitions: i32) -> Uuid {
        let answer = self.ask(7, &create_topics(topic, partitions));
        let created = &answer.topics[0];
        assert_eq!(
            created.error_code, 0,
            "CreateTopics {topic}: {:?}",
            created.error_message
        );
        created.topic_id
    }

    /// Produces to partition 0 and returns the offset of the first record.
    #[track_caller]
    pub fn produce(&mut self, topic: &str, acks: i16, values: &[&[u8]]) -> i64 {
        let answer = self.ask(9, &produce(topic, acks, values));
        let partition = &answer.responses[0].partition_responses[0];
        assert_eq!(
            partition.error_code, 0,
            "Produce to {topic}: {:?}",
            partition.error_message
        );
        partition.base_offset
    }

    /// Fetches from partition 0, waiting for one byte at least; returns (offset, value) pairs.
    #[track_caller]
    pub fn fetch(&mut self, topic: &str, offset: i64) -> Vec<(i64, Bytes)> {
        self.fetch_on(topic, offset).0
    }

    /// The same, and where to go on: behind the last batch, whose last record may have been compacted
    /// away.
    #[track_caller]
    pub fn fetch_on(&mut self, topic: &str, offset: i64) -> (Vec<(i64, Bytes)>, i64) {
        let answer = self.ask(12, &fetch(topic, offset));
        assert_eq!(answer.error_code, 0, "Fetch from {topic}");
        let partition = &answer.responses[0].partitions[0];
        assert_eq!(partition.error_code, 0, "Fetch from {topic}");
        let mut records = partition.records.clone().unwrap_or_default();
        let next = next_offset(&records).unwrap_or(offset);
        let sets = RecordBatchDecoder::decode_all(&mut records).expect("whole batches");
        let records = sets
            .into_iter()
            .flat_map(|set| set.records)
            .map(|record| (record.offset, record.value.unwrap_or_default()));
        (records.collect(), next)
    }

    /// The log end offset of a partition.
    #[track_caller]
    pub fn end_offset(&mut self, topic: &str, partition: i32) -> i64 {
        let request = list_offsets(topic, partition, -1);
        let answer = self.ask_patiently(7, &request, |answer| {
            answer.topics[0].partitions[0].error_code
        });
        let row = &answer.topics[0].partitions[0];
        assert_eq!(row.error_code, 0, "ListOffsets of {topic}-{partition}");
        row.offset
    }

    /// The topic's id and its number of partitions.
    #[track_caller]
    pub fn describe(&mut self, topic: &str) -> (Uuid, usize) {
        let answer = self.ask_patiently(12, &metadata(topic), |answer| answer.topics[0].error_code);
        let row = &answer.topics[0];
        assert_eq!(row.error_code, 0, "Metadata of {topic}");
        (row.topic_id, row.partitions.len())
    }

    /// Apache Kafka says it is ready before it leads its partitions, and a topic is created before
    /// it knows of it: there the question is asked until the answer is another. A single node of ours
    /// has no such gap, so that it is asked once.
    #[track_caller]
    fn ask_patiently<R: Request>(
        &mut self,
        version: i16,
        request: &R,
        error_code: impl Fn(&R::Response) -> i16,
    ) -> R::Response {
        let end = Instant::now() + LIMIT;
        loop {
            let answer = self.ask(version, request);
            let not_yet = NOT_YET.contains(&error_code(&answer));
            if !not_yet || Kind::chosen() == Kind::Barnabas || Instant::now() > end {
                return answer;
            }
        }
    }
}

/// A whole frame, its length included.
pub fn frame<R: Request>(version: i16, correlation_id: i32, request: &R) -> Vec<u8> {
    frame_of(NAME, version, correlation_id, request)
}

/// A whole frame of a client that calls itself so.
pub fn frame_of<R: Request>(
    client: &'static str,
    version: i16,
    correlation_id: i32,
    request: &R,
) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    let header = RequestHeader::default()
        .with_request_api_key(R::KEY)
        .with_request_api_version(version)
        .with_correlation_id(correlation_id)
        .with_client_id(Some(StrBytes::from_static_str(client)));
    header
        .encode(&mut bytes, R::header_version(version))
        .expect("a header encodes");
    request
        .encode(&mut bytes, version)
        .expect("the request fits its version");
    with_length(&bytes)
}

/// A frame of this header and a body of raw bytes.
pub fn raw_frame(key: i16, version: i16, flexible: bool, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(key.to_be_bytes());
    bytes.extend(version.to_be_bytes());
    bytes.extend(7_i32.to_be_bytes());
    bytes.extend([0, 3]);
    bytes.extend(b"raw");
    if flexible {
        bytes.push(0);
    }
    bytes.extend(body);
    with_length(&bytes)
}

pub fn with_length(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).expect("a frame is below 4 GiB");
    [&length.to_be_bytes(), bytes].concat()
}

pub fn topic_name(name: &str) -> TopicName {
    TopicName(StrBytes::from_string(name.to_owned()))
}

pub fn create_topics(topic: &str, partitions: i32) -> CreateTopicsRequest {
    let topic = CreatableTopic::default()
        .with_name(topic_name(topic))
        .with_num_partitions(partitions)
        .with_replication_factor(1);
    CreateTopicsRequest::default()
        .with_topics(vec![topic])
        .with_timeout_ms(10_000)
}

pub fn produce(topic: &str, acks: i16, values: &[&[u8]]) -> ProduceRequest {
    let partition = PartitionProduceData::default()
        .with_index(0)
        .with_records(Some(batch(values)));
    let topic = TopicProduceData::default()
        .with_name(topic_name(topic))
        .with_partition_data(vec![partition]);
    ProduceRequest::default()
        .with_acks(acks)
        .with_timeout_ms(10_000)
        .with_topic_data(vec![topic])
}

pub fn fetch(topic: &str, offset: i64) -> FetchRequest {
    let partition = FetchPartition::default()
        .with_partition(0)
        .with_current_leader_epoch(-1)
        .with_fetch_offset(offset)
        .with_last_fetched_epoch(-1)
        .with_log_start_offset(-1)
        .with_partition_max_bytes(64 << 20);
    let topic = FetchTopic::default()
        .with_topic(topic_name(topic))
        .with_partitions(vec![partition]);
    FetchRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_max_wait_ms(5_000)
        .with_min_bytes(1)
        .with_max_bytes(64 << 20)
        .with_session_epoch(-1)
        .with_topics(vec![topic])
}

/// The offset behind the last of these batches.
fn next_offset(batches: &[u8]) -> Option<i64> {
    let (mut rest, mut next) = (batches, None);
    while let (Some(base), Some(length), Some(last)) =
        (rest.get(..8), rest.get(8..12), rest.get(23..27))
    {
        let number = |bytes: &[u8]| i32::from_be_bytes(bytes.try_into().expect("four bytes"));
        let base = i64::from_be_bytes(base.try_into().expect("eight bytes"));
        next = Some(base + i64::from(number(last)) + 1);
        rest = rest.get(12 + usize::try_from(number(length)).ok()?..)?;
    }
    next
}

pub fn list_offsets(topic: &str, partition: i32, timestamp: i64) -> ListOffsetsRequest {
    let partition = ListOffsetsPartition::default()
        .with_partition_index(partition)
        .with_current_leader_epoch(-1)
        .with_timestamp(timestamp);
    let topic = ListOffsetsTopic::default()
        .with_name(topic_name(topic))
        .with_partitions(vec![partition]);
    ListOffsetsRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_topics(vec![topic])
}

pub fn metadata(topic: &str) -> MetadataRequest {
    let topic = MetadataRequestTopic::default().with_name(Some(topic_name(topic)));
    MetadataRequest::default()
        .with_topics(Some(vec![topic]))
        .with_allow_auto_topic_creation(false)
}

/// One uncompressed batch.
pub fn batch(values: &[&[u8]]) -> Bytes {
    let records: Vec<Record> = (0..)
        .zip(values)
        .map(|(offset, value)| record(offset, value))
        .collect();
    encode(&records)
}

/// These records as one uncompressed batch.
pub fn encode(records: &[Record]) -> Bytes {
    let mut bytes = BytesMut::new();
    let options = RecordEncodeOptions {
        version: 2,
        compression: Compression::None,
    };
    RecordBatchEncoder::encode(&mut bytes, records, &options).expect("a batch encodes");
    bytes.freeze()
}

/// A record of no producer without a key, of now, the first of its batch at offset 0.
pub fn record(offset: i32, value: &[u8]) -> Record {
    Record {
        transactional: false,
        control: false,
        delete_horizon: false,
        partition_leader_epoch: -1,
        producer_id: -1,
        producer_epoch: -1,
        timestamp_type: TimestampType::Creation,
        offset: i64::from(offset),
        // No producer, no sequence: the batch's base is -1 and the encoder counts on from there.
        sequence: -1 + offset,
        timestamp: now_ms(),
        key: None,
        value: Some(Bytes::copy_from_slice(value)),
        headers: Default::default(),
    }
}

fn now_ms() -> i64 {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("past 1970");
    i64::try_from(now.as_millis()).expect("before the year 292 million")
}
