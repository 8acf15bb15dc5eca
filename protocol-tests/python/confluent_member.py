"""librdkafka: confluent_member.py BOOTSTRAP TOPIC GROUP [OPTION=VALUE...]; see member.py for what it says."""

import sys

from confluent_kafka import Consumer, KafkaException, TopicPartition

from member import Diary

BOOTSTRAP, TOPIC, GROUP, *OPTIONS = sys.argv[1:]


def main():
    diary = Diary()
    settings = {
        "bootstrap.servers": BOOTSTRAP,
        "group.id": GROUP,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "session.timeout.ms": 6000,
        "heartbeat.interval.ms": 500,
        # A quarter of a second is long for a test: the broker comes back at once.
        "reconnect.backoff.max.ms": 200,
    }
    settings.update(option.split("=", 1) for option in OPTIONS)
    cooperative = settings.get("partition.assignment.strategy") == "cooperative-sticky"
    if settings.get("group.protocol") == "consumer":
        # The coordinator decides about these.
        del settings["session.timeout.ms"], settings["heartbeat.interval.ms"]
        cooperative = True
    consumer = Consumer(settings)

    def assigned(_, partitions):
        diary.assigned(one.partition for one in partitions)
        if cooperative:
            consumer.incremental_assign(partitions)
        else:
            consumer.assign(partitions)

    def revoked(_, partitions):
        diary.revoked(one.partition for one in partitions)
        if cooperative:
            consumer.incremental_unassign(partitions)
        else:
            consumer.unassign()

    consumer.subscribe([TOPIC], on_assign=assigned, on_revoke=revoked, on_lost=revoked)
    while diary.goes_on():
        message = consumer.poll(0.1)
        if message is None or message.error():
            continue
        diary.got(message.partition(), message.offset(), message.value())
        try:
            offset = TopicPartition(TOPIC, message.partition(), message.offset() + 1)
            consumer.commit(offsets=[offset], asynchronous=False)
            diary.committed(message.partition(), message.offset() + 1)
        except KafkaException as error:
            diary.note(f"a commit is refused: {error}")
    consumer.close()
    diary.note("closed")


main()
