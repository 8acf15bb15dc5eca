"""Frames by hand: what no library sends. Versions without compact types: Produce 7, Fetch 11, ListOffsets 5."""

import socket
import struct
import time

import crc32c_table

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)


def varint(number):
    number = (number << 1) ^ (number >> 63)
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def record(value, delta=0, key=None, timestamp_delta=0, headers=()):
    def field(data):
        return varint(-1) if data is None else varint(len(data)) + data

    body = b"\0" + varint(timestamp_delta) + varint(delta) + field(key) + field(value) + varint(len(headers))
    for name, data in headers:
        body += varint(len(name)) + name + field(data)
    return varint(len(body)) + body


def batch(
    records,
    count=None,
    last_delta=None,
    attributes=0,
    codec=lambda data: data,
    first_time=None,
    last_time=None,
    producer=(-1, -1, -1),
    magic=2,
    checksum=None,
    length=None,
    base_offset=0,
    body=None,
):
    """A batch of these records; each part of its head can be a lie."""
    now = int(time.time() * 1000)
    first_time = now if first_time is None else first_time
    last_time = first_time if last_time is None else last_time
    count = len(records) if count is None else count
    last_delta = count - 1 if last_delta is None else last_delta
    body = codec(b"".join(records)) if body is None else body
    producer_id, epoch, sequence = producer
    rest = struct.pack(">hiqqqhii", attributes, last_delta, first_time, last_time, producer_id, epoch, sequence, count)
    rest += body
    checksum = crc32c_table.crc32c(rest) if checksum is None else checksum
    length = len(rest) + 9 if length is None else length
    return struct.pack(">qiibI", base_offset, length, -1, magic, checksum) + rest


class Connection:
    def __init__(self, bootstrap):
        host, port = bootstrap.split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=30)
        self.number = 0

    def send(self, key, version, body):
        self.number += 1
        frame = struct.pack(">hhih", key, version, self.number, 3) + b"raw" + body
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)
        return self.number

    def receive(self):
        """(correlation id, reader), or None when the broker has closed the connection."""
        head = self.exactly(4)
        if head is None:
            return None
        data = self.exactly(struct.unpack(">i", head)[0])
        reader = Reader(data)
        return reader.take(">i"), reader

    def exactly(self, count):
        data = bytearray()
        while len(data) < count:
            try:
                got = self.socket.recv(count - len(data))
            except ConnectionResetError:
                return None
            if not got:
                return None
            data += got
        return bytes(data)

    def ask(self, key, version, body):
        number = self.send(key, version, body)
        answer = self.receive()
        if answer is None:
            raise ConnectionError("the broker closed the connection")
        assert answer[0] == number, f"the answer to {answer[0]} in place of {number}"
        return answer[1]

    def produce(self, topic, data, partition=0, acks=-1, transactional_id=None):
        """(error code, base offset, log append time) of the one partition."""
        reader = self.ask(0, 7, produce_body(topic, data, partition, acks, transactional_id))
        reader.take(">i"), reader.string(), reader.take(">i")
        index, error, base, append_time, start = reader.take(">ihqqq")
        return error, base, append_time

    def fetch(self, topic, offset, partition=0, max_bytes=1 << 26, partition_bytes=1 << 26, max_wait=500, min_bytes=1):
        """(error code, high watermark, records) of the one partition."""
        body = struct.pack(">iiiibii", -1, max_wait, min_bytes, max_bytes, 0, 0, -1)
        body += struct.pack(">i", 1) + string(topic)
        body += struct.pack(">iiiqqi", 1, partition, -1, offset, -1, partition_bytes)
        body += struct.pack(">i", 0) + string("")
        reader = self.ask(1, 11, body)
        throttle, error, session, topics = reader.take(">ihii")
        assert error == 0 and topics == 1, (error, topics)
        reader.string(), reader.take(">i")
        index, error, high, stable, start, aborted = reader.take(">ihqqqi")
        assert aborted <= 0, aborted
        reader.take(">i")
        return error, high, reader.bytes()

    def list_offset(self, topic, timestamp, partition=0):
        """(error code, timestamp, offset) of the one partition."""
        body = struct.pack(">ibi", -1, 0, 1) + string(topic) + struct.pack(">iiiq", 1, partition, -1, timestamp)
        reader = self.ask(2, 5, body)
        reader.take(">ii"), reader.string(), reader.take(">i")
        index, error, timestamp, offset, epoch = reader.take(">ihqqi")
        return error, timestamp, offset

    def init_producer(self):
        error = 14
        # COORDINATOR_LOAD_IN_PROGRESS: Apache Kafka has no block of ids yet.
        while error == 14:
            reader = self.ask(22, 1, struct.pack(">hi", -1, 60_000))
            throttle, error, producer_id, epoch = reader.take(">ihqh")
        assert error == 0, error
        return producer_id, epoch

    def create(self, topic, partitions=1, configs=()):
        body = struct.pack(">i", 1) + string(topic) + struct.pack(">ihi", partitions, 1, 0)
        body += struct.pack(">i", len(configs))
        for name, value in configs:
            body += string(name) + string(value)
        reader = self.ask(19, 2, body + struct.pack(">ib", 10_000, 0))
        reader.take(">ii"), reader.string()
        error = reader.take(">h")
        assert error == 0, error
        # Apache Kafka answers before its broker leads.
        while self.fetch(topic, 0, max_wait=0)[0] in (3, 5, 6):
            pass


def produce_body(topic, data, partition=0, acks=-1, transactional_id=None):
    body = string(transactional_id) + struct.pack(">hi", acks, 30_000)
    body += struct.pack(">i", 1) + string(topic) + struct.pack(">ii", 1, partition)
    return body + struct.pack(">i", len(data)) + data


def string(text):
    if text is None:
        return struct.pack(">h", -1)
    return struct.pack(">h", len(text)) + text.encode()


class Reader:
    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, form):
        values = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return values if len(values) > 1 else values[0]

    def string(self):
        return self.slice(self.take(">h"))

    def bytes(self):
        return self.slice(self.take(">i")) or b""

    def slice(self, length):
        if length < 0:
            return None
        data = self.data[self.at : self.at + length]
        self.at += length
        return data
