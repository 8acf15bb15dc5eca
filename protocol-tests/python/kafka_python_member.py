"""kafka-python: kafka_python_member.py BOOTSTRAP TOPIC GROUP; see member.py for what it says."""

import sys

from kafka import ConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata
from kafka.errors import KafkaError

from member import Diary

BOOTSTRAP, TOPIC, GROUP = sys.argv[1:4]


class Listener(ConsumerRebalanceListener):
    def __init__(self, diary):
        self.diary = diary

    def on_partitions_assigned(self, assigned):
        self.diary.assigned(one.partition for one in assigned)

    def on_partitions_revoked(self, revoked):
        self.diary.revoked(one.partition for one in revoked)


def main():
    diary = Diary()
    consumer = KafkaConsumer(
        bootstrap_servers=BOOTSTRAP,
        group_id=GROUP,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=6000,
        heartbeat_interval_ms=500,
        max_poll_records=20,
    )
    consumer.subscribe([TOPIC], listener=Listener(diary))
    while diary.goes_on():
        for partition, records in consumer.poll(timeout_ms=100).items():
            for record in records:
                diary.got(partition.partition, record.offset, record.value)
            end = records[-1].offset + 1
            try:
                consumer.commit({partition: OffsetAndMetadata(end, "", -1)})
                diary.committed(partition.partition, end)
            except KafkaError as error:
                diary.note(f"a commit is refused: {error}")
    consumer.close()
    diary.note("closed")


main()
