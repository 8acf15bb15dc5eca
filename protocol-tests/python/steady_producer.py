"""steady_producer.py BOOTSTRAP TOPIC: writes the numbers from 0 on, each its own key, some twenty every 30 ms,
until a line comes on its standard input; then prints how many were delivered. None may fail."""

import sys
import threading
import time

from confluent_kafka import Producer

BOOTSTRAP, TOPIC = sys.argv[1:3]
stop = threading.Event()
failures = []


def listen():
    sys.stdin.readline()
    stop.set()


def delivered(error, _):
    if error is not None:
        failures.append(error)


threading.Thread(target=listen, daemon=True).start()
producer = Producer(
    {"bootstrap.servers": BOOTSTRAP, "enable.idempotence": True, "reconnect.backoff.max.ms": 200}
)
number = 0
while not stop.is_set():
    for _ in range(20):
        producer.produce(TOPIC, key=str(number), value=str(number), on_delivery=delivered)
        number += 1
    producer.poll(0)
    time.sleep(0.03)
left = producer.flush(60)
assert left == 0 and not failures, (left, failures[:3])
print("delivered", number)
