"""aiokafka: aiokafka_member.py BOOTSTRAP TOPIC GROUP; see member.py for what it says."""

import asyncio
import sys

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka.errors import KafkaError

from member import Diary

BOOTSTRAP, TOPIC, GROUP = sys.argv[1:4]


class Listener(ConsumerRebalanceListener):
    def __init__(self, diary):
        self.diary = diary

    async def on_partitions_assigned(self, assigned):
        self.diary.assigned(one.partition for one in assigned)

    async def on_partitions_revoked(self, revoked):
        self.diary.revoked(one.partition for one in revoked)


async def main():
    diary = Diary()
    consumer = AIOKafkaConsumer(
        bootstrap_servers=BOOTSTRAP,
        group_id=GROUP,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=6000,
        heartbeat_interval_ms=500,
        max_poll_records=20,
    )
    consumer.subscribe([TOPIC], listener=Listener(diary))
    await consumer.start()
    while diary.goes_on():
        # Said before anything is awaited: a rebalance runs beside, and may revoke meanwhile.
        batches = await consumer.getmany(timeout_ms=100)
        for partition, records in batches.items():
            for record in records:
                diary.got(partition.partition, record.offset, record.value)
        for partition, records in batches.items():
            end = records[-1].offset + 1
            try:
                await consumer.commit({partition: end})
                diary.committed(partition.partition, end)
            except KafkaError as error:
                diary.note(f"a commit is refused: {error}")
    await consumer.stop()
    diary.note("closed")


asyncio.run(main())
