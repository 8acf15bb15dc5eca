"""The story that every client tells: a topic a codec, thirty records in its first partition.

Each client writes it and each client reads what every other has written, so all of them compute the
same records from the topic's name: Java, Go and JavaScript say the same in their own words.
"""

import sys

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
RECORDS = 30
FIRST_TIME = 1_700_000_000_000


def records(topic):
    """(key, value, header, timestamp) of each record, the offset being its number."""
    for number in range(RECORDS):
        key = None if number % 10 == 7 else f"key {number}".encode()
        value = f"{topic} {number} ünï ".encode() * (number * 7 % 40 + 1)
        if number % 10 == 5:
            value = None
        if number % 10 == 6:
            value = b""
        yield key, value, ("h", str(number).encode()), FIRST_TIME + 1000 * number


def same(got, wanted, where, what):
    if got != wanted:
        sys.exit(f"{where}: {what}: {str(got)[:600]} in place of {str(wanted)[:600]}")


def compare(topic, got):
    """`got`: (offset, key, value, headers, timestamp) of each record, as the client has them."""
    wanted = [
        (offset, key, value, [header], timestamp)
        for offset, (key, value, header, timestamp) in enumerate(records(topic))
    ]
    same(len(got), len(wanted), topic, "records")
    for mine, theirs in zip(got, wanted):
        same(mine, theirs, topic, "a record")
