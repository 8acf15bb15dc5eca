"""librdkafka: first_message.py BOOTSTRAP TOPIC COUNT [OPTION=VALUE...]

So many groups that nobody has heard of read their first message, one after the other, with the client's default
settings. Says "subscribes GROUP" and "got GROUP MILLISECONDS".
"""

import sys
import time

from confluent_kafka import Consumer

BOOTSTRAP, TOPIC, COUNT, *OPTIONS = sys.argv[1:]


def main():
    for number in range(int(COUNT)):
        group = f"fresh-{number}"
        settings = {"bootstrap.servers": BOOTSTRAP, "group.id": group, "auto.offset.reset": "earliest"}
        settings.update(option.split("=", 1) for option in OPTIONS)
        consumer = Consumer(settings)
        print("subscribes", group, flush=True)
        began = time.monotonic()
        consumer.subscribe([TOPIC])
        while True:
            message = consumer.poll(10)
            if message is not None and not message.error():
                break
        print("got", group, round(1000 * (time.monotonic() - began), 1), flush=True)
        consumer.close()


main()
