"""Produces without a pause until told to stop: busy_producers.py BOOTSTRAP CODEC

Three producers, each to a topic of its own name; what is acknowledged is printed as

    acked TOPIC PARTITION OFFSET NUMBER

where NUMBER is the record's place among those given to the producer for that partition. A line on
standard input ends it: everything is flushed, then it prints `sent TOPIC PARTITION RECORDS`.
"""

import sys
import threading

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from numbered import PARTITIONS, value

BOOTSTRAP, CODEC = sys.argv[1:3]
UNACKED = 400

TOPICS = {
    "acks-one": {"acks": 1},
    "acks-all": {"acks": "all"},
    "idempotent": {"acks": "all", "enable.idempotence": True},
}


class Busy:
    def __init__(self, topic, settings):
        self.topic = topic
        self.sent = [0] * PARTITIONS
        self.unacked = 0
        self.producer = Producer(
            {
                "bootstrap.servers": BOOTSTRAP,
                "compression.type": CODEC,
                "linger.ms": 2,
                "batch.num.messages": 40,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                "message.timeout.ms": 280_000,
                "log_level": 2,
                "error_cb": self.failed,
                **settings,
            }
        )

    def fill(self):
        while self.unacked < UNACKED:
            partition = self.unacked % PARTITIONS
            number = self.sent[partition]
            self.producer.produce(
                self.topic,
                value(self.topic, partition, number),
                partition=partition,
                on_delivery=lambda error, message, number=number: self.acked(error, message, number),
            )
            self.sent[partition] += 1
            self.unacked += 1

    def acked(self, error, message, number):
        self.unacked -= 1
        if error is not None:
            print(f"failed {self.topic} {message.partition()} {number}: {error}")
            return
        print(f"acked {self.topic} {message.partition()} {message.offset()} {number}")

    def failed(self, error):
        if error.fatal():
            print(f"failed {self.topic}: {error}: {self.producer.fatal_error()}")


def main():
    admin = AdminClient({"bootstrap.servers": BOOTSTRAP})
    for future in admin.create_topics([NewTopic(topic, PARTITIONS, 1) for topic in TOPICS]).values():
        future.result(30)

    stop = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.readline(), stop.set()), daemon=True).start()
    busy = [Busy(topic, settings) for topic, settings in TOPICS.items()]
    while not stop.is_set():
        for one in busy:
            one.fill()
            one.producer.poll(0.005)
    for one in busy:
        left = one.producer.flush(100)
        if left:
            sys.exit(f"{left} records to {one.topic} were not delivered")
        for partition, records in enumerate(one.sent):
            print(f"sent {one.topic} {partition} {records}")


main()
