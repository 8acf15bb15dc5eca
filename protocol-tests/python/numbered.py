"""Records that tell their number and would show a changed byte."""

PARTITIONS = 2


def value(topic, partition, number):
    head = f"{topic} {partition} {number} "
    return (head + head[::-1] * (number * 7 % 40)).encode()


def number_of(topic, partition, got):
    """The number a record tells, or -1 if it is not the record of that number."""
    words = (got or b"").split(b" ")
    try:
        number = int(words[2])
    except (IndexError, ValueError):
        return -1
    return number if got == value(topic, partition, number) else -1
