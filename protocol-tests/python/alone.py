"""Starts the binary with no argument and sends a record through localhost:9092: alone.py BINARY

Made to run in a network namespace of its own, whose loopback it brings up first.
"""

import fcntl
import signal
import socket
import struct
import subprocess
import sys

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

SIOCSIFFLAGS = 0x8914
IFF_UP = 1


def main():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))

    broker = subprocess.Popen([sys.argv[1]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        for line in broker.stdout:
            print(line, end="")
            if "Kafka Server started" in line:
                break
        else:
            sys.exit(f"it ended with {broker.wait()}")

        producer = Producer({"bootstrap.servers": "localhost:9092"})
        producer.produce("alone", b"a record")
        if producer.flush(10):
            sys.exit("the record was not delivered")
        consumer = Consumer({"bootstrap.servers": "localhost:9092", "group.id": "unused"})
        consumer.assign([TopicPartition("alone", 0, OFFSET_BEGINNING)])
        message = consumer.poll(10)
        if message is None or message.value() != b"a record":
            sys.exit(f"got {message and message.value()}")
        consumer.close()

        broker.send_signal(signal.SIGTERM)
        exit_code = broker.wait(10)
        if exit_code:
            sys.exit(f"SIGTERM ended it with {exit_code}")
        print("a record came back from localhost:9092")
    finally:
        broker.kill()


main()
