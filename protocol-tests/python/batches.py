"""Record batches that no library makes: batches.py BOOTSTRAP

Each line below is one report's input and the answer of Apache Kafka 4.1.2 to it; the ids are those of
the project's list of such reports. What is accepted must be stored as it was sent.
"""

import gzip
import random
import struct
import sys
import threading
import time

import cramjam
import lz4.frame
import zstandard

from wire import GZIP, LZ4, NONE, SNAPPY, ZSTD, Connection, batch, record

BOOTSTRAP = sys.argv[1]
FAILURES = []
CORRUPT, INVALID_TIMESTAMP, OUT_OF_ORDER, TRANSACTIONAL_ID_DENIED, INVALID_RECORD, UNKNOWN = 2, 32, 45, 53, 87, -1


def main():
    connection = Connection(BOOTSTRAP)
    for part in (heads_that_lie, codecs, sequences, at_the_same_time, times, bombs):
        try:
            part(connection)
        except ConnectionError as error:
            FAILURES.append(f"{part.__name__}: {error}")
            connection = Connection(BOOTSTRAP)
    for failure in FAILURES:
        print(failure)
    if FAILURES:
        sys.exit(f"{len(FAILURES)} differ")
    print("all is as it should be")


def among(got, wanted, what):
    if got not in wanted:
        FAILURES.append(f"{what}: {got} in place of one of {wanted}")


def same(got, wanted, what):
    if got != wanted:
        FAILURES.append(f"{what}: {got} in place of {wanted}")


def three(deltas=(0, 1, 2)):
    return [record(b"value %d" % number, delta) for number, delta in enumerate(deltas)]


def stored(connection, topic):
    """(base offset, attributes, count, what follows the head) of each batch that the broker has."""
    got = []
    _, end, data = connection.fetch(topic, 0)
    while data:
        base, length = struct.unpack_from(">qi", data)
        attributes, last_delta = struct.unpack_from(">hi", data, 21)
        (count,) = struct.unpack_from(">i", data, 57)
        got.append((base, attributes, count, data[61 : 12 + length]))
        data = data[12 + length :]
    return got


def heads_that_lie(connection):
    topic = "heads"
    connection.create(topic)
    good = three()

    def refused(what, wanted, data):
        among(connection.produce(topic, data)[0], wanted if isinstance(wanted, tuple) else (wanted,), what)

    # B051
    refused("B051: gaps between offsets", INVALID_RECORD, batch(three((0, 2, 5)), last_delta=5))
    # B052
    for count in (0, -1, 2, 4, 2**31 - 1, -(2**31)):
        refused(f"B052: a count of {count}", INVALID_RECORD, batch(good, count=count, last_delta=2))
    for count in (2, 4, 1):
        refused(f"B052: {count} records said, 3 there", INVALID_RECORD, batch(good, count=count))
    refused("B052: 2^31-1 records said", INVALID_RECORD, batch(good, count=2**31 - 1))
    for delta in (1, 3, -1, 2**31 - 1):
        refused(f"B052: a last delta of {delta}", INVALID_RECORD, batch(good, last_delta=delta))
    refused("B052: a control batch", INVALID_RECORD, batch(good, attributes=0x20))
    refused("B052: a producer without a sequence", INVALID_RECORD, batch(good, producer=(1, 0, -1)))
    refused("B052: a wrong checksum", CORRUPT, batch(good, checksum=1))
    refused("B052: a length too short", CORRUPT, batch(good, length=20))
    refused("B052: a length of nothing", CORRUPT, batch(good, length=0))
    refused("B052: a negative length", CORRUPT, batch(good, length=-1))
    refused("B052: a batch of magic 3", CORRUPT, batch(good, magic=3))
    refused("B052: a record's length too long", INVALID_RECORD, batch([b"\x7f" + good[0][1:]]))
    refused("B052: a record's length is negative", INVALID_RECORD, batch([b"\x01" + good[0][1:]]))
    refused("B052: bytes behind the records", INVALID_RECORD, batch(good + [b"xyz"], count=3))
    refused("B052: a transactional batch without an id", TRANSACTIONAL_ID_DENIED, batch(good, attributes=0x10))
    # B063: Apache Kafka fails over itself here, and its answer is one that clients do not retry.
    for codec in (5, 6, 7):
        refused(f"B063: codec {codec}", UNKNOWN, batch(good, attributes=codec))
    # Garbage in place of compressed records.
    for codec in (GZIP, SNAPPY, LZ4, ZSTD):
        refused(f"B063: codec {codec} and garbage", UNKNOWN, batch([], count=3, attributes=codec, body=b"garbage" * 9))
    # B032: message sets of old.
    refused("B032: magic 1", INVALID_RECORD, batch(good, magic=1))
    same(connection.fetch(topic, 0, max_wait=0)[:2], (0, 0), "B052: nothing was appended")

    # B051: inside a compressed batch the offsets are made anew (KAFKA-9080). Apache Kafka 4.1.2 means to, and
    # fails over itself: "UnsupportedOperationException: key is skipped in PartialDefaultRecord".
    for number, deltas in enumerate(((0, 0, 0), (5, 9, 1))):
        data = batch(three(deltas), attributes=GZIP, codec=gzip.compress)
        error, base, _ = connection.produce(topic, data)
        among(error, (0, UNKNOWN), f"B051: inner offsets {deltas}")
        if error == 0:
            base, _, count, body = stored(connection, topic)[number]
            anew = b"".join(three())
            same((base, count, gzip.decompress(body)), (3 * number, 3, anew), f"B051: what is stored of {deltas}")
    connection.create("compacted", configs=[("cleanup.policy", "compact")])
    keyless = batch(three(), attributes=GZIP, codec=gzip.compress)
    same(connection.produce("compacted", keyless)[0], INVALID_RECORD, "a record without a key, compacted")
    same(connection.produce(topic, b"")[0], INVALID_RECORD, "B052: no batch at all")
    same(connection.produce(topic, batch(three()) + batch(three()))[0], INVALID_RECORD, "B052: two batches")


def codecs(connection):
    topic = "codecs"
    connection.create(topic)
    wanted = []

    def sent(what, attributes, compress, wanted_errors=(0,), size=50):
        # Noise, and enough of it for more than one block of lz4.
        values = [random.Random(f"{what} {number}").randbytes(size) for number in range(3)]
        body = compress(b"".join(record(value, delta) for delta, value in enumerate(values)))
        error, base, _ = connection.produce(topic, batch([], count=3, attributes=attributes, body=body))
        among(error, wanted_errors, what)
        if error == 0:
            wanted.append((base, attributes, 3, body))

    def xerial(data):
        block = bytes(cramjam.snappy.compress_raw(data))
        return b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + struct.pack(">i", len(block)) + block

    def xerial_blocks(data):
        half = len(data) // 2
        blocks = [bytes(cramjam.snappy.compress_raw(part)) for part in (data[:half], data[half:])]
        head = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
        return head + b"".join(struct.pack(">i", len(block)) + block for block in blocks)

    sent("B056: snappy in xerial's frame", SNAPPY, xerial)
    sent("B056: snappy in xerial's frame, two blocks", SNAPPY, xerial_blocks)
    sent("B056: snappy as it is", SNAPPY, lambda data: bytes(cramjam.snappy.compress_raw(data)))

    for linked in (False, True):
        for block_size in (lz4.frame.BLOCKSIZE_MAX64KB, lz4.frame.BLOCKSIZE_MAX4MB):
            for content_checksum in (False, True):
                for block_checksum in (False, True):
                    for store_size in (False, True):
                        options = dict(
                            block_linked=linked,
                            block_size=block_size,
                            content_checksum=content_checksum,
                            block_checksum=block_checksum,
                            store_size=store_size,
                        )
                        sent(
                            f"B058: lz4 {options}",
                            LZ4,
                            lambda data: lz4.frame.compress(data, **options),
                            # Apache Kafka does not read linked blocks ("Dependent block stream is unsupported").
                            (UNKNOWN,) if linked and block_size == lz4.frame.BLOCKSIZE_MAX64KB else (0,),
                            size=40_000,
                        )

    def broken(data):
        frame = bytearray(lz4.frame.compress(data, block_linked=False, store_size=False))
        frame[6] ^= 0xFF
        return bytes(frame)

    sent("B059: lz4 with the old wrong checksum", LZ4, broken, (UNKNOWN,))
    sent("B060: gzip of two members", GZIP, lambda data: gzip.compress(data[:20]) + gzip.compress(data[20:]))
    sent("B060: gzip with padding", GZIP, lambda data: gzip.compress(data) + b"\0" * 8)

    def unsized(data):
        return zstandard.ZstdCompressor(write_content_size=False).compress(data)

    sent("B061: zstd without its size", ZSTD, unsized)
    sent("B061: zstd of two frames", ZSTD, lambda data: unsized(data[:20]) + unsized(data[20:]))
    window = zstandard.ZstdCompressionParameters(window_log=23, write_content_size=False)
    sent(
        "B061: zstd with a window of 8 MiB",
        ZSTD,
        lambda data: zstandard.ZstdCompressor(compression_params=window).compressobj().compress(data) or unsized(data),
    )
    same(stored(connection, topic) == wanted, True, "B056-B061: what is stored is what was sent")


def sequences(connection):
    topic = "sequences"
    connection.create(topic)
    producer_id, epoch = connection.init_producer()

    def send(sequence, count=1, epoch=epoch):
        records = [record(b"%d" % sequence, delta) for delta in range(count)]
        return connection.produce(topic, batch(records, producer=(producer_id, epoch, sequence)))[:2]

    # B045
    for sequence in range(10):
        same(send(sequence), (0, sequence), f"B045: sequence {sequence}")
    same(send(6), (0, 6), "B045: one of the last five again")
    same(send(1)[0], OUT_OF_ORDER, "B045: an older one again")
    same(send(12)[0], OUT_OF_ORDER, "B045: a gap")
    same(connection.fetch(topic, 10, max_wait=0)[1], 10, "B045: the end")
    # A batch that overlaps the last one, but is none of the last.
    same(send(8, 4)[0], OUT_OF_ORDER, "B045: an overlap")
    # B043: a new epoch begins at 0, an old one is refused.
    same(send(0, epoch=epoch + 1), (0, 10), "B043: a new epoch")
    same(send(10)[0], 47, "B043: the old epoch")
    same(send(5, epoch=epoch + 2)[0], OUT_OF_ORDER, "B043: a new epoch from 5 on")

    other, other_epoch = connection.init_producer()

    def wrap(sequence, count):
        records = [record(b"w", delta) for delta in range(count)]
        return connection.produce(topic, batch(records, producer=(other, other_epoch, sequence)))[:2]

    # An unknown producer may begin anywhere.
    same(wrap(2**31 - 3, 5), (0, 11), "B043: a batch across the wrap")
    same(wrap(2, 1), (0, 16), "B043: the next one")
    same(wrap(2**31 - 3, 5), (0, 11), "B043: the batch across the wrap again")


def at_the_same_time(connection):
    # B046
    topic = "twice"
    connection.create(topic)
    producer_id, epoch = connection.init_producer()
    both = [Connection(BOOTSTRAP), Connection(BOOTSTRAP)]
    barrier = threading.Barrier(2)
    answers = [[], []]

    def send(side):
        for sequence in range(200):
            data = batch([record(b"x")], producer=(producer_id, epoch, sequence))
            barrier.wait()
            answers[side].append(both[side].produce(topic, data)[:2])

    threads = [threading.Thread(target=send, args=(side,)) for side in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    wanted = [(0, sequence) for sequence in range(200)]
    same(answers, [wanted, wanted], "B046: both copies of a batch")
    same(connection.fetch(topic, 200, max_wait=0)[1], 200, "B046: the end")


def times(connection):
    now = int(time.time() * 1000)
    topic = "times"
    connection.create(topic)
    # B040
    late = batch(three(), first_time=now + 7_200_000)
    same(connection.produce(topic, late)[0], INVALID_TIMESTAMP, "B040: two hours ahead")
    same(connection.produce(topic, batch(three(), first_time=1))[0], 0, "B040: long ago")
    same(connection.produce(topic, batch(three(), first_time=-1))[0], 0, "B040: without a time")
    same(connection.produce(topic, batch(three(), first_time=-5))[0], 0, "B040: before 1970")
    # The head's latest time is not believed where the records are looked at.
    error, base, _ = connection.produce(topic, batch(three(), first_time=100, last_time=500))
    same(error, 0, "B085: a latest time that no record has")
    # B084: inside a batch, compressed or not.
    for codec, compress in ((NONE, lambda data: data), (GZIP, gzip.compress)):
        topic = f"inside-{codec}"
        connection.create(topic)
        records = [record(b"x", delta, timestamp_delta=100 * delta) for delta in range(3)]
        data = batch(records, attributes=codec, codec=compress, first_time=100, last_time=300)
        same(connection.produce(topic, data)[0], 0, "B084: three times in a batch")
        for asked, wanted in ((50, (0, 100, 0)), (150, (0, 200, 1)), (200, (0, 200, 1)), (301, (0, -1, -1))):
            same(connection.list_offset(topic, asked), wanted, f"B084: codec {codec}, the offset at {asked}")
    # B085: out of order.
    topic = "out-of-order"
    connection.create(topic)
    for at in (300, 100, 200):
        connection.produce(topic, batch([record(b"x")], first_time=at))
    for asked, wanted in ((150, (0, 300, 0)), (0, (0, 300, 0)), (301, (0, -1, -1))):
        same(connection.list_offset(topic, asked), wanted, f"B085: the offset at {asked}")
    # B039
    topic = "appended"
    connection.create(topic, configs=[("message.timestamp.type", "LogAppendTime")])
    for what, attributes, codec in (("plain", NONE, lambda data: data), ("gzip", GZIP, gzip.compress)):
        data = batch(three(), first_time=now + 7_200_000, attributes=attributes, codec=codec)
        error, base, append_time = connection.produce(topic, data)
        same(error, 0, f"B039: {what}")
        same(now - 1000 <= append_time <= now + 60_000, True, f"B039: {what}: it was appended at {append_time}")
        stored = connection.fetch(topic, base)[2]
        stored_attributes, _, _, last = struct.unpack_from(">hiqq", stored, 21)
        same((stored_attributes & 8, last), (8, append_time), f"B039: {what}: what is stored")


def bombs(connection):
    # B066: a few kilobytes that become a gigabyte, in one record.
    topic = "bombs"
    connection.create(topic)
    zeros = zstandard.ZstdCompressor(level=1).compressobj()
    head = record(b"")[:0]
    body = head + zeros.compress(b"\0" * 0)
    chunk = b"\0" * (1 << 20)
    for _ in range(1024):
        body += zeros.compress(chunk)
    body += zeros.flush()
    error = connection.produce(topic, batch([], count=1, attributes=ZSTD, body=body))[0]
    same(error != 0, True, f"B066: zeros in place of records: {error}")
    same(connection.fetch(topic, 0, max_wait=0)[1], 0, "B066: nothing was appended")


main()
