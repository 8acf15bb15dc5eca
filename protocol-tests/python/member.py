"""What a member of a group says, whatever its client; each line begins with the wall clock in microseconds.

assigned P,P    it may read these partitions from now on, besides those it has
revoked P,P     and these no longer; said before the coordinator may give them to another
got P OFFSET VALUE
committed P OFFSET
note ...

It ends in order when a line comes on its standard input.
"""

import sys
import threading
import time


class Diary:
    def __init__(self):
        self._stop = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        sys.stdin.readline()
        self._stop.set()

    def goes_on(self):
        return not self._stop.is_set()

    def _say(self, *words):
        print(time.time_ns() // 1000, *words, flush=True)

    def assigned(self, partitions):
        self._say("assigned", self._list(partitions))

    def revoked(self, partitions):
        self._say("revoked", self._list(partitions))

    @staticmethod
    def _list(partitions):
        return ",".join(str(partition) for partition in sorted(partitions))

    def got(self, partition, offset, value):
        self._say("got", partition, offset, value.decode())

    def committed(self, partition, offset):
        self._say("committed", partition, offset)

    def note(self, text):
        self._say("note", text)
